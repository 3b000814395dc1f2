"""Texts of several sentences, translated one sentence at a time, as models are trained."""

import itertools
import warnings
from collections.abc import Iterable, Sequence
from statistics import fmean

import numpy as np

from kzoo.models.texts_and_tokens import Hypothesis, listed_prefixes
from kzoo.text.languages import has_spaces
from kzoo.text.sentences import split_sentences


class SplitTexts:
    """The sentences of texts; `join` makes their translations those of the texts.

    Args:
        texts: checked strings.
        languages: the code of each text's language.
        split: bool. Whether texts are split; `False`: each is one sentence. `None`: the same, with a warning
            if one of them has several.

    Attributes:
        sentences: of all texts, in their order.
        text_of: `(sentences,)`, the number of each one's text.
    """

    def __init__(self, texts: list[str], languages: Sequence[str | None], split: bool | None):
        whole = [[text] for text in texts]
        if split is None and several_sentences(texts, languages):
            warnings.warn(
                "a text has several sentences, of which the model may leave some out: split_sentences=True "
                "(--split-sentences) translates each",
                stacklevel=1,
            )
        self._parts = list(map(split_sentences, texts, languages)) if split else whole
        sentences = [sentence for parts in self._parts for sentence in parts]
        self.sentences = [sentence.strip() for sentence in sentences] if split else sentences
        self.text_of = np.repeat(np.arange(len(texts)), list(map(len, self._parts)))

    def prefixes(self, prefixes: Iterable[str] | None) -> list[str] | None:
        """Return prefixes of the texts' translations as those of the sentences': of the first of each text.

        Raises:
            UserError: there is not one for each text.
        """
        if prefixes is None:
            return None
        given = zip(listed_prefixes(prefixes, len(self._parts)), self._parts, strict=True)
        return [one for prefix, parts in given for one in (prefix, *[""] * (len(parts) - 1))]

    def join(self, found: list[list[Hypothesis]], languages: Sequence[str | None]) -> list[list[Hypothesis]]:
        """Return the hypotheses of the texts: the best of all sentences joined, the second best, and so on.

        A sentence with fewer hypotheses gives its last one again. The score is the sentences' mean.

        Args:
            found: of each of `sentences`, best first.
            languages: the code of each translation's language, which decides whether a space is between them.
        """
        rows = iter(found)
        return [
            _joined(parts, list(itertools.islice(rows, len(parts))), language)
            for parts, language in zip(self._parts, languages, strict=True)
        ]


def several_sentences(texts: list[str], languages: Sequence[str | None]) -> bool:
    """Return whether one of the texts has several sentences."""
    return any(len(parts) > 1 for parts in map(split_sentences, texts, languages))


def _joined(parts: list[str], found: list[list[Hypothesis]], language: str | None) -> list[Hypothesis]:
    if len(parts) == 1:
        return found[0]
    between = " " if has_spaces(language) else ""
    spaces = [part[len(part.rstrip()) :] for part in parts]
    gaps = [space if "\n" in space else between for space in spaces[:-1]]
    ranks = range(max(map(len, found)))
    chosen = [[one[min(rank, len(one) - 1)] for one in found] for rank in ranks]
    return [
        Hypothesis(
            "".join(one.text + gap for one, gap in zip(row, [*gaps, ""], strict=True)),
            fmean(one.score for one in row),
        )
        for row in chosen
    ]
