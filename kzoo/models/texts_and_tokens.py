"""From sentences to token ids, and from the search's token ids to hypotheses; for all translators."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass

from keras_hub.tokenizers import Tokenizer

from kzoo.errors import UserError
from kzoo.text.tokenizers import END, UNKNOWN


@dataclass(frozen=True)
class Hypothesis:
    """One translation: its text, and its log-probability over its length penalty, as in `BeamSearch`."""

    text: str
    score: float


def tokenize_within(
    tokenizer: Tokenizer, texts: Iterable[str], limit: int, truncate: bool = False
) -> list[list[int]]:
    """Return the token ids of sentences, or of one sentence, that have at most `limit` tokens.

    Raises:
        UserError: a longer sentence, unless `truncate` is true, which cuts it; an input that is not text.
    """
    texts = checked_texts(texts)
    words = tokenizer(texts) if texts else []
    for number, sentence in enumerate(words):
        if len(sentence) > limit and not truncate:
            raise UserError(
                f"sentence {number + 1} has {len(sentence)} subwords, the model reads at most {limit}: "
                f"split it, or ask for truncation with truncate or --truncate ({texts[number][:40]!r}…)"
            )
    return [sentence[:limit] for sentence in words]


def tokenize_prefixes(
    tokenizer: Tokenizer, prefixes: Iterable[str] | None, count: int, limit: int
) -> list[list[int]] | None:
    """Return the token ids that translations begin with; `None` if they begin with anything.

    Args:
        tokenizer: of the target language.
        prefixes: a text for each of `count` sentences, or one for one; `""` for none.
        count: int.
        limit: int. Maximum number of tokens.

    Raises:
        UserError: there is not one for each sentence, or one is too long or has an unknown character.
    """
    if prefixes is None:
        return None
    prefixes = listed_prefixes(prefixes, count)
    words = tokenize_within(tokenizer, prefixes, sys.maxsize)
    for text, found in zip(prefixes, words, strict=True):
        if UNKNOWN in found:
            raise UserError(f"the prefix {text!r:.80} has a character that the vocabulary lacks")
        if len(found) > limit:
            raise UserError(
                f"the prefix {text[:40]!r}… has {len(found)} subwords, "
                f"a translation has at most {limit} before its end"
            )
    return words if any(words) else None


def listed_prefixes(prefixes: Iterable[str], count: int) -> list[str]:
    """Return prefixes, or one, as a list; raises `UserError` if there are not `count`."""
    prefixes = [prefixes] if isinstance(prefixes, str) else list(prefixes)
    if len(prefixes) != count:
        raise UserError(f'{len(prefixes)} prefixes, but {count} sentences: give each its own, "" for none')
    return prefixes


def checked_texts(texts: Iterable[str]) -> list[str]:
    """Return sentences, or one, as a list.

    Raises:
        UserError: one of them is not text.
    """
    texts = [texts] if isinstance(texts, str) else list(texts)
    for number, text in enumerate(texts, 1):
        if not isinstance(text, str):
            raise UserError(f"a sentence is text, not {type(text).__name__}: {text!r:.40}")
        check_encodable(text, number)
    return texts


def check_encodable(text: str, number: int):
    """Raise `UserError` for a sentence, by its number, that cannot be encoded as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:  # JSON can say "\ud800"
        raise UserError(f"sentence {number} is not text: it has half of a surrogate pair") from None


def pieces(tokenizer: Tokenizer, words: list[int]) -> list[str]:
    """Return tokens as the tokenizer writes them, followed by the end symbol."""
    return [*(tokenizer.id_to_token(word) for word in words), tokenizer.id_to_token(END)]


def as_hypotheses(found: list, n: int, tokenizer: Tokenizer) -> list[list[Hypothesis]]:
    """Return the `n` best hypotheses of each sentence as text, each text once, with its best score.

    Args:
        found: for each sentence, token ids `(K, T)` and scores `(K,)`, best first; `None` for an empty one.
        n: int. At most K; fewer are returned if the search found fewer texts.
        tokenizer: of the target language.

    Raises:
        UserError: a sentence has no hypothesis because its token scores are NaN or infinite.
    """
    rows = []
    for number, best in enumerate(found, 1):
        tokens, scores = best or ([[END]], [0.0])
        real = [i for i, score in enumerate(scores if n > 1 else scores[:1]) if score > -1e8]
        if not real:
            raise UserError(
                f"the scores of sentence {number} are not finite; check the weights. Use an earlier "
                "checkpoint, retrain with a lower rate or a clip_norm, or use float32 instead of float16"
            )
        rows.append([(list(tokens[i]), float(scores[i])) for i in real])
    words = [[int(word) for word in row[: row.index(END)]] for sentence in rows for row, _ in sentence]
    texts = iter(tokenizer.detokenize(words) if words else ())
    return [_distinct([Hypothesis(next(texts), score) for _, score in sentence])[:n] for sentence in rows]


def _distinct(best: list[Hypothesis]) -> list[Hypothesis]:
    """Return the first of the hypotheses of each text: it can be split into subwords in several ways."""
    found = {}
    for hypothesis in best:
        found.setdefault(hypothesis.text, hypothesis)
    return list(found.values())
