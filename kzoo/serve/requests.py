"""What clients may ask, in types: the SavedModel's signatures, TensorFlow Serving's JSON, the page's JSON."""

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from kzoo.errors import UserError
from kzoo.serve.images import features, image_kind
from kzoo.serve.limits import Limits
from kzoo.serve.served import Served


@dataclass(frozen=True)
class Tensor:
    """A named input or output: its TensorFlow type, and its shape, with -1 for any size."""

    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Signature:
    """A way to call a model."""

    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]


STRINGS, NUMBERS = Tensor("DT_STRING", (-1,)), Tensor("DT_FLOAT", (-1,))


def signatures(served: Served) -> dict[str, Signature]:
    """Return the signatures, by name, of the SavedModel that `export` writes from a served preset."""
    inputs = {"text": STRINGS}
    if served.translator.multilingual:
        inputs |= {"source_language": STRINGS, "target_language": STRINGS}
    shape = served.translator.image_shape
    if kind := image_kind(shape):
        inputs["image"] = STRINGS if kind == "picture" else Tensor("DT_FLOAT", (-1, *shape))
    K = served.settings.beam_size
    several = {"translation": Tensor("DT_STRING", (-1, K)), "score": Tensor("DT_FLOAT", (-1, K))}
    found = {
        "serving_default": Signature(inputs, {"translation": STRINGS, "score": NUMBERS}),
        "n_best": Signature(inputs, several),
        "prefixed": Signature({**inputs, "prefix": STRINGS}, several),
    }
    if served.translator.embeds:
        k, D = served.translator.backbone.matrix_shape
        embedding = {"embedding": Tensor("DT_FLOAT", (-1, k * D))}
        found["embed"] = Signature({"text": STRINGS, "language": STRINGS}, embedding)
    return found


class PageRequest(Struct, forbid_unknown_fields=True):
    """The page's request for a translation.

    Args:
        text: one sentence or several.
        source_language, target_language: codes, for a preset with more than one of them.
        image: in base64, a JPEG or PNG file, or an .npy file with features, for a preset that reads images.
        n: int. Number of translations.
        split_sentences: bool. Whether each sentence of the text is translated by itself.
    """

    text: str
    source_language: str | None = None
    target_language: str | None = None
    image: bytes | None = None
    n: int = 1
    split_sentences: bool = True


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


PAGE, BODY = msgspec.json.Decoder(PageRequest), msgspec.json.Decoder(Body)


def read_page_request(body: bytes) -> PageRequest:
    """Return what the page asks for.

    Raises:
        UserError: it is not what a page would ask for.
    """
    return _decoded(PAGE, body, "the body")


@dataclass(frozen=True)
class Request:
    """A request: the signature that it calls, a list of rows for each input, its format, whether to split."""

    signature: str
    columns: dict[str, list]
    by_row: bool
    split_sentences: bool | None = None


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
        asked = _decoded(BODY, body, "the body")
        name = asked.signature_name or "serving_default"
        if name not in self._known:
            known = ", ".join(self._known)
            raise UserError(
                f'Serving signature name: "{name[:80]}" not found in signature def; known: {known}'
            )
        if (asked.instances is UNSET) == (asked.inputs is UNSET):
            raise UserError('give either "instances", a list of rows, or "inputs", a list for each input')
        inputs = self._known[name].inputs
        if by_row := asked.inputs is UNSET:
            rows = _decoded(self._rows[name], asked.instances, f"instances (of {', '.join(inputs)})")
            self._limits.check_count(len(rows))
            if len(inputs) > 1:
                columns = {key: [getattr(row, key) for row in rows] for key in inputs}
            else:
                columns = {"text": rows}
        else:
            found = _decoded(self._columns[name], asked.inputs, f"inputs (of {', '.join(inputs)})")
            columns = {"text": found} if isinstance(found, list) else msgspec.structs.asdict(found)
            self._check_columns(columns)
        columns = {key: _values(key, columns[key], inputs[key]) for key in inputs}
        return Request(name, columns, by_row, asked.split_sentences)

    def _check_columns(self, columns: dict[str, list]):
        counts = {len(values) for values in columns.values()}
        self._limits.check_count(max(counts))
        if len(counts) > 1:
            each = ", ".join(f"{len(values):,} of {key}" for key, values in columns.items())
            raise UserError(f"all inputs must have a row for each text: there are {each}")


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


def _decoded(decoder: msgspec.json.Decoder, content: bytes | Raw, called: str) -> Any:
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


def _values(key: str, values: list, tensor: Tensor) -> list:
    """Return an input's rows: str, bytes for images, or arrays of numbers."""
    if tensor.dtype != "DT_STRING":
        return [features(value, tensor.shape[1:], number) for number, value in enumerate(values, 1)]
    if key == "image":
        return [value.b64 for value in values]
    return [_text(key, value, number) for number, value in enumerate(values, 1)]


def _text(key: str, value: str | Bytes | TextRow, number: int) -> str:
    if isinstance(value, TextRow) and value.text is not UNSET:
        value = value.text
    try:
        return value if isinstance(value, str) else value.b64.decode()
    except UnicodeDecodeError:
        raise UserError(f"{key} {number} is not UTF-8") from None


def answer(request: Request, outputs: dict[str, list]) -> bytes:
    """Return outputs as JSON, by row or column as in the request; a single output without its name."""
    single = next(iter(outputs.values())) if len(outputs) == 1 else None
    if not request.by_row:
        return msgspec.json.encode({"outputs": outputs if single is None else single})
    rows = [dict(zip(outputs, row, strict=True)) for row in zip(*outputs.values(), strict=True)]
    return msgspec.json.encode({"predictions": rows if single is None else single})


def metadata(served: Served) -> dict:
    """Return what TensorFlow Serving's metadata interface answers, and the engine."""
    described = {name: _described(name, signature) for name, signature in signatures(served).items()}
    return {
        "model_spec": {"name": served.name, "signature_name": "", "version": str(served.version)},
        "metadata": {"signature_def": {"signature_def": described}, "engine": served.engine},
    }


def _described(name: str, signature: Signature) -> dict:
    return {
        "inputs": {key: _tensor_info(f"{name}_{key}:0", value) for key, value in signature.inputs.items()},
        # In a SavedModel all outputs are of one operation, in the order of their names.
        "outputs": {
            key: _tensor_info(f"{name}:{number}", signature.outputs[key])
            for number, key in enumerate(sorted(signature.outputs))
        },
        "method_name": "tensorflow/serving/predict",
        "defaults": {},
    }


def _tensor_info(name: str, tensor: Tensor) -> dict:
    dimensions = [{"size": str(size), "name": ""} for size in tensor.shape]
    return {
        "dtype": tensor.dtype,
        "tensor_shape": {"dim": dimensions, "unknown_rank": False},
        "name": name,
    }
