"""What a request may ask for: its size, its characters, its languages; each error is one line."""

from dataclasses import dataclass

from kzoo.errors import UserError
from kzoo.text.texts import check_encodable


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


def check_language(code: str | None, languages: list[str], called: str = "language"):
    """Reject a code that is not one of a multilingual preset's languages.

    Raises:
        UserError: it is unknown, or missing.
    """
    if code in languages:
        return
    wrong = "is missing" if code is None else f"{code[:40]!r} is unknown"
    raise UserError(f"{called} {wrong}: this model knows {', '.join(languages)}")


def directions(
    languages: list[str | None],
    multilingual: bool,
    count: int,
    source: str | list[str] | None,
    target: str | list[str] | None,
) -> list[tuple[str | None, str | None]]:
    """Return the source and the target language of each sentence, `None` where there is no choice.

    Args:
        languages: codes of the model's languages; for a model of one direction, the source and the target.
        multilingual: bool. Whether a request chooses among them.
        count: int. Number of sentences.
        source, target: a code, a list with one for each sentence, or `None`.

    Raises:
        UserError: the model lacks a language, or there are not as many languages as sentences.
    """
    columns = []
    for index, (called, given) in enumerate((("source_language", source), ("target_language", target))):
        codes = given if isinstance(given, list) else [given] * count
        if len(codes) != count:
            raise UserError(f"{count:,} sentences but {len(codes):,} of {called}: one for each is needed")
        own = None if multilingual else languages[index]
        for code in set(codes):
            if multilingual:
                check_language(code, languages, called)
            elif None not in (code, own) and code != own:
                raise UserError(f"{called} is {own} in this model, not {code[:40]!r}")
        columns.append(codes if multilingual else [None] * count)
    return list(zip(*columns, strict=True))
