"""What the translators of both engines do with texts: prepare token ids, search, join the translations."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from kzoo.decoding.search_settings import SearchSettings, check_whole_numbers, checked_n
from kzoo.images import image_rows
from kzoo.text.languages import TwoLanguages
from kzoo.text.texts import (
    Direction,
    Hypothesis,
    SplitTexts,
    checked_texts,
    tokenize_prefixes,
    tokenize_within,
)


class Prepared(NamedTuple):
    """Texts as the search takes them.

    Attributes:
        split: the texts' sentences; it joins their translations.
        tokens: each sentence's token ids, without start and end.
        images: each sentence's image, `(N, *image_shape)`; `None` if the model reads text only.
        prefixes: the token ids that each sentence's translations begin with; `None` for none.
    """

    split: SplitTexts
    tokens: list[list[int]]
    images: np.ndarray | None
    prefixes: list[list[int]] | None


class TextTranslator(TwoLanguages):
    """Base of both engines' translators: `translate` and `n_best` from texts to texts.

    A subclass searches with `n_best_of_tokens`. It may read several languages (`direction`, `tokenizers_of`).

    Attributes:
        engine: str. `"keras"`, or `"ctranslate2"` with its compute type.
        max_length: int. The most tokens that the model reads or writes, with the end symbol.
        image_shape: the shape of a sentence's image; `None` if the model reads text only.
        extractor: fields of the `kzoo.data.Extractor` that computes the features that it reads; `None`: any.
        multilingual: bool. Whether `translate` needs the languages.
        embeds: bool. Whether the model can embed sentences.
        search: default search settings. You can replace them at any time.
    """

    engine: str
    max_length: int
    search: SearchSettings
    image_shape: tuple[int, ...] | None = None
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
    ) -> list[str]:
        """Translate sentences or, with `split_sentences`, texts of several sentences.

        Args:
            texts: sentences. The translation of an empty sentence is empty.
            source_language, target_language: language codes; required by a multilingual model.
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

        Returns:
            The translations, in the order of `texts`.

        Raises:
            UserError: a sentence longer than the model's maximum; a language that the model lacks; images
                that do not fit; a prefix that is too long or has an unknown character; an invalid search
                argument; token scores that are not finite; what CTranslate2 cannot do.
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
        prepared = self.prepared(texts, direction, search, truncate, images, prefixes, split_sentences)
        others = threads, prepared.images, prepared.prefixes, *direction
        return prepared.split.join(self.n_best_of_tokens(prepared.tokens, n, search, progress, *others))

    def prepared(
        self,
        texts: Iterable[str],
        direction: Direction,
        search: SearchSettings,
        truncate: bool = False,
        images: np.ndarray | Sequence | None = None,
        prefixes: Iterable[str] | None = None,
        split_sentences: bool | None = None,
    ) -> Prepared:
        """Return texts, their images and their prefixes as the search takes them.

        Arguments and errors are those of `translate`; `direction` is that of all texts.
        """
        texts, options = checked_texts(texts), self.tokenizer_options(direction[1])
        split = SplitTexts(texts, [direction] * len(texts), split_sentences, self.target_languages)
        source_tokenizer, target_tokenizer = self.tokenizers_of(*direction)
        most = self.max_length - 1
        tokens = tokenize_within(source_tokenizer, split.sentences, most, truncate, **options)
        longest = min(search.max_length or self.max_length, self.max_length)
        begun = tokenize_prefixes(target_tokenizer, split.prefixes(prefixes), longest - 1)
        images = image_rows(images, len(texts), self.image_shape, self.extractor)
        if images is not None and split_sentences:
            images = images[split.text_of]
        return Prepared(split, tokens, images, begun)

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
