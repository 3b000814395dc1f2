"""Transformers that read a picture with every sentence: wiring, translation, training, bad input."""

import json
from dataclasses import asdict, replace

import keras
import numpy as np
import pytest
from message_of import message_of
from PIL import Image

from kzoo.data import Batches, Extractor, open_files, write_features
from kzoo.errors import UserError
from kzoo.evaluation.scores import evaluate
from kzoo.images import image_rows, read_picture
from kzoo.models import TransformerBackbone, Translator
from kzoo.presets import image_text_tiny, load, text_only_tiny
from kzoo.text import CharacterTokenizer

SIZES = {"num_layers": 2, "width": 16, "num_heads": 2, "feedforward_dim": 32, "norm": "pre"}
SHAPES = {"features": (10,), "regions": (5, 10), "picture": (16, 16, 3)}
WORDS = {
    "source": np.array([[4, 5, 3, 0], [6, 3, 0, 0]], "int32"),
    "target": np.array([[2, 5, 6], [2, 7, 0]], "int32"),
}


def images(shape, seed=0, count=2):
    return np.random.default_rng(seed).integers(0, 255, (count, *shape)).astype("float32")


@pytest.mark.parametrize("kind", SHAPES)
def test_without_its_output_the_attention_leaves_the_text_model(kind):
    keras.utils.set_random_seed(1)
    plain, shown = (
        TransformerBackbone(20, **SIZES),
        TransformerBackbone(20, image_shape=SHAPES[kind], **SIZES),
    )
    theirs = {weight.path: weight for weight in plain.weights}
    for weight in shown.weights:
        if weight.path in theirs:
            weight.assign(theirs.pop(weight.path))
    assert not theirs
    image = images(SHAPES[kind])
    expected = keras.ops.convert_to_numpy(plain(WORDS))
    different = keras.ops.convert_to_numpy(shown({**WORDS, "image": image}))
    for layer in shown.encoder_layers:
        layer.image_attention.output_dense.kernel.assign(np.zeros((16, 16), "float32"))
    same = keras.ops.convert_to_numpy(shown({**WORDS, "image": image}))
    np.testing.assert_array_equal(same, expected)
    assert np.abs(different - expected).max() > 1e-3


def test_saves_its_image_shape(tmp_path):
    model = TransformerBackbone(20, image_shape=SHAPES["picture"], **SIZES)
    inputs = {**WORDS, "image": images(SHAPES["picture"])}
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(
        keras.ops.convert_to_numpy(loaded(inputs)), keras.ops.convert_to_numpy(model(inputs)), atol=1e-6
    )


@pytest.fixture(scope="module")
def translator():
    """A model that learned to write the colour of the picture, which the text does not tell."""
    keras.utils.set_random_seed(1)
    tokenizer = CharacterTokenizer(list("abrg"))
    translator = image_text_tiny(
        tokenizer,
        tokenizer,
        image_shape=(16, 16, 3),
        **{**SIZES, "num_layers": 1, "width": 32},
        dropout=0.0,
        max_length=16,
    )
    translator.compile(
        keras.optimizers.Adam(5e-3), translator.loss, jit_compile=keras.backend.backend() == "jax"
    )
    colours = np.zeros((64, 16, 16, 3), "uint8")
    red = np.arange(64) % 2 == 0
    colours[red, ..., 0] = colours[~red, ..., 1] = 255
    text = ["ab", "ba"] * 16 + ["ba", "ab"] * 16
    words = tokenizer(["r" if is_red else "g" for is_red in red])
    batches = Batches(tokenizer(text), words, tokens=128, num_shapes=1, images=colours)
    translator.fit(batches, epochs=20, shuffle=False, verbose=0)
    return translator, text, colours, red


def test_translates_what_the_picture_shows(translator):
    model, text, colours, red = translator
    expected = ["r" if is_red else "g" for is_red in red]
    assert model.translate(text, beam_size=2, images=colours) == expected
    assert model.translate(text, beam_size=2, images=colours[::-1]) == expected[::-1]


def test_each_sentence_is_translated_with_its_own_picture(translator):
    """Though longer sentences are searched first."""
    model, _, colours, _ = translator
    assert model.translate(["ab", "ba", "aba", "ab", "bab", "ba"], images=colours[:6]) == list("rgrgrg")


def test_reads_image_files(translator, tmp_path):
    model, text, colours, red = translator
    paths = [tmp_path / f"{i}.png" for i in range(4)]
    for path, colour in zip(paths, colours, strict=False):
        Image.fromarray(colour).resize((32, 32)).save(path)
    assert model.translate(text[:4], images=paths) == ["r", "g", "r", "g"]
    paths[2].write_bytes(paths[2].read_bytes()[:20])
    with pytest.raises(UserError, match=r"2\.png"):
        model.translate(text[:4], images=paths)
    with pytest.raises(UserError, match=r"9\.png"):
        model.translate(text[:1], images=[tmp_path / "9.png"])


def test_pictures_are_turned_and_coloured(tmp_path):
    upright = np.zeros((4, 8), "uint8")
    upright[:, 4:] = 200
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    Image.fromarray(upright).save(tmp_path / "turned.png", exif=exif)
    picture = read_picture(tmp_path / "turned.png", (4, 8))
    np.testing.assert_array_equal(picture, np.repeat(upright[::-1, ::-1, None], 3, axis=2))


def test_attention_of_the_image_is_a_distribution_over_the_words(translator):
    model, _, colours, _ = translator
    words, scores = model.image_attention("ab", colours[0])
    assert words == ["a", "b", "</s>"]
    assert scores.shape == (1, 2, 1, 3)  # one layer, two heads, one region of 16×16 pixels
    np.testing.assert_allclose(scores.sum(axis=-1), 1, atol=1e-5)
    np.testing.assert_array_equal(model.image_attention("ab", colours[0].tolist())[1], scores)
    with pytest.raises(UserError, match="''"):
        model.image_attention("", colours[0])


