"""The translations of a document's texts, with marks for its elements, sentence by sentence."""

import re
from collections.abc import Callable, Collection, Generator
from functools import partial

from kzoo.documents.inline import NO_MARKS, parts, pieces_of, placed, plain, with_marks
from kzoo.documents.placeholders import has_words, keeping, keeps, same_places, unended
from kzoo.text.alignment import Alignment
from kzoo.text.languages import Direction, is_chinese_or_japanese
from kzoo.text.sentences import TARGET_CODE, split_sentences

# What a translator is asked: to "translate" sentences, or to "align" pairs of a sentence and its translation;
# it answers with translations, or with each pair's attention, `None` if there is none.
Steps = Generator[tuple[str, list], list, list[str]]
DONE = "done"


def translate_texts(
    texts: list[str],
    translate: Callable[[list[str]], list[str]],
    translator,
    direction: Direction,
    in_parts: list[str] | None = None,
    skip_long: bool = True,
    unknown: str = "copy",
) -> list[str]:
    """Return the translations of a document's texts, as `translating` does.

    Args:
        texts: with marks.
        translate: returns the translations of sentences.
        translator: aligns them.
        direction: what the translator's `direction` returns.
        in_parts, skip_long, unknown: as of `translating`.
    """
    options = {"in_parts": in_parts, "skip_long": skip_long, "unknown": unknown}
    steps = translating(texts, direction, translator, **options)
    return run_steps(steps, translate, translator, direction)


def run_steps(
    steps: Steps, translate: Callable[[list[str]], list[str]], translator, direction: Direction
) -> list[str]:
    """Return what steps return; the other arguments are those of `translate_texts`."""
    asked, items = next_step(steps, None)
    while asked != DONE:
        answer = translate(items) if asked == "translate" else translator.alignments_of(items, direction)
        asked, items = next_step(steps, answer)
    return items


def next_step(steps: Steps, answer: list | None) -> tuple[str, list]:
    """Return what is asked after an answer, at first `None`; or `DONE`, and the translations."""
    try:
        return steps.send(answer)
    except StopIteration as end:
        return DONE, end.value


def translating(
    texts: list[str],
    direction: Direction,
    translator,
    keep: bool = True,
    in_parts: list[str] | None = None,
    skip_long: bool = True,
    unknown: str = "copy",
) -> Steps:
    """Return the translations of texts with marks, in steps.

    Elements stand around the words that theirs are aligned with. In a text that cannot be aligned, what is
    before, in and after each element is translated by itself, which is worse.

    Args:
        texts: as of `kzoo.documents.inline.texts`.
        direction: the languages.
        translator: knows which sentences are too long for it.
        keep: bool. Whether sentences must keep their placeholders; if not, one that cannot has the model's
            translation, and numbers may change.
        in_parts: gets the sentences that kept them only as their parts were translated by themselves.
        skip_long: bool. Whether sentences that are too long for the model have no translation.
        unknown: str. As of `TextTranslator.translate`: a sentence that it copies is not too long.

    Returns:
        The translations, with marks; `""` for a text with a sentence that has none, or that had to keep its
        placeholders, and did not.
    """
    steps = _translating(texts, direction, keep, in_parts)
    too_long = partial(translator.too_long, direction=direction, unknown=unknown)
    return _without_long(steps, too_long) if skip_long else steps


