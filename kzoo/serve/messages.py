"""The fields of LibreTranslate's requests, read from JSON and forms, and of its answers."""

import importlib.util
import re
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl

import msgspec
from msgspec import Meta, Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request

from kzoo.errors import UserError
from kzoo.serve.keys import Keys, sent_key
from kzoo.serve.served import Served

MOST_FIELDS = 20  # of a form
FORMS = "application/x-www-form-urlencoded", "multipart/form-data"


class DetectQuestion(Struct):
    """A text, or several of one language."""

    q: Annotated[str | list[str], Meta(description="A text, or a list of texts.")]


class Question(DetectQuestion):
    """Texts to translate. Other fields are ignored, such as the `api_key` that clients send."""

    source: Annotated[str, Meta(description='The language of the texts; "auto": it is identified.')]
    target: Annotated[str, Meta(description="The language of the translations.")]
    format: Literal["text", "html"] = "text"
    alternatives: Annotated[int, Meta(ge=0, description="Further translations of each text.")] = 0


class FileQuestion(Struct):
    """A document to translate, as a form of `multipart/form-data`. Other fields are ignored."""

    file: Annotated[Any, Meta(extra_json_schema={"type": "string", "format": "binary"})]
    source: Annotated[str, Meta(description='The language of its texts; "auto": it is identified.')]
    target: Annotated[str, Meta(description="The language of the translations.")]


class TranslatedFile(Struct):
    """The answer to a document."""

    translatedFileUrl: Annotated[str, Meta(description="Where its translation can be had for some minutes.")]


class Detected(Struct):
    """A language that a text may be in."""

    confidence: Annotated[float, Meta(description="In percent.")]
    language: str


class Translation(Struct, omit_defaults=True):
    """The answer to a question with one text; `None` is left out."""

    translatedText: str
    detectedLanguage: Annotated[Detected | None, Meta(description='If the source is "auto".')] = None
    alternatives: Annotated[list[str] | None, Meta(description="If some are asked for.")] = None


class Translations(Struct, omit_defaults=True):
    """The answer to a question with a list of texts."""

    translatedText: list[str]
    detectedLanguage: list[Detected] | None = None
    alternatives: list[list[str]] | None = None


class Language(Struct):
    """A language, and those that it can be translated to."""

    code: str
    name: Annotated[str, Meta(description="In English.")]
    targets: list[str]


class Named(Struct):
    """A language."""

    code: str
    name: str


class Settings(Struct):
    """What LibreTranslate's page asks the server for."""

    charLimit: int
    frontendTimeout: Annotated[int, Meta(description="Milliseconds after the last key until it translates.")]
    apiKeys: bool
    keyRequired: bool
    suggestions: bool
    filesTranslation: bool
    supportedFilesFormat: Annotated[list[str], Meta(description="Endings of the names of documents.")]
    language: Annotated[dict[str, Named], Meta(description="The first source, and the first target.")]


class Health(Struct):
    """The answer of the probe."""

    status: Literal["ok"] = "ok"


async def question(request: Request, served: Served, kind: type, keys: Keys | None, files: int = 0):
    """Return a request's fields, of a JSON object, or of a form and the address, as a `kind`; check its key.

    A form may have some files.

    Raises:
        UserError: a field is missing or invalid, or the body is not what its Content-Type says.
        HTTPException: another Content-Type; `keys` are given, and the request has none of them.
    """
    body, content_type = await request.body(), request.headers.get("content-type", FORMS[0])
    media = content_type.partition(";")[0].strip().lower()
    is_json = media == "application/json" or media.endswith("+json")

    def fields() -> dict:
        if is_json:
            return _json_fields(body)
        sent = form.multi_items() if media == FORMS[1] else _form_fields(body)
        found = {}  # of a repeated field, as LibreTranslate, the first; those in the address come first
        for key, value in [*request.query_params.multi_items(), *sent]:
            found.setdefault(key, re.sub(r"\r\n?", "\n", value) if isinstance(value, str) else value)
        return found

    def read():
        given = {key: value for key, value in fields().items() if value not in (None, "", [])}
        if keys is not None:
            own = given.get("api_key")
            keys.check(sent_key(request.scope) or (own if isinstance(own, str) else None))
        try:
            return msgspec.convert(given, kind, strict=False)
        except msgspec.ValidationError as error:
            raise UserError(f"the request: {error}") from None

    if media == FORMS[1]:
        if not importlib.util.find_spec("python_multipart"):
            raise HTTPException(
                415, f"{FORMS[1]} needs python-multipart on the server: send {FORMS[0]} or JSON"
            )
        form = await request.form(max_files=files, max_fields=MOST_FIELDS)
    elif media not in FORMS and not is_json:
        raise HTTPException(415, f"Content-Type {media[:80]}: send application/json or {FORMS[0]}")
    return await served.in_thread(read, size=len(body))


def _json_fields(body: bytes) -> dict:
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"the body: {error}") from None
    if not isinstance(found, dict):
        raise UserError("the body: a JSON object is needed")
    return found


def _form_fields(body: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(body.decode(), max_num_fields=MOST_FIELDS, errors="strict")
    except ValueError:
        raise UserError(f"the body is not a form in UTF-8 of at most {MOST_FIELDS} fields") from None
