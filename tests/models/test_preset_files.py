"""Presets on disk: sealed when written, checked before they are read, refused by name."""

import gc
import hashlib
import json
import os
import shutil

import h5py
import keras
import keras_hub
import numpy as np
import pytest

from kzoo.decoding import GNMT, SearchSettings
from kzoo.engine.choice import why_not
from kzoo.engine.conversion import converted
from kzoo.errors import UserError
from kzoo.hub import Preset, seal
from kzoo.hub.preset import holds_values
from kzoo.models import (
    AttentionBridgeBackbone,
    MultilingualTranslator,
    TransformerBackbone,
    Translator,
    preset_files,
)
from kzoo.presets import load, pope_tiny
from kzoo.text import MosesSubwordTokenizer, SubwordTokenizer, train_subwords

SMALL = {"num_layers": 1, "width": 8, "num_heads": 2, "feedforward_dim": 8, "max_length": 16}
FILES = (
    "assets/tokenizer/vocabulary.spm",
    "config.json",
    "tokenizer.json",
    "model.weights.h5",
    "search.json",
    "translator.json",
)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder that `save_to_preset` wrote."""
    keras.utils.set_random_seed(1)
    translator = pope_tiny(SubwordTokenizer(train_subwords(["a man", "a dog"] * 20, 20)), **SMALL)
    folder = tmp_path_factory.mktemp("saved") / "preset"
    translator.save_to_preset(folder)
    return folder


@pytest.fixture
def preset(saved, tmp_path):
    """A copy of it, to be spoiled."""
    return shutil.copytree(saved, tmp_path / "preset")


def refused(folder, *words):
    """Try to load a preset, and find all the words in the one line of the error."""
    for read in (load, Translator.from_preset):
        with pytest.raises(UserError) as error:
            read(folder)
        message = str(error.value)
        assert "\n" not in message
        assert all(word in message for word in (str(folder), *words)), message


def rewrite(path, **changes):
    """Change entries of a JSON object."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_metadata_has_the_sha256_of_every_file_beside_keras_hub_s_own(saved):
    metadata = json.loads((saved / "metadata.json").read_text())
    assert metadata["kzoo_format"] == 1
    assert metadata["files"] == {
        name: hashlib.sha256((saved / name).read_bytes()).hexdigest() for name in FILES
    }
    assert {"keras_version", "keras_hub_version", "parameter_count", "tasks"} <= set(metadata)


def test_keras_hub_reads_it_too(saved):
    ours = Translator.from_preset(saved)
    for backbone in (keras_hub.models.Backbone, TransformerBackbone):
        theirs = backbone.from_preset(str(saved))
        for one, other in zip(ours.backbone.get_weights(), theirs.get_weights(), strict=True):
            np.testing.assert_array_equal(one, other)


def test_from_preset_takes_a_name_on_the_shelf():
    translator = Translator.from_preset("pope_small_multi30k_en_de")
    assert (translator.source_language, translator.target_language) == ("en", "de")


def test_card_and_scores_may_change(preset):
    (preset / "README.md").write_text("A card.")
    (preset / "scores.json").write_text("{}")
    seal(preset)
    (preset / "README.md").write_text("Another card.")
    Translator.from_preset(preset)


def test_a_file_name_that_no_reader_accepts_is_not_sealed(preset):
    (preset / "notes: v1.txt").touch()
    with pytest.raises(UserError, match=f"{preset}: .*'notes: v1.txt'"):
        seal(preset)
    Translator.from_preset(preset)


def test_what_stands_beside_a_preset_stays_when_it_is_saved_again(saved, preset):
    (preset / "README.md").write_text("A card.")
    (preset / ".git").mkdir()
    (preset / ".git" / "config").write_text("mine")
    (preset / "assets" / "diagram.png").write_bytes(b"mine")
    (preset / ".git" / "refs").mkdir()
    (preset / "data").symlink_to("elsewhere")  # which does not exist here
    (preset / ".git" / "objects").symlink_to("../../elsewhere")
    (preset / "config.json").write_text("{}")  # its own is renewed
    Translator.from_preset(saved).save_to_preset(preset)
    Translator.from_preset(preset)
    assert (preset / "README.md").read_text() == "A card."
    assert (preset / ".git" / "config").read_text() == "mine"
    assert (preset / ".git" / "refs").is_dir()
    assert (preset / "assets" / "diagram.png").read_bytes() == b"mine"
    assert os.readlink(preset / "data") == "elsewhere"
    assert os.readlink(preset / ".git" / "objects") == "../../elsewhere"
    assert set(json.loads((preset / "metadata.json").read_text())["files"]) == set(FILES)


