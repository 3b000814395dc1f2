"""Attention between a sentence and its translation, against NumPy from the papers' equations."""

import keras
import numpy as np
import pytest
from keras import ops
from message_of import message_of

from kzoo.errors import UserError
from kzoo.models import (
    AttentionBridgeBackbone,
    MultilingualTranslator,
    RecurrentBackbone,
    TransformerBackbone,
    Translator,
)
from kzoo.text import CharacterTokenizer

WORDS = {
    "source": np.array([[5, 6, 7, 8, 3], [9, 10, 3, 0, 0]], "int32"),
    "target": np.array([[2, 4, 5], [2, 7, 8]], "int32"),
}
PADDED = np.array([[False] * 5, [False, False, False, True, True]])
SIZES = {"num_layers": 2, "width": 8, "num_heads": 2, "feedforward_dim": 12, "max_length": 16}
BRIDGE = {"embedding_dim": 6, "width": 8, "num_heads": 3, "hidden_dim": 10, "max_length": 16}
RECURRENT = {
    "embedding_dim": 6,
    "bidirectional": (4,),
    "unidirectional": (8,),
    "decoder_units": (5, 7),
    "max_length": 16,
}


def larger(model):
    """Return a model with weights, biases too, so large that words matter."""
    random = np.random.default_rng(2)
    for weight in model.trainable_variables:  # not the variances that are stored
        weight.assign(ops.convert_to_numpy(weight) + random.normal(scale=0.4, size=weight.shape))
    return model


def softmax(scores):
    exponents = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponents / exponents.sum(axis=-1, keepdims=True)


def attention(layer, queries, values, allowed):
    """Vaswani's Section 3.2.2 with a layer's weights: the output `(B, L, D)`, the weights `(B, H, L, N)`."""
    (q, k, v), (q_bias, k_bias, v_bias) = (np.split(w.numpy(), 3, -1) for w in (layer.kernel, layer.bias))
    heads, weights, d = [], [], layer.key_dim
    for h in range(layer.num_heads):
        part = slice(h * d, (h + 1) * d)
        queries_h = queries @ q[:, part] + q_bias[part]
        keys_h = values @ k[:, part] + k_bias[part]
        scores = queries_h @ keys_h.swapaxes(1, 2) / np.sqrt(d)
        weights.append(softmax(np.where(allowed, scores, -np.inf)))
        heads.append(weights[-1] @ (values @ v[:, part] + v_bias[part]))
    output = layer.output_dense
    joined = np.concatenate(heads, -1) @ output.kernel.numpy() + output.bias.numpy()
    return joined, np.stack(weights, 1)


def normalized(residual, x):
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return x * residual.layer_norm.gamma.numpy() + residual.layer_norm.beta.numpy()


def fed_forward(layer, x):
    first, second = (
        (layer.feedforward.weights[i].numpy(), layer.feedforward.weights[i + 1].numpy()) for i in (0, 2)
    )
    inner = np.maximum(x @ first[0] + first[1], 0) @ second[0] + second[1]
    return normalized(layer.feedforward_residual, x + inner)


def test_a_transformer_s_is_softmax_of_q_k():
    """The whole way in NumPy: one post-norm layer of the encoder, the decoder's up to its attention."""
    model = larger(TransformerBackbone(12, position_encoding="none", **{**SIZES, "num_layers": 1}))
    source, target = (
        model.source_embedding.embeddings.numpy()[WORDS[side]] * 8**0.5 for side in ("source", "target")
    )
    encoder, decoder = model.encoder_layers[0], model.decoder_layers[0]
    words = ~PADDED[:, None]
    attended, _ = attention(encoder.attention, source, source, words)
    encoded = fed_forward(encoder, normalized(encoder.attention_residual, source + attended))
    attended, _ = attention(decoder.self_attention, target, target, np.tri(3, dtype=bool))
    x = normalized(decoder.self_attention_residual, target + attended)
    _, expected = attention(decoder.cross_attention, x, encoded, words)
    (found,) = model.source_attention(WORDS)
    assert np.abs(expected[0] - 0.2).max() > 0.1  # not even
    np.testing.assert_allclose(ops.convert_to_numpy(found), expected, atol=1e-5)


