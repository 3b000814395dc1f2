"""From texts to sentences and token ids, and from the search's token ids to hypotheses and texts."""

import itertools
import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from kzoo.errors import UserError
from kzoo.text.languages import has_spaces
from kzoo.text.sentences import split_sentences
from kzoo.text.special_tokens import END, UNKNOWN

if TYPE_CHECKING:  # which takes seconds to import
    from keras_hub.tokenizers import Tokenizer


@dataclass(frozen=True)
class Hypothesis:
    """One translation: its text, and its log-probability over its length penalty, as in `BeamSearch`."""

    text: str
    score: float


def tokenize_within(
    tokenizer: "Tokenizer", texts: Iterable[str], limit: int, truncate: bool = False
) -> list[list[int]]:
    """Return the token ids of sentences, or of one sentence, that have at most `limit` tokens.

    Raises:
        UserError: a longer sentence, unless `truncate` is true, which cuts it; an input that is not text; no
            tokenizer.
    """
    if tokenizer is None:
        raise UserError(
            "this model has no tokenizers: build it with them, as pope_tiny(tokenizer) or "
            "attention_bridge_m2m(tokenizers)"
        )
    texts = checked_texts(texts)
    tokens = tokenizer(texts) if texts else []
    for number, sentence in enumerate(tokens):
        if len(sentence) > limit and not truncate:
            raise UserError(
                f"sentence {number + 1} has {len(sentence)} subwords, the model reads at most {limit}: "
                f"split it, or ask for truncation with truncate or --truncate ({texts[number][:40]!r}…)"
            )
    return [sentence[:limit] for sentence in tokens]


def tokenize_prefixes(
    tokenizer: "Tokenizer", prefixes: list[str] | None, limit: int
) -> list[list[int]] | None:
    """Return the token ids that translations begin with; `None` if they begin with anything.

    Args:
        tokenizer: of the target language.
        prefixes: a text for each sentence; `""` for none.
        limit: int. Maximum number of tokens.

    Raises:
        UserError: one is too long or has an unknown character.
    """
    if prefixes is None:
        return None
    tokens = tokenize_within(tokenizer, prefixes, sys.maxsize)
    for text, found in zip(prefixes, tokens, strict=True):
        if UNKNOWN in found:
            raise UserError(f"the prefix {text!r:.80} has a character that the vocabulary lacks")
        if len(found) > limit:
            raise UserError(
                f"the prefix {text[:40]!r}… has {len(found)} subwords, "
                f"a translation has at most {limit} before its end"
            )
    return tokens if any(tokens) else None


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


def pieces(tokenizer: "Tokenizer", tokens: list[int]) -> list[str]:
    """Return tokens as the tokenizer writes them, followed by the end symbol."""
    return [*(tokenizer.id_to_token(token) for token in tokens), tokenizer.id_to_token(END)]


def as_hypotheses(found: list, n: int, tokenizer: "Tokenizer") -> list[list[Hypothesis]]:
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
    ended = [[int(token) for token in row[: row.index(END)]] for sentence in rows for row, _ in sentence]
    texts = iter(tokenizer.detokenize(ended) if ended else ())
    return [_distinct([Hypothesis(next(texts), score) for _, score in sentence])[:n] for sentence in rows]


def _distinct(best: list[Hypothesis]) -> list[Hypothesis]:
    """Return the first of the hypotheses of each text: it can be split into subwords in several ways."""
    found = {}
    for hypothesis in best:
        found.setdefault(hypothesis.text, hypothesis)
    return list(found.values())


class SplitTexts:
    """The sentences of texts; `join` makes their translations those of the texts.

    Args:
        texts: checked strings.
        languages: the code of each text's language.
        split: bool. Whether texts are split; `False`: each is one sentence. `None`: the same, with a warning
            if one of them has several.

    Attributes:
        sentences: of all texts, in their order.
        text_of: `(sentences,)`, the number of each one's text.
    """

    def __init__(self, texts: list[str], languages: Sequence[str | None], split: bool | None):
        whole = [[text] for text in texts]
        if split is None and several_sentences(texts, languages):
            warnings.warn(
                "a text has several sentences, of which the model may leave some out: split_sentences=True "
                "(--split-sentences) translates each",
                stacklevel=1,
            )
        self._parts = list(map(split_sentences, texts, languages)) if split else whole
        sentences = [sentence for parts in self._parts for sentence in parts]
        self.sentences = [sentence.strip() for sentence in sentences] if split else sentences
        self.text_of = np.repeat(np.arange(len(texts)), list(map(len, self._parts)))

    def prefixes(self, prefixes: Iterable[str] | None) -> list[str] | None:
        """Return prefixes of the texts' translations as those of the sentences': of the first of each text.

        Raises:
            UserError: there is not one for each text.
        """
        if prefixes is None:
            return None
        prefixes, count = [prefixes] if isinstance(prefixes, str) else list(prefixes), len(self._parts)
        if len(prefixes) != count:
            raise UserError(
                f'{len(prefixes)} prefixes, but {count} sentences: give each its own, "" for none'
            )
        given = zip(prefixes, self._parts, strict=True)
        return [one for prefix, parts in given for one in (prefix, *[""] * (len(parts) - 1))]

    def join(self, found: list[list[Hypothesis]], languages: Sequence[str | None]) -> list[list[Hypothesis]]:
        """Return the hypotheses of the texts: the best of all sentences joined, the second best, and so on.

        A sentence with fewer hypotheses gives its last one again. The score is the sentences' mean.

        Args:
            found: of each of `sentences`, best first.
            languages: the code of each translation's language, which decides whether a space is between them.
        """
        rows = iter(found)
        return [
            _joined(parts, list(itertools.islice(rows, len(parts))), language)
            for parts, language in zip(self._parts, languages, strict=True)
        ]


def several_sentences(texts: list[str], languages: Sequence[str | None]) -> bool:
    """Return whether one of the texts has several sentences."""
    return any(len(parts) > 1 for parts in map(split_sentences, texts, languages))


def _joined(parts: list[str], found: list[list[Hypothesis]], language: str | None) -> list[Hypothesis]:
    if len(parts) == 1:
        return found[0]
    between = " " if has_spaces(language) else ""
    spaces = [part[len(part.rstrip()) :] for part in parts]
    gaps = [space if "\n" in space else between for space in spaces[:-1]]
    ranks = range(max(map(len, found)))
    chosen = [[one[min(rank, len(one) - 1)] for one in found] for rank in ranks]
    return [
        Hypothesis(
            "".join(one.text + gap for one, gap in zip(row, [*gaps, ""], strict=True)),
            fmean(one.score for one in row),
        )
        for row in chosen
    ]
