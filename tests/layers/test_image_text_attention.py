"""Image-text attention against NumPy written from Eq. 3, for whole pictures and for regions."""

import keras
import numpy as np
import pytest
from check_layer import assert_ignores_padding, check_layer
from keras import ops

from kzoo.layers import ImageTextAttention

MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]], bool)
FORMS = {"whole": (12,), "regions": (4, 12)}


def attention(layer, words, regions):
    """Return Eq. 3 of one sentence `(n, D)` and one picture `(R, D_img)`, head by head, and the weights."""
    H, d = layer.num_heads, layer.key_dim
    query, query_bias, text, text_bias, projection, offset = layer.get_weights()
    Q, keys_and_values = regions @ query + query_bias, words @ text + text_bias
    K, V = keys_and_values[:, : H * d], keys_and_values[:, H * d :]
    heads, weights = [], []
    for head in range(H):
        part = slice(head * d, (head + 1) * d)
        A = np.exp(Q[:, part] @ K[:, part].T / np.sqrt(d))
        weights.append(A / A.sum(1, keepdims=True))
        heads.append(weights[-1] @ V[:, part])
    return np.concatenate(heads, axis=1) @ projection + offset, np.array(weights)


def made(random, shape, **settings):
    """Return a layer with random weights, biases too, and a text and an image for `MASK`."""
    layer = ImageTextAttention(num_heads=2, key_dim=3, **settings)
    text = random.normal(size=(3, 5, 8)).astype("float32")
    image = random.normal(size=(3, *shape)).astype("float32")
    layer(text, image)
    layer.set_weights([random.normal(size=w.shape) * 0.3 for w in layer.get_weights()])
    return layer, text, image


@pytest.mark.parametrize("shape", FORMS.values(), ids=FORMS)
def test_behaves_as_a_layer(shape, random, tmp_path):
    text = random.normal(size=(3, 5, 8)).astype("float32")
    image = random.normal(size=(3, *shape)).astype("float32")
    inputs = {"text": text, "image": image}
    check_layer(ImageTextAttention(2, 4), inputs, tmp_path)
    check_layer(ImageTextAttention(2, 4), {**inputs, "text_mask": MASK}, tmp_path)


@pytest.mark.parametrize("shape", FORMS.values(), ids=FORMS)
def test_equals_the_equation(shape, random):
    """Each sentence on its own, without its padding."""
    layer, text, image = made(random, shape)
    output, scores = layer(text, image, text_mask=MASK, return_attention_scores=True)
    output, scores = ops.convert_to_numpy(output), ops.convert_to_numpy(scores)
    R = shape[0] if len(shape) == 2 else 1
    assert (output.shape, scores.shape) == ((3, R, 8), (3, 2, R, 5))
    for i in range(2):
        expected, weights = attention(layer, text[i][MASK[i]], image[i].reshape(R, 12))
        np.testing.assert_allclose(output[i], expected, atol=1e-5)
        np.testing.assert_allclose(scores[i][..., MASK[i]], weights, atol=1e-6)
        np.testing.assert_array_equal(scores[i][..., ~MASK[i]], 0)
    unmasked = ops.convert_to_numpy(layer(text, image))
    np.testing.assert_allclose(unmasked[1], attention(layer, text[1], image[1].reshape(R, 12))[0], atol=1e-5)


@pytest.mark.parametrize("shape", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_a_row_without_words_is_finite(dtype, shape, random):
    layer, text, image = made(random, shape, dtype=dtype)
    output, scores = layer(text, image, text_mask=MASK, return_attention_scores=True)
    assert np.isfinite(ops.convert_to_numpy(ops.cast(output, "float32"))).all()
    np.testing.assert_allclose(ops.convert_to_numpy(ops.cast(scores, "float32"))[2], 0.2, rtol=0.01)


def test_ignores_padding(random):
    layer, text, image = made(random, FORMS["regions"])
    assert_ignores_padding(
        lambda x, m: layer(x, image[:2], text_mask=m), text[:2], MASK[:2], outputs_masked=False
    )


def test_an_embeddings_mask_is_taken_and_ends_here(random):
    layer, _, image = made(random, FORMS["regions"])
    ids = np.array([[3, 1, 4, 1, 5], [2, 6, 0, 0, 0], [0, 0, 0, 0, 0]], "int32")
    embedded = keras.layers.Embedding(9, 8, mask_zero=True)(ids)
    taken = layer(embedded, image)
    given = layer(ops.convert_to_numpy(embedded), image, text_mask=MASK)
    np.testing.assert_array_equal(ops.convert_to_numpy(taken), ops.convert_to_numpy(given))
    assert getattr(taken, "_keras_mask", None) is None


def test_dropout_works_in_training_only(random):
    layer, text, image = made(random, FORMS["whole"], dropout=0.5)
    still, again = (ops.convert_to_numpy(layer(text, image)) for _ in range(2))
    np.testing.assert_array_equal(still, again)
    assert (ops.convert_to_numpy(layer(text, image, training=True)) != still).any()


def test_scores_can_be_asked_for_in_a_functional_model(random):
    layer, text, image = made(random, FORMS["regions"])
    inputs = keras.Input((5, 8)), keras.Input((4, 12))
    output, scores = layer(*inputs, return_attention_scores=True)
    assert (output.shape, scores.shape) == ((None, 4, 8), (None, 2, 4, 5))
    found = keras.Model(inputs, [output, scores])([text, image])
    expected = layer(text, image, return_attention_scores=True)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(ops.convert_to_numpy(x), ops.convert_to_numpy(y), atol=1e-6)
