"""Images beside sentences: what counts as one, one line that names the wrong one, others in their place."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from kzoo.data import Extractor, FeatureFile, open_features, write_features
from kzoo.errors import UserError
from kzoo.images import GREY, image_rows, read_picture, shown_images

FEATURES, PICTURE = (4,), (6, 8, 3)
ROW = np.arange(4.0)
HOLED = np.array([[0, 1, 2, 3], [0, 1, np.nan, 3], [0, 1, np.inf, 3]], "float32")


@pytest.fixture
def file(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, PICTURE).astype("uint8")
    Image.fromarray(pixels).save(tmp_path / "a.png")
    return tmp_path / "a.png", pixels


def refused(images, count, shape, message):
    with pytest.raises(UserError, match=message) as error:
        image_rows(images, count, shape)
    assert "\n" not in str(error.value)


def test_a_path_is_one_image(file):
    path, pixels = file
    for one in (path, str(path), [path], (str(path),), np.array([str(path)])):
        np.testing.assert_array_equal(image_rows(one, 1, PICTURE), pixels[None])
    refused(path, 2, PICTURE, "2 .* 1 ")
    refused("a.png", 1, FEATURES, r"\(4,\), .*kzoo features")
    refused("no.png", 1, PICTURE, r"no\.png: ")


def test_tensors_of_a_backend_are_images():
    class Tensor(list):
        dtype = "float32"  # a TensorFlow or PyTorch dtype has no `kind`, either

    np.testing.assert_array_equal(image_rows(Tensor([ROW, ROW]), 2, FEATURES), [ROW, ROW])


def test_every_format_is_read_as_colours(tmp_path):
    """Red and grey from each, whatever the file's own numbers are: of 16 bits, the upper 8."""
    red = Image.new("RGB", (8, 6), (250, 0, 0))
    deep = np.full((6, 8), 100)
    deep[0, 0] = 0
    for name, image, expected in (
        ("a.jpg", red, (250, 0, 0)),
        ("palette.png", red.convert("P", palette=Image.Palette.ADAPTIVE), (250, 0, 0)),
        ("grey.png", Image.new("L", (8, 6), 100), (100, 100, 100)),
        ("sixteen.png", Image.fromarray((deep * 256).astype("uint16")), deep[..., None]),
        ("dark.png", Image.fromarray((deep * 2).astype("uint16")), (0, 0, 0)),
        ("whole.tiff", Image.fromarray(deep.astype("int32")), deep[..., None]),
        ("wide.tiff", Image.fromarray(deep.astype("int32") * 256), deep[..., None]),
    ):
        image.save(tmp_path / name)
        found = read_picture(tmp_path / name, (6, 8)).astype(int)
        assert abs(found - expected).max() <= (4 if name == "a.jpg" else 0), name
    Image.fromarray(np.full((6, 8), 0.5, "float32")).save(tmp_path / "fractions.tiff")
    with pytest.raises(UserError, match=r"fractions\.tiff .* 8 "):
        read_picture(tmp_path / "fractions.tiff", (6, 8))


def test_pictures_are_turned_as_exif_says_and_nothing_else(tmp_path):
    """XMP, which a SavedModel does not read, may say it too."""
    pixels = np.random.default_rng(1).integers(0, 256, PICTURE).astype("uint8")
    xmp = b"""<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF
 xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description
 xmlns:tiff="http://ns.adobe.com/tiff/1.0/" tiff:Orientation="3"/></rdf:RDF></x:xmpmeta>"""
    text = PngImagePlugin.PngInfo()
    text.add_itxt("XML:com.adobe.xmp", xmp.decode())
    Image.fromarray(pixels).save(tmp_path / "xmp.png", pnginfo=text)
    np.testing.assert_array_equal(read_picture(tmp_path / "xmp.png", (6, 8)), pixels)
    Image.fromarray(pixels).save(tmp_path / "plain.jpg", quality=95)
    Image.fromarray(pixels).save(tmp_path / "xmp.jpg", quality=95, xmp=xmp)
    found = [read_picture(tmp_path / name, (6, 8)) for name in ("plain.jpg", "xmp.jpg")]
    np.testing.assert_array_equal(*found)


def test_a_picture_is_made_smaller_by_averaging(tmp_path):
    rows = np.zeros((8, 8, 3), "uint8")
    rows[::2] = 255
    Image.fromarray(rows).save(tmp_path / "rows.png")
    small = read_picture(tmp_path / "rows.png", (2, 2))
    assert 100 < small.min() <= small.max() < 155


def test_paths_and_arrays_go_together(file):
    path, pixels = file
    found = image_rows([path, pixels[::-1], pixels.astype(int)], 3, PICTURE)
    np.testing.assert_array_equal(found, [pixels, pixels[::-1], pixels])


def test_lists_of_features_are_stacked():
    np.testing.assert_array_equal(image_rows([ROW, list(ROW + 1)], 2, FEATURES), [ROW, ROW + 1])


def test_no_sentences_have_no_images():
    for shape in (FEATURES, PICTURE):
        for nothing in ([], np.zeros((0, *shape)), np.array([])):
            assert image_rows(nothing, 0, shape).shape == (0, *shape)
        refused([], 2, shape, "2 .* 0 ")


