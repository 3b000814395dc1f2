"""The page to try a preset: its contents, its script's requests, and the attention that it draws."""

import asyncio
import base64
import io
import json
import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from PIL import Image
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from kzoo.errors import UserError
from kzoo.hub.preset import Preset
from kzoo.scenes import LANGUAGES, scenes
from kzoo.scenes.picture import draw
from kzoo.scenes.scene import OTHER_SENSE
from kzoo.serve.batching import Busy
from kzoo.serve.inputs import image_kind
from kzoo.serve.rest import decoded
from kzoo.serve.served import Served
from kzoo.text.languages import Direction
from kzoo.text.reading import Reading

if TYPE_CHECKING:  # Keras is not imported for CTranslate2
    from kzoo.engine.translator import CTranslate2Translator
    from kzoo.models import Translator

log = logging.getLogger("kzoo.serve")

FOLDER = Path(__file__).with_name("page_files")
FILES = (
    ("/", FOLDER / "index.html", "text/html"),
    ("/page/page.css", FOLDER / "page.css", "text/css"),
    ("/page/attention.js", FOLDER / "attention.js", "text/javascript"),
    ("/page/page.js", FOLDER / "page.js", "text/javascript"),
)
# No content from other hosts, no inline scripts or styles. The chosen picture is a data: URL.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
# Beyond these numbers, a browser takes seconds to draw, and the response has megabytes.
MOST_CELLS = 6_000
MOST_WEIGHTS = 150_000
PREPARING = "the model that computes it is being prepared"
ATTENTION_SECONDS = 30  # that a translation waits for its attention
# Axes to average weights over, tried in turn until the weights are few enough, with a note for the page.
MEANS = (
    ((), ""),
    ((1,), "All heads would be too large to draw: this is their mean."),
    ((0, 1), "All layers and heads would be too large to draw: this is their mean."),
)
# Sentences by corpus and language: they resemble the corpus, but are not from it.
SENTENCES = json.loads((FOLDER / "examples.json").read_text("utf-8"))
# Of a card: code, and Hugging Face's settings at the beginning.
LEFT_OUT = re.compile(r"```.*?```|\A---\n.*?\n---\n", re.DOTALL)
PICTURED = 2  # words with two senses; each has a picture of each sense


class PageRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The page's request for a translation."""

    text: str
    source_language: str | None = None
    target_language: str | None = None
    image: bytes | None = None  # base64 of a JPEG or PNG file, or of an .npy file with features
    n: int = 1
    split_sentences: bool = True


PAGE = msgspec.json.Decoder(PageRequest)


def page_routes(models: Sequence[Served]) -> list[BaseRoute]:
    """Return the pages' routes: the first model's at `/`; of several, each one's at `/pages/NAME/`."""
    names = [served.name for served in models]
    routes = page_routes_of(models[0], names)
    if len(models) > 1:
        routes += [Mount(f"/pages/{served.name}", routes=page_routes_of(served, names)) for served in models]
    return routes


def page_routes_of(served: Served, names: list[str]) -> list[BaseRoute]:
    """Return the routes of a model's page, which links to those of all models: `/` and `/page/…`."""
    described = {"card": card(served.preset), "examples": examples(served.preset, served.translator)}
    shown = [(path, file.read_bytes(), kind) for path, file, kind in FILES]
    if described["card"].get("introduction"):
        shown.append(("/page/card", served.preset.card, "text/plain"))
    glyphs = served.translator.glyphs  # not later: on JAX, a running search owns the weights

    async def about_route(_) -> Response:
        return JSONResponse(about(served) | described | {"models": names})

    async def translate_route(request: Request) -> Response:
        body = await request.body()
        asked = await served.in_thread(decoded, PAGE, body, "the body", size=len(body))
        answer = await translated(served, asked, glyphs)
        return Response(msgspec.json.encode(answer), media_type="application/json")

    calls = [("/page/about", about_route, "GET"), ("/page/translate", translate_route, "POST")]
    for path, content, kind in shown:
        calls.append((path, Response(content, headers=HEADERS, media_type=kind), "GET"))
    return [Route(path, call, methods=[method], include_in_schema=False) for path, call, method in calls]


def about(served: Served) -> dict:
    """Return what the page must know about a preset."""
    limits = {
        "characters": served.limits.characters,
        "body": served.limits.body,
        "n": served.settings.beam_size,
        "tokens": served.max_length - 1,
    }
    translator = served.translator
    source, target = (None, None) if translator.multilingual else translator.languages
    return {
        "name": served.name,
        "version": served.version,
        "languages": translator.languages if translator.multilingual else translator.source_languages or None,
        "source": source,
        "target": target,
        "image": image_kind(served.translator.image_shape),
        "attention": kinds(served.translator),
        "limits": limits,
        "score": str(served.settings.length_penalty),
        "readiness": served.readiness,
    }


