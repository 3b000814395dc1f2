"""The glyph paper's translation models: its numbers, counted by hand; characters drawn into the model."""

import tomllib
from inspect import signature
from pathlib import Path

import keras
import numpy as np
import pytest

from kzoo.data import Batches
from kzoo.errors import UserError
from kzoo.presets import glyph_zh_en, glyph_zh_en_tiny, lookup_zh_en, lookup_zh_en_tiny, pope_tiny
from kzoo.presets.assembly import recurrent
from kzoo.text import CharacterTokenizer, SubwordTokenizer, render_glyphs, train_subwords

TRAINING = Path(__file__).parents[2] / "training"


def lstm(inputs: int, units: int) -> int:
    return 4 * (inputs + units + 1) * units


@pytest.mark.usefixtures("zeros")
def test_the_base_model_has_the_paper_s_size():
    source, target = 100, 200
    model = lookup_zh_en(source_vocabulary_size=source, target_vocabulary_size=target)
    encoder = 2 * lstm(512, 512) + lstm(1024, 1024)
    decoder = lstm(512 + 1024, 512) + lstm(512, 1024) + 1024 * 1024 + (1024 + 1024) * 1024
    states = 4 * 512 + 2 * 1024
    projections = 2 * (states + 1) * 512 + 2 * (states + 1) * 1024
    words = source * 512 + target * 512 + (1024 + 1) * target
    assert model.backbone.count_params() == encoder + decoder + projections + words
    assert model.backbone.get_config()["dropout"] == 0.2


@pytest.mark.usefixtures("zeros")
def test_the_base_model_has_the_numbers_of_table_3():
    table = tomllib.loads((TRAINING / "glyph" / "paper.toml").read_text("utf-8"))["table3"]
    sizes = {name: table.pop(name) for name in ("source_vocabulary_size", "target_vocabulary_size")}
    small = dict.fromkeys(sizes, 9)
    for build in (lookup_zh_en, glyph_zh_en):
        saved = build(**small).backbone.get_config()
        assert {name: saved[name] for name in table} == table
    assert {name: signature(recurrent).parameters[name].default for name in sizes} == sizes


def test_adam_has_pytorch_s_constants():
    optimizer = lookup_zh_en_tiny(source_vocabulary_size=9, target_vocabulary_size=9).optimizer
    assert (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon) == (0.9, 0.999, 1e-8)


def test_one_tokenizer_is_of_both_sides():
    words = SubwordTokenizer(train_subwords(["a b c", "b c d"], 12))
    assert lookup_zh_en_tiny(words).backbone.compute_output_spec(
        {"source": keras.KerasTensor((2, 5), "int32"), "target": keras.KerasTensor((2, 4), "int32")}
    ).shape == (2, 4, 12)


def test_options_of_the_encoder_go_with_its_architecture():
    model = glyph_zh_en_tiny(
        architecture="cnn_softmax_fc",
        glyph_options={"num_features": 64},
        source_vocabulary_size=20,
        target_vocabulary_size=20,
    )
    encoder = model.backbone.source_embedding.encoder
    assert (encoder.architecture, encoder.num_features) == ("cnn_softmax_fc", 64)


def test_a_vocabulary_s_glyphs_are_drawn_into_the_model():
    characters = CharacterTokenizer(["人", "口"])
    subwords = SubwordTokenizer(train_subwords(["a man", "a mouth"] * 20, 25))
    model = glyph_zh_en_tiny(characters, subwords, architecture="fc_1", embedding_dim=8)
    drawn = np.asarray(model.backbone.source_embedding.glyphs)
    np.testing.assert_array_equal(drawn, render_glyphs(characters.get_vocabulary()))
    assert drawn[:4].sum() == 0
    assert drawn[4].sum() > 0


def test_a_transformer_reads_glyphs_with_legendre_positions():
    keras.utils.set_random_seed(1)
    characters = CharacterTokenizer(list("人口日月山水"))
    sizes = {"num_layers": 1, "width": 32, "num_heads": 2, "feedforward_dim": 64, "max_length": 16}
    model = pope_tiny(
        characters,
        characters,
        source_embedding="glyph",
        glyph_options={"architecture": "fc_1"},
        dropout=0.0,
        **sizes,
    )
    model.compile(keras.optimizers.Adam(5e-3), model.loss)
    words = characters(["人口", "日月山", "水人", "月口日", "山水"] * 8)
    batches = Batches(words, words, tokens=160, num_shapes=1)
    history = model.fit(batches, epochs=20, shuffle=False, verbose=0)
    assert history.history["loss"][-1] < 0.6 * history.history["loss"][0]
    inputs, _, _ = batches[0]
    computed = keras.ops.convert_to_numpy(model(inputs))
    model.backbone.source_embedding.bake()
    np.testing.assert_allclose(keras.ops.convert_to_numpy(model(inputs)), computed, atol=1e-5)


def test_glyphs_are_of_characters():
    subwords = SubwordTokenizer(train_subwords(["a man", "a mouth"] * 20, 25))
    with pytest.raises(UserError, match="CharacterTokenizer"):
        glyph_zh_en_tiny(subwords, subwords, architecture="fc_1", embedding_dim=8)


def test_glyphs_need_a_vocabulary_of_their_own():
    with pytest.raises(ValueError, match="target_vocabulary_size"):
        pope_tiny(source_vocabulary_size=10, source_embedding="glyph")
