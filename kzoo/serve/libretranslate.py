"""LibreTranslate's API: translation, language identification, the languages served, health.

https://docs.libretranslate.com/api/
"""

import importlib.util
import itertools
import re
import sys
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import parse_qsl, quote

import msgspec
from msgspec import Meta, Struct
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kzoo.documents.document import BY_ENDING
from kzoo.documents.markup import Markup
from kzoo.documents.translating import DONE, next_step, translating
from kzoo.errors import UserError
from kzoo.serve.files import Documents, Upload, finished
from kzoo.serve.keys import DOWNLOADS, Keys, sent_key
from kzoo.serve.served import Served
from kzoo.text.languages import Direction, common_code, english_name, main_code, matching_code

AUTO = "auto"
MOST_FIELDS = 20  # of a form
CANDIDATES = 3  # languages that a text may be in, as LibreTranslate lists them
MOST_IDENTIFIED = 5_000  # characters of a document
# Sentences that one call translates or aligns: other requests wait less, and several documents have room in
# the queue.
PORTIONS = {"translate": 64, "align": 16}
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


class Way(NamedTuple):
    """A model, and its codes of a direction."""

    served: Served
    direction: Direction


class Directions:
    """The directions that presets translate, with the codes that clients use: of two letters if possible.

    Each language can be "translated" to itself, as with LibreTranslate: the text stays as it is.

    Args:
        models: the presets. Of those with a direction, the first one translates it.
    """

    def __init__(self, models: Sequence[Served]):
        readers = [served for served in models if served.translator.image_shape is None]
        pairs = {served: _pairs(served.translator) for served in readers}
        # Those that do not name their languages take any.
        self._models = sorted(readers, key=lambda served: not pairs[served])
        targets = {}
        for one, other in itertools.chain(*pairs.values()):
            start, end = common_code(one), common_code(other)
            targets.setdefault(start, {start}).add(end)
            targets.setdefault(end, {end})
        self.targets = {code: sorted(targets[code]) for code in sorted(targets)}

    def resolved(self, source: str, target: str) -> Way | None:
        """Return the model of a direction, with its codes; `None` if both languages are the same.

        Raises:
            UserError: no model translates the direction, or all read images.
        """
        if not self._models:
            raise UserError("the model reads an image with each text: POST to /v1/models/… instead")
        known = list(self.targets)
        if known and (found := matching_code(source, known)) and found == matching_code(target, known):
            return None
        errors = []
        for served in self._models:
            try:
                return Way(served, served.translator.direction(source, target))
            except UserError as error:
                errors.append(error)
        if len(errors) == 1:
            raise errors[0]
        # Not all directions: of a hundred languages, there are ten thousand.
        start = matching_code(source, known)
        ways = f"{start} to {', '.join(self.targets[start])}" if start else f"from {', '.join(known)}"
        raise UserError(f"no model translates {source:.40} to {target:.40}; known: {ways}")

    def languages(self) -> list[Language]:
        """Return the languages, by name."""
        found = [Language(code, english_name(code), targets) for code, targets in self.targets.items()]
        return sorted(found, key=lambda language: language.name)

    @cached_property
    def identifier(self) -> "Identifier":
        """What identifies the language of a text, among those served."""
        return Identifier(self.targets)


class Identifier:
    """Identifies which of some languages a text is in, with py3langid.

    Args:
        codes: the languages. Those that py3langid does not know are never found.

    Raises:
        UserError: py3langid is not installed, or knows none of the languages.
    """

    def __init__(self, codes: Iterable[str]):
        if not importlib.util.find_spec("py3langid"):
            raise UserError(
                "the server cannot identify languages, because py3langid is not installed: name the source"
            )
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        self._identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        self._codes = {}
        for code in codes:
            self._codes.setdefault(main_code(code), code)
        known = self._codes.keys() & set(self._identifier.labels)
        if not known:
            raise UserError("the server cannot identify any of its languages: name the source")
        self._identifier.set_languages(known)

    def __call__(self, text: str) -> list[Detected]:
        """Return the most likely languages of a text, best first."""
        found = self._identifier.rank(text)[:CANDIDATES]
        percent = [Detected(float(round(100 * share)), self._codes[code]) for code, share in found]
        return [percent[0], *(other for other in percent[1:] if other.confidence)]


