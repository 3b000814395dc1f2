"""Features of pictures by small networks with random weights, against the networks called directly."""

import dataclasses
import sys
from functools import partial

import keras
import numpy as np
import pytest
from message_of import message_of
from PIL import Image

from kzoo.data import open_corpus, open_files
from kzoo.data.corpora import picture_names
from kzoo.data.feature_extraction import SEED, extract_features
from kzoo.images import read_picture

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


@pytest.fixture(scope="module", autouse=True)
def thin():
    """MobileNet with a quarter of its channels."""
    with pytest.MonkeyPatch.context() as patch:
        in_place_of("MobileNet", partial(keras.applications.MobileNet, alpha=0.25), patch)
        yield


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
    assert found.shape == (4, 49, 256)
    assert_close(found[:], regions[::-1].reshape(4, 49, -1))


@pytest.fixture
def little(monkeypatch, folder):
    """A little network in MobileNet's place, prepared for as that is; gives its features of pictures."""

    def make(weights):
        x = inputs = keras.Input((32, 32, 3))
        x = keras.layers.Conv2D(4, 8, strides=8, activation="relu")(x)
        outputs = keras.layers.Dense(7, name=WHOLE)(keras.layers.Flatten()(x))
        network = keras.Model(inputs, outputs, name="little")
        if weights is not None:
            network.load_weights(weights)
        return network

    def features(names):
        keras.utils.set_random_seed(SEED)
        return make(None).predict(opened(folder, names) / 127.5 - 1, verbose=0)

    in_place_of("MobileNet", make, monkeypatch)
    features.make = make
    return features


def in_place_of(name, make, monkeypatch):
    """Have a function in the place of a network of keras.applications, whose preparation it keeps."""
    make.__module__ = getattr(keras.applications, name).__module__
    monkeypatch.setattr(keras.applications, name, make)


def narrow(kind):
    """Return a class of layers with a sixteenth of the channels that they are given."""
    return lambda channels, *arguments, **options: kind(channels // 16, *arguments, **options)


def opened(folder, names):
    """Pictures as `(N, 32, 32, 3)`."""
    images = (Image.open(folder / name).resize((32, 32), Image.Resampling.BILINEAR) for name in names)
    return np.stack([np.asarray(image, "float32") for image in images])


def test_fc7_and_regions_are_vgg_s(folder, tmp_path, monkeypatch):
    """Its pictures are blue, green, red, less ImageNet's means; fc7 comes after its ReLU.

    Here each of its layers has a sixteenth of its channels.
    """
    make = partial(keras.applications.VGG19, input_shape=(32, 32, 3), classes=16)
    in_place_of("VGG19", make, monkeypatch)
    layers = sys.modules[make.__module__].layers
    for kind in (layers.Conv2D, layers.Dense):
        monkeypatch.setattr(layers, kind.__name__, narrow(kind))
    asked = {"model": "vgg19", "weights": "random", "batch_size": 3}
    fc7 = extract_features(tmp_path / "fc7.npy", folder, NAMES, layer="fc7", **asked)
    regions = extract_features(tmp_path / "regions.npy", folder, NAMES, layer="block5_pool", **asked)
    assert (fc7.extractor.layer, fc7.shape, regions.shape) == ("fc2", (4, 256), (4, 1, 32))
    keras.utils.set_random_seed(SEED)
    network = make(weights=None)
    prepared = opened(folder, NAMES)[..., ::-1] - [103.939, 116.779, 123.68]
    pool = keras.Model(network.inputs, network.get_layer("block5_pool").output).predict(prepared, verbose=0)
    assert_close(regions[:], pool.reshape(4, 1, 32))
    x = pool.reshape(4, 32)
    for layer in ("fc1", "fc2"):
        kernel, bias = network.get_layer(layer).get_weights()
        x = np.maximum(x @ kernel + bias, 0)
    assert_close(fc7[:], x)


def test_a_network_for_pictures_of_any_size_gets_imagenet_s(folder, tmp_path, monkeypatch):
    """As MobileNetV3 is: its input has no size."""

    def make(weights):
        inputs = keras.Input((None, None, 3))
        return keras.Model(inputs, keras.layers.GlobalAveragePooling2D(name=WHOLE)(inputs))

    in_place_of("MobileNetV3Small", make, monkeypatch)
    asked = {"model": "mobilenetv3small", "weights": "random", "batch_size": 3, "layer": WHOLE}
    found = extract_features(tmp_path / "test.npy", folder, NAMES, **asked)
    pictures = np.stack([read_picture(folder / name, (224, 224)) for name in NAMES])
    np.testing.assert_allclose(found[:], pictures.mean(axis=(1, 2)), rtol=1e-3)


def test_a_file_of_weights_is_read(folder, tmp_path, monkeypatch):
    make = partial(keras.applications.MobileNet, input_shape=(32, 32, 3), classes=7)
    in_place_of("MobileNet", make, monkeypatch)
    keras.utils.set_random_seed(SEED + 1)
    trained, path = make(weights=None), tmp_path / "own.weights.h5"
    trained.save_weights(path)
    found = extract_features(
        tmp_path / "test.npy", folder, NAMES, "mobilenet", "conv_pw_1_relu", str(path), 3
    )
    outputs = keras.Model(trained.inputs, trained.get_layer("conv_pw_1_relu").output)
    expected = outputs.predict(opened(folder, NAMES) / 127.5 - 1, verbose=0)
    assert_close(found[:], expected.reshape(4, 256, 16))
    assert len(found.extractor.weights) == 64
    assert found.extractor.seed is None


def test_other_random_weights_of_the_same_seed_are_others(little, folder, tmp_path, monkeypatch):
    """As TensorFlow and JAX draw them."""
    asked, seed = ("mobilenet", WHOLE, "random", 2), keras.utils.set_random_seed
    first = extract_features(tmp_path / "train.npy", folder, NAMES, *asked)
    monkeypatch.setattr(keras.utils, "set_random_seed", lambda number: seed(number + 1))
    other = extract_features(tmp_path / "test.npy", folder, NAMES, *asked)
    message = message_of(other.require, dataclasses.asdict(first.extractor))
    assert str(first.extractor) != str(other.extractor) and str(first.extractor) in message


def test_a_corrupt_picture_is_named_or_replaced_when_asked(folder, direct, tmp_path, capsys):
    names = [NAMES[0], "broken.jpg", *NAMES[1:]]
    path = tmp_path / "test.npy"
    assert "broken.jpg" in message_of(extract_features, path, folder, names, layer=WHOLE, **NETWORK)
    assert not path.exists()
    seen = []
    found = extract_features(
        path, folder, names, layer=WHOLE, replace_corrupt=True, progress=seen.append, **NETWORK
    )
    assert_close(found[1], direct[0].mean(axis=0))
    assert sum(seen) == len(names)
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "broken.jpg" in line]
    assert line.startswith(str(folder / "broken.jpg"))


