"""The page to try a preset on: its files and its two calls."""

import asyncio
import base64
import io
import json
import struct
import threading
import zlib

import httpx
import numpy as np
import pytest
from asking import running
from message_of import message_of
from PIL import Image
from small_preset import small_preset
from tiny_models import BEAM, CHARACTERS, SIZES, TEXT, bridge, picture_file, pictures, pope, small100

from kzoo.decoding import SearchSettings
from kzoo.hub import Preset
from kzoo.images import image_rows
from kzoo.models import MultilingualTranslator, RecurrentBackbone, Translator
from kzoo.presets import image_text_tiny
from kzoo.serve import Served, inputs, page
from kzoo.serve.batching import Batcher, Busy
from kzoo.serve.inputs import decoded_images
from kzoo.serve.page import drawn_attention, fitting
from kzoo.text import CharacterTokenizer
from kzoo.text.vocabulary import SPECIAL

ENGLISH_FRENCH = {"source_language": "en", "target_language": "fr"}


def get(address: str) -> dict:
    about = httpx.get(f"{address}/page/about").json()
    del about["readiness"]  # which changes
    return about


def post(address: str, **asked) -> httpx.Response:
    return httpx.post(f"{address}/page/translate", json=asked, timeout=120)


def base64_text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def check_hypotheses(answer: dict, expected: list):
    assert [found["text"] for found in answer["hypotheses"]] == [found.text for found in expected]
    scores = [found["score"] for found in answer["hypotheses"]]
    np.testing.assert_allclose(scores, [found.score for found in expected], atol=1e-5)


def check_drawn(drawn: dict, kind: str, rows, columns, weights):
    """Three decimals of what the translator gives, with its names."""
    assert (drawn["kind"], drawn["rows"], drawn["columns"]) == (kind, rows, columns)
    np.testing.assert_allclose(drawn["weights"], weights, atol=0.00051)
    assert all(weight == round(weight, 3) for weight in np.ravel(drawn["weights"]).tolist())


def test_the_files_are_small_and_strict(served):
    _, address = served(pope)
    size = 0
    for path in ("/", "/page/page.css", "/page/attention.js", "/page/page.js"):
        answer = httpx.get(address + path)
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
        unsafe = ("innerHTML", "outerHTML", "insertAdjacentHTML", "eval(")
        assert not any(word in answer.text for word in unsafe)
        size += len(answer.content)
    assert size < 45_000


def test_a_preset_of_one_direction(served):
    translator, address = served(pope)
    about = get(address)
    assert about == {
        "name": "tiny_model",
        "models": ["tiny_model"],
        "version": 1,
        "languages": None,
        "source": "en",
        "target": "de",
        "image": None,
        "attention": ["encoder_decoder"],
        "limits": {"characters": 200, "body": 20_000, "n": 3, "tokens": 15},
        "score": "log P / length^1",
        "card": {},
        "examples": [],
    }
    answer = post(address, text=TEXT, n=3).json()
    check_hypotheses(answer, translator.n_best([TEXT], 3, beam_size=BEAM)[0])
    source, target, weights = translator.attention(TEXT, answer["hypotheses"][0]["text"])
    (drawn,) = answer["attention"]
    check_drawn(drawn, "encoder_decoder", target, source, weights)
    assert answer["low_score"] is None  # the preset has none
    assert answer["sentences"] == [{"text": TEXT, "score": answer["hypotheses"][0]["score"]}]
    assert answer["unknown_characters"] == ""
    assert "characters" not in answer


def test_a_vocabulary_that_names_languages(served):
    translator, address = served(small100)
    assert get(address)["languages"] == translator.target_languages
    answer = post(address, text=TEXT, source_language="en", target_language="de", n=2).json()
    expected = translator.n_best([TEXT], 2, target_language="de", beam_size=BEAM)[0]
    check_hypotheses(answer, expected)


def test_a_bridge(served):
    translator, address = served(bridge)
    about = get(address)
    assert about["languages"] == ["en", "de", "fr"]
    assert about["attention"] == ["encoder_decoder", "bridge"]
    answer = post(address, text=TEXT, source_language="en", target_language="fr", n=2).json()
    check_hypotheses(answer, translator.n_best([TEXT], 2, **ENGLISH_FRENCH, beam_size=BEAM)[0])
    rows, target, weights = translator.attention(TEXT, answer["hypotheses"][0]["text"], **ENGLISH_FRENCH)
    words, heads = translator.bridge_attention(TEXT, "en")
    check_drawn(answer["attention"][0], "encoder_decoder", target, rows, weights)
    check_drawn(answer["attention"][1], "bridge", ["1", "2", "3"], words, heads[None, None])


