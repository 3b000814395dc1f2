"""The names of the parts of a Transformer's layers: kzoo's, Marian's and CTranslate2's, for both conversions.

They import no Keras, for the engine. How devices split these weights stands in `TransformerBackbone.layouts`.
"""

from typing import NamedTuple


class Part(NamedTuple):
    """A part of an encoder or decoder layer."""

    ours: str  # the layer's attribute, and in a preset's weights its path
    marian: str  # in the names of Hugging Face's tensors
    ctranslate2: str  # the specification's attribute


ATTENTIONS = {
    "encoder": [Part("attention", "self_attn", "self_attention")],
    "decoder": [
        Part("self_attention", "self_attn", "self_attention"),
        Part("cross_attention", "encoder_attn", "attention"),
    ],
}
FEEDFORWARD = [Part("inner", "fc1", "linear_0"), Part("outer", "fc2", "linear_1")]
# Between these two: Keras's names, and CTranslate2's.
ACTIVATIONS = {"relu": "RELU", "silu": "SWISH", "gelu": "GELU"}


def layer_path(side: str, number: int) -> str:
    """Return the path in a preset's weights of a layer of the encoder or decoder: by class and order."""
    return f"transformer_{side}_layer{f'_{number}' if number else ''}"


def marian_layer(side: str, number: int) -> str:
    """Return what the names of a layer's tensors begin with."""
    return f"model.{side}.layers.{number}"
