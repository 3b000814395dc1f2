"""Hypotheses: the search's token ids and scores, as texts."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kzoo.errors import UserError
from kzoo.text.vocabulary import END

if TYPE_CHECKING:  # importing it takes seconds
    from keras_hub.tokenizers import Tokenizer


@dataclass(frozen=True)
class Hypothesis:
    """One translation: its text, and its log-probability over its length penalty, as in `BeamSearch`."""

    text: str
    score: float


def as_hypotheses(found: list, n: int, tokenizer: "Tokenizer") -> list[list[Hypothesis]]:
    """Return the `n` best distinct texts of each sentence's hypotheses, each with its best score.

    Args:
        found: for each sentence, token ids `(K, T)` and scores `(K,)`, best first; `None` for an empty one.
        n: int. At most K; there are fewer if the search found fewer texts.
        tokenizer: of the target language.

    Raises:
        UserError: a sentence has no hypothesis because its token scores are NaN or infinite.
    """
    if not found:
        return []
    real_scores, ended = [], []
    for number, best in enumerate(found, 1):
        tokens, scores = best or ([[END]], [0.0])
        real = [i for i, score in enumerate(scores if n > 1 else scores[:1]) if score > -1e8]
        if not real:
            raise UserError(
                f"the scores of sentence {number} are not finite: use an earlier checkpoint, retrain with a "
                "lower rate or a clip_norm, or use float32 instead of float16"
            )
        real_scores.append([float(scores[i]) for i in real])
        for i in real:  # cut at once: padding can be most of a batch
            row = np.asarray(tokens[i]).tolist()
            ended.append(row[: row.index(END)])
    texts = iter(tokenizer.detokenize(ended))
    hypotheses = []
    for scores in real_scores:
        best = {}  # by text, because different subword sequences can give the same text
        for score in scores:
            best.setdefault(next(texts), score)
        hypotheses.append([Hypothesis(text, score) for text, score in best.items()][:n])
    return hypotheses