def _pairs(translator) -> list[tuple[str, str]]:
    """Return a translator's directions; none of a translator that does not name its languages."""
    if translator.multilingual:
        codes = translator.languages
        return [(source, target) for source in codes for target in codes if source != target]
    source, target = translator.languages
    sources, targets = translator.source_languages, translator.target_languages or [target]
    sources = sources or (source or "").split("+")
    return [(one, end) for one in sources for end in targets if one and end and one != end]


def libretranslate_routes(models: Sequence[Served], keys: Keys | None, documents: Documents) -> list[Route]:
    """Return the routes of LibreTranslate's API; with `keys`, texts are translated only with one of them."""
    directions, served = Directions(models), models[0]

    async def identified(texts: list[str]) -> list[list[Detected]]:
        def identify():
            return [directions.identifier(text) for text in texts]

        if not directions.targets:
            raise UserError("the server cannot identify languages, because it names none: name the source")
        return await served.in_thread(identify, size=sys.maxsize)

    async def translate(request: Request) -> Response:
        asked = await question(request, served, Question, keys)
        texts, markups = [asked.q] if isinstance(asked.q, str) else asked.q, None
        served.limits.check_texts(texts)
        if asked.format == "html":
            markups = await served.in_thread(lambda: list(map(Markup, texts)), size=sys.maxsize)
        detected = None
        if asked.source == AUTO:
            plain = [" ".join(markup.texts) for markup in markups] if markups else texts
            detected = [candidates[0] for candidates in await identified(plain)]
        sources = [one.language for one in detected] if detected else [asked.source] * len(texts)
        ways = [directions.resolved(source, asked.target) for source in sources]
        if markups:
            found = await translated_markup(texts, markups, ways)
        else:
            found = await translated(texts, ways, asked.alternatives)
        best, others = [texts[0] for texts in found], [texts[1:] for texts in found]
        several = Translations(best, detected, others if asked.alternatives else None)
        return answered(only(several) if isinstance(asked.q, str) else several)

    async def translate_file(request: Request) -> Response:
        asked = await question(request, served, FileQuestion, keys, files=1)
        if not isinstance(asked.file, UploadFile) or not asked.file.filename:
            raise UserError(f"the request: file is no file with a name: send it as {FORMS[1]}")
        with documents.one(), Upload(asked.file.filename, await asked.file.read()) as upload:
            document = await finished(upload.read, served.limits.characters)
            source = asked.source
            if source == AUTO and document.languages[0]:
                source = document.languages[0]
            elif source == AUTO:
                (candidates,) = await identified([" ".join(document.plain_texts)[:MOST_IDENTIFIED]])
                source = candidates[0].language
            for code, named in zip((source, asked.target), document.languages, strict=True):
                if named and not matching_code(code, [named]):
                    raise UserError(f"{upload.name} names the language {named:.40}, not {code:.40}")
            found = document.texts
            if way := directions.resolved(source, asked.target):
                found = await translated_texts(document.texts, way, served.limits.document)
            table = dict(zip(document.texts, found, strict=True))
            content = await finished(upload.translated, document, table, asked.target)
            name = upload.named_for(asked.target)
        address = f"{request.base_url}{DOWNLOADS[1:]}{documents.keep(name, content)}/{quote(name)}"
        return answered(TranslatedFile(address))

    async def download_file(request: Request) -> Response:
        if (found := documents.get(request.path_params["token"])) is None:
            raise HTTPException(404, "there is no such file, or no longer: translate it again")
        # Not shown in the browser, where it would be this server's page.
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(found.name)}"}
        headers["X-Content-Type-Options"] = "nosniff"
        return Response(found.content, headers=headers, media_type="application/octet-stream")

    async def settings(_) -> Response:
        return answered(settings_of(served, directions, keys is not None))

    async def detect(request: Request) -> Response:
        asked = await question(request, served, DetectQuestion, keys)
        text = asked.q if isinstance(asked.q, str) else "\n".join(asked.q)
        served.limits.check_texts([text])
        (found,) = await identified([text])
        return answered(found)

    async def languages(_) -> Response:
        return answered(directions.languages())

    async def health(_) -> Response:
        return answered(Health())

    return [
        Route("/translate", translate, methods=["POST"]),
        Route("/translate_file", translate_file, methods=["POST"]),
        Route(f"{DOWNLOADS}{{token}}/{{name}}", download_file, include_in_schema=False),
        Route("/frontend/settings", settings),
        Route("/detect", detect, methods=["POST"]),
        Route("/languages", languages),
        Route("/health", health),
    ]


