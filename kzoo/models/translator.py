"""The translator: a translation model together with its tokenizers."""

import os
from collections.abc import Callable, Iterable, Sequence

import keras
import numpy as np
from keras_hub.tokenizers import Tokenizer

from kzoo.errors import UserError
from kzoo.models.image_inputs import image_rows
from kzoo.models.split_texts import SplitTexts
from kzoo.models.texts_and_tokens import Hypothesis, as_hypotheses, checked_texts, pieces, tokenize_within
from kzoo.models.translation_model import TranslationModel
from kzoo.text.tokenizers import END

Image = np.ndarray | str | os.PathLike  # features, pixels, or a picture's file


@keras.saving.register_keras_serializable("kzoo")
class Translator(TranslationModel):
    """A translation model with its tokenizers: `fit` and `evaluate` take token ids, `translate` takes text.

    Its configuration (`get_config`, `keras.models.clone_model`) has no vocabularies; a saved file and a
    preset have them.

    Args:
        backbone: a model from `{"source": (B, S), "target": (B, T)}` to logits `(B, T, V)` that implements
            the decoding contract of `kzoo.decoding`, such as `TransformerBackbone`.
        source_tokenizer: `SubwordTokenizer` of the source language.
        target_tokenizer: of the target language; the source's by default.
        source_language: code of the source language, such as `"en"`.
        target_language: code of the target language.
        extractor: the extractor of the picture features that the model reads, as the fields of a
            `kzoo.data.Extractor`: a file with features of another extractor is refused. `None`: any features
            are accepted.
        **kwargs: the `search`, a `SearchSettings`, and other arguments of `keras.Model`.

    Call arguments:
        inputs: as the backbone's.

    Returns:
        Logits `(B, T, V)`.

    Example:

    >>> translator = kzoo.presets.load("pope_tiny_multi30k_en_de")
    >>> translator.translate(["A dog runs."])
    ['Ein Hund rennt.']
    """

    def __init__(
        self,
        backbone: keras.Model,
        source_tokenizer: Tokenizer | None = None,
        target_tokenizer: Tokenizer | None = None,
        source_language: str | None = None,
        target_language: str | None = None,
        extractor: dict | None = None,
        **kwargs,
    ):
        super().__init__(backbone, **kwargs)
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer or source_tokenizer
        self.source_language = source_language
        self.target_language = target_language
        self.extractor = extractor

    def translate(
        self,
        texts: Iterable[str],
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
        """Translate sentences, or with `split_sentences` texts of several.

        Args:
            texts: sentences; an empty one translates to an empty one.
            beam_size: int. Hypotheses kept at each step; 1 is greedy search. By default that of the
                translator's `search`, which a preset brings with it; likewise for the next two.
            length_penalty: α, for log P / length^α; `kzoo.decoding.GNMT(α)`; or another function of the
                length, for each of which the search is compiled once.
            max_length: int. Maximum length of a translation in tokens.
            truncate: bool. Cut sentences that are longer than the model can read; otherwise they are errors.
            threads: int. Batches decoded at a time; always one on JAX.
            progress: function called with the number of sentences after each batch.
            images: for a model with an `image_shape`, one image per sentence: an array
                `(N, *image_shape)`, features as `kzoo.data.open_features` opens them, or, for a model that
                reads pictures, paths of image files, which are scaled to its size. Pixels are 0 to 255.
            prefixes: for each text a text whose subwords its translation begins with; `""` for none.
            min_length: int. Minimum length of a translation in tokens, end symbol included; by default that
                of `search`, likewise for the next.
            no_repeat_ngram: int. n, for translations in which no n tokens occur twice in the same order; 0:
                they may.
            split_sentences: bool. Split each text into its sentences, translate each, and join the
                translations; `progress` then counts sentences. `False`: each text is one sentence. `None`:
                the same, with a warning if a text has several, of which the model may leave some out.

        Returns:
            The translations, in the order of `texts`.

        Raises:
            UserError: a sentence longer than the model's maximum; images that do not fit; a prefix that is
                too long or has an unknown character; another argument that no search can have; token scores
                that are not finite.
        """
        return [
            best[0].text
            for best in self.n_best(
                texts,
                1,
                beam_size,
                length_penalty,
                max_length,
                truncate,
                threads,
                progress,
                images,
                prefixes,
                min_length,
                no_repeat_ngram,
                split_sentences,
            )
        ]

    def n_best(
        self,
        texts: Iterable[str],
        n: int | None = None,
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
    ) -> list[list[Hypothesis]]:
        """Return the `n` best translations of each text, best first, with their scores; no text twice.

        With `split_sentences`, the second best is the second best of each sentence, joined, and so on; the
        score is the mean of theirs.

        Args:
            n: int. At most `beam_size`; as many by default.

        The other arguments are those of `translate`.
        """
        n, search = self._chosen(
            n,
            threads,
            beam_size=beam_size,
            length_penalty=length_penalty,
            max_length=max_length,
            min_length=min_length,
            no_repeat_ngram=no_repeat_ngram,
        )
        texts = checked_texts(texts)
        split = SplitTexts(texts, [self.source_language] * len(texts), split_sentences)
        words = self.tokenize_source(split.sentences, truncate)
        begun = self._begun(self.target_tokenizer, split.prefixes(prefixes), len(words), search)
        self._heed_new_weights()
        self.bake()
        images = image_rows(images, len(texts), self.image_shape, self.extractor)
        others = {} if images is None else {"image": images[split.text_of] if split_sentences else images}
        found = self._searches.search(words, others, search, threads, progress, begun)
        found = as_hypotheses(found, n, self.target_tokenizer)
        return split.join(found, [self.target_language] * len(texts))

    def attention(
        self, text: str, translation: str | None = None, image: Image | None = None
    ) -> tuple[list[str], list[str], np.ndarray]:
        """Return the attention of a translation's tokens to the tokens of its sentence.

        The model reads the translation as in training: split into subwords again, which need not be those
        that the search generated.

        Args:
            text: the sentence.
            translation: by default what `translate` returns.
            image: one image, as in `translate`'s `images`.

        Returns:
            The sentence's S subwords and the translation's T subwords, both with the end symbol, and the
            weights `(layers, H, T, S)`, row t for predicting subword t; `(1, 1, T, S)` for a recurrent model.

        Raises:
            UserError: an empty sentence, a sentence or translation longer than the model's maximum, or an
                image that does not fit.
        """
        source = self._some_words(text)
        images = image_rows(None if image is None else [image], 1, self.image_shape)
        if translation is None:
            translation = self.translate([text], images=images, split_sentences=False)[0]
        target = tokenize_within(self.target_tokenizer, [translation], self.backbone.max_length - 1)[0]
        others = {} if images is None else {"image": images}
        self._heed_new_weights()
        weights = self._attention(source, target, others)[..., : len(source) + 1]
        return pieces(self.source_tokenizer, source), pieces(self.target_tokenizer, target), weights

    def image_attention(self, text: str, image: Image) -> tuple[list[str], np.ndarray]:
        """Return a sentence's subwords with the end symbol, and the picture's attention to them.

        Args:
            text: the sentence.
            image: one image, as in `translate`'s `images`.

        Returns:
            The S subwords, and the weights `(layers, H, R, S)`.

        Raises:
            UserError: a model that reads text only, an empty sentence, or an image that does not fit.
        """
        words = self._some_words(text)
        images = image_rows([image], 1, self.image_shape)
        inputs = {"source": np.array([[*words, END]], "int32"), "image": images}
        scores = self.backbone.image_attention(inputs)
        weights = np.stack([keras.ops.convert_to_numpy(layer[0]) for layer in scores])
        return pieces(self.source_tokenizer, words), weights

    def _some_words(self, text: str) -> list[int]:
        words = self.tokenize_source([text])[0]
        if not words:
            raise UserError(f"{text!r} has no word to attend to")
        return words

    def tokenize_source(self, texts: Iterable[str], truncate: bool = False) -> list[list[int]]:
        """Return the token ids of source sentences, without start and end.

        Raises:
            UserError: a sentence longer than the model's maximum, unless `truncate` is true; a model without
                tokenizers.
        """
        if self.source_tokenizer is None:
            raise UserError("this model has no tokenizer: build it with one, as pope_tiny(tokenizer)")
        return tokenize_within(self.source_tokenizer, texts, self.backbone.max_length - 1, truncate)

    def _tokenizers_and_settings(self):
        return [self.source_tokenizer, self.target_tokenizer], self._settings()

    @classmethod
    def _from_parts(cls, backbone, tokenizers, settings):
        return cls(backbone, *tokenizers, **settings)

    def _settings(self) -> dict:
        """Return the constructor's arguments except the backbone and the tokenizers."""
        languages = {"source_language": self.source_language, "target_language": self.target_language}
        return languages if self.extractor is None else {**languages, "extractor": dict(self.extractor)}

    def get_config(self):
        return {
            **super().get_config(),
            "source_tokenizer": keras.saving.serialize_keras_object(self.source_tokenizer),
            "target_tokenizer": None
            if self.target_tokenizer is self.source_tokenizer
            else keras.saving.serialize_keras_object(self.target_tokenizer),
            **self._settings(),
        }
