"""OPUS-MT's Marian models against transformers, on repositories in its format; by `make test-all`."""

import copy
import json
import shutil

import keras
import numpy as np
import pytest

from kzoo.errors import UserError
from kzoo.models.marian import read_marian
from kzoo.models.tensor_files import read_tensors
from kzoo.presets import load

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")
import marian_repositories as repositories  # noqa: E402

TEXTS = [
    "A dog runs in the yard.",
    "Two  men – ☃ sing!",
    "",
    " leading",
    ">>fra<< A cat.",
    ">>xxx<< A",
    "a\tb",
]
KINDS = {"joint": {}, "separate": {"separate": True}, "multilingual": {"languages": ("fra", "deu")}}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KZOO_CACHE", str(tmp_path / "cache"))


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


@pytest.mark.parametrize("zipped", [True, False])
def test_pytorch_s_files_are_read_without_their_code(zipped, tmp_path):
    folder = repositories.make(tmp_path)
    expected, state = read_tensors(folder), repositories.model(folder).state_dict()
    (folder / "model.safetensors").unlink()
    torch.save(state, folder / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)
    found = read_tensors(folder)
    assert set(expected) <= set(found)
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name])
    torch.save({"weight": copy.copy}, folder / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)
    with pytest.raises(UserError, match="copy"):
        read_tensors(folder)


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


def test_the_target_language_is_chosen(tmp_path):
    folder = repositories.make(tmp_path / "opus-mt-en-mul", languages=("fra", "deu"))
    translator = load(folder)
    tagged = translator.translate([">>fra<< A dog runs.", ">>deu<< A dog runs."])
    assert translator.translate(["A dog runs."], target_language="fra") == tagged[:1]
    translator.target_language = "deu"
    assert translator.translate(["A dog runs."]) == tagged[1:]
    translator.save_to_preset(tmp_path / "saved", dtype="float32")
    assert load(tmp_path / "saved").translate(["A dog runs."]) == tagged[1:]
    with pytest.raises(UserError, match="'xxx'"):
        translator.translate(["A dog runs."], target_language="xxx")


@pytest.mark.parametrize(
    ("damage", "name"),
    [
        (lambda folder: (folder / "vocab.json").unlink(), "vocab.json"),
        (lambda folder: (folder / "source.spm").unlink(), "source.spm"),
        (lambda folder: (folder / "vocab.json").write_text("{"), "vocab.json"),
        (lambda folder: (folder / "vocab.json").write_text('{"</s>": 0, "<unk>": 1}'), "special token"),
        (lambda folder: (folder / "model.safetensors").unlink(), "pytorch_model.bin"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"x" * 99), "model.safetensors"),
        (lambda folder: changed(folder, d_model=64), "shape"),
        (lambda folder: changed(folder, encoder_layers=3, decoder_layers=3), "layers.2"),
        (lambda folder: changed(folder, scale_embedding=False), "scale_embedding"),
        (lambda folder: changed(folder, activation_function="x"), "activation_function"),
        (lambda folder: changed(folder, decoder_layers=1), "layers"),
        (lambda folder: changed(folder, d_model=None), "d_model"),
    ],
)
def test_what_is_damaged_or_foreign_is_refused_in_one_line(damage, name, repository, tmp_path):
    folder = shutil.copytree(repository, tmp_path / "copy")
    damage(folder)
    with pytest.raises(UserError, match=name) as refused:
        load(folder)
    assert "\n" not in str(refused.value)


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    return repositories.make(tmp_path_factory.mktemp("marian") / "opus-mt-en-de")


def changed(folder, **values):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
