"""What a translation must hold exactly as its text does: numbers, addresses, and what programs fill in."""

from collections import Counter
from collections.abc import Callable, Iterator

import regex

from kzoo.text.sentences import split_sentences

PLACEHOLDER = regex.compile(
    r"""
    (?:https?|ftp)://[^\s<>"]*[^\s<>"'.,;:!?)\]] | www\.[^\s<>"]*[^\s<>"'.,;:!?)\]]
    | [\w.+-]+@[\w-]+(?:\.[\w-]+)+
    | [$#%@]?(?P<braces>\{(?:[^{}]|(?&braces))*\})  # {0}, {{name}}, ${x}, %{n}, ICU's {n, plural, …}
    | %%
    # %s, %1$s, %(name)s, %5.2f
    | (?<!\d)%(?:\(\w+\)|\d+\$)?[-+\#0]*(?:\d+|\*)?(?:\.\d+)?(?:hh?|ll?|[Lqjzt])?[diouxXeEfFgGcrsap@]
    | &\#?\w+;
    | (?<![\w.,])\d++(?:[.,:/]\d++)*+(?![\w])
    """,
    regex.VERBOSE,
)
# The words of a part between placeholders, and what is around them.
PART = regex.compile(r"(?s)(\W*)(.*?)(\W*)")


def has_words(text: str) -> bool:
    """Return whether a text has letters outside its placeholders."""
    return any(map(str.isalpha, PLACEHOLDER.sub("", text)))


def keeps(text: str, translation: str) -> bool:
    """Return whether a translation has the text's placeholders, each as often, and no others."""
    return _placeholders(text) == _placeholders(translation)


def translate_keeping(
    texts: list[str], translate: Callable[[list[str]], list[str]], source: str | None = None
) -> list[str]:
    """Return translations that keep the texts' placeholders.

    Of a sentence in which one was lost, the parts between the placeholders are translated by themselves.

    Args:
        texts: such as those of a document.
        translate: returns the translations of texts of one or more sentences.
        source: the language of the texts.

    Returns:
        The translations; `""` for a text of which no translation was found that keeps them.
    """
    found = translate(texts)
    known = dict(zip(texts, found, strict=True))
    lost = [number for number, text in enumerate(texts) if not keeps(text, found[number])]
    split = {number: split_sentences(texts[number], source) for number in lost}
    needed = dict.fromkeys(
        part
        for sentences in split.values()
        for sentence in sentences
        for part in (sentence.strip(), *_parts(sentence))
        if has_words(part) and part not in known
    )
    known |= zip(needed, translate(list(needed)), strict=True) if needed else ()
    for number, sentences in split.items():
        whole = "".join(_keeping(sentence, known) for sentence in sentences)
        found[number] = whole if keeps(texts[number], whole) else ""
    return found


def unended(translation: str, part: str) -> str:
    """Return the translation of a part of a sentence without a full stop that the part does not have."""
    return translation if part[-1] in ".。" else translation.rstrip(".。")


def _keeping(sentence: str, known: dict[str, str]) -> str:
    """Return a sentence's translation, put together from those of its parts if it keeps no placeholders."""
    text = sentence.strip()
    if text in known and keeps(text, known[text]):
        return known[text] + sentence[len(sentence.rstrip()) :]
    return "".join(unended(known[part], part) if has_words(part) else part for part in _parts(sentence))


def _placeholders(text: str) -> Counter:
    return Counter(match[0] for match in PLACEHOLDER.finditer(text))


def _parts(text: str) -> Iterator[str]:
    """Yield a text's placeholders, the words between them, and the marks between these."""
    place = 0
    for match in PLACEHOLDER.finditer(text):
        yield from PART.fullmatch(text[place : match.start()]).groups()
        yield match[0]
        place = match.end()
    yield from PART.fullmatch(text[place:]).groups()
