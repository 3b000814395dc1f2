"""The page to try a preset on: its two calls, and the page itself in headless Chromium."""

import base64
import contextlib
import io
import re
import shutil
import struct
import threading
import zlib

import keras
import numpy as np
import pytest
from PIL import Image

import kzoo.serve
from kzoo.errors import UserError
from kzoo.models import AttentionBridgeBackbone, MultilingualTranslator
from kzoo.presets import image_text_tiny, pope_tiny
from kzoo.serve import drawn_attention as drawing
from kzoo.serve import pictures as decoding
from kzoo.serve.drawn_attention import drawn_attention, fitting
from kzoo.text import CharacterTokenizer

EXTRA = "serving is an optional extra: pip install -e '.[serve]'"
httpx = pytest.importorskip("httpx", reason=EXTRA)
for package in ("fastapi", "uvicorn", "prometheus_client"):
    pytest.importorskip(package, reason=EXTRA)
read_image = pytest.importorskip("kzoo.serve.page").read_image
Busy = pytest.importorskip("kzoo.serve.batcher").Busy

TEXT = "mandogs."
CHARACTERS = CharacterTokenizer(list("adegmnost."))
# The shortest padded length is the only one, so that a server compiles one shape.
SIZES = {"num_layers": 2, "width": 32, "num_heads": 2, "feedforward_dim": 32, "max_length": 16}
LIMITS = kzoo.serve.Limits(characters=200, sentences=4, body=20_000)


def pope():
    translator = pope_tiny(CHARACTERS, **SIZES)
    translator.source_language, translator.target_language = "en", "de"
    return translator


def bridge():
    sizes = {"embedding_dim": 16, "width": 16, "num_decoder_layers": 1, "num_heads": 3, "hidden_dim": 16}
    backbone = AttentionBridgeBackbone([14] * 3, encoder="cnn", max_length=16, **sizes)
    return MultilingualTranslator(backbone, dict.fromkeys(("en", "de", "fr"), CHARACTERS))


def pictures():
    return image_text_tiny(CHARACTERS, image_shape=(32, 48, 3), **{**SIZES, "num_layers": 1})


