"""Features of pictures by a small network with random weights, against the network called directly."""

import keras
import numpy as np
import pytest
from PIL import Image

from kzoo.data import open_corpus
from kzoo.errors import UserError
from kzoo.training.extraction import SEED, extract_features

NETWORK = {"model": "MobileNet", "weights": "random", "batch_size": 3}
WHOLE, REGIONS = "predictions", "conv_pw_13_relu"
NAMES = [f"{i}.png" for i in range(4)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    random = np.random.default_rng(0)
    for name in NAMES:
        Image.fromarray(random.integers(0, 256, (60, 80, 3)).astype("uint8")).save(folder / name)
    (folder / "broken.jpg").write_bytes(b"\xff\xd8\xff no picture")
    return folder


@pytest.fixture(scope="module")
def direct(folder):
    """The network's own outputs for the four pictures, of two layers."""
    keras.utils.set_random_seed(SEED)
    network = keras.applications.MobileNet(weights=None)
    pictures = np.stack(
        [np.asarray(Image.open(folder / n).resize((224, 224), Image.Resampling.BILINEAR)) for n in NAMES]
    )
    outputs = [network.get_layer(name).output for name in (WHOLE, REGIONS)]
    prepared = pictures / 127.5 - 1  # as MobileNet has it
    return keras.Model(network.inputs, outputs).predict(prepared, verbose=0)


def assert_close(found, expected):
    np.testing.assert_allclose(found / expected.std(), expected / expected.std(), atol=1e-3)


def test_features_are_the_network_s(folder, direct, tmp_path):
    whole, regions = direct
    found = extract_features(tmp_path / "test.npy", folder, NAMES, layer=WHOLE, **NETWORK)
    assert_close(found[:], whole)
    found = extract_features(tmp_path / "regions.npy", folder, NAMES[::-1], layer=REGIONS, **NETWORK)
    assert found.shape == (4, 49, 1024)
    assert_close(found[:], regions[::-1].reshape(4, 49, -1))


def test_a_corrupt_picture_is_named_or_replaced_when_asked(folder, direct, tmp_path):
    names = [NAMES[0], "broken.jpg", *NAMES[1:]]
    path = tmp_path / "test.npy"
    with pytest.raises(UserError, match=r"broken\.jpg is no image"):
        extract_features(path, folder, names, layer=WHOLE, **NETWORK)
    assert not path.exists()
    seen = []
    found = extract_features(
        path, folder, names, layer=WHOLE, replace_corrupt=True, progress=seen.append, **NETWORK
    )
    assert_close(found[1], direct[0].mean(axis=0))
    assert sum(seen) == len(names)


def test_a_corpus_reads_them_in_its_order(folder, tmp_path):
    extract_features(tmp_path / "test.npy", folder, NAMES, layer=WHOLE, **NETWORK)
    corpus = open_corpus("tatoeba_zh_en").with_images(tmp_path)
    assert corpus.images("test").shape == (4, 1000)
    with pytest.raises(UserError, match=r"val\.npy: no such file of features"):
        corpus.images("val")


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"model": "vgg91"}, "no 'vgg91'; did you mean vgg19"),
        ({"layer": "fc9"}, "has no layer 'fc9'"),
        ({"weights": "no/such.weights.h5"}, "with the weights 'no/such.weights.h5'"),
    ],
)
def test_bad_input_is_named(changes, message, folder, tmp_path):
    with pytest.raises(UserError, match=message):
        extract_features(tmp_path / "test.npy", folder, NAMES, **{**NETWORK, "layer": "x", **changes})
    assert not (tmp_path / "test.npy").exists()
