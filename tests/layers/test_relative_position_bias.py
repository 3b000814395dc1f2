"""The bias against buckets counted from T5's description, against keras-hub's T5, and in attention."""

import keras
import numpy as np
import pytest
from check_layer import check_layer
from keras import ops
from keras_hub.src.models.t5.t5_multi_head_attention import T5MultiHeadAttention

from kzoo.layers import MultiHeadAttention, RelativePositionBias
from kzoo.layers.relative_position_bias import buckets


def counted(relative: int, num_buckets: int, max_distance: int, two_sided: bool) -> int:
    """Return the bucket of a key at `query + relative`: how many ranges begin at its distance or before.

    Of n buckets for a side, the first n/2 hold one distance each; the others begin at the distances
    n/2 · (2 · max / n)^(j / (n/2)), j = 0 …
    """
    side = num_buckets // 2 if two_sided else num_buckets
    distance = abs(relative) if two_sided else max(-relative, 0)
    ends = [*range(1, side // 2)]
    ends += [side / 2 * (2 * max_distance / side) ** (j / (side / 2)) for j in range(side // 2)]
    bucket = sum(distance >= end - 1e-9 for end in ends)
    return bucket + (side if two_sided and relative > 0 else 0)


@pytest.mark.parametrize("two_sided", [True, False])
@pytest.mark.parametrize(("num_buckets", "max_distance"), [(32, 128), (8, 20), (4, 3)])
def test_buckets_are_t5_s(num_buckets, max_distance, two_sided):
    relative = np.arange(-max_distance, max_distance + 1)
    found = buckets(num_buckets, max_distance, two_sided)
    expected = [counted(r, num_buckets, max_distance, two_sided) for r in relative.tolist()]
    np.testing.assert_array_equal(found, expected)
    peer = T5MultiHeadAttention._relative_position_bucket(
        ops.convert_to_tensor(relative, "int32"), two_sided, num_buckets, max_distance
    )
    np.testing.assert_array_equal(found, ops.convert_to_numpy(peer))


def test_behaves_as_a_layer(random, tmp_path):
    check_layer(
        RelativePositionBias(2), {"inputs": random.normal(size=(2, 5, 8)).astype("float32")}, tmp_path
    )


@pytest.mark.parametrize("two_sided", [True, False])
def test_every_pair_has_its_bucket_s_scalar(two_sided, random):
    layer = RelativePositionBias(3, two_sided=two_sided)
    layer.build((2, 200, 8))
    scalars = random.normal(size=(32, 3)).astype("float32")
    layer.set_weights([scalars])
    found = ops.convert_to_numpy(layer(np.zeros((2, 200, 8), "float32")))
    assert found.shape == (3, 200, 200)
    for query, key in [(0, 0), (0, 1), (5, 4), (9, 1), (10, 29), (199, 0), (0, 199), (150, 23)]:
        np.testing.assert_array_equal(found[:, query, key], scalars[counted(key - query, 32, 128, two_sided)])
    queries, keys = np.array([7, 7], "int32"), np.array([0, 0, 3, 7, 9], "int32")
    step = ops.convert_to_numpy(layer(np.zeros((2, 2, 8), "float32"), queries, keys))
    np.testing.assert_array_equal(step, found[:, queries][..., keys])
    assert layer(keras.Input((2, 8)), queries, keys).shape == step.shape


def test_scores_are_the_product_and_the_bias(random):
    """q_m · k_n / √d + b: the weights of attention against NumPy."""
    x = random.normal(size=(2, 6, 8)).astype("float32")
    attention, bias = MultiHeadAttention(2, 4), RelativePositionBias(2)
    attention(x, position_bias=bias(x))
    scalars = random.normal(size=(32, 2))
    bias.set_weights([scalars])
    q, k, _ = (np.moveaxis(part.reshape(2, 6, 2, 4), 2, 1) for part in np.split(x @ attention.kernel, 3, -1))
    scores = np.einsum("bhmd,bhnd->bhmn", q, k) / 2
    for m in range(6):
        for n in range(6):
            scores[:, :, m, n] += scalars[counted(n - m, 32, 128, True)]
    expected = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    _, weights = attention(x, position_bias=bias(x), return_attention_scores=True)
    np.testing.assert_allclose(ops.convert_to_numpy(weights), expected, atol=1e-6)


def test_positions_may_have_numpy_s_own_integers():
    x, layer = np.zeros((1, 5, 8), "float32"), RelativePositionBias(2)
    found = layer(x, key_positions=np.arange(5))
    np.testing.assert_array_equal(ops.convert_to_numpy(found), ops.convert_to_numpy(layer(x)))


@pytest.mark.skipif(keras.backend.backend() == "torch", reason="trains with TensorFlow and JAX")
def test_half_precision_sums_the_gradients_of_distant_pairs_in_float32():
    """In bfloat16, a sum of thousands of equal numbers would stop at the 256th."""
    moved = {}
    for dtype in ("float32", "mixed_bfloat16"):
        inputs = keras.Input((256, 4))
        layer = RelativePositionBias(2, dtype=dtype)
        model = keras.Model(inputs, ops.expand_dims(layer(inputs), 0))
        layer.set_weights([np.zeros((32, 2))])
        model.compile(keras.optimizers.SGD(1.0), lambda true, found: ops.sum(ops.cast(found, "float32")))
        model.train_on_batch(np.zeros((1, 256, 4)), np.zeros((1, 1)))
        (moved[dtype],) = layer.get_weights()
    np.testing.assert_allclose(moved["mixed_bfloat16"], moved["float32"], rtol=0.02)
