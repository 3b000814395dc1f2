"""What a translation must hold exactly as its text does: numbers, addresses, and what programs fill in."""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator

import regex

# What braces hold, which may have braces within braces within braces. Linear, as files may be hostile.
WITHIN = "[^{}]*+"
for _ in range(3):
    WITHIN = rf"(?:[^{{}}]++|\{{{WITHIN}\}})*+"
# A character of a word, but none of languages that need not have spaces around a number.
LETTER = r"[^\W\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
WORD = regex.compile(LETTER)
# What an address of a page has, and what it may end in; neither has Chinese marks or typographic quotes.
NOT_PAGE = r'\s<>"\u2018-\u201f\u3001-\u303f\uff01-\uff0f\uff1a-\uff20'
PAGE = rf"[^{NOT_PAGE}]*[^{NOT_PAGE}'.,;:!?)\]]"
PLACEHOLDER = regex.compile(
    rf"""
    (?:https?|ftp)://{PAGE} | www\.{PAGE}
    | (?<!{LETTER}|[.+-])(?:{LETTER}|[.+-])++@(?:{LETTER}|-)+(?:\.(?:{LETTER}|-)+)+
    | [$#%@]?\{{{WITHIN}\}}  # {{0}}, {{{{name}}}}, ${{x}}, %{{n}}, ICU's {{n, plural, …}}
    | %%
    # %s, %1$s, %(name)s, %5.2f
    | (?<!\d)%(?:\(\w+\)|\d+\$)?[-+\#0]*(?:\d+|\*)?(?:\.\d+)?(?:hh?|ll?|[Lqjzt])?[diouxXeEfFgGcrsap@]
    | &\#?\w+;
    | \[X\d+X\]  # what Weblate sends for those above
    | \$t\([^()]*\) | (?<![\w:/]):[a-z_]\w*+  # of i18next, of Laravel
    | (?<![\w&])\#\w*+  # ICU's number, hashtags
    | (?<!{LETTER}|[.,])\d++(?:[.,:/]\d++)*+(?!{LETTER})
    """,
    regex.VERBOSE,
)
# What each of them has. Most lines have none: they are then compared in a twentieth of the time.
SIGN = regex.compile(r"[\d{%@&#:$\[]|www\.")
# Numbers that stand in for placeholders, those first that the captions model copies most often.
STAND_INS = ("18", "13", "19", "12", "14", "11", "15", "16", "17")
# No number has more; Python refuses to write one of over 4,300 digits.
IN_WORDS = regex.compile("[〇零一二两兩三四五六七八九十百千万萬亿億]{1,40}")
# The words of a part between placeholders, and what is around them.
PART = regex.compile(r"(?s)(\W*)(.*?)(\W*)")


def has_words(text: str) -> bool:
    """Return whether a text has letters outside its placeholders."""
    return any(map(str.isalpha, PLACEHOLDER.sub("", text)))


def outside(text: str) -> str:
    """Return a text without its placeholders, but with its numbers."""
    return PLACEHOLDER.sub(lambda match: match[0] if match[0][0].isdigit() else "", text)


def keeps(text: str, translation: str, numbers: bool = True) -> bool:
    """Return whether a translation has the text's placeholders, each as often, and no others.

    Instead of a number in digits, one of both may have it in Chinese words.

    Args:
        numbers: bool. Whether numbers count, and `#`, which stands for one.
    """
    own, new = _placeholders(text, numbers), _placeholders(translation, numbers)
    return own == new or _plain(own - new) <= _in_words(translation) and _plain(new - own) <= _in_words(text)


