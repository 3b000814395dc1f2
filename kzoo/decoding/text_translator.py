"""What the translators of both engines do with texts: prepare token ids, search, join the translations."""

import dataclasses
import functools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from kzoo.decoding.search_settings import SearchSettings, check_whole_numbers, checked_n
from kzoo.errors import UserError
from kzoo.images import image_rows
from kzoo.text.alignment import Attention
from kzoo.text.glossary import Glossary
from kzoo.text.hypotheses import Hypothesis
from kzoo.text.languages import Direction
from kzoo.text.reading import Reading, UnknownCharactersWarning, lacking_line, read, restored
from kzoo.text.sentences import SplitTexts
from kzoo.text.texts import check_lengths, check_tokenizer, checked_texts, tokenize_prefixes
from kzoo.text.two_languages import TwoLanguages

ALIGNING = "a model that attends to the words of texts: none with images or an attention bridge"


class Prepared(NamedTuple):
    """Texts as the search takes them.

    Attributes:
        split: the texts' sentences; it joins their translations.
        readings: each sentence as the model reads it.
        images: each sentence's image, `(N, *image_shape)`; `None` if the model reads text only.
        prefixes: the token ids that each sentence's translations begin with; `None` for none.
    """

    split: SplitTexts
    readings: list[Reading]
    images: np.ndarray | None
    prefixes: list[list[int]] | None

    @property
    def lacking(self) -> list[str]:
        """Each text's characters that the vocabulary lacks."""
        found = [""] * len(self.split.directions)
        for text, reading in zip(self.split.text_of, self.readings, strict=True):
            found[text] += "".join(c for c in reading.lacking if c not in found[text])
        return found

    def restored(self, found: list[list[Hypothesis]]) -> list[list[Hypothesis]]:
        """Return each sentence's hypotheses in its own case; of a sentence that is copied, the sentence."""
        return restored(self.readings, found)


