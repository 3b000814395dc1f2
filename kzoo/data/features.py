"""Features of pictures on disk: an array whose rows are read on demand, and the names of its pictures.

`NAME.npy` has one row per picture; `NAME.json` has the pictures' names and the extractor.
"""

import glob
import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from kzoo.errors import UserError
from kzoo.files import held, to_disk, whole_file, writing

KEY = 16  # characters that identify an extraction


@dataclass(frozen=True)
class Extractor:
    """Describes how features were computed: features of different extractors are not interchangeable.

    Args:
        model: name of the network, such as "vgg19".
        layer: name of the layer whose outputs are the features.
        weights: SHA-256 of the network's weights, or "random".
        seed: seed of random weights, else `None`.
        corrupt: features of unreadable pictures: "mean", the mean of the others; "" if all are readable.

    Raises:
        UserError: a name has a slash. Presets store these names, and must not store paths.
    """

    model: str
    layer: str
    weights: str
    seed: int | None = None
    corrupt: str = ""

    def __post_init__(self):
        for name in (self.model, self.layer, self.weights):
            if "/" in name or "\\" in name:
                raise UserError(f"the extractor's name {name!r} has a slash: presets store no paths")

    def __str__(self) -> str:
        weights = (
            f"random weights of seed {self.seed}"
            if self.weights == "random"
            else f"weights {self.weights[:12]}"
        )
        return f"{self.model} {self.layer} ({weights})"

    def fits(self, other: "Extractor") -> bool:
        """Return whether features of both are interchangeable, except those of corrupt pictures."""
        return replace(self, corrupt="") == replace(other, corrupt="")


@dataclass(frozen=True)
class FeatureFile(Sequence):
    """Features of pictures, in a requested order. Indexing reads rows from disk.

    Args:
        array: `(N, D_img)` or `(N, R, D_img)`, one row per picture of the file.
        names: names of the file's N pictures.
        extractor: the extractor that computed them.
        order: int `(n,)`. The requested rows.
    """

    array: np.ndarray
    names: tuple[str, ...]
    extractor: Extractor
    order: np.ndarray

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, index) -> np.ndarray:
        """Return the features of one picture or, for a slice or an array of indices, of several."""
        return np.array(self.array[self.order[index]])

    @property
    def dtype(self) -> np.dtype:
        """The features' dtype."""
        return self.array.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """`(n, D_img)` or `(n, R, D_img)`."""
        return (len(self), *self.array.shape[1:])

    @property
    def path(self) -> Path:
        """The `.npy` file."""
        return Path(self.array.filename)

    def require(self, extractor: dict):
        """Refuse features of another extractor.

        Args:
            extractor: the fields of the required extractor, as in a preset.

        Raises:
            UserError: another extractor computed these features.
        """
        try:
            wanted = Extractor(**extractor)
        except TypeError:
            raise UserError(
                f"{self.path}: the model reads features of {extractor!r:.120}, which this kzoo does not "
                "know: update kzoo"
            ) from None
        if not self.extractor.fits(wanted):
            raise UserError(
                f"{self.path}: these are features of {self.extractor}, the model reads those of {wanted}: "
                "extract them again with the model's network"
            )


def open_features(path: str | os.PathLike, names: Iterable[str] | None = None) -> FeatureFile:
    """Open a file of features without reading its rows.

    Args:
        path: the `.npy` file.
        names: pictures in the desired order, with or without repetition; all of the file's by default.

    Returns:
        The features.

    Raises:
        UserError: the file or its description is missing or damaged; they have different numbers of
            pictures; or a requested picture is missing.
    """
    path = Path(path)
    array, description = _read_array(path), _description(path)
    known, found = description["names"], description["extractor"]
    if len(array) != len(known):
        raise UserError(
            f"{path}: has features of {len(array)} pictures, {path.with_suffix('.json').name} beside it "
            f"names {len(known)}: they are of different extractions; extract again"
        )
    return FeatureFile(array, known, found, _order(path, known, names))


def _read_array(path: Path) -> np.ndarray:
    if not path.is_file():
        raise UserError(f"{path}: no such file of features; kzoo features extract writes one")
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError):
        array = None
    if not isinstance(array, np.ndarray) or array.ndim not in (2, 3) or array.dtype.kind != "f":
        raise UserError(
            f"{path}: is cut short or not an array of features, (N, D) or (N, R, D) of floats; extract again"
        )
    return array


def _description(path: Path) -> dict:
    beside = path.with_suffix(".json")
    if not beside.is_file():
        raise UserError(
            f"{path}: {beside.name} beside it, which names its pictures, is missing; extract again"
        )
    try:
        read = json.loads(beside.read_text(encoding="utf-8"))
        return {"names": tuple(read["names"]), "extractor": Extractor(**read["extractor"])}
    except UserError as error:
        raise UserError(f"{beside}: {error}") from None
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{beside}: does not name the pictures and the extractor; extract again") from None


