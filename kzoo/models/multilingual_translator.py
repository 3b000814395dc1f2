"""The multilingual translator: translates between any two of its languages."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import keras
import numpy as np
from keras_hub.tokenizers import Tokenizer

from kzoo.decoding.batched_search import batches_by_length, padded_source
from kzoo.errors import UserError
from kzoo.models.backbone_method import BackboneMethod
from kzoo.models.split_texts import SplitTexts
from kzoo.models.texts_and_tokens import Hypothesis, as_hypotheses, checked_texts, pieces, tokenize_within
from kzoo.models.translation_model import TranslationModel


@keras.saving.register_keras_serializable("kzoo")
class MultilingualTranslator(TranslationModel):
    """A translator between any two of several languages, which also embeds sentences.

    Its configuration has no vocabularies, as a `Translator`'s.

    Args:
        backbone: a model whose inputs include the languages' numbers, such as `AttentionBridgeBackbone`.
        tokenizers: `{code: SubwordTokenizer}`, in the order of the model's language numbers.
        **kwargs: the `search`, a `SearchSettings`, and other arguments of `keras.Model`.

    Call arguments:
        inputs: as the backbone's.

    Returns:
        Logits `(B, T, V)`.

    Example:

    >>> translator = kzoo.presets.load("attention_bridge_m2m_tiny_multi30k")
    >>> translator.translate(["Ein Hund rennt."], source_language="de", target_language="fr")
    ['Un chien court.']
    """

    def __init__(self, backbone: keras.Model, tokenizers: dict[str, Tokenizer | None], **kwargs):
        super().__init__(backbone, **kwargs)
        self.tokenizers = dict(tokenizers)

    @property
    def languages(self) -> list[str]:
        """The language codes, in the order of their numbers."""
        return list(self.tokenizers)

    def translate(
        self,
        texts: Iterable[str],
        source_language: str | None = None,
        target_language: str | None = None,
        **options,
    ) -> list[str]:
        """Translate sentences.

        Args:
            texts: sentences; an empty one translates to an empty one.
            source_language: code of the source language; there is no default.
            target_language: code of the target language; the source language itself paraphrases.
            **options: `beam_size` and the other arguments of `Translator.translate`.

        Returns:
            The translations, in the order of `texts`.

        Raises:
            UserError: a language that the model lacks, or as for `Translator.translate`.
        """
        found = self.n_best(texts, source_language, target_language, 1, **options)
        return [best[0].text for best in found]

    def n_best(
        self,
        texts: Iterable[str],
        source_language: str | None = None,
        target_language: str | None = None,
        n: int | None = None,
        beam_size: int | None = None,
        length_penalty: float | Callable | None = None,
        max_length: int | None = None,
        truncate: bool = False,
        threads: int = 2,
        progress: Callable[[int], None] | None = None,
        prefixes: Iterable[str] | None = None,
        min_length: int | None = None,
        no_repeat_ngram: int | None = None,
        split_sentences: bool | None = None,
    ) -> list[list[Hypothesis]]:
        """Return the `n` best translations of each text, best first, with their scores; no text twice.

        Args:
            n: int. At most `beam_size`; as many by default.

        The other arguments are those of `translate` and of `Translator.translate`.
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
        if source_language is None or target_language is None:
            raise UserError(
                f"the model translates among {', '.join(self.languages)}: "
                "give source_language and target_language"
            )
        texts = checked_texts(texts)
        split = SplitTexts(texts, [source_language] * len(texts), split_sentences)
        words = self.tokenize(split.sentences, source_language, truncate)
        languages = self._language_inputs(len(words), source_language, target_language)
        prefixes = split.prefixes(prefixes)
        begun = self._begun(self.tokenizers[target_language], prefixes, len(words), search)
        self._heed_new_weights()
        found = self._searches.search(words, languages, search, threads, progress, begun)
        found = as_hypotheses(found, n, self.tokenizers[target_language])
        return split.join(found, [target_language] * len(texts))

    def embed(
        self, texts: Iterable[str], language: str, pooling: str = "flatten", truncate: bool = False
    ) -> np.ndarray:
        """Return the bridge's representation of sentences.

        Args:
            texts: sentences.
            language: code of the sentences' language.
            pooling: `"flatten"`, M's k · D numbers, or `"mean"`, the mean of its k rows.
            truncate: bool. Cut sentences that are longer than the model can read; otherwise they are errors.

        Returns:
            `(N, k · D)` or `(N, D)`, float32.

        Raises:
            UserError: as for `translate`; or the model has no bridge.
        """
        poolings = {
            "flatten": lambda m: m.reshape(len(m), m.shape[1] * m.shape[2]),
            "mean": lambda m: m.mean(axis=1),
        }
        if pooling not in poolings:
            raise UserError(f"pooling is one of {', '.join(poolings)}, not {pooling!r}")
        words = self.tokenize(texts, language, truncate)
        matrices = np.zeros((len(words), *self.backbone.matrix_shape), "float32")
        for numbers, matrix, _ in self._matrices(words, language):
            matrices[numbers] = matrix
        return poolings[pooling](matrices)

    def bridge_attention(self, text: str, language: str) -> tuple[list[str], np.ndarray]:
        """Return a sentence's subwords with the end symbol, and the bridge's A `(k, S)` over them.

        Raises:
            UserError: as for `embed`; or an empty sentence.
        """
        words = self._some_words(text, language)
        _, _, scores = next(self._matrices([words], language))
        return pieces(self.tokenizers[language], words), scores[0, :, : len(words) + 1]

    def attention(
        self, text: str, source_language: str, target_language: str, translation: str | None = None
    ) -> tuple[list[str], list[str], np.ndarray]:
        """Return the attention of a translation's tokens to the rows of the bridge's M.

        Args:
            text: the sentence.
            source_language, target_language: as in `translate`.
            translation: by default what `translate` returns.

        Returns:
            The names of M's rows, `"1"` to `"k"`; the translation's T subwords with the end symbol; the
            weights `(1, 1, T, k)`. Without a bridge the sentence's S subwords take the place of the rows.

        Raises:
            UserError: as for `Translator.attention`; or a language that the model lacks.
        """
        words = self._some_words(text, source_language)
        if translation is None:
            translation = self.translate([text], source_language, target_language, split_sentences=False)[0]
        target = self.tokenize([translation], target_language)[0]
        languages = self._language_inputs(1, source_language, target_language)
        self._heed_new_weights()
        weights = self._attention(words, target, languages)
        attended = (
            pieces(self.tokenizers[source_language], words)
            if self.backbone.bridge is None
            else [str(row + 1) for row in range(self.backbone.matrix_shape[0])]
        )
        return attended, pieces(self.tokenizers[target_language], target), weights[..., : len(attended)]

    def _matrices(self, words: list[list[int]], language: str):
        """Yield the sentences' numbers with their M and A, batch by batch; empty sentences are skipped."""
        if self.backbone.bridge is None:
            raise UserError("a model without a bridge (bridge=False) has no sentence embeddings")
        self._heed_new_weights()
        if self._embed_batch is None:
            embeddings = BackboneMethod(self.backbone, self.backbone.matrix)
            embeddings.compile(jit_compile=self._searches.jit_compile)
            # Its method only: Keras would take the model itself for a layer of this one.
            self._embed_batch = embeddings.predict_on_batch
        for length, numbers in batches_by_length(words, self.backbone.max_length):
            source = padded_source(words, numbers, length)
            code = np.full(len(source), self._number(language), "int32")
            found = self._embed_batch({"source": source, "source_language": code})
            yield numbers, *(part[: len(numbers)] for part in found)

    def _forget_compiled(self):
        super()._forget_compiled()
        self._embed_batch = None

    def tokenize(self, texts: Iterable[str], language: str, truncate: bool = False) -> list[list[int]]:
        """Return the token ids of sentences in a language, without start and end.

        Raises:
            UserError: a language that the model lacks; a sentence longer than the model's maximum, unless
                `truncate` is true; a model without tokenizers.
        """
        self._number(language)
        if self.tokenizers[language] is None:
            raise UserError(
                "this model has no tokenizers: build it with them, as attention_bridge_m2m(tokenizers)"
            )
        return tokenize_within(self.tokenizers[language], texts, self.backbone.max_length - 1, truncate)

    def _some_words(self, text: str, language: str) -> list[int]:
        words = self.tokenize([text], language)[0]
        if not words:
            raise UserError(f"{text!r} has no word to attend to")
        return words

    def _language_inputs(self, rows: int, source_language: str, target_language: str) -> dict:
        """Return the languages' numbers as the backbone takes them, one for each row."""
        languages = {"source_language": source_language, "target_language": target_language}
        return {name: np.full(rows, self._number(code), "int32") for name, code in languages.items()}

    def _number(self, language: str) -> int:
        if language not in self.tokenizers:
            lower = str(language).lower()
            near = f"; did you mean {lower}?" if lower in self.languages else ""
            raise UserError(f"the model has no language {language!r}, only {', '.join(self.languages)}{near}")
        return self.languages.index(language)

    def between(self, source_language: str, target_language: str) -> "Direction":
        """Return one direction of this translator, for code that expects a translator of one direction."""
        self._number(source_language), self._number(target_language)
        return Direction(self, source_language, target_language)

    def _tokenizers_and_settings(self):
        return list(self.tokenizers.values()), {"languages": self.languages}

    @classmethod
    def _from_parts(cls, backbone, tokenizers, settings):
        languages = settings.pop("languages")
        return cls(backbone, dict(zip(languages, tokenizers, strict=True)), **settings)

    def get_config(self):
        serialize = keras.saving.serialize_keras_object
        return {
            **super().get_config(),
            "tokenizers": {code: serialize(tokenizer) for code, tokenizer in self.tokenizers.items()},
        }


@dataclass(frozen=True)
class Direction:
    """One direction of a multilingual translator, with the interface of `Translator.translate`."""

    translator: MultilingualTranslator
    source_language: str
    target_language: str

    def translate(self, texts: Iterable[str], **options) -> list[str]:
        """Translate sentences, like `MultilingualTranslator.translate`."""
        return self.translator.translate(texts, self.source_language, self.target_language, **options)

    def n_best(
        self, texts: Iterable[str], n: int | None = None, *arguments, **options
    ) -> list[list[Hypothesis]]:
        """Return the `n` best translations, like `MultilingualTranslator.n_best`."""
        return self.translator.n_best(
            texts, self.source_language, self.target_language, n, *arguments, **options
        )

    def attention(self, text: str, translation: str | None = None) -> tuple[list[str], list[str], np.ndarray]:
        """Return the attention of a translation's tokens, like `MultilingualTranslator.attention`."""
        return self.translator.attention(text, self.source_language, self.target_language, translation)
