"""An embedding that computes its vectors from the characters' bitmaps."""

import keras
import numpy as np
from keras import ops

from kzoo.layers.glyph_char_encoder import SIZE
from kzoo.layers.layer import Layer

BAKED_AT_ONCE = 1024


@keras.saving.register_keras_serializable("kzoo")
class GlyphEmbedding(Layer):
    """Maps character ids to vectors, like `keras.layers.Embedding`, by encoding the characters' glyphs.

    In training, each distinct character of a batch is encoded once. The encoder's batch normalization counts
    it as often as it occurs and ignores blank glyphs (padding and other special tokens, spaces). Outside
    training, vectors come from the table that `bake` computes; without a table, characters are encoded. A
    training step clears the table. After changing the encoder's weights in any other way, call `empty`.

    The glyphs and the table are weights, so a loaded model needs no font, and a clone has blank glyphs. With
    `trainable = False` the encoder is frozen, and training uses the table too.

    Args:
        glyphs: `(V, 22, 22)`, 1 for ink, as `kzoo.text.render_glyphs` returns them; or the int V, if the
            glyphs will be loaded with the layer's weights.
        encoder: `GlyphCharEncoder`. If two embeddings share it, bake one only after training the other.
        **kwargs: other arguments of `keras.layers.Layer`.

    Call arguments:
        ids: int `(…)`. Character ids, less than V; with `drawn`, less than V + E.
        training: bool.
        drawn: `(B, E, 22, 22)`, glyphs of characters that the vocabulary lacks, for ids `(B, S)`, not in
            training: the id V + e in row b is that of `drawn[b, e]`.

    Returns:
        `(…, D)`.

    Raises:
        ValueError: glyphs of another shape.

    Example:

    >>> glyphs = np.random.default_rng(0).integers(0, 2, (100, 22, 22))
    >>> embedding = GlyphEmbedding(glyphs, GlyphCharEncoder(output_dim=64))
    >>> embedding(np.array([[4, 5, 0]])).shape
    (1, 3, 64)

    Reference:
        Broscheit et al. 2018, "Learning Distributional Token Representations from Visual Features".
        https://aclanthology.org/W18-3025
    """

    def __init__(self, glyphs: np.ndarray | int, encoder: keras.layers.Layer, **kwargs):
        super().__init__(**kwargs)
        self.autocast = False  # bfloat16 would round ids
        self._drawn = None
        if not isinstance(glyphs, int | np.integer):
            self._drawn = np.asarray(glyphs)
            if self._drawn.ndim != 3 or self._drawn.shape[1:] != (SIZE, SIZE):
                raise ValueError(
                    f"glyphs must have the shape (V, {SIZE}, {SIZE}), not {self._drawn.shape}: "
                    f"draw them with kzoo.text.render_glyphs(characters, size={SIZE})"
                )
            glyphs = len(self._drawn)
        self.vocabulary_size = int(glyphs)
        self.encoder = encoder
        self.output_dim = encoder.output_dim

    def build(self, ids_shape=None):
        V, D = self.vocabulary_size, self.output_dim
        fixed = {"trainable": False, "autocast": False}
        # bool, because TensorFlow cannot send uint8 between processes.
        # The initial value, because Keras may build layers in a scope that drops assignments.
        drawn = "zeros" if self._drawn is None else self._drawn > 0
        self.glyphs = self.add_weight((V, SIZE, SIZE), drawn, "bool", **fixed, name="glyphs")
        self.table = self.add_weight((V, D), "zeros", **fixed, name="table")
        self.baked = self.add_weight((), "zeros", "bool", **fixed, name="baked")
        if not self.encoder.built:
            self.encoder.build((None, SIZE, SIZE))

    def call(self, ids, training: bool | None = None, drawn=None):
        if drawn is not None:
            ids = ops.cast(ids, "int32")
            known = ids < self.vocabulary_size
            others = ops.cast(self.encoder(drawn), self.compute_dtype)  # (B, E, D)
            places = ops.clip(ids - self.vocabulary_size, 0, others.shape[1] - 1)
            others = ops.take_along_axis(others, places[..., None], axis=1)  # (B, S, D)
            return ops.where(known[..., None], self.call(ops.where(known, ids, 0)), others)
        flat = ops.reshape(ops.cast(ids, "int32"), (-1,))  # Keras may have cast them to float
        if training and any(weight.trainable for weight in self.encoder.weights):  # LoRA, too
            self.baked.assign(False)
        if self.encoder.learns(training):
            vectors, moments = self._encode(flat, learning=True)
            self.encoder.update_moments(moments)
        else:
            vectors = ops.cond(
                ops.any(ops.convert_to_tensor(self.baked)),
                lambda: ops.cast(ops.take(self.table, flat, axis=0), self.compute_dtype),
                lambda: self._encode(flat, learning=False)[0],
            )
        return ops.reshape(vectors, (*ops.shape(ids), self.output_dim))

    def bake(self):
        """Return the table `(V, D)` of all characters' vectors; compute it if necessary.

        Until the next training step, calls look up their vectors in it.
        """
        if not self.built:
            self.build()
        if not ops.convert_to_numpy(self.baked):
            glyphs = ops.convert_to_numpy(self.glyphs)
            parts = [
                ops.convert_to_numpy(ops.cast(self.encoder(glyphs[i : i + BAKED_AT_ONCE]), "float32"))
                for i in range(0, len(glyphs), BAKED_AT_ONCE)
            ]
            self.table.assign(np.concatenate(parts))
            self.baked.assign(True)
        return ops.convert_to_tensor(self.table)

    def empty(self):
        """Clear the table. Call this after changing the encoder's weights."""
        if self.built:
            self.baked.assign(False)

    def _encode(self, ids, learning: bool):
        """Return the vectors `(N, D)` of `ids` `(N,)` and the moments used: the batch's if `learning`."""
        N, V = ops.shape(ids)[0], self.vocabulary_size
        counts = ops.segment_sum(ops.ones_like(ids), ids, num_segments=V)
        present = counts > 0
        place = ops.take(ops.cumsum(ops.cast(present, "int32")) - 1, ids)  # index among those present
        numbers = ops.arange(V, dtype="int32")
        distinct = ops.argsort(ops.where(present, numbers, V + numbers))[:N]  # those present come first
        glyphs = ops.take(self.glyphs, distinct, axis=0)
        times = ops.where(ops.any(glyphs, axis=(1, 2)), ops.take(counts, distinct), 0)

        # Compiled code has fixed shapes, so there must be room for N characters. Half of it is usually
        # enough: batches of 2,048 Tatoeba characters have 500 distinct ones, batches of 4,096 have 730. So a
        # branch that rarely runs encodes the second half. The first half is outside a branch, because XLA's
        # convolutions take 10 times as long inside one on a CPU.
        half = (ops.shape(glyphs)[0] + 1) // 2
        features = self.encoder.features(glyphs[:half])
        rest = ops.cond(
            ops.sum(ops.cast(present, "int32")) <= half,
            lambda: ops.zeros_like(features[: ops.shape(glyphs)[0] - half]),
            lambda: self.encoder.features(glyphs[half:]),
        )
        features = ops.concatenate([features, rest])
        vectors, moments = self.encoder.vectors(features, times if learning else None)
        # In half precision, the gradient of `take` would sum a character's occurrences in half precision; on
        # TensorFlow also after the cast, unless the reshape makes it dense first.
        wide = ops.cast(vectors, keras.backend.result_type(vectors.dtype, "float32"))
        wide = ops.reshape(wide, (-1, self.output_dim))
        return ops.cast(ops.take(wide, place, axis=0), self.compute_dtype), moments

    def compute_output_shape(self, ids_shape):
        return (*ids_shape, self.output_dim)

    def get_config(self):
        return {**super().get_config(), "glyphs": self.vocabulary_size}
