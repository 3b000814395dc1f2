"""The score of joint segmentation and tagging: F1 over (segment, tag)."""

from collections.abc import Sequence
from dataclasses import dataclass

from kzoo.errors import UserError

Sentence = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class TaggingScores:
    """How many tagged segments were found, in percent.

    Args:
        sentences: number of sentences.
        precision: share of correct segments among those found.
        recall: share of correct segments among the true ones.
        f1: harmonic mean of both; 0 if nothing is correct.
    """

    sentences: int
    precision: float
    recall: float
    f1: float


def score_tagging(predicted: Sequence[Sentence], true: Sequence[Sentence]) -> TaggingScores:
    """Score tagged segments: one is correct if its first and last character and its tag are.

    Args:
        predicted: a list of (segment, tag) for each sentence.
        true: the same, with the same characters.

    Raises:
        UserError: the numbers of sentences differ, or the characters of one do.

    Example:

    >>> score_tagging([[("学生", "NOUN"), ("来", "NOUN")]], [[("学生", "NOUN"), ("来", "VERB")]]).f1
    50.0
    """
    if len(predicted) != len(true):
        raise UserError(f"{len(predicted)} tagged sentences but {len(true)} true ones")
    correct = found = existing = 0
    for number, (one, other) in enumerate(zip(predicted, true, strict=True), 1):
        texts = ["".join(segment for segment, _ in sentence) for sentence in (one, other)]
        if texts[0] != texts[1]:
            raise UserError(f"sentence {number} is {texts[0]!r} when tagged, but truly {texts[1]!r}")
        spans, expected = _spans(one), _spans(other)
        correct += len(spans & expected)
        found += len(spans)
        existing += len(expected)
    precision, recall = (100 * correct / total if total else 0.0 for total in (found, existing))
    f1 = 2 * precision * recall / (precision + recall) if correct else 0.0
    return TaggingScores(len(true), precision, recall, f1)


def _spans(sentence: Sentence) -> set[tuple[int, int, str]]:
    spans, start = set(), 0
    for segment, tag in sentence:
        spans.add((start, start + len(segment), tag))
        start += len(segment)
    return spans
