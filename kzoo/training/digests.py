"""Checks that a folder's files are as they were written: a SHA-256 for each, in `sha256sum`'s format."""

from collections.abc import Iterable
from pathlib import Path

from kzoo.files import sha256

SUMS = "SHA256SUMS"


def write_digests(folder: Path):
    """Write the SHA-256 of each file of a folder into the folder; `sha256sum --check` there reads them."""
    (folder / SUMS).write_text(digest_lines(sorted(folder.iterdir())))


def digest_lines(files: Iterable[Path]) -> str:
    """Return one line per file: its SHA-256 and its name."""
    return "".join(f"{sha256(path)}  {path.name}\n" for path in files)


def damage(folder: Path, names: Iterable[str]) -> str:
    """Return what is wrong with a folder since `write_digests`; empty if nothing is.

    A folder without digests, from before digests were written, is accepted as it is.

    Args:
        folder: the folder.
        names: of the files that must be in it.

    Raises:
        OSError: a file cannot be read at present, which does not say that it is damaged.
    """
    sums = folder / SUMS
    if not sums.exists():
        return ""
    try:
        lines = sums.read_text().splitlines()
        listed = {line.partition("  ")[2] for line in lines}
        if missing := [name for name in names if name not in listed]:
            return f"{SUMS} lacks {missing[0]}"
        for line in lines:
            digest, _, name = line.partition("  ")
            if sha256(folder / name) != digest:
                return f"{name} is not as it was written"
    except FileNotFoundError as error:
        return f"{Path(error.filename).name} is missing"
    except ValueError:
        return f"{SUMS} is not text"
    return ""
