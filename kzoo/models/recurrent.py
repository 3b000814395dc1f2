"""The recurrent encoder–decoder with Luong's attention, from tokens or from characters' glyphs."""

from collections.abc import Sequence
from typing import Literal

import keras
from keras import ops

from kzoo.layers import Dropout, RecurrentDecoder, RecurrentEncoder
from kzoo.layers.dense import Dense
from kzoo.models.backbones import (
    BY_INPUTS,
    BY_OUTPUTS,
    EMBEDDINGS,
    TranslationBackbone,
    glyph_embedding,
    token_inputs,
    unit_normal,
)
from kzoo.models.losses import LabelSmoothedCrossEntropy, WholeBatchLoss
from kzoo.models.optimizers import Adam
from kzoo.sizes import check_sizes


@keras.saving.register_keras_serializable("kzoo")
class RecurrentBackbone(TranslationBackbone):
    """An encoder of bidirectional and unidirectional LSTMs, and a decoder of LSTMs with attention.

    Inputs are `{"source": (B, S), "target": (B, T)}`, int32 token ids with 0 for padding; the target begins
    with the start symbol. The output is the logits `(B, T, V)` of each next token.

    The decoder's initial states are a learned projection of the encoder's last states.

    For decoding, `encode`, `start` and `decode_step` implement the contract of `kzoo.decoding`.

    Args:
        source_vocabulary_size: int. Tokens, or characters, of the source.
        target_vocabulary_size: int. V.
        source_embedding: `"lookup"`, or `"glyph"`: vectors computed from the characters' bitmaps.
        glyph_options: dict. Arguments of `GlyphCharEncoder`, such as `{"architecture": "fc_2"}`.
        embedding_dim: int. Width of the embeddings of both sides.
        bidirectional: ints. Units of each bidirectional LSTM of the encoder, in each direction.
        unidirectional: ints. Units of each unidirectional LSTM above them.
        decoder_units: ints. Units of each LSTM of the decoder.
        dropout: float. Rate on each LSTM's input, except for the fed-back attentional vector, and on the
            attentional vectors before the output layer.
        max_length: int. Maximum sentence length in tokens, with its start or end symbol.
        dtype, name, trainable: as in `keras.Model`.

    Raises:
        ValueError: an unknown source embedding, or options that it does not take; a size that is not a whole
            number of at least 1; an encoder or decoder without an LSTM; a dropout outside [0, 1).

    Example:

    >>> model = RecurrentBackbone(100, 120, embedding_dim=16, bidirectional=(16,), unidirectional=(32,),
    ...                           decoder_units=(16, 32))
    >>> tokens = {"source": np.ones((2, 5), "int32"), "target": np.ones((2, 7), "int32")}
    >>> model(tokens).shape
    (2, 7, 120)

    Reference:
        Broscheit et al. 2018, "Learning Distributional Token Representations from Visual Features", Table 3.
        https://aclanthology.org/W18-3025
        Luong et al. 2015, "Effective Approaches to Attention-based Neural Machine Translation".
        https://arxiv.org/abs/1508.04025
    """

    # On TensorFlow, a step that XLA compiled takes 0.9 of the time, but each shape 14 s more to compile.
    xla_backends = ("jax",)
    layouts = EMBEDDINGS | {  # also of the bridge's recurrent encoders and decoders
        r".*(lstm_cell|gru_cell|cell_\d+)/(recurrent_)?kernel": BY_INPUTS,
        r"decoder(_\d+)?/(keys|combine)/kernel": BY_OUTPUTS,
        r"initial_[hc]_\d+/kernel": BY_OUTPUTS,
        r"(outputs_by_language/)?output(_\d+)?/kernel": BY_INPUTS,
    }

    def __init__(
        self,
        source_vocabulary_size: int,
        target_vocabulary_size: int,
        source_embedding: Literal["lookup", "glyph"] = "lookup",
        glyph_options: dict | None = None,
        embedding_dim: int = 512,
        bidirectional=(512,),
        unidirectional=(1024,),
        decoder_units: Sequence[int] = (512, 1024),
        dropout: float = 0.2,
        max_length: int = 256,
        dtype=None,
        name: str | None = None,
        trainable: bool = True,
    ):
        glyph_options = dict(glyph_options or {})
        self._keep(RecurrentBackbone, locals())
        check_sizes("bidirectional or unidirectional", [*bidirectional, *unidirectional])
        self.max_length, self.width = max_length, decoder_units[-1]

        def lookup(size, name):
            return keras.layers.Embedding(size, embedding_dim, unit_normal(), dtype=dtype, name=name)

        self.source_embedding = glyph_embedding(
            source_embedding, source_vocabulary_size, embedding_dim, glyph_options, dtype
        ) or lookup(source_vocabulary_size, "source_embedding")
        self.target_embedding = lookup(target_vocabulary_size, "target_embedding")
        self.target_dropout = Dropout(dropout, dtype=dtype, name="target_dropout")
        self.output_dropout = Dropout(dropout, dtype=dtype, name="output_dropout")
        self.encoder = RecurrentEncoder(
            bidirectional, unidirectional, dropout=dropout, dtype=dtype, name="encoder"
        )
        self.decoder = RecurrentDecoder(decoder_units, dropout=dropout, dtype=dtype, name="decoder")
        self.projections = [
            [Dense(units, dtype=dtype, name=f"initial_{part}_{i}") for part in ("h", "c")]
            for i, units in enumerate(decoder_units)
        ]
        self.output_dense = Dense(target_vocabulary_size, dtype=dtype, name="output")

        inputs = token_inputs("source", "target")
        encoded, initial, mask = self._encoded(inputs)
        x = self.target_dropout(self.target_embedding(inputs["target"]))
        x = self.decoder(x, encoded, initial, memory_mask=mask)
        super().__init__(inputs=inputs, outputs=self._logits(x), dtype=dtype, name=name, trainable=trainable)

    def _encoded(self, inputs):
        """Return the encoder's outputs `(B, S, D)`, the decoder's first states, and the mask `(B, S)`."""
        mask = ops.not_equal(inputs["source"], 0)
        encoded, states = self.encoder(self.embedded_source(inputs), mask=mask, return_states=True)
        last = ops.concatenate(states, axis=-1)
        return encoded, [tuple(project(last) for project in pair) for pair in self.projections], mask

    def source_attention(self, inputs: dict):
        """Return the target tokens' attention to the source: a list of one tensor `(B, 1, T, S)`.

        Args:
            inputs: the model's inputs. Row t of the weights is for predicting the token after target token t.
        """
        encoded, initial, mask = self._encoded(inputs)
        x = self.target_embedding(inputs["target"])
        _, scores = self.decoder(x, encoded, initial, memory_mask=mask, return_attention_scores=True)
        return [scores[:, None]]

    def _logits(self, x):
        return self.output_dense(self.output_dropout(x))

    def compile_arguments(self) -> dict:
        """Return Adam at 1e-3, the rate of the glyph paper's first four epochs, with ε 1e-8.

        A recipe with `halve_after = 4` halves the rate for each later epoch.
        """
        return {
            "optimizer": Adam(1e-3, epsilon=1e-8, global_clipnorm=5.0),
            "loss": LabelSmoothedCrossEntropy(0.0),
        }

    def encode(self, inputs: dict) -> dict:
        """Return the memory of the sentences `inputs["source"]` `(B, S)`."""
        encoded, initial, mask = self._encoded(inputs)
        return {"prepared": self.decoder.prepare(encoded, mask), "initial": initial}

    def start(self, memory: dict, beam_size: int, max_length: int) -> dict:
        """Return the initial state; the search reorders all of it with the hypotheses."""
        return {"reorder": self.decoder.start(memory["initial"], beam_size), "keep": {}}

    def decode_step(self, tokens, step, memory: dict, state: dict):
        """Return the logits `(B, K, V)` after `tokens` `(B, K)`, and the state."""
        x, recurrent = self.decoder.step(self.target_embedding(tokens), memory["prepared"], state["reorder"])
        return self._logits(x), {"reorder": recurrent, "keep": state["keep"]}

    def language_model(self) -> keras.Model:
        """Return the decoder as a language model, from `{"target": (B, T)}` to logits `(B, T, V)`.

        It shares the decoder's weights, so training it trains the decoder. Without a source, the context and
        the initial states are zero.
        """
        inputs = token_inputs("target")
        x = self.target_dropout(self.target_embedding(inputs["target"]))
        zero = ops.zeros_like(x[:, 0, :1])  # (B, 1)
        width = self.encoder.compute_output_shape((None, None, self._settings["embedding_dim"]))[-1]
        # Two entries, because Keras warns about a softmax over one.
        memory = ops.repeat(ops.repeat(zero[:, None], width, axis=2), 2, axis=1)  # (B, 2, D)
        initial = [(ops.repeat(zero, u, axis=-1),) * 2 for u in self._settings["decoder_units"]]
        model = LanguageModel(inputs, self._logits(self.decoder(x, memory, initial)))
        model.dtype_policy = self.dtype_policy  # which decides whether the loss is scaled
        return model

    def default_lora_layer_names(self) -> list[str]:
        """Return the names of the layers that `enable_lora` adapts: those of the decoder's attention."""
        return ["keys", "combine"]


@keras.saving.register_keras_serializable("kzoo")
class LanguageModel(WholeBatchLoss, keras.Model):
    """A language model from `{"target": (B, T)}` to logits `(B, T, V)`."""
