"""The recurrent sentence encoder: stacked bidirectional networks, then one-directional ones."""

import keras

CELLS = {"lstm": keras.layers.LSTM, "gru": keras.layers.GRU}


@keras.saving.register_keras_serializable("kzoo")
class RecurrentEncoder(keras.layers.Layer):
    """Stacked recurrent networks that read a sentence; a bidirectional one concatenates its two directions.

    Args:
        bidirectional: ints. Units of each bidirectional network, in each direction.
        unidirectional: ints. Units of each network on top of them. None by default.
        cell: `"lstm"` or `"gru"`. Defaults to `"lstm"`.
        **kwargs: other arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: `(B, S, E)`.
        mask: bool `(B, S)`. `True` at words, `False` at padding. All words by default.

    Returns:
        `(B, S, D)`: D is the last network's units, both directions together.

    Example:

    >>> words = keras.random.normal((2, 12, 64))
    >>> RecurrentEncoder(bidirectional=(32, 32))(words).shape
    (2, 12, 64)

    Reference:
        Hochreiter and Schmidhuber 1997, "Long Short-Term Memory". https://doi.org/10.1162/neco.1997.9.8.1735
        Cho et al. 2014 (GRU). https://arxiv.org/abs/1406.1078
    """

    def __init__(self, bidirectional=(256, 256), unidirectional=(), cell: str = "lstm", **kwargs):
        super().__init__(**kwargs)
        if cell not in CELLS:
            raise ValueError(f"cell is one of {', '.join(CELLS)}, not {cell!r}")
        self.bidirectional = tuple(bidirectional)
        self.unidirectional = tuple(unidirectional)
        self.cell = cell
        self.supports_masking = True

    def build(self, inputs_shape):
        def network(units, name):
            return CELLS[self.cell](units, return_sequences=True, dtype=self.dtype_policy, name=name)

        self.networks = [
            keras.layers.Bidirectional(
                network(units, f"both_{i}"), dtype=self.dtype_policy, name=f"bidirectional_{i}"
            )
            for i, units in enumerate(self.bidirectional)
        ]
        self.networks += [
            network(units, f"unidirectional_{i}") for i, units in enumerate(self.unidirectional)
        ]
        for layer in self.networks:
            layer.build(inputs_shape)
            inputs_shape = layer.compute_output_shape(inputs_shape)

    def call(self, inputs, mask=None):
        x = inputs
        for network in self.networks:
            x = network(x, mask=mask)
        return x

    def compute_output_shape(self, inputs_shape):
        width = self.unidirectional[-1] if self.unidirectional else 2 * self.bidirectional[-1]
        return (*inputs_shape[:-1], width)

    def get_config(self):
        config = {
            "bidirectional": self.bidirectional,
            "unidirectional": self.unidirectional,
            "cell": self.cell,
        }
        return {**super().get_config(), **config}
