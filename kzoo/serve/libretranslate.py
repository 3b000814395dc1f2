"""LibreTranslate's API: translation, language identification, the languages served, health.

https://docs.libretranslate.com/api/
"""

import sys
from collections.abc import Sequence
from urllib.parse import quote

import msgspec
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kzoo.documents.document import BY_ENDING
from kzoo.documents.markup import Markup
from kzoo.documents.translating import DONE, Steps, keeping_placeholders, next_step, translating
from kzoo.errors import UserError
from kzoo.serve.directions import Directions, ServedPair
from kzoo.serve.files import Documents, Upload, finished
from kzoo.serve.keys import DOWNLOADS, Keys
from kzoo.serve.messages import (
    FORMS,
    Detected,
    DetectQuestion,
    FileQuestion,
    Health,
    Language,
    Named,
    Question,
    Settings,
    TranslatedFile,
    Translation,
    Translations,
    question,
)
from kzoo.serve.served import ALIGNED, Served
from kzoo.text.languages import english_name

AUTO = "auto"
MOST_IDENTIFIED = 5_000  # characters of a document
# Sentences that one call translates or aligns: other requests wait less, and several documents have room in
# the queue.
PORTIONS = {"translate": 64, "align": ALIGNED}


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
            detected = directions.told(plain, await identified(plain), asked.target)
        sources = [one.language for one in detected] if detected else [asked.source] * len(texts)
        pairs = [directions.resolved(source, asked.target) for source in sources]
        if markups:
            found = await translated_markup(texts, markups, pairs)
        else:
            found = await translated(texts, pairs, asked.alternatives)
        best, others = [texts[0] for texts in found], [texts[1:] for texts in found]
        several = Translations(best, detected, others if asked.alternatives else None)
        return answered(only(several) if isinstance(asked.q, str) else several)

    async def translate_file(request: Request) -> Response:
        asked = await question(request, served, FileQuestion, keys, files=1)
        if not isinstance(asked.file, UploadFile) or not asked.file.filename:
            raise UserError(f"the request: file is no file with a name: send it as {FORMS[1]}")
        with documents.one(), Upload(asked.file.filename, await asked.file.read()) as upload:
            document = await finished(upload.read, served.limits.characters)
            with upload.naming():
                source, _ = document.direction(None if asked.source == AUTO else asked.source, asked.target)
            if source is None:
                (candidates,) = await identified([" ".join(document.plain_texts)[:MOST_IDENTIFIED]])
                source = candidates[0].language
            found = document.texts
            if pair := directions.resolved(source, asked.target):
                found = await translated_texts(document.texts, pair, True, served.limits.document)
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
        found = [Language(code, english_name(code), ends) for code, ends in directions.targets.items()]
        return answered(sorted(found, key=lambda language: language.name))

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


async def translated(texts: list[str], pairs: list[ServedPair | None], alternatives: int) -> list[list[str]]:
    """Return each text's best translation and up to `alternatives` others; of a text without a pair, it.

    Those whose best translation lost a placeholder are translated again, as `keeping_placeholders` does.

    Raises:
        UserError: an invalid request.
        Busy: too many rows are waiting.
    """
    found = await searched(texts, pairs, alternatives)
    for pair in dict.fromkeys(filter(None, pairs)):
        mine = [number for number, other in enumerate(pairs) if other == pair]
        own, best = [texts[number] for number in mine], [found[number][0] for number in mine]
        steps = keeping_placeholders(own, best, pair.direction, pair.served.translator)
        most = pair.served.limits.document  # a sentence may have many parts
        new = await run_steps(steps, pair, sum(map(len, own)), most)
        for number, translation in zip(mine, new, strict=True):
            found[number][0] = translation
    return found


async def searched(texts: list[str], pairs: list[ServedPair | None], alternatives: int) -> list[list[str]]:
    """Return what the models' search finds; arguments, results and errors are those of `translated`."""
    found = [[text] for text in texts]
    for served in dict.fromkeys(pair.served for pair in pairs if pair):
        most = served.settings.beam_size - 1
        if alternatives > most:
            raise UserError(
                f"alternatives must be at most {most}, as many as the search finds, not {alternatives}"
            )
        mine = [number for number, pair in enumerate(pairs) if pair and pair.served is served]
        own, directions = [texts[number] for number in mine], [pairs[number].direction for number in mine]
        prepared = await served.prepared(own, directions, split_sentences=True)
        joined = prepared.split.join(await served.search(prepared, alternatives + 1))
        for number, hypotheses in zip(mine, joined, strict=True):
            best, *others = dict.fromkeys(hypothesis.text for hypothesis in hypotheses)
            found[number] = [best, *filter(None, others)]
    return found


async def translated_markup(
    texts: list[str], markups: list[Markup], pairs: list[ServedPair | None]
) -> list[list[str]]:
    """Return the translation of each piece of HTML, without alternatives; the errors are `translated`'s."""
    found = [[text] for text in texts]
    for pair in dict.fromkeys(filter(None, pairs)):
        mine = [number for number, other in enumerate(pairs) if other == pair]
        parts = list(dict.fromkeys(text for number in mine for text in markups[number].texts))
        table = dict(zip(parts, await translated_texts(parts, pair, keep=False), strict=True))
        for number in mine:
            found[number] = [await pair.served.in_thread(markups[number].translated, table, size=sys.maxsize)]
    return found


async def translated_texts(
    texts: list[str], pair: ServedPair, keep: bool, most: int | None = None
) -> list[str]:
    """Return the translations of texts with marks for elements, as `translating` does.

    Args:
        keep: bool. Whether they must keep their placeholders.
        most: int. Maximum number of sentences; by default, that of a request.
    """
    steps = translating(texts, pair.direction, pair.served.translator, keep, skip_long=keep)
    return await run_steps(steps, pair, sys.maxsize, most)


async def run_steps(steps: Steps, pair: ServedPair, size: int, most: int | None) -> list[str]:
    """Return what the steps of `translating` return.

    Args:
        size: int. Number of characters of their texts.
        most: as of `translated_texts`.
    """
    served, direction = pair
    limits, answer = served.limits, None
    while True:
        asked, items = await served.in_thread(next_step, steps, answer, size=size)
        if asked == DONE:
            return items
        answer, portion = [], min(PORTIONS[asked], limits.sentences)
        limits.check_count(len(items), most)
        most = limits.document  # a sentence may have many parts
        for first in range(0, len(items), portion):
            some = items[first : first + portion]
            if asked == "translate":
                answer += [best for best, *_ in await searched(some, [pair] * len(some), 0)]
            else:
                answer += await served.batcher.run(served.translator.alignments_of, some, direction)


def answered(content) -> Response:
    """Return an answer in JSON."""
    return Response(msgspec.json.encode(content), media_type="application/json")
