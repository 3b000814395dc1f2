"""The page to try a preset on, in headless Chromium."""

import base64
import io
import re
import shutil
import threading

import numpy as np
import pytest
from PIL import Image
from tiny_models import BEAM, TEXT, bridge, picture_file, pictures, pope

from kzoo.serve import Served
from kzoo.serve import page as drawing


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
    assert opened.translate(TEXT) == opened.translator.translate([TEXT], beam_size=BEAM)[0]
    expected = opened.translator.n_best([TEXT], 3, beam_size=BEAM)[0]
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
    for _ in range(7):
        stops.append(opened.focused().get_attribute("id"))
        opened.press(Keys.TAB)
    assert stops == ["from", "swap", "text", "split", "n", "translate", "to"]
    opened.press(Keys.TAB, hold=Keys.SHIFT)
    opened.press("f")  # a select takes the option that begins so
    assert opened.id("to").get_attribute("value") == "fr"
    opened.press(Keys.TAB, hold=Keys.SHIFT)
    opened.press(Keys.ENTER)
    opened.wait(lambda: opened.id("result").text)
    expected = opened.translator.translate([TEXT], "en", "fr", beam_size=BEAM)[0]
    assert opened.id("result").text == expected
    assert opened.focused().get_attribute("id") == "translate"
    opened.press(Keys.TAB, Keys.TAB, Keys.TAB)  # past the language and the button that copies
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
    best = opened.translate(TEXT)
    assert best == opened.translator.translate([TEXT], "de", "en", beam_size=BEAM)[0]
    opened.id("swap").click()
    assert opened.id("text").get_attribute("value") == best
    opened.wait(lambda: opened.id("result").text)
    assert opened.id("result").text == opened.translator.translate([best], "en", "de", beam_size=BEAM)[0]


def test_what_was_written_since_the_translation_stays_when_languages_are_swapped(page):
    opened = page(bridge)
    opened.translate(TEXT)
    opened.id("text").send_keys(" and more")
    opened.id("swap").click()
    assert opened.id("text").get_attribute("value") == TEXT + " and more"
    opened.wait(lambda: opened.id("result").text or opened.id("error").text)


def test_an_example_is_translated_at_once(page):
    opened = page(pictures)
    image = base64.b64encode(picture_file()).decode()
    offered = [{"text": TEXT, "language": "", "image": image}, {"text": "no", "language": "xx"}]
    opened.run("(about.examples = arguments[0], showExamples(), 0)", offered)
    (button,) = opened.all("#examples button")
    button.click()
    opened.wait(lambda: opened.id("result").text)
    assert opened.id("text").get_attribute("value") == TEXT
    assert opened.id("preview").is_displayed()
    assert opened.run("picture") == f"data:image/png;base64,{image}"


def test_a_translation_is_copied(page):
    opened = page(pope)
    assert not opened.id("copy").is_displayed()
    best = opened.translate(TEXT)
    opened.run("(navigator.clipboard.writeText = async (text) => { window.copied = text; }, 0)")
    opened.id("copy").click()
    opened.wait(lambda: opened.id("copy").text == "Copied")
    assert opened.run("copied") == best


def test_a_low_score_is_marked(page):
    opened = page(pope)
    assert not opened.id("unusual").is_displayed()
    opened.run("(showUnusual([{ text: 'x', score: -2.5 }], -2), 0)")
    assert "“\u2068x\u2069”" in opened.id("unusual").text
    opened.run("(clear(), 0)")
    assert not opened.id("unusual").is_displayed()


def test_unknown_characters_are_marked(page):
    opened = page(pope)
    opened.translate(f"{TEXT} ♪好")
    assert [mark in opened.id("unknown").text for mark in ("“\u2068♪\u2069”", "“\u2068好\u2069”")] == [
        True,
        True,
    ]
    opened.run("(clear(), 0)")
    assert not opened.id("unknown").is_displayed()


def test_characters_are_drawn_as_their_bitmaps(page):
    opened = page(pope)
    pixels = base64.b64encode(bytes([1, *[0] * 483])).decode()
    opened.run("(showCharacters([['d', arguments[0]]], 'en'), 0)", pixels)
    (drawn,) = opened.all("#characters canvas")
    colours = opened.run("[...arguments[0].getContext('2d').getImageData(0, 0, 22, 22).data]", drawn)
    assert colours == [0, 0, 0, 255] + [255] * 4 * 483


def test_a_wide_table_shows_that_it_goes_on(page):
    opened = page(pope, width=360)
    opened.translate(TEXT)
    more, place = opened.all(".more")[0], opened.all(".scroll")[0]
    opened.run("(arguments[0].style.width = '6rem', 0)", place)
    opened.wait(more.is_displayed)
    assert "fading" in place.get_attribute("className")
    opened.run("(arguments[0].scrollLeft = 1e4, 0)", place)
    opened.wait(lambda: "fading" not in place.get_attribute("className"))


