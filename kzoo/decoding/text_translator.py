"""From texts to translations, for both engines: search, terms, alignments."""

import dataclasses
import functools
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from kzoo.decoding.search_settings import SearchSettings, check_whole_numbers, checked_n
from kzoo.decoding.text_reader import Rows, TextReader
from kzoo.errors import UserError
from kzoo.text.alignment import Attention
from kzoo.text.glossary import Glossary, Occurrence
from kzoo.text.hypotheses import Hypothesis
from kzoo.text.languages import Direction
from kzoo.text.reading import Reading, UnknownCharactersWarning, lacking_line, restored
from kzoo.text.sentences import SplitTexts
from kzoo.text.texts import checked_texts

WITH_TERMS = "a model that attends to the words of texts: none with images or an attention bridge"


class TextTranslator(TextReader):
    """Base of both engines' translators: `translate` and `n_best` from texts to texts.

    A subclass searches with `n_best_of_rows`.

    Attributes:
        engine: str. `"keras"`, or `"ctranslate2"` with its compute type.
        multilingual: bool. Whether `translate` needs the languages.
        embeds: bool. Whether the model can embed sentences.
        runs_on_keras: bool. Whether Keras runs the model.
        can_unload: bool. Whether the model can leave the memory until the next call.
        search: default search settings. You can replace them at any time.
    """

    engine: str
    search: SearchSettings
    embeds = runs_on_keras = can_unload = False

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
        *,
        direction: Direction | None = None,
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
            direction: what the method `direction` returned, in place of the two languages.

        Returns:
            The translations, in the order of `texts`.

        Raises:
            UserError: a sentence longer than the model's maximum; a language that the model lacks; images
                that do not fit; a prefix that is too long or has an unknown character; an invalid search
                argument; token scores that are not finite; what CTranslate2 cannot do; terms that are empty,
                for a model with images or an attention bridge, or with prefixes.

        Warns:
            UnknownCharactersWarning: sentences have characters that the vocabulary lacks.
        """
        found = self.n_best(
            texts,
            1,
            truncate=truncate,
            threads=threads,
            progress=progress,
            images=images,
            prefixes=prefixes,
            split_sentences=split_sentences,
            source_language=source_language,
            target_language=target_language,
            direction=direction,
            unknown=unknown,
            terms=terms,
            beam_size=beam_size,
            length_penalty=length_penalty,
            max_length=max_length,
            min_length=min_length,
            no_repeat_ngram=no_repeat_ngram,
        )
        return [best[0].text for best in found]

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
        direction: Direction | None = None,
        unknown: str = "copy",
        terms: Mapping[str, str] | None = None,
        beam_size: int | None = None,
        length_penalty: float | Callable | None = None,
        max_length: int | None = None,
        min_length: int | None = None,
        no_repeat_ngram: int | None = None,
    ) -> list[list[Hypothesis]]:
        """Return the `n` best distinct translations of each text, best first, with their scores.

        With `split_sentences`, translation i of a text joins translation i of each of its sentences; its
        score is the mean of their scores.

        Args:
            n: int. At most `beam_size`, the default.

        The other arguments are those of `translate`.
        """
        direction = direction or self.direction(source_language, target_language)
        search = self.search.changed(
            beam_size=beam_size,
            length_penalty=length_penalty,
            max_length=max_length,
            min_length=min_length,
            no_repeat_ngram=no_repeat_ngram,
        )
        self.check_search(search)
        n = checked_n(n, search)
        check_whole_numbers(threads=threads)
        glossary = self._glossary(terms, direction, prefixes) if terms else None
        texts = checked_texts(texts)
        split = SplitTexts(texts, [direction] * len(texts), split_sentences, self.codes_in_text)
        prepared = self.prepared(split, search, truncate, images, prefixes, unknown)
        readings = prepared.readings
        if line := lacking_line([reading for reading in readings if reading.lacking], len(readings)):
            warnings.warn(line, UnknownCharactersWarning, stacklevel=2)
        most = search.beam_size if glossary else n
        rows = self.n_best_of_rows(prepared.rows, most, search, direction, progress, threads)
        found = prepared.restored(rows)
        if glossary:
            rows = [row for row, text in enumerate(split.text_of) if glossary.fits(split.directions[text])]
            sentences, hypotheses = ([given[row] for row in rows] for given in (split.sentences, found))
            found = [best[:n] for best in found]
            for row, best in zip(rows, self.with_terms(sentences, hypotheses, n, glossary), strict=True):
                found[row] = best
        return split.join(found)

    def n_best_of_readings(
        self,
        readings: list[Reading],
        n: int,
        search: SearchSettings,
        direction: Direction,
        images: np.ndarray | None = None,
    ) -> list[list[Hypothesis]]:
        """Return the `n` best translations of each sentence that `readings` has read, best first.

        `images` are those of `Rows`, the other arguments those of `n_best_of_rows`.
        """
        rows = Rows([reading.tokens for reading in readings], images)
        found = self.n_best_of_rows(rows, n, search, direction)
        return restored(readings, found, [direction[1]] * len(readings))

    def _glossary(self, terms: Mapping[str, str], direction: Direction, prefixes: object) -> Glossary:
        if not self.takes_terms:
            raise UserError(f"terms (--terms) need {WITH_TERMS}")
        if prefixes:
            raise UserError("terms (--terms) might change prefixes (--prefix): give one of them")
        return Glossary(terms, direction)

    def with_terms(
        self, sentences: list[str], found: list[list[Hypothesis]], n: int, glossary: Glossary
    ) -> list[list[Hypothesis]]:
        """Return each sentence's `n` hypotheses with the most terms, with those that they lack.

        Args:
            sentences: of the glossary's direction.
            found: the hypotheses of each.
            n: int. At most as many as each has.
            glossary: the terms.
        """

        def missing(terms: list[Occurrence], hypothesis: Hypothesis) -> int:
            return glossary.missing(terms, hypothesis.text)

        rows = []
        for sentence, hypotheses in zip(sentences, found, strict=True):
            terms = glossary.occurrences(sentence)
            rows.append((sentence, terms, sorted(hypotheses, key=functools.partial(missing, terms))[:n]))
        pairs = [
            (sentence, one.text) for sentence, terms, some in rows for one in some if missing(terms, one)
        ]
        attention = dict(zip(pairs, self.alignments_of(pairs, glossary.direction), strict=True))
        new = []
        for sentence, terms, some in rows:
            best = {}
            for one in some:
                text = glossary.applied(sentence, terms, one.text, attention.get((sentence, one.text)))
                best.setdefault(text, dataclasses.replace(one, text=text))
            new.append(list(best.values()))
        return new

    @property
    def takes_terms(self) -> bool:
        """Whether the model keeps to terms: it attends to the words of a text itself, and reads text only."""
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
            the mean of the heads of the last layer but one. With an attention bridge, the sum over the rows
            of M of the attention to them times theirs. `None` for an empty sentence, and if one of the pair
            is longer than the model's maximum.

        Raises:
            UserError: the model reads images; or as `translate`.
        """
        if self.image_shape is not None:
            raise UserError("alignments need a model that reads text only")
        return self.alignments_of(pairs, self.direction(source_language, target_language))

    def alignments_of(self, pairs: Sequence[tuple[str, str]], direction: Direction) -> list[Attention | None]:
        """Return `alignments` for a direction that `direction` has returned."""
        found = []
        for text, translation in pairs:
            try:
                tokens = self._read(text, direction).tokens
                found.append((tokens, self.translation_tokens(translation, direction)))
            except UserError:
                found.append(None)
        attended = iter(self._attended([pair for pair in found if pair], direction))
        return [next(attended) if pair else None for pair in found]

    def _attended(
        self, pairs: list[tuple[list[int], list[int]]], direction: Direction
    ) -> Iterable[Attention]:
        """Return the attention of each pair of a sentence and its translation, given as token ids."""
        raise NotImplementedError

    def check_search(self, search: SearchSettings):
        """Raise `UserError` if the engine does not support the search settings."""

    def n_best_of_rows(
        self,
        rows: Rows,
        n: int,
        search: SearchSettings,
        direction: Direction,
        progress: Callable[[int], None] | None = None,
        threads: int = 2,
    ) -> list[list[Hypothesis]]:
        """Return the `n` best translations of each sentence, best first.

        Args:
            rows: sentences that the model can read.
            n: int. At most the search's beam size.
            search: settings of the search.
            direction: what `direction` returns.
            progress, threads: as in `translate`.
        """
        raise NotImplementedError