def test_sealed_files_of_a_user_stay_and_a_preset_s_own_go(saved, preset, shard_size):
    """`seal` lists both; of those of its own that the new preset lacks, none is left."""
    translator = Translator.from_preset(saved)
    proto = translator.source_tokenizer.proto
    shard_size(3e-6)
    Translator(translator.backbone, SubwordTokenizer(proto, config_file="own.json")).save_to_preset(preset)
    mine = {"scores_2017.json", "best.weights.h5", "assets/notes.txt", "assets/fonts/font.ttf"}
    (preset / "assets" / "fonts").mkdir()
    for name in mine:
        (preset / name).write_text("mine")
    seal(preset)
    shard_size(0.03)
    translator.save_to_preset(preset)
    found = {path.relative_to(preset).as_posix() for path in preset.rglob("*") if path.is_file()}
    assert found == {*FILES, "metadata.json", *mine}
    assert {(preset / name).read_text() for name in mine} == {"mine"}


def test_a_folder_of_other_things_is_left_alone(saved, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    (tmp_path / "metadata.json").write_text('{"files": ["thesis.txt"]}')
    with pytest.raises(UserError, match="other"):
        Translator.from_preset(saved).save_to_preset(tmp_path)
    (tmp_path / "metadata.json").rename(tmp_path / "translator.json")
    with pytest.raises(UserError, match="other"):
        Translator.from_preset(saved).save_to_preset(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"thesis.txt", "translator.json"}


def test_hidden_files_are_not_sealed(preset):
    (preset / ".git").mkdir()
    (preset / ".git" / "index").write_text("changes")
    (preset / ".DS_Store").write_text("changes")
    seal(preset)
    assert set(json.loads((preset / "metadata.json").read_text())["files"]) == set(FILES)


def test_tokenizers_that_would_replace_each_other_are_refused(tmp_path):
    one, other = (SubwordTokenizer(train_subwords(["a man", "a dog"] * 20, size)) for size in (18, 20))
    with pytest.raises(UserError, match="tokenizer.json"):
        pope_tiny(one, other, **SMALL).save_to_preset(tmp_path / "preset")
    joint = train_subwords(["a man", "a dog"] * 20, 18)
    one, other = (MosesSubwordTokenizer(joint, language) for language in ("en", "fr"))
    with pytest.raises(UserError, match="tokenizer.json"):
        pope_tiny(one, other, **SMALL).save_to_preset(tmp_path / "preset")
    with pytest.raises(UserError, match="tokenizer"):
        pope_tiny(source_vocabulary_size=20, **SMALL).save_to_preset(tmp_path / "preset")
    assert not (tmp_path / "preset").exists()


@keras.saving.register_keras_serializable("mine")
class MyBackbone(TransformerBackbone):
    """A backbone that is not the zoo's."""


@keras.saving.register_keras_serializable("mine")
class MyTokenizer(SubwordTokenizer):
    """A tokenizer that is not the zoo's."""


def test_what_could_not_be_read_is_not_written(saved, preset):
    def same(backbone=TransformerBackbone, tokenizer=SubwordTokenizer, **settings):
        tokenizer = tokenizer(
            whole.source_tokenizer.proto, config_file=settings.pop("file", "tokenizer.json")
        )
        return Translator(backbone.from_config(whole.backbone.get_config()), tokenizer, **settings)

    whole = Translator.from_preset(saved)
    for translator, words in (
        (same(backbone=MyBackbone), "config.json names the class .*MyBackbone"),
        (same(tokenizer=MyTokenizer), "tokenizer.json names the class .*MyTokenizer"),
        (same(source_language="zh/TW"), "translator.json names the path 'zh/TW'"),
        (same(file="my tokenizer.json"), "translator.json names the tokenizer 'my tokenizer.json'"),
    ):
        with pytest.raises(UserError, match=words):
            translator.save_to_preset(preset)
    Translator.from_preset(preset)  # the earlier one


def test_a_weight_beyond_float16_is_named(saved, preset):
    translator = Translator.from_preset(saved)
    weight = translator.backbone.target_embedding.embeddings
    values = keras.ops.convert_to_numpy(weight).copy()
    values[5, 3] = -65_504
    weight.assign(values)
    translator.save_to_preset(preset)
    values[5, 3] = -65_536
    weight.assign(values)
    with pytest.raises(UserError, match=f"{weight.path} .* 65,536"):
        translator.save_to_preset(preset)
    read = keras.ops.convert_to_numpy(Translator.from_preset(preset).backbone.target_embedding.embeddings)
    assert read[5, 3] == -65_504


def test_weights_are_kept_whole_on_request(saved, tmp_path):
    """Also those beyond float16, and as `from_preset`, keras-hub and Keras's own file read them."""
    translator = Translator.from_preset(saved)
    weight = translator.backbone.weights[0]
    weight.assign(np.full(weight.shape, 1e5 / 3, "float32") * 3)
    translator.save_to_preset(tmp_path / "preset", dtype="float32")
    translator.save(tmp_path / "whole.keras")
    for read in (
        Translator.from_preset(tmp_path / "preset").backbone,
        keras_hub.models.Backbone.from_preset(str(tmp_path / "preset")),
        keras.models.load_model(tmp_path / "whole.keras").backbone,
    ):
        for one, other in zip(read.get_weights(), translator.backbone.get_weights(), strict=True):
            np.testing.assert_array_equal(one, other)
    with pytest.raises(UserError, match="'int8'"):
        translator.save_to_preset(tmp_path / "preset", dtype="int8")


def test_the_table_of_learned_positions_keeps_its_size(tmp_path):
    tokenizer = SubwordTokenizer(train_subwords(["a man", "a dog"] * 20, 20))
    pope_tiny(tokenizer, position_encoding="learned", position_options={}, **SMALL).save_to_preset(tmp_path)
    with pytest.raises(UserError, match="'max_length'"):
        load(tmp_path, max_length=8)
    assert load(tmp_path, dropout=0.2).backbone.max_length == 16


def test_a_model_of_half_precision_is_saved_as_one_of_full_precision(saved, preset):
    whole = Translator.from_preset(saved)
    half = Translator.from_preset(saved, dtype="mixed_bfloat16")
    assert half.backbone.dtype_policy.name == "mixed_bfloat16"
    half.save_to_preset(preset)
    read = Translator.from_preset(preset)
    assert read.backbone.dtype_policy.name == "float32"
    for one, other in zip(whole.get_weights(), read.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_saving_a_model_of_half_precision_leaves_no_copy_in_memory(saved, tmp_path):
    half = Translator.from_preset(saved, dtype="mixed_bfloat16")
    kind = type(half.backbone)
    gc.collect()
    gc.disable()
    try:
        before = sum(type(one) is kind for one in gc.get_objects())
        half.save_to_preset(tmp_path / "half")
        assert sum(type(one) is kind for one in gc.get_objects()) == before
    finally:
        gc.enable()


def test_a_preset_carries_its_search(saved, preset):
    assert Translator.from_preset(saved).search == SearchSettings()
    translator = Translator.from_preset(saved)
    translator.search = SearchSettings(4, GNMT(0.6), 9)
    translator.save_to_preset(preset)
    assert json.loads((preset / "search.json").read_text()) == {"beam_size": 4, "gnmt": 0.6, "max_length": 9}
    assert load(preset).search == translator.search
    translator.search = SearchSettings(length_penalty=np.sqrt)
    with pytest.raises(UserError, match="length_penalty"):
        translator.save_to_preset(preset)
    assert load(preset).search == SearchSettings(4, GNMT(0.6), 9)


def test_a_search_that_is_not_listed_or_cannot_be_is_refused(preset):
    rewrite(preset / "search.json", beam_size=-1)
    seal(preset)
    refused(preset, "search.json: beam_size ")
    (preset / "search.json").unlink()
    seal(preset)
    (preset / "search.json").write_text("{}")
    refused(preset, "search.json")


def test_a_translator_of_another_class_is_named(preset):
    with pytest.raises(UserError, match="'Translator'"):
        MultilingualTranslator.from_preset(preset)
    rewrite(preset / "translator.json", **{"class": "MultilingualTranslator", "languages": ["en", "de"]})
    seal(preset)
    with pytest.raises(UserError, match="'MultilingualTranslator'"):
        Translator.from_preset(preset)


def test_a_subclass_of_its_translator_reads_it_and_ctranslate2_does_not(saved, tmp_path):
    class Mine(Translator):
        pass

    translator = Mine.from_preset(saved)
    assert type(translator) is Mine
    translator.save_to_preset(tmp_path / "mine")
    assert "this is a Mine" in why_not(Preset(tmp_path / "mine"))


def test_languages_may_share_a_tokenizer(saved, tmp_path):
    tokenizer = Translator.from_preset(saved).source_tokenizer
    backbone = AttentionBridgeBackbone(
        [20] * 4, "cnn", embedding_dim=4, width=4, num_decoder_layers=1, num_heads=2, hidden_dim=4
    )
    own = SubwordTokenizer(tokenizer.proto, config_file="own_tokenizer.json")
    equal = SubwordTokenizer(tokenizer.proto)
    tokenizers = {"nb": tokenizer, "de": own, "nn": tokenizer, "sv": equal}
    MultilingualTranslator(backbone, tokenizers).save_to_preset(tmp_path / "preset")
    loaded = load(tmp_path / "preset")
    files = {code: one.config_file for code, one in loaded.tokenizers.items()}
    assert files == {**dict.fromkeys(("nb", "nn", "sv"), "tokenizer.json"), "de": "own_tokenizer.json"}


def test_a_setting_of_a_newer_kzoo_is_said(preset):
    rewrite(preset / "translator.json", lowercase=True)
    seal(preset)
    refused(preset, "lowercase", "update")


@pytest.mark.parametrize("name", FILES)
def test_a_changed_byte_a_cut_or_a_missing_file_is_refused(preset, name):
    content = (preset / name).read_bytes()
    middle = len(content) // 2
    (preset / name).write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    refused(preset, name, "altered", "fetch")
    (preset / name).write_bytes(content[:middle])
    refused(preset, name, "altered")
    (preset / name).unlink()
    refused(preset, name, "fetch")


def test_a_changed_file_is_found_before_another_is_parsed(preset):
    (preset / "tokenizer.json").write_text('{"class_name": "system", "module": "os"}')
    seal(preset)
    with (preset / "model.weights.h5").open("ab") as file:
        file.write(b"!")
    with pytest.raises(UserError, match="model.weights.h5"):
        Translator.from_preset(preset)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kzoo_format": 2}, ["format 2", "update"]),
        ({"kzoo_format": "2"}, ["format '2'"]),
        ({"kzoo_format": None}, ["format None"]),
        ({"files": None}, ["checksums", "save_to_preset"]),
        ({"files": {}}, ["checksums"]),
        ({"files": {"config.json": 7}}, ["no translator.json"]),
        ({"files": {"config.json": "0" * 64}}, ["lists no "]),
        ({"files": {"../outside": "0" * 64}}, ["'../outside'", "inside"]),
        ({"files": {"/etc/hostname": "0" * 64}}, ["'/etc/hostname'", "inside"]),
        ({"files": {"assets\\..\\outside": "0" * 64}}, ["every system"]),
        ({"files": {"C:outside": "0" * 64}}, ["'C:outside'"]),
    ],
)
def test_metadata_that_promises_something_else_is_refused(preset, changes, words):
    rewrite(preset / "metadata.json", **changes)
    refused(preset, *words)


