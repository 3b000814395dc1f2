"""`translate(engine=…)`: CTranslate2 with the weights at hand."""

import sys
from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np
import pytest
from message_of import message_of

from kzoo.decoding import GNMT
from kzoo.errors import UserError
from kzoo.presets import image_text_tiny
from kzoo.presets.pope import transformer
from kzoo.text import SubwordTokenizer, train_subwords

pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")
TEXTS = ["a dog runs", "", "the girl"]
SIZES = {"num_layers": 1, "width": 16, "num_heads": 2, "feedforward_dim": 24, "max_length": 16}
GREEDY = {"beam_size": 1, "max_length": 8}  # without ties between hypotheses


@pytest.fixture
def translator():
    model = transformer(
        SubwordTokenizer(train_subwords(["a man", "a dog runs", "the girl"] * 9, 25)), **SIZES
    )
    change(model, seed=1)
    return model


def change(model, seed: int):
    random = np.random.default_rng(seed)
    model.set_weights([random.normal(0, 0.5, weight.shape) for weight in model.get_weights()])


def test_weights_that_change_are_used(translator):
    found = []
    for seed in (1, 2):
        change(translator, seed)
        found.append(translator.translate(TEXTS, engine="ctranslate2", **GREEDY))
        assert found[-1] == translator.translate(TEXTS, **GREEDY)
    assert found[0] != found[1]


def test_a_vocabulary_that_changes_is_used(translator):
    before = translator.translate(TEXTS, engine="ctranslate2", **GREEDY)
    translator.source_tokenizer.set_proto(train_subwords(["ein Mann", "ein Hund rennt"] * 9, 25))
    found = translator.translate(TEXTS, engine="ctranslate2", **GREEDY)
    assert found == translator.translate(TEXTS, **GREEDY) != before


def test_the_translator_s_own_search_is_used(translator):
    translator.search = translator.search.changed(**GREEDY)
    assert translator.translate(TEXTS, engine="ctranslate2") == translator.translate(TEXTS)
    translator.search = translator.search.changed(max_length=3)
    assert translator.translate(TEXTS, engine="auto") == translator.translate(TEXTS)


def test_what_a_call_replaces_does_not_matter(translator):
    translator.search = translator.search.changed(length_penalty=lambda length: length)  # no preset holds it
    translator.source_language = "zh/TW"
    given = {**GREEDY, "length_penalty": 1.0}
    assert translator.translate(TEXTS, engine="ctranslate2", **given) == translator.translate(TEXTS, **given)


def test_threads_have_their_own_search(translator):
    translator.translate(TEXTS, engine="ctranslate2", **GREEDY)  # converts it
    lengths = [2, 8] * 20
    expected = {n: translator.translate(TEXTS, beam_size=1, max_length=n) for n in (2, 8)}
    assert expected[2] != expected[8]
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(
            lambda n: translator.translate(TEXTS, engine="ctranslate2", beam_size=1, max_length=n), lengths
        )
        assert list(found) == [expected[n] for n in lengths]


def test_a_model_with_adapters_is_keras_s(translator):
    translator.backbone.enable_lora(2)
    with pytest.raises(UserError, match="LoRA"):
        translator.translate(TEXTS, engine="ctranslate2", **GREEDY)
    assert translator.translate(TEXTS, engine="auto", **GREEDY) == translator.translate(TEXTS, **GREEDY)


def test_two_tokenizers_of_one_file_are_keras_s(translator):
    target = SubwordTokenizer(train_subwords(["ein Mann", "ein Hund rennt"] * 9, 25))
    model = transformer(translator.source_tokenizer, target, **SIZES)
    with pytest.raises(UserError, match="config_file"):
        model.translate(TEXTS, engine="ctranslate2", **GREEDY)
    assert model.translate(TEXTS, engine="auto", **GREEDY) == model.translate(TEXTS, **GREEDY)


def test_what_only_keras_does(translator):
    for arguments in ({"prefixes": ["a", "", "a"]}, {"length_penalty": GNMT(0.6)}):
        with pytest.raises(UserError, match="prefixes|GNMT"):
            translator.translate(TEXTS, engine="ctranslate2", **GREEDY, **arguments)
        assert translator.translate(TEXTS, engine="auto", **GREEDY, **arguments) == translator.translate(
            TEXTS, **GREEDY, **arguments
        )
    with pytest.raises(UserError, match="one of auto, keras, ctranslate2"):
        translator.translate(TEXTS, engine="torch")


def test_without_ctranslate2_auto_is_keras(translator, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.warns(UserWarning, match="cannot be imported.*Keras translates"):
        found = translator.translate(TEXTS, engine="auto", beam_size=1)
    assert found == translator.translate(TEXTS, beam_size=1)
    message = message_of(translator.translate, TEXTS, engine="ctranslate2")
    assert "cannot be imported" in message and "install ctranslate2" in message and "--engine" in message


def test_a_model_that_ctranslate2_does_not_hold(translator):
    keras.utils.set_random_seed(1)
    reader = image_text_tiny(translator.source_tokenizer, image_shape=(2, 6), **SIZES)
    with pytest.raises(UserError, match="text only"):
        reader.translate(TEXTS, engine="ctranslate2")
