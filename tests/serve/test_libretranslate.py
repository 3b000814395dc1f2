"""LibreTranslate's API over HTTP: its fields and statuses, and the strings of `translate`."""

import sys
from dataclasses import dataclass
from html import escape
from urllib.parse import urlencode

import httpx
import pytest
from asking import LIMITS, answers
from message_of import message_of
from tiny_models import BEAM, bridge, pictures, pope

from kzoo.cli.server_glossaries import Terms, check_terms, glossaries_of
from kzoo.decoding import SearchSettings
from kzoo.engine.translator import CTranslate2Translator
from kzoo.presets import locate
from kzoo.serve import Limits, Served, create_app
from kzoo.serve.directions import Directions
from kzoo.text.directions import TwoLanguages
from kzoo.text.languages import english_name
from kzoo.text.pieces import LanguageNames

TEXTS = ["a man.", "", "two dogs.\nmen."]
JSON, PLAIN = {"Content-Type": "application/json"}, {"Content-Type": "text/plain"}
ASKED = {"q": "a man.", "source": "en", "target": "de"}


@pytest.fixture(autouse=True)
def ready_at_once(usual_length):
    usual_length(0)


def ask(translator, *requests) -> list[httpx.Response]:
    """Return the answers to requests: the arguments of httpx's `request`, after method and path."""
    translator.search = SearchSettings(BEAM)
    app = create_app(Served(translator, "tiny", max_batch=2, limits=LIMITS))
    return answers(app, requests)


def translate(**body):
    return "POST", "/translate", {"json": ASKED | body}


def test_a_text_and_a_list_give_the_strings_of_translate():
    one, several = ask(pope(), translate(), translate(q=TEXTS))
    expected = pope().translate(TEXTS, split_sentences=True)
    assert one.json() == {"translatedText": expected[0]}
    assert several.json() == {"translatedText": expected}


def test_json_forms_and_the_address_say_the_same():
    """deep-translator sends all fields in the address, libretranslatepy a form, browsers JSON."""
    form = {"content": urlencode(ASKED), "headers": {"Content-Type": "application/x-www-form-urlencoded"}}
    asked = [
        translate(),
        ("POST", "/translate", form),
        ("POST", "/translate", {"params": ASKED}),
        translate(alternatives="0", format="", api_key="", other=[1]),
    ]
    answers = ask(pope(), *asked)
    assert [answer.status_code for answer in answers] == [200] * len(asked)
    assert len({answer.text for answer in answers}) == 1


def test_a_form_of_several_parts():
    pytest.importorskip("python_multipart")
    parts = {key: (None, value) for key, value in ASKED.items()}
    one, other = ask(pope(), translate(), ("POST", "/translate", {"files": parts}))
    assert one.json() == other.json()


def test_line_ends_of_forms_are_those_of_json():
    form = {"data": ASKED | {"q": "a man.\r\nmen."}}
    one, other = ask(pope(), translate(q="a man.\nmen."), ("POST", "/translate", form))
    assert one.json() == other.json()


def test_of_a_repeated_field_the_first_counts_and_the_address_comes_first():
    """As in LibreTranslate, which the slow tests ask the same."""
    both = urlencode([*ASKED.items(), ("q", "two dogs.")])
    form = {"content": both, "headers": {"Content-Type": "application/x-www-form-urlencoded"}}
    parts = {"files": [(key, (None, value)) for key, value in [*ASKED.items(), ("q", "two dogs.")]]}
    asked = [form, parts, {"params": both}, {"params": {"q": "a man."}, "data": ASKED | {"q": "two dogs."}}]
    pytest.importorskip("python_multipart")
    one, *others = ask(pope(), translate(), *(("POST", "/translate", how) for how in asked))
    assert [other.json() for other in others] == [one.json()] * len(asked)


def test_alternatives_are_the_other_translations_of_the_beam():
    one, several = ask(pope(), translate(alternatives=2), translate(q=TEXTS, alternatives=2))
    found = pope().n_best(TEXTS, BEAM, split_sentences=True)
    texts = [list(dict.fromkeys(hypothesis.text for hypothesis in best)) for best in found]
    others = [[text for text in more if text] for _, *more in texts]
    assert one.json() == {"translatedText": texts[0][0], "alternatives": others[0]}
    assert several.json() == {"translatedText": [best[0] for best in texts], "alternatives": others}


def test_languages_of_one_direction_and_of_many():
    (one,), (many,), (none,) = (ask(model(), ("GET", "/languages", {})) for model in (pope, bridge, pictures))
    assert one.json() == [
        {"code": "en", "name": "English", "targets": ["de", "en"]},
        {"code": "de", "name": "German", "targets": ["de"]},
    ]
    every = ["de", "en", "fr"]
    assert [(row["code"], row["targets"]) for row in many.json()] == [
        (code, every) for code in ("en", "fr", "de")
    ]
    assert none.json() == []


