"""Writes picture features batch by batch; an interrupted extraction resumes where it stopped.

`kzoo.training.feature_extraction` calls it.
"""

import contextlib
import fcntl
import glob
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO

import numpy as np

from kzoo.data.image_features import Extractor, FeatureFile, open_features
from kzoo.errors import UserError
from kzoo.files import to_disk, whole_file, writing


def write_features(
    path: str | os.PathLike,
    arrays: Callable[[list[str]], Iterable[np.ndarray]],
    names: Iterable[str],
    extractor: Extractor,
    complete: Callable[[np.ndarray], None] | None = None,
) -> FeatureFile:
    """Compute the features of pictures batch by batch and write them.

    An interrupted extraction resumes where it stopped when called again with the same names and extractor,
    even if corrupt pictures are now treated differently: `complete` may get rows of a call that treated them
    otherwise. A complete extraction is not repeated. Other features at that path are replaced at the end.

    Args:
        path: the `.npy` file.
        arrays: function from the names still to be done; yields their features in this order, in batches
            `(b, D_img)` or `(b, R, D_img)`.
        names: the pictures, in the order of the rows.
        extractor: the extractor of the features.
        complete: called with the whole array, which it changes in place, before the file gets its name.

    Returns:
        The features.

    Raises:
        UserError: a name that occurs twice; batches of different shapes, or with more or fewer rows than
            names; a file that cannot be written, or that another process is writing.
    """
    path, names = Path(path), tuple(names)
    check_features_path(path, names)
    description = {"names": list(names), "extractor": asdict(extractor)}
    if _is_complete(path, names, extractor):
        return open_features(path)
    part = _part_of(path, names, replace(extractor, corrupt=""))
    completed = _part_of(path, names, extractor)  # separate: means in it must never be taken for features
    found = completed if completed.exists() else part
    with _held(path, found) as file:
        if found == part:
            done = _rows_of(file)
            if done < len(names):
                _append(path, file, arrays(list(names[done:])), done, len(names))
            with writing(path):
                os.replace(part, completed)
        if complete is not None:
            array = np.lib.format.open_memmap(completed, mode="r+")
            complete(array)
            array.flush()
        with writing(path):
            # In this order a description is never beside another extraction's array.
            path.with_suffix(".json").unlink(missing_ok=True)
            to_disk(completed)
            os.replace(completed, path)
            to_disk(path.parent)
            _remove_abandoned(path)
        with whole_file(path.with_suffix(".json")) as beside:
            beside.write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")
    return open_features(path)


def check_features_path(path: str | os.PathLike, names: Iterable[str]):
    """Refuse a file of another kind, an empty list of pictures, and a picture that occurs twice."""
    path, names = Path(path), tuple(names)
    if path.suffix != ".npy":
        raise UserError(f"{path}: the name of a file of features ends in .npy")
    if not names:
        raise UserError(f"{path}: there are no pictures to extract features of")
    seen = set()
    for name in names:
        if name in seen:
            raise UserError(f"{path}: the picture {name!r} occurs twice among the names")
        seen.add(name)


def _is_complete(path: Path, names: tuple[str, ...], extractor: Extractor) -> bool:
    try:
        found = open_features(path)
    except UserError:
        return False
    # If no picture was corrupt, the treatment of corrupt ones makes no difference.
    return found.names == names and found.extractor in (extractor, replace(extractor, corrupt=""))


def _part_of(path: Path, names: tuple[str, ...], extractor: Extractor) -> Path:
    """Return the path of the unfinished array: not a `whole_file`, because it must survive a failure.

    The name identifies the extraction.
    """
    whose = {"names": list(names), "extractor": asdict(extractor)}
    key = hashlib.sha256(json.dumps(whose).encode()).hexdigest()[:16]
    return path.with_name(f".{path.name}.{key}.part")


@contextlib.contextmanager
def _held(path: Path, part: Path) -> Iterator[IO[bytes]]:
    """Open an unfinished array, which no other process may write until the block ends."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = part.open("a+b")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"{path}: another process is writing these features; wait for its end") from None
        except OSError:  # some network file systems cannot lock
            pass
        yield file


def _remove_abandoned(path: Path):
    """Remove unfinished arrays of other extractions, except those that another process is writing."""
    for part in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        with contextlib.suppress(UserError), _held(path, part):
            part.unlink()


def _rows_of(file: IO[bytes]) -> int:
    """Return how many whole rows an unfinished array has."""
    file.seek(0)
    try:
        shape, dtype = _read_header(file)
    except ValueError:  # new, or interrupted in the header
        return 0
    return (os.fstat(file.fileno()).st_size - file.tell()) // _row_size(shape, dtype)


def _append(path: Path, file: IO[bytes], batches: Iterable[np.ndarray], done: int, total: int):
    """Append batches to the `done` rows of an unfinished array until it is complete."""
    file.seek(0)
    shape, dtype = _read_header(file) if done else (None, None)
    with writing(path):
        file.truncate(file.tell() + done * _row_size(shape, dtype) if done else 0)  # a row that was cut short
    for batch in batches:
        if shape is None:
            shape, dtype = (total, *batch.shape[1:]), batch.dtype
            _write_header(file, shape, dtype)
        if batch.shape[1:] != shape[1:] or len(shape) not in (2, 3):
            raise UserError(
                f"{path}: the features of a batch have the shape {batch.shape[1:]} per picture, "
                f"expected {shape[1:] if len(shape) in (2, 3) else '(D,) or (R, D)'}"
            )
        done += len(batch)
        if done > total:
            raise UserError(f"{path}: there are features of at least {done} pictures, but {total} names")
        with writing(path):
            file.write(batch.astype(dtype).tobytes())
            file.flush()
    if done < total:
        raise UserError(f"{path}: there are features of {done} pictures, but {total} names")


def _write_header(file, shape: tuple[int, ...], dtype: np.dtype):
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)


def _read_header(file) -> tuple[tuple[int, ...], np.dtype]:
    np.lib.format.read_magic(file)
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    return shape, dtype


def _row_size(shape: tuple[int, ...], dtype: np.dtype) -> int:
    return int(np.prod(shape[1:])) * dtype.itemsize
