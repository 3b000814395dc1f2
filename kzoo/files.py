"""Atomic writing of files and folders, and reading of JSON objects."""

import contextlib
import errno
import fnmatch
import hashlib
import json
import math
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from filelock import FileLock, Timeout

from kzoo.errors import UserError, wrong_value

Typed = TypeVar("Typed")
WINDOWS = os.name == "nt"
DAY = 24 * 60 * 60  # seconds
POINTER = b"version https://git-lfs."  # the first bytes of Git LFS's pointers


def cache_folder() -> Path:
    """Return the folder for downloads: the environment variable KZOO_CACHE, or `~/.cache/kzoo`."""
    # Not `Path.expanduser`, which fails for a user without a home folder, as in some containers.
    return Path(os.path.expanduser(os.environ.get("KZOO_CACHE") or "~/.cache/kzoo"))


def cached_folder(kind: str, key: str, make: Callable[[Path], object]) -> Path:
    """Return the cache's folder of a kind and a key; if it is missing, one process writes it with `make`.

    Raises:
        UserError: it cannot be written; or as `make`.
    """
    return made_once(cache_folder() / kind / hashlib.sha256(key.encode()).hexdigest()[:32], make)


def made_once(folder: Path, make: Callable[[Path], object]) -> Path:
    """Return a folder; if it is missing, one process writes it with `make`, and others wait.

    Raises:
        UserError: it cannot be written; or as `make`.
    """
    if not folder.is_dir():
        with file_lock(folder, Path(f"{folder}.lock"), "is writing it", timeout=-1):
            if not folder.is_dir():  # another process may have written it
                make(folder)
    return folder


def sha256(path: str | os.PathLike) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike) -> Iterator[Path]:
    """Yield a temporary path to write to, and rename it to `path` if the block ends without an error.

    Readers never see a partial file. After any failure, even of power, the previous file is intact. Missing
    folders are created. The new file keeps the permissions of the file that it replaces. What
    killed processes left is removed after a day.

    Raises:
        UserError: it cannot be written, for example because the disk is full.
    """
    replaced = _replaceable(path)
    if replaced is None:
        yield Path(path)
        return
    with _temporary_path(replaced) as temporary:
        remove_unfinished(replaced.parent, replaced.name, time.time() - DAY)
        yield temporary
        to_disk(temporary)
        _keep_mode(replaced, temporary)
        os.replace(temporary, replaced)
        to_disk(replaced.parent)


def _keep_mode(path: Path, successor: Path):
    """Copy the permissions of a file or folder, if it exists, to its successor."""
    if path.exists() and path.stat().st_mode != successor.stat().st_mode:
        shutil.copymode(path, successor)


def write_json(path: str | os.PathLike, value):
    """Write a value as JSON, atomically (see `atomic_write`)."""
    with atomic_write(path) as file:
        text = json.dumps(value, ensure_ascii=False, indent=2) + "\n"
        # File names may contain bytes that are not Unicode: escape them.
        file.write_text(text, encoding="utf-8", errors="backslashreplace")


def read_object(path: Path) -> dict:
    """Return the JSON object in a file.

    Raises:
        UserError: the file cannot be read, or is not a JSON object.
    """
    check_file_name(path)
    try:
        return json_object(path.read_bytes(), str(path))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except UserError:
        check_fetched(path)
        raise


def json_object(content: bytes, where: str) -> dict:
    """Return the JSON object in a file's content. Raise `UserError` if it is another; `where` names it."""
    try:
        value = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where} is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise UserError(f"{where} is not a JSON object")
    return value


def read_typed(path: Path, kind: type[Typed]) -> Typed:
    """Return the JSON object in a file as a `msgspec.Struct`, which declares types and bounds.

    Raises:
        UserError: as `read_object`; or an entry is missing or has another type.
    """
    import msgspec

    content = read_object(path)
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise UserError(f"{path}: {wrong_value(content, error)}") from None


def check_file_name(path: str | os.PathLike):
    """Raise `UserError` for a path with a NUL, for which Python raises errors of several kinds."""
    if "\0" in os.fspath(path):
        raise UserError(f"the file name {os.fspath(path)!r:.80} has a NUL: remove it")


