"""OPUS-MT's Marian models against transformers, on repositories in its format; by `make test-all`."""

import copy
import json
import shutil
import zipfile

import ctranslate2
import keras
import numpy as np
import pytest
from hugging_face_repositories import POINTER, TEXTS, best_scores, cache, changed, snapshot_of  # noqa: F401
from message_of import message_of
from sacremoses import MosesPunctNormalizer
from safetensors.numpy import load_file, save_file
from scipy.special import log_softmax
from starlette.testclient import TestClient
from typer.testing import CliRunner

from kzoo.cli import app
from kzoo.data import open_corpus
from kzoo.engine.conversion import converted
from kzoo.engine.translator import CTranslate2Translator
from kzoo.errors import UserError
from kzoo.export import export_ctranslate2
from kzoo.presets import load
from kzoo.presets.marian import read_marian
from kzoo.presets.shelf import locate
from kzoo.presets.tensor_files import stored_tensors
from kzoo.serve import Served, create_app
from kzoo.training import Recipe, train

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")
import marian_repositories as repositories  # noqa: E402

KINDS = {
    "joint": {},
    "separate": {"separate": True},
    "multilingual": {"languages": ("fra", "deu")},
    "base": repositories.BASE,
}


@pytest.fixture(params=KINDS)
def folder(request, tmp_path):
    return repositories.make(tmp_path / "opus-mt-en-de", **KINDS[request.param])


def marians_ids(folder, translator):
    """Return Marian's ids of the zoo's tokens, of the source and the target."""
    found = []
    for tokenizer, names in (
        (translator.source_tokenizer, ["vocab"]),
        (translator.target_tokenizer, ["target_vocab", "vocab"]),
    ):
        path = next(path for name in names if (path := folder / f"{name}.json").exists())
        numbers = json.loads(path.read_text())
        special = [numbers["<pad>"], numbers["<unk>"], numbers["<pad>"], numbers["</s>"]]
        found.append([*special, *(numbers[piece] for piece in tokenizer.get_vocabulary()[4:])])
    return found


def test_ids_are_transformers_but_for_their_order(folder):
    translator, theirs = read_marian(folder), repositories.tokenizer(folder)
    ids, _ = marians_ids(folder, translator)
    ours = [[ids[token] for token in row] + [0] for row in translator.source_tokenizer(TEXTS)]
    assert ours == [theirs(text)["input_ids"] for text in TEXTS]