class Noting(CharacterTokenizer):
    """Notes what it reads."""

    noted = []  # of the class: Keras would track an attribute of the object

    def tokenize(self, inputs, drawn=""):
        self.noted.append(inputs)
        return super().tokenize(inputs, drawn)


def test_a_text_is_read_once():
    """For its translation and for each attention."""
    tokenizers = {**bridge().tokenizers, "en": Noting(CHARACTERS.get_vocabulary()[len(SPECIAL) :])}
    with running(MultilingualTranslator(bridge().backbone, tokenizers)) as address:
        answer = post(address, text=TEXT, **ENGLISH_FRENCH).json()
    assert all("weights" in drawn for drawn in answer["attention"]) and len(answer["attention"]) == 2
    assert Noting.noted == [[TEXT]]


def test_pictures(served):
    translator, address = served(pictures)
    about = get(address)
    assert about["image"] == "picture"
    assert about["attention"] == ["encoder_decoder", "image"]
    answer = post(address, text=TEXT, image=base64_text(picture_file())).json()
    image = np.asarray(Image.open(io.BytesIO(picture_file())))
    check_hypotheses(answer, translator.n_best([TEXT], 1, beam_size=BEAM, images=image[None])[0])
    words, weights = translator.image_attention(TEXT, image)
    drawn = answer["attention"][1]
    check_drawn(drawn, "image", [str(region) for region in range(1, 7)], words, weights)
    assert drawn["grid"] == [2, 3]


def test_a_picture_is_decoded_once_and_one_at_a_time(served, monkeypatch):
    """In the thread for checks; a picture can take hundreds of megabytes, and a third of a second."""
    threads, read = [], inputs.read_picture

    def noted(*arguments):
        threads.append(threading.current_thread().name)
        return read(*arguments)

    monkeypatch.setattr(inputs, "read_picture", noted)
    _, address = served(pictures)
    assert post(address, text=TEXT, image=base64_text(picture_file())).status_code == 200
    assert threads == ["checks_0"]


ROW = {"split": "test", "sentences": 9, "bleu": 30.1, "chrf2": 50.2}


@pytest.fixture
def preset(tmp_path):
    """A preset's small files, with a card."""
    code = "```sh\n## Data and terms\n\n2\n```"
    card = f"# name\nA `small`\nmodel.\n\n{code}\n\n## Data and terms\n\nFree.\n\n| a |\n"
    (tmp_path / "README.md").write_text(card)
    scores = {"corpus": "scenes", "licence": "free", "scores": [ROW]}
    metadata = {"parameter_count": 1_500_000, "low_scores": {"en-de": -0.5}}
    return small_preset(tmp_path, metadata, search={"beam_size": BEAM}, scores=scores)


def test_a_card_is_said_in_paragraphs(preset):
    about = page.card(preset)
    assert about.pop("size").startswith("1.5 M parameters")
    assert about == {
        "licence": "free",
        "scores": [["scenes test", 9, 30.1, 50.2]],
        "introduction": ["A small model."],
        "terms": ["Free."],
    }
    assert page.card(None) == {}
    (preset.folder / "README.md").write_bytes(b"# name\nna\xefve")
    assert page.card(Preset(preset.folder))["introduction"] == ["na\ufffdve"]


@pytest.mark.parametrize(
    ("edited", "shown"),
    [
        ({"scores": [{"bleu": 30.1}, None]}, []),
        ({"scores": [{**ROW, "bleu": "30.1"}, {**ROW, "chrf2": None}]}, []),
        ({"scores": [{**ROW, "source": "en"}], "corpus": "a"}, [["a test", 9, 30.1, 50.2]]),
        ({"scores": None}, []),
    ],
)
def test_scores_edited_by_hand_do_not_keep_the_page_from_being_made(edited, shown, preset):
    (preset.folder / "scores.json").write_text(json.dumps(edited))
    assert page.card(preset)["scores"] == shown


def test_a_server_says_its_preset_s_card_and_threshold(preset):
    with running(pope(), preset=preset) as address:
        assert get(address)["card"]["introduction"] == ["A small model."]
        assert httpx.get(f"{address}/page/card").text == (preset.folder / "README.md").read_text()
        assert post(address, text=TEXT).json()["low_score"] == -0.5


def test_low_scores_are_of_the_same_search(preset):
    def low_score(preset, **search):
        translator = pope()
        translator.search = SearchSettings(BEAM).changed(**search)
        return Served(translator, "m", preset=preset).low_score(("en", "de"))

    assert low_score(preset) == -0.5
    assert low_score(None) is None
    for other in ({"length_penalty": 0.6}, {"beam_size": 1}, {"max_length": 9}):
        assert low_score(preset, **other) is None
    assert low_score(small_preset(preset.folder, {"low_scores": None}, search={"beam_size": BEAM})) is None


