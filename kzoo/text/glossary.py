"""A glossary: where a term occurs in a sentence, its translation stands in the sentence's translation."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from kzoo.errors import UserError
from kzoo.text.alignment import Alignment, Attention
from kzoo.text.languages import Direction, has_spaces, upper_case

ENDING = 2  # letters that inflection may add to a term's translation


class Occurrence(NamedTuple):
    """A term in a sentence: its place, and its translation."""

    start: int
    stop: int
    translation: str


class Glossary:
    """Terms with their translations.

    Terms are found as whole words, in any case. Of terms that overlap, the first and longest counts. A
    translation that has the words of a term's translation, perhaps with an ending, is left as it is.

    Args:
        terms: the translation of each term.
        direction: the languages.

    Attributes:
        direction: as above.

    Raises:
        UserError: the terms are no mapping; a term or its translation is no text, or empty.
    """

    def __init__(self, terms: Mapping[str, str], direction: Direction):
        if not isinstance(terms, Mapping):
            raise UserError(f"terms must be a dictionary of terms and their translations, not {terms!r:.80}")
        for pair in terms.items():
            if not all(isinstance(text, str) and text.strip() for text in pair):
                raise UserError(f"a term or its translation is empty, or no text: {pair!r:.80}")
        self.direction, self._terms = direction, {}
        source, self._target = direction
        for term, translation in terms.items():
            self._terms.setdefault(folded(term.strip()), translation.strip())
        self._spaces = has_spaces(source)
        self._sizes = sorted(set(map(len, self._terms)), reverse=True)

    def fits(self, direction: Direction) -> bool:
        """Return whether the terms are for a direction; those of a language that is `None` are for any."""
        return all(own in (None, given) for own, given in zip(self.direction, direction, strict=True))

    def occurrences(self, sentence: str) -> list[Occurrence]:
        """Return the terms in a sentence."""
        found, place = [], 0
        while place < len(sentence):
            ends = [place + size for size in self._sizes] if self._is_edge(sentence, place) else []
            stop = next((end for end in ends if self._is_term(sentence, place, end)), None)
            if stop:
                found.append(Occurrence(place, stop, self._terms[folded(sentence[place:stop])]))
            place = stop or place + 1
        return found

    def _is_term(self, sentence: str, start: int, stop: int) -> bool:
        ended = stop <= len(sentence) and self._is_edge(sentence, stop)
        return ended and folded(sentence[start:stop]) in self._terms

    def _is_edge(self, sentence: str, place: int) -> bool:
        """Return whether a word may begin or end at a place."""
        within = 0 < place < len(sentence) and sentence[place - 1].isalnum() and sentence[place].isalnum()
        return not (self._spaces and within)

    def missing(self, occurrences: list[Occurrence], translation: str) -> int:
        """Return how many of a sentence's terms a translation lacks."""
        wanted = Counter(one.translation for one in occurrences)
        return sum(max(count - len(self._places(term, translation)), 0) for term, count in wanted.items())

    def applied(
        self, sentence: str, occurrences: list[Occurrence], translation: str, attention: Attention | None
    ) -> str:
        """Return a translation in which the words that are aligned with terms are the terms' translations.

        Args:
            sentence: the sentence.
            occurrences: the terms in it.
            translation: its translation, which lacks some.
            attention: of both, as of `alignments`; `None`: the translation stays as it is.
        """
        if attention is None:
            return translation
        alignment = Alignment([(sentence, translation, attention)], self._target)
        new, places = {}, {one.translation: self._places(one.translation, translation) for one in occurrences}
        kept = [place for some in places.values() for place in some]
        free = np.array(
            [all(end <= a or b <= start for a, b in kept) for start, end in alignment.words], bool
        )
        for term, some in places.items():
            mine = [(one.start, one.stop) for one in occurrences if one.translation == term]
            # Those whose translation is there already are aligned least clearly with other words.
            mine.sort(key=lambda place: alignment.words_of(*place, free) or (-np.inf,), reverse=True)
            for place in mine[: max(len(mine) - len(some), 0)]:
                if found := alignment.words_of(*place, free):
                    _, first, last = found
                    free[first:last] = False
                    begin, end = alignment.words[first][0], alignment.words[last - 1][1]
                    new[begin, end] = term if begin else self._as_first(term)
        for (begin, end), term in sorted(new.items(), reverse=True):
            translation = translation[:begin] + term + translation[end:]
        return translation

    def _as_first(self, term: str) -> str:
        """Return a term as a sentence begins with it; a name such as iPhone stays."""
        is_word = term.split()[0].islower()
        return upper_case(term[0], self._target) + term[1:] if is_word else term

    def _places(self, term: str, translation: str) -> list[tuple[int, int]]:
        """Return where a term's translation is, perhaps with an ending."""
        pattern = r"\s+".join(map(re.escape, term.split()))
        if has_spaces(self._target):
            pattern = rf"(?<!\w){pattern}\w{{0,{ENDING}}}(?!\w)"
        return [match.span() for match in re.finditer(pattern, translation, re.IGNORECASE)]


def folded(term: str) -> str:
    """Return a term in lower case, with as many characters: Python's has two for `İ`."""
    return term.replace("İ", "i").lower()
