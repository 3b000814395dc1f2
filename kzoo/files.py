"""Files and folders that reach the disk whole or not at all."""

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from kzoo.errors import UserError


@contextlib.contextmanager
def whole_file(path: str | os.PathLike) -> Iterator[Path]:
    """Give another name to write to, and move it to `path` when the block ends without an error.

    Nobody sees half of the file, and a failure leaves what was there before. Missing folders are made.

    Args:
        path: the file.

    Raises:
        UserError: it cannot be written, as when the disk is full.
    """
    path = Path(path).resolve()  # a link's target is replaced, not the link
    if path.exists() and not (path.is_file() or path.is_dir()):  # a device or a pipe is written to as it is
        yield path
        return
    with _beside(path) as beside:
        yield beside
        os.replace(beside, path)


def check_writable(path: str | os.PathLike):
    """Try whether a file can be written, before the work whose result it is to hold.

    Args:
        path: the file; what it holds stays. Missing folders are made.

    Raises:
        UserError: it cannot be written.
    """
    path = Path(path).resolve()
    if path.is_dir():
        raise UserError(f"{path}: cannot be written (it is a folder)")
    if not path.exists() or path.is_file():
        with _beside(path) as beside:
            beside.touch()


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
        beside.mkdir()
        yield beside
        if path.exists():
            earlier = beside.with_name(beside.name + ".earlier")
            os.rename(path, earlier)
            os.rename(beside, path)
            shutil.rmtree(earlier)
        else:
            os.rename(beside, path)


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


@contextlib.contextmanager
def _beside(path: str | os.PathLike) -> Iterator[Path]:
    path = Path(path)
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
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
