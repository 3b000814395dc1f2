"""The Transformer: its inputs and outputs, its cache, and its way through files."""

import functools

import keras
import numpy as np
import pytest
from keras import ops
from keras_hub.layers import SinePositionEncoding

from kzoo.decoding import BeamSearch
from kzoo.layers import RoPEEmbedding
from kzoo.models import TransformerBackbone
from kzoo.models.transformer import ADDED_POSITIONS
from kzoo.text.vocabulary import PAD

SETTINGS = {"num_layers": 2, "width": 16, "num_heads": 2, "feedforward_dim": 32, "max_length": 32}
ONE_LAYER = {**SETTINGS, "num_layers": 1}
# By the name of a test's case.
ENCODINGS = {
    "pope": {"position_encoding": "pope", "position_options": {"normalize": True}},
    "per_head": {"position_encoding": "pope", "position_options": {"per_head": True}},
    **{name: {"position_encoding": name} for name in ("rope", "sine", "learned", "bias", "none")},
}


@pytest.fixture
def words(random):
    source = random.integers(4, 50, (3, 6)).astype("int32")
    source[1, 4:] = PAD
    return {"source": source, "target": random.integers(4, 50, (3, 5)).astype("int32")}


def numbers(x):
    return ops.convert_to_numpy(x)


@functools.cache  # no test changes its weights
def transformer(encoding="pope", norm="pre"):
    # Two layers for their caches and their shared bias; other encodings are in a layer or before the first.
    sizes = SETTINGS if encoding in ("pope", "bias") else ONE_LAYER
    return TransformerBackbone(50, **ENCODINGS[encoding], norm=norm, **sizes)


@pytest.mark.parametrize(("encoding", "norm"), [*((name, "pre") for name in ENCODINGS), ("pope", "post")])
def test_step_by_step_equals_at_once(encoding, norm, words):
    model = transformer(encoding, norm)
    at_once = numbers(model(words))
    assert at_once.shape == (3, 5, 50)
    memory = model.encode({"source": words["source"]})
    state = model.start(memory, beam_size=2, max_length=5)
    for step in range(5):
        tokens = np.repeat(words["target"][:, step : step + 1], 2, axis=1)
        logits, state = model.decode_step(tokens, step, memory, state)
        np.testing.assert_allclose(numbers(logits), at_once[:, [step, step]], atol=1e-4)


def test_more_padding_changes_nothing(words):
    model = transformer()
    padded = {"source": np.pad(words["source"], ((0, 0), (0, 3))), "target": words["target"]}
    np.testing.assert_allclose(numbers(model(padded)), numbers(model(words)), atol=1e-5)


@pytest.mark.parametrize("encoding", [e for e in ENCODINGS if e != "none"])
def test_the_order_of_words_matters(encoding, words):
    model = transformer(encoding)
    turned = {**words, "source": words["source"][:, ::-1].copy()}
    assert np.abs(numbers(model(words)) - numbers(model(turned))).max() > 1e-3


def test_without_positions_the_order_of_source_words_does_not_matter(words):
    model = transformer("none")
    turned = {**words, "source": words["source"][:, ::-1].copy()}
    np.testing.assert_allclose(numbers(model(words)), numbers(model(turned)), atol=1e-5)


def test_a_size_that_has_a_default_cannot_be_none():
    with pytest.raises(ValueError, match="max_length"):
        TransformerBackbone(50, **{**SETTINGS, "max_length": None})


def test_parameter_counts():
    """Counted by hand from Vaswani et al. 2017, Section 3: attention, feed-forward, norms, embeddings."""
    D, F, N, V = 16, 32, 2, 50
    attention = 4 * D * D + 4 * D
    feedforward = 2 * D * F + F + D
    layers = N * (attention + feedforward + 4 * D) + N * (2 * attention + feedforward + 6 * D)
    assert (
        TransformerBackbone(V, position_encoding="pope", norm="post", **SETTINGS).count_params()
        == layers + V * D
    )
    assert TransformerBackbone(V, norm="pre", **SETTINGS).count_params() == layers + V * D + 4 * D
    assert TransformerBackbone(V, 70, **SETTINGS).count_params() == layers + V * D + 70 * D
    learned = TransformerBackbone(V, position_encoding="learned", **SETTINGS)
    assert learned.count_params() == layers + V * D + 2 * 32 * D
    # A scalar for each of 32 buckets and 2 heads, shared by the layers of encoder and decoder.
    bias = TransformerBackbone(V, position_encoding="bias", **SETTINGS)
    assert bias.count_params() == layers + V * D + 2 * 32 * 2


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_saved_and_loaded(encoding, words, tmp_path):
    model = transformer(encoding)
    expected = numbers(model(words))
    model.save(tmp_path / "model.keras")
    np.testing.assert_array_equal(numbers(keras.saving.load_model(tmp_path / "model.keras")(words)), expected)
    model.save_to_preset(str(tmp_path / "preset"))
    loaded = TransformerBackbone.from_preset(str(tmp_path / "preset"))
    assert loaded.get_config() == model.get_config()
    np.testing.assert_array_equal(numbers(loaded(words)), expected)


