"""Reads TensorFlow Serving's JSON requests into columns, and writes columns as its answers."""

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from kzoo.errors import UserError
from kzoo.serve.checks import Limits, check_count
from kzoo.serve.pictures import features
from kzoo.serve.signatures import Signature, Tensor


@dataclass(frozen=True)
class Request:
    """A request: the signature that it calls, a list of rows for each input, its format, whether to split."""

    signature: str
    columns: dict[str, list]
    by_row: bool
    split_sentences: bool | None = None


class Body(Struct, forbid_unknown_fields=True):
    """A request's body; what it asks to compute from is read when the signature is known."""

    signature_name: str = ""
    split_sentences: bool | None = None  # unlike TensorFlow Serving's
    instances: Raw = UNSET
    inputs: Raw = UNSET


class Bytes(Struct, forbid_unknown_fields=True):
    """A value as TensorFlow Serving writes bytes."""

    b64: bytes


class TextRow(Struct, forbid_unknown_fields=True):
    """A row of a signature whose only input is text: bytes, or an object with the input's name."""

    text: str | Bytes | UnsetType = UNSET
    b64: bytes | UnsetType = UNSET

    def __post_init__(self):
        if (self.text is UNSET) == (self.b64 is UNSET):
            raise ValueError("Object missing required field `text`")


class RequestReader:
    """Reads the requests to a model.

    Args:
        known: the model's signatures.
        limits: the number of rows that a request may have.
    """

    def __init__(self, known: dict[str, Signature], limits: Limits):
        self._known, self._limits = known, limits
        self._rows = {name: msgspec.json.Decoder(_rows(one.inputs)) for name, one in known.items()}
        self._columns = {name: msgspec.json.Decoder(_columns(one.inputs)) for name, one in known.items()}

    def read(self, body: bytes) -> Request:
        """Return what a request's body asks for.

        Args:
            body: JSON, with "instances" (a list of rows) or "inputs" (a list for each input); perhaps
                "signature_name", and "split_sentences".

        Raises:
            UserError: it is not a valid request.
        """
        asked = decoded(BODY, body, "the body")
        name = asked.signature_name or "serving_default"
        if name not in self._known:
            raise UserError(f'Serving signature name: "{name[:80]}" not found in signature def')
        if (asked.instances is UNSET) == (asked.inputs is UNSET):
            raise UserError('give either "instances", a list of rows, or "inputs", a list for each input')
        inputs, by_row = self._known[name].inputs, asked.inputs is UNSET
        decoder = self._rows[name] if by_row else self._columns[name]
        key, content = ("instances", asked.instances) if by_row else ("inputs", asked.inputs)
        found = decoded(decoder, content, f"{key} (of {', '.join(inputs)})")
        columns = self._from_rows(found, inputs) if by_row else self._from_columns(found, inputs)
        columns = {key: _values(key, columns[key], inputs[key]) for key in inputs}
        return Request(name, columns, by_row, asked.split_sentences)

    def _from_rows(self, rows: list, inputs: dict[str, Tensor]) -> dict[str, list]:
        check_count(len(rows), self._limits)
        if len(inputs) > 1:
            return {key: [getattr(row, key) for row in rows] for key in inputs}
        return {"text": [row.text if getattr(row, "text", UNSET) is not UNSET else row for row in rows]}

    def _from_columns(self, columns: Struct | list, inputs: dict[str, Tensor]) -> dict[str, list]:
        if isinstance(columns, list):
            columns = {"text": columns}
        else:
            columns = {key: getattr(columns, key) for key in inputs}
        counts = {len(values) for values in columns.values()}
        check_count(max(counts), self._limits)
        if len(counts) > 1:
            each = ", ".join(f"{len(values):,} of {key}" for key, values in columns.items())
            raise UserError(f"all inputs must have a row for each text: there are {each}")
        return columns


BODY = msgspec.json.Decoder(Body)


def decoded(decoder: msgspec.json.Decoder, content: bytes | Raw, called: str) -> Any:
    """Return JSON as the decoder's type.

    Raises:
        UserError: it is not JSON, or not of that type.
    """
    try:
        return decoder.decode(content)
    except msgspec.ValidationError as error:
        raise UserError(f"{called}: {error}") from None
    except UnicodeDecodeError:
        raise UserError(f"{called} is not UTF-8") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise UserError(f"{called} is not readable JSON: {error}") from None


def answer(request: Request, outputs: dict[str, list]) -> bytes:
    """Return outputs as JSON, by row or column as in the request; a single output without its name."""
    single = next(iter(outputs.values())) if len(outputs) == 1 else None
    if not request.by_row:
        return msgspec.json.encode({"outputs": outputs if single is None else single})
    rows = [dict(zip(outputs, row, strict=True)) for row in zip(*outputs.values(), strict=True)]
    return msgspec.json.encode({"predictions": rows if single is None else single})


def _rows(inputs: dict[str, Tensor]) -> type:
    """Return the type of "instances"."""
    row = str | TextRow
    if len(inputs) > 1:
        row = _struct("Row", {key: _type(key, tensor) for key, tensor in inputs.items()})
    return Annotated[list[row], Meta(min_length=1)]


def _columns(inputs: dict[str, Tensor]) -> type:
    """Return the type of "inputs"."""
    types = {key: list[_type(key, tensor)] for key, tensor in inputs.items()}
    several = _struct("Columns", types)
    return several if len(inputs) > 1 else several | types["text"]


def _struct(name: str, types: dict[str, type]) -> type:
    return msgspec.defstruct(name, list(types.items()), forbid_unknown_fields=True)


def _type(key: str, tensor: Tensor) -> type:
    """Return the type of an input's value."""
    if tensor.dtype == "DT_STRING":
        return Bytes if key == "image" else str | Bytes
    found = float
    for _ in tensor.shape[1:]:
        found = list[found]
    return found


def _values(key: str, values: list, tensor: Tensor) -> list:
    """Return an input's rows: str, bytes for images, or arrays of numbers."""
    if tensor.dtype != "DT_STRING":
        return [features(value, tensor.shape[1:], number) for number, value in enumerate(values, 1)]
    if key == "image":
        return [value.b64 for value in values]
    return [_text(key, value, number) for number, value in enumerate(values, 1)]


def _text(key: str, value: str | Bytes | TextRow, number: int) -> str:
    try:
        return value if isinstance(value, str) else value.b64.decode()
    except UnicodeDecodeError:
        raise UserError(f"{key} {number} is not UTF-8") from None
