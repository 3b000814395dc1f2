"""The shelf's list, and presets from elsewhere.

There is no network in tests: the one function of each host's package that downloads is replaced by one that
copies from a local folder, and leaves notes of its own, as the real one does.
"""

import fnmatch
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import huggingface_hub
import kagglehub
import numpy as np
import pytest
from message_of import message_of
from typer.testing import CliRunner

from kzoo import presets
from kzoo.cli import app
from kzoo.cli.listing import described
from kzoo.errors import UserError
from kzoo.hub import Preset, location, seal
from kzoo.models import Translator
from kzoo.presets import list_presets, load, locate
from kzoo.presets.builders import BUILDERS, family

NAME = "pope_small_multi30k_en_de"
HANDLE = "hf://someone/some-preset"
KAGGLE = "kaggle://someone/some-model/keras/tiny_en_de"


class Hub:
    """A host with one preset; counts what is downloaded, and can be told to fail."""

    def __init__(self, folder):
        self.folder = folder
        self.asked = []
        self.online = True

    def download(self, preset, name, folder, notes):
        self.asked.append((preset, name))
        if not self.online:
            raise ConnectionError("Name or service not known\nand more lines")
        if not (self.folder / name).is_file():
            raise FileNotFoundError(f"404: {name}")
        for path, content in ((name, (self.folder / name).read_bytes()), (f"{notes}/{name}", b"")):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)

    def snapshot_download(self, repository, *, revision, allow_patterns, local_dir):
        every = [
            path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*") if path.is_file()
        ]
        for name in every:
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in allow_patterns):  # the real one's way
                self.download((repository, revision), name, local_dir, ".cache/huggingface")

    def model_download(self, handle, path, *, output_dir):
        self.download(handle, path, Path(output_dir), ".complete")
        return f"{output_dir}/{path}"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """The two hosts, faked, and an empty cache."""
    made = Hub(shutil.copytree(location.SHELF / NAME, tmp_path / "hub" / "preset"))
    monkeypatch.setenv("KZOO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(huggingface_hub, "snapshot_download", made.snapshot_download)
    monkeypatch.setattr(kagglehub, "model_download", lambda *given, **how: made.model_download(*given, **how))
    return made


def kept(tmp_path):
    """What is in the cache: files only."""
    return sorted(path for path in (tmp_path / "cache").rglob("*") if not path.is_dir())


def refused(preset, *words):
    """Try to find a preset; all words are in the one line of the error."""
    with pytest.raises(UserError) as error:
        locate(preset)
    assert "\n" not in str(error.value)
    assert all(word in str(error.value) for word in words), error.value


def test_builders_are_found_by_editors():
    assert {*BUILDERS, "build", "builder", "list_presets", "load", "locate", "trim"} == set(presets.__all__)


def test_fetched_once_checked_and_offline_from_then_on(hub, tmp_path, shelved):
    for ours, theirs in zip(load(HANDLE).get_weights(), shelved(NAME).get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    folder = tmp_path / "cache" / "presets" / "hf" / "someone" / "some-preset" / "main"
    assert {preset for preset, _ in hub.asked} == {("someone/some-preset", None)}
    names = ["metadata.json", *Preset(folder).files, "README.md", "scores.json"]
    assert sorted(name for _, name in hub.asked) == sorted(names)
    assert kept(tmp_path) == sorted(folder / name for name in names)  # files, no links, no notes
    assert not any(path.is_symlink() for path in kept(tmp_path))
    hub.online = False
    assert locate(HANDLE).folder == folder


@pytest.mark.parametrize(
    ("handle", "asked", "folder"),
    [
        (f"{HANDLE}@v1.0", ("someone/some-preset", "v1.0"), "hf/someone/some-preset/v1.0"),
        (f"{HANDLE}@refs/pr/1", ("someone/some-preset", "refs/pr/1"), "hf/someone/some-preset/refs%2Fpr%2F1"),
        (KAGGLE, KAGGLE[9:], "kaggle/someone/some-model/keras/tiny_en_de/latest"),
        (f"{KAGGLE}/3", f"{KAGGLE[9:]}/3", "kaggle/someone/some-model/keras/tiny_en_de/3"),
    ],
)
def test_a_revision_or_version_is_pinned(hub, tmp_path, handle, asked, folder):
    assert locate(handle).folder == tmp_path / "cache" / "presets" / folder
    assert {preset for preset, _ in hub.asked} == {asked}


@pytest.mark.parametrize("handle", [HANDLE, KAGGLE])
def test_a_preset_may_have_no_card_and_no_scores(hub, handle):
    (hub.folder / "README.md").unlink()
    (hub.folder / "scores.json").unlink()
    locate(handle).check()


def test_a_kaggle_notebook_has_a_folder_of_its_own(hub):
    hub.model_download = lambda handle, path, output_dir: str(hub.folder / path)
    locate(KAGGLE).check()
    assert (locate(KAGGLE).folder / "README.md").is_file()


@pytest.mark.parametrize(
    "handle",
    [
        "hf://someone",
        "hf://someone/a/b",
        "hf://../a",
        "hf://someone/../a",
        "hf://someone/a@",
        "hf://someone/a@..",
        "hf://someone/a@../b",
        "kaggle://someone/some-model",
        "kaggle://someone/some-model/pytorch/tiny",
        "kaggle://someone/../keras/tiny",
        "kaggle://someone/some-model/keras/tiny/newest",
        "gs://bucket/preset",
        "https://example.org/preset",
    ],
)
def test_unknown_handles_are_refused(hub, handle):
    refused(handle, repr(handle), "hf://USER/REPOSITORY", "kaggle://USER/MODEL")
    assert hub.asked == []


@pytest.mark.parametrize("handle", [HANDLE, KAGGLE])
def test_no_network_is_said(hub, tmp_path, handle):
    hub.online = False
    refused(handle, handle, "metadata.json", "Name or service", "cache")
    assert kept(tmp_path) == []


def test_a_break_leaves_nothing_and_the_next_try_all(hub, tmp_path):
    weights = (hub.folder / "model.weights.h5").rename(hub.folder / "elsewhere")
    refused(HANDLE, HANDLE, "model.weights.h5")
    assert kept(tmp_path) == []
    weights.rename(hub.folder / "model.weights.h5")
    locate(HANDLE).check()


def test_a_name_is_no_pattern(hub):
    (hub.folder / "notes[1].txt").write_text("kept")
    metadata = json.loads((hub.folder / "metadata.json").read_text())
    metadata["files"]["notes[1].txt"] = hashlib.sha256(b"kept").hexdigest()
    (hub.folder / "metadata.json").write_text(json.dumps(metadata))
    assert (locate(HANDLE).folder / "notes[1].txt").read_text() == "kept"


def test_what_a_killed_download_left_is_removed_by_the_next(hub, tmp_path):
    left = tmp_path / "cache" / "presets" / "hf" / "someone" / "some-preset" / ".main.kzoo-01234567"
    left.mkdir(parents=True)
    (left / "metadata.json").write_text("{")
    os.utime(left, (0, 0))
    assert [path.name for path in locate(HANDLE).folder.parent.iterdir()] == ["main"]


def test_an_altered_file_is_not_kept(hub, tmp_path):
    (hub.folder / "config.json").write_text("{}")
    refused(HANDLE, HANDLE, "config.json", "fetch")
    assert kept(tmp_path) == []


@pytest.mark.parametrize("name", ["../../../../harm", "/harm", "assets/../../harm"])
def test_nothing_is_written_outside_of_the_folder(hub, tmp_path, name):
    metadata = json.loads((hub.folder / "metadata.json").read_text())
    metadata["files"][name] = "0" * 64
    (hub.folder / "metadata.json").write_text(json.dumps(metadata))
    refused(HANDLE, HANDLE, repr(name), "inside")
    assert [asked for _, asked in hub.asked] == ["metadata.json"]
    assert kept(tmp_path) == []


def test_a_newer_format_is_refused_before_its_files_are_fetched(hub, tmp_path):
    metadata = json.loads((hub.folder / "metadata.json").read_text())
    (hub.folder / "metadata.json").write_text(json.dumps({**metadata, "kzoo_format": 2}))
    refused(HANDLE, HANDLE, "format 2", "update")
    assert len(hub.asked) == 1


def test_two_that_fetch_at_once_do_not_harm_each_other(hub, tmp_path, monkeypatch):
    both_have_all = threading.Barrier(2)
    fill = location._fill

    def fill_together(*arguments):
        fill(*arguments)
        both_have_all.wait(30)

    monkeypatch.setattr(location, "_fill", fill_together)
    found = []
    threads = [threading.Thread(target=lambda: found.append(locate(HANDLE).folder)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2 and len(set(found)) == 1
    Preset(found[0]).check()
    assert [path.name for path in found[0].parent.iterdir()] == ["main"]


def test_what_was_altered_in_the_cache_is_refused_until_it_is_deleted(hub):
    folder = locate(HANDLE).folder
    (folder / "joint_tokenizer.json").write_text("{}")
    with pytest.raises(UserError, match=f"{HANDLE}: joint_tokenizer.json .*{folder}"):
        load(HANDLE)
    shutil.rmtree(folder)
    locate(HANDLE).check()


def test_a_cache_that_cannot_be_written_is_one_line(hub, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KZOO_CACHE", str(tmp_path / "file"))
    refused(HANDLE, "someone/some-preset", "KZOO_CACHE")


def test_locate_takes_a_folder_a_run_or_a_name(tmp_path):
    shelved = location.SHELF / NAME
    shutil.copytree(shelved, tmp_path / "run" / "preset")
    assert locate(NAME).folder == shelved
    assert locate(shelved).folder == shelved
    assert locate(locate(NAME)).folder == shelved
    assert locate(tmp_path / "run").folder == tmp_path / "run" / "preset"
    refused("pope_small_multi30k_en_d", NAME)
    refused(tmp_path / "none", "folder", "none")
    (tmp_path / "opus-2020.zip").write_bytes(b"PK")
    refused(tmp_path / "opus-2020.zip", "file", "folder")
    with zipfile.ZipFile(tmp_path / "opus-2020.zip", "w") as archive:
        for name in ("opus.bpe32k.npz", "decoder.yml", "opus.vocab.yml", "source.bpe"):
            archive.writestr(name, "")
    refused(tmp_path / "opus-2020.zip", "Marian", "hf://")
    with zipfile.ZipFile(tmp_path / "opus-2020.zip") as archive:
        archive.extractall(tmp_path / "opus")
    refused(tmp_path / "opus", "Marian", "hf://")
    (tmp_path / "stopped").mkdir()
    refused(tmp_path / "stopped", "folder", "preset")
    (tmp_path / "stopped" / "recipe.json").write_text("{}")
    refused(tmp_path / "stopped", "run", "kzoo train")


def test_a_located_preset_stays_the_same_when_its_folder_is_replaced(tmp_path, monkeypatch):
    folder = shutil.copytree(location.SHELF / NAME, tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    preset = locate("mine")
    search, files = preset.search, preset.files
    (folder / "search.json").write_text('{"beam_size": 2}')
    (folder / "translator.json").write_text("{}")
    seal(folder)
    assert locate("mine").search.beam_size == 2
    monkeypatch.chdir("/")
    assert (preset.search, preset.files, preset.name) == (search, files, "mine")
    with pytest.raises(UserError, match="translator.json"):
        preset.settings  # noqa: B018


def test_a_preset_that_is_given_by_its_folder_alone_has_the_folder_s_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in (Path("mine"), tmp_path / "mine", tmp_path / "mine" / "preset"):
        assert Preset(folder).name == "mine"


@pytest.mark.parametrize("name", [NAME, "bart_base_en"])  # the shelf's, and keras-hub's
def test_a_folder_in_the_working_folder_comes_before_a_preset_of_its_name(
    tmp_path, monkeypatch, name, shelved
):
    shelved("image_text_tiny_scenes_en_de").save_to_preset(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert load(name).image_shape is not None


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ('{"model_type": "nllb-moe"}', "'nllb-moe'"),
        ("version https://git-lfs.example/spec/v1\n", "pointer of Git LFS"),
        ('{"model_type": ', "config.json"),
    ],
)
def test_a_repository_that_cannot_be_converted_is_not_called_incomplete(hub, config, named, tmp_path):
    (tmp_path / "config.json").write_text(config)
    assert named in message_of(load, tmp_path)
    shutil.rmtree(hub.folder)
    hub.folder.mkdir()
    (hub.folder / "config.json").write_text(config)
    assert named in message_of(load, HANDLE)


def test_a_repository_that_can_be_converted_is_not_called_of_another_type(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "marian"}')
    assert "metadata.json" in message_of(lambda: Preset(tmp_path).metadata)


def test_a_builder_has_no_weights_to_load():
    message = message_of(load, "pope_tiny")
    assert "kzoo.presets.pope_tiny()" in message
    assert message_of(Translator.from_preset, "pope_tiny") == message


@pytest.mark.parametrize("dtype", ["bf16", 16])
def test_a_dtype_that_keras_does_not_know_is_named(dtype):
    with pytest.raises(UserError, match=f"{{'dtype': {dtype!r}}}"):
        load(NAME, dtype=dtype)


def test_the_shelf_s_presets_are_as_they_were_sealed():
    for name in location.shelved():
        locate(name).check()


def test_what_can_be_installed_is_what_the_shelf_has():
    assert list(location.INSTALLABLE) == location.shelved()


def printed(pattern):
    return CliRunner(env={"COLUMNS": "120"}).invoke(app, ["list", pattern]).stdout


def test_the_list_says_family_languages_size_scores_and_licence():
    shown = printed("*")
    for name in list_presets():
        assert name in shown
    assert "builder, to be trained" in shown and "2.3 M │ Small Transformer with orthonormal" in shown
    shown = printed(NAME)
    for part in (NAME, "pope", "en → de", "6.8 M parameters, 14.", "BLEU 40.8 on test_2016_flickr"):
        assert part in shown
    assert "licence: non-commercial research" in shown
    assert "builder" not in shown
    assert "image_text" in printed("image_text_tiny_scenes_en_de")


@pytest.mark.parametrize("name", location.shelved())
def test_every_shelved_preset_can_be_loaded(name, shelved):
    assert shelved(name).count_params() > 0


def test_a_preset_loads_where_nothing_was_imported_before():
    """Packages import their classes when they are first used, and a preset may be the first to name one."""
    command = [sys.executable, "-m", "kzoo", "translate", "glyph_tiny_tatoeba_zh_en", "我爱你。"]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "I love you.\n"


def test_presets_of_many_directions_and_without_scores(tmp_path):
    folder = shutil.copytree(location.SHELF / NAME, tmp_path / "preset")
    settings = {"class": "MultilingualTranslator", "tokenizers": [], "languages": ["en", "de", "fr"]}
    (folder / "translator.json").write_text(json.dumps(settings))
    seal(folder)
    rows = [{"source": "en", "target": "de", "bleu": 20.0}, {"source": "de", "target": "en", "bleu": 30.0}]
    (folder / "scores.json").write_text(json.dumps({"licence": "CC BY 4.0", "scores": rows}))
    lines = described(Preset(folder))
    assert [lines[0], *lines[2:]] == [
        "en, de, fr",
        "BLEU 25.0, mean of 2 directions",
        "licence: CC BY 4.0",
    ]
    (folder / "scores.json").unlink()
    assert described(Preset(folder))[2:] == ["not scored", "licence: not given"]


def test_families_go_by_the_backbone():
    assert family("TransformerBackbone", {"image_shape": None}) == "pope"
    assert family("TransformerBackbone", {"image_shape": [64, 64, 3]}) == "image_text"
    assert family("RecurrentBackbone", {}) == "glyph"
    assert family("AttentionBridgeBackbone", {}) == "attention_bridge"


def test_attention_reads_capitals_as_translate_does(shelved):
    translator, text = shelved("pope_small_multi30k_en_de"), "Two men are sitting on a bench."
    usual, capitals = (translator.attention(one) for one in (text, text.upper()))
    for side in (0, 1):  # not letter by letter
        assert list(map(str.lower, capitals[side])) == list(map(str.lower, usual[side]))