@contextlib.contextmanager
def running(translator):
    """Give the address of a server in a thread."""
    import uvicorn

    served = kzoo.serve.Served(translator, "tiny_model", beam_size=3, max_batch=1, limits=LIMITS)
    with kzoo.serve.reserved("127.0.0.1", 0) as bound:
        server = uvicorn.Server(uvicorn.Config(kzoo.serve.create_app(served), log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        try:
            yield "http://{}:{}".format(*bound.getsockname())
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def served():
    """Return, by the name of its function, a translator and the address that serves it, each begun once."""
    with contextlib.ExitStack() as stack:
        begun = {}

        def begin(family):
            if family not in begun:
                keras.utils.set_random_seed(1)
                translator = family()
                begun[family] = translator, stack.enter_context(running(translator))
            return begun[family]

        yield begin


def get(address: str) -> dict:
    return httpx.get(f"{address}/page/about").json()


def post(address: str, **asked) -> httpx.Response:
    return httpx.post(f"{address}/page/translate", json=asked, timeout=120)


def picture_file() -> bytes:
    file = io.BytesIO()
    colours = np.random.default_rng(1).integers(0, 255, (32, 48, 3)).astype("uint8")
    Image.fromarray(colours).save(file, "PNG")
    return file.getvalue()


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
    for path in ("/", "/page/page.css", "/page/page.js"):
        answer = httpx.get(address + path)
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
        size += len(answer.content)
    assert size < 30_000
    script = httpx.get(f"{address}/page/page.js").text
    assert not any(word in script for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "eval("))


def test_a_preset_of_one_direction(served):
    translator, address = served(pope)
    about = get(address)
    assert about == {
        "name": "tiny_model",
        "version": 1,
        "languages": None,
        "source": "en",
        "target": "de",
        "image": None,
        "attention": ["encoder_decoder"],
        "limits": {"characters": 200, "body": 20_000, "n": 3},
    }
    answer = post(address, text=TEXT, n=3).json()
    check_hypotheses(answer, translator.n_best([TEXT], 3, beam_size=3)[0])
    source, target, weights = translator.attention(TEXT, answer["hypotheses"][0]["text"])
    (drawn,) = answer["attention"]
    check_drawn(drawn, "encoder_decoder", target, source, weights)


def test_a_bridge(served):
    translator, address = served(bridge)
    about = get(address)
    assert about["languages"] == ["en", "de", "fr"]
    assert about["attention"] == ["encoder_decoder", "bridge"]
    answer = post(address, text=TEXT, source_language="en", target_language="fr", n=2).json()
    check_hypotheses(answer, translator.n_best([TEXT], "en", "fr", 2, beam_size=3)[0])
    rows, target, weights = translator.attention(TEXT, "en", "fr", answer["hypotheses"][0]["text"])
    words, heads = translator.bridge_attention(TEXT, "en")
    check_drawn(answer["attention"][0], "encoder_decoder", target, rows, weights)
    check_drawn(answer["attention"][1], "bridge", ["1", "2", "3"], words, heads[None, None])


def test_pictures(served):
    translator, address = served(pictures)
    about = get(address)
    assert about["image"] == "picture"
    assert about["attention"] == ["encoder_decoder", "image"]
    answer = post(address, text=TEXT, image=base64_text(picture_file())).json()
    image = np.asarray(Image.open(io.BytesIO(picture_file())))
    check_hypotheses(answer, translator.n_best([TEXT], 1, beam_size=3, images=image[None])[0])
    words, weights = translator.image_attention(TEXT, image)
    drawn = answer["attention"][1]
    check_drawn(drawn, "image", [str(region) for region in range(1, 7)], words, weights)
    assert drawn["grid"] == [2, 3]


def test_a_picture_is_decoded_once_and_one_at_a_time(served, monkeypatch):
    """In the thread for checks; a picture can take hundreds of megabytes, and a third of a second."""
    threads, read = [], decoding.read_picture

    def noted(*arguments):
        threads.append(threading.current_thread().name)
        return read(*arguments)

    monkeypatch.setattr(decoding, "read_picture", noted)
    _, address = served(pictures)
    assert post(address, text=TEXT, image=base64_text(picture_file())).status_code == 200
    assert threads == ["checks_0"]


def test_features():
    values = np.arange(5, dtype="float32")
    np.testing.assert_array_equal(read_image(base64_text(saved(values)), (5,)), values)
    for content, message in (
        (b"PK", "not a .npy file"),
        (saved(values)[:-4], "truncated"),
        (saved(np.zeros((10, 5))), r"float64 \(10, 5\); the model reads numbers \(5,\)"),
        (saved(np.array([None] * 5)), "object"),
        (npy("{'descr': '<f4', 'shape': (4"), "not a .npy file"),
        (npy("{[]: 1}"), "not a .npy file"),
        (npy("-" * 5000 + "1"), "not a .npy file"),
    ):
        with pytest.raises(UserError, match=message):
            read_image(base64_text(content), (5,))
    translator = image_text_tiny(CHARACTERS, image_shape=(5,), **SIZES)
    _, image = drawn_attention(translator, TEXT, "dog", (None, None), values)
    words, weights = translator.image_attention(TEXT, values)
    check_drawn(image, "image", ["1"], words, weights)
    assert "grid" not in image


def saved(array) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def check_refused(answer: httpx.Response, message: str):
    assert answer.status_code == 400
    assert re.search(message, answer.json()["error"])
    assert "\n" not in answer.json()["error"]


def npy(header: str) -> bytes:
    """Return an .npy file of a header and nothing else."""
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()


def huge_png() -> bytes:
    """Return the beginning of a PNG file of 400 million pixels."""
    header = b"IHDR" + struct.pack(">IIBBBBB", 20_000, 20_000, 8, 0, 0, 0, 0)
    chunk = struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    return b"\x89PNG\r\n\x1a\n" + chunk + b"\0\0\0\0IDAT"


def test_what_is_wrong_is_said(served):
    _, address = served(pope)
    check_refused(post(address, text="a" * 300), "300 characters; at most 200")
    check_refused(post(address, text=TEXT, n=4), "1 to 3 best translations")
    check_refused(post(address, text=TEXT, image="AAAA"), "text only")
    check_refused(post(address, text=5), "text")
    check_refused(post(address), "text")
    check_refused(httpx.post(f"{address}/page/translate", content=b"\xff{"), "")
    _, address = served(pictures)
    check_refused(post(address, text=TEXT), "reads an image")
    check_refused(post(address, text=TEXT, image="not base64!"), "not base64")
    check_refused(post(address, text=TEXT, image=base64_text(picture_file()[:60])), "image")
    check_refused(post(address, text=TEXT, image=base64_text(huge_png())), "too many pixels; at most 32,000")
    _, address = served(bridge)
    check_refused(post(address, text=TEXT, source_language="en"), "target_language is missing")
    check_refused(post(address, text=TEXT, source_language="en", target_language="xx"), "'xx' is unknown")


def test_an_empty_sentence_has_nothing_to_draw(served):
    _, address = served(pope)
    answer = post(address, text="").json()
    assert answer["hypotheses"] == [{"text": "", "score": 0.0}]
    (drawn,) = answer["attention"]
    assert set(drawn) == {"kind", "note"}
    assert drawn["note"].startswith("Not drawn: the sentence has no word")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Busy("the queue is full"), "the queue is full"),
        (ValueError("a bug"), "the model failed; the server’s log"),
    ],
)
def test_a_translation_is_answered_whatever_keeps_its_attention_from_being_drawn(
    error, reason, served, monkeypatch
):
    async def failing(*_, **__):
        raise error

    monkeypatch.setattr(kzoo.serve.Served, "run", failing)
    translator, address = served(bridge)
    answer = post(address, text=TEXT, source_language="en", target_language="fr").json()
    check_hypotheses(answer, translator.n_best([TEXT], "en", "fr", 1, beam_size=3)[0])
    assert [drawn["kind"] for drawn in answer["attention"]] == ["encoder_decoder", "bridge"]
    for drawn in answer["attention"]:
        assert drawn["note"].startswith(f"Not drawn: {reason}")