def test_logits_are_transformers(folder):
    translator, random = read_marian(folder), np.random.default_rng(1)
    source_ids, target_ids = map(np.array, marians_ids(folder, translator))
    source, target = random.integers(4, 90, (3, 9)), random.integers(4, 90, (3, 12))
    source[:, -1], target[:, 0] = 3, 2
    ours = keras.ops.convert_to_numpy(translator({"source": source, "target": target}))
    with torch.no_grad():
        inputs = {"input_ids": source_ids[source], "decoder_input_ids": target_ids[target]}
        theirs = repositories.model(folder)(
            **{name: torch.tensor(ids) for name, ids in inputs.items()}
        ).logits
    np.testing.assert_allclose(ours, theirs.numpy()[..., target_ids], atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("zipped", [True, False])
def test_pytorch_s_files_are_read_without_their_code(zipped, dtype, tmp_path):
    folder = repositories.make(tmp_path)
    state = repositories.model(folder).to(dtype).state_dict()
    expected = {name: state[name].float().numpy() for name in stored_tensors(folder)}
    (folder / "model.safetensors").unlink()
    torch.save(state, folder / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)
    found = {name: stored.read() for name, stored in stored_tensors(folder).items()}
    assert set(expected) <= set(found)
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name])
    if zipped:
        with zipfile.ZipFile(folder / "pytorch_model.bin", "a", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("bomb", bytes(1000))
        with pytest.raises(UserError, match="compressed"):
            stored_tensors(folder)
    torch.save({"weight": copy.copy}, folder / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)
    with pytest.raises(UserError, match="pytorch_model.bin .* copy"):
        stored_tensors(folder)
    state |= dict.fromkeys((5, "more"), state["final_logits_bias"])
    torch.save(state, folder / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)
    with pytest.raises(UserError, match="'5', 2"):
        read_marian(folder)


def test_it_is_loaded_saved_and_loaded_again(tmp_path):
    folder = repositories.make(tmp_path / "opus-mt-en-de")
    translator = load(folder)
    assert translator.languages == ["en", "de"]
    translator.save_to_preset(tmp_path / "saved", dtype="float32")
    again = load(tmp_path / "saved")
    for ours, theirs in zip(again.get_weights(), read_marian(folder).get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert again.source_tokenizer(TEXTS) == translator.source_tokenizer(TEXTS)
    texts = ["A dog runs.", "", "Two men sing."]
    assert again.translate(texts) == translator.translate(texts)


def test_it_is_fetched_by_its_handle(tmp_path, monkeypatch):
    folder, fetched = repositories.make(tmp_path / "opus-mt-en-de"), []
    (folder / "metadata.json").write_text('{"hf_name": "eng-deu"}')  # models of the Tatoeba Challenge have it

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_of(folder, fetched))
    for lost in ("vocab.json", "model.safetensors"):  # the request failed, which the package only logs
        (folder / lost).rename(tmp_path / lost)
        with pytest.raises(UserError, match="fetched"):
            load("hf://Helsinki-NLP/opus-mt-en-de")
        (tmp_path / lost).rename(folder / lost)
    translator = load("hf://Helsinki-NLP/opus-mt-en-de")
    assert translator.languages == ["en", "de"]
    assert "model.safetensors" in fetched and "generation_config.json" not in fetched
    fetched.clear()
    texts = ["A dog runs.", "Two men sing."]
    assert load("hf://Helsinki-NLP/opus-mt-en-de").translate(texts) == load(folder).translate(texts)
    assert fetched == []  # it is in the cache


def test_a_vocabulary_may_have_sentencepiece_s_start_symbol(repository, tmp_path):
    folder = shutil.copytree(repository, tmp_path / "opus-mt-en-de")
    numbers = json.loads((folder / "vocab.json").read_text())
    piece = next(piece for piece, number in numbers.items() if number == 50)
    numbers["<s>"] = numbers.pop(piece)
    (folder / "vocab.json").write_text(json.dumps(numbers))
    translator, before = load(folder), load(repository)
    for ours, theirs in zip(translator.get_weights(), before.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    changes = zip(translator.source_tokenizer.vocabulary, before.source_tokenizer.vocabulary, strict=True)
    assert [theirs for ours, theirs in changes if ours != theirs] == [piece]


def test_bytes_are_joined_as_transformers_does(tmp_path):
    folder = repositories.make(tmp_path / "opus-mt-en-de", size=400, byte_fallback=True)
    texts = ["Zwei Männer – ☃ singen!", "", "☃", " é ☃☃"]
    tokenizer, theirs = load(folder).target_tokenizer, repositories.tokenizer(folder)
    rows = tokenizer(texts)
    assert tokenizer.detokenize(rows) == [text.strip() for text in texts]
    ids = [theirs.convert_tokens_to_ids([tokenizer.id_to_token(token) for token in row]) for row in rows]
    assert tokenizer.detokenize(rows) == [theirs.decode(row) for row in ids]


def test_the_engine_has_its_scores(tmp_path):
    repository = repositories.make(tmp_path / "opus-mt-en-mul", languages=("fra", "deu"))
    preset = locate(repository)
    assert preset.search == load(repository).search
    (repository / "scores.json").write_text("{}")
    assert locate(repository).folder == preset.folder  # not converted again
    model, random = load(preset), np.random.default_rng(1)
    source, target = random.integers(4, 90, 9), random.integers(4, 90, 12)
    logits = keras.ops.convert_to_numpy(
        model({"source": np.array([[*source, 3]]), "target": np.array([[2, *target]])})
    )[0]
    logits[:, :3] = -np.inf
    expected = [log_softmax(row)[token] for row, token in zip(logits, [*target, 3], strict=True)]
    pieces = [[[model.source_tokenizer.id_to_token(token) for token in row]] for row in (source, target)]
    [scored] = ctranslate2.Translator(str(converted(preset))).score_batch(*pieces)
    np.testing.assert_allclose(scored.log_probs, expected, atol=1e-4)
    engine = CTranslate2Translator(preset)
    for texts in (TEXTS, [">>fra<< A dog runs."]):
        assert engine.source_tokenizer(texts) == model.source_tokenizer(texts)
    engine.target_language = "fra"
    assert engine.source_tokenizer(["A dog."]) == model.source_tokenizer([">>fra<<A dog."])


@pytest.mark.parametrize("separate", [False, True])
def test_ctranslate2_writes_what_transformers_writes(separate, tmp_path):
    folder = repositories.make(tmp_path / "opus-mt-en-de", separate=separate)
    translator, theirs = load(folder), repositories.tokenizer(folder)
    source = theirs("Two dogs run.", return_tensors="pt")
    found = repositories.model(folder).generate(
        **source, num_beams=1, max_length=10, bad_words_ids=[[theirs.unk_token_id], [theirs.pad_token_id]]
    )
    export_ctranslate2(translator, tmp_path / "model")
    pieces = theirs.convert_ids_to_tokens(source["input_ids"][0])[:-1]
    arguments = {"beam_size": 1, "max_decoding_length": 8, "disable_unk": True}
    [result] = ctranslate2.Translator(str(tmp_path / "model")).translate_batch([pieces], **arguments)
    written = theirs.convert_ids_to_tokens(found[0, 1:])
    assert result.hypotheses[0] == [piece for piece in written if piece != "</s>"][:8]


def test_the_target_language_is_chosen(tmp_path):
    folder = repositories.make(tmp_path / "opus-mt-en-mul", languages=("fra", "deu"))
    translator = load(folder)
    for each in (CTranslate2Translator.of(translator), translator):
        tagged = best_scores(each, [">>fra<< A dog runs.", ">>deu<< A dog runs."])
        assert abs(tagged[0] - tagged[1]) > 0.01
        tagged = [pytest.approx(score, abs=1e-4) for score in tagged]
        for code in ("deu", "DE", "de", "ger", "de-AT", "deu_Latn"):
            assert best_scores(each, ["A dog runs."], target_language=code) == tagged[1:]
            assert best_scores(each, [f" >>{code}<< A dog runs."]) == tagged[1:]
        chosen = {"source_language": "EN-gb", "target_language": "fr-CA"}
        assert best_scores(each, ["A dog runs.", ""], **chosen) == [tagged[0], 0]
        assert best_scores(each, [">>deu<< A dog runs."], target_language="fr") == tagged[1:]
        for text in ("A dog runs.", ">> A dog runs."):
            assert "target_language" in message_of(each.translate, [text])
        assert "'>>xxx<<'" in message_of(each.translate, [">>xxx<< A dog runs."])
        assert "'xxx'" in message_of(each.translate, ["A dog."], target_language="xxx")
    translator.target_language = "de"
    assert translator.languages == ["en", "deu"]
    assert best_scores(translator, ["A dog runs."]) == tagged[1:]
    translator.save_to_preset(tmp_path / "saved", dtype="float32")
    assert best_scores(load(tmp_path / "saved"), ["A dog runs."]) == tagged[1:]
    translator.target_language = translator.target_language  # as training does
    with pytest.raises(UserError, match="'it'"):
        translator.target_language = "it"
    assert translator.target_language == "deu"
    assert CTranslate2Translator.of(translator).target_language == "deu"


@pytest.mark.parametrize("name", ["my_model", "opus-de", "opus-mt-deu_eng_fra_spa-mul"])
def test_a_model_that_names_no_languages_takes_known_targets_only(name, tmp_path):
    folder = repositories.make(tmp_path / name, languages=("fra", "cmn_Hans", "cmn_Hant"))
    (folder / "tokenizer_config.json").write_text('{"separate_vocabs": false, "model_max_length": 64}')
    translator = load(folder)
    assert translator.languages == [None, None]
    translator.translate(["A dog runs."], target_language="fra")
    translator.translate(["A dog runs."], target_language="zh-Hant")
    assert "cmn_Hans" in message_of(translator.translate, ["A dog runs."], target_language="zh")


@pytest.mark.parametrize("engine", ["keras", "ctranslate2"])
def test_a_model_that_names_no_languages_is_used_without_any(engine, trained, tmp_path):
    """Also after transformers has saved it, without languages, in a folder of another name."""
    repositories.model(trained).save_pretrained(tmp_path / "mine")
    for file in ("vocab.json", "source.spm", "target.spm"):
        shutil.copyfile(trained / file, tmp_path / "mine" / file)
    texts = open_corpus("scenes").sentences("test", "en")[:30]
    expected = {number: text for number, (text, lead) in enumerate(generated(trained, texts)) if lead > 1e-4}
    words = ["translate", str(tmp_path / "mine"), *texts, "--engine", engine, "--beam", "4"]
    written = CliRunner().invoke(app, [*words, "--length-penalty", "0"]).stdout.splitlines()
    assert len(expected) > 20 and expected.items() <= dict(enumerate(written)).items()
    translator = load(tmp_path / "mine")
    assert (translator.languages, translator.directions) == ([None, None], [])
    translator = translator if engine == "keras" else CTranslate2Translator.of(translator)
    found = translator.translate(texts[:2], beam_size=2)
    translator.search = translator.search.changed(beam_size=2)
    with TestClient(create_app(Served(translator, "mine"))) as client:
        answer = client.post("/v1/models/mine:predict", json={"instances": texts[:2]})
        assert [row["translation"] for row in answer.json()["predictions"]] == found
        asked = {"q": texts[:2], "source": "en", "target": "de"}  # its API cannot leave them out
        assert client.post("/translate", json=asked).json()["translatedText"] == found


def test_each_sentence_of_a_text_gets_its_target_language(tmp_path):
    folder = repositories.make(tmp_path / "opus-mt-en-mul", languages=("fra", "deu"))
    translator, text = load(folder), ">>fra<< A dog runs. Two men sit."
    expected = translator.translate([">>fra<< A dog runs.", ">>fra<<Two men sit."])
    for each in (translator, CTranslate2Translator.of(translator)):
        assert each.translate([text], split_sentences=True) == [" ".join(expected)]


def test_punctuation_is_normalized_as_moses_does(tmp_path):
    folder = repositories.make(tmp_path / "opus-mt-en-de")
    theirs, texts = MosesPunctNormalizer("en"), ["A dog ; runs", "( Two ) men"]
    translator = load(folder)
    expected = translator.source_tokenizer([theirs.normalize(text) for text in texts])
    assert translator.source_tokenizer(texts) != expected
    translator.source_tokenizer.normalize_punctuation = "en"
    assert translator.source_tokenizer(texts) == expected
    translator.save_to_preset(tmp_path / "saved", dtype="float32")
    assert load(tmp_path / "saved").source_tokenizer(texts) == expected
    assert CTranslate2Translator(locate(tmp_path / "saved")).source_tokenizer(texts) == expected
    with pytest.raises(UserError, match="normalize_punctuation"):
        export_ctranslate2(translator, tmp_path / "model")


@pytest.mark.parametrize(
    ("damage", "name"),
    [
        (lambda folder: (folder / "vocab.json").unlink(), "vocab.json"),
        (lambda folder: (folder / "source.spm").unlink(), "source.spm"),
        (lambda folder: (folder / "source.spm").write_bytes(b"x" * 50), "source.spm"),
        (lambda folder: (folder / "target.spm").write_bytes(b""), "target.spm"),
        (lambda folder: (folder / "vocab.json").write_text("{"), "vocab.json"),
        (lambda folder: (folder / "vocab.json").write_text('{"</s>": 0}'), "vocab.json has 1 "),
        (lambda folder: (folder / "model.safetensors").unlink(), "pytorch_model.bin"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"x" * 99), "model.safetensors"),
        (lambda folder: changed(folder, d_model=64), "shape"),
        (lambda folder: without(folder, "d_model"), "d_model"),
        (lambda folder: layers(folder, 3), "lack model.decoder.layers.2"),
        (lambda folder: layers(folder, 1), "have 'model.decoder.layers.1"),
        (lambda folder: layers(folder, 0), "coder_layers is 0"),
        (lambda folder: layers(folder, 10**12), "coder_layers is 1000000000000"),
        (lambda folder: changed(folder, scale_embedding=False), "scale_embedding"),
        (lambda folder: changed(folder, static_position_embeddings=False), "static_position_embeddings"),
        (lambda folder: changed(folder, activation_function="x"), "activation_function"),
        (lambda folder: changed(folder, activation_function=5), "activation_function"),
        (lambda folder: changed(folder, decoder_layers=1), "layers"),
        (lambda folder: changed(folder, vocab_size=None), "config.json: vocab_size"),
        (lambda folder: changed(folder, length_penalty="x"), "config.json: length_penalty is 'x'"),
        (lambda folder: changed(folder, length_penalty=float("nan")), "config.json: length_penalty"),
        (lambda folder: changed(folder, pad_token_id=[0]), r"config.json: pad_token_id is \[0\]"),
        (lambda folder: changed(folder, eos_token_id=None), "config.json: eos_token_id"),
        (lambda folder: changed(folder, eos_token_id="0"), "config.json: eos_token_id"),
        (lambda folder: changed(folder, eos_token_id=7), "eos_token_id"),
        (lambda folder: changed(folder, decoder_start_token_id=9), "decoder_start_token_id"),
        (lambda folder: changed(folder, max_position_embeddings=[64]), "max_position_embeddings"),
        (lambda folder: changed(folder, max_position_embeddings=10**12), "max_position_embeddings"),
        (lambda folder: changed(folder, num_beams=10**12), "config.json: beam_size"),
        (lambda folder: changed(folder, num_beams=0), "config.json: beam_size"),
        (lambda folder: changed(folder, num_beams="4"), "config.json: num_beams"),
        (lambda folder: changed(folder, dropout=True), "config.json: dropout"),
        (lambda folder: changed(folder, share_encoder_decoder_embeddings="x"), "share_encoder_decoder"),
        (lambda folder: changed(folder, "tokenizer_config.json", source_lang=5), "source_lang is 5"),
        (lambda folder: changed(folder, "vocab.json", **{"<pad>": -1}), "id -1"),
        (lambda folder: changed(folder, "vocab.json", **{"<pad>": 0}), " id 0"),
        (lambda folder: changed(folder, "vocab.json", **{"</s>": 1, "<unk>": 0}), " id 1"),
        (lambda folder: changed(folder, "vocab.json", **{"<unk>": "1"}), " id '1'"),
        (lambda folder: changed(folder, "vocab.json", **{"<unk>": None}), " id None"),
        (lambda folder: changed(folder, "vocab.json", more=5), "pieces"),
        (lambda folder: altered(folder, final_logits_bias=np.ravel), "shape"),
        (lambda folder: altered(folder, final_logits_bias=lambda x: x[0, 0]), "shape"),
        (lambda folder: altered(folder, **{f"{FIRST}.out_proj.weight": wider}), "out_proj.weight"),
        (
            lambda folder: altered(
                folder,
                **{f"{FIRST}.q_proj.{part}": wider for part in ("weight", "bias")},
                **{f"{FIRST}.k_proj.{part}": narrower for part in ("weight", "bias")},
            ),
            "[qk]_proj.* shape",
        ),
        (lambda folder: altered(folder, **{"model.shared.weight": lambda x: x.astype("int32")}), "int32"),
        (lambda folder: altered(folder, **{"model.shared.weight": lambda x: x > 0}), "bool"),
        (lambda folder: altered(folder, **{"model.shared.weight": lambda x: x * np.nan}), "finite"),
        (lambda folder: added(folder, "surprise", np.zeros(3, "float32")), "have 'surprise'"),
        (lambda folder: added(folder, "lm_head.weight", np.zeros((197, 32), "float32")), "lm_head"),
        (
            lambda folder: added(folder, "model.encoder.embed_positions.weight", np.zeros((64, 32), "f4")),
            "sines",
        ),
        *(
            (lambda folder, name=name: (folder / name).write_text(POINTER), f"{name} is a pointer of Git LFS")
            for name in ("model.safetensors", "source.spm", "vocab.json", "tokenizer_config.json")
        ),
    ],
)
def test_what_is_damaged_or_foreign_is_refused_in_one_line(damage, name, repository, tmp_path):
    folder = shutil.copytree(repository, tmp_path / "copy")
    damage(folder)
    with pytest.raises(UserError, match=name) as refused:
        load(folder)
    assert "\n" not in str(refused.value)
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file() and path.suffix != ".lock"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_tables_that_transformers_writes_twice_are_read(dtype, repository, tmp_path):
    folder = shutil.copytree(repository, tmp_path / "opus-mt-en-de")
    state = repositories.model(folder).to(dtype).state_dict()
    assert {"lm_head.weight", "model.encoder.embed_positions.weight"} <= state.keys()
    (folder / "model.safetensors").unlink()
    torch.save(state, folder / "pytorch_model.bin")
    for ours, theirs in zip(load(folder).get_weights(), load(repository).get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0.01)


def test_a_length_penalty_of_zero_is_kept(repository, tmp_path):
    folder = shutil.copytree(repository, tmp_path / "copy")
    changed(folder, length_penalty=0.0)
    assert read_marian(folder).search.length_penalty.alpha == 0.0


def test_a_changed_setting_of_a_tokenizer_reaches_ctranslate2(repository):
    translator = read_marian(repository)
    for language in (None, "en"):
        translator.source_tokenizer.normalize_punctuation = language
        copied = CTranslate2Translator.of(translator).source_tokenizer
        assert copied(["«Hallo» …"]) == translator.source_tokenizer(["«Hallo» …"])


def test_it_is_converted_when_its_files_are_needed(repository, tmp_path, monkeypatch):
    monkeypatch.setenv("KZOO_CACHE", str(tmp_path))
    preset = locate(repository)
    assert preset.is_converted and preset.name == "opus-mt-en-de"
    assert not list(tmp_path.iterdir())
    assert preset.settings["class"] == "Translator"
    assert preset.folder.is_relative_to(tmp_path)


def test_a_folder_gives_the_languages_whatever_its_path(repository, tmp_path, monkeypatch):
    monkeypatch.setenv("KZOO_CACHE", str(tmp_path / "cache"))
    folder = shutil.copytree(repository, tmp_path / "me@host/opus-mt-en-de")
    monkeypatch.chdir(folder)
    for path in (".", str(folder)):
        translator = load(path)
        assert (translator.source_language, translator.target_language) == ("en", "de")
        assert locate(path).name == "opus-mt-en-de"


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    return repositories.make(tmp_path_factory.mktemp("marian") / "opus-mt-en-de")


FIRST = "model.encoder.layers.0.self_attn"


def layers(folder, number):
    changed(folder, encoder_layers=number, decoder_layers=number)


def without(folder, key):
    path = folder / "config.json"
    path.write_text(json.dumps({k: value for k, value in json.loads(path.read_text()).items() if k != key}))


def wider(values):
    return np.concatenate([values, values])


def narrower(values):
    return values[: len(values) // 2]


def altered(folder, **changes):
    tensors = load_file(folder / "model.safetensors")
    changes = {name: np.ascontiguousarray(change(tensors[name])) for name, change in changes.items()}
    save_file({**tensors, **changes}, folder / "model.safetensors")


def added(folder, name, values):
    save_file({**load_file(folder / "model.safetensors"), name: values}, folder / "model.safetensors")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    sizes = {"size": 200, "d_model": 64, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128}
    folder = tmp_path_factory.mktemp("trained") / "opus-mt-en-de"
    return repositories.train(repositories.make(folder, **sizes))


def generated(folder, sentences: list[str]) -> list[tuple[str, float]]:
    """Return transformers' best translation of each sentence, and how far its score is above the second's."""
    tokenizer, model, found = repositories.tokenizer(folder), repositories.model(folder), []
    for sentence in sentences:
        result = model.generate(
            **tokenizer([sentence], return_tensors="pt"),
            num_beams=4,
            num_return_sequences=2,
            length_penalty=0.0,
            early_stopping=True,
            max_length=48,
            suppress_tokens=[tokenizer.pad_token_id, tokenizer.unk_token_id],
            renormalize_logits=True,
            return_dict_in_generate=True,
            output_scores=True,
        )
        first, second = result.sequences_scores.tolist()
        found.append((tokenizer.decode(result.sequences[0], skip_special_tokens=True), first - second))
    return found


def test_translations_are_transformers(trained):
    sentences = open_corpus("scenes").sentences("test", "en")[:200]
    expected = generated(trained, sentences)
    translator, engine = load(trained), CTranslate2Translator(locate(trained))
    ours = translator.translate(sentences, beam_size=4, length_penalty=0.0)
    clear = [number for number, (_, lead) in enumerate(expected) if lead > 1e-4]
    assert len(clear) > 150
    assert [ours[number] for number in clear] == [expected[number][0] for number in clear]
    assert sum(map(str.__ne__, engine.translate(sentences), translator.translate(sentences))) <= 1  # a tie


def test_it_is_fine_tuned(trained, tmp_path):
    sizes = {"epochs": 1, "steps": 2, "tokens": 512, "average": 1}
    recipe = Recipe(preset=str(trained), corpus="scenes", source="en", target="de", **sizes)
    tuned, before = train(recipe, tmp_path / "run", verbose=0), read_marian(trained)
    changes = [np.abs(a - b).max() for a, b in zip(tuned.get_weights(), before.get_weights(), strict=True)]
    assert 0 < max(changes) < 0.1  # it went on from these weights
    texts = ["A dog runs.", "Two men sing."]
    assert load(tmp_path / "run").source_tokenizer(texts) == before.source_tokenizer(texts)


@pytest.mark.parametrize("engine", [load, lambda folder: CTranslate2Translator(locate(folder))])
def test_the_server_gives_the_same_translations(engine, trained):
    texts = ["A dog runs.", "Two men sing."]
    translator = engine(trained)
    translator.search = translator.search.changed(beam_size=2)
    app = create_app(Served(translator, "opus"))
    with TestClient(app) as client:
        answer = client.post("/v1/models/opus:predict", json={"instances": texts})
    assert answer.status_code == 200, answer.text
    found = [row["translation"] for row in answer.json()["predictions"]]
    assert found == load(trained).translate(texts, beam_size=2)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="SavedModels are TensorFlow's")
def test_a_saved_model_translates_the_same(trained, tmp_path):
    import tensorflow as tf

    translator = load(trained)
    translator.export(str(tmp_path / "model"), beam_size=2)
    served = tf.saved_model.load(str(tmp_path / "model")).signatures["serving_default"]
    found = served(text=tf.constant(TEXTS))["translation"].numpy()
    expected = translator.translate(TEXTS, beam_size=2, unknown="translate")  # as exports do
    assert [text.decode() for text in found] == expected
