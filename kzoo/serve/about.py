"""What the page says about a preset: its card, scores and licence, from its files, and example texts."""

import base64
import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from kzoo.files import read_object
from kzoo.hub.integrity import METADATA_FILE, own_search
from kzoo.presets.description import describe, scored_corpus
from kzoo.scenes import LANGUAGES, scenes
from kzoo.scenes.picture import draw
from kzoo.scenes.scene import OTHER_SENSE, Scene
from kzoo.serve.inputs import image_kind

if TYPE_CHECKING:  # Keras is not imported for CTranslate2
    from kzoo.engine.translator import CTranslate2Translator
    from kzoo.models import Translator

CARD = "README.md"
# Sentences by corpus and language: they resemble the corpus, but are not from it.
SENTENCES = json.loads(Path(__file__).with_name("page_files").joinpath("examples.json").read_text("utf-8"))
FENCES = re.compile(r"```.*?```", re.DOTALL)
PICTURED = 2  # words with two senses; each has a picture of each sense


def is_preset(folder: Path | None) -> bool:
    """Return whether a folder is a preset of kzoo, not an OPUS-MT model."""
    return folder is not None and (folder / METADATA_FILE).is_file()


def card(folder: Path | None) -> dict:
    """Return what a preset's files say about it.

    Returns:
        A dict: "introduction" and "terms", the card's paragraphs; "size" and "licence"; "scores", rows of a
        test set, its number of sentences, BLEU and chrF2. A key is missing if the files do not have it.
    """
    if not is_preset(folder):
        return {}
    _, size, _, licence = describe(folder)
    said = {"size": size, "licence": licence.removeprefix("licence: ")}
    if (folder / "scores.json").is_file():
        scores = read_object(folder / "scores.json")
        rows, corpus = scores.get("scores", []), scores.get("corpus", "")
        said["scores"] = [
            [_test_set(row, corpus), row["sentences"], row["bleu"], row["chrf2"]] for row in rows
        ]
    if (folder / CARD).is_file():
        introduction, *sections = re.split(r"^## +(.+)\n", (folder / CARD).read_text("utf-8"), flags=re.M)
        said["introduction"] = _paragraphs(introduction)
        terms = dict(zip(sections[::2], sections[1::2], strict=True)).get("Data and terms", "")
        said["terms"] = _paragraphs(terms)
    return said


def _test_set(row: dict, corpus: str) -> str:
    direction = f"{row['source']} → {row['target']}, " if "source" in row else ""
    return f"{direction}{corpus} {row['split']}"


def _paragraphs(markdown: str) -> list[str]:
    """Return Markdown's paragraphs as plain text, without titles, code and tables."""
    blocks = re.split(r"\n\s*\n", FENCES.sub("", markdown))
    return [" ".join(block.replace("`", "").split()) for block in blocks if re.match(r"\s*[^\s#|]", block)]


def low_scores(folder: Path | None, length_penalty) -> dict[str, float]:
    """Return the score of each direction below which the page marks a translation.

    If the server has another length penalty than the preset, there are none: scores are not comparable.
    """
    if not is_preset(folder) or own_search(folder).length_penalty != length_penalty:
        return {}
    return read_object(folder / METADATA_FILE).get("low_scores", {})


def examples(folder: Path | None, translator: "Translator | CTranslate2Translator") -> list[dict]:
    """Return examples: dicts of a "text", its "language" and, for a model that reads pictures, an "image".

    Presets that do not name their corpus have none. Those that read pictures have examples only for Scenes.
    """
    corpus = scored_corpus(folder) if is_preset(folder) else None
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
    """Yield captions of an ambiguous word, each twice: with a picture of either sense."""
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
            yield {"text": shown.sentence(source), "language": source, "image": _png(shown)}


def _png(scene: Scene) -> str:
    file = io.BytesIO()
    Image.fromarray(draw(scene)).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def bitmaps(translator: "Translator | CTranslate2Translator") -> np.ndarray | None:
    """Return a glyph model's bitmaps `(V, 22, 22)`; `None` for other models."""
    embedding = getattr(getattr(translator, "backbone", None), "source_embedding", None)
    if not hasattr(embedding, "glyphs"):
        return None
    import keras

    return keras.ops.convert_to_numpy(embedding.glyphs)


def seen_characters(translator: "Translator", glyphs: np.ndarray, text: str) -> list[tuple[str, bytes]]:
    """Return a text's characters, each with its bitmap: rows of one byte per pixel, 0 or 1."""
    (tokens,) = translator.tokenize_source([text], truncate=True)
    names = map(translator.source_tokenizer.id_to_token, tokens)
    return [
        (name, glyphs[token].astype("uint8").tobytes()) for name, token in zip(names, tokens, strict=True)
    ]