def test_sixteen_bits_are_scaled(tmp_path):
    grey = np.linspace(0, 65535, 16).astype("uint16").reshape(4, 4)
    Image.fromarray(grey).save(tmp_path / "grey.png")
    expected = np.repeat((grey // 256).astype("uint8")[..., None], 3, axis=2)
    np.testing.assert_allclose(read_picture(tmp_path / "grey.png", (4, 4)), expected, atol=1)


def test_a_loaded_image_preset_has_its_recipe(translator, tmp_path):
    model, text, colours, _ = translator
    model.save_to_preset(tmp_path / "preset")
    loaded = load(tmp_path / "preset")
    assert loaded.image_shape == (16, 16, 3)
    assert loaded.optimizer.beta_2 == 0.997
    assert loaded.translate(text[:2], images=colours[:2]) == ["r", "g"]


def test_batches_carry_their_images():
    pictures = images((3,), count=5)
    source = [[4] * (i + 1) for i in range(5)]
    batches = Batches(source, source, tokens=24, num_shapes=2, images=pictures)
    for inputs, _, weights in (batches[i] for i in range(len(batches))):
        for row, image, weight in zip(inputs["source"], inputs["image"], weights, strict=True):
            words = int((row == 4).sum())
            np.testing.assert_array_equal(image, pictures[words - 1] if weight.any() else np.zeros(3))


def test_bad_images_are_named(translator):
    model, text, colours, _ = translator
    text_only = text_only_tiny(source_vocabulary_size=10).image_shape
    for call, arguments, settings, name in (
        (model.translate, [text[:2]], {}, "an image"),
        (model.translate, [text[:2]], {"images": colours[:3]}, "2 sentences but 3 images"),
        (model.translate, [text[:2]], {"images": colours[:2, :4, :4]}, "(4, 4, 3)"),
        (Batches, [[[4]] * 4, [[4]] * 4], {"images": colours[:5]}, "5 images"),
        (image_rows, [["a.png"], 1, (4096,)], {}, "picture features"),
        (image_rows, [colours, 64, text_only], {}, "text only"),
    ):
        assert name in message_of(call, *arguments, **settings)


VGG = Extractor("vgg19", "fc2", "random", seed=3)


def feature_file(path, extractor=VGG, shape=(3, 10)):
    """A file of made-up features."""
    rows = np.random.default_rng(0).normal(size=shape).astype("float32")
    return write_features(path, lambda names: [rows], [f"{i}.jpg" for i in range(len(rows))], extractor)


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """A model of features of VGG, loaded from its preset."""
    tokenizer = CharacterTokenizer(list("abrg"))
    model = image_text_tiny(
        tokenizer, image_shape=(10,), **{**SIZES, "num_layers": 1, "width": 8}, max_length=16
    )
    model.extractor = asdict(VGG)
    folder = tmp_path_factory.mktemp("reader") / "preset"
    model.save_to_preset(folder)
    return load(folder)


def test_a_preset_remembers_what_its_features_come_from(reader, translator, tmp_path):
    assert reader.extractor == asdict(VGG)
    settings = reader.get_config()
    assert settings["extractor"] == asdict(VGG)
    assert Translator.from_config(settings).extractor == asdict(VGG)
    translator[0].save_to_preset(tmp_path / "preset")  # of pictures, as presets were before
    assert "extractor" not in json.loads((tmp_path / "preset" / "translator.json").read_text())
    assert load(tmp_path / "preset").extractor is None


def test_features_of_another_extractor_count_or_width_are_refused(reader, tmp_path):
    right = feature_file(tmp_path / "right.npy")
    mended = feature_file(tmp_path / "mended.npy", replace(VGG, corrupt="mean"))
    assert reader.translate(["ab", "ba", "a"], images=right) == reader.translate(
        ["ab", "ba", "a"], images=mended
    )
    other = feature_file(tmp_path / "other.npy", replace(VGG, model="resnet50", layer="avg_pool"))
    wide = feature_file(tmp_path / "wide.npy", shape=(3, 12))
    regions = feature_file(tmp_path / "regions.npy", shape=(3, 4, 10))
    both = r"resnet50 avg_pool \(weights random.*\), the model reads those of vgg19 fc2 \(weights random"
    for images, texts, message in (
        (other, ["ab", "ba", "a"], rf"other\.npy: these are features of {both}"),
        (right, ["ab", "ba"], r"right\.npy: 2 sentences but 3 images"),
        (wide, ["ab", "ba", "a"], r"wide\.npy: the images have the shape \(12,\), the model reads \(10,\)"),
        (regions, ["ab", "ba", "a"], r"regions\.npy: the images have the shape \(4, 10\)"),
    ):
        with pytest.raises(UserError, match=message) as error:
            reader.translate(texts, images=images)
        assert "\n" not in str(error.value)


def test_evaluation_refuses_features_of_another_extractor(reader, tmp_path):
    for language in ("en", "de"):
        (tmp_path / f"test.{language}").write_text("ab\nba\na\n")
    files = [str(tmp_path / f"test.{language}") for language in ("en", "de")]
    feature_file(tmp_path / "test.npy", replace(VGG, seed=4))
    corpus = open_files(test=files, languages=("en", "de")).with_images(tmp_path)
    with pytest.raises(UserError, match=r"test\.npy: .* 4\).* 3\)"):
        evaluate(reader, corpus, ["test"], "en", "de")
