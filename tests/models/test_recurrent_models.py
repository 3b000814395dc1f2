"""The recurrent encoder–decoder: its decoding contract, its glyphs, its language model."""

import keras
import numpy as np
import pytest
from keras import ops

from kzoo.models import RecurrentBackbone

SETTINGS = {
    "embedding_dim": 8,
    "bidirectional": (6,),
    "unidirectional": (10,),
    "decoder_units": (7, 9),
    "max_length": 12,
}


@pytest.fixture(scope="module")
def backbone():
    keras.utils.set_random_seed(1)
    return RecurrentBackbone(30, 20, **SETTINGS)


SOURCE = np.array([[5, 6, 7, 8, 3, 0, 0], [9, 10, 3, 0, 0, 0, 0]], "int32")
TARGET = np.array([[2, 4, 5, 6], [2, 7, 8, 0]], "int32")


def test_steps_give_the_whole_model_s_logits(backbone):
    whole = ops.convert_to_numpy(backbone({"source": SOURCE, "target": TARGET}))
    memory = backbone.encode({"source": SOURCE})
    state = backbone.start(memory, beam_size=1, max_length=4)
    for step in range(4):
        logits, state = backbone.decode_step(TARGET[:, step : step + 1], step, memory, state)
        np.testing.assert_allclose(ops.convert_to_numpy(logits)[:, 0], whole[:, step], atol=1e-5)


def test_padding_changes_nothing(backbone):
    wider = np.pad(SOURCE, ((0, 0), (0, 3)))
    a, b = (ops.convert_to_numpy(backbone({"source": s, "target": TARGET})) for s in (SOURCE, wider))
    np.testing.assert_allclose(a, b, atol=1e-5)


def test_the_language_model_shares_the_decoder_and_sees_no_source(backbone):
    model = backbone.language_model()
    names = {weight.path for weight in backbone.trainable_weights}
    assert {weight.path for weight in model.trainable_weights} <= names
    logits = ops.convert_to_numpy(model({"target": TARGET}))
    assert logits.shape == (2, 4, 20)
    again = ops.convert_to_numpy(model({"target": TARGET[::-1]}))
    np.testing.assert_allclose(logits, again[::-1], atol=1e-6)


def test_the_decoder_and_the_language_model_have_the_model_s_dropout():
    model = RecurrentBackbone(30, 20, dropout=0.3, **SETTINGS)
    assert model.decoder.get_config()["dropout"] == 0.3
    assert model.target_dropout in model.language_model().layers


def test_the_language_model_is_loaded_again(backbone, tmp_path):
    model, target = backbone.language_model(), np.array([[2, 5, 6]])
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    expected, found = (ops.convert_to_numpy(one({"target": target})) for one in (model, loaded))
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_the_language_model_has_the_model_s_precision():
    half = RecurrentBackbone(30, 20, dtype="mixed_float16", **SETTINGS)
    model = half.language_model()
    model.compile(optimizer="adam")
    assert model.dtype_policy.name == "mixed_float16"
    assert isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)


def test_glyphs_take_the_place_of_the_table():
    model = RecurrentBackbone(
        30, 20, source_embedding="glyph", glyph_options={"architecture": "fc_1"}, **SETTINGS
    )
    glyphs = np.random.default_rng(0).integers(0, 2, (30, 22, 22))
    before = ops.convert_to_numpy(model({"source": SOURCE, "target": TARGET}))
    model.source_embedding.glyphs.assign(glyphs)
    after = ops.convert_to_numpy(model({"source": SOURCE, "target": TARGET}))
    assert abs(after - before).max() > 1e-4


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"source_embedding": "picture"}, "lookup"),
        ({"glyph_options": {"architecture": "fc_1"}}, "glyph_options"),
        ({"source_embedding": "glyph", "glyph_options": {"num_features": 10**20}}, "num_features"),
        ({"decoder_units": ()}, "decoder_units"),
        ({"decoder_units": (4, 0)}, "decoder_units"),
        ({"bidirectional": (), "unidirectional": ()}, "unidirectional"),
        ({"unidirectional": (10, 0)}, "unidirectional"),
        ({"max_length": 0}, "max_length"),
        ({"dropout": 1.0}, "dropout"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_bad_settings_are_named(wrong, name):
    with pytest.raises(ValueError, match=name):
        RecurrentBackbone(30, 20, **{**SETTINGS, **wrong})


def test_the_config_rebuilds_the_model(backbone):
    again = RecurrentBackbone.from_config(backbone.get_config())
    again.set_weights(backbone.get_weights())
    inputs = {"source": SOURCE, "target": TARGET}
    a, b = (ops.convert_to_numpy(model(inputs)) for model in (backbone, again))
    np.testing.assert_allclose(a, b, atol=1e-6)
