"""TensorFlow Serving's JSON: rows and columns, read and written."""

import base64
import json
from types import SimpleNamespace

import pytest

from kzoo.errors import UserError
from kzoo.serve.checks import padded_lengths
from kzoo.serve.requests import answer, read_request
from kzoo.serve.signatures import STRINGS, Signature, Tensor

OUTPUTS = {"translation": STRINGS, "score": Tensor("DT_FLOAT", (-1,))}
ONE = {"serving_default": Signature({"text": STRINGS}, OUTPUTS)}
PICTURES = {"serving_default": Signature({"text": STRINGS, "image": STRINGS}, OUTPUTS)}
FEATURES = {"serving_default": Signature({"text": STRINGS, "image": Tensor("DT_FLOAT", (-1, 2))}, OUTPUTS)}


def read(content, known=ONE):
    return read_request(content if isinstance(content, bytes) else json.dumps(content).encode(), known)


def b64(content: bytes) -> dict:
    return {"b64": base64.b64encode(content).decode()}


@pytest.mark.parametrize(
    ("known", "content", "columns"),
    [
        (ONE, {"instances": ["a", "ö"]}, {"text": ["a", "ö"]}),
        (ONE, {"instances": [{"text": "a"}, {"text": "b"}]}, {"text": ["a", "b"]}),
        (ONE, {"instances": [b64("ö".encode())]}, {"text": ["ö"]}),
        (ONE, {"inputs": ["a", b64(b"b")]}, {"text": ["a", "b"]}),
        (ONE, {"inputs": {"text": []}, "signature_name": ""}, {"text": []}),
        (PICTURES, {"inputs": {"text": ["a"], "image": [b64(b"\xff")]}}, {"text": ["a"], "image": [b"\xff"]}),
        (PICTURES, {"instances": [{"text": "a", "image": b64(b"")}]}, {"text": ["a"], "image": [b""]}),
        (FEATURES, {"instances": [{"text": "a", "image": [1, 2]}]}, {"text": ["a"], "image": [[1, 2]]}),
    ],
)
def test_rows_and_columns(known, content, columns):
    request = read(content, known)
    assert request.columns == columns
    assert request.by_row == ("instances" in content)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not readable JSON"),
        (b"{", "not readable JSON"),
        (b"\xff", "not UTF-8: byte 0"),
        (b"[" * 100_000, "not readable JSON"),
        (b'{"instances": [' + b"1" * 5000 + b"]}", "not readable JSON"),
        (b"[]", "must be a JSON object"),
        ({}, 'either "instances"'),
        ({"instances": ["a"], "inputs": ["a"]}, 'either "instances"'),
        ({"instances": []}, "at least one row"),
        ({"instances": "a"}, "at least one row"),
        ({"instances": [1]}, "text 1 must be a string"),
        ({"instances": ["a", ["b"]]}, "text 2 must be a string"),
        ({"instances": [{"txt": "a"}]}, "instance 1 must be an object with the keys text, not txt"),
        (
            {"instances": [{"text": "a", "source_language": "de"}]},
            "instance 1 must be an object with the keys text, not text, source_language",
        ),
        ({"instances": [{"text": "a"}, "b"]}, "instance 2 must be an object"),
        ({"instances": [{"b64": "?"}]}, "text 1 is not base64"),
        ({"instances": [{"b64": "ä"}]}, "text 1 is not base64"),
        ({"instances": [b64(b"\xff")]}, "text 1 is not UTF-8"),
        ({"inputs": "a"}, "must have a list of text"),
        ({"inputs": {"txt": ["a"]}}, "must have a list of text"),
        ({"instances": ["a"], "signature_name": "x"}, 'Serving signature name: "x" not found'),
        ({"instances": ["a"], "signature_name": 1}, "must be a string"),
    ],
)
def test_what_is_wrong_is_said(content, message):
    with pytest.raises(UserError, match=message) as error:
        read(content)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"instances": ["a"]}, "instance 1 must be an object with the keys text, image"),
        ({"inputs": ["a"]}, "must be an object with a list for each of text, image"),
        ({"inputs": {"text": ["a", "b"], "image": [b64(b"")]}}, "2 of text, 1 of image"),
        ({"instances": [{"text": "a", "image": "aGk="}]}, 'image 1 must be {"b64"'),
    ],
)
def test_what_is_wrong_with_several_inputs_is_said(content, message):
    with pytest.raises(UserError, match=message):
        read(content, PICTURES)


def test_answers_are_as_the_request_was_written():
    outputs = {"translation": ["x", "y"], "score": [-1.0, -2.0]}
    rows = [{"translation": "x", "score": -1.0}, {"translation": "y", "score": -2.0}]
    assert answer(read({"instances": ["a", "b"]}), outputs) == {"predictions": rows}
    assert answer(read({"inputs": ["a", "b"]}), outputs) == {"outputs": outputs}
    vectors = {"embedding": [[1.0, 2.0]]}
    assert answer(read({"instances": ["a"]}), vectors) == {"predictions": [[1.0, 2.0]]}
    assert answer(read({"inputs": ["a"]}), vectors) == {"outputs": [[1.0, 2.0]]}


def test_tokenizing_stops_soon_after_the_first_sentence_that_is_too_long():
    tokenized = []

    def tokenizer(texts):
        tokenized.extend(texts)
        return [text.split() for text in texts]

    model = SimpleNamespace(backbone=SimpleNamespace(max_length=16), source_tokenizer=tokenizer)
    assert padded_lengths(model, ["a", "b c"] * 20, [None] * 40) == [16] * 40
    tokenized.clear()
    with pytest.raises(UserError, match="sentence 12 has 16 subwords, the model reads at most 15"):
        padded_lengths(model, ["a"] * 11 + ["a " * 16] * 200, [None] * 211)
    assert len(tokenized) < 50