def test_codes_of_a_region_and_the_direction_of_a_multilingual_model():
    region, many = ask(pope(), translate(source="en-GB")), ask(bridge(), translate(source="de", target="fr"))
    assert region[0].json()["translatedText"] == pope().translate(ASKED["q"])[0]
    assert many[0].json()["translatedText"] == bridge().translate([ASKED["q"]], "de", "fr")[0]


def test_a_text_in_the_target_language_stays():
    (answer,) = ask(pope(), translate(q=["Ein Mann.", ""], source="de", alternatives=1))
    assert answer.json() == {"translatedText": ["Ein Mann.", ""], "alternatives": [[], []]}


def test_languages_are_identified_among_those_served():
    pytest.importorskip("py3langid")
    german, english = "Zwei Männer stehen am Fluss und angeln.", "two dogs."
    detected, several, auto, autos = ask(
        pope(),
        ("POST", "/detect", {"data": {"q": german}}),
        ("POST", "/detect", {"json": {"q": ["two dogs and a man", "stand on the street."]}}),
        translate(q=english, source="auto"),
        translate(q=[german, english], source="auto"),
    )
    (best, *_) = detected.json()
    assert best["language"] == "de" and 50 < best["confidence"] <= 100
    assert several.json()[0]["language"] == "en"
    expected = pope().translate([english])
    assert auto.json()["translatedText"] == expected[0]
    assert auto.json()["detectedLanguage"]["language"] == "en"
    assert autos.json()["translatedText"] == [german, *expected]
    assert [one["language"] for one in autos.json()["detectedLanguage"]] == ["de", "en"]


def test_without_its_library_no_language_is_identified(monkeypatch):
    monkeypatch.setitem(sys.modules, "py3langid", None)
    for answer in ask(pope(), translate(source="auto"), ("POST", "/detect", {"data": {"q": "a man"}})):
        assert answer.status_code == 400
        assert "py3langid" in answer.json()["error"]


@pytest.mark.parametrize(
    ("model", "request_", "status", "word"),
    [
        (pope, ("POST", "/translate", {"json": {"source": "en", "target": "de"}}), 400, "`q`"),
        (pope, translate(q=""), 400, "`q`"),
        (pope, translate(q=[]), 400, "`q`"),
        (pope, translate(q=[1]), 400, "str"),
        (pope, translate(source=None), 400, "`source`"),
        (pope, translate(target=""), 400, "`target`"),
        (pope, translate(source="fr"), 400, "'fr'"),
        (pope, translate(target="xx"), 400, "'xx'"),
        (pope, translate(format="pdf"), 400, "pdf"),
        (pope, translate(format="html", q="".join(f"<p>{c}</p>" for c in "adegm")), 400, "5 sentences"),
        (pope, translate(q="a" * 30), 400, "30 subwords"),
        (pope, translate(format="html", q="<p>" + "a" * 30), 400, "30 subwords"),
        (pope, translate(alternatives="two"), 400, "alternatives"),
        (pope, translate(alternatives=-1), 400, "alternatives"),
        (pope, translate(alternatives=BEAM), 400, f"at most {BEAM - 1}"),
        (pope, translate(q="a" * 201), 400, "201"),
        (pope, translate(q=["a"] * 5), 400, "5 sentences"),
        (pope, ("POST", "/translate", {"json": [1]}), 400, "object"),
        (pope, ("POST", "/translate", {"json": "q"}), 400, "object"),
        (pope, ("POST", "/translate", {"content": b"{", "headers": JSON}), 400, ""),
        (pope, ("POST", "/translate", {"data": {str(i): "1" for i in range(30)}}), 400, "fields"),
        (pope, ("POST", "/translate", {"content": b"q=%ff&source=en&target=de"}), 400, "UTF-8"),
        (pope, ("POST", "/translate", {"content": b"a", "headers": PLAIN}), 415, "json"),
        (pope, ("GET", "/translate", {}), 405, ""),
        (pope, ("POST", "/languages", {}), 405, ""),
        (pope, ("POST", "/suggest", {}), 404, ""),
        (pictures, translate(), 400, "image"),
        (pictures, ("POST", "/detect", {"data": {"q": "a"}}), 400, "identify"),
    ],
)  # fmt: skip
def test_errors_have_libretranslates_form(model, request_, status, word):
    (answer,) = ask(model(), request_)
    assert (answer.status_code, list(answer.json())) == (status, ["error"])
    assert word in answer.json()["error"]
    assert "\n" not in answer.json()["error"]


