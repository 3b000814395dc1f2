"""What a translation must hold exactly as its text does: numbers, addresses, and what programs fill in."""

from collections import Counter
from collections.abc import Generator, Iterator

import regex

# What braces hold, which may have braces within braces within braces. Linear, as files may be hostile.
WITHIN = "[^{}]*+"
for _ in range(3):
    WITHIN = rf"(?:[^{{}}]++|\{{{WITHIN}\}})*+"
PLACEHOLDER = regex.compile(
    rf"""
    (?:https?|ftp)://[^\s<>"]*[^\s<>"'.,;:!?)\]] | www\.[^\s<>"]*[^\s<>"'.,;:!?)\]]
    | (?<![\w.+-])[\w.+-]++@[\w-]+(?:\.[\w-]+)+
    | [$#%@]?\{{{WITHIN}\}}  # {{0}}, {{{{name}}}}, ${{x}}, %{{n}}, ICU's {{n, plural, …}}
    | %%
    # %s, %1$s, %(name)s, %5.2f
    | (?<!\d)%(?:\(\w+\)|\d+\$)?[-+\#0]*(?:\d+|\*)?(?:\.\d+)?(?:hh?|ll?|[Lqjzt])?[diouxXeEfFgGcrsap@]
    | &\#?\w+;
    | \[X\d+X\]  # what Weblate sends for those above
    | \$t\([^()]*\) | (?<![\w:/]):[a-z_]\w*+  # of i18next, of Laravel
    | (?<![\w&])\#\w*+  # ICU's number, hashtags
    | (?<![\w.,])\d++(?:[.,:/]\d++)*+(?![\w])
    """,
    regex.VERBOSE,
)
# The words of a part between placeholders, and what is around them.
PART = regex.compile(r"(?s)(\W*)(.*?)(\W*)")


def has_words(text: str) -> bool:
    """Return whether a text has letters outside its placeholders."""
    return any(map(str.isalpha, PLACEHOLDER.sub("", text)))


def keeps(text: str, translation: str, numbers: bool = True) -> bool:
    """Return whether a translation has the text's placeholders, each as often, and no others.

    Args:
        numbers: bool. Whether numbers count.
    """
    return _placeholders(text, numbers) == _placeholders(translation, numbers)


def keeping(sentences: list[str], in_parts: list[str]) -> Generator[tuple[str, list], list, list[str]]:
    """Return translations that keep the sentences' placeholders, in steps as of `translating`.

    Of a sentence in which one was lost, the parts between the placeholders are translated by themselves. If
    that keeps them, the sentence is added to `in_parts`.

    Returns:
        The translations; `""` for a sentence of which no translation was found that keeps them.
    """
    found = yield "translate", sentences
    known = dict(zip(sentences, found, strict=True))
    lost = [sentence for sentence in sentences if not keeps(sentence, known[sentence])]
    needed = dict.fromkeys(part for sentence in lost for part in _parts(sentence) if has_words(part))
    needed = [part for part in needed if part not in known]
    own = {}
    if needed:
        own = dict(zip(needed, (yield "translate", needed), strict=True))
    for sentence in lost:
        whole = "".join(
            unended((own | known)[part], part) if has_words(part) else part for part in _parts(sentence)
        )
        known[sentence] = ""
        if keeps(sentence, whole):
            known[sentence] = whole
            in_parts.append(sentence)
    return [known[sentence] for sentence in sentences]


def unended(translation: str, part: str) -> str:
    """Return the translation of a part of a sentence without a full stop that the part does not have."""
    return translation if part[-1] in ".。" else translation.rstrip(".。")


def _placeholders(text: str, numbers: bool) -> Counter:
    found = (match[0] for match in PLACEHOLDER.finditer(text))
    return Counter(one for one in found if numbers or not one[0].isdigit())


def _parts(text: str) -> Iterator[str]:
    """Yield a text's placeholders, the words between them, and the marks between these."""
    place = 0
    for match in PLACEHOLDER.finditer(text):
        yield from PART.fullmatch(text[place : match.start()]).groups()
        yield match[0]
        place = match.end()
    yield from PART.fullmatch(text[place:]).groups()
