"""`kzoo features extract`, with a small network of random weights."""

import keras
import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from kzoo import cli
from kzoo.data import open_features

NAMES = [f"{i}.png" for i in range(3)]


@pytest.fixture
def extract(commands_load, tmp_path, monkeypatch):
    """Runs the command on three pictures of a folder and what else a test puts there."""

    def little(weights):
        inputs = keras.Input((32, 32, 3))
        outputs = keras.layers.Dense(7, name="predictions")(keras.layers.Flatten()(inputs))
        return keras.Model(inputs, outputs)

    little.__module__ = keras.applications.MobileNet.__module__  # where its pictures' preparation is
    monkeypatch.setattr(keras.applications, "MobileNet", little)
    commands_load(None)
    folder = tmp_path / "pictures"
    folder.mkdir()
    for number, name in enumerate(NAMES):
        Image.new("RGB", (40, 30), (80 * number, 10, 200)).save(folder / name)

    def run(*arguments):
        fixed = ["--model", "mobilenet", "--layer", "predictions", "--weights", "random", "--batch-size", "2"]
        return CliRunner().invoke(
            cli.app,
            ["features", "extract", str(folder), "-o", str(tmp_path / "test.npy"), *fixed, *arguments],
        )

    run.folder, run.output = folder, tmp_path / "test.npy"
    return run


def test_all_pictures_of_a_folder_are_extracted(extract):
    for name in ("readme.txt", ".DS_Store", "Thumbs.db"):
        (extract.folder / name).write_text("no picture")
    done = extract()
    assert done.exit_code == 0, done.output
    assert done.stdout == f"{extract.output}: (3, 7), mobilenet predictions\n"
    features = open_features(extract.output)
    assert features.names == tuple(NAMES)
    assert np.abs(np.diff(features[:], axis=0)).max(axis=1).min() > 0


@pytest.mark.parametrize("content", ['["a caption"]', '{"images": []}'])
def test_a_file_that_does_not_describe_features_is_not_replaced(content, extract):
    captions = extract.output.with_suffix(".json")
    captions.write_text(content)
    assert str(captions) in str(extract().exception)
    assert captions.read_text() == content and not extract.output.exists()


def test_names_come_from_a_list_where_they_may_repeat(extract, tmp_path):
    extract()
    expected = open_features(extract.output, ["2.png", "0.png"])[:]
    (tmp_path / "test.txt").write_text("2.png#0\n0.png # a dog\n2.png#1\n")
    done = extract("--names", str(tmp_path / "test.txt"))
    assert done.exit_code == 0, done.output
    features = open_features(extract.output)
    assert features.names == ("2.png", "0.png")
    np.testing.assert_allclose(features[:], expected, rtol=1e-5)
    (tmp_path / "test.txt").write_text("2.png\n\n")
    assert "test.txt, line 2" in str(extract("--names", str(tmp_path / "test.txt")).exception)


def test_a_corrupt_picture_stops_it_or_is_one_line(extract):
    (extract.folder / "1.png").write_bytes(b"no picture")
    done = extract()
    assert done.exit_code == 1
    assert "1.png" in str(done.exception)
    done = extract("--replace-corrupt")
    assert done.exit_code == 0, done.output
    (line,) = filter(None, done.stderr.splitlines())  # the bar ends with an empty one
    assert line.endswith("; it gets the mean feature")
    features = open_features(extract.output)
    np.testing.assert_allclose(features[1], (features[0] + features[2]) / 2, rtol=1e-5)


def test_a_folder_that_is_none_is_named(extract):
    extract.folder.rename(extract.folder.with_name("moved"))
    assert "pictures: " in str(extract().exception)
