"""How the translators of both engines read texts: sentences as token ids, with their images and prefixes."""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from kzoo.decoding.search_settings import SearchSettings
from kzoo.errors import UserError
from kzoo.images import image_rows
from kzoo.text.directions import TwoLanguages
from kzoo.text.hypotheses import Hypothesis
from kzoo.text.languages import Direction
from kzoo.text.reading import Reading, read, restored
from kzoo.text.sentences import SplitTexts
from kzoo.text.texts import check_lengths, check_tokenizer, checked_texts, tokenize_prefixes


class Rows(NamedTuple):
    """Sentences as the search takes them.

    Attributes:
        tokens: each sentence's token ids, without the end symbol.
        images: each sentence's image, `(N, *image_shape)`; `None` if the model reads text only.
        prefixes: the token ids that each sentence's translations begin with; `None` for none.
    """

    tokens: list[list[int]]
    images: np.ndarray | None = None
    prefixes: list[list[int]] | None = None


class Prepared(NamedTuple):
    """Texts that were read for the search.

    Attributes:
        split: the texts' sentences; it joins their translations.
        readings: each sentence as the model reads it.
        rows: the sentences as the search takes them.
    """

    split: SplitTexts
    readings: list[Reading]
    rows: Rows

    @property
    def lacking(self) -> list[str]:
        """Each text's characters that the vocabulary lacks."""
        found = [""] * len(self.split.directions)
        for text, reading in zip(self.split.text_of, self.readings, strict=True):
            found[text] += "".join(c for c in reading.lacking if c not in found[text])
        return found

    def restored(self, found: list[list[Hypothesis]]) -> list[list[Hypothesis]]:
        """Return each sentence's hypotheses in its own case; of a sentence that is copied, the sentence."""
        languages = (self.split.directions[text][1] for text in self.split.text_of)
        return restored(self.readings, found, languages)


class TextReader(TwoLanguages):
    """Base of both engines' translators: texts as their search takes them.

    A subclass may read several languages (`direction`, `tokenizers_of`).

    Attributes:
        max_length: int. The most tokens that the model reads or writes, with the end symbol.
        image_shape: the shape of a sentence's image; `None` if the model reads text only.
        glyphs: the bitmaps that the source's characters are read from, `(V, 22, 22)`; `None` for most models.
        extractor: fields of the `kzoo.data.Extractor` that computes the features that it reads; `None`: any.
    """

    max_length: int
    image_shape: tuple[int, ...] | None = None
    glyphs: np.ndarray | None = None
    extractor: dict | None = None

    def prepared(
        self,
        split: SplitTexts,
        search: SearchSettings,
        truncate: bool = False,
        images: np.ndarray | Sequence | None = None,
        prefixes: Iterable[str] | None = None,
        unknown: str = "copy",
    ) -> Prepared:
        """Return texts, their images and their prefixes as the search takes them.

        Arguments and errors are those of `translate`, for each of the split texts.
        """
        prefixes = split.prefixes(prefixes)
        readings = list(self.readings(split, truncate, prefixes, unknown))
        prefix_tokens = self._tokenized_prefixes(split, prefixes, search) if prefixes else None
        images = image_rows(images, len(split.directions), self.image_shape, self.extractor)
        if images is not None and len(split.sentences) > len(images):
            images = images[split.text_of]
        tokens = [reading.tokens for reading in readings]
        return Prepared(split, readings, Rows(tokens, images, prefix_tokens))

    def _tokenized_prefixes(
        self, split: SplitTexts, prefixes: list[str], search: SearchSettings
    ) -> list[list[int]] | None:
        """Return the token ids of each sentence's prefix; `None` if all are empty."""
        found, longest = [], min(search.max_length or self.max_length, self.max_length)
        for some, direction in split.portions():
            tokenize = self._tokenizer_for(direction, 1)
            found += tokenize_prefixes(tokenize, prefixes[some], longest - 1)
        return found if any(found) else None

    def readings(
        self,
        split: SplitTexts,
        truncate: bool = False,
        prefixes: list[str] | None = None,
        unknown: str = "copy",
    ) -> Iterator[Reading]:
        """Yield sentences as the model reads them; `kzoo.text.reading` says what it changes.

        Works in portions, so that a sentence that is too long is found early.

        Args:
            split: the sentences.
            prefixes: of each sentence.

        The other arguments are those of `translate`.

        Raises:
            UserError: the model has no tokenizer; a sentence is too long, or mostly unknown while `unknown`
                is `"error"`.
        """
        most = self.max_length - 1
        for some, direction in split.portions():
            tokenize = self._tokenizer_for(direction, 0)
            sentences, given = split.sentences[some], prefixes[some] if prefixes else None
            codes = bool(self.codes_in_text)
            found = read(tokenize, sentences, direction[0], unknown, given, codes, self.drawable)
            check_lengths(sentences, found, most, truncate, some.start + 1)
            for reading in found:
                tokens = reading.tokens
                yield reading._replace(tokens=tokens[:most], cut=max(len(tokens) - most, 0))

    def sentences_read(
        self, sentences: Iterable[str], direction: Direction, truncate: bool = False, unknown: str = "copy"
    ) -> list[Reading]:
        """Return sentences of one direction as `readings` yields them, whose arguments and errors it has."""
        sentences = checked_texts(sentences)
        split = SplitTexts(sentences, [direction] * len(sentences), False, self.codes_in_text)
        return list(self.readings(split, truncate, unknown=unknown))

    def too_long(self, sentences: Sequence[str], direction: Direction, unknown: str = "copy") -> set[str]:
        """Return those of some sentences that have more tokens than the model reads; none that is copied."""
        readings = self.sentences_read(sentences, direction, truncate=True, unknown=unknown)
        return {sentence for sentence, reading in zip(sentences, readings, strict=True) if reading.cut}

    def _read(self, text: str, direction: Direction) -> Reading:
        """Return one sentence, which may not be empty, as the model reads it."""
        (reading,) = self.sentences_read([text], direction, unknown="translate")
        if not reading.tokens:
            raise UserError(f"{text!r} has no word to attend to")
        return reading

    def translation_tokens(self, translation: str, direction: Direction) -> list[int]:
        """Return the token ids of a translation, without the end symbol.

        Raises:
            UserError: it is longer than the model's maximum.
        """
        tokenize = self._tokenizer_for(direction, 1)
        readings = read(tokenize, checked_texts([translation]), direction[1], unknown="translate")
        check_lengths([translation], readings, self.max_length - 1)
        return readings[0].tokens

    def _tokenizer_for(self, direction: Direction, side: int) -> Callable[[list[str]], list[list[int]]]:
        """Return the source's (0) or the target's (1) tokenizer, with its options for a direction."""
        tokenizer = self.tokenizers_of(*direction)[side]
        check_tokenizer(tokenizer)
        return functools.partial(tokenizer, **self.tokenizer_options(tokenizer, *direction))

    def drawable(self, characters: str) -> str:
        """Return those of characters that the vocabulary lacks which the model reads from their pixels."""
        return ""
