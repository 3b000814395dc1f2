"""Files and folders that reach the disk whole or not at all."""

import contextlib
import fcntl
import glob
import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from kzoo.errors import UserError


def cache_folder() -> Path:
    """Return the folder for downloads: the environment variable KZOO_CACHE, or `~/.cache/kzoo`."""
    return Path(os.environ.get("KZOO_CACHE") or "~/.cache/kzoo").expanduser()


def sha256(path: str | os.PathLike) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def whole_file(path: str | os.PathLike) -> Iterator[Path]:
    """Give another name to write to, and move it to `path` when the block ends without an error.

    Nobody sees half of the file, and a failure, of power too, leaves what was there before. Missing folders
    are made.

    Args:
        path: the file.

    Raises:
        UserError: it cannot be written, as when the disk is full.
    """
    if _is_no_file(path):
        yield Path(path)
        return
    path = Path(path).resolve()  # a link's target is replaced, not the link
    with _beside(path) as beside:
        yield beside
        to_disk(beside)
        os.replace(beside, path)
        to_disk(path.parent)


def check_writable(path: str | os.PathLike):
    """Try whether a file can be written, before the work whose result it is to hold.

    Args:
        path: the file; what it holds stays. Missing folders are made.

    Raises:
        UserError: it cannot be written.
    """
    if _is_no_file(path):
        return
    path = Path(path).resolve()
    if path.is_dir():
        raise UserError(f"{path}: cannot be written (it is a folder)")
    with _beside(path) as beside:
        beside.touch()


def _is_no_file(path: str | os.PathLike) -> bool:
    """Return whether a path is a device or a pipe: written to as it is, for its target may have no name."""
    path = Path(path)
    return path.exists() and not (path.is_file() or path.is_dir())


@contextlib.contextmanager
def whole_folder(path: str | os.PathLike) -> Iterator[Path]:
    """Give an empty folder to fill, and move it to `path` when the block ends without an error.

    An earlier folder of that name stays until the new one is complete.

    Args:
        path: the folder.

    Raises:
        UserError: it cannot be written, as when the disk is full, or is a file.
    """
    path = Path(path).resolve()
    if path.is_file():
        raise UserError(f"{path}: cannot be written (it is a file, not a folder)")
    with _beside(path) as beside:
        _remove_abandoned(path)
        beside.mkdir()
        with _held(beside):
            yield beside
            for part in (*beside.rglob("*"), beside):
                to_disk(part)
            earlier = beside.with_name(beside.name + EARLIER)
            if path.exists():
                os.rename(path, earlier)
            os.rename(beside, path)
        to_disk(path.parent)
        shutil.rmtree(earlier, ignore_errors=True)


def _remove_abandoned(path: Path):
    """Remove what `whole_folder` left of a folder in processes that were killed meanwhile."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*"):
        found = HIDDEN.fullmatch(left.name)
        if not found or found["name"] != path.name or found["earlier"] or not left.is_dir():
            continue
        with contextlib.suppress(OSError):  # another's, or just moved
            # One that is younger may not be held yet.
            if time.time() - left.stat().st_mtime > 60:
                with _held(left) as mine:
                    if mine:
                        shutil.rmtree(left)


@contextlib.contextmanager
def _held(folder: Path) -> Iterator[bool]:
    """Hold a folder as long as the block runs, and this process; give whether nobody else does."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        mine = True
    except OSError:  # another process holds it, or the file system cannot say
        mine = False
    try:
        yield mine
    finally:
        os.close(descriptor)


def check_space(folder: Path, size: int):
    """Raise OSError if a file of `size` bytes does not fit on the disk.

    For writers that fail badly half-way: HDF5's library can crash the process when the disk is full. Where
    the system cannot reserve space, as macOS, nothing is known beforehand.
    """
    if not hasattr(os, "posix_fallocate"):
        return
    path = folder / _hidden("space")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        os.posix_fallocate(descriptor, 0, size)
    finally:
        os.close(descriptor)
        path.unlink()


def remove_folder(path: Path):
    """Remove a folder, under another name, so that nobody takes what is left of it for the whole."""
    hidden = path.with_name(_hidden(path.name))
    os.rename(path, hidden)
    shutil.rmtree(hidden)


def remove_unfinished(folder: Path):
    """Remove what `whole_file`, `whole_folder` and `remove_folder` left in a folder when they were killed.

    A folder that was being replaced and has no successor yet gets its name back.

    Args:
        folder: where they wrote; one that is not there is fine.
    """
    for path in list(folder.glob(".*")):
        found = HIDDEN.fullmatch(path.name)
        if not found:
            continue
        whole = path.with_name(found["name"])
        if found["earlier"] and not whole.exists():
            os.rename(path, whole)
        elif path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def check_replaceable(path: str | os.PathLike, mark: str):
    """Refuse to replace a folder that holds something else than what is to be written there.

    Args:
        path: the folder; one that is not there or empty is fine.
        mark: file that an earlier output of the same kind has, such as `saved_model.pb`.

    Raises:
        UserError: it is a file, or a folder with other contents.
    """
    path = Path(path).resolve()
    if path.is_file():
        raise UserError(f"{path}: cannot be written (it is a file, not a folder)")
    if path.is_dir() and any(path.iterdir()) and not (path / mark).exists():
        raise UserError(f"{path}: is a folder with other contents (no {mark}); give a new one")


def _hidden(name: str) -> str:
    return f".{name}.kzoo-{secrets.token_hex(4)}"


EARLIER = ".earlier"
HIDDEN = re.compile(rf"\.(?P<name>.+)\.kzoo-[0-9a-f]{{8}}(?P<earlier>{re.escape(EARLIER)})?")


def to_disk(path: Path):
    """Wait until a file's contents, or a folder's names, are on the disk itself."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _beside(path: str | os.PathLike) -> Iterator[Path]:
    path = Path(path)
    beside = path.with_name(_hidden(path.name))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield beside
    except (OSError, RuntimeError) as error:
        # h5py reports a full disk as a RuntimeError when it closes a file.
        if isinstance(error, RuntimeError) and "errno =" not in str(error):
            raise
        reason = (getattr(error, "strerror", None) or str(error)).splitlines()[0]
        raise UserError(f"{path}: cannot be written ({reason})") from None
    finally:
        if beside.is_dir():
            shutil.rmtree(beside, ignore_errors=True)
        with contextlib.suppress(OSError):  # moved, or never made
            beside.unlink()
