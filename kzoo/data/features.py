"""Features of pictures on disk: an array whose rows are read on demand, and the names of its pictures.

`NAME.npy` has one row per picture; `NAME.json` has the pictures' names and the extractor.
"""

import contextlib
import glob
import hashlib
import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from kzoo.errors import UserError
from kzoo.files import check_space, check_writable, read_object, write_json, writing


@dataclass(frozen=True)
class Extractor:
    """Describes how features were computed: features of different extractors are not interchangeable.

    Args:
        model: name of the network, such as "vgg19".
        layer: name of the layer whose outputs are the features.
        weights: SHA-256 of the network's weights.
        seed: seed of random weights, else `None`.
        corrupt: features of unreadable pictures: "mean", the mean of the others; "" if all are readable.
    """

    model: str
    layer: str
    weights: str
    seed: int | None = None
    corrupt: str = ""

    def __str__(self) -> str:
        random = "" if self.seed is None else f", random with seed {self.seed}"
        return f"{self.model} {self.layer} (weights {self.weights[:12]}{random})"


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
        wanted = Extractor(**extractor)
        if replace(self.extractor, corrupt=wanted.corrupt) != wanted:
            raise UserError(
                f"{self.path}: these are features of {self.extractor}, the model reads those of {wanted}: "
                "extract them again with the model's network"
            )


def open_features(path: str | os.PathLike, names: Iterable[str] | None = None) -> FeatureFile:
    """Open a file of features without reading its rows.

    Args:
        path: the `.npy` file.
        names: pictures in the desired order; repetitions are allowed. All pictures of the file by default.

    Returns:
        The features.

    Raises:
        UserError: the file or its description is missing or damaged; they have different numbers of
            pictures; or a requested picture is missing.
    """
    path = Path(path)
    array, sidecar = _read_array(path), path.with_suffix(".json")
    try:
        read = json.loads(sidecar.read_text(encoding="utf-8"))
        known, extractor = tuple(read["names"]), Extractor(**read["extractor"])
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(f"{sidecar}: does not name the pictures and the extractor; extract again") from None
    if len(array) != len(known):
        raise UserError(
            f"{path}: has features of {len(array)} pictures, {sidecar.name} beside it names {len(known)}: "
            "they are of different extractions; extract again"
        )
    return FeatureFile(array, known, extractor, _order(path, known, names))


