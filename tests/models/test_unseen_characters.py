"""Characters that a glyph model's vocabulary lacks are read from their pixels."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np
import pytest
from keras import ops

from kzoo.layers import GlyphCharEncoder, GlyphEmbedding
from kzoo.models import CharacterTagger
from kzoo.presets import glyph_zh_en_tiny, pope_tiny
from kzoo.text import CharacterTokenizer, render_glyphs
from kzoo.text.reading import UnknownCharactersWarning

# 明 is held out of the narrow vocabulary.
WIDE = CharacterTokenizer(["日", "月", "人", "我", "的", "明"], config_file="source_tokenizer.json")
NARROW = CharacterTokenizer(["日", "月", "人", "我", "的"], config_file="source_tokenizer.json")
TARGET = CharacterTokenizer(list("abcdef "), config_file="target_tokenizer.json")
TEXT = "我的明月明人"
RECURRENT = {"embedding_dim": 8, "bidirectional": (8,), "unidirectional": (), "decoder_units": (8,)}
TRANSFORMER = {"num_layers": 1, "width": 8, "num_heads": 2, "feedforward_dim": 8, "source_embedding": "glyph"}


@pytest.fixture(
    params=[(glyph_zh_en_tiny, RECURRENT), (pope_tiny, TRANSFORMER)], ids=["lstm", "pope"], scope="module"
)
def build(request):
    """Function from a source tokenizer to a small translator."""
    builder, sizes = request.param
    return lambda tokenizer: builder(tokenizer, TARGET, **sizes, max_length=24)


@pytest.fixture(scope="module")
def translators(build):
    """Return two translators with equal weights, whose vocabularies differ by a character."""
    keras.utils.set_random_seed(1)
    wide, narrow = build(WIDE), build(NARROW)
    for one, other in zip(wide.backbone.layers, narrow.backbone.layers, strict=True):
        if isinstance(one, GlyphEmbedding):
            one, other = one.encoder, other.encoder
        other.set_weights(one.get_weights())
    return wide, narrow


def test_a_character_outside_the_vocabulary_is_encoded_as_one_in_it(translators):
    wide, narrow = translators
    (read,) = WIDE([TEXT])
    (drawn,) = render_glyphs(["明"])
    bitmaps = np.zeros((1, 8, 22, 22), "uint8")
    bitmaps[0, 0] = drawn
    V = NARROW.vocabulary_size()
    assert WIDE.token_to_id("明") == V
    expected = wide.backbone.source_embedding(np.array([read]))
    for bake in False, True:
        for model in translators:
            model.bake() if bake else model.backbone.source_embedding.empty()
        found = narrow.backbone.source_embedding(np.array([read]), drawn=bitmaps)
        np.testing.assert_allclose(*map(ops.convert_to_numpy, (found, expected)), atol=1e-6)


def test_translations_and_attention_are_equal(translators):
    texts = [TEXT, "我的月", "明明"]
    with warnings.catch_warnings(action="error", category=UnknownCharactersWarning):
        found, expected = (translator.n_best(texts, beam_size=2) for translator in reversed(translators))
    assert [[one.text for one in row] for row in found] == [[one.text for one in row] for row in expected]
    np.testing.assert_allclose(*([row[0].score for row in rows] for rows in (found, expected)), atol=1e-5)
    one, other = (translator.attention(TEXT, "abc") for translator in translators)
    assert one[:2] == other[:2]
    np.testing.assert_allclose(one[2], other[2], atol=1e-5)


def test_threads_translate_while_another_saves(translators, tmp_path):
    """On JAX, Keras takes the weights out of the model during a call."""
    _, model = translators
    texts = [TEXT, "我的月"]
    expected = model.translate(texts, beam_size=2)

    def translate(_):
        model.backbone.source_embedding.empty()  # the next call encodes the glyphs again
        return model.translate(texts, beam_size=2)

    with ThreadPoolExecutor(4) as pool:
        found = pool.map(translate, range(12))
        for _ in range(3):
            model.save_to_preset(tmp_path / "preset")
        assert list(found) == [expected] * 12


def test_what_cannot_be_drawn_is_still_unknown(translators):
    _, narrow = translators
    with pytest.warns(UnknownCharactersWarning, match="я"):
        narrow.translate(["我的明я"], beam_size=2)
    with pytest.warns(UnknownCharactersWarning, match="copied"):
        assert narrow.translate(["я"]) == ["я"]


def test_another_font_s_glyphs_are_not_mixed(build):
    narrow = build(NARROW)
    embedding = narrow.backbone.source_embedding
    embedding.glyphs.assign(np.roll(ops.convert_to_numpy(embedding.glyphs), 3, axis=2))
    with pytest.warns(UserWarning, match="font"), pytest.warns(UnknownCharactersWarning, match="明"):
        narrow.translate(["我的明"], beam_size=1)


def test_a_tagger_reads_them_too():
    taggers = []
    for tokenizer in WIDE, NARROW:
        keras.utils.set_random_seed(1)
        encoder = GlyphCharEncoder(8, "fc_2", 8)
        embedding = GlyphEmbedding(render_glyphs(tokenizer.get_vocabulary()), encoder)
        taggers.append(CharacterTagger(embedding, ["B-N", "I-N", "B-V"], tokenizer))
    wide, narrow = taggers
    for one, other in zip([*wide.layers][1:], [*narrow.layers][1:], strict=True):
        other.set_weights(one.get_weights())
    narrow.embedding.encoder.set_weights(wide.embedding.encoder.get_weights())
    with warnings.catch_warnings(action="error", category=UnknownCharactersWarning):
        assert narrow.tag([TEXT, "日月"]) == wide.tag([TEXT, "日月"])
    assert narrow.tag(["⼈月"])[0][0][0][0] == "⼈"  # read as 人, and returned as it is
    with pytest.warns(UnknownCharactersWarning, match="я"):
        narrow.tag(["日я"])
