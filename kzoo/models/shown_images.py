"""Which image is shown with each sentence: a model that uses images scores worse with wrong ones or none."""

import numpy as np

from kzoo.errors import UserError
from kzoo.models.image_inputs import image_rows

GREY = 127
SEED = 0  # of the shuffled order
SHOWN = ("right", "shuffled", "none")


def shown_images(translator, images, count: int, shown: str = "right"):
    """Return the sentences' own images, the same in a random order, or blank ones.

    Args:
        translator: reads images; has `image_shape` and `extractor`.
        images: as `Translator.translate` takes them, one per sentence.
        count: int. Number of sentences.
        shown: `"right"`, the sentences' own; `"shuffled"`, the same in a random order, in which about one
            sentence of the whole set keeps its own; `"none"`, grey pictures, or zeros for features.

    Returns:
        `(N, *image_shape)`: an array, or features that are read from the file when indexed.

    Raises:
        UserError: another `shown`; images that the translator does not read, or another number of them.
    """
    if shown not in SHOWN:
        raise UserError(f"shown is one of {', '.join(SHOWN)}, not {shown!r}")
    rows = image_rows(images, count, translator.image_shape, translator.extractor)
    if shown == "shuffled":
        return rows[np.random.default_rng(SEED).permutation(count)]
    if shown == "none":
        nothing = GREY if len(translator.image_shape) == 3 else 0
        return np.full((count, *translator.image_shape), nothing, rows.dtype)
    return rows
