"""The special tokens of every vocabulary; the characters of a training text that a vocabulary lacks."""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

PAD, UNKNOWN, START, END = 0, 1, 2, 3
SPECIAL = {PAD: "<pad>", UNKNOWN: "<unk>", START: "<s>", END: "</s>"}
NOT_TEXT = [PAD, UNKNOWN, START]  # never in a translation
SHOWN = 5  # number of unknown characters that `unknown_line` shows per language


@dataclass(frozen=True)
class UnknownCharacters:
    """The characters of sentences that the vocabulary lacks."""

    sentences: int = 0  # number of sentences
    lacking: int = 0  # number of sentences with such characters
    characters: str = ""  # in order of occurrence

    def __add__(self, other: "UnknownCharacters") -> "UnknownCharacters":
        return UnknownCharacters(
            self.sentences + other.sentences,
            self.lacking + other.lacking,
            "".join(dict.fromkeys(self.characters + other.characters)),
        )


def unknown_characters(
    sentences: Sequence[str], tokens: Sequence[Sequence[int]], tokenize: Callable
) -> UnknownCharacters:
    """Return the characters of sentences that the vocabulary of `tokenize` lacks, given their token ids."""
    lacking = [text for text, ids in zip(sentences, tokens, strict=True) if UNKNOWN in ids]
    seen = list(dict.fromkeys(unicodedata.normalize("NFC", "".join(lacking))))  # accents with their letters
    by_character = tokenize(seen) if seen else []
    characters = "".join(c for c, ids in zip(seen, by_character, strict=True) if UNKNOWN in ids)
    return UnknownCharacters(len(sentences), len(lacking), characters)


def unknown_line(sides: dict[str, UnknownCharacters]) -> str:
    """Return a line about the characters that the languages' vocabularies lack; "" if there are none."""
    if not any(side.lacking for side in sides.values()):
        return ""
    counts = []
    for language, side in sides.items():
        shown = " ".join(map(repr, side.characters[:SHOWN])) + (" …" if len(side.characters) > SHOWN else "")
        named = f" ({shown})" if shown else ""
        counts.append(f"{language} {side.lacking:,} of {side.sentences:,}{named}")
    return (
        f"Sentences with characters that the vocabulary lacks and the model never writes: {'; '.join(counts)}"
    )
