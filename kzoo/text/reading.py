"""How translators read sentences: in which case, and what becomes of characters that the vocabulary lacks.

Both engines, the command line and the server read with `read`. Exports cannot: a SavedModel or CTranslate2's
files take a text's case as it is, translate what they cannot spell, and read no characters from pixels.
"""

import dataclasses
import functools
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from kzoo.errors import UserError
from kzoo.text.languages import lower_case, main_code, upper_case
from kzoo.text.preparation import known_forms
from kzoo.text.vocabulary import SHOWN, UNKNOWN

CODE = re.compile(r"(\s*>>.*?<<)?")  # a target language, at the beginning of a text
WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
BEFORE_FIRST = re.compile(r"(^|[.!?…]\s)[^\w]*$")  # the end of what precedes a sentence's first word
SENTENCE_END = re.compile(r"[.!?…:;。！？।؟][\W_]*$")
PHRASE = 6  # the most words of a heading or a button: its first word may seldom begin a sentence
TITLE = 3  # the fewest words with a capital that make a title
SHORT = 4  # letters of the words that a title may have in lower case, as in "the" and "with"
CAPITAL_NOUNS = {"de", "lb", "nds"}  # languages in which a capital may be a noun's
CHOICES = ("copy", "error", "translate")

Tokenize = Callable[[list[str]], Sequence[Sequence[int]]]
Restore = Callable[[str, str | None], str]


class UnknownCharactersWarning(UserWarning):
    """Sentences have characters that the vocabulary lacks."""


class Reading(NamedTuple):
    """A sentence as the model reads it.

    Attributes:
        tokens: its token ids; none if it is copied.
        lacking: its characters that the vocabulary lacks.
        restore: of a translation and its language, gives the translation the sentence's case, or returns the
            sentence if it is copied; `None`: the translation stays as it is.
        cut: the number of further tokens, which the model does not read.
    """

    tokens: list[int]
    lacking: str = ""
    restore: Restore | None = None
    cut: int = 0


def read(
    tokenize: Tokenize,
    sentences: Sequence[str],
    language: str | None = None,
    unknown: str = "copy",
    prefixes: Sequence[str] | None = None,
    codes: bool = False,
    drawable: Callable[[str], str] | None = None,
) -> list[Reading]:
    """Read sentences for translation.

    - A sentence in capitals or in title case is read in the case that the vocabulary spells in the fewest
      pieces, and its translation gets the sentence's case. A single word in capitals is read likewise if it
      would be spelled letter by letter, as is the first word of a phrase (`Dogs`); their case is not given
      back.
    - Characters that the vocabulary lacks are read as `known_forms` writes them; others from their pixels, if
      the model reads pixels.
    - A sentence whose letters and symbols are mostly unknown even then is copied.

    A sentence with a prefix is translated in its own case, and never copied.

    Args:
        tokenize: the source tokenizer, with its options.
        sentences: the sentences.
        language: the code of their language, whose letters may have case of their own.
        unknown: str. What becomes of a sentence that is mostly unknown: `"copy"`, `"error"` or `"translate"`.
        prefixes: the beginning of each translation; `""` for none.
        codes: bool. Whether a sentence may begin with its target language, such as `>>fra<<`.
        drawable: returns those of some characters that the model reads from their pixels; `None`: it reads
            none.

    Raises:
        UserError: another value of `unknown`; with `"error"`, a sentence that is mostly unknown.
    """
    if unknown not in CHOICES:
        raise UserError(f"unknown must be one of {', '.join(CHOICES)}, not {unknown!r}")
    free = [not prefix for prefix in prefixes] if prefixes else [True] * len(sentences)
    texts, restores = [], []
    for sentence, may_change in zip(sentences, free, strict=True):
        code = CODE.match(sentence)[0] if codes else ""
        text, restore = sentence[len(code) :], None
        if may_change:
            text, restore = _in_usual_case(tokenize, text, language)
        texts.append(code + text)
        restores.append(restore)
    readings = []
    rows = tokenize(texts) if texts else []
    for number, (tokens, restore) in enumerate(zip(rows, restores, strict=True)):
        lacking = ""
        if UNKNOWN in tokens:
            text, lacking = known_forms(tokenize, texts[number])
            drawn = drawable(lacking) if drawable else ""
            lacking = "".join(character for character in lacking if character not in drawn)
            (tokens,) = tokenize([text], drawn=drawn) if drawn else tokenize([text])
            if free[number] and unknown != "translate" and _mostly(lacking, text):
                code = CODE.match(text)[0] if codes else ""
                copy = sentences[number][len(code) :]
                if unknown == "error":
                    raise UserError(f"the vocabulary lacks most characters of {copy!r:.80}")
                tokens, restore = [], functools.partial(_same, copy)
        readings.append(Reading(tokens, lacking, restore))
    return readings


def restored(readings: Sequence[Reading], found: list[list], languages: Iterable[str | None]) -> list[list]:
    """Return each sentence's hypotheses, in one of `languages`, as `Reading.restore` makes them."""
    return [
        hypotheses if reading.restore is None else _restored(reading.restore, hypotheses, language)
        for reading, hypotheses, language in zip(readings, found, languages, strict=True)
    ]