def keeping_placeholders(
    texts: list[str],
    found: list[str],
    direction: Direction,
    translator,
    in_parts: list[str] | None = None,
) -> Steps:
    """Return the translations of texts without elements, in steps as of `translating`.

    Texts whose placeholders are lost in the translations found are translated as `translating` does with
    `keep=False`. If that loses them, too, they have the translation found. Numbers may change. A text that
    begins with its target language, such as `>>fra<<`, has the translation found: its parts do not name it.
    """
    lost = [text for text, one in zip(texts, found, strict=True) if not keeps(text, one, numbers=False)]
    if translator.codes_in_text:
        lost = [text for text in lost if not TARGET_CODE.match(text)]
    lines_of = {text: re.split(r"(\r?\n)", text.translate(NO_MARKS)) for text in lost}
    needed = list(dict.fromkeys(line for lines in lines_of.values() for line in lines if has_words(line)))
    table, put_together = {}, []
    if needed:
        new = yield from translating(needed, direction, translator, keep=False, in_parts=put_together)
        table = dict(zip(needed, new, strict=True))
    known = {
        text: "".join(table.get(line, line) for line in lines)
        for text, lines in lines_of.items()
        if all(table.get(line, line) or not line for line in lines)
    }
    known = {text: new for text, new in known.items() if keeps(text, new, numbers=False)}
    if in_parts is not None:
        in_parts += [one for one in put_together if any(one in "".join(lines_of[text]) for text in known)]
    return [known.get(text, one) for text, one in zip(texts, found, strict=True)]


def _without_long(steps: Steps, too_long: Callable[[list[str]], Collection[str]]) -> Steps:
    """Return what steps do, in which the translation of a sentence that is too long is `""`."""
    asked, items = next_step(steps, None)
    while asked != DONE:
        long = too_long(items) if asked == "translate" else ()
        needed = [item for item in items if item not in long]
        found = iter((yield asked, needed) if needed else ())
        asked, items = next_step(steps, ["" if item in long else next(found) for item in items])
    return items


def _translating(texts: list[str], direction: Direction, keep: bool, in_parts: list[str] | None) -> Steps:
    source, target = direction
    put_together = []
    plain_texts = {text: plain(text) for text in texts}
    split = {text: split_sentences(whole, source) for text, whole in plain_texts.items()}
    known = {one.strip(): one.strip() for sentences in split.values() for one in sentences}
    if needed := [sentence for sentence in known if has_words(sentence)]:
        translations = yield from keeping(needed, put_together, keep)
        known |= zip(needed, translations, strict=True)
    marked = [text for text in split if text != plain_texts[text]]
    pairs = dict.fromkeys((one.strip(), known[one.strip()]) for text in marked for one in split[text])
    pairs = [(sentence, translation) for sentence, translation in pairs if translation not in ("", sentence)]
    aligned = {}
    if pairs:
        aligned = dict(zip(pairs, (yield "align", pairs), strict=True))
    found = {text: _translated(text, sentences, known, aligned, target) for text, sentences in split.items()}
    if in_parts is not None:
        used = {one.strip() for text, sentences in split.items() if found[text] for one in sentences}
        in_parts += filter(used.__contains__, put_together)
    apart = {text: parts(text) for text in texts if found[text] is None}
    needed = list(dict.fromkeys(part.strip() for some in apart.values() for part in some if has_words(part)))
    if needed:
        translations = yield from _translating(needed, direction, keep, in_parts)
        own = dict(zip(needed, translations, strict=True))
        found |= {text: _apart(some, own) for text, some in apart.items()}
    return [found[text] for text in texts]


def _translated(
    text: str, sentences: list[str], known: dict[str, str], aligned: dict, target: str | None
) -> str | None:
    """Return a text's translation from those of its sentences; `None` if its elements cannot be placed."""
    rows = []
    for number, one in enumerate(sentences, 1):
        sentence = one.strip()
        translation = known[sentence]
        if not translation:
            return ""
        space = "" if number == len(sentences) or is_chinese_or_japanese(target) else " "
        rows.append((one, translation + space, aligned.get((sentence, translation))))
    if text == "".join(sentences):
        return "".join(translation for _, translation, _ in rows)
    if any(attention is None and known[one.strip()] != one.strip() for one, _, attention in rows):
        return None
    pieces = placed(pieces_of(text), Alignment(rows, target, same_places))
    return None if pieces is None else with_marks(pieces)


def _apart(some: list[str], own: dict[str, str]) -> str:
    """Return a text put together from its parts; `""` if one has no translation."""
    found = []
    for part in some:
        words = part.strip()
        if has_words(part):
            if not own[words]:
                return ""
            part = part.replace(words, unended(own[words], words))
        found.append(part)
    return "".join(found)
