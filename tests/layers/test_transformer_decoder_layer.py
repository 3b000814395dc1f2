"""The decoder layer: causal, blind to padding, and step by step what it is at once."""

import keras
import numpy as np
import pytest
from check_layer import assert_ignores_padding, check_layer
from keras import ops

from kzoo.layers import RoPEEmbedding, TransformerDecoderLayer

MASK = np.array([[1] * 6, [1, 1, 1, 1, 0, 0]], bool)


@pytest.fixture
def source_and_target(random):
    return random.normal(size=(2, 6, 8)).astype("float32"), random.normal(size=(2, 5, 8)).astype("float32")


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_behaves_as_a_layer(norm, source_and_target, tmp_path):
    source, target = source_and_target
    inputs = {"inputs": target, "source": source, "source_mask": MASK, "inputs_mask": MASK[:, :0:-1]}
    check_layer(TransformerDecoderLayer(2, 16, norm=norm), inputs, tmp_path)


def test_sees_no_later_word(source_and_target):
    source, target = source_and_target
    layer = TransformerDecoderLayer(2, 16)
    changed = target.copy()
    changed[:, 3:] += 5
    before, after = (ops.convert_to_numpy(layer(x, source)) for x in (target, changed))
    np.testing.assert_allclose(before[:, :3], after[:, :3], atol=1e-6)
    assert np.abs(before[:, 3:] - after[:, 3:]).max() > 0.1


def test_ignores_padding_of_the_source(source_and_target):
    source, target = source_and_target
    layer = TransformerDecoderLayer(2, 16)
    assert_ignores_padding(lambda s, m: layer(target, s, source_mask=m), source, MASK, outputs_masked=False)


def test_the_masks_of_embeddings_hold(random):
    """Padding on the left, which the causal mask lets later words see, and on the right of the source."""
    source, target = (
        np.array([[3, 1, 4], [5, 2, 0]], "int32"),
        np.array([[6, 7, 8, 2], [0, 0, 4, 2]], "int32"),
    )
    embedding = keras.layers.Embedding(9, 8, mask_zero=True, embeddings_initializer="normal")
    layer = TransformerDecoderLayer(2, 16)
    found = ops.convert_to_numpy(layer(embedding(target), embedding(source)))
    short = layer(*(ops.convert_to_numpy(embedding(ids)) for ids in (target[1:, 2:], source[1:, :2])))
    np.testing.assert_allclose(found[1:, 2:], ops.convert_to_numpy(short), atol=1e-5)


@pytest.mark.parametrize("rotary", [None, RoPEEmbedding()])
def test_step_by_step_equals_at_once(rotary, source_and_target):
    """Two hypotheses share the cache; each sees its own words alone."""
    source, target = source_and_target
    hypotheses = np.stack([target, target[::-1]], axis=2)  # (B, T, K, D)
    layer = TransformerDecoderLayer(2, 16, rotary=rotary)
    at_once = np.stack(
        [ops.convert_to_numpy(layer(hypotheses[:, :, k], source, source_mask=MASK)) for k in range(2)], axis=2
    )
    source_cache = layer.source_cache(source)
    cache = (np.zeros((2, 2, 4, 10), "float32"), np.zeros((2, 2, 10, 4), "float32"))
    ancestry = np.zeros((2, 1, 2, 10), bool)
    for step in range(5):
        ancestry[:, :, [0, 1], [2 * step, 2 * step + 1]] = True
        positions = np.array([step, step], "int32")
        words, cache = layer.decode_step(
            hypotheses[:, step], source_cache, MASK, cache, 2 * step, ancestry, positions
        )
        np.testing.assert_allclose(ops.convert_to_numpy(words), at_once[:, step], atol=1e-5)
