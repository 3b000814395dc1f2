"""Language-specific encoders and decoders, joined by one shared attention bridge."""

from collections.abc import Sequence
from typing import Literal

import keras
import numpy as np
from keras import ops

from kzoo.layers import (
    AttentionBridge,
    ByLanguage,
    ConvolutionalEncoder,
    Dropout,
    RecurrentDecoder,
    RecurrentEncoder,
    TransformerEncoder,
)
from kzoo.layers.dense import Dense
from kzoo.models.backbones import (
    BY_INPUTS,
    BY_OUTPUTS,
    MODEL,
    TranslationBackbone,
    token_inputs,
    unit_normal,
)
from kzoo.models.losses import SentenceCrossEntropy, never
from kzoo.models.optimizers import SGD
from kzoo.models.recurrent import RecurrentBackbone
from kzoo.models.transformer import TransformerBackbone

# Sentence encoders that give D features per token.
ENCODERS = {
    "lstm": lambda width, most, **names: RecurrentEncoder([width // 2] * 2, **names),
    "gru": lambda width, most, **names: RecurrentEncoder([width // 2] * 2, cell="gru", **names),
    "cnn": lambda width, most, **names: ConvolutionalEncoder(width, **names),
    "transformer": lambda width, most, **names: TransformerEncoder(width, max_length=most, **names),
}
RECURRENT = ("lstm", "gru")


@keras.saving.register_keras_serializable("kzoo")
class AttentionBridgeBackbone(TranslationBackbone):
    """An encoder and a decoder for each language, joined by one shared attention bridge.

    Inputs are `{"source": (B, S), "target": (B, T), "source_language": (B,), "target_language": (B,)}`,
    int32: token ids with 0 for padding, and language numbers, the same in all rows. The target begins with
    the start symbol. The output is the logits `(B, T, V)` of each next token.

    The decoder sees a sentence only through the bridge's M: its LSTMs attend to M and start with the mean of
    M as h and c.

    For decoding, `encode`, `start` and `decode_step` implement the contract of `kzoo.decoding`.

    Args:
        vocabulary_sizes: ints. Vocabulary size of each language, in the order of the language numbers.
        encoder: `"lstm"` (the paper's two bidirectional LSTMs); or, as its footnote 1 proposes, `"gru"`,
            `"cnn"` or `"transformer"`.
        embedding_dim: int. Width of the token embeddings.
        width: int. D, the width of the encoders' outputs and the decoders' states.
        num_decoder_layers: int. Number of LSTMs in each decoder.
        bridge: bool. If `False`, decoders attend to the encoder's outputs and start with their mean: the
            paper's plain baseline.
        num_heads: int. k, the rows of M.
        hidden_dim: int. Inner width of the bridge.
        penalty_weight: float. Factor of the bridge's penalty; 1 is the paper's Eq. 3.
        squared: bool. Whether the penalty's norm is squared, as in Eq. 3.
        use_bias: bool. Whether the bridge's two maps have biases, as in the authors' code.
        dropout: float. Rate on embeddings, encoder outputs and attentional vectors before the output layer.
        layer_dropout: float. Rate between stacked recurrent layers and on the attentional vectors that are
            fed back, as in OpenNMT; drawn anew at every token.
        tied_embeddings: bool. Whether a language's encoder and decoder share a table of token embeddings.
        max_length: int. Maximum sentence length in tokens, with its start or end symbol.
        dtype, name, trainable: as in `keras.Model`.

    Raises:
        ValueError: an unknown encoder; no language; a size that is less than 1 or not a whole number; an odd
            width for `"lstm"` or `"gru"`, or one that is not a multiple of 8 for `"transformer"`; a dropout
            outside [0, 1).

    Example:

    >>> model = AttentionBridgeBackbone([100, 120], embedding_dim=16, width=32, hidden_dim=64)
    >>> tokens = {"source": np.ones((2, 5), "int32"), "target": np.ones((2, 7), "int32")}
    >>> languages = {"source_language": np.array([0, 0]), "target_language": np.array([1, 1])}
    >>> model({**tokens, **languages}).shape
    (2, 7, 120)

    Reference:
        Vázquez et al. 2019, "Multilingual NMT with a Language-Independent Attention Bridge".
        https://arxiv.org/abs/1811.00498
    """

    # On TensorFlow, XLA takes longer to compile a shape than all take without; in bfloat16, steps are slower.
    xla_backends = ("jax",)
    layouts = {  # besides those of its recurrent and Transformer encoders
        **RecurrentBackbone.layouts,
        **TransformerBackbone.layouts,
        r"bridge/hidden/kernel": BY_OUTPUTS,
        r"bridge/heads/kernel": BY_INPUTS,
        r"encoders/encoder_\d+/enter/kernel": BY_OUTPUTS,
        r"encoders/encoder_\d+/convolution_\d+/kernel": (None, None, MODEL),
    }

    def __init__(
        self,
        vocabulary_sizes: Sequence[int],
        encoder: Literal["lstm", "gru", "cnn", "transformer"] = "lstm",
        embedding_dim: int = 512,
        width: int = 512,
        num_decoder_layers: int = 2,
        bridge: bool = True,
        num_heads: int = 10,
        hidden_dim: int = 1024,
        penalty_weight: float = 1.0,
        squared: bool = True,
        use_bias: bool = False,
        dropout: float = 0.0,
        max_length: int = 256,
        layer_dropout: float = 0.0,
        tied_embeddings: bool = True,
        dtype=None,
        name: str | None = None,
        trainable: bool = True,
    ):
        vocabulary_sizes = list(vocabulary_sizes)
        self._keep(AttentionBridgeBackbone, locals())
        sizes = vocabulary_sizes
        if encoder in RECURRENT and width % 2:
            raise ValueError(f"a recurrent encoder reads in two directions: width must be even, not {width}")
        self.max_length, self.width = max_length, width
        languages = range(len(sizes))
        # The offset of each language in the one embedding table, so that looking up a token needs no branch.
        self._offsets = np.cumsum([0, *sizes[:-1]]).astype("int32")
        # All languages' logits have the same width; tokens that a language lacks are never predicted.
        self._absent = np.arange(max(sizes)) >= np.array(sizes)[:, None]

        def table(name):
            return keras.layers.Embedding(sum(sizes), embedding_dim, unit_normal(), dtype=dtype, name=name)

        self.embedding = table("embedding")
        self.target_embedding = self.embedding if tied_embeddings else table("target_embedding")
        self.source_dropout = Dropout(dropout, dtype=dtype, name="source_dropout")
        self.target_dropout = Dropout(dropout, dtype=dtype, name="target_dropout")
        self.encoded_dropout = Dropout(dropout, dtype=dtype, name="encoded_dropout")
        self.output_dropout = Dropout(dropout, dtype=dtype, name="output_dropout")

        def layer_dropouts(side, count):
            names = [f"{side}_dropout_{i}" for i in range(count if layer_dropout else 0)]
            return [Dropout(layer_dropout, dtype=dtype, name=name) for name in names]

        self.encoder_dropouts = layer_dropouts("encoder", encoder in RECURRENT)  # between the two layers
        self.decoder_dropouts = layer_dropouts("decoder", num_decoder_layers)
        self.encoders = ByLanguage(
            [ENCODERS[encoder](width, max_length, dtype=dtype, name=f"encoder_{i}") for i in languages],
            dtype=dtype,
            name="encoders",
        )
        self.bridge = None
        if bridge:
            settings = num_heads, hidden_dim, penalty_weight, use_bias, squared
            self.bridge = AttentionBridge(*settings, dtype=dtype, name="bridge")
        decoders = [
            RecurrentDecoder([width] * num_decoder_layers, dtype=dtype, name=f"decoder_{i}")
            for i in languages
        ]
        for decoder in decoders:
            decoder.build((None, None, embedding_dim), (None, None, width))
        self.decoders = ByLanguage(decoders, dtype=dtype, name="decoders")
        self.outputs_by_language = ByLanguage(
            [Dense(max(sizes), dtype=dtype, name=f"output_{i}") for i in languages],
            dtype=dtype,
            name="outputs_by_language",
        )

        inputs = token_inputs("source", "target")
        for side in ("source_language", "target_language"):
            inputs[side] = keras.Input((), dtype="int32", name=side)
        language = inputs["target_language"]
        memory, mask = self._encoded(inputs)
        if self.bridge is not None:
            memory, mask = self.bridge(memory, mask=mask), None
        x = self.target_dropout(self._embed(self.target_embedding, inputs["target"], language))
        kept = self._kept(self.decoder_dropouts, inputs["target"])
        initial = self._initial(memory, mask)
        x = self.decoders(language, x, memory=memory, initial=initial, memory_mask=mask, **kept)
        logits = self._logits(x, language)
        super().__init__(inputs=inputs, outputs=logits, dtype=dtype, name=name, trainable=trainable)

    @property
    def matrix_shape(self) -> tuple[int, int]:
        """k and D: the shape of a sentence's M."""
        return self._settings["num_heads"], self._settings["width"]

    def _embed(self, table, tokens, language):
        offsets = ops.take(self._offsets, language)[:, None]
        return table(ops.add(tokens, offsets))

    def _kept(self, dropouts, tokens) -> dict:
        """Return the argument `kept` of the languages' layers: each dropout's factors `(B, L, D)`.

        They are drawn here, because a language's branch must not draw random numbers.
        """
        ones = ops.repeat(ops.ones_like(tokens, dtype="float32")[..., None], self.width, axis=-1)
        return {"kept": [dropout(ones) for dropout in dropouts]} if dropouts else {}

    def _encoded(self, inputs):
        """Return the encoder's outputs `(B, S, D)`, and the mask `(B, S)`."""
        source, language = inputs["source"], inputs["source_language"]
        mask = ops.not_equal(source, 0)
        x = self.source_dropout(self._embed(self.embedding, source, language))
        x = self.encoders(language, x, mask=mask, **self._kept(self.encoder_dropouts, source))
        return self.encoded_dropout(x), mask

    def _initial(self, memory, mask) -> list:
        """Return every decoder layer's initial h and c: the mean of the memory."""
        if mask is None:
            mean = ops.mean(memory, axis=1)
        else:
            real = ops.cast(mask, memory.dtype)[..., None]
            mean = ops.sum(memory * real, axis=1) / ops.maximum(ops.sum(real, axis=1), 1.0)
        return [(mean, mean)] * self._settings["num_decoder_layers"]

    def _logits(self, x, language):
        return self._possible(self.outputs_by_language(language, self.output_dropout(x)), language)

    def _possible(self, logits, language):
        """Return the logits without tokens that the language lacks."""
        if not self._absent.any():
            return logits
        absent = ops.take(ops.convert_to_tensor(self._absent), language, axis=0)  # (B, V)
        return ops.where(absent[:, None], never(keras.backend.standardize_dtype(logits.dtype)), logits)

    def matrix(self, inputs: dict):
        """Return the bridge's M `(B, k, D)` and A `(B, k, S)`.

        Args:
            inputs: `{"source": (B, S), "source_language": (B,)}`.

        Raises:
            ValueError: the model has no bridge.
        """
        if self.bridge is None:
            raise ValueError("a model without a bridge (bridge=False) has no sentence matrix")
        return self.bridge.attend(*self._encoded(inputs))

    def compile_arguments(self) -> dict:
        """Return SGD at rate 1 and the loss of Eq. 3; clipping at norm 5 is from the paper's toolkit.

        The loss is the mean over sentences of −log P, plus the bridge's penalty times its weight.
        """
        return {"optimizer": SGD(1.0, global_clipnorm=5.0), "loss": SentenceCrossEntropy()}

    def encode(self, inputs: dict) -> dict:
        """Return the memory of the sentences: M, prepared by the target language's decoder."""
        language = inputs["target_language"]
        memory, mask = self._memory(inputs)
        prepared = self.decoders.run(language, lambda decoder: decoder.prepare(memory, mask))
        return {"prepared": prepared, "initial": self._initial(memory, mask), "target_language": language}

    def _memory(self, inputs):
        """Return the vectors to attend to, M `(B, k, D)` or encoder outputs `(B, S, D)`, and their mask."""
        return self._encoded(inputs) if self.bridge is None else (self.matrix(inputs)[0], None)

    def source_attention(self, inputs: dict):
        """Return the target tokens' attention to the rows of M: a list of one tensor `(B, 1, T, k)`.

        Without a bridge, the tensor is `(B, 1, T, S)`, over the source tokens.

        Args:
            inputs: the model's inputs. Row t of the weights is for predicting the token after target token t.
        """
        language = inputs["target_language"]
        memory, mask = self._memory(inputs)
        x = self._embed(self.target_embedding, inputs["target"], language)
        initial = self._initial(memory, mask)
        _, scores = self.decoders.run(
            language,
            lambda decoder: decoder(x, memory, initial, memory_mask=mask, return_attention_scores=True),
        )  # (B, T, k)
        return [scores[:, None]]

    def start(self, memory: dict, beam_size: int, max_length: int) -> dict:
        """Return the initial state; the search reorders all of it with the hypotheses."""
        return {"reorder": self.decoders.layers[0].start(memory["initial"], beam_size), "keep": {}}

    def decode_step(self, tokens, step, memory: dict, state: dict):
        """Return the logits `(B, K, V)` after `tokens` `(B, K)`, and the state."""
        language = memory["target_language"]
        x = self._embed(self.target_embedding, tokens, language)  # (B, K, E)
        x, recurrent = self.decoders.choose(
            language, lambda decoder: decoder.step(x, memory["prepared"], state["reorder"])
        )
        logits = self.outputs_by_language.choose(language, lambda output: output(x))
        return self._possible(logits, language), {"reorder": recurrent, "keep": state["keep"]}

    def default_lora_layer_names(self) -> list[str]:
        """Return the names of the layers that `enable_lora` adapts: those of the bridge and of attention."""
        return ["hidden", "heads", "keys", "combine"]
