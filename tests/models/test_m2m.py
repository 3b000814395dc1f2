"""M2M-100, NLLB-200 and SMaLL-100 against transformers, on repositories in their form; by `make test-all`."""

import json
import shutil
import tracemalloc
from dataclasses import replace

import ctranslate2
import keras
import numpy as np
import pytest
from hugging_face_repositories import POINTER, TEXTS, best_scores, cache, changed, snapshot_of  # noqa: F401
from message_of import message_of
from safetensors.numpy import load_file, save_file
from scipy.special import log_softmax
from starlette.testclient import TestClient

from kzoo.data import open_corpus
from kzoo.engine.conversion import converted
from kzoo.engine.translator import CTranslate2Translator
from kzoo.errors import UserError
from kzoo.presets import load, trim
from kzoo.presets.m2m import M2M_LANGUAGES, read_m2m
from kzoo.presets.shelf import locate
from kzoo.serve import Served, create_app
from kzoo.training import Recipe, train

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")
import m2m_repositories as repositories  # noqa: E402

PAIRS = {"m2m": ("en", "de"), "nllb": ("eng_Latn", "deu_Latn"), "small": ("en", "de")}


@pytest.fixture(scope="module", params=repositories.KINDS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def folder(kind, tmp_path_factory):
    return repositories.make(tmp_path_factory.mktemp("many") / kind, kind)


@pytest.fixture(scope="module")
def trained(kind, tmp_path_factory):
    sizes = {"size": 250, "d_model": 64, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128}
    folder = repositories.make(tmp_path_factory.mktemp("trained") / kind, kind, **sizes)
    return repositories.train(folder, PAIRS[kind])


def their_ids(translator, theirs) -> np.ndarray:
    """Return transformers' ids of the zoo's tokens."""
    start, unknown = theirs.eos_token_id, theirs.unk_token_id
    names = translator.source_tokenizer.get_vocabulary()[4:]
    ids = theirs.convert_tokens_to_ids(names)
    unused = {name: int(name.split()[1][:-1]) for name in names if name.startswith("<unused ")}
    others = [unused.get(name, number) for name, number in zip(names, ids, strict=True)]
    return np.array([theirs.pad_token_id, unknown, start, start, *others])


def test_ids_are_transformers_but_for_their_order(kind, folder):
    translator = read_m2m(folder)
    languages = translator.source_languages[:40]
    for source in languages:
        target = "deu_Latn" if kind == "nllb" else "de"
        theirs = repositories.tokenizer(folder, source, target)
        ids = their_ids(translator, theirs)
        options = translator.tokenizer_options(translator.source_tokenizer, source, target)
        rows = translator.source_tokenizer(TEXTS, **options)
        expected = [
            row if len(row) > 2 else [] for row in map(theirs.encode, TEXTS)
        ]  # kzoo skips empty texts
        assert [[*ids[row], 2] if row else [] for row in rows] == expected
    options = translator.tokenizer_options(translator.target_tokenizer, source, target)
    texts = TEXTS[:2]
    expected = theirs(text_target=texts)["input_ids"]
    rows = [[*ids[row], 2] for row in translator.target_tokenizer(texts, **options)]
    assert rows == ([row[1:] for row in expected] if kind == "small" else expected)


def test_logits_are_transformers(kind, folder):
    check_logits(folder, PAIRS[kind])


def test_positions_follow_that_of_padding(tmp_path):
    folder = repositories.make(tmp_path, "m2m")
    changed(folder, "vocab.json", **{"<pad>": 0, "<s>": 1})
    changed(folder, pad_token_id=0)
    check_logits(folder, PAIRS["m2m"])


def check_logits(folder, pair):
    translator, random = read_m2m(folder), np.random.default_rng(1)
    ids = their_ids(translator, repositories.tokenizer(folder, *pair))
    source, target = random.integers(4, 90, (3, 9)), random.integers(4, 90, (3, 12))
    source[:, -1], target[:, 0] = 3, 2
    source[1, 6:] = 0
    ours = keras.ops.convert_to_numpy(translator({"source": source, "target": target}))
    with torch.no_grad():
        inputs = {"input_ids": ids[source], "decoder_input_ids": ids[target], "attention_mask": source != 0}
        theirs = repositories.model(folder)(**{name: torch.tensor(rows) for name, rows in inputs.items()})
    np.testing.assert_allclose(ours, theirs.logits.numpy()[..., ids], atol=1e-5)


def generated(folder, pair, sentences: list[str], beams: int) -> list[tuple[str, float, float]]:
    """Return transformers' best translation of each sentence, its score, and its lead over the second's.

    A translation that was cut has no lead.
    """
    tokenizer, model, found = repositories.tokenizer(folder, *pair), repositories.model(folder), []
    begins = tokenizer(text_target=["A"])["input_ids"][0][0]
    for sentence in sentences:
        result = model.generate(
            **tokenizer([sentence], return_tensors="pt"),
            forced_bos_token_id=None if repositories.is_small(folder) else begins,
            num_beams=beams,
            num_return_sequences=min(beams, 2),
            length_penalty=1.0,
            early_stopping=True,
            max_length=50,
            suppress_tokens=[tokenizer.pad_token_id, tokenizer.unk_token_id],
            renormalize_logits=True,
            return_dict_in_generate=True,
            output_scores=True,
        )
        first, second = result.sequences_scores.tolist() if beams > 1 else (0, -1)
        text = tokenizer.decode(result.sequences[0], skip_special_tokens=True)
        ended = tokenizer.eos_token_id in result.sequences[0, 1:]
        found.append((text.removeprefix("__de__ "), first, ended * (first - second)))
    return found


@pytest.mark.parametrize("beams", [1, 4])
def test_translations_are_transformers(kind, trained, beams):
    sentences = open_corpus("scenes").sentences("test", "en")[: 200 if beams > 1 else 60]
    expected = generated(trained, PAIRS[kind], sentences, beams)
    languages = dict(zip(("source_language", "target_language"), PAIRS[kind], strict=True))
    translator, engine = load(trained), CTranslate2Translator(locate(trained))
    ours = [best for (best,) in translator.n_best(sentences, 1, beam_size=beams, **languages)]
    clear = [number for number, (*_, lead) in enumerate(expected) if lead > 1e-4]
    assert len(clear) > 0.7 * len(sentences)
    assert [ours[number].text for number in clear] == [expected[number][0] for number in clear]
    if beams > 1:
        scores = [ours[number].score for number in clear]
        np.testing.assert_allclose(scores, [expected[number][1] for number in clear], atol=1e-4)
    fast = [best for (best,) in engine.n_best(sentences, 1, beam_size=beams, **languages)]
    assert sum(a.text != b.text for a, b in zip(fast, ours, strict=True)) <= 1  # a tie
    pairs = [
        (fast[number], ours[number]) for number in clear
    ]  # CTranslate2 scores those that it cuts otherwise
    same = [(a.score, b.score) for a, b in pairs if a.text == b.text]
    np.testing.assert_allclose(*zip(*same, strict=True), atol=1e-4)


def languages_of(kind) -> dict[str, str]:
    return dict(zip(("source_language", "target_language"), PAIRS[kind], strict=True))


def test_the_engine_has_its_scores(kind, folder):
    preset, random = locate(folder), np.random.default_rng(1)
    model, engine = load(preset), CTranslate2Translator(preset)
    source, target = random.integers(4, 90, 9), random.integers(4, 90, 12)
    logits = keras.ops.convert_to_numpy(
        model({"source": np.array([[*source, 3]]), "target": np.array([[2, *target]])})
    )[0]
    logits[:, :3] = -np.inf
    expected = [log_softmax(row)[token] for row, token in zip(logits, [*target, 3], strict=True)]
    pieces = [[[model.source_tokenizer.id_to_token(token) for token in row]] for row in (source, target)]
    [scored] = ctranslate2.Translator(str(converted(preset))).score_batch(*pieces)
    np.testing.assert_allclose(scored.log_probs, expected, atol=1e-4)
    texts, languages = TEXTS[:1] + ["Two men sing."], languages_of(kind)
    for each in (model, engine):
        found = best_scores(each, texts, **languages)
        alone = [best_scores(each, [text], **languages)[0] for text in texts]
        np.testing.assert_allclose(found, alone, atol=1e-5)
    aligned = (
        each.alignments([("Two men sing.", "Zwei Hunde.")], **languages)[0] for each in (model, engine)
    )
    (*ours, weights), (*theirs, fast) = aligned
    assert ours == theirs
    np.testing.assert_allclose(weights, fast, atol=1e-4)
    CTranslate2Translator(preset, "int8").translate(texts, **languages)


def test_languages_are_chosen_as_people_write_them(kind, folder):
    translator, text = load(folder), ["A dog runs in the yard."]
    source, target = PAIRS[kind]
    for each in (translator, CTranslate2Translator.of(translator)):
        english = best_scores(each, text, source_language=source, target_language=target)
        french = best_scores(each, text, source_language=source, target_language="fr")
        assert abs(english[0] - french[0]) > 1e-3
        for names in (("en", "de"), ("eng", "ger"), ("eng_Latn", "deu_Latn"), ("EN-gb", "de-AT")):
            assert best_scores(each, text, source_language=names[0], target_language=names[1]) == english
        for wrong in ("xxx", "tlh"):
            names = {"source_language": source, "target_language": wrong}
            assert repr(wrong) in message_of(each.translate, text, **names)
        assert "target_language" in message_of(each.translate, text, source_language=source)
        if kind == "nllb":
            for code, choices in {
                "zho": "Hans or zho_Hant",
                "ks": "kas_Arab or kas_Deva",
                "no": "or nob_Latn",
            }.items():
                assert choices in message_of(each.translate, text, source_language="en", target_language=code)
            assert message_of(each.translate, text, source_language="zh", target_language="en")
            chinese = best_scores(each, text, source_language="en", target_language="zh-Hant")
            assert chinese == best_scores(each, text, source_language="en", target_language="zho_Hant")
        if kind == "small":  # it reads the target's token only
            assert best_scores(each, text, target_language="deu") == english
        else:
            assert "source_language" in message_of(each.translate, text, target_language=target)
    translator.source_language, translator.target_language = "eng", "ger"
    assert translator.languages == list(PAIRS[kind])
    chosen = best_scores(translator, text, **languages_of(kind))
    assert best_scores(translator, text) == chosen
    with pytest.raises(UserError, match="'xxx'"):
        translator.source_language = "xxx"
    assert CTranslate2Translator.of(translator).languages == list(PAIRS[kind])


def test_a_prefix_follows_the_language(kind, folder):
    translator, languages = load(folder), languages_of(kind)
    texts = ["A dog runs.", "Two men sing."]
    usual = translator.translate(texts, **languages)
    begun = translator.translate(texts, prefixes=["Ein Hund", ""], **languages)
    assert begun[0].startswith("Ein Hund") and begun[1] == usual[1]


def test_it_is_loaded_saved_and_loaded_again(kind, folder, tmp_path):
    translator, languages = load(folder), languages_of(kind)
    translator.save_to_preset(tmp_path / "saved", dtype="float32")
    again = load(tmp_path / "saved")
    for ours, theirs in zip(again.get_weights(), read_m2m(folder).get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    texts = ["A dog runs.", "", "Two men sing."]
    assert again.translate(texts, **languages) == translator.translate(texts, **languages)
    subwords, written, weights = translator.attention("A dog runs.", "Ein Hund.", **languages)
    assert weights.shape[2:] == (len(written), len(subwords))


def test_a_conversion_holds_few_tensors_at_a_time(kind, tmp_path):
    sizes = {"d_model": 256, "encoder_layers": 6, "decoder_layers": 6, "encoder_ffn_dim": 1024}
    sizes["decoder_ffn_dim"] = 1024
    folder = repositories.make(tmp_path / "wide", kind, **sizes)
    tracemalloc.start()
    locate(folder).check()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.5 * (folder / "model.safetensors").stat().st_size


def test_trimmed_it_translates_as_transformers_does_with_all_pieces(kind, trained):
    """Wherever the whole model reads and writes pieces that are kept."""
    texts = [text for side in open_corpus("scenes").pairs("train", "en", "de") for text in side[:150]]
    sentences = open_corpus("scenes").sentences("test", "en")[:60]
    whole, cut, languages = load(trained), trim(trained, PAIRS[kind], texts), languages_of(kind)
    kept = set(cut.source_tokenizer.get_vocabulary())
    assert len(kept) < 0.9 * len(whole.source_tokenizer.get_vocabulary())
    found = generated(trained, PAIRS[kind], sentences, beams=1)

    def needed(tokenizer, text: str) -> set[str]:
        [row] = tokenizer([text], **whole.tokenizer_options(tokenizer, *PAIRS[kind]))
        return {tokenizer.id_to_token(token) for token in row}

    tokenizers = whole.source_tokenizer, whole.target_tokenizer
    same = [
        (sentence, text)
        for sentence, (text, _, lead) in zip(sentences, found, strict=True)
        if lead and all(needed(*one) <= kept for one in zip(tokenizers, (sentence, text), strict=True))
    ]
    assert len(same) > 30
    sentences, expected = map(list, zip(*same, strict=True))
    assert cut.translate(sentences, beam_size=1, **languages) == expected


def test_the_server_translates_in_all_directions(kind, folder):
    translator, texts, languages = load(folder), ["A dog runs.", "Two men sing."], languages_of(kind)
    translator.search = translator.search.changed(beam_size=2)
    with TestClient(create_app(Served(translator, "many"))) as client:
        rows = [{"text": text, **languages} for text in texts]
        answer = client.post("/v1/models/many:predict", json={"instances": rows})
        assert answer.status_code == 200, answer.text
        found = [row["translation"] for row in answer.json()["predictions"]]
        asked = {"q": texts, "source": "en", "target": "de"}
        assert client.post("/translate", json=asked).json()["translatedText"] == found
    assert found == translator.translate(texts, **languages)


def test_it_is_fine_tuned_in_one_direction(kind, folder, tmp_path):
    sizes = {"epochs": 1, "steps": 2, "tokens": 512, "average": 1}
    recipe = Recipe(preset=str(folder), corpus="scenes", source="en", target="de", **sizes)
    tuned, before = train(recipe, tmp_path / "run", verbose=0), read_m2m(folder)
    changes = [np.abs(a - b).max() for a, b in zip(tuned.get_weights(), before.get_weights(), strict=True)]
    assert 0 < max(changes) < 0.1  # it went on from these weights
    again, texts, languages = load(tmp_path / "run"), ["A dog runs."], languages_of(kind)
    assert again.languages == list(PAIRS[kind])
    assert again.translate(texts) == again.translate(texts, **languages)
    options = before.tokenizer_options(before.source_tokenizer, *PAIRS[kind])
    assert again.source_tokenizer(texts) == before.source_tokenizer(texts, **options)


def test_a_fine_tuning_that_was_stopped_ends_as_one_that_was_not(kind, folder, tmp_path):
    """In two directions, with the encoder frozen: its first epoch, then the second in another call."""
    values = {"languages": ["en", "de"], "freeze": ["encoder_layer_*"], "optimizer": "adam", "rate": 1e-3}
    sizes = {"tokens": 256, "batches_per_epoch": 2, "num_shapes": 1, "average": 1}
    recipe = Recipe(preset=str(folder), corpus="scenes", epochs=2, **values, **sizes)
    unbroken = train(recipe, tmp_path / "unbroken", verbose=0).get_weights()
    train(replace(recipe, epochs=1), tmp_path / "stopped", verbose=0)
    resumed = train(recipe, tmp_path / "stopped", verbose=0).get_weights()
    for one, other in zip(unbroken, resumed, strict=True):
        np.testing.assert_array_equal(other, one)


def test_shards_are_read(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    tensors, listed = load_file(copy / "model.safetensors"), {}
    (copy / "model.safetensors").unlink()
    for number in (1, 2):
        file = f"model-0000{number}-of-00002.safetensors"
        part = {name: tensors[name] for name in sorted(tensors)[number - 1 :: 2]}
        save_file(part, copy / file)
        listed |= dict.fromkeys(part, file)
    index = copy / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": listed}))
    for ours, theirs in zip(read_m2m(copy).get_weights(), read_m2m(folder).get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    save_file({"model.shared.weight": tensors["model.shared.weight"]}, copy / file)
    assert "two files" in message_of(read_m2m, copy) or "lack" in message_of(read_m2m, copy)
    (copy / file).write_text(POINTER)
    assert file in message_of(read_m2m, copy)
    (copy / file).unlink()
    assert f"lacks {file}" in message_of(read_m2m, copy)
    index.write_text(json.dumps({"weight_map": {"x": "../model.safetensors"}}))
    assert "'../model.safetensors'" in message_of(read_m2m, copy)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "sentencepiece.bpe.model").unlink(), "has no sentencepiece.bpe.model"),
        (lambda folder: (folder / "sentencepiece.bpe.model").write_bytes(b"x" * 50), "model is damaged"),
        (lambda folder: (folder / "sentencepiece.bpe.model").write_text(POINTER), "pointer of Git LFS"),
        (lambda folder: (folder / "model.safetensors").unlink(), "neither model.safetensors"),
        (lambda folder: changed(folder, scale_embedding=False), "scale_embedding"),
        (lambda folder: changed(folder, activation_function="x"), "activation_function"),
        (lambda folder: changed(folder, vocab_size=100), "but the model"),
        (lambda folder: changed(folder, d_model=2), "d_model"),
        (lambda folder: changed(folder, encoder_layers=9), "lack model.encoder.layers"),
        (lambda folder: changed(folder, decoder_start_token_id=7), "decoder_start_token_id"),
        (lambda folder: changed(folder, pad_token_id=9), "pad_token_id"),
    ],
)
def test_what_is_damaged_is_refused_in_one_line(damage, message, folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    damage(copy)
    with pytest.raises(UserError, match=message) as refused:
        load(copy)
    assert "\n" not in str(refused.value)
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file() and path.suffix != ".lock"]


