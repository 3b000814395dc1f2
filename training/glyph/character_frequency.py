"""Sentences with rare and with frequent characters: the buckets of the glyph paper's Table 5."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from kzoo.errors import UserError
from kzoo.evaluation.scores import SplitScores, score_translations

BUCKETS = ("low", "mid", "high")


def frequency_buckets(sentences: Sequence[str], training_sentences: Iterable[str]) -> list[str]:
    """Return the bucket of each sentence: `"low"`, `"mid"` or `"high"`.

    A sentence's score is the mean count of its characters in the training text, without white space. The
    quarter of the sentences with the lowest scores is low, the quarter with the highest is high, the rest is
    mid. If scores are equal, the earlier sentence counts as lower.

    Args:
        sentences: source sentences of the test set.
        training_sentences: source sentences of the training set.

    Example:

    >>> frequency_buckets(["龘", "的我", "的", "我"], ["我的", "的"])
    ['low', 'mid', 'high', 'mid']

    Reference:
        Broscheit et al. 2018, "Learning Distributional Token Representations from Visual Features", Table 5.
        https://aclanthology.org/W18-3025
    """
    counts = Counter(character for sentence in training_sentences for character in sentence)
    means = []
    for sentence in sentences:
        frequencies = [counts[character] for character in sentence if not character.isspace()]
        means.append(np.mean(frequencies) if frequencies else 0.0)
    buckets = np.full(len(means), "mid", dtype=object)
    order = np.argsort(means, kind="stable")
    quarter = len(means) // 4
    buckets[order[:quarter]] = "low"
    buckets[order[len(means) - quarter :]] = "high"
    return buckets.tolist()


def score_by_frequency(
    translations: Sequence[str], references: Sequence[str], buckets: Sequence[str], language: str
) -> list[SplitScores]:
    """Return the scores of each bucket, low first.

    Args:
        translations: one for each reference.
        references: true translations.
        buckets: the source sentences' buckets, as `frequency_buckets` returns them.
        language: the target language.

    Raises:
        ValueError: the lengths of these lists differ.
        UserError: a bucket has no sentence.
    """
    chosen = {bucket: ([], []) for bucket in BUCKETS}
    for translation, reference, bucket in zip(translations, references, buckets, strict=True):
        chosen[bucket][0].append(translation)
        chosen[bucket][1].append(reference)
    for bucket, (found, _) in chosen.items():
        if not found:
            raise UserError(f"no sentence is in bucket {bucket}: quartiles need at least four sentences")
    return [score_translations(bucket, *pairs, language) for bucket, pairs in chosen.items()]
