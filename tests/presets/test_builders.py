"""What is known of the builders without importing Keras is what they build."""

import inspect
import math
import sys
from concurrent.futures import ThreadPoolExecutor

import keras
import pytest

from kzoo import models
from kzoo.errors import UserError
from kzoo.models.transformer import ADDED_POSITIONS
from kzoo.presets import builder
from kzoo.presets.builders import (
    BUILDERS,
    PARAMETERS,
    PARTS,
    WIDTH_AND_HEADS,
    build,
    check_arguments,
    position_encodings,
    reads_glyphs,
    reads_pictures,
)


@pytest.fixture
def uncompiled(monkeypatch):
    """Builders that do not compile, because an optimizer has values."""
    monkeypatch.setattr("kzoo.models.transformer.vaswani_recipe", lambda *_, **__: {})
    for backbone in (models.AttentionBridgeBackbone, models.RecurrentBackbone):
        monkeypatch.setattr(backbone, "compile_arguments", lambda _: {})
    monkeypatch.setattr(models.Translator, "compile", lambda _: None)


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("name", BUILDERS)
def test_a_builder_is_known_without_keras(name):
    def build():
        with keras.StatelessScope(initialize_variables=False):
            return builder(name)()

    # In a new thread, because Keras keeps the list of variables to initialize per thread.
    with ThreadPoolExecutor(1) as thread:
        translator = thread.submit(build).result()
    assert PARAMETERS[name] == sum(math.prod(weight.shape) for weight in translator.weights)
    backbone = translator.backbone
    assert reads_pictures(name, {}) == bool(getattr(translator, "image_shape", None))
    assert reads_glyphs(name, {}) == hasattr(getattr(backbone, "source_embedding", None), "glyphs")
    assert type(backbone) is getattr(models, PARTS[BUILDERS[name]][1])
    if isinstance(backbone, models.TransformerBackbone):
        config = backbone.get_config()
        assert WIDTH_AND_HEADS[name.rpartition("_")[2]] == (config["width"], config["num_heads"])
    given = inspect.signature(type(backbone)).parameters.values()
    check_arguments(name, {one.name: one.default for one in given if one.default is not one.empty})


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("pope_tiny", {"num_layers": 0}),
        ("pope_tiny", {"dropout": 2}),
        ("sine_base", {"width": 2.5}),
        ("attention_bridge_m2m_tiny", {"num_heads": 10**9}),
        ("glyph_zh_en_tiny", {"decoder_units": []}),
        ("image_text_tiny", {"max_length": 0}),
        ("pope_tiny", {"norm": ["pre"]}),
        ("pope_tiny", {"num_heads": 7}),
        ("text_only_base", {"width": 500}),
        ("rope_tiny", {"num_heads": 128}),
        ("pope_tiny", {"position_encoding": "rope", "width": 12}),
        ("glyph_zh_en_tiny", {"source_embedding": "bitmap"}),
        ("attention_bridge_m2m_tiny", {"encoder": None}),
        ("rope_small", {"position_encoding": "pop"}),
    ],
)
def test_a_value_that_no_model_has_is_refused_without_keras_as_by_keras(name, model):
    *_, argument = model
    with pytest.raises(UserError, match=argument) as early:
        check_arguments(name, model)
    with pytest.raises(UserError, match=argument) as late:
        build(name, **model)
    assert str(early.value).split(": ")[-1] == str(late.value).split(": ")[-1]


def test_position_encodings_are_known_without_keras(monkeypatch):
    known = position_encodings()
    monkeypatch.delitem(sys.modules, "kzoo.models.transformer")
    assert position_encodings() == known


def test_a_position_encoding_of_ones_own_is_known(monkeypatch):
    monkeypatch.setitem(ADDED_POSITIONS, "own", ADDED_POSITIONS["sine"])
    check_arguments("sine_tiny", {"position_encoding": "own"})