def test_other_orders_of_languages_are_refused(kind, folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    if kind == "nllb":
        changed(copy, "tokenizer_config.json", added_tokens_decoder={"7": {"content": "eng_Latn"}})
        assert "'eng_Latn'" in message_of(read_m2m, copy)
        changed(copy, "tokenizer_config.json", added_tokens_decoder=None, legacy_behaviour=True)
        assert "legacy_behaviour" in message_of(read_m2m, copy)
        (copy / "tokenizer_config.json").unlink()
        (copy / "special_tokens_map.json").unlink()
        assert "lists the languages" in message_of(read_m2m, copy)
    else:
        changed(copy, "tokenizer_config.json", language_codes="wmt21")
        assert "'wmt21'" in message_of(read_m2m, copy)


def test_a_tokenizer_s_file_that_is_missed_is_named(kind, folder, tmp_path):
    """SMaLL-100's and M2M-100's are not taken for M2M-100's and NLLB-200's."""
    if kind == "small":
        copy = repositories.make(tmp_path, kind, encoder_layers=12, decoder_layers=3)
        (copy / "tokenization_small100.py").unlink()
        assert "tokenization_small100.py" in message_of(read_m2m, copy)
        changed(copy, "tokenizer_config.json", tokenizer_class="SMALL100Tokenizer")
        assert read_m2m(copy).target_tokenizer.names is None
    if kind == "m2m":
        copy = shutil.copytree(folder, tmp_path / "copy")
        (copy / "vocab.json").unlink()
        listed = [f"__{code}__" for code in M2M_LANGUAGES]
        changed(copy, "special_tokens_map.json", additional_special_tokens=listed)
        assert "vocab.json" in message_of(read_m2m, copy)


def test_it_is_fetched_by_its_handle(kind, folder, monkeypatch):
    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_of(folder, []))
    translator, texts = load(f"hf://someone/{kind}"), ["A dog runs."]
    languages = languages_of(kind)
    assert translator.translate(texts, **languages) == load(folder).translate(texts, **languages)
