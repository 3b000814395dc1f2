"""Whether a folder's files are still what was written: SHA-256 of each, as `sha256sum` writes and checks."""

import hashlib
from pathlib import Path

SUMS = "SHA256SUMS"


def write_digests(folder: Path):
    """Write the SHA-256 of each file of a folder beside them; `sha256sum --check` in the folder reads it."""
    lines = [f"{_digest(path)}  {path.name}\n" for path in sorted(folder.iterdir())]
    (folder / SUMS).write_text("".join(lines))


def damage(folder: Path) -> str:
    """Return what is wrong with a folder that `write_digests` has seen; empty if nothing is.

    A folder without digests, from before they were written, is taken as it is.
    """
    sums = folder / SUMS
    if not sums.exists():
        return ""
    try:
        for line in sums.read_text().splitlines():
            digest, _, name = line.partition("  ")
            if _digest(folder / name) != digest:
                return f"{name} is not as it was written"
    except (OSError, ValueError) as error:
        return f"{getattr(error, 'filename', None) or SUMS} cannot be read"
    return ""


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