@pytest.mark.parametrize("content", ["", "[1]", "[" * 100_000, "{", "\udcff"])
def test_metadata_that_is_no_json_object_is_refused(preset, content):
    (preset / "metadata.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    refused(preset, "metadata.json", "JSON")


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_not_listed_is_not_read(preset, name):
    files = json.loads((preset / "metadata.json").read_text())["files"]
    files.pop(name)
    rewrite(preset / "metadata.json", files=files)
    with pytest.raises(UserError, match=f"no {name}"):
        Translator.from_preset(preset)


@pytest.mark.parametrize(("note", "shown"), [("README.md", "card"), ("scores.json", "scores")])
def test_what_a_page_shows_is_no_link_out_of_the_folder(note, shown, preset, tmp_path):
    (tmp_path / "secret").write_text("{}")
    (preset / note).symlink_to(tmp_path / "secret")
    with pytest.raises(UserError, match=note):
        getattr(Preset(preset), shown)


def test_a_link_out_of_the_folder_is_refused(preset, tmp_path):
    outside = (preset / "config.json").rename(tmp_path / "outside.json")
    (preset / "config.json").symlink_to(outside)
    refused(preset, "config.json", "link")


def test_a_link_of_a_folder_is_refused(preset, tmp_path):
    outside = (preset / "assets").rename(tmp_path / "outside")
    (preset / "assets").symlink_to(outside)
    with pytest.raises(UserError, match="vocabulary.spm"):
        Translator.from_preset(preset)


def test_a_link_within_the_folder_or_to_it_is_fine(preset, tmp_path):
    (preset / "weights").mkdir()
    (preset / "model.weights.h5").rename(preset / "weights" / "h5")
    (preset / "model.weights.h5").symlink_to("weights/h5")
    (tmp_path / "link").symlink_to(preset)
    Translator.from_preset(tmp_path / "link")


def test_weights_that_lie_in_another_file_are_refused(preset, tmp_path):
    weights = preset / "model.weights.h5"
    weights.rename(tmp_path / "outside.h5")
    with h5py.File(tmp_path / "outside.h5") as outside, h5py.File(weights, "w") as file:
        for name in outside:
            file[name] = h5py.ExternalLink(str(tmp_path / "outside.h5"), name)
    seal(preset)
    refused(preset, "model.weights.h5 has 0")
    shutil.copy(tmp_path / "outside.h5", weights)
    with h5py.File(weights, "r+") as file:
        name, shape = next((name, item.shape) for name, item in arrays(file))
        (tmp_path / "outside.raw").write_bytes(bytes(4 * np.prod(shape)))
        del file[name]
        file.create_dataset(name, shape, "float32", external=[(str(tmp_path / "outside.raw"), 0, 2**20)])
    seal(preset)
    refused(preset, f"/{name}", "model.weights.h5")


def test_an_array_that_is_only_declared_is_not_read(tmp_path):
    with h5py.File(tmp_path / "weights.h5", "w") as file:
        assert not holds_values(file.create_dataset("declared", (10_000, 1000), "float32"))
        assert holds_values(file.create_dataset("stored", data=np.zeros((4, 4), "float32")))


def arrays(file):
    """Return the names and arrays in an HDF5 file."""
    found = []
    file.visititems(lambda name, item: found.append((name, item)))
    return [(name, item) for name, item in found if isinstance(item, h5py.Dataset)]


def test_a_configuration_of_another_model_is_refused(tmp_path):
    """With a layer less, weights were left over, and it translated otherwise."""
    folder = tmp_path / "preset"
    tokenizer = SubwordTokenizer(train_subwords(["a man", "a dog"] * 20, 20))
    pope_tiny(tokenizer, **{**SMALL, "num_layers": 2}).save_to_preset(folder)
    whole = json.loads((folder / "config.json").read_text())
    for changes in (
        {"num_layers": 1},
        {"num_layers": 3},
        {"width": 16},
        {"feedforward_dim": 16},
        {"source_vocabulary_size": 21},
        {"target_vocabulary_size": 20},
        {"norm": "post"},
        {"position_encoding": "learned", "position_options": {}},
    ):
        config = {**whole["config"], **changes}
        (folder / "config.json").write_text(json.dumps({**whole, "config": config}))
        seal(folder)
        refused(folder, "configuration", "model.weights.h5")
        with pytest.raises(UserError):
            converted(Preset(folder))
    (folder / "config.json").write_text(json.dumps(whole))
    seal(folder)
    load(folder)


def spoil(file, change):
    """Change an array of an HDF5 file; return its name."""
    name, item = arrays(file)[0]
    changed = change(item[()])
    del file[name]
    if changed is not None:
        file[name] = changed
    return name


@pytest.fixture
def shard_size(monkeypatch):
    """Function that sets the size, in gigabytes, above which weights are split."""
    return lambda size: monkeypatch.setattr(preset_files, "SHARD_SIZE", size)


@pytest.mark.parametrize("sharded", [False, True])
def test_weights_that_are_not_the_model_s_are_refused(preset, tmp_path, shard_size, sharded):
    folder = tmp_path / "whole"
    if sharded:
        shard_size(3e-6)
    load(preset).save_to_preset(folder)
    for number, (change, words) in enumerate(
        (
            (lambda values: None, "its configuration has"),
            (lambda values: values[..., :-1], "its configuration has"),
            (lambda values: values[None], "its configuration has"),
            (lambda values: np.full_like(values, np.nan), "finite"),
            (lambda values: np.full_like(values, np.inf), "finite"),
            (lambda values: values.astype("S8"), "finite"),
            (lambda values: values.astype("int32"), "with floating-point numbers"),
            (lambda values: values > 0, "with bits"),
        )
    ):
        spoiled = shutil.copytree(folder, tmp_path / f"spoiled {number}")
        path = sorted(spoiled.glob("*.weights.h5"))[-1]
        with h5py.File(path, "r+") as file:
            spoil(file, change)
        seal(spoiled)
        refused(spoiled, words, path.name)
        with pytest.raises(UserError, match="weights"):
            converted(Preset(spoiled))
    with h5py.File(sorted(folder.glob("*.weights.h5"))[-1], "r+") as file:
        file["more"] = np.zeros(3)
    seal(folder)
    refused(folder, "(3,)")
    with pytest.raises(UserError, match="more"):
        converted(Preset(folder))


@pytest.mark.parametrize(
    ("entry", "value"), [("source_language", 5), ("target_language", ["de"]), ("languages", [1, 2])]
)
def test_a_language_that_is_no_code_is_refused(preset, entry, value):
    rewrite(preset / "translator.json", **{entry: value})
    seal(preset)
    refused(preset, entry, repr(value))


def test_a_pointer_of_git_lfs_is_named(preset):
    (preset / "model.weights.h5").write_text("version https://git-lfs.example/spec/v1\nsize 12\n")
    refused(preset, "model.weights.h5", "pointer")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_not_saved(saved, preset, value):
    translator = Translator.from_preset(saved)
    weight = translator.backbone.target_embedding.embeddings
    values = keras.ops.convert_to_numpy(weight).copy()
    values[5, 3] = value
    weight.assign(values)
    with pytest.raises(UserError, match="finite"):
        translator.save_to_preset(preset)
    load(preset)  # the earlier one


def test_a_vocabulary_beyond_the_model_s_is_refused(preset, tmp_path):
    larger = SubwordTokenizer(train_subwords(["a man", "a dog", "two cats"] * 20, 24))
    with pytest.raises(UserError, match="tokenizer.json"):
        Translator(load(preset).backbone, larger).save_to_preset(tmp_path / "other")
    (preset / "assets" / "tokenizer" / "vocabulary.spm").write_bytes(larger.proto)
    seal(preset)
    refused(preset, "tokenizer.json")


@pytest.mark.parametrize("size", [3e-6, 1e-8], ids=["several weights a file", "no weight fits"])
def test_weights_in_several_files_are_those_in_one(preset, tmp_path, shard_size, size):
    shard_size(size)
    translator, folder = load(preset), tmp_path / "sharded"
    translator.save_to_preset(folder)
    shards = sorted(path.name for path in folder.glob("model_*.weights.h5"))
    assert len(shards) > 1
    assert not (folder / "model.weights.h5").exists()
    for ours, theirs in zip(load(folder).get_weights(), translator.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    with (folder / shards[1]).open("ab") as file:
        file.write(b"!")
    refused(folder, shards[1], "altered")


def test_only_listed_shards_are_read(preset, tmp_path, shard_size):
    shard_size(3e-6)
    folder = tmp_path / "sharded"
    load(preset).save_to_preset(folder)
    for weight_map, words in (
        ({"/x": "../elsewhere.h5"}, "lists no ../elsewhere.h5"),
        ({"/x": [3]}, "lists no 3"),
        (None, "lists no None"),
    ):
        rewrite(folder / "model.weights.json", weight_map=weight_map)
        seal(folder)
        refused(folder, words)
