"""Reads TensorFlow Serving's JSON requests into columns, and writes columns as its answers."""

import base64
import binascii
import json
from dataclasses import dataclass

from kzoo.errors import UserError
from kzoo.serve.signatures import Signature, Tensor

# A value as TensorFlow Serving writes bytes.
BYTES = "b64"


@dataclass(frozen=True)
class Request:
    """A request: the signature that it calls, a list of rows for each input, its format, whether to split."""

    signature: str
    columns: dict[str, list]
    by_row: bool
    split_sentences: bool | None = None


def read_request(body: bytes, known: dict[str, Signature]) -> Request:
    """Return what a request's body asks for.

    Args:
        body: JSON, with "instances" (a list of rows) or "inputs" (a list for each input); and, unlike
            TensorFlow Serving's, perhaps "split_sentences", true or false.
        known: the model's signatures.

    Raises:
        UserError: it is not a valid request.
    """
    content = _parsed(body)
    name = content.get("signature_name", "serving_default")
    if not isinstance(name, str):
        raise UserError("signature_name must be a string")
    name = name or "serving_default"
    if name not in known:
        raise UserError(f'Serving signature name: "{name[:80]}" not found in signature def')
    if ("instances" in content) == ("inputs" in content):
        raise UserError('give either "instances", a list of rows, or "inputs", a list for each input')
    split = content.get("split_sentences")
    if not isinstance(split, bool | None):
        raise UserError("split_sentences must be true or false")
    by_row = "instances" in content
    inputs = known[name].inputs
    columns = _from_rows(content["instances"], inputs) if by_row else _from_columns(content["inputs"], inputs)
    columns = {key: _values(key, values, inputs[key]) for key, values in columns.items()}
    counts = {len(values) for values in columns.values()}
    if len(counts) > 1:
        each = ", ".join(f"{len(values):,} of {key}" for key, values in columns.items())
        raise UserError(f"all inputs must have a row for each text: there are {each}")
    return Request(name, columns, by_row, split)


def answer(request: Request, outputs: dict[str, list]) -> dict:
    """Return outputs as an answer, by row or column as in the request; a single output without its name."""
    single = next(iter(outputs.values())) if len(outputs) == 1 else None
    if not request.by_row:
        return {"outputs": outputs if single is None else single}
    rows = [dict(zip(outputs, row, strict=True)) for row in zip(*outputs.values(), strict=True)]
    return {"predictions": rows if single is None else single}


def _parsed(body: bytes) -> dict:
    try:
        content = json.loads(body.decode())
    except UnicodeDecodeError as error:
        raise UserError(f"the body is not UTF-8: byte {error.start:,} cannot be read") from None
    except (ValueError, RecursionError) as error:  # a number with thousands of digits; deeply nested lists
        raise UserError(f"the body is not readable JSON: {error}") from None
    if not isinstance(content, dict):
        raise UserError('the body must be a JSON object with "instances" or "inputs"')
    return content


def _is_object(value) -> bool:
    return isinstance(value, dict) and set(value) != {BYTES}


def _from_rows(rows, inputs: dict[str, Tensor]) -> dict[str, list]:
    if not isinstance(rows, list) or not rows:
        raise UserError('"instances" must be a list of at least one row')
    if len(inputs) == 1 and not _is_object(rows[0]):
        return {next(iter(inputs)): rows}
    for number, row in enumerate(rows, 1):
        if not _is_object(row) or set(row) != set(inputs):
            keys = list(row) if isinstance(row, dict) else []
            has = f", not {', '.join(keys)[:80]}" if keys else ""
            raise UserError(f"instance {number} must be an object with the keys {', '.join(inputs)}{has}")
    return {key: [row[key] for row in rows] for key in inputs}


def _from_columns(columns, inputs: dict[str, Tensor]) -> dict[str, list]:
    if not _is_object(columns):
        if len(inputs) > 1:
            raise UserError(f'"inputs" must be an object with a list for each of {", ".join(inputs)}')
        columns = {next(iter(inputs)): columns}
    for key in inputs:
        if not isinstance(columns.get(key), list):
            raise UserError(f'"inputs" must have a list of {key}')
    return {key: columns[key] for key in inputs}


def _values(key: str, values: list, tensor: Tensor) -> list:
    """Return an input's rows: str, bytes for images, or nested lists of numbers."""
    if tensor.dtype != "DT_STRING":
        return values
    as_bytes = key == "image"
    return [_string(key, value, number, as_bytes) for number, value in enumerate(values, 1)]


def _string(key: str, value, number: int, as_bytes: bool) -> str | bytes:
    if isinstance(value, str) and not as_bytes:
        return value
    if not (isinstance(value, dict) and set(value) == {BYTES} and isinstance(value[BYTES], str)):
        wanted = '{"b64": "…"}' if as_bytes else "a string"
        raise UserError(f"{key} {number} must be {wanted}")
    try:
        content = base64.b64decode(value[BYTES], validate=True)
        return content if as_bytes else content.decode()
    except UnicodeDecodeError:
        raise UserError(f"{key} {number} is not UTF-8") from None
    except (binascii.Error, ValueError):
        raise UserError(f"{key} {number} is not base64") from None
