"""The Transformer's position encodings by name, in three tables: by where each acts.

A table's functions take `max_length` and the `position_options`, and return a layer, or `None`.
"""

import keras
from keras_hub.layers import PositionEmbedding, SinePositionEncoding

from kzoo.layers import PerHeadPoPE, PoPEEmbedding, RelativePositionBias, RoPEEmbedding

# What is added to the embeddings; put your own here. Their layers are called with the embeddings and, in
# decoding, with `positions`, ints `(K,)`.
ADDED_POSITIONS = {
    "pope": lambda max_length, per_head=False, **options: (
        None if per_head else PoPEEmbedding(max_length, **options)
    ),
    "sine": lambda max_length, **options: SinePositionEncoding(**options),
    "learned": lambda max_length, **options: PositionEmbedding(max_length, **options),
}
# What acts on the queries and keys of each self-attention: `MultiHeadAttention(rotary=…)`.
HEAD_POSITIONS = {
    "pope": lambda max_length, per_head=False, **options: (
        PerHeadPoPE(max_length, **options) if per_head else None
    ),
    "rope": lambda max_length, **options: RoPEEmbedding(**options),
}
# What is added to the scores of every self-attention of a stack: `MultiHeadAttention(…, position_bias=…)`.
SCORE_POSITIONS = {"bias": lambda max_length, **options: RelativePositionBias(**options)}


def position_layer(
    table: dict, encoding: str, max_length: int, options: dict, **arguments
) -> keras.layers.Layer | None:
    """Return the layer of a position encoding that acts where the table says, or `None` if it has none there.

    Args:
        table: one of the tables above.
        encoding: its name.
        max_length: maximum sentence length in tokens.
        options: `position_options`.
        **arguments: more arguments of the layer, such as `name` and `dtype`.
    """
    make = table.get(encoding)
    return make and make(max_length, **options, **arguments)


def check_positions(encoding: str, options: dict | None, width: int, num_heads: int):
    """Raise `ValueError` for an encoding that a Transformer of these sizes cannot have."""
    known = (*dict.fromkeys([*ADDED_POSITIONS, *HEAD_POSITIONS, *SCORE_POSITIONS]), "none")
    if encoding not in known:
        raise ValueError(f"position_encoding is one of {known}, not {encoding!r}")
    if encoding == "none" and options:
        raise ValueError(f"position_encoding='none' has no position_options, not {options!r}")
    if encoding == "rope" and width // num_heads % 2:
        raise ValueError(
            f"rotary positions need heads of even width, not width={width} / num_heads={num_heads}"
        )
