"""Requests whose texts are split into sentences, which are then translated like other requests' sentences."""

import asyncio
from collections.abc import Sequence

from kzoo.models import Hypothesis
from kzoo.models.texts import SplitTexts
from kzoo.serve.checks import check_characters, directions
from kzoo.serve.served import Served


async def n_best(
    served: Served,
    texts: list[str],
    n: int,
    source_language: str | list[str] | None = None,
    target_language: str | list[str] | None = None,
    images: Sequence | None = None,
    prefixes: list[str] | None = None,
    split_sentences: bool | None = None,
) -> list[list[Hypothesis]]:
    """Return the `n` best translations of each text, best first.

    Args:
        served: the model.
        split_sentences: as in `Translator.translate`.

    The other arguments, and the errors, are those of `Served.n_best`.
    """
    ways = directions(served.languages, served.multilingual, len(texts), source_language, target_language)
    if not served.multilingual:
        ways = [tuple(served.languages)] * len(texts)
    check_characters(texts, served.limits)
    sources, targets = ([way[side] for way in ways] for side in (0, 1))
    split = await asyncio.to_thread(SplitTexts, texts, sources, split_sentences)
    if images is not None and len(images) == len(texts):
        images = [images[number] for number in split.text_of]
    sources, targets = ([side[number] for number in split.text_of] for side in (sources, targets))
    found = await served.n_best(split.sentences, n, sources, targets, images, split.prefixes(prefixes))
    return split.join(found, [way[1] for way in ways])
