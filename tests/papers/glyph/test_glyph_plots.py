"""Glyph pictures: neighbours and activations against brute force, and files that hold the glyphs' ink."""

import numpy as np
import pytest
from message_of import message_of
from PIL import Image
from scipy.spatial.distance import cosine

from kzoo.errors import UserError
from training.glyph.glyph_plots import (
    activation_magnitudes,
    magnitude_quartiles,
    nearest_characters,
    plot_activations,
    plot_glyphs,
    plot_magnitudes,
    plot_nearest,
    top_activations,
)

CHARACTERS = ["<pad>", "<unk>", *"abcdefghij"]


@pytest.fixture
def glyphs(random):
    return (random.random((len(CHARACTERS), 22, 22)) > 0.7).astype("uint8")


def test_nearest_are_those_of_least_cosine_distance(random):
    vectors = random.normal(size=(len(CHARACTERS), 5))
    near = nearest_characters("c", CHARACTERS, vectors, count=4)
    query = vectors[CHARACTERS.index("c")]
    distances = {c: cosine(v, query) for c, v in zip(CHARACTERS, vectors, strict=True) if len(c) == 1}
    del distances["c"]
    assert [character for character, _ in near] == sorted(distances, key=distances.get)[:4]
    assert [value for _, value in near] == pytest.approx([1 - distances[c] for c, _ in near])
    with pytest.raises(UserError, match="'z'"):
        nearest_characters("z", CHARACTERS, vectors)


def test_top_activations_are_the_strongest_features(random):
    activations = random.random((len(CHARACTERS), 6))
    features = top_activations(["abc", "cdz"], CHARACTERS, activations, top=2)
    for character in "abcd":
        row = activations[CHARACTERS.index(character)]
        having = [feature for feature, members in features.items() if character in members]
        assert sorted(having) == sorted(np.argsort(row)[-2:].tolist())
    assert {member for members in features.values() for member in members} == set("abcd")
    sizes = [len(members) for members in features.values()]
    assert sizes == sorted(sizes, reverse=True)
    for feature, members in features.items():
        values = [activations[CHARACTERS.index(member), feature] for member in members]
        assert values == sorted(values, reverse=True)


def test_magnitudes_are_of_every_occurrence(random):
    vocabulary = [*CHARACTERS, " "]
    activations = random.random((len(vocabulary), 6))
    magnitudes = activation_magnitudes(["ab a", "caz"], vocabulary, activations)
    assert magnitudes.tolist() == [
        sorted(activations[vocabulary.index(character)], reverse=True)[:3] for character in "abaca"
    ]
    for column, found in zip(magnitudes.T, magnitude_quartiles(magnitudes), strict=True):
        ordered = sorted(column)  # of five values the quartiles are the second, the third and the fourth
        assert found == pytest.approx(
            {
                "mean": sum(column) / 5,
                "lower_quartile": ordered[1],
                "median": ordered[2],
                "upper_quartile": ordered[3],
            }
        )
    with pytest.raises(UserError, match="vocabulary"):
        activation_magnitudes(["z "], vocabulary, activations)


def test_pictures_are_written(glyphs, random, tmp_path):
    plot_glyphs(glyphs, tmp_path / "table.png", columns=5)
    with Image.open(tmp_path / "table.png") as image:
        dark = np.asarray(image.convert("L")) < 128
    assert 0.3 * glyphs.mean() < dark.mean() < 1.1 * glyphs.mean()
    vectors = {"lookup": random.normal(size=(12, 4)), "cnn_relu": random.normal(size=(12, 4))}
    plot_nearest("ab", CHARACTERS, glyphs, vectors, tmp_path / "nearest.svg")
    assert (tmp_path / "nearest.svg").read_text().count("<!-- cnn_relu -->") == 2
    features = top_activations(["abcdef"], CHARACTERS, random.random((12, 6)))
    plot_activations(features, CHARACTERS, glyphs, tmp_path / "activations.pdf")
    assert (tmp_path / "activations.pdf").read_bytes().startswith(b"%PDF")
    plot_magnitudes(random.random((9, 3)), tmp_path / "magnitudes.svg")
    assert "The 3 greatest activations of 9 characters" in (tmp_path / "magnitudes.svg").read_text()


def test_nothing_to_draw_is_told(glyphs, tmp_path):
    path = tmp_path / "plot.png"
    assert "glyphs" in message_of(plot_glyphs, glyphs[:0], path)
    assert "characters" in message_of(plot_activations, {}, CHARACTERS, glyphs, path)
    assert not path.exists()
