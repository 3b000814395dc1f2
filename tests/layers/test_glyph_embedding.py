"""The glyph embedding against its encoder on every token; baked and unbaked; in training and after."""

import keras
import numpy as np
import pytest
from check_layer import check_layer
from keras import ops

from kzoo.layers import GlyphCharEncoder, GlyphEmbedding

V = 40
TABLE_1 = ("cnn_fc_relu", "cnn_softmax_fc", "cnn_relu", "fc_1", "fc_2")


@pytest.fixture
def glyphs(random):
    drawn = (random.random((V, 22, 22)) > 0.7).astype("uint8")
    drawn[:4] = 0  # special tokens
    return drawn


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_ids_may_be_of_any_type(dtype, glyphs):
    """Keras makes floats of ids that come into a `Sequential`."""
    embedding, ids = make(glyphs), np.array([[5, 7]])
    found, expected = (ops.convert_to_numpy(embedding(x)) for x in (ids.astype(dtype), ids))
    np.testing.assert_array_equal(found, expected)


def test_half_precision_does_not_round_ids(random):
    inputs = keras.Input((None,))  # float32, Keras's default
    embedding = GlyphEmbedding(random.random((600, 22, 22)) > 0.7, GlyphCharEncoder(4, "fc_1"))
    embedding.build()
    half = {"dtype": "mixed_bfloat16"}
    narrow = GlyphEmbedding(600, GlyphCharEncoder(4, "fc_1", **half), **half)
    model = keras.Model(inputs, narrow(inputs))
    narrow.set_weights(embedding.get_weights())
    ids = np.arange(500, 600)[None]
    expected = ops.convert_to_numpy(embedding(ids))
    np.testing.assert_allclose(ops.convert_to_numpy(model(ids)).astype("float32"), expected, atol=0.05)


def test_the_dtype_is_the_layer_s_own(glyphs):
    ids = np.array([[5, 7]])
    for own, encoder in (("mixed_bfloat16", "float32"), ("float32", "mixed_bfloat16")):
        embedding = GlyphEmbedding(glyphs, GlyphCharEncoder(4, "fc_1", dtype=encoder), dtype=own)
        found = [embedding(ids), embedding(ids, training=True)]
        embedding.bake()
        found.append(embedding(ids))
        assert {keras.backend.standardize_dtype(x.dtype) for x in found} == {embedding.compute_dtype}


def make(glyphs, architecture="cnn_fc_relu", dim=6):
    embedding = GlyphEmbedding(glyphs, GlyphCharEncoder(dim, architecture, dim))
    embedding.build()
    return embedding


def test_a_model_that_keras_builds_by_tracing_has_the_glyphs(glyphs):
    """It does so in a scope that drops assignments."""

    class Classifier(keras.Model):
        def __init__(self):
            super().__init__()
            self.embedding = GlyphEmbedding(glyphs, GlyphCharEncoder(4, "fc_1"))

        def call(self, ids):
            return self.embedding(ids)

    model = Classifier()
    model(np.array([[5, 7]]))
    np.testing.assert_array_equal(ops.convert_to_numpy(model.embedding.glyphs), glyphs > 0)


def test_behaves_as_a_layer(glyphs, tmp_path):
    check_layer(make(glyphs), {"ids": VARIED}, tmp_path)


def test_a_size_may_be_numpy_s():
    encoder = GlyphCharEncoder(4, "fc_1")
    configs = [GlyphEmbedding(size, encoder, name="glyphs").get_config() for size in (V, np.int64(V))]
    assert configs[0] == configs[1] and type(configs[1]["glyphs"]) is int


# Few distinct characters, and more than a third of the tokens.
REPEATED = np.array([[5, 6, 5, 5, 2, 0], [6, 6, 7, 5, 3, 0]], "int32")
VARIED = np.arange(4, 34, dtype="int32").reshape(3, 10)