@pytest.mark.parametrize("low", [["en-de"], "low", {"en-de": "-0.5"}])
def test_low_scores_that_are_no_numbers_are_refused_before_a_request(low, preset):
    search = {"beam_size": BEAM}
    preset = small_preset(preset.folder, {"low_scores": low, "parameter_count": "many"}, search=search)
    translator = pope()
    translator.search = SearchSettings(BEAM)
    assert "low_scores" in message_of(Served, translator, "m", preset=preset)
    assert "parameters" not in preset.size


def test_pictures_to_try_tell_two_senses_of_the_same_words(preset):
    translator = image_text_tiny(CHARACTERS, image_shape=(32, 48, 3), **{**SIZES, "num_layers": 1})
    translator.source_language, translator.target_language = "en", "de"
    tried = page.examples(preset, translator)
    assert [one["text"] for one in tried[::2]] == [one["text"] for one in tried[1::2]]
    shown = [np.asarray(Image.open(io.BytesIO(base64.b64decode(one["image"])))) for one in tried]
    assert len(shown) == 4 and (shown[0] != shown[1]).any()
    assert {one["language"] for one in page.examples(preset, pope())} == {"en"}


def test_characters_come_with_the_bitmaps_that_the_encoder_reads():
    glyphs = np.random.default_rng(1).integers(0, 2, (len(CHARACTERS.get_vocabulary()), 22, 22)).astype(bool)
    sizes = {"embedding_dim": 8, "bidirectional": (8,), "unidirectional": (), "decoder_units": (8,)}
    options = {"source_embedding": "glyph", "glyph_options": {"architecture": "fc_1"}}
    backbone = RecurrentBackbone(len(glyphs), len(glyphs), **sizes, **options, max_length=16)
    backbone.source_embedding.glyphs.assign(glyphs)
    translator = Translator(backbone, CHARACTERS)
    np.testing.assert_array_equal(translator.glyphs, glyphs)
    readings = translator.sentences_read(["dx"], translator.direction())
    (name, pixels), (unknown, _) = page.seen_characters(translator, glyphs, readings)
    assert (name, unknown) == ("d", "<unk>")
    (token,) = CHARACTERS(["d"])[0]
    np.testing.assert_array_equal(np.frombuffer(pixels, "uint8").reshape(22, 22), glyphs[token])
    assert pope().glyphs is None


def test_features():
    values = np.arange(5, dtype="float32")
    np.testing.assert_array_equal(decoded_images([saved(values)], (5,)), [values])
    translator = image_text_tiny(CHARACTERS, image_shape=(5,), **{**SIZES, "num_layers": 1})
    (reading,) = translator.sentences_read([TEXT], translator.direction())
    _, image = drawn_attention(translator, reading.tokens, "dog", (None, None), values[None])
    words, weights = translator.image_attention(TEXT, values)
    check_drawn(image, "image", ["1"], words, weights)
    assert "grid" not in image


def saved(array) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npy(header: str) -> bytes:
    """Return an .npy file of a header and nothing else."""
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()


def huge_png(width=20_000, height=20_000) -> bytes:
    """Return the beginning of a PNG file of this size."""
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunk = struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    return b"\x89PNG\r\n\x1a\n" + chunk + b"\0\0\0\0IDAT"


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"PK", ".npy"),
        (saved(np.arange(5, dtype="float32"))[:-4], ".npy"),
        (saved(np.zeros((10, 5))), "(10, 5)"),
        (saved(np.array(["1"] * 5)), "image 1"),
        (saved(np.array([True] * 5)), "bool"),
        (saved(np.array([1j] * 5)), "complex"),
        (saved(np.array([None] * 5)), ".npy"),
        (npy("{'descr': '<f4', 'shape': (4"), ".npy"),
        (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (10**13,)}"), ".npy"),
        (npy("{[]: 1}"), ".npy"),
        (npy("-" * 5000 + "1"), ".npy"),
    ],
)
def test_features_that_cannot_be_read_are_refused(content, name):
    assert name in message_of(lambda: image_rows(decoded_images([content], (5,)), 1, (5,)))