def test_asking_for_replacement_goes_on_where_it_stopped(little, read, folder, tmp_path):
    names = [*NAMES, "broken.jpg"]
    asked = {"model": "mobilenet", "layer": WHOLE, "weights": "random", "batch_size": 2}
    assert "broken.jpg" in message_of(extract_features, tmp_path / "test.npy", folder, names, **asked)
    read.clear()
    seen = []
    found = extract_features(
        tmp_path / "test.npy", folder, names, replace_corrupt=True, progress=seen.append, **asked
    )
    assert read == ["broken.jpg"]
    assert seen == [4, 1]
    expected = little(NAMES)
    assert_close(found[:], np.vstack([expected, expected.mean(axis=0)]))
    assert found.extractor.corrupt == "mean"


def test_what_an_earlier_run_could_not_read_is_read_again(little, folder, tmp_path, capsys):
    """Stopped while pictures are replaced, it goes on without replacement, and with a mended picture."""
    asked = {"model": "mobilenet", "layer": WHOLE, "weights": "random", "batch_size": 2}
    here, names, path = tmp_path / "pictures", ["bad.png", *NAMES], tmp_path / "test.npy"
    here.mkdir()
    for name in NAMES:
        (here / name).write_bytes((folder / name).read_bytes())
    (here / "bad.png").write_bytes(b"")

    def stop(count):
        if count:
            raise KeyboardInterrupt

    def interrupted():
        with pytest.raises(KeyboardInterrupt):
            extract_features(path, here, names, replace_corrupt=True, progress=second(stop), **asked)

    interrupted()
    assert "bad.png" in message_of(extract_features, path, here, names, **asked)
    (here / "bad.png").write_bytes((folder / NAMES[2]).read_bytes())
    found = extract_features(path, here, names, **asked)
    assert_close(found[:], little([NAMES[2], *NAMES]))
    assert found.extractor.corrupt == ""
    assert len([line for line in capsys.readouterr().err.splitlines() if "bad.png" in line]) == 1


