"""Dropout with cheap random numbers."""

import keras
from keras import ops

from kzoo.layers.layer import Layer


@keras.saving.register_keras_serializable("kzoo")
class Dropout(Layer):
    """Dropout: sets each number to 0 with probability `rate` and divides the others by 1 - `rate`.

    `keras.layers.Dropout` draws a random number for every element, which took a fifth of a small
    Transformer's training step on a CPU. This layer hashes the element's index and a key that changes with
    every call; XLA fuses the hash with the loop that drops elements. A step took 0.79 of the time, or 1.01 of
    a step without dropout. The same seed drops the same elements on every backend. For 4 million elements,
    TensorFlow takes 4 ms with XLA, 5 ms in a graph with compiled element-wise operations and 34 ms in a plain
    graph; `tf.random.stateless_uniform` takes 1,800, 21 and 25 ms.

    Args:
        rate: float, at least 0 and less than 1; exact to 2^-32.
        seed: int. By default drawn from Python's `random`, which `keras.utils.set_random_seed` seeds.
        **kwargs: other arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: of any shape, with fewer than 2^31 elements.
        training: bool. Whether dropout is on. Defaults to `False`.

    Returns:
        A tensor of the same shape as `inputs`.

    Raises:
        ValueError: a rate outside [0, 1).

    Example:

    >>> Dropout(0.5)(np.ones(1000), training=True).shape
    (1000,)

    Reference:
        Srivastava et al. 2014, "Dropout: A Simple Way to Prevent Neural Networks from Overfitting".
        https://jmlr.org/papers/v15/srivastava14a.html
    """

    def __init__(self, rate: float, seed: int | None = None, **kwargs):
        super().__init__(**kwargs)
        if not 0 <= rate < 1:
            raise ValueError(f"rate must be at least 0 and less than 1, not {rate}")
        self.rate = rate
        self.seed = seed
        if rate > 0:
            self.seed_generator = keras.random.SeedGenerator(seed)
        self.built = True  # for any input shape: Keras quantizes only models whose layers are built

    def call(self, inputs, training=False):
        if not training or self.rate == 0:
            return inputs
        seed = ops.cast(self.seed_generator.next(), "int32")  # (seed, call counter)
        first_key = scramble(seed[0])
        second_key = scramble(ops.bitwise_xor(seed[1], first_key))
        places = ops.reshape(ops.arange(ops.size(inputs), dtype="int32"), ops.shape(inputs))
        numbers = scramble(ops.bitwise_xor(scramble(ops.bitwise_xor(places, first_key)), second_key))
        lowest_kept = min(round(self.rate * 2**32), 2**32 - 1) - 2**31  # as an int32
        return ops.where(numbers >= lowest_kept, inputs / (1 - self.rate), 0)


def scramble(x):
    """Hash int32 numbers one-to-one: each bit of the result depends on every bit of `x`.

    Constants: Wellons 2018, "Prospecting for Hash Functions" (his `lowbias32`).
    https://nullprogram.com/blog/2018/07/31/
    """
    x = ops.bitwise_xor(x, high_bits(x, 16)) * 0x7FEB352D
    x = ops.bitwise_xor(x, high_bits(x, 17)) * (0x846CA68B - 2**32)
    return ops.bitwise_xor(x, high_bits(x, 16))


def high_bits(x, count: int):
    """Return the highest `count` bits of int32 `x`, as a nonnegative number."""
    return ops.bitwise_and(ops.right_shift(x, 32 - count), 2**count - 1)
