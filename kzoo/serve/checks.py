"""What a request may hold: checked before it waits for the model, with one line for what is wrong."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from keras_hub.tokenizers import Tokenizer

from kzoo.decoding.batched_search import batches_by_length
from kzoo.errors import UserError
from kzoo.models import MultilingualTranslator, Translator
from kzoo.models.image_inputs import image_rows
from kzoo.serve.pictures import check_pixels, decoded


@dataclass(frozen=True)
class Limits:
    """What one request may hold, and how much may wait.

    Args:
        characters: int. Of a text.
        sentences: int. Of a request.
        body: int. Bytes of a request's body.
        read_seconds: float. The time that a client has to send its body.
        queue: int. Sentences that wait, of all requests; more are told to come again.
    """

    characters: int = 5_000
    sentences: int = 256
    body: int = 8 * 2**20
    read_seconds: float = 10.0
    queue: int = 1024


def check_characters(texts: list[str], limits: Limits):
    """Refuse texts that are too many, too long, or cannot be written as UTF-8.

    Raises:
        UserError: the first that is wrong, by its number in the request.
    """
    if len(texts) > limits.sentences:
        raise UserError(f"{len(texts):,} sentences in a request, at most {limits.sentences:,} are taken")
    for number, text in enumerate(texts, 1):
        if len(text) > limits.characters:
            raise UserError(
                f"sentence {number} has {len(text):,} characters, at most {limits.characters:,} are taken"
            )
        try:
            text.encode()
        except UnicodeEncodeError:  # JSON can say "\ud800"
            raise UserError(f"sentence {number} is no text: it has half of a surrogate pair") from None


def check_language(code: str | None, languages: list[str], called: str = "language"):
    """Refuse a code that is none of a multilingual preset's languages.

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
        languages: codes of the model's languages; of a model of one direction the source and the target.
        multilingual: bool. Whether a request chooses among them.
        count: int. Sentences.
        source, target: a code, a list with one for each sentence, or `None`.

    Raises:
        UserError: languages that the model lacks, or unequally many as sentences.
    """
    columns = []
    for index, (called, given) in enumerate((("source_language", source), ("target_language", target))):
        codes = given if isinstance(given, list) else [given] * count
        if len(codes) != count:
            raise UserError(f"{count:,} sentences but {len(codes):,} of {called}: one with each is needed")
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
    """Return the length that each text, in a language each, is padded to; 0 for one without a word.

    A SavedModel cuts sentences that its model cannot read whole and does not say so; a server can.

    Raises:
        UserError: the first sentence that the model cannot read whole.
    """
    most, words = translator.backbone.max_length, [None] * len(texts)
    for language in set(languages):
        mine = [i for i, code in enumerate(languages) if code == language]
        found = tokenizer_of(translator, language)([texts[i] for i in mine])
        for i, sentence in zip(mine, found, strict=True):
            words[i] = sentence
    for number, sentence in enumerate(words, 1):
        if len(sentence) >= most:
            raise UserError(
                f"sentence {number} has {len(sentence):,} subwords, the model reads at most {most - 1}: "
                "split it"
            )
    lengths = [0] * len(texts)
    for length, numbers in batches_by_length(words, most):
        for number in numbers:
            lengths[number] = length
    return lengths


def tokenizer_of(translator: Translator | MultilingualTranslator, language: str | None) -> Tokenizer:
    """Return the tokenizer of a source language; `None` is the only one."""
    return translator.source_tokenizer if language is None else translator.tokenizers[language]


def decoded_images(
    images: Sequence | None, count: int, shape: tuple[int, ...] | None
) -> list[np.ndarray | None]:
    """Return an image for each sentence as the model takes it, `None` where it takes none.

    Raises:
        UserError: images that do not fit.
    """
    if images is None or shape is None:
        image_rows(images, count, shape)  # says what is wrong, if anything is
        return [None] * count
    if len(images) != count:
        raise UserError(f"{count:,} sentences but {len(images):,} images: one with each is needed")
    if len(shape) == 3:
        check_pixels(images)
    return [decoded(image, shape, number) for number, image in enumerate(images, 1)]
