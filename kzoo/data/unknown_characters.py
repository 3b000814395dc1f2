"""Which sentences have characters that a vocabulary lacks, counted when they are tokenized for training."""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

SHOWN = 5  # characters


@dataclass(frozen=True)
class UnknownCharacters:
    """How many sentences have characters that the vocabulary lacks, and which.

    Args:
        sentences: int. Number of sentences.
        lacking: int. Number of those that have such characters.
        characters: these characters, in the order in which they occur.
    """

    sentences: int = 0
    lacking: int = 0
    characters: str = ""

    def __add__(self, other: "UnknownCharacters") -> "UnknownCharacters":
        return UnknownCharacters(
            self.sentences + other.sentences,
            self.lacking + other.lacking,
            "".join(dict.fromkeys(self.characters + other.characters)),
        )


def unknown_characters(
    sentences: Sequence[str],
    words: Sequence[Sequence[int]],
    tokenize: Callable[[list[str]], list[list[int]]],
    unknown: int,
) -> UnknownCharacters:
    """Return what a vocabulary lacks of sentences.

    Args:
        sentences: the text.
        words: its token ids.
        tokenize: function from a list of texts to their token ids.
        unknown: int. The token id of what the vocabulary lacks.
    """
    lacking = [text for text, ids in zip(sentences, words, strict=True) if unknown in ids]
    seen = list(dict.fromkeys(unicodedata.normalize("NFC", "".join(lacking))))  # no accents apart
    alone = tokenize(seen) if seen else []
    characters = "".join(c for c, ids in zip(seen, alone, strict=True) if unknown in ids)
    return UnknownCharacters(len(sentences), len(lacking), characters)


def unknown_line(sides: dict[str, UnknownCharacters]) -> str:
    """Return one line about what the vocabularies of the languages' sentences lack; "" if nothing."""
    if not any(side.lacking for side in sides.values()):
        return ""
    counts = (
        f"{language} {side.lacking:,} of {side.sentences:,}{_shown(side.characters)}"
        for language, side in sides.items()
    )
    return "Sentences with characters that the vocabulary lacks, which the model never writes: " + "; ".join(
        counts
    )


def _shown(characters: str) -> str:
    shown = " ".join(repr(character) for character in characters[:SHOWN])
    return f" ({shown}{' …' if len(characters) > SHOWN else ''})" if characters else ""
