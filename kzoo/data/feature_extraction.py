"""Features of pictures, computed by a network of `keras.applications`."""

import contextlib
import hashlib
import importlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import keras
import numpy as np

from kzoo.data.features import Extractor, FeatureFile, check_features_path, write_features
from kzoo.errors import UserError, first_line, nearest
from kzoo.files import sha256
from kzoo.images import read_picture

# The papers' names of VGG's layers, and Keras's names. The outputs are after ReLU.
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
    """Write the features of pictures; an interrupted call resumes where it stopped.

    Args:
        path: the `.npy` file to write.
        folder: folder of the pictures.
        names: their file names, in the order of the rows; a repeated name gets one row.
        model: a network of `keras.applications`, in any case.
        layer: layer whose output is the features, such as `"block5_pool"`; `"fc7"` is Keras's `fc2`. An
            output `(h, w, D_img)` becomes R = h·w regions.
        weights: `"imagenet"`, downloaded by Keras; the path of a weights file; or `"random"`.
        batch_size: int.
        replace_corrupt: bool. Give unreadable pictures the mean of the other features and print a line for
            each; by default, they raise an error.
        progress: called with the number of pictures done since its last call.

    Raises:
        UserError: no such network or layer, weights that do not fit, a picture that cannot be read.
    """
    names, folder = list(dict.fromkeys(names)), Path(folder)
    check_features_path(path, names)
    for name in [] if replace_corrupt else names:  # before the network takes hours to reach it
        if not (folder / name).is_file():
            raise UserError(f"{folder / name}: no such image; --replace-corrupt gives it the mean feature")
    network, prepare = _network(model, weights)
    name, known = LAYERS.get(layer, layer), [each.name for each in network.layers]
    if name not in known:
        raise UserError(f"{network.name} has no layer {layer!r}: give another; {nearest(name, known)}")
    handling = "mean" if replace_corrupt else ""
    seed = SEED if weights == "random" else None  # backends draw different weights from it
    extractor = Extractor(model.lower(), name, _weights_digest(network), seed, handling)
    features = keras.Model(network.inputs, network.get_layer(name).output, name=network.name)
    # Networks without a fixed size, such as MobileNetV3, get ImageNet's size.
    size = [side or 224 for side in network.input_shape[1:3]]
    advance = progress or (lambda count: None)

    def read(name: str) -> np.ndarray | None:
        try:
            return read_picture(folder / name, size)
        except UserError as error:
            if not replace_corrupt:
                raise UserError(f"{error}; --replace-corrupt gives it the mean feature") from None
            print(f"{error}; it gets the mean feature", file=sys.stderr)
            return None

    def batches(wanted: list[str]) -> Iterator[np.ndarray]:
        advance(len(names) - len(wanted))
        for first in range(0, len(wanted), batch_size):
            pictures = [read(name) for name in wanted[first : first + batch_size]]
            unread = [row for row, picture in enumerate(pictures) if picture is None]
            batch = np.zeros((batch_size, *size, 3), "float32")  # always the same size, to compile once
            for row, picture in enumerate(pictures):
                batch[row] = 0 if picture is None else picture
            found = np.array(features.predict_on_batch(prepare(batch)), "float32")
            if not np.isfinite(found).all():
                raise UserError(f"{features.name}'s features are NaN or infinite: give other weights")
            found = found.reshape(len(found), *((-1,) if found.ndim == 4 else ()), found.shape[-1])
            found[unread] = np.nan
            yield found[: len(pictures)]
            advance(len(pictures))

    return write_features(path, batches, names, extractor, _digests(folder, names))


def _weights_digest(model: keras.Model) -> str:
    """Return the SHA-256 of a model's weights."""
    digest = hashlib.sha256()
    for weight in model.weights:  # one at a time: `get_weights` would copy all
        digest.update(keras.ops.convert_to_numpy(weight).tobytes())
    return digest.hexdigest()


def _digests(folder: Path, names: list[str]) -> dict[str, str]:
    """Return each picture's SHA-256; "" for a file that cannot be read, which reading it reports."""
    digests = dict.fromkeys(names, "")
    for name in names:
        with contextlib.suppress(OSError):
            digests[name] = sha256(folder / name)
    return digests


def _network(model: str, weights: str):
    """Return the network and its preprocessing function."""
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
