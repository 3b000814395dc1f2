"""Significance of differences in BLEU: approximate randomization, and sacreBLEU's bootstrap intervals."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest
from scipy.stats import permutation_test

from kzoo.errors import UserError
from kzoo.evaluation.scores import bleu_metric, check_forms, markdown_table

TRIALS, DRAWS = 10_000, 1000  # of the randomization; of the bootstrap
SEED = 1  # of the randomization
HOW_P = (
    f"p: difference from the first model, by approximate randomization ({TRIALS:,} random exchanges of "
    f"translations, seed {SEED}; all exchanges if there are fewer)"
)


class ComparedBleu(NamedTuple):
    """A model's BLEU.

    Args:
        model: its name.
        bleu: of all sentences.
        mean: of BLEU over bootstrap samples of the sentences.
        interval: half the width of the interval around the mean that contains 95 % of the samples.
        p: the probability of a difference from the first model at least as large if each sentence's two
            translations are exchanged at random; `None` for the first model.
    """

    model: str
    bleu: float
    mean: float
    interval: float
    p: float | None


def compare_bleu(
    translations: Sequence[tuple[str, Sequence[str]]],
    references: Sequence[str],
    language: str,
    more_references: Sequence[Sequence[str]] = (),
) -> tuple[list[ComparedBleu], str]:
    """Compare the BLEU of models with that of the first, on the same sentences.

    The test does not measure differences between seeds: training one model twice may differ as much.

    Args:
        translations: names of two or more models, each with its translations.
        references: true translations.
        language: target language, which selects BLEU's tokenizer.
        more_references: further true translations, each a list like `references`.

    Returns:
        A row for each model, and sacreBLEU's signature: it has the number of samples (`bs`) and their seed,
        which the environment variable SACREBLEU_SEED can change. `HOW_P` describes p.

    Raises:
        UserError: fewer than two models, or the numbers of sentences differ.

    Reference:
        Clark et al. 2011, "Better Hypothesis Testing for Statistical Machine Translation".
        https://aclanthology.org/P11-2031
    """
    if len(translations) < 2:
        raise UserError("a comparison needs the translations of at least two models")
    for name, texts in translations:
        if len(texts) != len(references):
            raise UserError(f"{name}: {len(texts):,} translations but {len(references):,} references")
    systems = [(name, list(texts)) for name, texts in translations]
    metric, all_references = bleu_metric(language), [list(references), *map(list, more_references)]
    check_forms([*(texts for _, texts in systems), *all_references])
    signatures, found = PairedTest(systems, {"BLEU": metric}, all_references, "bs", DRAWS)()
    first, *others = (_statistics(metric, texts, all_references) for _, texts in systems)
    p = [None, *(_p(first, other) for other in others)]
    rows = zip(found["System"], found["BLEU"], p, strict=True)
    compared = [ComparedBleu(name, row.score, row.mean, row.ci, p) for name, row, p in rows]
    return compared, str(signatures["BLEU"])


def _statistics(metric: BLEU, texts: Sequence[str], references: list[list[str]]) -> np.ndarray:
    """Return the counts of each sentence from which BLEU is computed: `(sentences, 10)`."""
    rows = zip(texts, *references, strict=True)
    scores = [metric.corpus_score([text], [[one] for one in true]) for text, *true in rows]
    return np.array([[*score.counts, *score.totals, score.sys_len, score.ref_len] for score in scores])


def _p(first: np.ndarray, second: np.ndarray) -> float:
    """Return p for two models' statistics.

    sacreBLEU's own p leaves out equal differences: for equal models it would be 0.0001.
    """
    differing = (first != second).any(axis=1)
    if differing.sum() < 2:  # exchanging the only one just changes the sign
        return 1.0
    same = first[~differing].sum(axis=0)
    both = np.stack([first[differing], second[differing]])
    sentences = np.arange(both.shape[1])

    def difference(one, other, axis):
        """Return the difference in BLEU; `one` and `other` are the model numbers of the translations."""
        totals = [same + both[models, sentences].sum(axis=-2) for models in (one, other)]
        one, other = (np.apply_along_axis(_bleu, -1, total) for total in totals)
        return one - other

    models = np.zeros(len(sentences), int), np.ones(len(sentences), int)
    random = np.random.default_rng(SEED)
    options = {"permutation_type": "samples", "n_resamples": TRIALS, "batch": 100, "rng": random}
    return permutation_test(models, difference, **options).pvalue


def _bleu(statistics: np.ndarray) -> float:
    *counts, length, true_length = statistics.tolist()
    return BLEU.compute_bleu(counts[:4], counts[4:], length, true_length, smooth_method="exp").score


def comparison_table(compared: list[ComparedBleu], signature: str) -> str:
    """Return the rows of `compare_bleu` as a Markdown table, with the signature and `HOW_P` below it."""
    rows = []
    for row in compared:
        p = "" if row.p is None else shown_p(row.p)
        rows.append((row.model, f"{row.bleu:.1f}", f"{row.mean:.1f} ± {row.interval:.1f}", p))
    table = markdown_table(("model", "BLEU", "95 % interval (bootstrap)", "p"), rows)
    return f"{table}\n\nBLEU and interval: `{signature}`\n\n{HOW_P}"


def shown_p(p: float) -> str:
    """Return p with three decimals, never as "0.000"."""
    return "< 0.001" if p < 0.0005 else f"{p:.3f}"