async def translated(served: Served, asked: PageRequest, glyphs: np.ndarray | None) -> dict:
    """Return the page's answer: the best translations, each sentence's score, the attention of the best one.

    Also the score below which the page marks a sentence's translation, and the characters that the model saw.

    Args:
        served: the preset.
        asked: the page's request.
        glyphs: the translator's; `None`: it sees no characters.

    Raises:
        UserError: the request is invalid.
        Busy: too many rows are waiting.
    """
    served.limits.check_texts([asked.text])
    direction = served.translator.direction(asked.source_language, asked.target_language)
    images, split = None if asked.image is None else [asked.image], asked.split_sentences
    prepared = await served.prepared([asked.text], [direction], images, split_sentences=split)
    (direction,) = prepared.split.directions  # its target may be one that the text begins with
    found = await served.search(prepared, asked.n)
    (hypotheses,) = prepared.split.join(found)
    first, *others = prepared.readings
    if first.tokens and not others:
        drawn = await attention(served, first.tokens, hypotheses[0].text, direction, prepared.rows.images)
    else:
        reason = "the text has several sentences" if others else "the model reads no word of the sentence"
        drawn = [not_drawn(kind, reason) for kind in kinds(served.translator)]
    characters = {}
    if glyphs is not None:
        characters["characters"] = seen_characters(served.translator, glyphs, prepared.readings)
    return {
        "hypotheses": hypotheses,
        "sentences": [
            {"text": sentence, "score": best[0].score}
            for sentence, best in zip(prepared.split.sentences, found, strict=True)
        ],
        "unknown_characters": prepared.lacking[0],
        "attention": drawn,
        "low_score": served.low_score(direction),
        **characters,
    }


async def attention(served: Served, *asked) -> list[dict]:
    """Return `drawn_attention`, or notes if it fails, so that the page still shows the translations."""
    reason = PREPARING
    try:
        if translator := served.keras_translator():
            # It may be behind a compilation; the page then asks again.
            async with asyncio.timeout(ATTENTION_SECONDS):
                return await served.batcher.run(drawn_attention, translator, *asked)
    except TimeoutError:
        pass
    except (Busy, UserError) as error:
        reason = str(error)
    except Exception:
        log.exception("the attention of a translation cannot be computed")
        reason = "the model failed; the server’s log says why"
    return [not_drawn(kind, reason) for kind in kinds(served.translator)]


def kinds(translator: "Translator") -> list[str]:
    """Return the kinds of attention that a translator has: `encoder_decoder`, `bridge`, `image`."""
    has = {"encoder_decoder": True, "bridge": translator.embeds, "image": translator.image_shape is not None}
    return [kind for kind, there in has.items() if there]