def test_another_language_takes_the_translation_away(page):
    opened = page(bridge)
    opened.translate(TEXT)
    assert opened.id("result").get_attribute("lang") == "de"
    opened.id("to").send_keys("f")
    assert opened.id("result").text == ""
    assert not opened.all("figure")
    opened.run(HELD)
    opened.ask(TEXT)
    opened.id("to").send_keys("g")  # German, while the French translation is on its way
    assert not opened.id("progress").is_displayed()
    opened.run("(release(), fetch = send, 0)")
    assert opened.translate(TEXT) == opened.translator.translate([TEXT], "en", "de", beam_size=BEAM)[0]


def test_escape_stops_a_request(page):
    from selenium.webdriver.common.keys import Keys

    opened = page(pope)
    opened.run(HELD)
    opened.ask(TEXT)
    opened.press(Keys.ESCAPE)
    assert not opened.id("progress").is_displayed()
    opened.run("(release(), fetch = send, 0)")
    assert opened.translate(TEXT)


def test_a_server_that_never_answers_is_said(page):
    opened = page(pope)
    opened.run("(wait => AbortSignal.timeout = () => wait.call(AbortSignal, 0))(AbortSignal.timeout)")
    opened.translate(TEXT)
    assert opened.id("error").text == "The server takes too long: try again."


def test_the_focus_stays_in_the_attention(page):
    from selenium.webdriver.common.keys import Keys

    opened = page(pope)
    opened.translate(TEXT)
    opened.run("(document.querySelector('tbody td').focus(), 0)")
    opened.press(Keys.ENTER, hold=Keys.CONTROL)
    opened.wait(lambda: not opened.id("progress").is_displayed())
    assert opened.focused() == opened.all("tbody td")[0]


def test_words_above_columns_stand_upright_in_their_language(page):
    opened = page(pope)
    opened.translate(TEXT)
    head, row = opened.all("thead th")[0], opened.all("tbody th")[0]
    assert (head.get_attribute("lang"), row.get_attribute("lang")) == ("en", "de")
    turned = "getComputedStyle(arguments[0].firstChild).transform"
    assert opened.run(turned, head) != "none"
    names = {"rows": [{"text": "Hund", "label": "Hund"}], "columns": [{"text": "狗", "label": "狗"}]}
    opened.run("(document.body.append(heatMap([[1]], arguments[0], {title: ''}, make('p'))), 0)", names)
    assert opened.run(turned, opened.all("thead th")[-1]) == "none"


def test_a_piece_that_joins_the_one_before_it_is_explained(page):
    opened = page(pope)
    opened.translate(TEXT)  # of characters, none of which is a piece of a word
    note = "document.querySelector('#attention figcaption p').textContent"
    assert "·" not in opened.run(note)
    drawn = {
        "kind": "encoder_decoder",
        "rows": ["▁Hund", "."],
        "columns": ["▁dog"],
        "weights": [[[[1], [1]]]],
    }
    opened.run("(showAttention([figure(arguments[0], null, {})]), 0)", drawn)
    assert "“·”" in opened.run(note)
    assert [head.text for head in opened.all("#attention tbody th")] == ["Hund", "·."]


@pytest.mark.parametrize("family", [pope, bridge])
@pytest.mark.parametrize("columns", [2, 9])
def test_the_heat_map_fills_its_card(page, family, columns):
    opened = page(family)
    opened.translate(TEXT)
    shown = opened.all("#attention figure")
    names = [f"▁{number}" for number in range(columns)]
    drawn = {"kind": "encoder_decoder", "rows": ["▁a"], "columns": names, "weights": [[[[0.1] * columns]]]}
    opened.run("(showAttention(arguments[0].map((one) => figure(one, null, {}))), 0)", [drawn] * len(shown))
    for figure in opened.all("#attention figure"):
        card, table = (
            opened.run("arguments[0].getBoundingClientRect().width", element)
            for element in (figure, figure.find_element("css selector", "table"))
        )
        assert 0.85 * card < table < card
        assert len(opened.all("#attention tbody td")) == columns * len(shown)


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
    assert opened.id("text").get_attribute("aria-invalid") == "true"
    assert opened.id("text").get_attribute("aria-describedby") == "error"
    assert opened.translate("a" * 201) == ""
    assert opened.id("error").text == "sentence 1 has 201 characters; at most 200 are allowed"
    assert opened.id("error").get_attribute("role") == "alert"
    assert not opened.all("figure")
    assert opened.translate(TEXT)
    assert not opened.id("error").is_displayed()
    assert opened.id("text").get_attribute("aria-invalid") == "false"
    assert opened.translate(" ") == ""  # nothing is left of the sentence before
    assert not opened.all("figure")


# Sends requests for translations when `release` is called.
HELD = """(window.sent = 0, window.send = fetch, fetch = (...asked) => {
    if (asked[0] !== "page/translate") return send(...asked);
    sent += 1;
    return new Promise((answer) => { window.release = () => answer(send(...asked)); });
}, 0)"""


