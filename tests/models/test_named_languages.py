"""Training a model whose vocabulary names languages: on texts, with LoRA, with frozen embeddings."""

import json
from itertools import permutations

import keras
import numpy as np
import pytest
from keras import ops
from message_of import message_of
from named_languages import KINDS, THREE_LETTERS, make, sentence_piece_model
from sentencepiece import SentencePieceProcessor
from typer.testing import CliRunner

from kzoo.cli import app
from kzoo.data import Batches, open_corpus
from kzoo.engine.translator import CTranslate2Translator
from kzoo.presets import load

ENGLISH, GERMAN = ["A dog runs.", "Two men sing."] * 4, ["Ein Hund rennt.", "Zwei Männer singen."] * 4


@pytest.fixture
def translator(tmp_path):
    model = make("m2m", sentence_piece_model())
    model.compile(keras.optimizers.SGD(0.1), model.backbone.compile_arguments()["loss"])
    return model


def chosen(model):
    """Return the model, translating from English to German by default."""
    model.source_language, model.target_language = "en", "de"
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_texts_begin_with_their_languages(kind):
    model = make(kind, sentence_piece_model())
    model.compile(**model.backbone.compile_arguments())
    asked = "give target_language" if kind == "small" else "give source_language"
    assert asked in message_of(model.fit, ENGLISH, GERMAN)
    found = chosen(model).evaluate(ENGLISH, GERMAN, verbose=0)
    tokenizer, processor = model.source_tokenizer, SentencePieceProcessor(model_proto=sentence_piece_model())
    english, german = (tokenizer.tokens[code] for code in model.languages)
    first = {"m2m": (english, german), "nllb": (english, german), "small": (german, None)}[kind]
    sides = []
    for texts, token in zip((ENGLISH, GERMAN), first, strict=True):
        rows = [processor.encode(text, out_type=str) for text in texts]
        sides.append(
            [[tokenizer.token_to_id(piece) for piece in ([token] if token else []) + row] for row in rows]
        )
    expected = model.evaluate(Batches(*sides, shuffle=False, max_length=64), verbose=0)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_asks_for_the_languages_that_a_model_reads(kind, tmp_path):
    model = make(kind, sentence_piece_model())
    model.save_to_preset(tmp_path / "preset", dtype="float32")
    target = "deu_Latn" if kind == "nllb" else "de"
    words = ["translate", str(tmp_path / "preset"), "A dog runs.", "--to", target]
    result = CliRunner().invoke(app, words)
    if kind == "small":
        [expected] = CTranslate2Translator.of(model).translate(["A dog runs."], target_language=target)
        assert result.stdout.splitlines() == [expected]
        assert "give target_language (--to)" in message_of(model.translate, ["A dog runs."])
    else:
        assert "--from" in str(result.exception)


def changes(model) -> set[str]:
    """Train a model for a few steps; return the paths of the weights that have changed."""
    before = {weight.path: ops.convert_to_numpy(weight) for weight in model.weights}
    chosen(model).fit(ENGLISH, GERMAN, epochs=3, verbose=0)
    return {w.path for w in model.weights if (ops.convert_to_numpy(w) != before[w.path]).any()}


def test_lora_leaves_the_embeddings(translator, tmp_path):
    loss = translator.loss
    translator.backbone.enable_lora(2)
    translator.compile(keras.optimizers.SGD(0.1), loss)
    assert {path.split("/")[-1] for path in changes(translator)} == {"lora_kernel_a", "lora_kernel_b", "bias"}
    translator.save(tmp_path / "model.keras")  # the factors' product is added to the kernels
    merged = keras.saving.load_model(tmp_path / "model.keras")
    merged.save_to_preset(tmp_path / "preset", dtype="float32")
    inputs = {"source": np.array([[5, 6, 3]], "int32"), "target": np.array([[2, 7]], "int32")}
    logits = ops.convert_to_numpy(translator(inputs))
    np.testing.assert_allclose(ops.convert_to_numpy(load(tmp_path / "preset")(inputs)), logits, atol=1e-4)


def test_frozen_embeddings_stay(translator):
    translator.backbone.target_embedding.trainable = False
    translator.compile(keras.optimizers.SGD(0.1), translator.loss)
    changed = changes(translator)
    others = {weight.path for weight in translator.weights} - {"embedding/embeddings"}
    assert "embedding/embeddings" not in changed and len(changed) > 0.9 * len(others)


def evaluated(model, folder):
    """Return the result of scoring a model on scenes, and the directions that are written."""
    model.save_to_preset(folder / "preset", dtype="float32")
    words = ["evaluate", str(folder / "preset"), "--corpus", "scenes", "--split", "test", "--beam", "1"]
    result = CliRunner().invoke(app, [*words, "-o", str(folder / "scores.json"), "--truncate"])
    if result.exception:
        return result, []
    found = json.loads((folder / "scores.json").read_text())
    return result, [(row["source"], row["target"]) for row in found["scores"] if "source" in row]


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_without_a_direction_is_scored_in_all_of_a_corpus(kind, few_scenes, tmp_path):
    result, directions = evaluated(make(kind, sentence_piece_model()), tmp_path)
    assert not result.exception, result.exception
    languages = [code for code in open_corpus("scenes").languages if code in THREE_LETTERS]
    assert directions == [*permutations(languages, 2)]


def test_a_language_of_a_corpus_that_fits_several_of_a_model_is_left_out_aloud(few_scenes, tmp_path):
    codes, found = ["eng_Latn", "zho_Hans", "zho_Hant"], []
    for number, some in enumerate([codes, [*codes, "ces_Latn"]]):
        result, directions = evaluated(make("nllb", sentence_piece_model(), some), tmp_path / str(number))
        assert all(code in result.stderr for code in codes[1:]) and "eng_Latn" not in result.stderr
        found.append((result.exception, directions))
    assert "--from" in str(found[0][0])
    assert found[1] == (None, [("en", "cs"), ("cs", "en")])


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_with_a_default_target_is_not_scored_in_all_directions(kind, few_scenes, tmp_path):
    model = make(kind, sentence_piece_model())
    model.target_language = "de"
    result, directions = evaluated(model, tmp_path)
    assert "--from" in str(result.exception) and not directions
