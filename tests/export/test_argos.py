"""Packages for Argos Translate: what it reads in them, and its calls of CTranslate2 against `translate`."""

import json
import zipfile
from pathlib import Path

import keras
import pytest
import sentencepiece
from message_of import message_of
from small_preset import small_preset

from kzoo.export import export_argos
from kzoo.hub import Preset, seal
from kzoo.presets import locate, pope_tiny
from kzoo.text import SubwordTokenizer, train_subwords

ctranslate2 = pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")
PRESET = "pope_small_multi30k_en_de"
SENTENCES = ["A man in an orange hat is starring at something.", "Two dogs run.", "A girl.", "People walk."]
TEXTS = ["a man walks.", "two dogs run in the snow.", "the man sees a dog."]


@pytest.fixture
def install(tmp_path):
    """Return the only folder of a package, where Argos Translate unpacks it."""

    def unpacked(path) -> Path:
        with zipfile.ZipFile(path) as package:
            package.extractall(tmp_path / "packages")
        (folder,) = (tmp_path / "packages").iterdir()
        return folder

    return unpacked


def translations(folder, sentences, compute_type="float32"):
    """Translate as Argos Translate 1.11 does, after it has split a text into sentences."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
    found = ctranslate2.Translator(str(folder / "model"), compute_type=compute_type).translate_batch(
        [processor.encode(sentence, out_type=str) for sentence in sentences],
        target_prefix=None,
        replace_unknowns=True,
        max_batch_size=32,
        batch_type="tokens",
        beam_size=4,
        num_hypotheses=1,
        length_penalty=0.2,
        return_scores=True,
    )
    texts = [processor.decode_pieces(result.hypotheses[0]) for result in found]
    return [text.replace("▁", " ").replace("_", " ").removeprefix(" ") for text in texts]


def test_the_package_translates_as_the_preset_does(shelved, install, tmp_path):
    export_argos(locate(PRESET), tmp_path / "a.argosmodel")
    folder = install(tmp_path / "a.argosmodel")
    expected = shelved(PRESET).translate(SENTENCES, beam_size=4, length_penalty=0.2)
    assert translations(folder, SENTENCES) == expected
    about = json.loads((folder / "metadata.json").read_text())
    assert about.pop("package_version") == "1.0"
    assert about.pop("argos_version")
    names = {"from_name": "English", "to_name": "German"}
    assert about == {"from_code": "en", "to_code": "de", **names}
    readme = (folder / "README.md").read_text("utf-8")
    assert "non-commercial research" in readme and "| test_2016_flickr | 1000 | 40.8 | 64.1 |" in readme


def test_the_same_preset_gives_the_same_package(tmp_path):
    for name in ("a.argosmodel", "b.argosmodel"):
        export_argos(locate(PRESET), tmp_path / name, "int8")
    assert (tmp_path / "a.argosmodel").read_bytes() == (tmp_path / "b.argosmodel").read_bytes()
    assert (tmp_path / "a.argosmodel").stat().st_size < 12e6


def saved(folder, source="en", target="de", joint=True, **options) -> Preset:
    """Save an untrained preset."""
    keras.utils.set_random_seed(1)
    sides = [TEXTS * 5, TEXTS * 5 if joint else [text.upper() for text in TEXTS * 5]]
    tokenizers = [
        SubwordTokenizer(train_subwords(side, 40), config_file=f"{name}_tokenizer.json")
        for side, name in zip(sides, ("source", "target"), strict=True)
    ]
    sizes = {"num_layers": 1, "width": 32, "num_heads": 2, "feedforward_dim": 32, "max_length": 16}
    translator = pope_tiny(tokenizers[0], *([] if joint else tokenizers[1:]), **sizes, **options)
    translator.source_language, translator.target_language = source, target
    translator.save_to_preset(folder)
    return Preset(Path(folder))


def test_two_vocabularies(install, tmp_path):
    """Argos joins the pieces of the target with the source's model, which does not know them."""
    export_argos(saved(tmp_path / "preset", joint=False), tmp_path / "a.argosmodel")
    folder = install(tmp_path / "a.argosmodel")
    source = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
    target = sentencepiece.SentencePieceProcessor(
        model_proto=train_subwords([text.upper() for text in TEXTS * 5], 40)
    )
    pieces = json.loads((folder / "model/target_vocabulary.json").read_text())
    assert pieces[4:] == [target.id_to_piece(token) for token in range(4, 40)]
    rows = target.encode([text.upper() for text in TEXTS], out_type=str)
    assert [source.decode_pieces(row).replace("▁", " ").strip() for row in rows] == target.decode(rows)


@pytest.mark.parametrize("positions", ["pope", "sine", "learned"])
def test_long_texts_are_no_error(positions, install, tmp_path):
    """The model was made for 16 subwords. Argos cuts sentences at 1,024, and translations at 256."""
    export_argos(
        saved(tmp_path / "preset", position_encoding=positions, position_options={}),
        tmp_path / "a.argosmodel",
    )
    folder = install(tmp_path / "a.argosmodel")
    assert len(translations(folder, ["two dogs run. " * 500, "a man."])) == 2


@pytest.mark.parametrize(
    ("source", "target", "codes"),
    [
        ("eng", "zho_Hans", ["en", "zh"]),
        ("zh_Hant", "pt-BR", ["zt", "pb"]),
        ("en-GB", "fra", ["en-GB", "fr"]),
    ],
)
def test_languages_have_argos_s_codes(source, target, codes, install, tmp_path):
    export_argos(saved(tmp_path / "preset", source, target), tmp_path / "a.argosmodel")
    about = json.loads((install(tmp_path / "a.argosmodel") / "metadata.json").read_text())
    assert [about["from_code"], about["to_code"]] == codes


def test_what_a_package_cannot_hold_is_refused_and_nothing_is_written(tmp_path):
    here = tmp_path / "out"
    here.mkdir()
    path, of = here / "a.argosmodel", locate(PRESET)
    unnamed = saved(tmp_path / "unnamed", None, None)
    several = saved(tmp_path / "several", "deu+eng", "fr")
    cut = saved(tmp_path / "cut")
    assert ".argosmodel" in message_of(export_argos, of, here / "a.zip")
    assert "RecurrentBackbone" in message_of(export_argos, small_preset(tmp_path / "gru"), path)
    assert "AttentionBridge" in message_of(export_argos, locate("attention_bridge_m2m_tiny_multi30k"), path)
    assert "languages" in message_of(export_argos, unnamed, path)
    assert "deu+eng" in message_of(export_argos, several, path)
    config = json.loads((unnamed.folder / "source_tokenizer.json").read_text())
    config["config"]["normalize_punctuation"] = "en"
    (unnamed.folder / "source_tokenizer.json").write_text(json.dumps(config))
    seal(unnamed.folder)
    assert "normalize_punctuation='en'" in message_of(export_argos, Preset(unnamed.folder), path)
    (cut.folder / "model.weights.h5").write_bytes(b"cut")
    assert "altered" in message_of(export_argos, Preset(cut.folder), path)
    assert not list(here.iterdir())