def test_a_changed_picture_gets_its_own_features(little, read, folder, tmp_path):
    asked = {"model": "mobilenet", "layer": WHOLE, "weights": "random", "batch_size": 1}
    here, names, path = tmp_path / "pictures", NAMES[:2], tmp_path / "test.npy"
    here.mkdir()

    def put(*sources):
        for name, source in zip(names, sources, strict=True):
            (here / name).write_bytes((folder / source).read_bytes())

    def stop(count):
        raise KeyboardInterrupt

    put(NAMES[0], NAMES[1])
    with pytest.raises(KeyboardInterrupt):  # after the first picture
        extract_features(path, here, names, progress=second(stop), **asked)
    put(NAMES[2], NAMES[1])
    assert_close(extract_features(path, here, names, **asked)[:], little([NAMES[2], NAMES[1]]))
    put(NAMES[2], NAMES[3])
    read.clear()
    for _ in range(2):  # the second time, nothing is left to do
        assert_close(extract_features(path, here, names, **asked)[:], little([NAMES[2], NAMES[3]]))
    assert read == names
    assert sorted(file.name for file in tmp_path.iterdir()) == ["pictures", "test.json", "test.npy"]


def second(call):
    """Return a function that calls `call` from its third call on: after two batches were asked for."""
    calls = []

    def counting(count):
        calls.append(count)
        if len(calls) > 2:
            call(count)

    return counting


@pytest.fixture
def read(monkeypatch):
    """The names of the pictures that are read."""
    names = []

    def noted(path, size):
        names.append(path.name)
        return read_picture(path, size)

    monkeypatch.setattr("kzoo.data.feature_extraction.read_picture", noted)
    return names


def test_a_corpus_reads_them_in_its_order(little, folder, tmp_path):
    """Row i is that of sentence i: lines of Multi30k's lists, of which several may name one picture."""
    lines = [f"{NAMES[number]}#{caption}" for number, caption in ((2, 0), (0, 1), (2, 3), (3, 0), (0, 0))]
    (tmp_path / "test.txt").write_text("".join(f"{line}\n" for line in lines))
    names = picture_names(tmp_path / "test.txt")
    found = extract_features(tmp_path / "test.npy", folder, names, "mobilenet", WHOLE, "random", 2)
    assert found.names == (NAMES[2], NAMES[0], NAMES[3])  # each picture once
    for language in ("id", "zh"):
        (tmp_path / f"own.{language}").write_text("a\nb\nc\nd\ne\n")
    texts = [str(tmp_path / f"own.{language}") for language in ("id", "zh")]
    corpus = open_files(test=texts, languages=("id", "zh")).with_images(tmp_path)
    expected = little(NAMES)[[2, 0, 2, 3, 0]]
    assert corpus.images("test").shape == (5, 7)
    assert_close(corpus.images("test")[:], expected)
    assert np.abs(expected[1:] - expected[:-1]).max(axis=1).min() > 0.01 * expected.std()


def test_weights_that_give_nan_are_named(little, folder, tmp_path):
    broken = little.make(None)
    layer = broken.get_layer(WHOLE)
    layer.set_weights([np.full_like(weight, np.nan) for weight in layer.get_weights()])
    broken.save_weights(tmp_path / "nan.weights.h5")
    asked = {"model": "mobilenet", "layer": WHOLE, "weights": str(tmp_path / "nan.weights.h5")}
    assert "little" in message_of(extract_features, tmp_path / "test.npy", folder, NAMES, **asked)


@pytest.mark.parametrize(("raised", "shown"), [(MemoryError(), "MemoryError"), (OSError("one\ntwo"), "one")])
def test_a_network_that_cannot_be_made_is_one_line(raised, shown, monkeypatch, folder, tmp_path):
    def fails(weights):
        raise raised

    in_place_of("MobileNet", fails, monkeypatch)
    message = message_of(extract_features, tmp_path / "test.npy", folder, NAMES, layer=WHOLE, **NETWORK)
    assert "'random'" in message and shown in message


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"model": "vgg91"}, "vgg19"),
        ({"layer": "fc9"}, "'fc9'"),
        ({"weights": "no/such.weights.h5"}, "'no/such.weights.h5'"),
        ({"names": ["broken.jpg"], "replace_corrupt": True}, "1 of 1"),
        ({"names": [NAMES[0], "none.jpg"], "model": "before any network"}, "none.jpg"),
    ],
)
def test_bad_input_is_named(changes, name, little, folder, tmp_path):
    asked = {**NETWORK, "names": NAMES, "layer": WHOLE, **changes}
    assert name in message_of(extract_features, tmp_path / "test.npy", folder, **asked)
    assert not (tmp_path / "test.npy").exists()


def test_a_split_without_features_is_named(tmp_path):
    corpus = open_corpus("tatoeba_zh_en").with_images(tmp_path)
    assert "val.npy" in message_of(corpus.images, "val")
