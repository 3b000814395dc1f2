"""What a request may ask for: its size, its characters, its languages; each error is one line."""

from collections.abc import Callable
from dataclasses import dataclass

from kzoo.errors import UserError
from kzoo.text.texts import check_encodable

Direction = tuple[str | None, str | None]  # source and target language; `None` where a preset names none

MAX_BATCH = 64  # sentences
# Texts that are tokenized before their lengths are checked: 256 texts within the limit on characters took
# seconds. Each call of Keras's tokenizer costs half a millisecond.
TOGETHER = 16


@dataclass(frozen=True)
class Limits:
    """What one request may hold, and how many sentences may wait.

    Args:
        characters: int. Maximum characters per text.
        sentences: int. Maximum sentences per request.
        body: int. Maximum bytes of a request's body.
        bodies: int. Maximum bytes of the bodies of all requests that are being read or worked on; clients
            with more are told to try again.
        read_seconds: float. How long the server waits for a client that sends its body slower than 100 kB
            a second.
        queue: int. Maximum waiting sentences over all requests; clients with more are told to try again.
    """

    characters: int = 5_000
    sentences: int = 256
    body: int = 8 * 2**20
    bodies: int = 256 * 2**20
    read_seconds: float = 10.0
    queue: int = 1024

    def check_count(self, count: int):
        """Reject a request of too many sentences.

        Raises:
            UserError: says how many it has, and how many it may have.
        """
        if count > self.sentences:
            raise UserError(f"{count:,} sentences in a request; at most {self.sentences:,} are allowed")

    def check_texts(self, texts: list[str]):
        """Reject texts that are too many, too long, or cannot be encoded as UTF-8.

        Raises:
            UserError: names the first invalid text by its number in the request.
        """
        self.check_count(len(texts))
        for number, text in enumerate(texts, 1):
            if len(text) > self.characters:
                raise UserError(
                    f"sentence {number} has {len(text):,} characters; at most {self.characters:,} are allowed"
                )
            check_encodable(text, number)


def read_tokens(tokenizer: Callable, texts: list, most: int) -> list[list[int]]:
    """Return the token ids of each text.

    A SavedModel silently cuts sentences that are too long for its model; a server can report them.

    Args:
        tokenizer: function of a list of texts.
        texts: list.
        most: int. Maximum tokens that the model can read, with the end symbol.

    Raises:
        UserError: names the first sentence that is too long for the model.
    """
    tokens = []
    for start in range(0, len(texts), TOGETHER):
        for sentence in tokenizer(texts[start : start + TOGETHER]):
            tokens.append(sentence)
            if len(sentence) >= most:
                raise UserError(
                    f"sentence {len(tokens)} has {len(sentence):,} subwords, the model reads at most "
                    f"{most - 1}: split it"
                )
    return tokens


def check_language(code: str | None, languages: list[str], called: str = "language"):
    """Reject a code that is not one of a multilingual preset's languages.

    Raises:
        UserError: it is unknown, or missing.
    """
    if code in languages:
        return
    wrong = "is missing" if code is None else f"{code[:40]!r} is unknown"
    raise UserError(f"{called} {wrong}: this model knows {', '.join(languages)}")


def checked_directions(
    translator,
    count: int,
    source: str | list[str] | None,
    target: str | list[str] | None,
) -> list[Direction]:
    """Return the direction of each sentence.

    Args:
        translator: of one direction, or of many, among which a request chooses.
        count: int. Number of sentences.
        source, target: a code, a list with one for each sentence, or `None`.

    Raises:
        UserError: the model lacks a language, or there are not as many languages as sentences.
    """
    columns, languages = [], translator.languages
    for index, (called, given) in enumerate((("source_language", source), ("target_language", target))):
        codes = given if isinstance(given, list) else [given] * count
        if len(codes) != count:
            raise UserError(f"{count:,} sentences but {len(codes):,} of {called}: one for each is needed")
        for code in set(codes):
            if translator.multilingual:
                check_language(code, languages, called)
            elif None not in (code, languages[index]) and code != languages[index]:
                raise UserError(f"{called} is {languages[index]} in this model, not {code[:40]!r}")
        columns.append(codes if translator.multilingual else [languages[index]] * count)
    return list(zip(*columns, strict=True))
