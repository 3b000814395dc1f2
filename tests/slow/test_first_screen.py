"""The commands of the README's first screen, as a newcomer types them: in a clone, with an empty home."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from kzoo.data import open_corpus

ROOT = Path(__file__).resolve().parents[2]
FIRST = re.findall(r"^    (.+?)(?: +#.*)?$", (ROOT / "README.md").read_text("utf-8"), re.M)[:2]


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A function that runs a command in a clone of what is committed."""
    folder = tmp_path_factory.mktemp("newcomer")
    subprocess.run(["git", "clone", "-q", ROOT, folder / "kzoo"], check=True)
    (folder / "home").mkdir()
    kept = {"PATH", "LANG", "TMPDIR", "KZOO_DATA"}
    kept |= {name for name in os.environ if name.startswith(("PIP_", "SSL_", "OPENBLAS_"))}
    environment = {name: os.environ[name] for name in kept & os.environ.keys()}
    environment["HOME"] = str(folder / "home")

    def run(command: str) -> str:
        words = shlex.split(command)
        done = subprocess.run(
            words, cwd=folder / "kzoo", env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        return done.stdout

    run.folder = folder / "kzoo"
    return run


def test_the_demo_s_next_commands_work_as_printed(clone):
    demo, _ = FIRST
    assert demo == "make demo"
    translate, train = re.findall(r"^    (\S*kzoo .+)$", clone(demo), re.M)
    assert clone(translate) == "Sie rennt mit einem Kind im Hof.\n"
    for language in ("en", "de"):
        sentences = open_corpus("scenes").sentences("train", language)[:600]
        (clone.folder / f"train.{language}").write_text("\n".join(sentences) + "\n", "utf-8")
    assert "train.en train.de" in train
    clone(f"{train} epochs=1")
    assert (clone.folder / "runs/en_de/preset/config.json").is_file()


def test_the_tests_pass(clone):
    _, test = FIRST
    assert test == "make test"
    assert " passed" in clone(test)
