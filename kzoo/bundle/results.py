"""The results of a bundle's recipe, in files small enough to carry from machine to machine."""

import io
import shutil
import tarfile
from pathlib import Path

from kzoo.files import sha256, whole_file
from kzoo.training.checkpoints import SUMS

PIECE = 14_000_000  # bytes


def collect(name: str, run: Path, results: Path):
    """Copy a run's scores, history and log to the folder of results, and its preset in pieces.

    `cat NAME.preset.tar.* | tar x` restores the preset, in the folder NAME; `sha256sum -c SHA256SUMS`
    checks them.

    Args:
        name: prefix of its files' names.
        run: the run's folder; a failed run may lack some of these files.
        results: the folder.
    """
    for path in (*run.glob("*.json"), *run.glob("*.csv"), *run.glob("log")):
        with whole_file(results / f"{name}.{path.name}") as file:
            shutil.copyfile(path, file)
    earlier = set(results.glob(f"{name}.preset.tar.*"))
    if (run / "preset").is_dir():
        for number, piece in enumerate(_pieces(run / "preset", name)):
            path = results / f"{name}.preset.tar.{number:02}"
            with whole_file(path) as file:
                file.write_bytes(piece)
            earlier.discard(path)
    for path in earlier:
        path.unlink()
    own = (path for path in results.iterdir() if path.is_file())  # a preset may have been joined here
    files = sorted(path for path in own if path.name != SUMS and path.name[0] != ".")
    with whole_file(results / SUMS) as file:
        file.write_text(digest_lines(files))


def _pieces(folder: Path, name: str) -> list[memoryview]:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(folder, arcname=name)
    data = packed.getbuffer()
    return [data[start : start + PIECE] for start in range(0, len(data), PIECE)]


def digest_lines(files) -> str:
    """Return one line per file: its SHA-256 and its name."""
    return "".join(f"{sha256(path)}  {path.name}\n" for path in files)
