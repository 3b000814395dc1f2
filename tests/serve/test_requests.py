"""TensorFlow Serving's JSON: rows and columns, read and written."""

import base64
import json

import pytest
from message_of import message_of

from kzoo.serve.inputs import Limits
from kzoo.serve.rest import STRINGS, RequestReader, Signature, Tensor, answer

OUTPUTS = {"translation": STRINGS, "score": Tensor("DT_FLOAT", (-1,))}
ONE = {"serving_default": Signature({"text": STRINGS}, OUTPUTS)}
PICTURES = {"serving_default": Signature({"text": STRINGS, "image": STRINGS}, OUTPUTS)}
FEATURES = {"serving_default": Signature({"text": STRINGS, "image": Tensor("DT_FLOAT", (-1, 2))}, OUTPUTS)}


def read(content, known=ONE):
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return RequestReader(known, Limits(sentences=4)).read(body)


def b64(content: bytes) -> dict:
    return {"b64": base64.b64encode(content).decode()}


@pytest.mark.parametrize(
    ("known", "content", "columns"),
    [
        (ONE, {"instances": ["a", "ö"]}, {"text": ["a", "ö"]}),
        (ONE, {"instances": [{"text": "a"}, {"text": "b"}]}, {"text": ["a", "b"]}),
        (ONE, {"inputs": ["a", "b"]}, {"text": ["a", "b"]}),
        (ONE, {"inputs": {"text": []}, "signature_name": ""}, {"text": []}),
        (PICTURES, {"inputs": {"text": ["a"], "image": [b64(b"\xff")]}}, {"text": ["a"], "image": [b"\xff"]}),
        (PICTURES, {"instances": [{"text": "a", "image": b64(b"")}]}, {"text": ["a"], "image": [b""]}),
        (ONE, {"instances": [{"text": ""}, ""]}, {"text": ["", ""]}),
    ],
)
def test_rows_and_columns(known, content, columns):
    request = read(content, known)
    assert request.columns == columns
    assert request.by_row == ("instances" in content)


def test_numbers_are_read_into_arrays():
    (image,) = read({"instances": [{"text": "a", "image": [1, 2.5]}]}, FEATURES).columns["image"]
    assert (image.dtype, image.tolist()) == ("float32", [1, 2.5])


def test_rows_are_counted_before_anything_is_made_of_them():
    """Each would be an error."""
    asked = {"instances": [{"text": "a", "image": [1]}] * 1000}
    assert "1,000 sentences" in message_of(read, asked, FEATURES)


@pytest.mark.parametrize(
    ("known", "content", "name"),
    [
        (ONE, b"", "truncated"),
        (ONE, b"{", "truncated"),
        (ONE, b"\xff", "malformed"),
        (ONE, b'{"instances": ["\xff"]}', "utf-8"),
        (ONE, b'{"instances": ["\\ud800"]}', "truncated"),
        (ONE, b"[" * 100_000, "`array`"),
        (ONE, b'{"instances": ' + b"[" * 100_000, "recursion"),
        (ONE, b'{"instances": [' + b"1" * 5000 + b"]}", "instances"),
        (ONE, b"[]", "`array`"),
        (ONE, {"instances": ["a"], "length_penalti": 1}, "`length_penalti`"),
        (ONE, {"length_penalti": 1}, "(of signature_name, split_sentences, instances, inputs)"),
        (ONE, {}, '"instances"'),
        (ONE, {"instances": ["a"], "inputs": ["a"]}, '"instances"'),
        (ONE, {"instances": []}, "instances (of text)"),
        (ONE, {"instances": "a"}, "`str`"),
        (ONE, {"instances": ["a"] * 5}, "5 sentences"),
        (ONE, {"instances": [1]}, "`$[0]`"),
        (ONE, {"instances": ["a", ["b"]]}, "`$[1]`"),
        (ONE, {"instances": [{"txt": "a"}]}, "`txt` - at `$[0]`"),
        (ONE, {"instances": [{"text": "a", "source_language": 5}]}, "`$[0].source_language`"),
        (ONE, {"instances": [{}]}, "`text`"),
        (ONE, {"instances": [b64(b"a")]}, "`b64`"),
        (ONE, {"inputs": "a"}, "inputs (of text)"),
        (ONE, {"inputs": ["a"] * 5}, "5 sentences"),
        (ONE, {"inputs": {"txt": ["a"]}}, "`txt`"),
        (ONE, {"inputs": {"text": ["a", "b"], "source_language": ["de"]}}, "2 of text, 1 of source_language"),
        (ONE, {"inputs": {"text": "a"}}, "`$.text`"),
        (ONE, {"instances": ["a"], "signature_name": "x"}, "serving_default"),
        (ONE, {"instances": ["a"], "signature_name": 1}, "`$.signature_name`"),
        (PICTURES, {"instances": ["a"]}, "instances (of text, image)"),
        (PICTURES, {"instances": [{"text": "a"}]}, "`image` - at `$[0]`"),
        (PICTURES, {"inputs": ["a"]}, "inputs (of text, image)"),
        (PICTURES, {"inputs": {"text": ["a", "b"], "image": [b64(b"")]}}, "2 of text, 1 of image"),
        (PICTURES, {"instances": [{"text": "a", "image": "aGk="}]}, "`$[0].image`"),
        (FEATURES, {"inputs": {"text": ["a"], "image": [[1, "2"]]}}, "`$.image[0][1]`"),
    ],
)
def test_what_is_wrong_is_said(known, content, name):
    assert name in message_of(read, content, known)


def test_answers_are_as_the_request_was_written():
    outputs = {"translation": ["x", "y"], "score": [-1.0, -2.0]}
    rows = [{"translation": "x", "score": -1.0}, {"translation": "y", "score": -2.0}]

    def answered(content, outputs):
        return json.loads(answer(read(content), outputs))

    assert answered({"instances": ["a", "b"]}, outputs) == {"predictions": rows}
    assert answered({"inputs": ["a", "b"]}, outputs) == {"outputs": outputs}
    vectors = {"embedding": [[1.0, 2.0]]}
    assert answered({"instances": ["a"]}, vectors) == {"predictions": [[1.0, 2.0]]}
    assert answered({"inputs": ["a"]}, vectors) == {"outputs": [[1.0, 2.0]]}
    noted = json.loads(answer(read({"instances": ["a", "b"]}), outputs, ["", "好"]))
    assert noted == {"predictions": rows, "unknown_characters": ["", "好"]}
