"""The multilingual translator, which translates between any two of its languages."""

from collections.abc import Iterable

import keras
import numpy as np
from keras_hub.tokenizers import Tokenizer

from kzoo.decoding.batched_search import batches_by_shape, padded_source
from kzoo.errors import UserError
from kzoo.models.translator import Translator, pieces
from kzoo.text.directions import SeveralLanguages
from kzoo.text.languages import Direction


@keras.saving.register_keras_serializable("kzoo")
class MultilingualTranslator(SeveralLanguages, Translator):
    """A translator between any two of several languages. With an attention bridge it also embeds sentences.

    Calls need `source_language` and `target_language`; if both are the same, the model paraphrases. As in
    `Translator`, `get_config` leaves out the vocabularies.

    Args:
        backbone: a model whose inputs include the languages' numbers, such as `AttentionBridgeBackbone`.
        tokenizers: `{code: SubwordTokenizer}`, in the order of the backbone's language numbers.
        **kwargs: `search`, a `SearchSettings`; and other arguments of `keras.Model`.

    Call arguments:
        inputs: the backbone's inputs.

    Returns:
        Logits `(B, T, V)`.

    Example:

    >>> translator = kzoo.presets.load("attention_bridge_m2m_tiny_multi30k")
    >>> translator.translate(["Ein Hund rennt durch den Schnee."], source_language="de", target_language="fr")
    ['Un chien court dans la neige.']
    """

    def __init__(self, backbone: keras.Model, tokenizers: dict[str, Tokenizer | None], **kwargs):
        super().__init__(backbone, **kwargs)
        self.tokenizers = dict(tokenizers)

    @property
    def languages(self) -> list[str]:
        """The language codes, in the order of their numbers."""
        return list(self.tokenizers)

    @property
    def embeds(self) -> bool:
        """Whether the model can embed sentences, which needs a bridge."""
        return self.backbone.bridge is not None

    def embed(
        self, texts: Iterable[str], language: str, pooling: str = "flatten", truncate: bool = False
    ) -> np.ndarray:
        """Return the bridge's representation of sentences, which are read as by `translate`.

        Args:
            texts: sentences.
            language: code of the sentences' language.
            pooling: `"flatten"`, M's k · D numbers, or `"mean"`, the mean of its k rows.
            truncate: bool. Cut sentences longer than the model's maximum instead of raising an error.

        Returns:
            `(N, k · D)` or `(N, D)`, float32; zeros for an empty sentence.

        Raises:
            UserError: a sentence longer than the model's maximum; an unknown language or pooling; a model
                without a bridge.
        """
        language = self.code_of(language)
        readings = self.sentences_read(texts, (language, language), truncate, unknown="translate")
        return self._embedded([reading.tokens for reading in readings], language, pooling)

    def embed_tokens(self, tokens: list[list[int]], language: str, pooling: str = "flatten") -> np.ndarray:
        """Return the bridge's representation of sentences given as token ids, as `embed` does."""
        return self._embedded(tokens, self.code_of(language), pooling)

    def _embedded(self, tokens: list[list[int]], language: str, pooling: str) -> np.ndarray:
        poolings = {
            "flatten": lambda m: m.reshape(len(m), m.shape[1] * m.shape[2]),
            "mean": lambda m: m.mean(axis=1),
        }
        if pooling not in poolings:
            raise UserError(f"pooling must be one of {', '.join(poolings)}, not {pooling!r}")
        k, D = self.backbone.matrix_shape
        vectors = np.zeros((len(tokens), D if pooling == "mean" else k * D), "float32")
        for numbers, matrix, _ in self._matrices(tokens, language):
            vectors[numbers] = poolings[pooling](matrix.astype("float32"))
        return vectors

    def bridge_attention(self, text: str, language: str) -> tuple[list[str], np.ndarray]:
        """Return a sentence's subwords with the end symbol, and the bridge's A `(k, S)` over them.

        Raises:
            UserError: as for `embed`; or an empty sentence.
        """
        direction = self.direction(language, language)
        return self.bridge_attention_of_tokens(self._read(text, direction).tokens, direction)

    def bridge_attention_of_tokens(
        self, tokens: list[int], direction: Direction
    ) -> tuple[list[str], np.ndarray]:
        """Return what `bridge_attention` does, for token ids without the end symbol.

        Args:
            tokens: a sentence that is not empty.
            direction: what `direction` returns; its source is the sentence's language.
        """
        language, _ = direction
        _, _, scores = next(self._matrices([tokens], language))
        weights = scores[0, :, : len(tokens) + 1].astype("float32")
        return pieces(self.tokenizers[language], tokens), weights

    def _matrices(self, tokens: list[list[int]], language: str):
        """Yield each batch's sentence numbers, M and A; empty sentences are skipped."""
        if not self.embeds:
            raise UserError("a model without a bridge (bridge=False) has no sentence embeddings")
        for shape, numbers in batches_by_shape(tokens, self.backbone.max_length):
            source = padded_source(tokens, numbers, shape)
            code = np.full(len(source), self.languages.index(language), "int32")
            found = self._compiled(self.backbone.matrix)({"source": source, "source_language": code})
            yield numbers, *(part[: len(numbers)] for part in found)

    def tokenizers_of(self, source: str, target: str) -> tuple[Tokenizer, Tokenizer]:
        """Return the tokenizers of a direction's two languages."""
        return self.tokenizers[self.code_of(source)], self.tokenizers[self.code_of(target)]

    def _language_inputs(self, source, target, rows):
        languages = {"source_language": source, "target_language": target}
        return {name: np.full(rows, self.languages.index(code), "int32") for name, code in languages.items()}

    def _tokenizers_and_settings(self):
        return list(self.tokenizers.values()), {"languages": self.languages}

    def _arguments(self):
        return {"tokenizers": dict(self.tokenizers)}
