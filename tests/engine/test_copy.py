"""`CTranslate2Translator.of`: CTranslate2 with the weights of a Keras translator in memory."""

from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np
import pytest

from kzoo.decoding import GNMT
from kzoo.engine.translator import CTranslate2Translator
from kzoo.errors import UserError
from kzoo.presets import image_text_tiny
from kzoo.presets.assembly import transformer
from kzoo.text import SubwordTokenizer, train_subwords

TEXTS = ["a dog runs", "", "the girl"]
SIZES = {"num_layers": 1, "width": 16, "num_heads": 2, "feedforward_dim": 24, "max_length": 16}
GREEDY = {"beam_size": 1, "max_length": 8}  # without ties between hypotheses


@pytest.fixture
def translator():
    tokenizer = SubwordTokenizer(train_subwords(["a man", "a dog runs", "the girl"] * 9, 25))
    model, random = transformer(tokenizer, **SIZES), np.random.default_rng(1)
    model.set_weights([random.normal(0, 0.5, weight.shape) for weight in model.get_weights()])
    return model


def test_it_has_the_weights_and_the_search_of_its_translator(translator):
    translator.search = translator.search.changed(**GREEDY)
    fast, expected = CTranslate2Translator.of(translator), translator.translate(TEXTS)
    assert fast.translate(TEXTS) == expected
    translator.set_weights([-weight for weight in translator.get_weights()])
    assert fast.translate(TEXTS) == expected != translator.translate(TEXTS)


def test_it_keeps_its_files_as_long_as_it_lives(translator):
    fast = CTranslate2Translator.of(translator)
    expected = fast.translate(TEXTS, **GREEDY)
    fast.unload()
    assert not fast.is_loaded
    assert fast.translate(TEXTS, **GREEDY) == expected
    fast.preset.check()  # Keras loads it for what only Keras does
    folder = fast.preset.folder
    del fast
    assert not folder.exists()


def test_threads_have_their_own_search(translator):
    fast, lengths = CTranslate2Translator.of(translator), [2, 8] * 20
    expected = {n: translator.translate(TEXTS, beam_size=1, max_length=n) for n in (2, 8)}
    assert expected[2] != expected[8]
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda n: fast.translate(TEXTS, beam_size=1, max_length=n), lengths)
        assert list(found) == [expected[n] for n in lengths]


def test_what_the_format_does_not_hold_is_refused(translator):
    keras.utils.set_random_seed(1)
    reader = image_text_tiny(translator.source_tokenizer, image_shape=(2, 6), **SIZES)
    with pytest.raises(UserError, match=" only"):
        CTranslate2Translator.of(reader)
    target = SubwordTokenizer(train_subwords(["ein Mann", "ein Hund rennt"] * 9, 25))
    with pytest.raises(UserError, match="config_file"):  # two tokenizers of one file
        CTranslate2Translator.of(transformer(translator.source_tokenizer, target, **SIZES))
    translator.backbone.enable_lora(2)
    with pytest.raises(UserError, match="LoRA"):
        CTranslate2Translator.of(translator)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"prefixes": ["a", "", "a"]}, "prefixes"),
        ({"length_penalty": GNMT(0.6)}, "GNMT"),
        ({"max_length": 1}, "max_length"),
        ({"images": np.zeros((3, 4))}, " only"),
    ],
)
def test_what_only_keras_does_is_refused(given, named, translator):
    with pytest.raises(UserError, match=named):
        CTranslate2Translator.of(translator).translate(TEXTS, **{**GREEDY, **given})
