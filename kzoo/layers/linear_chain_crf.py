"""A linear-chain conditional random field: likelihood and best tag sequence."""

import keras
from keras import ops

from kzoo.layers.layer import Layer


@keras.saving.register_keras_serializable("kzoo")
class LinearChainCRF(Layer):
    """Linear-chain conditional random field.

        score(y) = start[y_1] + Σ_t potentials[t, y_t] + Σ_t transitions[y_t, y_t+1] + end[y_n]
        p(y) = exp(score(y)) / Σ_y' exp(score(y'))

    Args:
        num_tags: int. C.
        **kwargs: other arguments of `keras.layers.Layer`.

    Call arguments:
        potentials: `(B, L, C)`. The score of each tag at each position.
        mask: bool `(B, L)`. `False` at padding, which must be at the end and is ignored.

    Returns:
        int32 `(B, L)`: the most likely sequence of tags (Viterbi); 0 at masked positions.

    Raises:
        ValueError: `num_tags` below 1; potentials for a different number of tags.

    Example:

    >>> crf = LinearChainCRF(num_tags=3)
    >>> potentials = keras.random.normal((2, 5, 3))
    >>> crf(potentials).shape
    (2, 5)
    >>> crf.negative_log_likelihood(potentials, np.zeros((2, 5), "int32")).shape
    (2,)

    Reference:
        Lafferty et al. 2001, "Conditional Random Fields: Probabilistic Models for Segmenting and Labeling
        Sequence Data".
    """

    def __init__(self, num_tags: int, **kwargs):
        # Computed in float32: above 2,048, half precision cannot represent differences of 1.
        super().__init__(autocast=False, **kwargs)
        self.supports_jit = keras.backend.backend() != "tensorflow"  # whose XLA cannot differentiate `scan`
        if num_tags < 1:
            raise ValueError(f"num_tags must be at least 1, not {num_tags}")
        self.num_tags = num_tags
        # Not in `build`: the likelihood may be needed before the first call.
        single = {"dtype": "float32", "autocast": False}
        self.transitions = self.add_weight((num_tags, num_tags), "zeros", **single, name="transitions")
        self.start = self.add_weight((num_tags,), "zeros", **single, name="start")
        self.end = self.add_weight((num_tags,), "zeros", **single, name="end")
        self.built = True

    def call(self, potentials, mask=None):
        mask, places = self._by_place(potentials, mask)
        potentials = places[..., : self.num_tags]
        itself = ops.zeros_like(potentials[0], dtype="int32") + ops.arange(self.num_tags, dtype="int32")

        def forward(state, place):
            scores, _ = state
            potential, inside = place[:, : self.num_tags], place[:, self.num_tags :] > 0
            through = scores[:, :, None] + self.transitions  # (B, C before, C after)
            best = ops.max(through, axis=1) + potential
            before = ops.cast(ops.argmax(through, axis=1), "int32")
            state = ops.where(inside, best, scores), ops.where(inside, before, itself)
            return state, state

        def backward(tag, before):
            tag = ops.take_along_axis(before, tag[:, None], axis=1)[:, 0]
            return tag, tag

        first = self.start + potentials[0], itself
        (scores, _), (_, before) = ops.scan(forward, first, places[1:])
        last = ops.cast(ops.argmax(scores + self.end, axis=-1), "int32")  # (B,)
        _, tags = ops.scan(backward, last, before, reverse=True)  # (L, B)
        return ops.where(mask, ops.transpose(tags), 0)

    def negative_log_likelihood(self, potentials, tags, mask=None):
        """Return -log p(tags) of each sequence, `(B,)`, in float32; 0 for a fully masked sequence.

        Args:
            potentials: `(B, L, C)`.
            tags: int `(B, L)`; any value at masked positions.
            mask: bool `(B, L)`. `False` at padding, which must be at the end.
        """
        if mask is not None:
            tags = ops.where(mask, tags, 0)  # torch refuses invalid tag numbers, even at masked positions
        chosen = ops.one_hot(tags, self.num_tags, dtype="float32")  # (B, L, C)
        mask, places = self._by_place(potentials, mask, chosen)

        def split(place):
            return place[:, : self.num_tags], place[:, self.num_tags, None] > 0, place[:, -self.num_tags :]

        def forward(state, place):
            totals, score, previous = state
            potential, inside, tag = split(place)
            through = ops.logsumexp(totals[:, :, None] + self.transitions, axis=1) + potential
            # Not a product of matrices, which a GPU would round.
            left = ops.sum(previous[:, :, None] * self.transitions, axis=1)
            gain = ops.sum(tag * (potential + left), axis=-1, keepdims=True)
            state = (
                ops.where(inside, through, totals),
                ops.where(inside, score + gain, score),
                ops.where(inside, tag, previous),
            )
            return state, state

        potential, _, tag = split(places[0])
        totals = self.start + potential
        first = totals, ops.sum(tag * totals, axis=-1, keepdims=True), tag
        (totals, score, last), _ = ops.scan(forward, first, places[1:])
        score = score[:, 0] + ops.sum(last * self.end, axis=-1)
        loss = ops.logsumexp(totals + self.end, axis=-1) - score
        return ops.where(mask[:, 0], loss, 0)

    def _by_place(self, potentials, mask, *others):
        """Return the mask `(B, L)`, and all arguments in one time-major tensor `(L + 1, B, features)`.

        One tensor, because Keras's `scan` over several tensors of unknown length fails on TensorFlow. A
        masked position is appended, because on torch `scan` fails for zero steps, as with L = 1.
        """
        potentials = ops.cast(potentials, "float32")
        self._check_tags(potentials.shape)
        mask = ops.ones_like(potentials[..., 0], dtype="bool") if mask is None else ops.cast(mask, "bool")
        inside = ops.cast(mask, "float32")[..., None]
        places = ops.pad(ops.concatenate([potentials, inside, *others], axis=-1), ((0, 0), (0, 1), (0, 0)))
        return mask, ops.transpose(places, (1, 0, 2))

    def _check_tags(self, shape):
        if shape[-1] not in (None, self.num_tags):
            raise ValueError(f"potentials of {shape[-1]} tags, but num_tags is {self.num_tags}")

    def compute_output_shape(self, potentials_shape):
        return tuple(potentials_shape[:-1])

    def compute_output_spec(self, potentials, mask=None):
        self._check_tags(potentials.shape)
        return keras.KerasTensor(potentials.shape[:-1], dtype="int32")