def _read_array(path: Path) -> np.ndarray:
    if not path.is_file():
        raise UserError(f"{path}: no such file of features; kzoo features extract writes one")
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception:  # NumPy may raise any error for a broken file
        array = None
    if not isinstance(array, np.ndarray) or array.ndim not in (2, 3) or array.dtype.kind != "f":
        raise UserError(
            f"{path}: is cut short or not an array of features, (N, D) or (N, R, D) of floats; extract again"
        )
    return array


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
    digests: Mapping[str, str] | None = None,
) -> FeatureFile:
    """Compute the features of pictures batch by batch and write them.

    To resume an interrupted extraction, call this again with the same names and extractor; only
    `extractor.corrupt` may change in between. Pictures with another digest are computed again. A complete
    extraction is repeated only if a digest has changed, and then as a whole. Other features at that path are
    replaced at the end.

    Args:
        path: the `.npy` file, or a link to it.
        arrays: function of the remaining names; yields their features in this order, in batches `(b, D_img)`
            or `(b, R, D_img)`; NaN for pictures that cannot be read.
        names: the pictures, in the order of the rows.
        extractor: the extractor of the features.
        digests: for each name, a digest of the picture. `None`: a name always means the same picture.

    Returns:
        The features.

    Raises:
        UserError: a name occurs twice; pictures without features, unless the extractor replaces them; or the
            file cannot be written.
    """
    path, names = Path(path), tuple(names)
    check_features_path(path, names)
    with contextlib.suppress(UserError):  # nothing there, or damaged
        found = open_features(path)
        same = read_object(path.with_suffix(".json")).get("digests") == digests
        # Without corrupt pictures, their treatment makes no difference.
        if same and found.names == names and found.extractor in (extractor, replace(extractor, corrupt="")):
            return found
    about, target = path.with_suffix(".json"), path.resolve()  # of a link, as `atomic_write`
    part = _unfinished(target, names, extractor)
    array = None
    missing_or_cut = FileNotFoundError, EOFError, ValueError  # cut short by a power failure
    with writing(part), contextlib.suppress(*missing_or_cut):
        np.load(part, mmap_mode="r")  # `r+` would fill a short file up with zeros
        array = np.lib.format.open_memmap(part, mode="r+")
    sidecar, current = part.with_suffix(".digests.part"), digests or dict.fromkeys(names, "")
    if array is not None:
        before = read_object(sidecar) if sidecar.exists() else {}
        array[[row for row, name in enumerate(names) if before.get(name) != current[name]]] = np.nan
        array.flush()
    write_json(sidecar, current)
    rows = np.arange(len(names)) if array is None else _without_features(array)
    for batch in arrays([names[row] for row in rows]):
        if array is None:
            array = _new_array(part, (len(names), *batch.shape[1:]), batch.dtype)
        array[rows[: len(batch)]], rows = batch, rows[len(batch) :]
    missing = rows if array is None else _without_features(array)
    if len(missing) and (len(missing) == len(names) or not extractor.corrupt):
        raise UserError(f"{path}: {len(missing):,} of {len(names):,} pictures have no features")
    if len(missing):
        read = np.setdiff1d(np.arange(len(names)), missing)
        # If this is interrupted, the means must not pass for features.
        write_json(sidecar, {names[row]: current[names[row]] for row in read})
        array[missing] = sum(array[row].astype("float64") for row in read) / len(read)
    with writing(path):
        array.flush()
        found = array = None  # as in `_new_array`
        about.resolve().unlink(missing_ok=True)  # never beside the array of another extraction
        os.replace(part, target)
    description = {"names": names, "extractor": asdict(extractor)}
    write_json(about, description | ({} if digests is None else {"digests": digests}))
    for abandoned in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
        abandoned.unlink()
    return open_features(path)


def check_features_path(path: str | os.PathLike, names: Iterable[str]):
    """Refuse a file that cannot be written, a name without `.npy`, and missing or repeated pictures.

    Refuse also a name beside a JSON file that does not describe features, because that would be replaced.
    """
    path, names = Path(path), tuple(names)
    if path.suffix != ".npy":
        raise UserError(f"{path}: the name of a file of features must end in .npy")
    if not names:
        raise UserError(f"{path}: there are no pictures to extract features of")
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise UserError(f"{path}: the picture {name!r} occurs twice among the names")
    about = path.with_suffix(".json")
    try:
        replaceable = not about.exists() or {"names", "extractor"} <= read_object(about).keys()
    except UserError:
        replaceable = False
    if not replaceable:
        raise UserError(f"{about} would be replaced, but does not describe features: rename {path.name}")
    check_writable(path)


def _unfinished(path: Path, names: tuple[str, ...], extractor: Extractor) -> Path:
    """Return the path of the unfinished array, kept after failures; its name identifies the extraction."""
    whose = {"names": names, "extractor": asdict(replace(extractor, corrupt=""))}
    key = hashlib.sha256(json.dumps(whose).encode()).hexdigest()[:16]
    return path.with_name(f".{path.name}.{key}.part")


def _new_array(path: Path, shape: tuple[int, ...], dtype: np.dtype) -> np.memmap:
    """Return a new array on disk, filled with NaN; it gets its final name only when it is filled."""
    empty = path.with_suffix(".new.part")
    with writing(path):
        check_space(path.parent, math.prod(shape) * np.dtype(dtype).itemsize)  # a full disk kills the process
        array = np.lib.format.open_memmap(empty, mode="w+", dtype=dtype, shape=shape)
        array[:] = np.nan
        del array  # Windows does not rename mapped files
        os.replace(empty, path)
    return np.lib.format.open_memmap(path, mode="r+")


def _without_features(array: np.ndarray) -> np.ndarray:
    """Return the rows with NaN: not computed yet, cut off within the row, or of unreadable pictures."""
    return np.array([row for row in range(len(array)) if np.isnan(array[row]).any()], int)
