"""`kzoo features extract`: features of pictures, computed by a network of `keras.applications`."""

import hashlib
import importlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import keras
import numpy as np

from kzoo.data.features import Extractor, FeatureFile, check_features_path, write_features
from kzoo.errors import UserError, first_line, nearest
from kzoo.files import check_writable
from kzoo.models.images import read_picture

# The papers' names of VGG's layers, and Keras's; the outputs are those after ReLU.
LAYERS = {"fc6": "fc1", "fc7": "fc2"}
SEED = 0  # of random weights
PIECE = 256  # rows that are summed together


def extract_features(
    path: str | os.PathLike,
    folder: str | os.PathLike,
    names: Sequence[str],
    model: str = "vgg19",
    layer: str = "fc7",
    weights: str = "imagenet",
    batch_size: int = 16,
    replace_corrupt: bool = False,
    progress: Callable[[int], None] | None = None,
) -> FeatureFile:
    """Write the features of pictures; an interrupted call resumes where it stopped.

    Args:
        path: the `.npy` file to write.
        folder: folder of the pictures.
        names: their file names, in the order of the rows; a repeated name has one row.
        model: a network of `keras.applications`, in any case.
        layer: layer whose output is the features, such as `"block5_pool"`; `"fc7"` is Keras's `fc2`. An
            output `(h, w, D_img)` becomes R = h·w regions.
        weights: `"imagenet"`, downloaded by Keras; the path of a weights file; or `"random"`.
        batch_size: int.
        replace_corrupt: bool. Give unreadable pictures the mean of the others' features, and print a line for
            each; otherwise they are an error.
        progress: called with the number of pictures done since its last call.

    Raises:
        UserError: no such network or layer, weights that do not fit, a picture that cannot be read.
    """
    names = list(dict.fromkeys(names))
    check_features_path(path, names)
    check_writable(path)
    network, prepare = _network(model, weights)
    handling = "mean" if replace_corrupt else ""
    extractor = Extractor(model.lower(), LAYERS.get(layer, layer), *_identity(network, weights), handling)
    features = keras.Model(network.inputs, _output(network, layer), name=network.name)
    pictures = _Pictures(features, prepare, Path(folder), batch_size, replace_corrupt)

    def counted(wanted: list[str]) -> Iterator[np.ndarray]:
        advance = progress or (lambda count: None)
        advance(len(names) - len(wanted))
        for found in pictures.features(wanted):
            advance(len(found))
            yield found

    def complete(array: np.ndarray):
        # Pictures that an earlier call could not read may be repaired now, or may now be errors.
        earlier = [row for row in _unread(array) if names[row] not in pictures.corrupt]
        again = chain.from_iterable(pictures.features([names[row] for row in earlier]))
        for row, found in zip(earlier, again, strict=True):
            array[row] = found
        _fill_with_mean(array)

    return write_features(path, counted, names, extractor, complete)


class _Pictures:
    """The pictures of a folder and their features; `corrupt` has the names of those that cannot be read.

    Args:
        network: returns features `(b, D_img)` or `(b, h, w, D_img)`.
        prepare: the network's preprocessing of pictures.
        folder: folder of the pictures.
        batch_size: b.
        replace_corrupt: bool. Print a line for a picture that cannot be read, instead of raising an error.
    """

    def __init__(
        self, network: keras.Model, prepare: Callable, folder: Path, batch_size: int, replace_corrupt: bool
    ):
        self.network, self.prepare, self.folder = network, prepare, folder
        self.batch_size, self.replace_corrupt = batch_size, replace_corrupt
        self.corrupt: set[str] = set()

    def features(self, names: list[str]) -> Iterator[np.ndarray]:
        """Yield features in batches `(b, D_img)` or `(b, R, D_img)`; NaN for pictures that cannot be read."""
        for first in range(0, len(names), self.batch_size):
            chosen = names[first : first + self.batch_size]
            found = np.array(self.network.predict_on_batch(self.prepare(self._read(chosen))), "float32")
            found = found.reshape(len(found), *((-1,) if found.ndim == 4 else ()), found.shape[-1])
            if not np.isfinite(found).all():  # NaN marks pictures that cannot be read
                raise UserError(f"{self.network.name}'s features are NaN or infinite: give other weights")
            found[[row for row, name in enumerate(chosen) if name in self.corrupt]] = np.nan
            yield found[: len(chosen)]

    def _read(self, names: list[str]) -> np.ndarray:
        """Return a batch `(b, h, w, 3)`, with black pictures where none is left or one cannot be read."""
        # A network for any size, such as MobileNetV3, gets ImageNet's size.
        size = [side or 224 for side in self.network.input_shape[1:3]]
        pictures = np.zeros((self.batch_size, *size, 3), "float32")
        for row, name in enumerate(names):
            try:
                pictures[row] = read_picture(self.folder / name, size)
            except UserError as error:
                if not self.replace_corrupt:
                    raise UserError(f"{error}; --replace-corrupt gives it the mean feature") from None
                print(f"{error}; it gets the mean feature", file=sys.stderr)
                self.corrupt.add(name)
        return pictures


def _network(model: str, weights: str):
    """Return the network, and the function that prepares pictures for it."""
    networks = {name.lower(): name for name in dir(keras.applications) if name[0].isupper()}
    if model.lower() not in networks:
        raise UserError(f"keras.applications has no {model!r}; {nearest(model.lower(), list(networks))}")
    if keras.config.image_data_format() != "channels_last":
        raise UserError("Keras's image_data_format must be channels_last: change it in ~/.keras/keras.json")
    make = getattr(keras.applications, networks[model.lower()])
    if weights == "random":
        keras.utils.set_random_seed(SEED)
    try:
        network = make(weights=None if weights == "random" else weights)
    except Exception as error:  # Keras reports a failed download as a bare Exception
        raise UserError(f"{model} with the weights {weights!r}: {first_line(error)}") from None
    return network, importlib.import_module(make.__module__).preprocess_input


def _identity(network: keras.Model, weights: str) -> tuple[str, int | None]:
    """Return the weights' SHA-256 and no seed; for random weights, "random" and their seed."""
    if weights == "random":
        return "random", SEED
    digest = hashlib.sha256()
    for weight in network.get_weights():
        digest.update(np.ascontiguousarray(weight).tobytes())
    return digest.hexdigest(), None


def _output(network: keras.Model, layer: str):
    name = LAYERS.get(layer, layer)
    known = [layer.name for layer in network.layers]
    if name not in known:
        raise UserError(f"{network.name} has no layer {layer!r}: give another; {nearest(name, known)}")
    return network.get_layer(name).output


def _unread(array: np.ndarray) -> np.ndarray:
    """Return the rows of pictures that could not be read: they are NaN until the others' mean is known."""
    return np.flatnonzero(np.isnan(array.reshape(len(array), -1)[:, 0]))


def _fill_with_mean(array: np.ndarray):
    """Give unreadable pictures the mean of the others' features. Works in pieces: the array may be large."""
    corrupt = _unread(array)
    if len(corrupt) == len(array):
        raise UserError(f"none of the {len(array):,} pictures could be read")
    if len(corrupt) == 0:
        return
    total = np.zeros(array.shape[1:], "float64")
    for first in range(0, len(array), PIECE):
        total += np.nansum(array[first : first + PIECE], axis=0, dtype="float64")
    array[corrupt] = total / (len(array) - len(corrupt))
