"""The page to try a preset: its files, and the two calls that their script makes."""

import asyncio
import base64
import binascii
import io
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import numpy as np
from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from kzoo.errors import UserError
from kzoo.models.split_texts import several_sentences
from kzoo.serve.batcher import Busy
from kzoo.serve.connected import while_connected
from kzoo.serve.drawn_attention import drawn_attention, kinds, not_drawn
from kzoo.serve.requests import decoded
from kzoo.serve.served import Served
from kzoo.serve.split_requests import n_best

log = logging.getLogger("kzoo.serve")

FOLDER = Path(__file__).with_name("page_files")
FILES = (
    ("/", "index.html", "text/html"),
    ("/page/page.css", "page.css", "text/css"),
    ("/page/attention.js", "attention.js", "text/javascript"),
    ("/page/page.js", "page.js", "text/javascript"),
)
# Nothing from other hosts, nothing inline; chosen pictures are shown from data: addresses.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
HEADER_READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


class Asked(msgspec.Struct):
    """The page's request for a translation.

    Args:
        text: one sentence or several.
        source_language, target_language: codes, for a preset with more than one of them.
        image: base64 of a JPEG or PNG file, or of an .npy file with features, for a preset that reads images.
        n: int. Number of translations.
        split_sentences: bool. Whether each sentence of the text is translated by itself.
    """

    text: str
    source_language: str | None = None
    target_language: str | None = None
    image: str | None = None
    n: int = 1
    split_sentences: bool = True


ASKED = msgspec.json.Decoder(Asked)


def page_routes(served: Served) -> APIRouter:
    """Return the routes of `/` and of `/page/…`.

    Args:
        served: the `Served` preset.
    """
    router = APIRouter()
    for path, name, media_type in FILES:
        router.add_api_route(path, file_route(name, media_type))

    @router.get("/page/about")
    async def about_route() -> JSONResponse:
        return JSONResponse(about(served))

    @router.post("/page/translate")
    async def translate_route(request: Request) -> JSONResponse:
        asked = await served.beside(read_asked, await request.body())
        answer = await while_connected(request, translated(served, asked))
        return Response(msgspec.json.encode(answer), media_type="application/json")

    return router


def read_asked(body: bytes) -> Asked:
    """Return what the page asks for.

    Raises:
        UserError: it is not what a page would ask for.
    """
    return decoded(ASKED, body, "the body")


def file_route(name: str, media_type: str) -> Callable[[], Awaitable[Response]]:
    """Return a handler that answers with one of the page's files."""
    content = (FOLDER / name).read_bytes()

    async def answer() -> Response:
        return Response(content, headers=HEADERS, media_type=media_type)

    return answer


def about(served: Served) -> dict:
    """Return what the page needs to know of a preset."""
    limits = {"characters": served.limits.characters, "body": served.limits.body, "n": served.beam_size}
    source, target = (None, None) if served.multilingual else served.languages
    return {
        "name": served.name,
        "version": served.version,
        "languages": served.languages if served.multilingual else None,
        "source": source,
        "target": target,
        "image": image_kind(served.image_shape),
        "attention": kinds(served.translator),
        "limits": limits,
        "readiness": served.readiness,
    }


def image_kind(shape: tuple[int, ...] | None) -> str | None:
    """Return what a preset with images of `shape` reads: a picture, features, or nothing."""
    return shape and ("picture" if len(shape) == 3 else "features")


async def translated(served: Served, asked: Asked) -> dict:
    """Return the best translations, and the attention of the first, or why it is not drawn.

    Raises:
        UserError: the request is invalid.
        Busy: too many rows are waiting.
    """
    languages = asked.source_language, asked.target_language
    image = None
    if asked.image is not None:
        image = await asyncio.to_thread(read_image, asked.image, served.image_shape)
        if isinstance(image, bytes):
            image = await served.picture(image)
    images = None if image is None else [image]
    split = asked.split_sentences
    (hypotheses,) = await n_best(served, [asked.text], asked.n, *languages, images, split_sentences=split)
    best = hypotheses[0].text if hypotheses else ""
    source = asked.source_language if served.multilingual else served.languages[0]
    if split and several_sentences([asked.text], [source]):
        drawn = [not_drawn(kind, "the text has several sentences") for kind in kinds(served.translator)]
    else:
        drawn = await attention(served, asked.text, best, languages, image)
    return {
        "hypotheses": [{"text": found.text, "score": found.score} for found in hypotheses],
        "attention": drawn,
    }


async def attention(served: Served, *asked) -> list[dict]:
    """Return `drawn_attention` of what is asked; without it, the translations are still answered."""
    try:
        return await served.run(drawn_attention, served.translator, *asked)
    except Busy as error:
        reason = str(error)
    except Exception:
        log.exception("the attention of a translation cannot be computed")
        reason = "the model failed; the server’s log says why"
    return [not_drawn(kind, reason) for kind in kinds(served.translator)]


def read_image(text: str, shape: tuple[int, ...] | None) -> bytes | np.ndarray:
    """Return a picture's bytes, or features of `shape`, from base64.

    Raises:
        UserError: it is neither.
    """
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise UserError("the image is not base64") from None
    return read_features(content, shape) if image_kind(shape) == "features" else content


def read_features(content: bytes, shape: tuple[int, ...]) -> np.ndarray:
    """Return an .npy file's numbers.

    Raises:
        UserError: it is not such a file, or its shape is not what the model reads.
    """
    try:
        file = io.BytesIO(content)
        found, _, dtype = HEADER_READERS[np.lib.format.read_magic(file)](file)
    except Exception:  # NumPy's parser may raise any error on a broken header
        raise UserError("the features are not a .npy file as written by numpy.save") from None
    if found != tuple(shape) or dtype.kind not in "iuf":  # checked before memory is allocated
        raise UserError(f"the features are {dtype} {found}; the model reads numbers {tuple(shape)}")
    try:
        return np.load(io.BytesIO(content), allow_pickle=False)
    except ValueError:
        raise UserError("the file of features is truncated") from None
