"""Keys: what a server with keys answers to requests with none, a wrong one, and a valid one."""

import contextlib
import hashlib
import hmac
import sys

import pytest
from asking import LIMITS, answers
from message_of import message_of
from starlette.exceptions import HTTPException
from tiny_models import BEAM, pope

from kzoo.decoding import SearchSettings
from kzoo.serve import Keys, Served, create_app

KEY, OTHER = "jvcV5S0u", "grün"
PREDICT = "/v1/models/tiny:predict"
BODY, FIELDS = {"instances": ["a man."]}, {"q": "a man.", "source": "en", "target": "de"}


@pytest.fixture(autouse=True)
def ready_at_once(usual_length):
    usual_length(0)


def line(key):
    return hashlib.sha256(key.encode()).hexdigest()


@pytest.fixture
def ask(tmp_path):
    """Return a function that sends requests to a server with two keys, and returns the answers."""
    file = tmp_path / "keys"
    file.write_text(f"# translators\n\n{line(KEY)}  -\n{line(OTHER).upper()} Ada's\n")
    pope().search = SearchSettings(BEAM)
    app = create_app(Served(pope(), "tiny", max_batch=1, limits=LIMITS), keys=Keys.read(file))

    return lambda *requests: answers(app, requests)


def bearer(key):
    return {"headers": {"Authorization": b"Bearer " + key.encode()}}


def test_valid_keys_in_the_header_the_address_and_the_body(ask):
    answers = ask(
        ("POST", PREDICT, {"json": BODY, **bearer(KEY)}),
        ("POST", PREDICT, {"json": BODY, "params": {"api_key": OTHER}}),
        ("GET", "/v1/models/tiny", bearer(KEY)),
        ("GET", "/v1/models/tiny", bearer(OTHER)),
        ("POST", "/translate", {"json": FIELDS | {"api_key": KEY}}),
        ("POST", "/translate", {"json": FIELDS, **bearer(KEY)}),
        ("POST", "/translate", {"data": FIELDS | {"api_key": OTHER}}),
        ("POST", "/translate", {"params": FIELDS | {"api_key": OTHER}}),
    )
    assert [answer.status_code for answer in answers] == [200] * len(answers)


def test_missing_and_wrong_keys(ask):
    wrong = "jvcV5S0v"
    missing = ask(
        ("POST", PREDICT, {"json": BODY}),
        ("POST", PREDICT, {"json": BODY, "headers": {"Authorization": "Basic " + KEY}}),
        ("GET", "/v1/models/tiny", {}),
        ("GET", "/", {}),
        ("GET", "/openapi.json", {}),
        ("POST", "/page/translate", {"json": {"text": "a man."}}),
        ("POST", "/translate", {"json": FIELDS}),
        ("POST", "/translate", {"json": {"api_key": [KEY], **FIELDS}}),
        ("POST", "/detect", {"data": {"q": "a man."}}),
    )
    refused = ask(
        ("POST", PREDICT, {"json": BODY, **bearer(wrong)}),
        ("POST", PREDICT, {"json": BODY, **bearer(line(KEY))}),
        ("POST", "/translate", {"json": FIELDS | {"api_key": wrong}}),
        ("POST", "/translate", {"data": FIELDS | {"api_key": wrong}}),
        ("POST", "/detect", {"params": {"q": "a man.", "api_key": KEY + " "}}),
    )
    for answer in (*missing, *refused):
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer"), answer.url
        assert list(answer.json()) == ["error"]


def test_all_keys_are_compared_in_constant_time_whichever_is_sent():
    """None ends the comparisons early."""
    keys, calls = Keys([bytes.fromhex(line(key)) for key in (KEY, OTHER, "third")]), []

    def seen(frame, event, function):
        if event == "c_call" and function is hmac.compare_digest:
            calls.append(function)

    for sent in (KEY, OTHER, "third", "wrong", KEY[:-1], "w" * 10_000):
        calls.clear()
        sys.setprofile(seen)
        with contextlib.suppress(HTTPException):
            keys.check(sent)
        sys.setprofile(None)
        assert len(calls) == 3


def test_probes_and_languages_need_no_key_and_there_is_no_page(ask):
    paths = ("/health", "/healthz", "/metrics", "/languages")
    *probes, page = ask(*(("GET", path, {}) for path in paths), ("GET", "/", bearer(KEY)))
    assert [answer.status_code for answer in probes] == [200] * len(paths)
    assert page.status_code == 404


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has no key"),
        (b"# none\n\n", "has no key"),
        (KEY.encode(), "line 1: not the SHA-256 of a key"),
        (b"\n" + b"a" * 63, "line 2"),
        (b"a" * 65, "line 1"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_files_that_are_no_keys(content, message, tmp_path):
    file = tmp_path / "keys"
    file.write_bytes(content)
    said = message_of(Keys.read, file)
    assert message in said
    assert KEY not in said
    assert str(tmp_path / "none") in message_of(Keys.read, tmp_path / "none")
