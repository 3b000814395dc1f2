"""Limits on requests, checked before they wait for the model; each error is one line."""

from dataclasses import dataclass

from keras_hub.tokenizers import Tokenizer

from kzoo.decoding import SearchSettings
from kzoo.decoding.batched_search import batches_by_length
from kzoo.errors import UserError
from kzoo.models import MultilingualTranslator, Translator
from kzoo.models.texts import check_encodable, tokenize_prefixes

# Texts tokenized before their lengths are checked: a text within the limit on characters can have tens of
# thousands of subwords, and 256 of them took seconds. Each call of a tokenizer costs half a millisecond.
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


def check_count(count: int, limits: Limits):
    """Reject a request of too many sentences.

    Raises:
        UserError: says how many it has, and how many it may have.
    """
    if count > limits.sentences:
        raise UserError(f"{count:,} sentences in a request; at most {limits.sentences:,} are allowed")


def check_characters(texts: list[str], limits: Limits):
    """Reject texts that are too many, too long, or cannot be encoded as UTF-8.

    Raises:
        UserError: names the first invalid text by its number in the request.
    """
    check_count(len(texts), limits)
    for number, text in enumerate(texts, 1):
        if len(text) > limits.characters:
            raise UserError(
                f"sentence {number} has {len(text):,} characters; at most {limits.characters:,} are allowed"
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


def padded_lengths(
    translator: Translator | MultilingualTranslator, texts: list[str], languages: list[str | None]
) -> list[int]:
    """Return the length that each text, in its language, is padded to; 0 for a text without a token.

    A SavedModel silently cuts sentences that are too long for its model; a server can report them.

    Raises:
        UserError: names the first sentence that is too long for the model.
    """
    most, words = translator.backbone.max_length, []
    for start in range(0, len(texts), TOGETHER):
        some = slice(start, start + TOGETHER)
        for sentence in _tokenized(translator, texts[some], languages[some]):
            words.append(sentence)
            if len(sentence) >= most:
                raise UserError(
                    f"sentence {len(words)} has {len(sentence):,} subwords, the model reads at most "
                    f"{most - 1}: split it"
                )
    lengths = [0] * len(texts)
    for length, numbers in batches_by_length(words, most):
        for number in numbers:
            lengths[number] = length
    return lengths


def check_prefixes(
    translator: Translator | MultilingualTranslator,
    prefixes: list[str],
    languages: list[str | None],
    search: SearchSettings,
):
    """Reject texts that no translation can begin with, each in its target language.

    Raises:
        UserError: names the first one.
    """
    most = translator.backbone.max_length
    for prefix, language in zip(prefixes, languages, strict=True):
        if prefix:
            tokenizer = translator.target_tokenizer if language is None else translator.tokenizers[language]
            tokenize_prefixes(tokenizer, [prefix], 1, min(search.max_length or most, most) - 1)


def _tokenized(
    translator: Translator | MultilingualTranslator, texts: list[str], languages: list[str | None]
) -> list[list[int]]:
    words = [None] * len(texts)
    for language in set(languages):
        tokenizer = tokenizer_of(translator, language)
        mine = [i for i, code in enumerate(languages) if code == language]
        for i, sentence in zip(mine, tokenizer([texts[i] for i in mine]), strict=True):
            words[i] = sentence
    return words


def tokenizer_of(translator: Translator | MultilingualTranslator, language: str | None) -> Tokenizer:
    """Return the tokenizer of a source language; `None` means the only one."""
    return translator.source_tokenizer if language is None else translator.tokenizers[language]
