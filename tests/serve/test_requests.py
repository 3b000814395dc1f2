"""TensorFlow Serving's JSON: rows and columns, read and written."""

import base64
import json
from types import SimpleNamespace

import pytest

from kzoo.errors import UserError
from kzoo.serve.limits import Limits, read_tokens
from kzoo.serve.requests import STRINGS, RequestReader, Signature, Tensor, answer

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
    with pytest.raises(UserError, match=r"image 1 is float64 \(1,\), not 2 numbers"):
        read({"inputs": {"text": ["a"], "image": [[1]]}}, FEATURES)
    with pytest.raises(UserError, match=r"Expected `float`, got `str` - at `\$.image\[0\]\[1\]`"):
        read({"inputs": {"text": ["a"], "image": [[1, "2"]]}}, FEATURES)


def test_rows_are_counted_before_anything_is_made_of_them():
    """Each would be an error."""
    with pytest.raises(UserError, match="1,000 sentences in a request; at most 4"):
        read({"instances": [{"text": "a", "image": [1]}] * 1000}, FEATURES)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "truncated"),
        (b"{", "truncated"),
        (b"\xff", "the body .*malformed"),
        (b'{"instances": ["\xff"]}', "instances .*utf-8"),
        (b'{"instances": ["\\ud800"]}', "truncated"),
        (b"[" * 100_000, "Expected `object`, got `array`"),
        (b'{"instances": ' + b"[" * 100_000, "recursion"),
        (b'{"instances": [' + b"1" * 5000 + b"]}", "instances"),
        (b"[]", "Expected `object`, got `array`"),
        (
            {"instances": ["a"], "length_penalti": 1},
            r"\(of signature_name, split_sentences, instances, inputs\): .* unknown field `length_penalti`",
        ),
        ({}, 'either "instances"'),
        ({"instances": ["a"], "inputs": ["a"]}, 'either "instances"'),
        ({"instances": []}, r"instances \(of text\): Expected `array` of length >= 1"),
        ({"instances": "a"}, r"instances \(of text\): Expected `array`, got `str`"),
        ({"instances": ["a"] * 5}, "5 sentences in a request; at most 4"),
        ({"instances": [1]}, r"got `int` - at `\$\[0\]`"),
        ({"instances": ["a", ["b"]]}, r"got `array` - at `\$\[1\]`"),
        ({"instances": [{"txt": "a"}]}, r"instances \(of text\): .* unknown field `txt` - at `\$\[0\]`"),
        ({"instances": [{"text": "a", "source_language": "de"}]}, "unknown field `source_language`"),
        ({"instances": [{}]}, "missing required field `text`"),
        ({"instances": [b64(b"a")]}, "unknown field `b64`"),
        ({"inputs": "a"}, r"inputs \(of text\): Expected `object | array`, got `str`"),
        ({"inputs": ["a"] * 5}, "5 sentences in a request; at most 4"),
        ({"inputs": {"txt": ["a"]}}, "unknown field `txt`"),
        ({"inputs": {"text": ["a"], "source_language": ["de"]}}, "unknown field `source_language`"),
        ({"inputs": {"text": "a"}}, r"Expected `array`, got `str` - at `\$.text`"),
        ({"instances": ["a"], "signature_name": "x"}, 'name: "x" not found in .*; known: serving_default'),
        ({"instances": ["a"], "signature_name": 1}, "Expected `str`, got `int` - at `\\$.signature_name`"),
    ],
)
def test_what_is_wrong_is_said(content, message):
    with pytest.raises(UserError, match=message) as error:
        read(content)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"instances": ["a"]}, r"instances \(of text, image\): Expected `object`, got `str` - at `\$\[0\]`"),
        ({"instances": [{"text": "a"}]}, r"missing required field `image` - at `\$\[0\]`"),
        ({"inputs": ["a"]}, r"inputs \(of text, image\): Expected `object`, got `array`"),
        ({"inputs": {"text": ["a", "b"], "image": [b64(b"")]}}, "2 of text, 1 of image"),
        (
            {"instances": [{"text": "a", "image": "aGk="}]},
            r"Expected `object`, got `str` - at `\$\[0\].image`",
        ),
    ],
)
def test_what_is_wrong_with_several_inputs_is_said(content, message):
    with pytest.raises(UserError, match=message):
        read(content, PICTURES)


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


def test_tokenizing_stops_soon_after_the_first_sentence_that_is_too_long():
    tokenized = []

    def tokenizer(texts):
        tokenized.extend(texts)
        return [text.split() for text in texts]

    known = {"en": tokenizer, "de": lambda texts: [text.split() * 2 for text in texts]}
    model = SimpleNamespace(multilingual=True, tokenizers=known, tokenizer_options=lambda target: {})
    directions = [("en", "de"), ("de", "en"), ("de", "fr"), ("en", "de")] * 10
    tokens = read_tokens(model, ["a", "b c"] * 20, directions, 16)
    assert [len(sentence) for sentence in tokens] == [1, 4, 2, 2] * 10
    tokenized.clear()
    with pytest.raises(UserError, match="sentence 12 has 16 subwords, the model reads at most 15"):
        read_tokens(model, ["a"] * 11 + ["a " * 16] * 200, [("en", "de")] * 211, 16)
    assert len(tokenized) < 50
