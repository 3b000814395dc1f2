"""Vocabularies of many languages cut to some, against SentencePiece and the rows of the whole model."""

import json

import keras
import numpy as np
import pytest
import sentencepiece
from message_of import message_of
from named_languages import KINDS, RUSSIAN, make, sentence_piece_model
from starlette.testclient import TestClient
from typer.testing import CliRunner

from kzoo.cli import app
from kzoo.data import open_corpus
from kzoo.engine.translator import CTranslate2Translator
from kzoo.presets import load, locate, trim
from kzoo.serve import Served, create_app
from kzoo.training import Recipe, train

TEXTS = ["A dog runs in the yard.", "Zwei Männer – 3,5 km!", "e\u0301te\u0301 (10 %)", "  two  spaces", ""]


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def proto(request):
    return sentence_piece_model(request.param)


@pytest.fixture(scope="module", params=KINDS)
def preset(request, proto, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / request.param
    make(request.param, proto).save_to_preset(folder, dtype="float32")
    return folder


def spelled(tokenizer, text: str) -> list[str]:
    """Return the pieces of a text's ids, or "<unk>"."""
    [row] = tokenizer([text], **({"language": tokenizer.languages[0]} if tokenizer.names else {}))
    return [tokenizer.id_to_token(token) for token in row[1 if tokenizer.names else 0 :]]


def expected_pieces(proto: bytes, vocabulary: list[str], text: str) -> list[str]:
    """Return the pieces of SentencePiece itself that a vocabulary has."""
    pieces = sentencepiece.SentencePieceProcessor(model_proto=proto).encode(text, out_type=str)
    return [piece if piece in vocabulary else "<unk>" for piece in pieces]


def test_what_stays_is_as_before(preset, proto):
    whole, cut = load(preset), trim(preset, ["en", "deu"])
    before, after = (one.source_tokenizer.get_vocabulary() for one in (whole, cut))
    assert 100 < len(after) < len(before) - 50
    assert [piece for piece in before if piece in set(after)] == after  # in the same order
    assert not any("а" <= character <= "я" or character > "一" for piece in after for character in piece)
    for text in TEXTS:
        for tokenizer in (cut.source_tokenizer, cut.target_tokenizer):
            assert spelled(tokenizer, text) == expected_pieces(proto, before, text)
    assert "<unk>" in spelled(cut.source_tokenizer, RUSSIAN[0])
    kept = np.array([before.index(piece) for piece in after])
    random = np.random.default_rng(1)
    inputs = {side: random.integers(4, len(after), (2, 7)) for side in ("source", "target")}
    logits = keras.ops.convert_to_numpy(cut(inputs))
    expected = keras.ops.convert_to_numpy(whole({side: kept[rows] for side, rows in inputs.items()}))
    np.testing.assert_array_equal(logits, expected[..., kept])


def test_her_text_is_tokenized_as_before(preset, proto):
    texts = open_corpus("scenes").sentences("train", "en")[:30]
    by_script, cut = trim(preset, ["en"]), trim(preset, ["en"], texts)
    before = load(preset).source_tokenizer.get_vocabulary()
    after = cut.source_tokenizer.get_vocabulary()
    assert set(after) < set(by_script.source_tokenizer.get_vocabulary())
    for text in texts:
        assert spelled(cut.source_tokenizer, text) == expected_pieces(proto, before, text)
    other = spelled(cut.source_tokenizer, "zebra")  # in smaller pieces
    assert "".join(other).strip("▁") == "zebra" and len(other) > 1


def test_it_is_used_like_any_preset(preset, tmp_path):
    codes = {code[:2]: code for code in load(preset).target_languages}
    cut = trim(preset, ["en", "de"])
    assert cut.target_languages == [codes["de"], codes["en"]]
    cut.save_to_preset(tmp_path / "cut", dtype="float32")
    again, languages = load(tmp_path / "cut"), {"source_language": "en", "target_language": "de"}
    texts = ["A dog runs.", "Two men sing."]
    assert again.translate(texts, **languages) == cut.translate(texts, **languages)
    engine, pair = CTranslate2Translator(locate(tmp_path / "cut")), ("Two men sing.", "Zwei Hunde.")
    (*ours, weights), (*theirs, fast) = (one.alignments([pair], **languages)[0] for one in (again, engine))
    assert ours == theirs
    np.testing.assert_allclose(weights, fast, atol=1e-4)
    assert "'ru'" in message_of(again.translate, texts, source_language="en", target_language="ru")


def test_a_language_that_it_lacks_is_refused(preset):
    assert "'xx'" in message_of(trim, preset, ["en", "xx"])


def test_what_cannot_be_trimmed_is_refused():
    assert "M2M-100" in message_of(trim, "pope_small_multi30k_en_de", ["en"])


def test_a_language_s_script_is_known_or_named(preset):
    named = trim(preset, ["ast_Latn"]).source_tokenizer.get_vocabulary()
    if "ast" in load(preset).target_languages:
        assert "ast_Latn" in message_of(trim, preset, ["ast"])
    else:
        assert trim(preset, ["ast"]).source_tokenizer.get_vocabulary() == named


def test_the_command_writes_a_preset(preset, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("A dog runs.\nEin Hund rennt.\n")
    words = ["trim", str(preset), "--languages", "en,de", "--text", str(text), "-o", str(tmp_path / "cut")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    listed = json.loads((tmp_path / "cut/config.json").read_text())["config"]["source_vocabulary_size"]
    assert f"{listed:,}" in result.output
    assert CliRunner().invoke(app, [*words[:-1], str(preset)]).exit_code


@pytest.mark.usefixtures("one_shape")
@pytest.mark.parametrize("one_shape", [(32, 48)], indirect=True, ids=["32 rows"])
def test_it_is_fine_tuned_and_served(random, few_scenes, tmp_path):
    whole = make("nllb", sentence_piece_model())
    whole.set_weights([weight + random.normal(0, 0.1, weight.shape) for weight in whole.get_weights()])
    whole.save_to_preset(tmp_path / "whole", dtype="float32")
    cut = trim(tmp_path / "whole", ["en", "de"])
    cut.save_to_preset(tmp_path / "cut", dtype="float32")
    sizes = {"epochs": 1, "steps": 2, "tokens": 512, "num_shapes": 1, "optimizer": "sgd", "rate": 0.1}
    recipe = Recipe(
        preset=str(tmp_path / "cut"), corpus="scenes", source="en", target="de", beam_size=1, **sizes
    )
    tuned = train(recipe, tmp_path / "run", verbose=0)
    changes = [np.abs(a - b).max() for a, b in zip(tuned.get_weights(), cut.get_weights(), strict=True)]
    assert 0 < max(changes) < 0.5  # it went on from these weights
    preset, texts = locate(tmp_path / "run"), ["A dog runs.", "Two men sing."]
    model = load(preset)
    assert model.source_tokenizer.get_vocabulary() == cut.source_tokenizer.get_vocabulary()
    expected = model.translate(texts)  # from English to German, as it was trained
    for translator in (model, CTranslate2Translator(preset)):
        with TestClient(create_app(Served(translator, "cut", max_batch=1))) as client:
            answer = client.post("/v1/models/cut:predict", json={"instances": texts})
        rows = answer.json()["predictions"]
        assert [row["translation"] for row in rows] == expected
        scores = [best.score for (best,) in translator.n_best(texts, 1)]
        np.testing.assert_allclose([row["score"] for row in rows], scores, atol=1e-4)
