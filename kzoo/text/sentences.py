"""Splits texts into sentences, and joins the sentences' translations again."""

import itertools
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean

import numpy as np

from kzoo.errors import UserError
from kzoo.text.hypotheses import Hypothesis
from kzoo.text.languages import (
    CHINESE,
    Direction,
    is_chinese_or_japanese,
    main_code,
    matching_code,
    not_known,
)

TARGET_CODE = re.compile(r"\s*>>\s*(.*?)\s*<<")  # at the beginning of a text
# sentencex wrongly ends a sentence after these: an initial or an ordinal, as in "M. Dupont" and "19.
# Jahrhundert"; "Ms."; and a punctuation mark directly followed by a letter, as in "E.S.E.". A Korean syllable
# is no initial, and Chinese and Japanese have no space before a sentence.
NO_END = re.compile(r"((^|[\s(\[.\-'’])(\d{1,2}|[^\W\d_\uac00-\ud7a3]|Ms)\.\s*|[!-~])$")
PORTION = 65_536  # characters
CHINESE_OR_JAPANESE = re.compile(f"[{CHINESE}\u3040-\u30ff]")


class SplitTexts:
    """Splits texts into sentences; `join` joins the sentences' translations again.

    Args:
        texts: checked strings.
        directions: each text's language and that of its translation, as codes or `None`.
        split: bool. Whether to split; `False`: each text is one sentence. `None`: as `False`, with a warning
            if a text has several sentences.
        codes: the target languages of a model of several. A text may begin with one, such as `>>fra<<`, which
            all its sentences then get.

    Attributes:
        directions: those of the texts, with the target that a text begins with.
        sentences: those of all texts, in order.
        text_of: `(sentences,)`, the index of each sentence's text.

    Raises:
        UserError: a text whose target language is missing or not one of the `codes`.
    """

    def __init__(
        self,
        texts: list[str],
        directions: Sequence[Direction],
        split: bool | None,
        codes: Sequence[str] = (),
    ):
        if codes:
            texts = [
                _coded(text, target, codes, number)
                for number, (text, (_, target)) in enumerate(zip(texts, directions, strict=True), 1)
            ]
        sources = [source for source, _ in directions]
        if split is None and any(len(parts) > 1 for parts in map(split_sentences, texts, sources)):
            warnings.warn(
                "a text has several sentences, and the model may skip some: split_sentences=True "
                "(--split-sentences) translates each",
                stacklevel=1,
            )
        self._parts = list(map(split_sentences, texts, sources)) if split else [[text] for text in texts]
        self.directions, self.sentences = [], []
        for parts, (source, target) in zip(self._parts, directions, strict=True):
            first, *others = [part.strip() for part in parts] if split else parts
            named = TARGET_CODE.match(first) if codes else None
            code = named[0] if named else ""
            self.directions.append((source, named[1] if named else target))
            self.sentences += [first, *(code + sentence for sentence in others)]
        self.text_of = np.repeat(np.arange(len(texts)), list(map(len, self._parts)))

    def portions(self) -> Iterator[tuple[slice, Direction]]:
        """Yield slices of few sentences, each of one direction, which it yields too."""
        start = size = 0
        for end, sentence in enumerate(self.sentences):
            size += len(sentence)
            before, here = (self.directions[self.text_of[number]] for number in (start, end))
            if size > PORTION or here != before:
                if start < end:
                    yield slice(start, end), before
                start, size = end, len(sentence)
        if self.sentences:
            yield slice(start, len(self.sentences)), self.directions[self.text_of[start]]

    def prefixes(self, prefixes: Iterable[str] | None) -> list[str] | None:
        """Return the prefix of each sentence: its text's for a text's first sentence, `""` for the others.

        Raises:
            UserError: the number of prefixes differs from the number of texts.
        """
        if prefixes is None:
            return None
        prefixes, count = [prefixes] if isinstance(prefixes, str) else list(prefixes), len(self._parts)
        if len(prefixes) != count:
            raise UserError(f'{len(prefixes)} prefixes but {count} texts: give one per text, "" for none')
        given = zip(prefixes, self._parts, strict=True)
        return [own for prefix, parts in given for own in (prefix, *[""] * (len(parts) - 1))]

    def join(self, found: list[list[Hypothesis]]) -> list[list[Hypothesis]]:
        """Return each text's hypotheses: number i joins number i of each of its sentences.

        A sentence with fewer hypotheses repeats its last one. The score is the mean of the sentences'.

        Args:
            found: the hypotheses of each of `sentences`, best first.
        """
        rows = iter(found)
        return [
            _joined(parts, list(itertools.islice(rows, len(parts))), target)
            for parts, (_, target) in zip(self._parts, self.directions, strict=True)
        ]


def _joined(parts: list[str], found: list[list[Hypothesis]], language: str | None) -> list[Hypothesis]:
    if len(parts) == 1:
        return found[0]
    between = "" if is_chinese_or_japanese(language) else " "
    spaces = [part[len(part.rstrip()) :] for part in parts]
    gaps = [space if "\n" in space else between for space in spaces[:-1]]
    ranks = range(max(map(len, found)))
    chosen = [[best[min(rank, len(best) - 1)] for best in found] for rank in ranks]
    return [
        Hypothesis(
            "".join(hypothesis.text + gap for hypothesis, gap in zip(row, [*gaps, ""], strict=True)),
            fmean(hypothesis.score for hypothesis in row),
        )
        for row in chosen
    ]


def _coded(text: str, target: str | None, codes: Sequence[str], number: int) -> str:
    """Return a text for a model of several targets, with the code at its beginning as the model writes it."""
    if found := TARGET_CODE.match(text):
        if code := matching_code(found[1], codes):
            return f">>{code}<<{text[found.end() :]}"
        raise UserError(
            f"sentence {number} begins with {found[0].strip()!r:.40}; the model translates to "
            f"{not_known(found[1], codes)}"
        )
    if target not in codes and text.strip():
        raise UserError(
            f"the model translates to {', '.join(codes)}: give target_language (--to), or begin sentence "
            f"{number} with a code, such as >>{codes[0]}<<"
        )
    return text


def split_sentences(text: str, language: str | None = None) -> list[str]:
    """Return a text's sentences, each with the white space after it; joined, they give the text.

    A line end also ends a sentence. Quotes and parentheses are not split. A text without a sentence is
    returned as one.

    Args:
        text: any text.
        language: its code, which selects the abbreviations; English for `None` or a language without rules.

    Example:

    >>> split_sentences("Mr. Smith sees a dog. It runs.", "en")
    ['Mr. Smith sees a dog. ', 'It runs.']
    """
    import sentencex  # not needed in training

    sentences = [""]
    for line in text.splitlines(keepends=True):
        place = 0
        # sentencex 1.0.32 takes every space for one byte, and panics at "plan B\u00a0.".
        for found in sentencex.segment(main_code(language) or "en", re.sub(r"\s", " ", line)):
            part = line[place : place + len(found)]
            place += len(found)
            last = sentences[-1]
            ended = last.endswith("\n") or CHINESE_OR_JAPANESE.match(part) or not NO_END.search(last[-20:])
            if part.strip() and last.strip() and ended:
                sentences.append("")
            sentences[-1] += part
    return sentences