@pytest.mark.parametrize(
    ("model", "asked", "name"),
    [
        (pope, b"\xff{", ""),
        (pope, {}, "text"),
        (pope, {"text": 5}, "text"),
        (pope, {"text": "a" * 300}, "200"),
        (pope, {"text": TEXT, "n": 4}, "1 to 3"),
        (pope, {"text": TEXT, "beam": 3}, "`beam`"),
        (pope, {"text": TEXT, "image": base64_text(picture_file())}, "image"),
        (pictures, {"text": TEXT}, "image"),
        (pictures, {"text": TEXT, "image": "not base64!"}, "base64"),
        (pictures, {"text": TEXT, "image": base64_text(picture_file()[:60])}, "image"),
        (pictures, {"text": TEXT, "image": base64_text(huge_png())}, "32,000"),
        (pictures, {"text": TEXT, "image": base64_text(huge_png(1, 65_501))}, "1 × 65,501"),
        (pictures, {"text": TEXT, "image": base64_text(huge_png(65_501, 1))}, "65,501 × 1"),
        (bridge, {"text": TEXT, "source_language": "en"}, "target_language"),
        (bridge, {"text": TEXT, "source_language": "en", "target_language": "xx"}, "'xx'"),
    ],
)
def test_what_is_wrong_is_said(model, asked, name, served):
    _, address = served(model)
    content = asked if isinstance(asked, bytes) else json.dumps(asked)
    answer = httpx.post(f"{address}/page/translate", content=content, timeout=120)
    assert answer.status_code == 400
    assert name in answer.json()["error"]
    assert "\n" not in answer.json()["error"]


def test_pages_of_other_sites_are_refused(served):
    """As a browser sends it for one, without asking first; the page's own requests and programs' pass."""
    _, address = served(pope)
    predict, body = f"{address}/v1/models/tiny_model:predict", json.dumps({"instances": [TEXT]})
    for site, status in (
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "same-site"}, 200),  # another server of this machine
        ({}, 200),
    ):
        headers = {"Content-Type": "text/plain", **site}
        assert httpx.post(predict, content=body, headers=headers, timeout=120).status_code == status
    assert httpx.get(address, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200  # a link


def test_several_sentences_are_split_unless_told_otherwise(served):
    translator, address = served(pope)
    text = f"{TEXT} man."
    for options in ({"split_sentences": True}, {"split_sentences": False}):
        asked = options if not options["split_sentences"] else {}
        answer = post(address, text=text, **asked).json()
        check_hypotheses(answer, translator.n_best([text], 1, beam_size=BEAM, **options)[0])
        assert ("weights" in answer["attention"][0]) == (not options["split_sentences"])
        sentences = [TEXT, "man."] if options["split_sentences"] else [text]
        assert [sentence["text"] for sentence in answer["sentences"]] == sentences
        scores = [best[0].score for best in translator.n_best(sentences, 1, beam_size=BEAM)]
        assert [sentence["score"] for sentence in answer["sentences"]] == pytest.approx(scores, abs=1e-5)


def test_an_empty_sentence_has_nothing_to_draw(served):
    _, address = served(pope)
    answer = post(address, text="").json()
    assert answer["hypotheses"] == [{"text": "", "score": 0.0}]
    (drawn,) = answer["attention"]
    assert set(drawn) == {"kind", "note", "preparing"}


@pytest.fixture
def batches_run(monkeypatch):
    """Function that sets what runs instead of a batch."""
    return lambda run: monkeypatch.setattr(Batcher, "run", run)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Busy("the queue is full"), "the queue is full"),
        (ValueError("a bug"), "log"),
    ],
)
def test_a_translation_is_answered_whatever_keeps_its_attention_from_being_drawn(
    error, reason, served, batches_run
):
    async def failing(*_, **__):
        raise error

    batches_run(failing)
    translator, address = served(bridge)
    answer = post(address, text=TEXT, source_language="en", target_language="fr").json()
    check_hypotheses(answer, translator.n_best([TEXT], 1, **ENGLISH_FRENCH, beam_size=BEAM)[0])
    assert [drawn["kind"] for drawn in answer["attention"]] == ["encoder_decoder", "bridge"]
    for drawn in answer["attention"]:
        assert reason in drawn["note"]


def test_a_translation_does_not_wait_long_for_its_attention(served, batches_run, monkeypatch):
    async def behind_a_compilation(*_, **__):
        await asyncio.sleep(60)

    batches_run(behind_a_compilation)
    monkeypatch.setattr(page, "ATTENTION_SECONDS", 0.01)
    answer = post(served(bridge)[1], text=TEXT, source_language="en", target_language="fr").json()
    assert answer["hypotheses"] and all(drawn["preparing"] for drawn in answer["attention"])


def test_what_is_too_much_to_draw_is_averaged():
    weights = np.random.default_rng(1).random((6, 8, 60, 60), "float32")
    found, note = fitting(weights)
    np.testing.assert_allclose(found, weights.mean(1, keepdims=True), atol=1e-6)
    assert "heads" in note
    found, note = fitting(weights[:2, :2])
    assert (found.shape, note) == ((2, 2, 60, 60), "")
    found, note = fitting(np.ones((30, 2, 76, 78)))
    assert found.shape == (1, 1, 76, 78)
    assert "layers" in note
