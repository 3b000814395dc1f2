"""What a caller may ask of translations, against all of them that a small model can write."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops
from message_of import message_of

from kzoo.decoding import SearchSettings
from kzoo.errors import UserError
from kzoo.presets import attention_bridge_m2m_tiny, pope_tiny
from kzoo.text import SubwordTokenizer, train_subwords
from kzoo.text.vocabulary import END, PAD, START, UNKNOWN

LONGEST = 4  # tokens with the end symbol
SIZES = {"num_layers": 1, "width": 16, "num_heads": 2, "feedforward_dim": 16, "max_length": 16}
TEXTS = ["ab", "ba ba"]


@pytest.fixture(scope="module")
def tokenizer():
    """Seven subwords: "ab" can be written as one or as two, and so can others."""
    return SubwordTokenizer(train_subwords(["ab ba", "ba ab", "ab ab"] * 20, 9))


@pytest.fixture(scope="module")
def translator(tokenizer):
    """A model that has learned nothing, but repeats no word for ever."""
    keras.utils.set_random_seed(1)
    model, random = pope_tiny(tokenizer, dropout=0.0, **SIZES), np.random.default_rng(1)
    model.set_weights([weight + random.normal(size=weight.shape) * 0.3 for weight in model.get_weights()])
    model.search = SearchSettings(300, 0.5, LONGEST)
    return model


def every_text(translator, text, kept=lambda words: True):
    """Return each text that the model can write, and its best score, best first."""
    tokenizer = translator.target_tokenizer
    words = range(END + 1, tokenizer.vocabulary_size())
    outputs = [[*output, END] for n in range(LONGEST) for output in itertools.product(words, repeat=n)]
    target = np.array([[START, *output[:-1], *[0] * (LONGEST - len(output))] for output in outputs], "int32")
    source = np.tile(np.array([[*tokenizer([text])[0], END]], "int32"), (len(outputs), 1))
    logits = ops.convert_to_numpy(translator({"source": source, "target": target})).astype("float64")
    logits[..., [PAD, UNKNOWN, START]] = -np.inf  # never written: P is among the others
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    best = {}
    for output, row in zip(outputs, log_p, strict=True):
        if kept(output):
            written = tokenizer.detokenize([output[:-1]])[0]
            score = sum(row[i, word] for i, word in enumerate(output)) / len(output) ** 0.5
            best[written] = max(score, best.get(written, -np.inf))
    return sorted(best.items(), key=lambda found: -found[1])


def check(found, expected):
    assert [hypothesis.text for hypothesis in found] == [text for text, _ in expected]
    np.testing.assert_allclose(
        [hypothesis.score for hypothesis in found], [score for _, score in expected], atol=1e-4
    )


def test_no_text_is_twice_among_the_n_best(translator):
    for text, found in zip(TEXTS, translator.n_best(TEXTS), strict=True):
        expected = every_text(translator, text)
        assert len(expected) > 50
        check(found, expected)
    two = translator.n_best(TEXTS, 2)
    assert [len(best) for best in two] == [2, 2]


def test_translations_begin_with_a_prefix(translator):
    begun = translator.target_tokenizer(["ab"])[0]
    first, second = translator.n_best(TEXTS, prefixes=["ab", ""])
    check(first, every_text(translator, TEXTS[0], lambda words: words[: len(begun)] == begun))
    check(second, every_text(translator, TEXTS[1]))
    assert translator.translate(TEXTS, prefixes=["ab", ""]) == [first[0].text, second[0].text]
    assert first[0].text.startswith("ab")
    assert translator.translate(TEXTS[0], prefixes="ab") == [first[0].text]


def test_translations_are_as_long_as_asked_and_repeat_nothing(translator):
    options = {"min_length": 3, "no_repeat_ngram": 1}
    (found,) = translator.n_best(TEXTS[:1], **options)
    check(
        found,
        every_text(translator, TEXTS[0], lambda words: len(words) >= 3 and len(set(words)) == len(words)),
    )
    assert found != translator.n_best(TEXTS[:1])[0]


def test_several_languages_have_prefixes_of_their_own(tokenizer):
    sizes = {"embedding_dim": 8, "width": 8, "num_heads": 2, "hidden_dim": 8, "max_length": 16}
    other = SubwordTokenizer(train_subwords(["cd dc"] * 20, 9), config_file="other_tokenizer.json")
    model = attention_bridge_m2m_tiny({"en": tokenizer, "de": other}, **sizes)
    found = model.translate(TEXTS, "en", "de", prefixes=["dc", "cd cd"], min_length=5)
    assert found[0].startswith("dc") and found[1].startswith("cd cd")
    assert model.translate(["", "ab"], "en", "de", prefixes=["cd", "cd"])[0] == ""
    with pytest.raises(UserError, match="'ab'"):
        model.translate(TEXTS, "en", "de", prefixes=["cd", "ab"])


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"prefixes": ["ab"]}, "1 prefixes"),
        ({"prefixes": ["ab", "axb"]}, "'axb'"),
        ({"prefixes": ["ab " * 9, ""]}, "most 3"),
        ({"prefixes": [3, ""]}, "int: 3"),
        ({"min_length": 17, "max_length": 17}, "most 16"),
        ({"no_repeat_ngram": -1}, "no_repeat_ngram"),
    ],
)
def test_what_no_translation_can_have_is_named(translator, wrong, name):
    assert name in message_of(translator.translate, TEXTS, beam_size=1, **wrong)