def _order(path: Path, known: tuple[str, ...], names: Iterable[str] | None) -> np.ndarray:
    if names is None:
        return np.arange(len(known))
    rows = {name: row for row, name in enumerate(known)}
    names = list(names)
    missing = [name for name in dict.fromkeys(names) if name not in rows]
    if missing:
        more = f" and of {len(missing) - 1} more" if len(missing) > 1 else ""
        raise UserError(
            f"{path}: has no features of the picture {missing[0]!r}{more}, only of {len(known)} such as "
            f"{known[0]!r}; extract features of all pictures"
        )
    return np.array([rows[name] for name in names], dtype=int)


def write_features(
    path: str | os.PathLike,
    arrays: Callable[[list[str]], Iterable[np.ndarray]],
    names: Iterable[str],
    extractor: Extractor,
    complete: Callable[[np.ndarray], None] | None = None,
) -> FeatureFile:
    """Compute the features of pictures batch by batch and write them.

    An interrupted extraction resumes when called again with the same names and extractor. The treatment of
    corrupt pictures may change in between, so that `complete` may get rows from both treatments. A complete
    extraction is not repeated. Other features at that path are replaced at the end.

    Args:
        path: the `.npy` file.
        arrays: function of the remaining names; yields their features in this order, in batches `(b, D_img)`
            or `(b, R, D_img)`.
        names: the pictures, in the order of the rows.
        extractor: the extractor of the features.
        complete: function that changes the whole array in place, before the file gets its name.

    Returns:
        The features.

    Raises:
        UserError: a name occurs twice; batches have different shapes, or more or fewer rows than names; the
            file cannot be written, or another process is writing it.
    """
    path, names = Path(path), tuple(names)
    check_features_path(path, names)
    description = {"names": list(names), "extractor": asdict(extractor)}
    if _is_complete(path, names, extractor):
        return open_features(path)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    base = _unfinished(path, names, extractor)
    part = Path(f"{base}.part")
    completed = Path(f"{base}.{extractor.corrupt}.part")  # separate, or a mean could be taken for features
    with held(base) as mine:
        if mine is False:
            raise UserError(f"{path}: another process is writing these features; wait until it ends")
        if not completed.exists():
            _append(path, part, arrays, names)
            with writing(path):
                os.replace(part, completed)
        if complete is not None:
            array = np.lib.format.open_memmap(completed, mode="r+")
            complete(array)
            array.flush()
        with writing(path):
            # In this order, a description is never beside the array of another extraction.
            path.with_suffix(".json").unlink(missing_ok=True)
            to_disk(completed)
            os.replace(completed, path)
            to_disk(path.parent)
        with whole_file(path.with_suffix(".json")) as beside:
            beside.write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")
    with writing(path):
        _remove_abandoned(path)
    return open_features(path)


def check_features_path(path: str | os.PathLike, names: Iterable[str]):
    """Refuse a name without `.npy`, an empty list of pictures, and a picture that occurs twice."""
    path, names = Path(path), tuple(names)
    if path.suffix != ".npy":
        raise UserError(f"{path}: the name of a file of features must end in .npy")
    if not names:
        raise UserError(f"{path}: there are no pictures to extract features of")
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise UserError(f"{path}: the picture {name!r} occurs twice among the names")


def _is_complete(path: Path, names: tuple[str, ...], extractor: Extractor) -> bool:
    try:
        found = open_features(path)
    except UserError:
        return False
    # Without corrupt pictures, their treatment makes no difference.
    return found.names == names and found.extractor in (extractor, replace(extractor, corrupt=""))


def _unfinished(path: Path, names: tuple[str, ...], extractor: Extractor) -> Path:
    """Return the beginning of the unfinished arrays' names, which survive failures, unlike a `whole_file`'s.

    It identifies the extraction, whatever its treatment of corrupt pictures.
    """
    whose = {"names": list(names), "extractor": asdict(replace(extractor, corrupt=""))}
    key = hashlib.sha256(json.dumps(whose).encode()).hexdigest()[:KEY]
    return path.with_name(f".{path.name}.{key}")


def _remove_abandoned(path: Path):
    """Remove unfinished arrays of other extractions, unless another process is writing them."""
    for part in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        with held(part.with_name(part.name[: len(f".{path.name}.") + KEY])) as mine:
            if mine is not False:
                part.unlink()


def _append(
    path: Path, part: Path, arrays: Callable[[list[str]], Iterable[np.ndarray]], names: tuple[str, ...]
):
    """Append rows to an unfinished array until it has one per name.

    The file's length says how many rows are done. A memory map has its full length from the start, so it
    would need a second file for this number.
    """
    with writing(path):
        file = part.open("a+b")
    with file:
        file.seek(0)
        try:
            np.lib.format.read_magic(file)
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
            start, row = file.tell(), int(np.prod(shape[1:])) * dtype.itemsize
            done = (os.fstat(file.fileno()).st_size - start) // row
        except ValueError:  # new, or interrupted in the header
            done = 0
        total = len(names)
        if done == total:
            return
        with writing(path):
            file.truncate(start + done * row if done else 0)  # drop a partial row
        for batch in arrays(list(names[done:])):
            if not done:
                shape, dtype = (total, *batch.shape[1:]), batch.dtype
                header = {
                    "descr": np.lib.format.dtype_to_descr(dtype),
                    "fortran_order": False,
                    "shape": shape,
                }
                np.lib.format.write_array_header_1_0(file, header)
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