@pytest.mark.parametrize(
    "second, message",
    [
        (None, "sentence 2 "),
        (
            np.zeros(5),
            r"sentence 2: .*float64 .*\(5,\), .*\(4,\)",
        ),
        (7.5, r"sentence 2: .*float64 .*\(\), "),
        (["a", "b", "c", "d"], r"sentence 2: .*<U1 .*\(4,\), "),
        (np.array([0, np.nan, 2, 3]), "sentence 2: .*NaN"),
        (Path("a.png"), "files"),
    ],
)
def test_the_sentence_is_named(second, message):
    refused([ROW, second], 2, FEATURES, message)


def test_a_picture_without_another_is_named(file):
    path, pixels = file
    refused([path, None], 2, PICTURE, "sentence 2 ")
    refused([None, pixels], 2, PICTURE, "sentence 1 ")
    refused([path, pixels[1:]], 2, PICTURE, r"sentence 2: .*uint8 .*\(5, 8, 3\)")


def test_whole_arrays_are_checked():
    refused(np.array([["a"] * 4] * 2), 2, FEATURES, "sentence 1: .*<U1 ")
    refused(np.array([ROW, None], object), 2, FEATURES, "sentence 2 ")
    refused(HOLED, 3, FEATURES, "sentence 2: .*NaN")
    refused(HOLED[::2], 2, FEATURES, "sentence 2: .*NaN")
    refused(np.array([ROW, ROW + 1e300]), 2, FEATURES, "sentence 2: .*float32")
    long = np.zeros((600, *FEATURES), "float32")
    long[513] = np.nan
    refused(long, 600, FEATURES, "sentence 514: .*NaN")


def test_a_file_with_nan_is_named(tmp_path):
    made = Extractor("vgg19", "fc2", "random", seed=3)
    write_features(
        tmp_path / "test.npy", lambda names: [np.ones_like(HOLED)], ["0.jpg", "1.jpg", "2.jpg"], made
    )
    np.save(tmp_path / "test.npy", HOLED)
    features = open_features(tmp_path / "test.npy")
    refused(features, 3, FEATURES, r"test\.npy: sentence 2: .*NaN")


def test_a_reader_s_error_is_one_line(file, monkeypatch):
    for raised, shown in (
        (MemoryError(), "MemoryError"),
        (OSError("first\nsecond"), "first"),
        (ValueError("\n"), "ValueError"),
    ):

        def broken(path, formats, raised=raised):
            raise raised

        monkeypatch.setattr(Image, "open", broken)
        with pytest.raises(UserError, match=rf"a\.png .*\({shown}\)$"):
            read_picture(file[0], (4, 4))


def test_postscript_is_not_run(tmp_path):
    Image.new("RGB", (4, 4)).save(tmp_path / "a.jpg", "EPS")
    with pytest.raises(UserError, match=r"a\.jpg"):
        read_picture(tmp_path / "a.jpg")


def test_pictures_from_0_to_1_are_refused():
    pictures = np.full((2, 16, 16, 3), 0.75)
    with pytest.raises(UserError, match="255.* 0.75"):
        image_rows(pictures, 2, (16, 16, 3))
    normalized = np.linspace(-2, 2.6, pictures.size).reshape(pictures.shape)
    for other in (normalized, np.full((2, 16, 16, 3), 40_000, "uint16")):
        with pytest.raises(UserError, match="0 .*255"):
            image_rows(other, 2, (16, 16, 3))
    assert image_rows(255 * pictures, 2, (16, 16, 3)).max() == 191.25
    assert image_rows(0 * pictures, 2, (16, 16, 3)).max() == 0


READER = SimpleNamespace(image_shape=(2,), extractor=None)
MANY = np.arange(200.0).reshape(100, 2)


def test_right_shuffled_or_none():
    np.testing.assert_array_equal(shown_images(READER, MANY, 100), MANY)
    assert (shown_images(READER, MANY, 100, "none").rows == 0).all()
    shuffled = shown_images(READER, MANY, 100, "shuffled").rows
    np.testing.assert_array_equal(shuffled[np.argsort(shuffled[:, 0])], MANY)
    assert (shuffled != MANY).any(axis=1).sum() > 90
    np.testing.assert_array_equal(shown_images(READER, MANY, 100, "shuffled"), shuffled)
    pictures, reader = np.zeros((3, 4, 4, 3), "uint8"), SimpleNamespace(image_shape=(4, 4, 3), extractor=None)
    assert (shown_images(reader, pictures, 3, "none").rows == GREY).all()


def test_checked_images_are_not_read_again(tmp_path):
    """A block of them is one read from the file, by whoever shows it to the model."""
    reads = []

    class Read(FeatureFile):
        def __getitem__(self, index):
            reads.append(index)
            return super().__getitem__(index)

    names = list(map(str, range(100)))
    write_features(tmp_path / "a.npy", lambda _: [MANY], names, Extractor("vgg19", "fc7", "0"))
    checked = shown_images(READER, Read(**vars(open_features(tmp_path / "a.npy"))), 100)
    reads.clear()
    block = image_rows(checked[20:40], 20, READER.image_shape)
    np.testing.assert_array_equal(block, MANY[20:40])
    assert reads == [slice(20, 40)]
    np.testing.assert_array_equal(checked[7], MANY[7])
    refused(checked[:5], 6, READER.image_shape, "6 .* 5 ")
    refused(checked[:5], 5, None, "text only")