def test_a_request_is_not_sent_twice(page):
    opened = page(pope)
    opened.run(HELD)
    expected = opened.translator.translate([TEXT], beam_size=BEAM)[0]
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


@pytest.fixture
def prepared(monkeypatch):
    """Event without which the model that computes attention is being prepared, as beside CTranslate2."""
    event = threading.Event()
    monkeypatch.setattr(Served, "keras_translator", lambda served: event.is_set() and served.translator)
    return event


# Makes the page ask again for what is being prepared at once, and counts what changes in the translation.
OBSERVED = """(window.wait = setTimeout, setTimeout = (call) => wait(call, 50), window.sent = 0,
    window.send = fetch,
    fetch = (...asked) => {
      sent += asked[0] === "page/translate";
      return send(...asked);
    },
    window.changes = 0, window.observer = new MutationObserver(() => { changes += 1; }),
    [$("result"), $("status")].forEach((node) => observer.observe(node, { childList: true })), 0)"""


def test_attention_that_is_being_prepared_appears_without_a_click(page, prepared):
    opened = page(pope)
    best = opened.translate(TEXT)
    (figure,) = opened.all("figure")
    note = "Not drawn: the model that computes it is being prepared."
    assert figure.text == f"Translation over text\n{note}"
    opened.run(OBSERVED)
    opened.wait(lambda: opened.run("sent") > 1)
    assert opened.all("figure") == [figure]  # the same element: nothing flickers
    prepared.set()
    opened.wait(lambda: opened.all("tbody td"))
    assert (opened.id("result").text, opened.run("changes")) == (best, 0)
    sent = opened.run("sent")
    opened.run("new Promise((done) => wait(done, 500))")
    assert opened.run("sent") == sent


@pytest.mark.parametrize("change", ["text", "languages", "translation"])
def test_nothing_is_awaited_for_another_text(page, prepared, change):
    opened = page(bridge)
    opened.translate(TEXT)
    opened.run(OBSERVED)
    opened.wait(lambda: opened.run("sent") > 1)
    opened.run("(window.first = awaiting, 0)")
    if change == "text":
        opened.id("text").send_keys(".")
    elif change == "languages":
        opened.id("to").send_keys("f")
    else:
        prepared.set()
        opened.translate(TEXT)
    assert opened.run("first.signal.aborted")
    opened.wait(lambda: opened.run("pending === null"))  # it translates the new text
    drawn, sent = opened.all("#attention > *"), opened.run("sent")
    opened.run("new Promise((done) => wait(done, 500))")
    assert (opened.all("#attention > *"), opened.run("sent")) == (drawn, sent)


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
    expected = opened.translator.translate([TEXT], beam_size=BEAM, images=image[None])[0]
    assert opened.translate(TEXT) == expected
    words, weights = opened.translator.image_attention(TEXT, image)
    assert len(opened.all(".word canvas")) == len(words)
    np.testing.assert_allclose(opened.weights(opened.all(".bar i")), weights.mean(axis=(0, 1, 2)), atol=0.001)
    regions = weights.mean(axis=(0, 1))[:, 0]
    row, column = np.unravel_index(regions.argmax(), (2, 3))  # of regions of 16×16 pixels
    said = opened.all(".word")[0].accessible_name
    assert said.endswith(f" from row {row + 1}, column {column + 1}")
    choose(opened, tmp_path, b"x" * 16_000)
    opened.wait(lambda: "the server takes files up to" in opened.id("error").text)


def test_attention_shows_on_a_black_picture(page):
    opened = page(pictures)
    drawn = "[...dimmed(canvas(64, 64), [1, 0], 1, 1, 2).getContext('2d').getImageData(0, 0, 64, 1).data]"
    left, right = opened.run(drawn)[0], opened.run(drawn)[-4]
    assert left < 30 and right > 90  # grey where it does not attend


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
    assert opened.run("picture") == "data:image/png;base64," + base64.b64encode(picture_file()).decode()


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


def test_a_picture_that_only_the_browser_can_read_is_said(page, tmp_path):
    opened = page(pictures)
    webp = io.BytesIO()
    Image.new("RGB", (64, 64)).save(webp, "WEBP")
    choose(opened, tmp_path, webp.getvalue())
    opened.wait(lambda: opened.id("error").text)
    assert "choose a JPEG or PNG file" in opened.id("error").text


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
    assert opened.translate(TEXT) == opened.translator.translate([TEXT], beam_size=BEAM)[0]
    assert len(opened.all("#n option")) == 3


def test_a_server_that_is_gone_is_said(page):
    opened = page(pope)
    opened.browser.execute_cdp_cmd("Network.enable", {})
    opened.run("(fetch = () => Promise.reject(new TypeError('failed')), 0)")
    opened.translate(TEXT)
    assert opened.id("error").text == "The server cannot be reached."