def test_html_keeps_its_elements():
    """The strings come from a list of texts, which the model translates as ever."""
    html = "<p class='a'>a man.</p>\n<script>a man.</script><ul><li> dogs &amp; men.</li><li>a man.</li></ul>"
    (one, both, same) = ask(
        pope(),
        translate(q=html, format="html"),
        translate(q=[html, "men."], format="html", alternatives=1),
        translate(q=html, format="html", source="de"),
    )
    man, dogs, men = (escape(text) for text in pope().translate(["a man.", "dogs & men.", "men."]))
    expected = f'<p class="a">{man}</p>\n<script>a man.</script><ul><li> {dogs}</li><li>{man}</li></ul>'
    assert one.json() == {"translatedText": expected}
    assert both.json() == {"translatedText": [expected, men], "alternatives": [[], []]}
    assert same.json() == {"translatedText": html}


def test_an_element_within_a_sentence_is_around_the_words_that_translate_its_own(tmp_path, monkeypatch):
    pytest.importorskip("ctranslate2")
    monkeypatch.setenv("KZOO_CACHE", str(tmp_path))
    translator = CTranslate2Translator(locate("pope_small_multi30k_en_de"))
    (answer,) = ask(translator, translate(q="A <b>dog</b> runs.", format="html"))
    assert answer.json() == {"translatedText": "Ein <b>Hund</b> rennt."}


@pytest.mark.parametrize("mark", ["[X5X]", "{place}", "%s", "https://a.example/b?c=1"])
def test_placeholders_of_a_text_stay(mark, tmp_path, monkeypatch):
    """Also in a text of several lines and sentences, whose other lines are as before."""
    pytest.importorskip("ctranslate2")
    monkeypatch.setenv("KZOO_CACHE", str(tmp_path))
    translator = CTranslate2Translator(locate("pope_small_multi30k_en_de"))
    texts = [f"A dog runs near {mark} in the snow.", f"A dog runs.\r\n\nTwo men sit. A man in {mark} runs."]
    html = f"<p>A dog runs near <b>{mark}</b> in the snow.</p>"
    found = ask(
        translator,
        *(translate(q=text, alternatives=1) for text in (*texts, "2 dogs run.")),
        translate(q=html, format="html"),
    )
    one, several, number, html = (answer.json()["translatedText"] for answer in found)
    assert one.count(mark) == several.count(mark) == 1
    assert f"<b>{mark}</b>" in html
    first, last = several.split("\r\n\n")
    assert [first, number] == translator.translate(["A dog runs.", "2 dogs run."])
    assert last.startswith(translator.translate(["Two men sit."])[0])


def test_a_sentence_with_placeholders_has_more_parts_than_a_request_may_have_sentences(tmp_path, monkeypatch):
    pytest.importorskip("ctranslate2")
    monkeypatch.setenv("KZOO_CACHE", str(tmp_path))
    translator = CTranslate2Translator(locate("pope_small_multi30k_en_de"))
    served = Served(translator, "m", limits=Limits(sentences=2))
    text = "A dog {a} runs {b} in the {c} snow {d} with a man {e} and a ball."
    for answer in answers(create_app(served), [translate(q=text), translate(q=text, format="html")]):
        assert all(f"{{{name}}}" in answer.json()["translatedText"] for name in "abcde")


def test_other_sites_are_refused():
    """As by the server's own interface; only the probe may be asked by any name."""
    app = create_app(Served(pope(), "tiny", limits=LIMITS), hosts=())
    rebound, other = {"Host": "rebound.example"}, {"Host": "localhost", "Origin": "https://evil.example"}
    asked = [
        ("POST", "/translate", {"json": ASKED, "headers": rebound}),
        ("POST", "/translate", {"json": ASKED, "headers": other}),
        ("POST", "/detect", {"json": {"q": "a man."}, "headers": other}),
        ("GET", "/languages", {"headers": rebound}),
        ("GET", "/health", {"headers": rebound}),
        ("POST", "/translate", {"json": ASKED, "headers": {"Host": "localhost"}}),
    ]
    statuses = [answer.status_code for answer in answers(app, asked)]
    assert statuses == [403, 403, 403, 403, 200, 200]


def test_health():
    (answer,) = ask(pope(), ("GET", "/health", {}))
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


class OpusMT(TwoLanguages):
    """The languages of an OPUS-MT model with several sources and targets."""

    image_shape = None

    def __init__(self, source, *targets):
        self.source_tokenizer = LanguageNames()
        self.source_tokenizer.languages = self.source_tokenizer.codes_in_text = list(targets)
        self.source_language, self._target_language = source, targets[0]


