"""Keeps what JAX and TensorFlow compile in the cache: commands then start faster from the second time on."""

import contextlib
import hashlib
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kzoo.files import cache_folder

LIMIT = 2 * 2**30  # bytes; the oldest programs beyond are removed
FLAG = "--tf_xla_persistent_cache_directory"


def keep_compiled_programs():
    """Let the backends read and write compiled programs in the cache, in a folder for this kind of processor.

    Call this before a backend is imported. Variables of the user's own are kept: `JAX_COMPILATION_CACHE_DIR`,
    and a folder in `TF_XLA_FLAGS`. With `KZOO_KEEP_COMPILED=0`, nothing is kept.
    """
    if os.environ.get("KZOO_KEEP_COMPILED") == "0":
        return
    folder = cache_folder() / "compiled"
    try:
        remove_oldest(folder)
        (folder / _here()).mkdir(parents=True, exist_ok=True)
    except OSError:  # a full or read-only disk: commands work without
        return
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder / _here()))
    flags = os.environ.get("TF_XLA_FLAGS", "")
    if FLAG not in flags and not set(str(folder)) & set(" ,"):  # which separate flags
        os.environ["TF_XLA_FLAGS"] = f"{flags} {FLAG}={folder / _here()}".strip()


def remove_oldest(folder: Path, limit: int = LIMIT):
    """Remove the oldest programs until the others are within the limit."""
    found = []
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):  # another process removed it
            if path.is_file():
                found.append((path.stat().st_mtime, path.stat().st_size, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= limit:
            break
        path.unlink(missing_ok=True)
        total -= size


def _here() -> str:
    """Return a name for this processor and these versions: programs of others may not run."""
    made_of = [platform.machine(), *map(_version, ("jaxlib", "tensorflow", "tensorflow-cpu"))]
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
        made_of += next(([line] for line in file if line.startswith(("flags", "Features"))), [])
    return hashlib.sha256(repr(made_of).encode()).hexdigest()[:16]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