def luong(model, inputs, decoder):
    """Luong's α_t = softmax(h_tᵀ W_a m): h_t from the model's own steps, m from its memory."""
    memory = model.encode({name: value for name, value in inputs.items() if name != "target"})
    m, mask = (ops.convert_to_numpy(memory["prepared"][part]) for part in ("values", "mask"))
    state, rows = model.start(memory, 1, 3), []
    for step in range(3):
        _, state = model.decode_step(inputs["target"][:, step : step + 1], step, memory, state)
        h = ops.convert_to_numpy(state["reorder"]["cells"][-1][0])[:, 0]  # (B, u)
        scores = np.einsum("bu,du,bnd->bn", h, decoder.keys.kernel.numpy(), m)
        rows.append(softmax(np.where(mask, scores, -np.inf)))
    return np.stack(rows, 1), m


def test_a_recurrent_model_s_is_luong_s():
    model = larger(RecurrentBackbone(12, 12, **RECURRENT))
    expected, _ = luong(model, WORDS, model.decoder)
    (found,) = model.source_attention(WORDS)
    np.testing.assert_allclose(ops.convert_to_numpy(found)[:, 0], expected, atol=1e-5)


@pytest.mark.parametrize("bridge", [True, False], ids=["bridge", "plain"])
def test_a_bridge_model_s_is_over_the_rows_of_m(bridge):
    model = larger(AttentionBridgeBackbone([12, 12], bridge=bridge, **BRIDGE))
    inputs = {
        **WORDS,
        "source_language": np.array([0, 0], "int32"),
        "target_language": np.array([1, 1], "int32"),
    }
    expected, m = luong(model, inputs, model.decoders.layers[1])
    (found,) = model.source_attention(inputs)
    np.testing.assert_allclose(ops.convert_to_numpy(found)[:, 0], expected, atol=1e-5)
    if bridge:
        np.testing.assert_allclose(ops.convert_to_numpy(model.matrix(inputs)[0]), m, atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (TransformerBackbone, {"norm": "pre", **SIZES}),
        (TransformerBackbone, {"position_encoding": "rope", **SIZES}),
        (RecurrentBackbone, {"target_vocabulary_size": 12, **RECURRENT}),
    ],
    ids=["pre", "rope", "recurrent"],
)
def test_each_word_gives_out_one_and_padding_gets_none(kind, settings):
    for weights in larger(kind(12, **settings)).source_attention(WORDS):
        weights = ops.convert_to_numpy(weights)
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
        assert not weights.swapaxes(1, -1)[PADDED].any()


CHARACTERS = CharacterTokenizer(list("abcdefgh"))
OTHERS = CharacterTokenizer(list("ijklmnop"))


def test_a_translator_names_the_subwords():
    translator = Translator(larger(TransformerBackbone(12, **SIZES)), CHARACTERS)
    source, target, weights = translator.attention("abd", "hg")
    assert (source, target) == (["a", "b", "d", "</s>"], ["h", "g", "</s>"])
    assert weights.shape == (2, 2, 3, 4)
    expected = translator.backbone.source_attention(
        {"source": np.array([[4, 5, 7, 3]], "int32"), "target": np.array([[2, 11, 10]], "int32")}
    )
    expected = np.stack([ops.convert_to_numpy(layer)[0] for layer in expected])
    np.testing.assert_allclose(weights, expected, atol=1e-5)
    _, target, _ = translator.attention("abd")
    assert "".join(target[:-1]) == translator.translate(["abd"])[0]


def test_each_language_has_its_own_tokenizer(tmp_path):
    translator = Translator(larger(TransformerBackbone(12, **SIZES)), CHARACTERS, OTHERS)
    source, target, weights = translator.attention("abd", "po")
    assert (source, target) == (["a", "b", "d", "</s>"], ["p", "o", "</s>"])
    same = Translator(translator.backbone, CHARACTERS).attention("abd", "hg")[2]
    np.testing.assert_allclose(weights, same, atol=1e-6)
    (translation,) = translator.translate(["abd"])
    assert translation and set(translation) <= set("ijklmnop")
    translator.save(tmp_path / "translator.keras")
    assert keras.saving.load_model(tmp_path / "translator.keras").translate(["abd"]) == [translation]