def same_places(text: str, translation: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return where each of a text's placeholders is, and where it is in the translation, if it is there."""
    places = defaultdict(list)
    for match in PLACEHOLDER.finditer(translation):
        places[match[0]].append(match.span())
    # Of the same one in several places, the first is the first.
    return [
        (match.span(), places[match[0]].pop(0)) for match in PLACEHOLDER.finditer(text) if places[match[0]]
    ]


def keeping(
    sentences: list[str], in_parts: list[str], must: bool = True
) -> Generator[tuple[str, list], list, list[str]]:
    """Return translations that keep the sentences' placeholders, in steps as of `translating`.

    A sentence in which one was lost is translated with numbers for its placeholders. If one of these is lost,
    too, the parts between the placeholders are translated by themselves. If that keeps them, the sentence is
    added to `in_parts`.

    Args:
        must: bool. Whether the translations must keep them; if not, numbers may change.

    Returns:
        The translations; for a sentence of which none was found that keeps them, `""`, or if it need not, the
        first one. One whose first is `""` has no other.
    """
    found = yield "translate", sentences
    first = dict(zip(sentences, found, strict=True))
    known = first.copy()
    lost = [one for one in sentences if known[one] and not keeps(one, known[one], must)]
    for again in (False, True):
        stood_in = {sentence: _with_stand_ins(sentence, again, must) for sentence in lost}
        stood_in = {sentence: pair for sentence, pair in stood_in.items() if pair[1]}
        if stood_in:
            found = yield "translate", [text for text, _ in stood_in.values()]
            for (sentence, pair), translation in zip(stood_in.items(), found, strict=True):
                known[sentence] = _without_stand_ins(translation, *pair)
        lost = [sentence for sentence in lost if not keeps(sentence, known[sentence], must)]
    needed = dict.fromkeys(part for sentence in lost for part in _parts(sentence) if has_words(part))
    needed = [part for part in needed if part not in known]
    own = {}
    if needed:
        own = dict(zip(needed, (yield "translate", needed), strict=True))
    for sentence in lost:
        whole = _together(
            (part, unended((own | known)[part], part) if has_words(part) else part)
            for part in _parts(sentence)
        )
        known[sentence] = "" if must else first[sentence]
        if keeps(sentence, whole, must):
            known[sentence] = whole
            in_parts.append(sentence)
    return [known[sentence] for sentence in sentences]


def _with_stand_ins(sentence: str, again: bool, digits: bool) -> tuple[str, dict[str, str]]:
    """Return a sentence with numbers for its placeholders, and these by their numbers.

    Args:
        again: bool. Whether the first number has failed.
        digits: bool. Whether placeholders in digits are then replaced, too.
    """
    words = _in_words(sentence)
    free = [number for number in STAND_INS if number not in sentence and number not in words][again:]
    placeholders = {}

    def number_for(match: regex.Match) -> str:
        if len(placeholders) == len(free) or match[0][0].isdigit() and not (again and digits):
            return match[0]
        number = free[len(placeholders)]
        placeholders[number] = match[0]
        return number

    return PLACEHOLDER.sub(number_for, sentence), placeholders


def _without_stand_ins(translation: str, text: str, placeholders: dict[str, str]) -> str:
    """Return a translation of a text of `_with_stand_ins` with the placeholders for their numbers.

    If one is left, such as that in "18-year-old", return `""`.
    """
    for number, placeholder in placeholders.items():
        # "an 18-year-old" may stand for 18 alone.
        beside = LETTER if f"{number}-" in text or f"-{number}" in text else f"{LETTER}|-"
        whole = rf"(?<!{beside}|\d[.,:]){number}(?!{beside}|[.,:]\d)"
        translation = regex.sub(whole, lambda _, new=placeholder: new, translation)
    return "" if any(number in translation for number in placeholders) else translation


def unended(translation: str, part: str) -> str:
    """Return the translation of a part of a sentence without a full stop that the part does not have."""
    return translation if part[-1] in ".。" else translation.rstrip(".。")


def _placeholders(text: str, numbers: bool) -> Counter:
    if not SIGN.search(text):
        return Counter()
    found = (match[0] for match in PLACEHOLDER.finditer(text))
    return Counter(one for one in found if numbers or not (one[0].isdigit() or one == "#"))


def _plain(numbers: Counter) -> Counter:
    """Return numbers in digits alone; what else is counted has no form in words."""
    return Counter({number.replace(",", ""): count for number, count in numbers.items()})


def _in_words(text: str) -> Counter:
    """Return the values of a text's numbers in Chinese words, in digits."""
    return Counter(str(_value(match[0])) for match in IN_WORDS.finditer(text))


def _value(words: str) -> int:
    """Return a number in Chinese words: 12,005 for 一万二千零五, 2024 for 二〇二四."""
    whole = below_10_000 = digits = 0
    for word in words:
        value = 2 if word == "两" else int(unicodedata.numeric(word))  # Unicode does not know this one
        if value < 10:
            digits = 10 * digits + value
        elif value < 10_000:
            below_10_000, digits = below_10_000 + (digits or 1) * value, 0
        elif value == 10_000:
            whole, below_10_000, digits = whole + (below_10_000 + digits) * value, 0, 0
        else:  # 亿, which multiplies all before it
            whole, below_10_000, digits = (whole + below_10_000 + digits) * value, 0, 0
    return whole + below_10_000 + digits


def _together(parts: Iterator[tuple[str, str]]) -> str:
    """Return the translations of parts behind each other, with the spaces that only their language has."""
    whole, before = "", ""
    for part, translation in parts:
        if not translation:
            continue
        sides = (before[-1:], whole[-1:]), (part[0], translation[0])
        if any(old.isalpha() and not WORD.match(old) and WORD.match(new) for old, new in sides):
            whole += " " * any(map(PLACEHOLDER.fullmatch, (before, part)))
        whole, before = whole + translation, part
    return whole


def _parts(text: str) -> Iterator[str]:
    """Yield a text's placeholders, the words between them, and the marks between these."""
    place = 0
    for match in PLACEHOLDER.finditer(text):
        yield from PART.fullmatch(text[place : match.start()]).groups()
        yield match[0]
        place = match.end()
    yield from PART.fullmatch(text[place:]).groups()