def check_fetched(path: Path):
    """Raise `UserError` if Git LFS left a pointer in a file's place, as in a clone without git-lfs."""
    with open(path, "rb") as file:
        if file.read(len(POINTER)) == POINTER:
            raise UserError(
                f"{path} is a pointer of Git LFS, not the file: install git-lfs and run `git lfs pull` there"
            )


def check_writable(path: str | os.PathLike, read: Iterable[str | os.PathLike] = ()):
    """Check that a file can be written, before doing the work that produces its contents.

    An existing file is kept. Missing folders are created.

    Args:
        path: the file.
        read: the files that this work reads.

    Raises:
        UserError: it cannot be written, or is one of those that are read.
    """
    if os.path.exists(path) and any(os.path.samefile(path, file) for file in read):
        raise UserError(f"{path} is an input, which the output would replace: give another file to write")
    path = _replaceable(path)
    if path is None:
        return
    if path.is_dir():
        raise UserError(f"{path}: cannot be written (it is a folder)")
    with _temporary_path(path) as temporary:
        temporary.touch()


def _replaceable(path: str | os.PathLike) -> Path | None:
    """Return the file to replace, or the target of a link; `None` for a device or pipe."""
    with writing(path):
        path = Path(path)
        special = path.exists() and not (path.is_file() or path.is_dir())
        return None if special else path.resolve()


@contextlib.contextmanager
def atomic_folder(path: str | os.PathLike, replace: bool = True) -> Iterator[Path]:
    """Yield an empty folder next to `path` to fill. Rename it to `path` if the block ends without an error.

    An earlier folder at `path` is kept until the new one is complete. Missing folders are created. What
    killed processes left is removed, or gets its name back, after a day, as by `remove_unfinished`.

    Raises:
        UserError: it cannot be written, for example because it is a file, or the disk is full; or there is a
            folder at `path`, and `replace` is false.
    """
    path = _folder(path)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_unfinished(path.parent, path.name, time.time() - DAY)
        unfinished = path.with_name(_hidden(path.name))
        earlier = unfinished.with_name(f"{unfinished.name}.earlier")
        unfinished.mkdir()
        try:
            yield unfinished
            for part in (*unfinished.rglob("*"), unfinished):
                if not part.is_symlink():
                    to_disk(part)  # before the folder gets its name, in case of a power failure
            _keep_mode(path, unfinished)
            if replace and path.exists():
                os.rename(path, earlier)
            os.rename(unfinished, path)
            to_disk(path.parent)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
            if earlier.exists() and not path.exists():
                os.rename(earlier, path)
            shutil.rmtree(earlier, ignore_errors=True)


@contextlib.contextmanager
def file_lock(path: Path, lock: Path, does: str, timeout: float = 0) -> Iterator[None]:
    """Lock a file or folder until the block or this process ends.

    Args:
        path: the file or folder.
        lock: the lock file; it stays. Missing folders are created.
        does: what another holder does, such as `"is writing it"`, for the error.
        timeout: seconds to wait for another process; -1: any time.

    Raises:
        UserError: another process has locked it, or the lock file cannot be written.
    """
    with writing(path):
        lock.parent.mkdir(parents=True, exist_ok=True)
        try:
            acquired = FileLock(lock, timeout, mode=0o666).acquire()
        except Timeout:
            raise UserError(f"{path}: {_holder(lock)} {does}") from None
    with acquired:
        yield


def _holder(lock: Path) -> str:
    with contextlib.suppress(OSError):  # on Windows a locked file cannot be read
        if (holder := lock.read_text(errors="replace").strip()).startswith("process "):
            return holder
    return "another process"


def check_space(folder: Path, size: int):
    """Raise OSError if a file of `size` bytes does not fit on the disk.

    Needed before writing HDF5, which can crash the process when the disk is full. Systems that cannot reserve
    space, such as macOS, are not checked.
    """
    if hasattr(os, "posix_fallocate"):
        with tempfile.TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, size)