class TextTranslator(TwoLanguages):
    """Base of both engines' translators: `translate` and `n_best` from texts to texts.

    A subclass searches with `n_best_of_tokens`. It may read several languages (`direction`, `tokenizers_of`).

    Attributes:
        engine: str. `"keras"`, or `"ctranslate2"` with its compute type.
        max_length: int. The most tokens that the model reads or writes, with the end symbol.
        image_shape: the shape of a sentence's image; `None` if the model reads text only.
        glyphs: the bitmaps that the source's characters are read from, `(V, 22, 22)`; `None` for most models.
        extractor: fields of the `kzoo.data.Extractor` that computes the features that it reads; `None`: any.
        multilingual: bool. Whether `translate` needs the languages.
        embeds: bool. Whether the model can embed sentences.
        search: default search settings. You can replace them at any time.
    """

    engine: str
    max_length: int
    search: SearchSettings
    image_shape: tuple[int, ...] | None = None
    glyphs: np.ndarray | None = None
    extractor: dict | None = None
    multilingual = False
    embeds = False

    def translate(
        self,
        texts: Iterable[str],
        source_language: str | None = None,
        target_language: str | None = None,
        beam_size: int | None = None,
        length_penalty: float | Callable | None = None,
        max_length: int | None = None,
        truncate: bool = False,
        threads: int = 2,
        progress: Callable[[int], None] | None = None,
        images: np.ndarray | Sequence | None = None,
        prefixes: Iterable[str] | None = None,
        min_length: int | None = None,
        no_repeat_ngram: int | None = None,
        split_sentences: bool | None = None,
        unknown: str = "copy",
        terms: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Translate sentences or, with `split_sentences`, texts of several sentences.

        Args:
            texts: sentences. The translation of an empty sentence is empty.
            source_language, target_language: language codes; required by a multilingual model. A code at the
                beginning of a text, such as `>>fra<<`, wins, if the model has `codes_in_text`.
            beam_size: int. Hypotheses kept at each step; 1 is greedy search. This and the other search
                arguments default to the translator's `search`, which presets include.
            length_penalty: α in log P / length^α, `kzoo.decoding.GNMT(α)`, or another function of the length.
                The search is compiled anew for each one.
            max_length: int. Maximum length of a translation in tokens.
            truncate: bool. Cut sentences longer than the model's maximum instead of raising an error.
            threads: int. Number of batches that Keras decodes in parallel; always one on JAX. A
                `CTranslate2Translator` has its own.
            progress: function called after each batch with its number of sentences.
            images: for a model with an `image_shape`, one image per sentence: an array
                `(N, *image_shape)`; features as `kzoo.data.open_features` opens them; or, if the model reads
                pictures, paths of image files, which are resized. Pixels are 0 to 255.
            prefixes: for each text, the beginning of its translation; `""` for none.
            min_length: int. Minimum length of a translation in tokens, end symbol included.
            no_repeat_ngram: int. n: no sequence of n tokens occurs twice in a translation; 0 allows repeats.
            split_sentences: bool. Split each text into sentences, translate each, and join the translations;
                `progress` then counts sentences. `False`: each text is one sentence. `None`: as `False`, with
                a warning if a text has several sentences, because the model may skip some.
            unknown: str. What becomes of a sentence whose letters and symbols the vocabulary mostly lacks: it
                is copied (`"copy"`), an error (`"error"`), or translated nevertheless (`"translate"`).
            terms: translations of terms, as in `kzoo.text.glossary`. Where a term occurs, the translation has
                its translation: it is one that the search found, or else the words that the attention aligns
                with the term are replaced.

        Returns:
            The translations, in the order of `texts`.

        Raises:
            UserError: a sentence longer than the model's maximum; a language that the model lacks; images
                that do not fit; a prefix that is too long or has an unknown character; an invalid search
                argument; token scores that are not finite; what CTranslate2 cannot do; terms that are empty,
                for a model that does not align, or with prefixes.

        Warns:
            UnknownCharactersWarning: sentences have characters that the vocabulary lacks.
        """
        arguments = locals()
        del arguments["self"]
        return [best[0].text for best in self.n_best(n=1, **arguments)]

    def n_best(
        self,
        texts: Iterable[str],
        n: int | None = None,
        *,
        truncate: bool = False,
        threads: int = 2,
        progress: Callable[[int], None] | None = None,
        images: np.ndarray | Sequence | None = None,
        prefixes: Iterable[str] | None = None,
        split_sentences: bool | None = None,
        source_language: str | None = None,
        target_language: str | None = None,
        unknown: str = "copy",
        terms: Mapping[str, str] | None = None,
        **search,
    ) -> list[list[Hypothesis]]:
        """Return the `n` best distinct translations of each text, best first, with their scores.

        With `split_sentences`, translation i of a text joins translation i of each of its sentences; its
        score is the mean of their scores.

        Args:
            n: int. At most `beam_size`, the default.
            **search: `beam_size`, `length_penalty`, `max_length`, `min_length` and `no_repeat_ngram`.

        The other arguments are those of `translate`.
        """
        search = self.search.changed(**search)
        self.check_search(search)
        n = checked_n(n, search)
        check_whole_numbers(threads=threads)
        direction = self.direction(source_language, target_language)
        glossary = self._glossary(terms, direction, prefixes) if terms else None
        texts = checked_texts(texts)
        split = SplitTexts(texts, [direction] * len(texts), split_sentences, self.codes_in_text)
        prepared = self.prepared(split, search, truncate, images, prefixes, unknown)
        readings = prepared.readings
        if line := lacking_line([reading for reading in readings if reading.lacking], len(readings)):
            warnings.warn(line, UnknownCharactersWarning, stacklevel=2)
        tokens = [reading.tokens for reading in readings]
        others = threads, prepared.images, prepared.prefixes, *direction
        found = self.n_best_of_tokens(tokens, search.beam_size if glossary else n, search, progress, *others)
        found = prepared.restored(found)
        return split.join(self._with_terms(split.sentences, found, n, glossary) if glossary else found)

    def _glossary(self, terms: Mapping[str, str], direction: Direction, prefixes: object) -> Glossary:
        if not self.aligns:
            raise UserError(f"terms (--terms) need {ALIGNING}")
        if prefixes:
            raise UserError("terms (--terms) might change prefixes (--prefix): give one of them")
        return Glossary(terms, direction)

    def _with_terms(
        self, sentences: list[str], found: list[list[Hypothesis]], n: int, glossary: Glossary
    ) -> list[list[Hypothesis]]:
        """Return each sentence's `n` hypotheses with the most terms, with those that they lack."""

        def missing(sentence: str, hypothesis: Hypothesis) -> int:
            return glossary.missing(sentence, hypothesis.text)

        rows = [
            (sentence, sorted(hypotheses, key=functools.partial(missing, sentence))[:n])
            for sentence, hypotheses in zip(sentences, found, strict=True)
        ]
        pairs = [(sentence, one.text) for sentence, some in rows for one in some if missing(sentence, one)]
        attention = dict(zip(pairs, self.alignments(pairs, *glossary.direction), strict=True))
        new = []
        for sentence, some in rows:
            best = {}
            for one in some:
                text = glossary.applied(sentence, one.text, attention.get((sentence, one.text)))
                best.setdefault(text, dataclasses.replace(one, text=text))
            new.append(list(best.values()))
        return new

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
        begun, longest = [], min(search.max_length or self.max_length, self.max_length)
        for some, direction in split.portions() if prefixes else ():
            _, tokenizer = self.tokenizers_of(*direction)
            tokenize = functools.partial(tokenizer, **self.tokenizer_options(tokenizer, *direction))
            begun += tokenize_prefixes(tokenize, prefixes[some], longest - 1)
        images = image_rows(images, len(split.directions), self.image_shape, self.extractor)
        if images is not None and len(split.sentences) > len(images):
            images = images[split.text_of]
        return Prepared(split, readings, images, begun if any(begun) else None)

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
        for some, (source, target) in split.portions():
            tokenizer, _ = self.tokenizers_of(source, target)
            check_tokenizer(tokenizer)
            tokenize = functools.partial(tokenizer, **self.tokenizer_options(tokenizer, source, target))
            sentences, begun = split.sentences[some], prefixes and prefixes[some]
            codes = bool(self.codes_in_text)
            found = read(tokenize, sentences, source, target, unknown, begun, codes, self.drawable)
            check_lengths(sentences, found, most, truncate, some.start + 1)
            for reading in found:
                yield reading._replace(tokens=reading.tokens[:most])

    @property
    def aligns(self) -> bool:
        """Whether the model has `alignments`: it attends to the words of a text, and reads text only."""
        return not self.embeds and self.image_shape is None

    def alignments(
        self,
        pairs: Sequence[tuple[str, str]],
        source_language: str | None = None,
        target_language: str | None = None,
    ) -> list[Attention | None]:
        """Return how much the words of translations attend to those of their sentences.

        `kzoo.text.alignment` tells from that which words translate which.

        Args:
            pairs: sentences, each with its translation, which is tokenized again.
            source_language, target_language: as in `translate`.

        Returns:
            Of each pair, the sentence's S subwords, the translation's T subwords, and the attention `(T, S)`:
            the mean of the heads of the last layer but one. `None` for an empty sentence, and if one of the
            pair is longer than the model's maximum.

        Raises:
            UserError: the model does not align; or as `translate`.
        """
        if not self.aligns:
            raise UserError(f"alignments need {ALIGNING}")
        direction, found = self.direction(source_language, target_language), []
        for text, translation in pairs:
            try:
                found.append((self._read(text, direction), self._read_translation(translation, direction)))
            except UserError:
                found.append(None)
        attended = iter(self._attended([pair for pair in found if pair], direction))
        return [pair and next(attended) for pair in found]

    def _attended(
        self, pairs: list[tuple[list[int], list[int]]], direction: Direction
    ) -> Iterable[Attention]:
        """Return the attention of each pair of a sentence and its translation, given as token ids."""
        raise NotImplementedError

    def _tokens(self, texts: Iterable[str], direction: Direction, truncate: bool = False) -> list[list[int]]:
        """Return the token ids of sentences as `translate` reads them; it has the errors of `translate`."""
        texts = checked_texts(texts)
        split = SplitTexts(texts, [direction] * len(texts), False, self.codes_in_text)
        return [reading.tokens for reading in self.readings(split, truncate, unknown="translate")]

    def _read(self, text: str, direction: Direction) -> list[int]:
        """Return the token ids of one sentence, which may not be empty."""
        (tokens,) = self._tokens([text], direction)
        if not tokens:
            raise UserError(f"{text!r} has no word to attend to")
        return tokens

    def _read_translation(self, translation: str, direction: Direction) -> list[int]:
        """Return the token ids of a translation."""
        tokenizer = self.tokenizers_of(*direction)[1]
        tokenize = functools.partial(tokenizer, **self.tokenizer_options(tokenizer, *direction))
        readings = read(tokenize, checked_texts([translation]), direction[1], unknown="translate")
        check_lengths([translation], readings, self.max_length - 1)
        return readings[0].tokens

    def drawable(self, characters: str) -> str:
        """Return those of characters that the vocabulary lacks which the model reads from their pixels."""
        return ""

    def check_search(self, search: SearchSettings):
        """Raise `UserError` if the engine does not support the search settings."""

    def n_best_of_tokens(
        self,
        tokens: list[list[int]],
        n: int,
        search: SearchSettings,
        progress: Callable[[int], None] | None = None,
        threads: int = 2,
        images: np.ndarray | None = None,
        prefixes: list[list[int]] | None = None,
        source_language: str | None = None,
        target_language: str | None = None,
    ) -> list[list[Hypothesis]]:
        """Return the `n` best translations of sentences given as token ids, without end symbols.

        Args:
            tokens: token ids of sentences that the model can read.
            n: int. At most the search's beam size.
            search: settings of the search.
            images: `(N, *image_shape)`, for a model that reads images.
            prefixes: for each sentence, the token ids that its translations begin with.

        The other arguments are those of `translate`.
        """
        raise NotImplementedError
