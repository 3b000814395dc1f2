"""The recurrent sentence encoder: stacked bidirectional networks, then unidirectional ones."""

import keras
from keras import ops

from kzoo.layers.dense import add_bias, on_rows
from kzoo.layers.dropout import Dropout
from kzoo.layers.layer import Layer
from kzoo.layers.multi_head_attention import on_gpu
from kzoo.layers.recurrent_loops import read_sentence, value_of

CELLS = {"lstm": keras.layers.LSTM, "gru": keras.layers.GRU}
STATES = {"lstm": 2, "gru": 1}  # an LSTM has h and c


@keras.saving.register_keras_serializable("kzoo")
class RecurrentEncoder(Layer):
    """Stacked recurrent networks that read a sentence; bidirectional ones concatenate both directions.

    Args:
        bidirectional: ints. Units of each bidirectional network, in each direction.
        unidirectional: ints. Units of each unidirectional network above them. None by default.
        cell: `"lstm"` or `"gru"`. Defaults to `"lstm"`.
        dropout: float. Rate on the input of every network. Defaults to `0`.
        **kwargs: other arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: `(B, S, E)`.
        mask: bool `(B, S)`. `True` at tokens, `False` at padding. All tokens by default.
        return_states: bool. Defaults to `False`.
        training: bool. Whether dropout is on.
        kept: dropout factors from the caller, `(B, S, units)` each, one for the outputs of each network but
            the last. None by default.
        inputs_mask: set by Keras if `inputs` carries a mask and `kept` is given.

    Returns:
        `(B, S, D)`: D is the number of the last network's units, over both directions. Then, if requested,
        the states of all networks after the last token: a list of `(B, units)`.

    Raises:
        ValueError: an unknown cell.

    Example:

    >>> tokens = keras.random.normal((2, 12, 64))
    >>> RecurrentEncoder(bidirectional=(32, 32))(tokens).shape
    (2, 12, 64)

    Reference:
        Hochreiter and Schmidhuber 1997, "Long Short-Term Memory". https://doi.org/10.1162/neco.1997.9.8.1735
        Cho et al. 2014 (GRU). https://arxiv.org/abs/1406.1078
    """

    def __init__(
        self,
        bidirectional: tuple[int, ...] = (256, 256),
        unidirectional: tuple[int, ...] = (),
        cell: str = "lstm",
        dropout: float = 0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if cell not in CELLS:
            raise ValueError(f"cell must be one of {', '.join(CELLS)}, not {cell!r}")
        self.bidirectional = tuple(bidirectional)
        self.unidirectional = tuple(unidirectional)
        self.cell = cell
        self.dropout = dropout

    def build(self, inputs_shape):
        def network(units, name):
            return CELLS[self.cell](
                units, return_sequences=True, return_state=True, dtype=self.dtype_policy, name=name
            )

        copied = [network(units, f"both_{i}") for i, units in enumerate(self.bidirectional)]
        self.networks = [
            keras.layers.Bidirectional(both, dtype=self.dtype_policy, name=f"bidirectional_{i}")
            for i, both in enumerate(copied)
        ]
        # `Bidirectional` copies its layer. On loading, Keras identifies the originals by memory address. If
        # they were freed, another layer could get this address. The closure keeps them, hidden from Keras.
        self._copied = lambda: copied
        self.networks += [
            network(units, f"unidirectional_{i}") for i, units in enumerate(self.unidirectional)
        ]
        self._dropouts = [
            Dropout(self.dropout, dtype=self.dtype_policy, name=f"dropout_{i}")
            for i in range(len(self.networks))
        ]
        for layer in self.networks:
            layer.build(inputs_shape)
            inputs_shape = layer.compute_output_shape(inputs_shape)[0]

    def call(
        self,
        inputs,
        mask=None,
        return_states: bool = False,
        training: bool | None = None,
        kept=(),
        inputs_mask=None,
    ):
        x, states = inputs, []
        mask = inputs_mask if mask is None else mask
        if mask is not None:
            # On TensorFlow, cuDNN rejects rows of only padding, which fill up a batch: give them one token.
            only_padding = ops.logical_not(ops.any(mask, axis=1, keepdims=True))  # (B, 1)
            first = ops.arange(ops.shape(mask)[1]) == 0
            mask = ops.logical_or(mask, ops.logical_and(only_padding, first))
        for number, (network, dropout) in enumerate(zip(self.networks, self._dropouts, strict=True)):
            if kept and number:
                x = x * kept[number - 1]
            x, *last = self._read(network, dropout(x, training=training), mask)
            states += last
        return (x, states) if return_states else x

    def _read(self, network, x, mask):
        """Return a network's outputs `(B, S, D)`, and its last states."""
        if self.cell != "lstm" or on_gpu():  # where cuDNN has a fused LSTM
            return network(x, mask=mask)
        mask = ops.ones_like(x[..., 0], "bool") if mask is None else mask
        if not isinstance(network, keras.layers.Bidirectional):
            return _read_by(network.cell, x, mask)
        forward, *states = _read_by(network.forward_layer.cell, x, mask)
        backward, *others = _read_by(network.backward_layer.cell, ops.flip(x, 1), ops.flip(mask, 1))
        both = ops.concatenate([forward, ops.flip(backward, 1)], axis=-1)
        return ops.where(mask[..., None], both, ops.zeros_like(both)), *states, *others  # as Keras's

    def compute_output_shape(self, inputs_shape):
        width = self.unidirectional[-1] if self.unidirectional else 2 * self.bidirectional[-1]
        return (*inputs_shape[:-1], width)

    def compute_output_spec(
        self, inputs, mask=None, return_states=False, training=None, kept=(), inputs_mask=None
    ):
        # Otherwise Keras traces the networks, which takes 0.2 s on TensorFlow.
        outputs = keras.KerasTensor(self.compute_output_shape(inputs.shape), self.compute_dtype)
        if not return_states:
            return outputs
        units = [u for u in self.bidirectional for _ in range(2 * STATES[self.cell])]
        units += [u for u in self.unidirectional for _ in range(STATES[self.cell])]
        return outputs, [keras.KerasTensor((inputs.shape[0], u), self.compute_dtype) for u in units]


def _read_by(cell, x, mask):
    """Return an LSTM cell's outputs `(B, S, units)`, and its last h and c."""
    x = ops.transpose(x, (1, 0, 2))
    gates = on_rows(lambda x: add_bias(ops.matmul(x, cell.kernel), cell.bias), x)
    outputs = read_sentence(gates, value_of(cell.recurrent_kernel), ops.transpose(mask))
    h, c = outputs[:-1], outputs[-1]
    return ops.transpose(h, (1, 0, 2)), h[-1], c