def test_what_is_too_much_to_draw_is_averaged():
    weights = np.random.default_rng(1).random((6, 8, 60, 60), "float32")
    found, note = fitting(weights)
    np.testing.assert_allclose(found, weights.mean(1, keepdims=True), atol=1e-6)
    assert note.startswith("All heads")
    found, note = fitting(weights[:2, :2])
    assert (found.shape, note) == ((2, 2, 60, 60), "")
    found, note = fitting(np.ones((30, 2, 76, 78)))
    assert found.shape == (1, 1, 76, 78)
    assert note.startswith("All layers and heads")


# The page in a browser.


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    pytest.importorskip("selenium", reason="the page's tests drive a browser: pip install selenium")
    from selenium import webdriver

    driver, chromium = shutil.which("chromedriver"), shutil.which("chromium") or shutil.which("google-chrome")
    if not (driver and chromium):
        pytest.skip("the page's tests need Chromium and chromedriver on the PATH")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--user-data-dir={tmp_path_factory.mktemp('chromium')}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield found
    found.quit()


@pytest.fixture
def page(browser, served):
    """Return a function that opens a family's page, wide or narrow; what it logged must be nothing."""

    def opened(family, width=1200) -> Page:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        translator, address = served(family)
        browser.get(address)
        found = Page(browser, translator)
        found.wait(lambda: found.id("n").find_elements("css selector", "option"))
        return found

    yield opened
    logged = [entry["message"] for entry in browser.get_log("browser")]
    assert not [message for message in logged if "status of 400" not in message]