def drawn_attention(
    translator: "Translator",
    tokens: list[int],
    translation: str,
    direction: Direction,
    images: np.ndarray | None,
) -> list[dict]:
    """Return each attention of a sentence, given as token ids, and its translation.

    Returns:
        Dicts: "kind", one of `kinds`; the names of the "rows" and "columns"; "weights", nested lists
        `(layers, heads, rows, columns)` with three decimals; "grid", for regions of a picture, their numbers
        down and across; "note", `""` or what was averaged. For an attention that is not drawn, the dict
        of `not_drawn`.
    """
    found = []
    for kind in kinds(translator):
        try:
            rows, columns, weights = attention_of(kind, translator, tokens, translation, direction, images)
        except UserError:  # its message is about `translate`
            found.append(not_drawn(kind, "the translation is too long for the model to read"))
            continue
        if len(rows) * len(columns) > MOST_CELLS:
            found.append(not_drawn(kind, f"{len(rows):,} × {len(columns):,} weights are too many"))
            continue
        weights, note = fitting(weights)
        weights = np.round(weights.astype(float), 3).tolist()
        drawn = {"kind": kind, "rows": rows, "columns": columns, "weights": weights, "note": note}
        if kind == "image" and image_kind(translator.image_shape) == "picture":
            height, width, _ = translator.image_shape
            down = round((len(rows) * height / width) ** 0.5)
            drawn["grid"] = [down, len(rows) // down]
        found.append(drawn)
    return found


def not_drawn(kind: str, reason: str) -> dict:
    """Return the note that replaces an attention, and whether the page should ask for it again."""
    return {"kind": kind, "note": f"Not drawn: {reason}.", "preparing": reason == PREPARING}


def attention_of(kind: str, translator: "Translator", tokens, translation, direction, images) -> tuple:
    """Return the rows, columns and weights of an attention, as in `drawn_attention`."""
    if kind == "encoder_decoder":  # the translation attends to the source words, or to the bridge's rows
        target = translator.translation_tokens(translation, direction)
        columns, rows, weights = translator.attention_of_tokens(tokens, target, direction, images)
        return rows, columns, weights
    if kind == "bridge":  # its heads attend to the source words
        columns, weights = translator.bridge_attention_of_tokens(tokens, direction)
        weights = weights[None, None]
    else:  # regions of the picture attend to the source words
        columns, weights = translator.image_attention_of_tokens(tokens, images)
    return [str(row + 1) for row in range(weights.shape[2])], columns, weights


def fitting(weights: np.ndarray) -> tuple[np.ndarray, str]:
    """Return weights `(layers, H, rows, columns)` and `""`; if they are too many, their mean and a note."""
    means = ((weights.mean(axis=axes, keepdims=True), note) for axes, note in MEANS)
    return next((mean, note) for mean, note in means if mean.size <= MOST_WEIGHTS)


def card(preset: Preset | None) -> dict:
    """Return what a preset's files say about it.

    Returns:
        A dict: "introduction" and "terms", the card's paragraphs, if there is a card; "size" and "licence";
        "scores", rows of a test set, its number of sentences, BLEU and chrF2; perhaps none.
    """
    if preset is None:
        return {}
    scores = preset.scores
    found = {"size": preset.size, "licence": scores.get("licence", "not given")}
    corpus, numbers = scores.get("corpus") or "", ("sentences", "bleu", "chrf2")
    found["scores"] = [
        [_test_set(row, corpus), *(row[name] for name in numbers)]
        for row in scores["scores"]
        if "split" in row and all(isinstance(row.get(name), int | float) for name in numbers)
    ]
    if preset.card is not None:
        text = LEFT_OUT.sub("", preset.card)
        introduction, *sections = re.split(r"^## +(.+)\n", text, flags=re.M)
        found["introduction"] = _paragraphs(introduction)
        terms = dict(zip(sections[::2], sections[1::2], strict=True)).get("Data and terms", "")
        found["terms"] = _paragraphs(terms)
    return found


def _test_set(row: dict, corpus: str) -> str:
    direction = f"{row['source']} → {row['target']}, " if row.keys() >= {"source", "target"} else ""
    return f"{direction}{corpus} {row['split']}"


def _paragraphs(markdown: str) -> list[str]:
    """Return Markdown's paragraphs as plain text, without titles and tables."""
    blocks = re.split(r"\n\s*\n", re.sub(r"^ *[#|].*", "", markdown, flags=re.M))
    return [" ".join(block.replace("`", "").split()) for block in blocks if block.strip()]


def examples(preset: Preset | None, translator: "Translator | CTranslate2Translator") -> list[dict]:
    """Return examples: dicts of a "text", its "language" and, for a model that reads pictures, an "image".

    Presets that do not name their corpus have none. Those that read pictures have examples only for Scenes.
    """
    corpus = None if preset is None else preset.scores.get("corpus")
    if translator.image_shape is None:
        known = SENTENCES.get(corpus, {})
        return [
            {"text": text, "language": code}
            for code in (translator.languages if translator.multilingual else translator.languages[:1])
            for text in known.get(code, ())
        ]
    drawable = image_kind(translator.image_shape) == "picture" and set(translator.languages) <= {*LANGUAGES}
    return list(_pictured(*translator.languages)) if corpus == "scenes" and drawable else []


def _pictured(source: str, target: str) -> Iterator[dict]:
    """Yield captions with an ambiguous word, each twice: once with a picture of each sense."""
    found = {}
    for scene in scenes("test"):
        thing = scene.object
        if thing and (thing.kind, thing.sense) in OTHER_SENSE and scene.ambiguous(source, target):
            found.setdefault(thing.kind, scene)
        if len(found) == PICTURED:
            break
    for scene in found.values():
        other = replace(scene.object, sense=OTHER_SENSE[scene.object.kind, scene.object.sense])
        for shown in (scene, replace(scene, object=other)):
            file = io.BytesIO()
            Image.fromarray(draw(shown)).save(file, "PNG")
            image = base64.b64encode(file.getvalue()).decode()
            yield {"text": shown.sentence(source), "language": source, "image": image}


def seen_characters(
    translator: "Translator", glyphs: np.ndarray, readings: list[Reading]
) -> list[tuple[str, bytes]]:
    """Return the characters of sentences, each with its bitmap: rows of one byte per pixel, 0 or 1."""
    seen = []
    for token in [token for reading in readings for token in reading.tokens]:
        name = translator.source_tokenizer.id_to_token(token)
        drawn = glyphs[token] if token < len(glyphs) else translator.unseen_glyphs()(name)
        seen.append((name, drawn.astype("uint8").tobytes()))
    return seen
