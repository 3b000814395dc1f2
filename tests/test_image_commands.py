"""Commands that take pictures or features: which picture is read with which sentence, and shown."""

import base64
import io
import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from small_preset import small_preset
from typer.testing import CliRunner

from kzoo import cli
from kzoo.data import Extractor, open_files, write_features
from kzoo.decoding import TextTranslator
from kzoo.errors import UserError
from kzoo.evaluation.plots import plot_image_attention, plot_regions
from kzoo.images import image_rows
from kzoo.models import Hypothesis
from kzoo.presets import image_text_tiny, pope_tiny
from kzoo.scenes import scenes
from kzoo.scenes.picture import draw
from kzoo.text import CharacterTokenizer

VGG = Extractor("vgg19", "fc2", "random", seed=3)
NAMES = ("low.png", "high.png", "wide.png")
SHADES = (10, 200, 90)  # what a picture is filled with, and its features


class Teller(TextTranslator):
    """Repeats each sentence, and says the brightest number of its image where it reads one."""

    engine, runs_on_keras = "keras", True
    multilingual, source_language, target_language, extractor = False, "id", "zh", asdict(VGG)
    target_tokenizer, max_length = None, 99

    @staticmethod
    def source_tokenizer(texts):
        return [text.split() for text in texts]

    def __init__(self, image_shape=None):
        self.image_shape = image_shape

    def translate(self, texts, images=None, **options):
        rows = image_rows(images, len(texts), self.image_shape, self.extractor)
        seen = [""] * len(texts) if rows is None else [f" {row.max():.0f}" for row in rows]
        return [text + end for text, end in zip(texts, seen, strict=True)]

    def n_best(self, texts, n, images=None, **options):
        return [[Hypothesis(text, -1.0)] for text in self.translate(texts, images)]


class Seeing(Teller):
    """Knows the German sentence of every picture of Scenes' validation set."""

    source_language, target_language, image_shape, extractor = "en", "de", (64, 64, 3), None

    def __init__(self):
        self.known = {draw(scene).tobytes(): scene.sentence("de") for scene in scenes("val")}

    def translate(self, texts, images, **options):
        return [self.known.get(row.tobytes(), "") for row in images]