@pytest.mark.parametrize("architecture", TABLE_1)
@pytest.mark.parametrize("ids", [REPEATED, VARIED], ids=["repeated", "varied"])
def test_training_equals_the_encoder_on_every_token(architecture, ids, glyphs):
    embedding = make(glyphs, architecture)
    peer = GlyphCharEncoder(6, architecture, 6)
    peer.build((None, 22, 22))
    peer.set_weights(embedding.encoder.get_weights())
    expected = ops.convert_to_numpy(peer(glyphs[ids], training=True, mask=ids > 3))
    np.testing.assert_allclose(ops.convert_to_numpy(embedding(ids, training=True)), expected, atol=1e-5)
    for one, other in zip(embedding.encoder.get_weights(), peer.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_padding_does_not_change_the_statistics(glyphs):
    one, other = make(glyphs), make(glyphs)
    other.set_weights(one.get_weights())
    padded = np.pad(VARIED, ((0, 2), (0, 7)))
    np.testing.assert_allclose(
        ops.convert_to_numpy(other(padded, training=True))[:3, :10],
        ops.convert_to_numpy(one(VARIED, training=True)),
        atol=1e-5,
    )
    for name in ("features_norm", "output_norm"):
        for a, b in zip(getattr(one.encoder, name), getattr(other.encoder, name), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.parametrize("architecture", TABLE_1)
def test_baked_equals_unbaked(architecture, glyphs):
    embedding = make(glyphs, architecture)
    embedding(VARIED, training=True)
    unbaked = ops.convert_to_numpy(embedding(VARIED))
    table = ops.convert_to_numpy(embedding.bake())
    assert table.shape == (V, 6)
    np.testing.assert_allclose(table[VARIED], unbaked, atol=1e-5)
    np.testing.assert_array_equal(ops.convert_to_numpy(embedding(VARIED)), table[VARIED])


def test_an_emptied_table_is_baked_anew():
    embedding = GlyphEmbedding(np.eye(22)[None].repeat(3, axis=0), GlyphCharEncoder(4, "fc_1"))
    first = ops.convert_to_numpy(embedding.bake())
    embedding.encoder.features_map.kernel.assign(2 * np.array(embedding.encoder.features_map.kernel))
    np.testing.assert_array_equal(ops.convert_to_numpy(embedding.bake()), first)
    embedding.empty()
    assert np.abs(ops.convert_to_numpy(embedding.bake()) - first).max() > 1e-3


def test_training_empties_the_table(glyphs, random, tmp_path):
    ids = keras.Input((None,), dtype="int32")
    embedding = make(glyphs)
    model = keras.Model(ids, embedding(ids))
    compiled = keras.backend.backend() != "torch"  # whose compiler needs one of C++
    model.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse", jit_compile=compiled)
    table = ops.convert_to_numpy(embedding.bake())
    before = embedding.encoder.get_weights()
    model.train_on_batch(VARIED, random.normal(size=(3, 10, 6)))
    assert all((a != b).any() for a, b in zip(before, embedding.encoder.get_weights(), strict=True))
    trained = model.predict_on_batch(VARIED)
    expected = ops.convert_to_numpy(embedding.encoder(glyphs[VARIED]))
    np.testing.assert_allclose(trained, expected, atol=1e-5)
    assert np.abs(trained - table[VARIED]).max() > 1e-3

    # A loaded model needs neither font nor glyphs.
    embedding.bake()
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(ops.convert_to_numpy(loaded(VARIED)), trained, atol=1e-5)


@pytest.mark.parametrize("architecture", TABLE_1)
def test_a_character_never_seen_in_training_has_a_vector(architecture, glyphs):
    embedding = make(glyphs, architecture)
    embedding(VARIED, training=True)
    unseen, blank = ops.convert_to_numpy(embedding(np.array([V - 1, 0])))
    assert np.isfinite(unseen).all() and (unseen != blank).any()


def test_a_fixed_encoder_serves_its_table_in_training(glyphs):
    embedding = make(glyphs)
    table = ops.convert_to_numpy(embedding.bake())
    embedding.trainable = False
    np.testing.assert_array_equal(ops.convert_to_numpy(embedding(VARIED, training=True)), table[VARIED])
    assert int(ops.convert_to_numpy(embedding.baked)) == 1


def test_a_fixed_encoder_with_lora_learns_after_its_table_was_used(glyphs, random):
    ids = keras.Input((None,), dtype="int32")
    embedding = make(glyphs)
    model = keras.Model(ids, embedding(ids))
    embedding.trainable = False  # as keras-hub's `enable_lora` does it
    embedding.encoder.output_map.trainable = True
    embedding.encoder.output_map.enable_lora(2)
    model.compile(keras.optimizers.SGD(0.1), "mse", jit_compile=keras.backend.backend() != "torch")
    table = ops.convert_to_numpy(embedding.bake())
    for _ in range(2):  # at first one of the two factors is zero
        model.train_on_batch(VARIED, random.normal(size=(3, 10, 6)))
    trained = model.predict_on_batch(VARIED)
    assert np.abs(trained - table[VARIED]).max() > 1e-3
    expected = ops.convert_to_numpy(embedding.encoder(glyphs[VARIED]))
    np.testing.assert_allclose(trained, expected, atol=1e-5)


def test_a_configuration_and_weights_make_it_again(glyphs):
    embedding = make(glyphs)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(embedding))
    again.set_weights(embedding.get_weights())
    np.testing.assert_allclose(
        ops.convert_to_numpy(again(VARIED)), ops.convert_to_numpy(embedding(VARIED)), atol=1e-6
    )
    assert again.get_config() == embedding.get_config()


def test_half_precision_is_near(glyphs):
    embedding = make(glyphs)
    half = GlyphEmbedding(
        V, GlyphCharEncoder(6, num_features=6, dtype="mixed_bfloat16"), dtype="mixed_bfloat16"
    )
    half.build()
    half.set_weights(embedding.get_weights())
    expected = ops.convert_to_numpy(embedding(VARIED))
    half.bake()
    output = half(VARIED)
    assert keras.backend.standardize_dtype(output.dtype) == "bfloat16"
    np.testing.assert_allclose(ops.convert_to_numpy(ops.cast(output, "float32")), expected, atol=0.1)


@pytest.mark.skipif(keras.backend.backend() == "torch", reason="trains with TensorFlow and JAX")
@pytest.mark.parametrize("architecture", ["cnn_softmax_fc", "fc_1", "fc_2"])
def test_half_precision_sums_the_gradients_of_a_frequent_character_in_float32(architecture, glyphs):
    """In bfloat16, a sum of 2,048 equal numbers would stop at the 256th."""
    ids = np.where(np.arange(4096) % 2, 5, np.arange(4096) % (V - 4) + 4).reshape(64, 64)
    moved, weights = {}, make(glyphs, architecture).get_weights()
    for dtype in ("float32", "mixed_bfloat16"):
        embedding = GlyphEmbedding(V, GlyphCharEncoder(6, architecture, 6, dtype=dtype), dtype=dtype)
        inputs = keras.Input((64,), dtype="int32")
        model = keras.Model(inputs, embedding(inputs))
        embedding.set_weights(weights)
        before = [ops.convert_to_numpy(weight) for weight in embedding.trainable_weights]
        model.compile(
            keras.optimizers.SGD(1.0),
            lambda true, found: ops.mean(ops.square(ops.cast(found, "float32") + 3)),
            jit_compile=False,
        )
        model.train_on_batch(ids, np.zeros((64, 64, 6)))
        pairs = zip(embedding.trainable_weights, before, strict=True)
        moved[dtype] = np.concatenate([np.ravel(ops.convert_to_numpy(now) - old) for now, old in pairs])
    error = np.linalg.norm(moved["mixed_bfloat16"] - moved["float32"])
    assert error < 0.05 * np.linalg.norm(moved["float32"])