def test_mixed_precision_is_near(words):
    model = transformer()
    half = TransformerBackbone.from_config({**model.get_config(), "dtype": "mixed_bfloat16"})
    half.set_weights(model.get_weights())
    output = half(words)
    assert half.encoder_layers[0].compute_dtype == "bfloat16"
    np.testing.assert_allclose(numbers(ops.cast(output, "float32")), numbers(model(words)), atol=0.2)


@pytest.mark.parametrize(
    ("dtype", "encoding"),
    [
        ("mixed_bfloat16", "pope"),
        ("mixed_float16", "pope"),
        ("mixed_bfloat16", "per_head"),
        ("mixed_float16", "bias"),
    ],
)
def test_mixed_precision_decodes(dtype, encoding, words):
    """The loop's state keeps its types from step to step."""
    model = TransformerBackbone(50, dtype=dtype, **ENCODINGS[encoding], **SETTINGS)
    found = BeamSearch(model, beam_size=2, max_length=6)({"source": words["source"]})
    assert numbers(found["tokens"]).shape == (3, 2, 6)
    assert (numbers(found["scores"]) > -1e8).all()


def test_a_position_encoding_of_ones_own(words, monkeypatch):
    monkeypatch.setitem(
        ADDED_POSITIONS, "own", lambda max_length, scale, **options: SinePositionEncoding(scale, **options)
    )
    own = TransformerBackbone(
        50, position_encoding="own", position_options={"scale": 10000}, norm="pre", **ONE_LAYER
    )
    sine = transformer("sine")
    own.set_weights(sine.get_weights())
    np.testing.assert_array_equal(numbers(own(words)), numbers(sine(words)))


def test_positions_in_the_heads_or_on_the_scores_are_not_added_to_the_embeddings(words):
    for encoding in ("per_head", "rope", "bias"):
        model = transformer(encoding)
        embedded = 4 * numbers(model.source_embedding(words["source"]))
        np.testing.assert_allclose(numbers(model._enter(words)[0]), embedded, rtol=1e-6)


def test_the_bias_is_two_sided_in_the_encoder_alone():
    model = transformer("bias")
    assert (model.source_bias.two_sided, model.target_bias.two_sided) == (True, False)
    options = {"num_buckets": 8, "max_distance": 20}
    model = TransformerBackbone(50, position_encoding="bias", position_options=options, **SETTINGS)
    assert model.target_bias.bias.shape == (8, 2)
    assert model.source_bias.max_distance == 20


def test_rotary_positions_take_their_options():
    model = TransformerBackbone(
        50, position_encoding="rope", position_options={"max_wavelength": 7}, **SETTINGS
    )
    rotary = [layer for layer in model._flatten_layers() if isinstance(layer, RoPEEmbedding)]
    assert {layer.max_wavelength for layer in rotary} == {7}


@pytest.mark.parametrize(("source_embedding", "scale"), [("lookup", 4.0), ("glyph", 1.0)])
def test_only_looked_up_vectors_are_scaled(source_embedding, scale, words, random):
    """By √D (Section 3.4)."""
    options = {"architecture": "fc_1"} if source_embedding == "glyph" else None
    model = TransformerBackbone(
        50,
        50,
        position_encoding="none",
        source_embedding=source_embedding,
        glyph_options=options,
        **SETTINGS,
    )
    if source_embedding == "glyph":
        model.source_embedding.glyphs.assign(random.integers(0, 2, (50, 22, 22)))
    expected = scale * numbers(model.source_embedding(words["source"]))
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(numbers(model._enter(words)[0]), expected, rtol=1e-6)


def test_the_last_normalizations_have_the_layers_epsilon():
    model = transformer()
    assert model.encoder_norm.epsilon == model.decoder_norm.epsilon == 1e-5


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"source_embedding": "glyphs"}, "lookup"),
        ({"source_embedding": "glyph"}, "target_vocabulary_size"),
        ({"glyph_options": {"architecture": "fc_1"}}, "glyph_options"),
        ({"position_encoding": "none", "position_options": {"normalize": True}}, "position_options"),
        ({"position_encoding": "popo"}, "pope"),
        ({"width": 16, "num_heads": 3}, "num_heads=3"),
        ({"position_encoding": "rope", "width": 9, "num_heads": 3}, "width=9"),
        *(({size: wrong}, size) for size in SETTINGS for wrong in (0, -1, 2.0, 10**9)),
        ({"source_vocabulary_size": 10**9}, "source_vocabulary_size"),
        ({"target_vocabulary_size": -5}, "target_vocabulary_size"),
        ({"image_shape": (0,)}, "image_shape"),
        ({"dropout": 1.0}, "dropout"),
        ({"dropout": -0.1}, "dropout"),
    ],
)
def test_bad_settings_are_named(wrong, name):
    with pytest.raises(ValueError) as refused:
        TransformerBackbone(**{"source_vocabulary_size": 50, **SETTINGS, **wrong})
    assert name in str(refused.value)