@pytest.fixture(autouse=True)
def presets(commands_load, monkeypatch, tmp_path):
    """A preset each for what may come with a sentence; tests add theirs."""
    monkeypatch.chdir(tmp_path)
    for name in ("text", "pictures", "features", "seeing"):
        small_preset(name)
    known = {"text": Teller(), "pictures": Teller((8, 8, 3)), "features": Teller((5,))}
    commands_load(lambda preset: known[preset.given])
    return known


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Pictures, their features `test.npy` and a sentence each with its reference, `kzoo` run among them."""
    for name, shade in zip(NAMES, SHADES, strict=True):
        Image.new("RGB", (30, 20) if name == "wide.png" else (20, 20), (shade, 0, 0)).save(tmp_path / name)
    write(tmp_path / "test.npy", (5,))
    (tmp_path / "test.id").write_text("satu\ndua\ntiga\n")
    (tmp_path / "test.zh").write_text("一\n二\n三\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path, shape, extractor=VGG):
    rows = np.stack([np.full(shape, shade, "float32") for shade in SHADES])
    return write_features(path, lambda names: [rows], NAMES, extractor)


def kzoo(*arguments):
    """Return what `kzoo …` prints; raise its errors."""
    return CliRunner().invoke(cli.app, list(map(str, arguments)), catch_exceptions=False).stdout


def refused(message, *arguments):
    with pytest.raises(UserError, match=message) as raised:
        kzoo(*arguments)
    assert "\n" not in str(raised.value)


def test_translates_with_a_picture_or_a_row_of_features_for_each_sentence(folder):
    told = kzoo("translate", "pictures", "a", "b", "--image", "high.png", "--image", "low.png")
    assert told == "a 200\nb 10\n"
    assert kzoo("translate", "features", "--input", "test.id", "--images", "test.npy") == (
        "satu 10\ndua 200\ntiga 90\n"
    )
    assert kzoo("translate", "text", "a") == "a\n"


@pytest.mark.parametrize(
    ("preset", "options", "message"),
    [
        (
            "features",
            "--image low.png",
            r"\(5,\).*kzoo feat",
        ),
        ("features", "", r"image \(5,\) .*--images "),
        ("pictures", "--images test.npy", r"test\.npy: 1 .* 3 "),
        ("pictures", "", r"image \(8, 8, 3\) .*--image PICTURE"),
        ("text", "--image low.png", " only"),
        ("text", "--images test.npy", " only"),
        ("pictures", "--image low.png --images test.npy", "--image and --images"),
        ("pictures", "--image none.png", r"none\.png"),
        ("features", "--images test.npy", r"test\.npy: 1 .* 3 "),
        ("features", "--images none.npy", r"none\.npy"),
        ("features", "--images other.npy", r"other\.npy: .*resnet50"),
    ],
)
def test_the_wrong_images_of_a_translation_are_named(preset, options, message, folder):
    write(folder / "other.npy", (5,), replace(VGG, model="resnet50"))
    refused(message, "translate", preset, "a", *options.split())


def test_evaluates_with_the_features_of_a_folder(folder):
    """Perfect only where each sentence gets the row of its own picture, in the order of `test.txt`."""
    (folder / "test.txt").write_text("wide.png\nlow.png\nlow.png\n")
    (folder / "test.zh").write_text("satu 90\ndua 10\ntiga 10\n")
    table = kzoo("evaluate", "features", "--files", "test.id", "test.zh", "--images", ".")
    assert "| 100.0 | 0.0 |" in table  # chrF2, TER: sentences of two words have no BLEU
    refused("images", "evaluate", "features", "--files", "test.id", "test.zh")


def shown(page):
    """Return a page's pictures."""
    return [
        np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))
        for data in re.findall(r'src="data:image/\w+;base64,([^"]*)"', page)
    ]


REPORT = ("report", "page.html", "text", "features", "--files", "test.id", "test.zh", "--images", ".")


def test_reports_own_files_with_the_pictures_of_their_features(folder):
    (folder / "test.txt").write_text("wide.png\nlow.png\nhigh.png\n")
    kzoo(*REPORT, "--pictures", folder)
    page = (folder / "page.html").read_text("utf-8")
    assert "text and features on test.id" in page
    told = re.findall(r'<dt>features · [\d.]+</dt><dd dir="auto" lang="zh">(\w+) <mark>(\d+)', page)
    assert sorted(told) == [("dua", "10"), ("satu", "90"), ("tiga", "200")]
    pictures = shown(page)
    assert [str(picture[0, 0, 0]) for picture in pictures] == [shade for _, shade in told]
    assert {picture.shape for picture in pictures} == {(20, 20, 3), (20, 30, 3)}  # of their own proportions


def test_reports_without_a_folder_of_pictures_show_none(folder):
    printed = kzoo(*REPORT, "-n", 1)
    page = (folder / "page.html").read_text("utf-8")
    assert page.count("<article") == 1
    assert "tok:zh" in page
    assert re.findall(r"<tr><td>(\w+)<td>([\d.]+)", page) == re.findall(
        r"\| (text|features) \| ([\d.]+)", printed
    )
    assert not shown(page)


def test_a_report_on_a_run_s_own_features_shows_no_pictures(folder, monkeypatch):
    own = open_files(test=[Path("test.id"), Path("test.zh")], languages=("id", "zh")).with_images(Path("."))
    monkeypatch.setattr("kzoo.cli.text_to_score.own_corpus", lambda *_: own)
    kzoo("report", "page.html", "text", "features")
    page = (folder / "page.html").read_text("utf-8")
    assert page.count("<article") == 3
    assert not shown(page)