def remove_folder(path: Path):
    """Rename a folder, then delete it, so that readers never see it half-deleted."""
    hidden = path.with_name(_hidden(path.name))
    os.rename(path, hidden)
    shutil.rmtree(hidden)


def remove_unfinished(folder: Path, name: str = "", before: float = math.inf):
    """Remove what killed calls of `atomic_write`, `atomic_folder` and `remove_folder` left in a folder.

    If such a call had moved a folder aside but not replaced it, the folder gets its name back.

    Args:
        folder: the folder.
        name: the file or folder that the calls were to write or remove; by default, any.
        before: time in seconds, as of `time.time`; what has changed since is left.
    """
    for left in list(folder.glob(".*")):
        match = HIDDEN.fullmatch(left.name)
        if match and name in ("", match["name"]):
            with contextlib.suppress(OSError):  # renamed by its writer, or another user's
                if left.stat().st_mtime > before:
                    continue
                if match["earlier"] and not (folder / match["name"]).exists():
                    os.rename(left, folder / match["name"])
                elif left.is_dir():
                    shutil.rmtree(left, ignore_errors=True)
                else:
                    left.unlink()


def check_replaceable(path: str | os.PathLike, mark: str, *others: str):
    """Check that a folder may be replaced: it is empty, or holds an earlier output of the same kind alone.

    Args:
        path: the folder; it may be missing or empty.
        mark: a file that identifies this kind of output, such as `saved_model.pb`.
        *others: patterns of the other names in such an output, such as `*.spm`.

    Raises:
        UserError: it is a file, a mount point, or a folder with other contents.
    """
    path = _folder(path)
    names = sorted(entry.name for entry in path.iterdir()) if path.is_dir() else []
    if names and mark not in names:
        raise UserError(f"{path}: is a folder with other contents (no {mark}); choose a new one")
    for name in names:
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in (mark, *others)):
            raise UserError(f"{path}: is a folder with other contents, too ({name}); choose a new one")


def _folder(path: str | os.PathLike) -> Path:
    """Return the absolute path of a folder, maybe missing. Raise `UserError` for a file or mount point."""
    with writing(path):
        path = Path(path).resolve()
        if path.is_file():
            raise UserError(f"{path}: cannot be written (it is a file, not a folder)")
        if os.path.ismount(path):  # which cannot be renamed
            raise UserError(f"{path}: cannot be replaced (it is a mount point): give a folder in it")
        return path


def _hidden(name: str) -> str:
    return f".{name}.kzoo-{secrets.token_hex(4)}"


# What `_hidden` returns, and the name of a folder that `atomic_folder` moved aside.
HIDDEN = re.compile(r"\.(?P<name>.+)\.kzoo-[0-9a-f]{8}(?P<earlier>\.earlier)?")


def to_disk(path: Path):
    """Flush a file's contents, or a folder's entries, to the physical disk."""
    if WINDOWS:  # which cannot flush folders or files opened for reading
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if path.is_file() or error.errno != errno.EINVAL:  # some file systems cannot flush folders
            raise
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _temporary_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path in a file's folder; delete it afterwards if it still exists."""
    temporary = path.with_name(_hidden(path.name))
    with writing(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
        finally:
            with contextlib.suppress(OSError):  # moved, or never created
                temporary.unlink()


@contextlib.contextmanager
def writing(path: str | os.PathLike):
    """Turn write errors in the block into a `UserError` of one line that names the file or folder.

    In the cache, the line also says how to choose another folder.
    """
    check_file_name(path)
    try:
        yield
    except (OSError, RuntimeError) as error:
        # h5py reports a full disk as a RuntimeError when it closes a file.
        if not isinstance(error, OSError) and "errno =" not in str(error):
            raise
        reason = (getattr(error, "strerror", None) or str(error)).splitlines()[0]
        cached = Path(os.path.realpath(path)).is_relative_to(os.path.realpath(cache_folder()))
        advice = "; for another cache, set KZOO_CACHE" if cached else ""
        raise UserError(f"{path}: cannot be written ({reason}){advice}") from None