def test_a_translation_may_be_longer_than_its_sentence():
    translator = Translator(larger(TransformerBackbone(12, **{**SIZES, "max_length": 32})), CHARACTERS)
    assert translator.attention("a", "b" * 20)[2].shape[2:] == (21, 2)


def test_what_does_not_fit_is_named():
    translator = Translator(larger(TransformerBackbone(12, **SIZES)), CHARACTERS)
    assert "''" in message_of(translator.attention, "")
    assert "20 subwords" in message_of(translator.attention, "a", "b" * 20)
    assert " only" in message_of(translator.attention, "a", "b", np.zeros((16, 16, 3)))


def test_with_a_picture():
    backbone = larger(TransformerBackbone(12, image_shape=(16, 16, 3), **SIZES))
    translator = Translator(backbone, CHARACTERS)
    dark, light = (translator.attention("abd", "hg", np.full((16, 16, 3), x, "uint8"))[2] for x in (0, 255))
    assert np.abs(dark - light).max() > 1e-3
    listed = translator.attention("abd", "hg", np.zeros((16, 16, 3), int).tolist())[2]
    np.testing.assert_array_equal(listed, dark)
    light = np.full((16, 16, 3), 255, "uint8")
    _, target, _ = translator.attention("abd", image=light)
    translation = "".join(target[:-1]).replace("<unk>", "\ufffd")
    assert translation == translator.translate(["abd"], images=[light])[0]
    with pytest.raises(UserError, match="image"):
        translator.attention("abd", "hg")


@pytest.mark.parametrize("bridge", [True, False], ids=["bridge", "plain"])
def test_a_multilingual_translator_names_the_rows_of_m(bridge):
    backbone = larger(AttentionBridgeBackbone([12, 12], bridge=bridge, **BRIDGE))
    translator = MultilingualTranslator(backbone, {"en": CHARACTERS, "de": OTHERS})
    languages = {"source_language": "en", "target_language": "de"}
    attended, target, weights = translator.attention("abdc", "po", **languages)
    assert attended == (["1", "2", "3"] if bridge else ["a", "b", "d", "c", "</s>"])
    assert target == ["p", "o", "</s>"]
    assert weights.shape == (1, 1, 3, len(attended))
    (expected,) = backbone.source_attention(
        {
            "source": np.array([[4, 5, 7, 6, 3]], "int32"),
            "target": np.array([[2, 11, 10]], "int32"),
            "source_language": np.array([0], "int32"),
            "target_language": np.array([1], "int32"),
        }
    )
    np.testing.assert_allclose(weights[0], ops.convert_to_numpy(expected)[0], atol=1e-5)
    ((subwords, _, aligned),) = translator.alignments([("abdc", "po")], **languages)
    words = translator.bridge_attention("abdc", "en")[1] if bridge else np.eye(5)
    assert subwords == ["a", "b", "d", "c"]
    np.testing.assert_allclose(aligned, (weights[0, 0, :2] @ words)[:, :4], atol=1e-5)
    _, target, _ = translator.attention("abdc", **languages)
    translation = "".join(target[:-1]).replace("<unk>", "\ufffd")
    assert translation == translator.translate(["abdc"], "en", "de")[0]
    with pytest.raises(UserError, match="'dd'"):
        translator.attention("abdc", "po", source_language="en", target_language="dd")


def test_half_precision_gives_float32():
    translator = Translator(TransformerBackbone(12, dtype="mixed_bfloat16", **SIZES), CHARACTERS)
    weights = translator.attention("abd", "hg")[2]
    bridge = AttentionBridgeBackbone([12], dtype="mixed_bfloat16", **BRIDGE)
    bridged = MultilingualTranslator(bridge, {"en": CHARACTERS}).bridge_attention("abd", "en")[1]
    picture = TransformerBackbone(12, image_shape=(16, 16, 3), dtype="mixed_bfloat16", **SIZES)
    image = np.zeros((16, 16, 3), "uint8")
    seen = Translator(picture, CHARACTERS).image_attention("abd", image)[1]
    for found in (weights, bridged, seen):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found.sum(-1), 1, atol=0.02)