def test_reports_scenes_with_their_own_pictures(presets, tmp_path):
    presets["text"].source_language = presets["pictures"].source_language = "en"
    presets["pictures"].image_shape = (64, 64, 3)
    kzoo(
        "report", tmp_path / "page.html", "text", "pictures", "--corpus", "scenes", "--split", "val", "-n", 2
    )
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "text and pictures on scenes, val" in page
    assert [picture.shape for picture in shown(page)] == [(64, 64, 3)] * 2


def test_a_report_compares_presets_whose_codes_differ(presets, folder):
    class Coded(Teller):
        source_language, target_language = "ind", "zho_Hans"

    small_preset("coded")
    presets["coded"] = Coded()
    for one, other in (("text", "coded"), ("coded", "text")):
        kzoo("report", "page.html", one, other, "--files", "test.id", "test.zh")
        assert "satu" in (folder / "page.html").read_text("utf-8")
    Coded.target_language = "jpn"
    refused("zh", "report", "page.html", "text", "coded", "--files", "test.id", "test.zh")


def test_a_model_of_a_group_of_languages_is_scored_on_one_of_them(presets, folder):
    given = []

    class Romance(Teller):
        source_language, target_language = "roa", "deu"

        def translate(self, texts, direction, **options):
            given.append(direction)
            return super().translate(texts, **options)

    small_preset("romance")
    presets["romance"] = Romance()
    kzoo(
        *("evaluate", "romance", "--corpus", "scenes", "--split", "val", "--from", "fra", "--to", "de"),
        *("-o", "s.json"),
    )
    scores = json.loads((folder / "s.json").read_text())
    assert (scores["source"], scores["target"]) == ("fra", "deu")
    assert given == [("roa", "deu")]  # the model has its own codes, and does not look them up again


def test_the_wrong_pictures_of_a_report_are_named(folder):
    refused("--files and --split", *REPORT, "--split", "val")
    refused("--pictures .*--images", *REPORT[:-2], "--pictures", ".")
    refused("images", *REPORT[:-2])
    (folder / "high.png").unlink()
    refused(r"high\.png: .*test\.npy", *REPORT, "--pictures", ".")
    (folder / "test.id").write_text("satu\ndua\n")
    (folder / "test.zh").write_text("一\n二\n")
    refused(r"test\.npy: 2 .* 3 ", *REPORT, "--pictures", ".")
    assert not (folder / "page.html").exists()


SIZES = {"num_layers": 1, "width": 16, "num_heads": 2, "feedforward_dim": 16, "max_length": 16}


def untrained(image_shape):
    return image_text_tiny(CharacterTokenizer(list("ab")), image_shape=image_shape, **SIZES)


def pixels(path):
    return np.asarray(Image.open(path).convert("RGB"))


def test_draws_what_a_picture_attends_to(presets, folder):
    model = presets["pictures"] = untrained((16, 16, 3))
    words, scores = model.image_attention("ab", folder / "wide.png")
    plot_image_attention(words, scores, "strip.png", pixels("wide.png"))
    plot_regions(scores, pixels("wide.png"), words, "regions.png", (16, 16, 3))
    for options, expected in (([], "strip.png"), (["--regions"], "regions.png")):
        kzoo("plot", "image", "drawn.png", "pictures", "ab", "wide.png", *options)
        np.testing.assert_array_equal(pixels("drawn.png"), pixels(expected))


def test_draws_what_the_features_of_a_picture_attend_to(presets, folder):
    """The row is found by the picture's name, wherever it lies; the picture is shown, regions on it."""
    model = presets["features"] = untrained((49, 6))
    model.extractor = asdict(VGG)
    features = write(folder / "regions.npy", (49, 6))
    (folder / "elsewhere").mkdir()
    (folder / "wide.png").rename(folder / "elsewhere" / "wide.png")
    words, scores = model.image_attention("ab", features[2])
    plot_image_attention(words, scores, "strip.png", pixels("elsewhere/wide.png"))
    plot_regions(scores, pixels("elsewhere/wide.png"), words, "regions.png", (49, 6))
    given = (
        "plot",
        "image",
        "drawn.png",
        "features",
        "ab",
        "elsewhere/wide.png",
        "--features",
        "regions.npy",
    )
    for options, expected in (([], "strip.png"), (["--regions"], "regions.png")):
        kzoo(*given, *options)
        np.testing.assert_array_equal(pixels("drawn.png"), pixels(expected))