def lacking_line(lacking: Sequence[Reading], sentences: int) -> str:
    """Return a line about sentences with characters that the vocabulary lacks; "" without one.

    Args:
        lacking: these sentences.
        sentences: number of all sentences.
    """
    if not lacking:
        return ""
    characters = list(dict.fromkeys("".join(reading.lacking for reading in lacking)))
    shown = " ".join(map(repr, characters[:SHOWN])) + (" …" if len(characters) > SHOWN else "")
    copied = sum(not reading.tokens for reading in lacking)
    return (
        f"{len(lacking):,} of {sentences:,} sentences with characters that the vocabulary lacks ({shown})"
        + (f"; {copied:,} of them mostly, and copied" if copied else "")
    )


def _restored(restore: Restore, hypotheses: list, language: str | None) -> list:
    """Return hypotheses with restored texts, each text once."""
    best = {}
    for hypothesis in hypotheses:
        text = restore(hypothesis.text, language)
        best.setdefault(text, dataclasses.replace(hypothesis, text=text))
    return list(best.values())


def _same(sentence: str, _translation: str, _language: str | None) -> str:
    return sentence


def _mostly(lacking: str, text: str) -> bool:
    """Return whether most letters, marks and symbols of a text are lacking; of others if it has none."""
    written = [character for character in text if unicodedata.category(character)[0] in "LMS"] or text
    return 2 * sum(character in lacking for character in written) > len(written)


def _in_usual_case(tokenize: Tokenize, text: str, language: str | None) -> tuple[str, Restore | None]:
    """Return a text in the case that the vocabulary knows best, and what gives a translation its own."""
    if text.islower() or _is_usual(text):
        return text, None
    words, certain, cased = list(WORD.finditer(text)), False, has_case(text)
    short = 0 if main_code(language) in CAPITAL_NOUNS else SHORT
    if cased and text.isupper():
        restore = upper_case
    elif cased and _is_title([word[0] for word in words], short):
        restore = title_case
        capitals = [word for word in words if not word[0].islower()]
        # Four capitals in a row are seldom a name; German nouns may be.
        certain = len(words) == len(capitals) > TITLE and main_code(language) not in CAPITAL_NOUNS
        words = capitals
    else:
        phrase = len(words) == 1 or len(words) <= PHRASE and not SENTENCE_END.search(text)
        restore, first = None, words[:phrase]
        words = [word for word in words if word[0][1:] and (word in first or not word[0][1:].islower())]
    if not words:
        return text, None
    forms = [_forms(word, text, language) for word in words]
    costs = iter(
        [(row.count(UNKNOWN), len(row)) for row in tokenize([form for row in forms for form in row])]
    )
    changed, gained, place = [], certain, 0
    for word, row in zip(words, forms, strict=True):
        priced = [(next(costs), form) for form in row]
        own, (best, form) = priced[-1][0], min(priced, key=lambda pair: pair[0])
        if restore is None and best[0] >= own[0] and 2 * best[1] > own[1]:
            form = word[0]
        gained |= best < own
        changed += [text[place : word.start()], form]
        place = word.end()
    usual = "".join([*changed, text[place:]])
    # The training text taught capitals if nothing is gained.
    return (text, None) if usual == text or (restore and not gained) else (usual, restore)


def has_case(text: str) -> bool:
    """Return whether over nine of ten letters of a text have capitals; Latin words may be in Chinese."""
    letters = [character for character in text if character.isalpha()]
    without = sum(character.lower() == character.upper() for character in letters)
    return len(letters) > 10 * without


def _is_usual(text: str) -> bool:
    """Return whether a text is a sentence of several words whose only capital is its first letter."""
    # The slice of the end is for speed: most texts are such sentences.
    return text.count(" ") > 1 and text[1:].islower() and bool(SENTENCE_END.search(text[-3:]))


def _is_title(words: list[str], short: int) -> bool:
    """Return whether all words of more than `short` letters begin with a capital, and most of all do."""
    capital = sum(not word[0].islower() and word[0].lower() != word[0] for word in words)
    long = all(word[0].lower() != word[0] for word in words if len(word) > short)
    return capital >= TITLE and 2 * capital > len(words) and long


def _forms(word: re.Match, text: str, language: str | None) -> list[str]:
    """Return the forms of a word that it may be read in, the preferred first and its own last."""
    own = word[0]
    lower = lower_case(own, language)
    capital = upper_case(own[0], language) + lower[1:]
    if main_code(language) == "en" and re.match("I(['’]|$)", own):
        forms = [capital]
    elif BEFORE_FIRST.search(text[: word.start()]) or (
        not own.isupper() and main_code(language) in CAPITAL_NOUNS
    ):
        forms = [capital, lower]
    else:
        forms = [lower, capital]
    return [*forms, own]


def title_case(text: str, code: str | None) -> str:
    """Return a text with a capital at the beginning of each word."""
    return WORD.sub(lambda word: upper_case(word[0][0], code) + word[0][1:], text)
