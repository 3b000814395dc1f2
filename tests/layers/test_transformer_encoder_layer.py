"""The encoder layer against its parts in the order of the paper, and its mask."""

import keras
import numpy as np
import pytest
from check_layer import assert_ignores_padding, check_layer
from keras import ops
from test_transformer_layer import normalized

from kzoo.layers import TransformerEncoderLayer


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_behaves_as_a_layer(norm, random, tmp_path):
    x, mask = random.normal(size=(2, 5, 8)).astype("float32"), np.array([[1] * 5, [1, 1, 1, 0, 0]], bool)
    check_layer(TransformerEncoderLayer(2, 16, norm=norm), {"inputs": x, "mask": mask}, tmp_path)


def test_post_norm_is_vaswani_s_order(random):
    x = random.normal(size=(2, 5, 8)).astype("float32")
    layer = TransformerEncoderLayer(2, 16, norm="post")
    layer(x)
    attended = normalized(x + ops.convert_to_numpy(layer.attention(x)))
    expected = normalized(attended + ops.convert_to_numpy(layer.feedforward(attended)))
    np.testing.assert_allclose(ops.convert_to_numpy(layer(x)), expected, atol=1e-4)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_with_an_image_behaves_as_a_layer(norm, random, tmp_path):
    x, image = (random.normal(size=shape).astype("float32") for shape in ((2, 5, 8), (2, 3, 6)))
    mask = np.array([[1] * 5, [1, 1, 1, 0, 0]], bool)
    inputs = {"inputs": x, "image": image, "mask": mask}
    check_layer(TransformerEncoderLayer(2, 16, norm=norm), inputs, tmp_path)


def test_the_image_stands_between_attention_and_feedforward(random):
    x, image = (random.normal(size=shape).astype("float32") for shape in ((2, 5, 8), (2, 3, 6)))
    layer = TransformerEncoderLayer(2, 16, norm="post")
    result = ops.convert_to_numpy(layer(x, image=image))
    attended = normalized(x + ops.convert_to_numpy(layer.attention(x)))
    regions = ops.convert_to_numpy(layer.image_attention(attended, image))  # (B, R, D)
    shown = normalized(attended + regions.mean(axis=1)[:, None])
    expected = normalized(shown + ops.convert_to_numpy(layer.feedforward(shown)))
    np.testing.assert_allclose(result, expected, atol=1e-4)


def test_ignores_padding(random):
    x, mask = random.normal(size=(2, 5, 8)).astype("float32"), np.array([[1] * 5, [1, 1, 1, 0, 0]], bool)
    layer = TransformerEncoderLayer(2, 16)
    assert_ignores_padding(lambda x, m: layer(x, mask=m), x, mask, outputs_masked=True)


@pytest.mark.parametrize("shape", [(6,), (3, 6)], ids=["whole", "regions"])
def test_an_embedding_s_mask_holds_beside_an_image(shape, random):
    ids = np.array([[3, 1, 4, 1, 5], [2, 6, 0, 0, 0]], "int32")
    embedded = keras.layers.Embedding(9, 8, mask_zero=True, embeddings_initializer="normal")(ids)
    image, layer = random.normal(size=(2, *shape)).astype("float32"), TransformerEncoderLayer(2, 16)
    found = ops.convert_to_numpy(layer(embedded, image=image))
    short = layer(ops.convert_to_numpy(embedded)[1:, :2], image=image[1:])  # without the padding
    np.testing.assert_allclose(found[1:, :2], ops.convert_to_numpy(short), atol=1e-5)
    other = np.ones((2, 5), bool)  # an explicit mask goes before the embedding's
    expected = layer(ops.convert_to_numpy(embedded), image=image)
    np.testing.assert_allclose(
        ops.convert_to_numpy(layer(embedded, image=image, mask=other)),
        ops.convert_to_numpy(expected),
        atol=1e-5,
    )


def test_an_image_is_given_always_or_never(random):
    x, image = (random.normal(size=shape).astype("float32") for shape in ((2, 5, 8), (2, 6)))
    text, pictures = (TransformerEncoderLayer(2, 16, name=name) for name in ("text", "pictures"))
    text(x), pictures(x, image=image)
    with pytest.raises(ValueError, match="text "):
        text(x, image=image)
    with pytest.raises(ValueError, match="pictures "):
        pictures(x)


def test_dropout_only_in_training(random):
    x = random.normal(size=(2, 5, 8)).astype("float32")
    layer = TransformerEncoderLayer(2, 16, dropout=0.5)
    calm = ops.convert_to_numpy(layer(x))
    np.testing.assert_array_equal(ops.convert_to_numpy(layer(x, training=False)), calm)
    assert np.abs(ops.convert_to_numpy(layer(x, training=True)) - calm).max() > 0.1


@keras.saving.register_keras_serializable("test")
class Passing(TransformerEncoderLayer):
    def call(self, inputs, **kwargs):
        return super().call(inputs, **kwargs)


@keras.saving.register_keras_serializable("test")
class PassingAll(TransformerEncoderLayer):
    def call(self, *args, **kwargs):
        return super().call(*args, **kwargs)


@keras.saving.register_keras_serializable("test")
class TextOnly(TransformerEncoderLayer):
    def call(self, inputs, mask=None, training=None):
        return super().call(inputs, mask=mask, training=training)


@pytest.mark.parametrize("kind", [Passing, PassingAll, TextOnly])
@pytest.mark.parametrize("shown", [False, True])
def test_a_subclass_may_override_call(kind, shown, random, tmp_path):
    x, mask = random.normal(size=(2, 5, 8)).astype("float32"), np.array([[1] * 5, [1, 1, 1, 0, 0]], bool)
    inputs = {"inputs": x, "mask": mask}
    if shown:
        inputs["image"] = random.normal(size=(2, 3, 6)).astype("float32")
    layer, other = kind(2, 16, dropout=0.5), TransformerEncoderLayer(2, 16, dropout=0.5)
    if shown and kind is TextOnly:
        with pytest.raises(TypeError, match="image"):
            layer(**inputs)
        return
    check_layer(layer, inputs, tmp_path)
    other(**inputs)
    other.set_weights(layer.get_weights())
    found, expected = (ops.convert_to_numpy(one(**inputs)) for one in (layer, other))
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert (ops.convert_to_numpy(layer(**inputs, training=True)) != found).any()