def test_a_picture_in_a_folder_of_the_features_is_found_by_the_end_of_its_path(tmp_path):
    from kzoo.cli.pictures import name_in

    names = ("a/x.png", "b/x.png", "c/y.png", "z.png")
    write_features(tmp_path / "f.npy", lambda wanted: iter([np.ones((len(wanted), 2))]), names, VGG)
    for picture, expected in (
        ("photographs/b/x.png", "b/x.png"),
        ("elsewhere/y.png", "c/y.png"),
        ("a/z.png", "z.png"),
        ("elsewhere/x.png", "x.png"),  # of two, which the message then says
    ):
        assert name_in(tmp_path / "f.npy", Path(picture)) == expected


def test_the_wrong_picture_of_a_plot_is_named(presets, folder):
    presets["features"], presets["pictures"] = untrained((5,)), untrained((16, 16, 3))
    presets["text"] = pope_tiny(CharacterTokenizer(list("ab")), **SIZES)
    presets["features"].extractor = asdict(VGG)
    write(folder / "other.npy", (5,), replace(VGG, model="resnet50"))
    for preset, picture, options, message in (
        ("text", "low.png", "", "reads text only: give it no images"),
        ("pictures", "low.png", "--features test.npy", r"the shape \(5,\), the model reads \(16, 16, 3\)"),
        ("features", "low.png", "", r"\(5,\).*kzoo feat"),
        ("features", "none.png", "--features test.npy", "no features of the picture 'none.png'"),
        ("features", "low.png", "--features test.npy --regions", "there are no regions to draw"),
        ("features", "low.png", "--features other.npy", r"other\.npy: .*resnet50"),
    ):
        refused(message, "plot", "image", "x.png", preset, "ab", picture, *options.split())
    assert not (folder / "x.png").exists()


def test_large_photographs_are_shown_smaller_turned_as_their_exif_says(folder):
    from kzoo.cli.pictures import shown_picture

    exif = Image.Exif()
    exif[0x0112] = 6  # lies on its side
    Image.new("RGB", (1200, 300), (9, 0, 0)).save(folder / "photograph.png", exif=exif)
    assert shown_picture(folder / "photograph.png").shape == (400, 100, 3)
    (folder / "broken.png").write_bytes((folder / "photograph.png").read_bytes()[:40])
    with pytest.raises(UserError, match=r"broken\.png"):
        shown_picture(folder / "broken.png")


def test_scores_scenes_with_their_own_pictures_others_and_none(presets, folder):
    """A model that says which picture it sees has the reference of the right one alone."""
    presets["seeing"] = Seeing()
    found = {}
    for shown in ("right", "shuffled", "none"):
        printed = kzoo(
            "evaluate", "seeing", "--corpus", "scenes", "--split", "val", "--shown", shown, "-o", "s.json"
        )
        assert ("pictures" in printed) == (shown != "right")
        found[shown] = json.loads((folder / "s.json").read_text())
        assert found[shown]["shown"] == shown
    words = sum(len(scene.ambiguous("en", "de")) for scene in scenes("val"))
    counted = {shown: scores["ambiguous_words"]["val"] for shown, scores in found.items()}
    assert counted["right"] == {"words": words, "right": words, "other": 0}
    assert counted["shuffled"]["right"] < 0.2 * words
    assert counted["none"] == {"words": words, "right": 0, "other": 0}
    refused("--shown", "evaluate", "text", "--shown", "none", "--corpus", "scenes")
