"""The attention of one translation, as the page draws it."""

import numpy as np

from kzoo.errors import UserError
from kzoo.models import MultilingualTranslator, Translator

AnyTranslator = Translator | MultilingualTranslator
Languages = tuple[str | None, str | None]  # of the sentence and of its translation

# Above these, a browser takes seconds to draw, and the answer has megabytes.
MOST_CELLS = 6_000
MOST_WEIGHTS = 150_000
# Axes over which weights are averaged, until they are few enough, and what the page then says.
MEANS = (
    ((), ""),
    ((1,), "All heads would be too large to draw: this is their mean."),
    ((0, 1), "All layers and heads would be too large to draw: this is their mean."),
)


def kinds(translator: AnyTranslator) -> list[str]:
    """Return the attentions that a translator has: `encoder_decoder`, `bridge`, `image`."""
    found = ["encoder_decoder"]
    if translator.embeds:
        found.append("bridge")
    if translator.image_shape is not None:
        found.append("image")
    return found


def drawn_attention(
    translator: AnyTranslator, text: str, translation: str, languages: Languages, image: np.ndarray | None
) -> list[dict]:
    """Return each attention of a sentence and its translation.

    Args:
        translator: a `Translator` or a `MultilingualTranslator`.
        text: the sentence.
        translation: its translation.
        languages: codes of the two languages, for a `MultilingualTranslator`.
        image: array of the translator's `image_shape`, or `None`.

    Returns:
        For each, a dict: "kind", one of `kinds`; names of its "rows" and "columns"; "weights", nested lists
        `(layers, heads, rows, columns)` with three decimals; for regions of a picture, "grid": their numbers
        down and across; "note": `""`, or what is not drawn. Of an attention that is too large to draw, or has
        no words, there are only the kind and the note.
    """
    calls = {"encoder_decoder": encoder_decoder, "bridge": bridge, "image": over_words}
    found = []
    for kind in kinds(translator):
        try:
            drawn = calls[kind](translator, text, translation, languages, image)
        except UserError:  # its text names options of `translate`
            reason = "the sentence has no word, or the translation is too long for the model to read"
            found.append(not_drawn(kind, reason))
            continue
        rows, columns = drawn["weights"].shape[2:]
        if rows * columns > MOST_CELLS:
            found.append(not_drawn(kind, f"{rows:,} × {columns:,} weights are too many"))
            continue
        weights, note = fitting(drawn["weights"])
        weights = np.round(weights.astype(float), 3).tolist()
        found.append({"kind": kind, **drawn, "weights": weights, "note": note})
    return found


def not_drawn(kind: str, reason: str) -> dict:
    """Return what the page says in an attention's place."""
    return {"kind": kind, "note": f"Not drawn: {reason}."}


def encoder_decoder(
    translator: AnyTranslator, text: str, translation: str, languages: Languages, image: np.ndarray | None
) -> dict:
    """Return the translation's words over the sentence's, or over the rows of the bridge's M."""
    if translator.multilingual:
        source, target, weights = translator.attention(text, *languages, translation)
    else:
        source, target, weights = translator.attention(text, translation, image)
    return {"rows": target, "columns": source, "weights": weights}


def bridge(
    translator: AnyTranslator, text: str, translation: str, languages: Languages, image: np.ndarray | None
) -> dict:
    """Return the bridge's heads over the sentence's words."""
    words, weights = translator.bridge_attention(text, languages[0])
    rows = [str(head + 1) for head in range(len(weights))]
    return {"rows": rows, "columns": words, "weights": weights[None, None]}


def over_words(
    translator: AnyTranslator, text: str, translation: str, languages: Languages, image: np.ndarray | None
) -> dict:
    """Return the image's regions over the sentence's words."""
    words, weights = translator.image_attention(text, image)
    regions, shape = weights.shape[2], translator.image_shape
    drawn = {"rows": [str(region + 1) for region in range(regions)], "columns": words, "weights": weights}
    if len(shape) == 3:
        down = round((regions * shape[0] / shape[1]) ** 0.5)
        drawn["grid"] = [down, regions // down]
    return drawn


def fitting(weights: np.ndarray) -> tuple[np.ndarray, str]:
    """Return weights `(layers, H, rows, columns)` and `""`, or their means if there are too many, and a note.

    The mean is over heads, then also over layers.
    """
    means = ((weights.mean(axis=axes, keepdims=True), note) for axes, note in MEANS)
    return next((mean, note) for mean, note in means if mean.size <= MOST_WEIGHTS)
