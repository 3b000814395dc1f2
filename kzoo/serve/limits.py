"""The limits of a request, and checks of its texts."""

from dataclasses import dataclass
from itertools import groupby

from kzoo.errors import UserError

Direction = tuple[str | None, str | None]  # source and target language; `None` if a preset names none

# Texts that are tokenized before their lengths are checked: the 256 longest texts together took seconds. Each
# call of Keras's tokenizer costs half a millisecond.
TOGETHER = 16


@dataclass(frozen=True)
class Limits:
    """Limits of one request, and of all requests together.

    Args:
        characters: int. Maximum characters per text.
        sentences: int. Maximum sentences per request.
        body: int. Maximum bytes of a request's body.
        bodies: int. Maximum bytes of all bodies that the server holds; requests beyond that get 503.
        read_seconds: float. Seconds to send the body; each 100 kB adds 1 s.
        queue: int. Maximum waiting sentences of all requests; requests beyond that get 503.
    """

    characters: int = 5_000
    sentences: int = 256
    body: int = 8 * 2**20
    bodies: int = 256 * 2**20
    read_seconds: float = 10.0
    queue: int = 1024

    def check_count(self, count: int):
        """Raise `UserError` for a request with too many sentences."""
        if count > self.sentences:
            raise UserError(f"{count:,} sentences in a request; at most {self.sentences:,} are allowed")

    def check_texts(self, texts: list[str]):
        """Refuse texts that are too many or too long.

        Raises:
            UserError: names the first invalid text by its number in the request.
        """
        self.check_count(len(texts))
        for number, text in enumerate(texts, 1):
            if len(text) > self.characters:
                raise UserError(
                    f"sentence {number} has {len(text):,} characters; at most {self.characters:,} are allowed"
                )


def read_tokens(translator, texts: list[str], directions: list[Direction], most: int) -> list[list[int]]:
    """Return the token ids of sentences, each of fewer than `most` tokens.

    Raises:
        UserError: names the first sentence that is too long for the model.
    """
    tokens = []
    for (direction, _), some in groupby(range(len(texts)), lambda i: (directions[i], i // TOGETHER)):
        source, target = direction
        several, options = translator.multilingual, translator.tokenizer_options(target)
        tokenizer = translator.tokenizers[source] if several else translator.source_tokenizer
        for sentence in tokenizer([texts[i] for i in some], **options):
            tokens.append(sentence)
            if len(sentence) >= most:
                raise UserError(
                    f"sentence {len(tokens)} has {len(sentence):,} subwords, the model reads at most "
                    f"{most - 1}: split it"
                )
    return tokens
