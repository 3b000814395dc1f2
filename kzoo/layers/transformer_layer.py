"""Base of the Transformer's encoder and decoder layers: their common settings."""

import keras

from kzoo.layers.composite_layer import CompositeLayer
from kzoo.layers.feed_forward import FeedForward
from kzoo.layers.residual import Residual, check_norm


class TransformerLayer(CompositeLayer):
    """Base class with the settings of `TransformerEncoderLayer` and `TransformerDecoderLayer`; see there."""

    def __init__(
        self,
        num_heads: int,
        feedforward_dim: int,
        dropout: float = 0.0,
        norm: str = "post",
        rotary: keras.layers.Layer | None = None,
        activation: str = "relu",
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_norm(norm)
        if num_heads < 1:
            raise ValueError(f"num_heads is at least 1, not {num_heads}")
        self.num_heads = num_heads
        self.feedforward_dim = feedforward_dim
        self.dropout = dropout
        self.norm = norm
        self.rotary = rotary
        self.activation = activation
        self.supports_masking = True

    def head_width(self, width: int) -> int:
        """Return d, the width of each of the H heads, for inputs of width D.

        Raises:
            ValueError: H does not divide D.
        """
        if width % self.num_heads:
            raise ValueError(f"num_heads={self.num_heads} does not divide the width of the inputs, {width}")
        return width // self.num_heads

    def feed_forward(self) -> FeedForward:
        """Return the feed-forward network, according to the settings."""
        return FeedForward(self.feedforward_dim, self.activation, dtype=self.dtype_policy, name="feedforward")

    def residual(self, name: str) -> Residual:
        """Return the residual connection of a sublayer, according to the settings."""
        return Residual(self.norm, self.dropout, dtype=self.dtype_policy, name=name)

    def get_config(self):
        config = {
            "num_heads": self.num_heads,
            "feedforward_dim": self.feedforward_dim,
            "dropout": self.dropout,
            "norm": self.norm,
            "rotary": keras.saving.serialize_keras_object(self.rotary),
            "activation": self.activation,
        }
        return {**super().get_config(), **config}

    @classmethod
    def from_config(cls, config):
        return cls(**{**config, "rotary": keras.saving.deserialize_keras_object(config["rotary"])})