class Page:
    """What the tests do with the page."""

    def __init__(self, browser, translator):
        self.browser, self.translator = browser, translator

    def id(self, name):
        return self.browser.find_element("id", name)

    def all(self, selector):
        return self.browser.find_elements("css selector", selector)

    def wait(self, condition):
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.browser, 60, 0.05).until(lambda _: condition())

    def press(self, *keys, hold=None):
        from selenium.webdriver import ActionChains

        actions = ActionChains(self.browser)
        if hold:
            actions.key_down(hold)
        actions.send_keys(*keys)
        if hold:
            actions.key_up(hold)
        actions.perform()

    def ask(self, text: str, times=1):
        """Type a text and press Ctrl+Enter."""
        from selenium.webdriver.common.keys import Keys

        self.id("text").clear()
        self.id("text").send_keys(text)
        for _ in range(times):
            self.press(Keys.ENTER, hold=Keys.CONTROL)

    def translate(self, text: str):
        """Ask for a text's translation; return what is shown."""
        self.ask(text)
        self.wait(lambda: self.id("result").text or self.id("error").text)
        self.wait(lambda: not self.id("progress").is_displayed())
        return self.id("result").text

    def run(self, script, *arguments):
        return self.browser.execute_script(f"return {script}", *arguments)

    def weights(self, elements) -> list[float]:
        """Return what elements draw."""
        drawn = "arguments[0].map(element => Number(element.style.getPropertyValue('--w')))"
        return self.run(drawn, elements)

    def focused(self):
        return self.browser.switch_to.active_element

    def fits(self) -> bool:
        return self.run("document.scrollingElement.scrollWidth <= innerWidth")


def test_text_in_translation_out(page):
    opened = page(pope)
    assert opened.browser.title == "tiny_model · kzoo"
    assert opened.id("name").accessible_name == "tiny_model"
    assert (opened.id("from-label").text, opened.id("to-label").text) == ("English", "German")
    opened.id("n").send_keys("3")
    assert opened.translate(TEXT) == opened.translator.translate([TEXT], beam_size=3)[0]
    expected = opened.translator.n_best([TEXT], 3, beam_size=3)[0]
    assert [line.text for line in opened.all("#hypotheses span")] == [best.text for best in expected]
    scores = [float(line.get_attribute("value")) for line in opened.all("#hypotheses data")]
    np.testing.assert_allclose(scores, [best.score for best in expected], atol=1e-5)


def test_attention_is_a_table_to_walk_in(page):
    from selenium.webdriver.common.keys import Keys

    opened = page(pope)
    best = opened.translate(TEXT)
    source, target, weights = opened.translator.attention(TEXT, best)
    assert len(opened.all("tbody tr")) == len(target)
    cells = opened.all("tbody tr:first-child td")
    assert len(cells) == len(source)
    layer, head = opened.all("figure select")
    assert len(layer.find_elements("css selector", "option")) == 3
    np.testing.assert_allclose(opened.weights(cells), weights.mean(axis=(0, 1))[0], atol=0.001)
    layer.send_keys("2")
    head.send_keys("1")
    cells = opened.all("tbody tr:first-child td")
    np.testing.assert_allclose(opened.weights(cells), weights[1, 0, 0], atol=0.001)
    opened.run("arguments[0].focus()", cells[0])
    opened.press(Keys.ARROW_DOWN, Keys.ARROW_RIGHT, Keys.ARROW_UP)
    assert opened.focused() == cells[1]
    assert opened.all(".reading")[0].get_attribute("textContent") == cells[1].get_attribute("aria-label")
    opened.press(Keys.END)
    assert opened.focused() == cells[-1]
    assert opened.run("document.querySelectorAll('tbody td[tabindex=\"0\"]').length") == 1


