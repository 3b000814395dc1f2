"""The glyph paper's translation models: its numbers, counted by hand; characters drawn into the model."""

import numpy as np

from kzoo.presets import glyph_zh_en_tiny, lookup_zh_en
from kzoo.text import CharacterTokenizer, SubwordTokenizer, render_glyphs, train_subwords


def lstm(inputs: int, units: int) -> int:
    return 4 * (inputs + units + 1) * units


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


def test_a_vocabulary_s_glyphs_are_drawn_into_the_model():
    characters = CharacterTokenizer(["人", "口"])
    subwords = SubwordTokenizer(train_subwords(["a man", "a mouth"] * 20, 25))
    model = glyph_zh_en_tiny(characters, subwords, architecture="fc_1", embedding_dim=8)
    drawn = np.asarray(model.backbone.source_embedding.glyphs)
    np.testing.assert_array_equal(drawn, render_glyphs(characters.get_vocabulary()))
    assert drawn[:4].sum() == 0
    assert drawn[4].sum() > 0
