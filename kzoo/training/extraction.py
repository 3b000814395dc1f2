"""Features of pictures by a network of `keras.applications`: what image-text models on photographs read.

`kzoo features extract` calls it.
"""

import hashlib
import importlib
import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import keras
import numpy as np

from kzoo.data.extractor import Extractor
from kzoo.data.image_features import FeatureFile, check_features_path, write_features
from kzoo.errors import UserError, nearest
from kzoo.files import check_writable
from kzoo.models.image_inputs import read_picture

# The papers' names of VGG's layers; Keras's come after their ReLU.
LAYERS = {"fc6": "fc1", "fc7": "fc2"}
SEED = 0  # of random weights


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
    """Write the features of pictures; what was interrupted goes on where it stopped.

    Args:
        path: the `.npy` file to write.
        folder: where the pictures are.
        names: their file names, in the order of the rows.
        model: a network of `keras.applications`, in any case of letters.
        layer: whose output the features are, such as `"block5_pool"`; `"fc7"` is Keras's `fc2`. An output
            `(h, w, D_img)` becomes R = h·w regions.
        weights: `"imagenet"`, downloaded by Keras; the path of a file of weights; or `"random"`.
        batch_size: int.
        replace_corrupt: bool. Give pictures that cannot be read the mean of the others' features; an error
            otherwise.
        progress: called with a number of pictures whenever so many more are done.

    Raises:
        UserError: no such network or layer, weights that do not fit, a picture that cannot be read.
    """
    check_features_path(path, names)
    check_writable(path)
    network, prepare = _network(model, weights)
    handling = "mean" if replace_corrupt else ""
    extractor = Extractor(model.lower(), LAYERS.get(layer, layer), *_identity(network, weights), handling)
    features = keras.Model(network.inputs, _output(network, layer))
    size = network.input_shape[1:3]

    def batches(wanted: list[str]):
        for first in range(0, len(wanted), batch_size):
            chosen = wanted[first : first + batch_size]
            pictures, corrupt = np.zeros((batch_size, *size, 3), "float32"), []
            for row, name in enumerate(chosen):
                try:
                    pictures[row] = read_picture(Path(folder) / name, size)
                except UserError as error:
                    if not replace_corrupt:
                        raise
                    warnings.warn(f"{error}; it gets the mean feature", stacklevel=2)
                    corrupt.append(row)
            found = np.array(features.predict_on_batch(prepare(pictures)), "float32")
            found = found.reshape(batch_size, *((-1,) if found.ndim == 4 else ()), found.shape[-1])
            found[corrupt] = np.nan  # until all others are known
            if progress is not None:
                progress(len(chosen))
            yield found[: len(chosen)]

    return write_features(path, batches, names, extractor, _fill_with_mean)


def _network(model: str, weights: str):
    """Return the network, and the function that prepares pictures for it."""
    networks = {name.lower(): name for name in dir(keras.applications) if name[0].isupper()}
    if model.lower() not in networks:
        raise UserError(f"keras.applications has no {model!r}; {nearest(model.lower(), list(networks))}")
    make = getattr(keras.applications, networks[model.lower()])
    if weights == "random":
        keras.utils.set_random_seed(SEED)
    try:
        network = make(weights=None if weights == "random" else weights)
    except Exception as error:  # Keras reports a failed download as a bare Exception
        reason = str(error).splitlines()[0]
        raise UserError(f"{model} with the weights {weights!r}: {reason}") from None
    return network, importlib.import_module(make.__module__).preprocess_input


def _identity(network: keras.Model, weights: str) -> tuple[str, int | None]:
    """Return what tells weights apart: their SHA-256, or "random" and the seed."""
    if weights == "random":
        return "random", SEED
    digest = hashlib.sha256()
    for weight in network.get_weights():
        digest.update(np.ascontiguousarray(weight).tobytes())
    return digest.hexdigest(), None


def _output(network: keras.Model, layer: str):
    name = LAYERS.get(layer, layer)
    known = [one.name for one in network.layers]
    if name not in known:
        raise UserError(f"{network.name} has no layer {layer!r}: give another; {nearest(name, known)}")
    return network.get_layer(name).output


def _fill_with_mean(array: np.ndarray):
    """Give pictures that could not be read the mean of the others' features."""
    corrupt = np.isnan(array.reshape(len(array), -1)[:, 0])
    if corrupt.all():
        raise UserError(f"none of the {len(array):,} pictures could be read")
    if corrupt.any():
        array[corrupt] = array[~corrupt].mean(axis=0)