def test_by_keyboard_alone(page):
    from selenium.webdriver.common.keys import Keys

    opened = page(bridge)
    stops = []
    opened.press(TEXT)  # the text has the focus from the start
    opened.press(Keys.TAB, hold=Keys.SHIFT)
    opened.press(Keys.TAB, hold=Keys.SHIFT)
    for _ in range(6):
        stops.append(opened.focused().get_attribute("id"))
        opened.press(Keys.TAB)
    assert stops == ["from", "swap", "text", "n", "translate", "to"]
    opened.press(Keys.TAB, hold=Keys.SHIFT)
    opened.press("f")  # a select takes the option that begins so
    assert opened.id("to").get_attribute("value") == "fr"
    opened.press(Keys.TAB, hold=Keys.SHIFT)
    opened.press(Keys.ENTER)
    opened.wait(lambda: opened.id("result").text)
    expected = opened.translator.translate([TEXT], "en", "fr", beam_size=3)[0]
    assert opened.id("result").text == expected
    assert opened.focused().get_attribute("id") == "translate"
    opened.press(Keys.TAB, Keys.TAB)
    tables = opened.all("table")
    assert len(tables) == 2
    assert opened.focused() == tables[0].find_element("css selector", "tbody td")
    assert opened.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    opened.press(Keys.TAB)
    assert opened.focused() == tables[1].find_element("css selector", "tbody td")


def test_languages_are_swapped(page):
    opened = page(bridge)
    opened.id("swap").click()
    assert [opened.id(name).get_attribute("value") for name in ("from", "to")] == ["de", "en"]
    assert opened.translate(TEXT) == opened.translator.translate([TEXT], "de", "en", beam_size=3)[0]


@pytest.mark.parametrize("family", [pope, bridge, pictures])
def test_a_narrow_screen_never_scrolls_sideways(page, family, tmp_path):
    opened = page(family, width=360)
    assert opened.fits()
    if family is pictures:
        choose(opened, tmp_path, picture_file())
    opened.id("n").send_keys("3")
    opened.translate(TEXT)
    assert opened.all("figure")
    assert opened.fits()
    opened.translate("W" * 250)
    assert opened.id("error").text
    assert opened.fits()


def test_errors_are_one_line_and_go_away(page):
    opened = page(pope)
    assert opened.translate(" ") == ""
    assert opened.id("error").text == "Write a sentence first."
    assert opened.translate("a" * 201) == ""
    assert opened.id("error").text == "sentence 1 has 201 characters; at most 200 are allowed"
    assert opened.id("error").get_attribute("role") == "alert"
    assert not opened.all("figure")
    assert opened.translate(TEXT)
    assert not opened.id("error").is_displayed()


# Sends requests when `release` is called.
HELD = """(window.sent = 0, window.send = fetch, fetch = (...asked) => {
    sent += 1;
    return new Promise((answer) => { window.release = () => answer(send(...asked)); });
}, 0)"""


def test_a_request_is_not_sent_twice(page):
    opened = page(pope)
    opened.run(HELD)
    expected = opened.translator.translate([TEXT], beam_size=3)[0]
    for asked in (1, 2):
        opened.ask(TEXT, times=2)
        assert opened.run("sent") == asked
        assert opened.id("translate").get_attribute("aria-disabled") == "true"
        assert opened.id("progress").is_displayed()
        opened.run("(release(), 0)")
        opened.wait(lambda: not opened.id("progress").is_displayed())
        assert opened.id("translate").get_attribute("aria-disabled") == "false"
        assert opened.id("result").text == expected


def test_what_is_not_drawn_is_said(page, monkeypatch):
    opened = page(pope)
    opened.translate(TEXT)
    monkeypatch.setattr(drawing, "MOST_WEIGHTS", len(opened.all("tbody td")))
    opened.translate(TEXT)
    assert "layers and heads would be too large to draw" in opened.all("figure p")[0].text
    monkeypatch.setattr(drawing, "MOST_CELLS", 10)
    opened.translate(TEXT)
    (figure,) = opened.all("figure")
    assert re.fullmatch(r"Translation over text\nNot drawn: \d+ × 9 weights are too many\.", figure.text)


def test_waiting_is_announced(page):
    opened = page(pope)
    opened.run(HELD)
    opened.ask(TEXT)
    status = opened.id("status")
    assert status.aria_role == "status"
    assert status.get_attribute("textContent") == "Translating …"
    opened.run("(release(), 0)")
    opened.wait(lambda: not opened.id("progress").is_displayed())
    assert status.get_attribute("textContent") == ""
    assert opened.id("result").accessible_name == "Translation"


