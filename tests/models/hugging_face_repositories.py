"""What the tests of `kzoo.presets.marian` and `kzoo.presets.m2m` share."""

import json
import shutil

import pytest

TEXTS = [
    "A dog runs in the yard.",
    "Two  men – ☃ sing!",
    "",
    " leading",
    ">>fra<< A cat.",
    ">>xxx<< A",
    "__fr__ A",
    "a\tb",
    "e\u0301te\u0301 ﬁ ½",
    "🙂🙂",
]
POINTER = "version https://git-lfs.example/spec/v1\noid sha256:4d7a\nsize 12345\n"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Keep what is converted out of the user's cache."""
    monkeypatch.setenv("KZOO_CACHE", str(tmp_path / "cache"))


def changed(folder, file="config.json", **values):
    """Change entries of a repository's JSON file."""
    path = folder / file
    before = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**before, **values}))


def best_scores(translator, texts, **languages):
    """Return the score of each text's best translation: those of random weights tell languages apart."""
    return [best.score for (best,) in translator.n_best(texts, 1, unknown="translate", **languages)]


def snapshot_of(folder, fetched: list[str]):
    """Return a `snapshot_download` that copies files from a folder, and adds their names to `fetched`."""

    def snapshot_download(repository, *, revision, allow_patterns, local_dir):
        for path in folder.iterdir():
            if path.name in allow_patterns:
                fetched.append(path.name)
                shutil.copyfile(path, local_dir / path.name)

    return snapshot_download
