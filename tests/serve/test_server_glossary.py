"""A server's glossary: its translations are those of `translate` with the same terms."""

import re
from html import unescape

import pytest
from asking import answers
from message_of import message_of
from tiny_models import BEAM, bridge, pictures, pope
from typer.testing import CliRunner

from kzoo import cli
from kzoo.cli.server_glossaries import Terms, check_terms, glossaries_of
from kzoo.decoding import SearchSettings
from kzoo.engine.translator import CTranslate2Translator
from kzoo.errors import UserError
from kzoo.presets import locate
from kzoo.serve import Served, create_app
from kzoo.text.glossary import Glossary

TEXTS = ["Two dogs run.", "A hat.", "A dog runs. Dogs run in the snow."]
TERMS = {"dogs": "Köter", "snow": "Schneefeld", "hat": "Hut"}


@pytest.fixture(autouse=True)
def ready_at_once(usual_length):
    usual_length(0)


@pytest.fixture(scope="module")
def translator():
    pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")
    translator = CTranslate2Translator(locate("pope_small_multi30k_en_de"))
    translator.search = SearchSettings(BEAM)
    return translator


@pytest.fixture
def ask(translator):
    """Function of requests to a server with `TERMS`, that returns its answers."""
    app = create_app(Served(translator, "m", glossaries=glossaries_of(translator, [Terms("", TERMS)])))
    return lambda *requests: answers(app, requests)


def test_all_interfaces_keep_to_the_terms(ask, translator):
    fields = {"source": "en", "target": "de"}
    libre, rows, best, page = ask(
        ("POST", "/translate", {"json": {"q": TEXTS, **fields}}),
        ("POST", "/v1/models/m:predict", {"json": {"inputs": TEXTS}}),
        ("POST", "/v1/models/m:predict", {"json": {"inputs": TEXTS, "signature_name": "n_best"}}),
        ("POST", "/page/translate", {"json": {"text": TEXTS[0]}}),
    )
    expected = translator.translate(TEXTS, split_sentences=True, terms=TERMS)
    assert libre.json()["translatedText"] == expected
    assert expected != translator.translate(TEXTS, split_sentences=True)
    n_best = translator.n_best(TEXTS, terms=TERMS, split_sentences=False)
    assert rows.json()["outputs"]["translation"] == [one[0].text for one in n_best]
    for found, some in zip(best.json()["outputs"]["translation"], n_best, strict=True):
        assert [text for text in found if text] == [one.text for one in some]
    assert page.json()["hypotheses"][0]["text"] == n_best[0][0].text


def test_documents_keep_to_the_terms(ask, translator):
    pytest.importorskip("bs4")
    pytest.importorskip("lxml")
    pytest.importorskip("python_multipart")
    page = "".join(f"<p>{text}</p>" for text in TEXTS[:2])
    form = {"files": {"file": ("a.html", page)}, "data": {"source": "en", "target": "de"}}
    html, sent = ask(
        ("POST", "/translate", {"json": {"q": page, "format": "html", "source": "en", "target": "de"}}),
        ("POST", "/translate_file", form),
    )
    (file,) = ask(("GET", sent.json()["translatedFileUrl"], {}))
    expected = translator.translate(TEXTS[:2], terms=TERMS)
    for found in (html.json()["translatedText"], file.text):
        assert re.findall("<p>(.*?)</p>", unescape(found)) == expected


def test_translations_that_begin_with_a_prefix_have_no_terms(ask, translator):
    rows = [{"text": TEXTS[0], "prefix": prefix} for prefix in ("Zwei", "")]
    body = {"instances": rows, "signature_name": "prefixed"}
    (answer,) = ask(("POST", "/v1/models/m:predict", {"json": body}))
    begun, whole = (row["translation"][0] for row in answer.json()["predictions"])
    assert "Hunde" in begun
    assert [whole] == translator.translate(TEXTS[:1], terms=TERMS)


def test_a_glossary_is_for_its_direction():
    one, several = pope(), bridge()
    models = [one, several]
    for direction, numbers in {"en-de": (1, 1), "fr-en": (0, 1), "": (1, 6)}.items():
        found = [glossaries_of(model, [Terms(direction, TERMS)]) for model in models]
        assert tuple(map(len, found)) == numbers
        expected = {tuple(direction.split("-"))} if direction else {("en", "de")}
        assert expected <= {glossary.direction for some in found for glossary in some}
    check_terms([Terms("en-de", TERMS), Terms("fr-en", TERMS)], models)
    check_terms([Terms("", TERMS)], [one, one])
    assert "en-de=" in message_of(check_terms, [Terms("", TERMS)], models)
    assert "en-nl" in message_of(check_terms, [Terms("en-nl", TERMS)], models)
    assert "en-fr" in message_of(check_terms, [Terms("en-fr", TERMS)] * 2, models)
    assert "en-de" in message_of(check_terms, [Terms("", TERMS), Terms("en-de", TERMS)], [one])


def test_models_that_do_not_align_are_refused():
    for model in (bridge(), pictures()):
        glossary = Glossary(TERMS, ("en", "de"))
        assert "tiny: terms" in message_of(Served, model, "tiny", glossaries=[glossary])


PRESET, BRIDGE = "pope_small_multi30k_en_de", "attention_bridge_m2m_tiny_multi30k"


@pytest.mark.parametrize(
    ("preset", "option", "says"),
    [
        (PRESET, "none.tsv", "none.tsv"),
        (PRESET, "de-en=terms.tsv", "en-de"),
        (PRESET, "en-de=none.tsv", "none.tsv"),
        (PRESET, "en-de=n=none.tsv", "n="),
        (BRIDGE, "en-es=terms.tsv", "en-es"),
        (BRIDGE, "terms.tsv", "name one"),
    ],
)
def test_bad_options_are_refused_before_the_model_is_loaded(preset, option, says, tmp_path):
    (tmp_path / "terms.tsv").write_text("dogs\tKöter\n")
    given = re.sub(r"\w+\.tsv", lambda name: str(tmp_path / name[0]), option)
    result = CliRunner().invoke(cli.app, ["serve", preset, "--port", "0", "--terms", given])
    assert isinstance(result.exception, UserError) and says in str(result.exception)
    assert "loading" not in result.stderr