def choose(opened, folder, content: bytes):
    path = folder / f"{len(content)}.png"
    path.write_bytes(content)
    opened.id("file").send_keys(str(path))


def test_a_picture_is_chosen_shown_and_drawn_under_the_words(page, tmp_path):
    opened = page(pictures)
    assert opened.translate(TEXT) == ""
    assert "Choose a picture first" in opened.id("error").text
    choose(opened, tmp_path, picture_file())
    opened.wait(lambda: opened.id("preview").is_displayed())
    image = np.asarray(Image.open(io.BytesIO(picture_file())))
    expected = opened.translator.translate([TEXT], beam_size=3, images=image[None])[0]
    assert opened.translate(TEXT) == expected
    words, weights = opened.translator.image_attention(TEXT, image)
    assert len(opened.all(".word canvas")) == len(words)
    np.testing.assert_allclose(opened.weights(opened.all(".bar i")), weights.mean(axis=(0, 1, 2)), atol=0.001)
    choose(opened, tmp_path, b"x" * 16_000)
    opened.wait(lambda: "the server takes files up to" in opened.id("error").text)


def test_the_picture_is_the_one_chosen_last(page, tmp_path):
    """The first one's file takes longer to read, as on a network drive."""
    opened = page(pictures)
    opened.run("""(window.reads = 0, window.read = FileReader.prototype.readAsDataURL,
        FileReader.prototype.readAsDataURL = function (file) {
          if (reads++) read.call(this, file); else window.later = () => read.call(this, file);
        }, 0)""")
    choose(opened, tmp_path, b"slow")
    choose(opened, tmp_path, picture_file())
    opened.wait(lambda: opened.id("preview").is_displayed())
    opened.run("(window.done = new Promise((done) => setTimeout(done, 200)), later(), 0)")
    opened.run("done")
    assert opened.run("picture") == "data:image/png;base64," + base64_text(picture_file())


def test_a_file_that_is_no_picture_is_said(page, tmp_path):
    opened = page(pictures)
    choose(opened, tmp_path, picture_file())
    opened.wait(lambda: opened.id("preview").is_displayed())
    choose(opened, tmp_path, b"no picture")
    opened.wait(lambda: opened.id("error").text)
    assert opened.id("error").text.startswith("10.png is not a picture")
    assert not opened.id("preview").is_displayed()
    assert opened.run("picture") is None
    choose(opened, tmp_path, picture_file())
    opened.wait(lambda: opened.id("preview").is_displayed())
    assert not opened.id("error").is_displayed()


def test_a_translation_waits_for_the_picture_to_be_read(page, tmp_path):
    opened = page(pictures)
    opened.run("""(window.read = FileReader.prototype.readAsDataURL,
        FileReader.prototype.readAsDataURL = function (file) {
          window.later = () => read.call(this, file);
        }, 0)""")
    choose(opened, tmp_path, picture_file())
    opened.ask(TEXT)
    opened.run("(later(), 0)")
    opened.wait(lambda: opened.id("result").text or opened.id("error").text)
    assert opened.id("result").text
    assert opened.all(".word canvas")


def test_an_answer_that_breaks_off_is_said(page):
    opened = page(pope)
    opened.run("(fetch = async () => new Response('{'), 0)")
    opened.translate(TEXT)
    assert opened.id("error").text == "The server’s answer is incomplete: try again."


def test_a_page_that_could_not_start_starts_when_asked_to_translate(page):
    opened = page(pope)
    opened.run("(about = null, 0)")
    assert opened.translate(TEXT) == opened.translator.translate([TEXT], beam_size=3)[0]
    assert len(opened.all("#n option")) == 3


def test_a_server_that_is_gone_is_said(page):
    opened = page(pope)
    opened.browser.execute_cdp_cmd("Network.enable", {})
    opened.run("(fetch = () => Promise.reject(new TypeError('failed')), 0)")
    opened.translate(TEXT)
    assert opened.id("error").text == "The server cannot be reached."
