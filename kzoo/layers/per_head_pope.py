"""PoPE in each attention head, instead of in the embeddings."""

import keras

from kzoo.layers.pope_embedding import PoPEEmbedding


@keras.saving.register_keras_serializable("kzoo")
class PerHeadPoPE(PoPEEmbedding):
    """Legendre positions for queries and keys, after their projection into a head.

        q_m + PE(m),   k_n + PE(n)   in each head, with PE of the head's width d

    Pass it to `MultiHeadAttention` as `rotary`, the argument for layers that act on queries and keys. All
    heads have the same encoding. The paper lists per-head positions as future work (Section 6, after Chen et
    al. 2021). Unlike Chen et al.'s, which are added to the scores, these do not raise the rank of the scores
    above d.

    Args:
        max_length, first_order, normalize: as in `PoPEEmbedding`.
        **kwargs: other arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: `(B, H, L, d)`. Queries or keys.
        start_index: int or integer tensor. Position of the first of the `L` tokens. Defaults to `0`.
        positions: `(L,)` or `(B, L)` integers. Positions of the tokens, in place of `start_index`.

    Returns:
        `(B, H, L, d)`: the inputs with the encoding added.

    Raises:
        ValueError: as for `PoPEEmbedding`.

    Example:

    >>> x = keras.random.normal((2, 10, 64))
    >>> MultiHeadAttention(num_heads=4, key_dim=16, rotary=PerHeadPoPE())(x).shape
    (2, 10, 64)

    Reference:
        Aggarwal 2024, "PoPE: Legendre Orthogonal Polynomials Based Position Encoding for Large Language
        Models", Eq. 14 and Section 6. https://arxiv.org/abs/2405.04585
    """

    def call(self, inputs, start_index: int = 0, positions=None):
        if positions is not None and len(positions.shape) == 2:
            positions = positions[:, None]  # (B, 1, L): the same in all heads
        return inputs + super().call(inputs, start_index, positions)
