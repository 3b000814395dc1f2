"""Reads the tensors of safetensors and PyTorch files as NumPy arrays, without running code in them."""

import io
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path

import numpy as np

from kzoo.errors import UserError

DTYPES = {
    "FloatStorage": "<f4",
    "HalfStorage": "<f2",
    "DoubleStorage": "<f8",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
}
ZIP = b"PK"


def read_tensors(folder: Path) -> dict[str, np.ndarray]:
    """Return the tensors of a model's `model.safetensors`, or else of its `pytorch_model.bin`.

    Raises:
        UserError: neither file exists, or the file is damaged or holds something other than tensors.
    """
    safe, torch = folder / "model.safetensors", folder / "pytorch_model.bin"
    path = safe if safe.is_file() else torch
    if not path.is_file():
        raise UserError(f"{folder} has neither {safe.name} nor {torch.name}")
    try:
        if path == safe:
            from safetensors.numpy import load_file

            return load_file(path)
        with open(path, "rb") as file:
            zipped = file.read(2) == ZIP
        return _from_zip(path) if zipped else _from_legacy(path)
    except UserError:
        raise
    except Exception as error:  # the parsers raise errors of many kinds
        raise UserError(
            f"{path} is damaged or holds no tensors: {str(error) or type(error).__name__:.160}"
        ) from None


class _Tensors(pickle.Unpickler):
    """Unpickles tensors, and refuses anything else."""

    def __init__(self, file, storage):
        super().__init__(file)
        self._storage = storage

    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _tensor
        if module == "torch" and name in DTYPES:
            return DTYPES[name]
        raise UserError(f"the weights contain {module}.{name}, which is not a tensor: they were not loaded")

    def persistent_load(self, entry):
        kind, dtype, key, _, size, *_ = entry
        if kind != "storage" or dtype not in DTYPES.values():
            raise UserError("the weights contain an entry that is not a tensor: they were not loaded")
        return self._storage(str(key), np.dtype(dtype), size)


def _tensor(storage, offset, shape, strides, *_):
    """Return the arguments of `_view`: in the older format the storage itself is read later."""
    return storage, offset, tuple(shape), tuple(strides)


def _view(storage: np.ndarray, offset: int, shape: tuple, strides: tuple) -> np.ndarray:
    last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    if min((offset, *shape, *strides)) < 0 or last >= len(storage):
        raise UserError("a tensor is larger than its storage")
    step = storage.itemsize
    return np.lib.stride_tricks.as_strided(storage[offset:], shape, [stride * step for stride in strides])


def _from_zip(path: Path) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(path) as archive:
        [listing] = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        root = listing.removesuffix("data.pkl")

        def storage(key, dtype, size):
            return np.frombuffer(archive.read(f"{root}data/{key}"), dtype, size)

        found = _Tensors(io.BytesIO(archive.read(listing)), storage).load()
    return {name: _view(*tensor) for name, tensor in found.items()}


def _from_legacy(path: Path) -> dict[str, np.ndarray]:
    """Read PyTorch's format from before 1.6: four pickles, the last with the tensors; keys; bytes."""
    kinds = {}
    with open(path, "rb") as file:

        def storage(key, dtype, size):
            kinds[key] = dtype
            return key

        for _ in range(3):  # magic number, version, system information
            _Tensors(file, storage).load()
        found = _Tensors(file, storage).load()
        stored = {}
        for key in _Tensors(file, storage).load():
            [size] = np.frombuffer(file.read(8), "<i8")
            dtype = kinds[str(key)]
            stored[str(key)] = np.frombuffer(file.read(int(size) * dtype.itemsize), dtype, size)
    return {name: _view(stored[key], *rest) for name, (key, *rest) in found.items()}