def settings_of(served: Served, directions: Directions, keys: bool) -> Settings:
    """Return the answer to LibreTranslate's page."""
    pairs = [(code, end) for code, ends in directions.targets.items() for end in ends if end != code]
    codes = dict(zip(("source", "target"), pairs[0] if pairs else (), strict=False))
    language = {side: Named(code, english_name(code)) for side, code in codes.items()}
    return Settings(served.limits.characters, 500, keys, keys, False, True, list(BY_ENDING), language)


def only(several: Translations) -> Translation:
    """Return the answer for the only text."""
    values = (getattr(several, name) for name in several.__struct_fields__)
    return Translation(*(value and value[0] for value in values))


async def translated(texts: list[str], ways: list[Way | None], alternatives: int) -> list[list[str]]:
    """Return each text's best translation and up to `alternatives` others; of a text without way, it.

    Raises:
        UserError: an invalid request.
        Busy: too many rows are waiting.
    """
    found = [[text] for text in texts]
    for served in dict.fromkeys(way.served for way in ways if way):
        most = served.settings.beam_size - 1
        if alternatives > most:
            raise UserError(
                f"alternatives must be at most {most}, as many as the search finds, not {alternatives}"
            )
        mine = [number for number, way in enumerate(ways) if way and way.served is served]
        sources, targets = (list(side) for side in zip(*(ways[i].direction for i in mine), strict=True))
        prepared = await served.prepared([texts[i] for i in mine], sources, targets, split_sentences=True)
        joined = prepared.split.join(await served.search(prepared, alternatives + 1))
        for number, hypotheses in zip(mine, joined, strict=True):
            best, *others = dict.fromkeys(hypothesis.text for hypothesis in hypotheses)
            found[number] = [best, *filter(None, others)]
    return found


async def translated_markup(
    texts: list[str], markups: list[Markup], ways: list[Way | None]
) -> list[list[str]]:
    """Return the translation of each piece of HTML, without alternatives; the errors are `translated`'s."""
    found = [[text] for text in texts]
    for way in dict.fromkeys(filter(None, ways)):
        mine = [number for number, other in enumerate(ways) if other == way]
        parts = list(dict.fromkeys(text for number in mine for text in markups[number].texts))
        table = dict(zip(parts, await translated_texts(parts, way), strict=True))
        for number in mine:
            found[number] = [await way.served.in_thread(markups[number].translated, table, size=sys.maxsize)]
    return found


async def translated_texts(texts: list[str], way: Way, most: int | None = None) -> list[str]:
    """Return the translations of HTML's texts, or of those of a document, which may have `most` sentences.

    Only documents must keep their placeholders.
    """
    served, direction = way
    translator, limits = served.translator, served.limits
    steps, answer = translating(texts, direction, translator.aligns, keep=most is not None), None
    while True:
        asked, items = await served.in_thread(next_step, steps, answer, size=sys.maxsize)
        if asked == DONE:
            return items
        answer, size = [], min(PORTIONS[asked], limits.sentences)
        limits.check_count(len(items), most)
        for first in range(0, len(items), size):
            some = items[first : first + size]
            if asked == "translate":
                answer += [best for best, *_ in await translated(some, [way] * len(some), 0)]
            else:
                answer += await served.batcher.run(translator.alignments, some, *direction)


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
        sent = form if media == FORMS[1] else _form_fields(body)
        sent = {
            key: re.sub(r"\r\n?", "\n", value) if isinstance(value, str) else value
            for key, value in sent.items()
        }
        return sent | dict(request.query_params)

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


def _form_fields(body: bytes) -> dict[str, str]:
    try:
        return dict(parse_qsl(body.decode(), max_num_fields=MOST_FIELDS, errors="strict"))
    except ValueError:
        raise UserError(f"the body is not a form in UTF-8 of at most {MOST_FIELDS} fields") from None


def answered(content) -> Response:
    """Return an answer in JSON."""
    return Response(msgspec.json.encode(content), media_type="application/json")
