"""The recurrent decoder with Luong's attention and input feeding."""

import keras
from keras import ops

from kzoo.layers.dense import Dense, add_bias, on_rows
from kzoo.layers.dropout import Dropout
from kzoo.layers.layer import Layer
from kzoo.layers.multi_head_attention import masked_softmax
from kzoo.layers.recurrent_loops import read_tokens, value_of


@keras.saving.register_keras_serializable("kzoo")
class RecurrentDecoder(Layer):
    """Stacked LSTMs that attend to a memory at every token.

        h_t = LSTM([y_t; a_{t-1}])               output of the last LSTM; a_{t-1} is fed back (Section 3.3)
        α_t = softmax(h_tᵀ W_a m)                over the memory's entries, the "general" score (Eq. 7)
        a_t = tanh(W_c [Σ α_t m; h_t])           the attentional vector, used for prediction (Eq. 5)

    Call the layer on a whole target, as in training, or call `step` on the newest token of each hypothesis.

    Args:
        units: ints. Units of each LSTM; a_t has the width of the last.
        dropout: float. Rate between LSTMs; the same features are dropped at all tokens of a sentence (Gal and
            Ghahramani 2016). Defaults to `0`.
        **kwargs: other arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: `(B, T, E)`. Embedded target tokens.
        memory: `(B, N, D)`. The vectors to attend to: encoded tokens, or a bridge's M.
        initial: list of pairs `(h, c)`, `(B, units)` each, one pair per LSTM.
        memory_mask: bool `(B, N)`. `False` at padding. All `True` by default.
        training: bool. Whether dropout is on.
        kept: dropout factors from the caller, `(B, T, units)` each: one for the outputs of each LSTM but the
            last, then one for the attentional vectors, including the fed-back ones. None by default.
        return_attention_scores: bool. Defaults to `False`.

    Returns:
        `(B, T, units[-1])`: the attentional vectors; then α `(B, T, N)` if requested.

    Example:

    >>> target, memory = keras.random.normal((2, 7, 64)), keras.random.normal((2, 10, 48))
    >>> zeros = keras.ops.zeros((2, 32))
    >>> RecurrentDecoder(units=(32,))(target, memory, [(zeros, zeros)]).shape
    (2, 7, 32)

    Reference:
        Luong et al. 2015, "Effective Approaches to Attention-based Neural Machine Translation".
        https://arxiv.org/abs/1508.04025
    """

    def __init__(self, units: tuple[int, ...] = (512, 512), dropout: float = 0.0, **kwargs):
        super().__init__(**kwargs)
        self.units = tuple(units)
        self.dropout = dropout

    def build(self, inputs_shape, memory_shape, initial_shape=None):
        width, dtype = self.units[-1], self.dtype_policy
        self.cells = [
            keras.layers.LSTMCell(units, dtype=dtype, name=f"cell_{i}") for i, units in enumerate(self.units)
        ]
        below = (inputs_shape[0], inputs_shape[-1] + width)
        for cell in self.cells:
            cell.build(below)
            below = (below[0], cell.units)
        self._dropouts = [
            Dropout(self.dropout, dtype=dtype, name=f"dropout_{i}") for i in range(len(self.units) - 1)
        ]
        self.keys = Dense(width, use_bias=False, dtype=dtype, name="keys")
        self.keys.build(memory_shape)
        self.combine = Dense(width, use_bias=False, dtype=dtype, name="combine")
        self.combine.build((*inputs_shape[:-1], memory_shape[-1] + width))

    def call(
        self,
        inputs,
        memory,
        initial,
        memory_mask=None,
        training: bool | None = None,
        kept=(),
        return_attention_scores: bool = False,
    ):
        prepared = self.prepare(memory, memory_mask)
        length = ops.shape(inputs)[1]
        if training and self.dropout and not kept:
            kept = [
                ops.repeat(dropout(ops.ones_like(h[:, None]), training=True), length, axis=1)  # of one token
                for dropout, (h, _) in zip(self._dropouts, initial[:-1], strict=True)
            ]
        first, width = self.cells[0], inputs.shape[-1]
        inputs, *kept = (
            ops.transpose(ops.cast(x, self.compute_dtype), (1, 0, 2)) for x in (inputs, *kept)
        )  # (T, B, …)
        kernel, *kernels = (value_of(cell.kernel) for cell in self.cells)
        outputs = read_tokens(
            on_rows(lambda x: add_bias(ops.matmul(x, kernel[:width]), first.bias), inputs),
            prepared,
            [tuple(ops.cast(part, self.compute_dtype) for part in pair) for pair in initial],
            [kernel[width:], *kernels],
            [value_of(cell.recurrent_kernel) for cell in self.cells],
            [value_of(cell.bias) for cell in self.cells[1:]],
            self._combining_kernel(memory.shape[-1]),
            kept,
        )
        outputs = ops.transpose(outputs, (1, 0, 2))
        attentional, scores = outputs[..., : self.units[-1]], outputs[..., self.units[-1] :]
        return (attentional, scores) if return_attention_scores else attentional

    def prepare(self, memory, memory_mask=None) -> dict:
        """Return the memory's keys, values and mask for `step`, computed once per sentence."""
        if memory_mask is None:
            memory_mask = ops.ones(ops.shape(memory)[:2], "bool")
        memory = ops.cast(memory, self.compute_dtype)
        return {"keys": self.keys(memory), "values": memory, "mask": memory_mask}

    def start(self, initial, beam_size: int = 1) -> dict:
        """Return the initial state of K = `beam_size` hypotheses per sentence."""
        pairs = [
            tuple(ops.repeat(ops.cast(part[:, None], self.compute_dtype), beam_size, axis=1) for part in pair)
            for pair in initial
        ]  # of (B, K, units)
        return {"cells": pairs, "fed_back": ops.zeros_like(pairs[-1][0])}

    def step(self, inputs, prepared: dict, state: dict, kept=None):
        """Read one token of each of K hypotheses.

        Args:
            inputs: `(B, K, E)`. Embedded tokens.
            prepared: the result of `prepare` for the B sentences.
            state: `{"cells": pairs of (B, K, units), "fed_back": (B, K, units[-1])}`.
            kept: in training, dropout factors `(B, K, units)`: one for the outputs of each LSTM but the last,
                then, optionally, one for the attentional vectors.

        Returns:
            The attentional vectors `(B, K, units[-1])`, and the state.
        """
        hypotheses = ops.shape(inputs)[:2]
        x = ops.concatenate([ops.cast(inputs, self.compute_dtype), state["fed_back"]], axis=-1)
        x = ops.reshape(x, (-1, x.shape[-1]))  # the cells take a single batch axis
        pairs = []
        for number, (cell, pair) in enumerate(zip(self.cells, state["cells"], strict=True)):
            x, pair = cell(x, [ops.reshape(part, (-1, cell.units)) for part in pair])
            if kept and number < len(self.units) - 1:
                x = x * ops.reshape(kept[number], (-1, cell.units))
            pairs.append(tuple(ops.reshape(part, (*hypotheses, cell.units)) for part in pair))
        h = pairs[-1][0]  # (B, K, units[-1])
        context = ops.matmul(self._weights(h, prepared), prepared["values"])  # (B, K, D)
        attentional = ops.tanh(self.combine(ops.concatenate([context, h], axis=-1)))
        if kept and len(kept) == len(self.units):
            attentional = attentional * kept[-1]
        return attentional, {"cells": pairs, "fed_back": attentional}

    def _combining_kernel(self, memory_width: int):
        """Return W_c, also of a quantized model, whose kernel alone is not what `combine` multiplies by."""
        if self.combine.quantization_mode is None:
            return value_of(self.combine.kernel)
        return self.combine(ops.eye(memory_width + self.units[-1], dtype=self.compute_dtype))

    def _weights(self, h, prepared):
        """Return α `(B, K, N)` for the last LSTM's outputs `(B, K, units[-1])`."""
        scores = ops.matmul(h, ops.swapaxes(prepared["keys"], 1, 2))
        return masked_softmax(scores, prepared["mask"][:, None, :])

    def compute_output_shape(self, inputs_shape, memory_shape=None, initial_shape=None):
        return (*inputs_shape[:-1], self.units[-1])
