"""Reads the tensors of Hugging Face's repositories as arrays, one at a time, without running code in them."""

import io
import math
import pickle
import re
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kzoo.errors import UserError, first_line
from kzoo.files import check_fetched, read_object
from kzoo.hub.location import WEIGHTS

INDEX = ".index.json"  # after a file's name: lists the tensors of each shard
SHARD = re.compile(r"(model|pytorch_model)-\d+-of-\d+\.(safetensors|bin)", re.ASCII)
KINDS = {"F": "float", "BF": "bfloat", "I": "int", "U": "uint"}  # safetensors' and NumPy's, before the bits
# PyTorch's names of dtypes, and NumPy's.
DTYPES = {
    "FloatStorage": "<f4",
    "HalfStorage": "<f2",
    "BFloat16Storage": "bfloat16",  # ml_dtypes, which Keras imports, registers it
    "DoubleStorage": "<f8",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
}
ZIP = b"PK"  # the first bytes of PyTorch's files since 1.6


class Stored(NamedTuple):
    """A tensor in a file.

    Attributes:
        shape: its shape.
        dtype: the name of its type, which is NumPy's for floats.
        place: equal for tensors that are the same numbers in the file.
        read: returns the array.
    """

    shape: tuple[int, ...]
    dtype: str
    place: tuple
    read: Callable[[], np.ndarray]


def stored_tensors(folder: Path) -> dict[str, Stored]:
    """Return the tensors of a model's `model.safetensors`, or else of its `pytorch_model.bin`.

    Either may be in shards, which a file such as `model.safetensors.index.json` lists.

    Raises:
        UserError: no such file exists, or a file is damaged or holds something other than tensors. A
            `Stored.read` also raises it for damaged numbers.
    """
    found = {}
    for path in weights_files(folder):
        check_fetched(path)
        for name, stored in _readable(path, _tensors_of, path).items():
            if name in found:
                raise UserError(f"{folder}: two files of weights have {name!r:.80}")
            found[name] = stored._replace(read=partial(_readable, path, stored.read))
    return found


def weights_files(folder: Path) -> list[Path]:
    """Return the paths of a model's weights: one file, or its shards.

    Raises:
        UserError: there is none; an index is damaged, or names a file that is missing or no shard.
    """
    for name in WEIGHTS:
        if (folder / name).is_file():
            return [folder / name]
        if (index := folder / (name + INDEX)).is_file():
            listed = read_object(index).get("weight_map")
            names = sorted(set(map(str, listed.values()))) if isinstance(listed, dict) else []
            for shard in names or [""]:
                if not SHARD.fullmatch(shard):
                    raise UserError(f"{index} names the file {shard!r:.80}, not shards of the weights")
                if not (folder / shard).is_file():
                    raise UserError(f"{folder} lacks {shard}, which {index.name} names")
            return [folder / shard for shard in names]
    raise UserError(f"{folder} has neither {' nor '.join(WEIGHTS)}")


def _readable(path: Path, read: Callable, *arguments):
    """Return what a function reads; turn its errors into one line about the file."""
    try:
        return read(*arguments)
    except UserError as error:
        raise UserError(f"{path} {error}") from None
    except Exception as error:  # the parsers raise errors of many kinds
        raise UserError(f"{path} is damaged or holds no tensors: {first_line(error):.160}") from None


def _tensors_of(path: Path) -> dict[str, Stored]:
    if path.suffix == ".safetensors":
        return _from_safetensors(path)
    with open(path, "rb") as file:
        zipped = file.read(2) == ZIP
    return _from_zip(path) if zipped else _from_legacy(path)


def _from_safetensors(path: Path) -> dict[str, Stored]:
    from safetensors import safe_open

    def read(name: str) -> np.ndarray:
        with safe_open(path, "numpy") as opened:  # it maps the file: open, the pages read would stay
            return opened.get_tensor(name)

    found = {}
    with safe_open(path, "numpy") as opened:
        for name in opened.keys():  # noqa: SIM118, which is no dict
            part = opened.get_slice(name)
            dtype = re.sub(
                r"^[A-Z]+(?=\d)", lambda kind: KINDS.get(kind[0], kind[0]), part.get_dtype()
            ).lower()
            found[name] = Stored(tuple(part.get_shape()), dtype, (path, name), partial(read, name))
    return found


class _Tensors(pickle.Unpickler):
    """Unpickles the arguments of `_view` for each tensor, and refuses anything else.

    In place of a storage stands its key in the file, its data type and its number of elements.
    """

    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _tensor
        if module == "torch" and name in DTYPES:
            return DTYPES[name]
        raise UserError(f"contains {module}.{name}, which kzoo does not read: nothing of it was loaded")

    def persistent_load(self, entry):
        kind, dtype, key, _, size, *_ = entry
        if kind != "storage" or dtype not in DTYPES.values():
            raise UserError("contains an entry that is not a tensor: nothing of it was loaded")
        return str(key), np.dtype(dtype), size


def _tensor(storage, offset, shape, strides, *_):
    return storage, offset, tuple(shape), tuple(strides)


def _stored(listed: dict, path: Path, read: Callable[[str], np.ndarray]) -> dict[str, Stored]:
    """Return the tensors that a pickle lists; `read` returns the storage of a key."""
    found = {}
    for name, ((key, dtype, _), offset, shape, strides) in listed.items():
        place = (path, key, offset, shape, strides)  # tied tensors share a storage
        values = partial(lambda key, *rest: _view(read(key), *rest), key, offset, shape, strides)
        found[str(name)] = Stored(shape, dtype.name, place, values)
    return found


def _view(storage: np.ndarray, offset: int, shape: tuple, strides: tuple) -> np.ndarray:
    last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    if min((offset, *shape, *strides)) < 0 or max(last + 1, math.prod(shape)) > len(storage):
        raise UserError("is damaged: a tensor is larger than its storage")
    step = storage.itemsize
    return np.lib.stride_tricks.as_strided(storage[offset:], shape, [stride * step for stride in strides])


def _from_zip(path: Path) -> dict[str, Stored]:
    with zipfile.ZipFile(path) as archive:
        [listing] = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        root = listing.removesuffix("data.pkl")
        if any(member.compress_type for member in archive.infolist()):  # a bomb, perhaps
            raise UserError("has compressed members, which PyTorch does not write: nothing of it was loaded")
        listed = _Tensors(io.BytesIO(archive.read(listing))).load()
        kinds = {key: kind for (key, *kind), *_ in listed.values()}
        for key in kinds:
            archive.getinfo(f"{root}data/{key}")

    def read(key: str) -> np.ndarray:
        with zipfile.ZipFile(path) as archive:
            return np.frombuffer(archive.read(f"{root}data/{key}"), *kinds[key])

    return _stored(listed, path, read)


def _from_legacy(path: Path) -> dict[str, Stored]:
    """Read PyTorch's format from before 1.6: four pickles (tensors in the last), the keys, the bytes."""
    with open(path, "rb") as file:
        for _ in range(3):  # magic number, version, system information
            _Tensors(file).load()
        listed = _Tensors(file).load()
        kinds = {key: dtype for (key, dtype, _), *_ in listed.values()}
        places = {}
        for key in map(str, _Tensors(file).load()):
            [size] = np.frombuffer(file.read(8), "<i8")
            places[key] = file.tell(), int(size)
            file.seek(int(size) * kinds[key].itemsize, io.SEEK_CUR)

    def read(key: str) -> np.ndarray:
        start, size = places[key]
        return np.fromfile(path, kinds[key], size, offset=start)

    return _stored(listed, path, read)
