"""What a command opens of a preset: each file once, or twice if it is compared with its checksum first."""

import json
import subprocess
import sys

import pytest

from kzoo.presets import locate

PRESET = locate("pope_small_multi30k_en_de")
NOTING = """
import json, os, sys
from collections import Counter

folder, *sys.argv = sys.argv[1:]
opened = Counter()

def note(event, arguments):
    if event == "open" and isinstance(arguments[0], str):
        path = os.path.realpath(arguments[0])
        if path.startswith(folder + os.sep):
            opened[os.path.relpath(path, folder)] += 1

sys.addaudithook(note)
from kzoo.cli import main
try:
    main()
finally:
    print(json.dumps(opened))
"""
SMALL = {
    "metadata.json",
    "config.json",
    "translator.json",
    "search.json",
    "joint_tokenizer.json",
    "assets/joint_tokenizer/vocabulary.spm",
}
WEIGHTS = "model.weights.h5"  # HDF5 opens them again, which Python does not see


def opened(*options) -> dict[str, int]:
    """Return how often `kzoo translate` opens each file of the preset."""
    command = [sys.executable, "-c", NOTING, str(PRESET.folder.resolve()), "kzoo", "translate"]
    command += [PRESET.given, "A dog runs.", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    translation, counts = done.stdout.splitlines()
    assert translation == "Ein Hund rennt."
    return json.loads(counts)


def test_ctranslate2_opens_each_file_once(tmp_path, monkeypatch):
    pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")
    monkeypatch.setenv("KZOO_CACHE", str(tmp_path))
    assert opened() == dict.fromkeys({*SMALL, WEIGHTS}, 1)
    assert opened() == dict.fromkeys(SMALL, 1)  # it is converted already


def test_keras_opens_what_keras_hub_reads_twice():
    """To compare all files before the first is used."""
    twice = {"config.json": 2, "assets/joint_tokenizer/vocabulary.spm": 2}
    assert opened("--engine", "keras") == {**dict.fromkeys({*SMALL, WEIGHTS}, 1), **twice}
