"""What a bundle's run leaves: small files that can be checked and joined."""

import hashlib
import subprocess

from kzoo.bundle import results
from kzoo.bundle.results import collect


def make_run(folder, random):
    (folder / "preset" / "assets").mkdir(parents=True)
    (folder / "preset" / "model.weights.h5").write_bytes(random.bytes(100_000))
    (folder / "preset" / "assets" / "words").write_text("a b c")
    for name in ("scores.json", "history.csv", "log"):
        (folder / name).write_text(name)
    (folder / "checkpoints").mkdir()
    return folder


def test_pieces_are_small_and_join_to_the_preset(tmp_path, random, monkeypatch):
    monkeypatch.setattr(results, "PIECE", 30_000)
    run, out = make_run(tmp_path / "run", random), tmp_path / "out"
    (tmp_path / "out").mkdir()
    (out / "other.log").touch()
    (out / "a.preset.tar.09").touch()  # of an earlier, larger one
    collect("a", run, out)
    collect("a", run, out)
    pieces = [f"a.preset.tar.0{number}" for number in range(4)]
    texts = ["a.history.csv", "a.log", "a.scores.json", "other.log"]
    assert sorted(path.name for path in out.iterdir()) == sorted(["SHA256SUMS", *texts, *pieces])
    assert all((out / piece).stat().st_size <= 30_000 for piece in pieces)
    subprocess.run("cat a.preset.tar.* | tar x", shell=True, cwd=out, check=True)
    for name in ("model.weights.h5", "assets/words"):
        assert (out / "a" / name).read_bytes() == (run / "preset" / name).read_bytes()
    collect("a", run, out)  # the joined preset beside them does no harm


def test_sums_are_right(tmp_path, random):
    collect("a", make_run(tmp_path / "run", random), tmp_path / "out")
    lines = (tmp_path / "out" / "SHA256SUMS").read_text().splitlines()
    assert len(lines) == 4
    for line in lines:
        digest, name = line.split("  ")
        assert hashlib.sha256((tmp_path / "out" / name).read_bytes()).hexdigest() == digest


def test_a_run_that_failed_leaves_its_log(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "log").write_text("error: …")
    collect("a", tmp_path / "run", tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["SHA256SUMS", "a.log"]