@dataclass(frozen=True)
class StubServed:
    translator: object


@pytest.mark.parametrize(
    ("translator", "targets", "asked", "direction"),
    [
        (OpusMT("eng", "fra", "por"), {"en": ["en", "fr", "pt"]}, ("en", "pt-BR"), ("eng", "por")),
        (
            OpusMT("deu+eng", "fra"),
            {"de": ["de", "fr"], "en": ["en", "fr"]},
            ("de", "fr"),
            ("deu", "fra"),
        ),
        (OpusMT("gmw", "cmn_Hans"), {"gmw": ["gmw", "zh-Hans"]}, ("nl", "zh"), ("gmw", "cmn_Hans")),
    ],
)
def test_languages_of_opus_mt(translator, targets, asked, direction):
    served = StubServed(translator)
    directions = Directions([served])
    assert {code: ends for code, ends in directions.targets.items() if ends != [code]} == targets
    assert directions.resolved(*asked) == (served, direction)


class NLLB(TwoLanguages):
    """The languages of an NLLB-200 model."""

    image_shape, source_language, _target_language = None, None, None

    def __init__(self, *codes):
        self.source_tokenizer, self.target_tokenizer = LanguageNames(), LanguageNames()
        self.source_tokenizer.languages = self.target_tokenizer.languages = list(codes)
        self.source_tokenizer.names, self.target_tokenizer.names = "source", "target"


def test_languages_of_nllb_have_the_codes_that_clients_know():
    codes = "eng_Latn", "kas_Arab", "kas_Deva", "srp_Cyrl", "zho_Hans", "zho_Hant"
    translator, m2m = NLLB(*codes), NLLB("en", "sr")
    directions = Directions([StubServed(translator)])
    assert [*directions.targets] == ["en", "ks-Arab", "ks-Deva", "sr", "zh-Hans", "zh-Hant"]
    assert directions.resolved("en", "sr") == (StubServed(translator), ("eng_Latn", "srp_Cyrl"))
    assert directions.resolved("zh-TW", "ks-Deva").direction == ("zho_Hant", "kas_Deva")
    assert directions.identifier("The old man and the sea are here.")[0].language == "en"
    assert {"en", "sr"} < Directions([StubServed(translator), StubServed(m2m)]).targets.keys()
    assert "en-Latn" not in Directions([StubServed(translator), StubServed(m2m)]).targets
    names = [english_name(code) for code in directions.targets]
    assert names[1:3] == ["Kashmiri (Arabic)", "Kashmiri (Devanagari)"] and len({*names}) == len(names)
    check_terms([Terms("en-sr", {"dog": "пас"})], [translator])
    [glossary] = glossaries_of(translator, [Terms("en-sr", {"dog": "пас"})])
    assert glossary.direction == ("eng_Latn", "srp_Cyrl")


def test_glossaries_that_a_server_takes_are_those_of_its_models():
    models = NLLB("eng_Latn", "kas_Arab"), NLLB("eng_Latn", "kas_Deva")
    arabic, both = [("eng_Latn", "kas_Arab")], [("eng_Latn", "kas_Arab"), ("eng_Latn", "kas_Deva")]
    for direction, expected in [
        ("en-ks-Arab", arabic),
        ("en-Latn-ks-Arab", arabic),
        ("eng_Latn-kas_Arab", arabic),
        ("en-ks", both),
    ]:
        terms = [Terms(direction, {"dog": "ہوٗن"})]
        check_terms(terms, models)
        found = [glossary.direction for model in models for glossary in glossaries_of(model, terms)]
        assert found == expected
    assert "en-ks-Deva" in message_of(check_terms, [Terms("en-ks-Latn", {})], models)
    assert "kas_Arab" in message_of(check_terms, [Terms("en-ks", {}), Terms("en-ks-Arab", {})], models)


def test_a_script_that_no_model_has_is_not_the_language_that_is_listed():
    directions = Directions([StubServed(NLLB("eng_Latn", "srp_Cyrl"))])
    for source, target in [("sr-Latn", "sr"), ("srp_Latn", "srp_Cyrl"), ("sr", "sr-Latn"), ("en", "sr-Latn")]:
        message = message_of(directions.resolved, source, target)
        assert "Latn" in message and "srp_Cyrl" in message
    for source, target in [("sr-Cyrl", "sr"), ("srp_Cyrl", "sr-RS"), ("en-US", "en")]:
        assert directions.resolved(source, target) is None
    both = Directions([StubServed(NLLB("eng_Latn", "srp_Cyrl")), StubServed(NLLB("en", "sr"))])
    assert both.resolved("en-US", "en") is None and both.resolved("sr-Cyrl", "sr") is None
