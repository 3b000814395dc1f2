"""LibreTranslate's clients against the server: libretranslatepy, and deep-translator's class for it."""

import urllib.error

import pytest
from tiny_models import pope

TEXT, OTHER = "a man.", "two dogs & men.\nmen."


@pytest.fixture(autouse=True)
def ready_at_once(usual_length):
    usual_length(0)


@pytest.fixture
def address(served):
    return served(pope)[1] + "/"


def expected(*texts):
    return pope().translate(texts, split_sentences=True)


def test_libretranslatepy(address):
    client = pytest.importorskip("libretranslatepy").LibreTranslateAPI(address)
    assert [client.translate(text, "en", "de") for text in (TEXT, OTHER)] == expected(TEXT, OTHER)
    assert {row["code"]: row["targets"] for row in client.languages()} == {"en": ["de", "en"], "de": ["de"]}
    with pytest.raises(urllib.error.HTTPError) as caught:
        client.translate(TEXT, "fr", "de")
    assert caught.value.code == 400


def test_libretranslatepy_identifies_languages(address):
    client = pytest.importorskip("libretranslatepy").LibreTranslateAPI(address)
    pytest.importorskip("py3langid")
    assert client.detect("Zwei Männer sitzen auf einer Bank.")[0]["language"] == "de"
    assert client.translate("two dogs.", "auto", "de") == expected("two dogs.")[0]


def test_deep_translator(address):
    deep_translator = pytest.importorskip("deep_translator")
    client = deep_translator.LibreTranslator("en", "German", api_key="none", custom_url=address)
    assert client.translate_batch([TEXT, OTHER]) == expected(TEXT, OTHER)
    other = deep_translator.LibreTranslator("fr", "de", api_key="none", custom_url=address)
    with pytest.raises(deep_translator.exceptions.ServerException):
        other.translate("un chien")
