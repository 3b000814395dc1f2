"""Turns texts into sentences and token ids, the search's ids into hypotheses, and words into tags."""

import itertools
import re
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from kzoo.errors import UserError
from kzoo.text.languages import CHINESE, is_chinese_or_japanese, main_code, matching_code, not_known
from kzoo.text.preparation import prepare
from kzoo.text.reading import Reading
from kzoo.text.vocabulary import END, UNKNOWN

if TYPE_CHECKING:  # importing it takes seconds
    from keras_hub.tokenizers import Tokenizer


TARGET_CODE = re.compile(r"\s*>>(.*?)<<")  # at the beginning of a text
# sentencex wrongly ends a sentence after these: an initial or an ordinal, as in "M. Dupont" and "19.
# Jahrhundert"; "Ms."; and a punctuation mark directly followed by a letter, as in "E.S.E.". A Korean syllable
# is no initial, and Chinese and Japanese have no space before a sentence.
NO_END = re.compile(r"((^|[\s(\[.\-'’])(\d{1,2}|[^\W\d_\uac00-\ud7a3]|Ms)\.\s*|[!-~])$")
CHINESE_OR_JAPANESE = re.compile(f"[{CHINESE}\u3040-\u30ff]")

Direction = tuple[str | None, str | None]  # source and target language; `None` if a preset names none
Segment = tuple[str, str]  # a word and its tag


@dataclass(frozen=True)
class Hypothesis:
    """One translation: its text, and its log-probability over its length penalty, as in `BeamSearch`."""

    text: str
    score: float


def tokenize_within(
    tokenizer: "Tokenizer",
    texts: Iterable[str],
    limit: int,
    truncate: bool = False,
    **options,
) -> list[list[int]]:
    """Return the token ids of sentences, or of one sentence, each of at most `limit` tokens.

    `options` are the tokenizer's.

    Raises:
        UserError: a longer sentence, unless `truncate` is true, which cuts it; an input that is not text; a
            model without a tokenizer.
    """
    check_tokenizer(tokenizer)
    texts = checked_texts(texts)
    tokens = tokenizer(texts, **options) if texts else []
    check_lengths(texts, list(map(Reading, tokens)), limit, truncate)
    return [sentence[:limit] for sentence in tokens]


def check_tokenizer(tokenizer: "Tokenizer | None"):
    """Raise `UserError` for a model without a tokenizer."""
    if tokenizer is None:
        raise UserError(
            "this model has no tokenizers: build it with them, as in pope_tiny(tokenizer) or "
            "attention_bridge_m2m(tokenizers)"
        )


def check_lengths(
    sentences: Sequence[str], readings: Sequence[Reading], limit: int, truncate: bool = False, first: int = 1
):
    """Raise `UserError` for a sentence of more than `limit` tokens, unless `truncate` is true.

    `first` is the number of the first sentence.
    """
    for number, (sentence, reading) in enumerate(zip(sentences, readings, strict=True), first):
        if len(reading.tokens) > limit and not truncate:
            raise UserError(
                f"sentence {number} has {len(reading.tokens)} subwords, the model reads at most {limit}: "
                f"split it, or cut it with truncate=True or --truncate ({sentence[:40]!r}…)"
            )


def tokenize_prefixes(
    tokenizer: "Tokenizer", prefixes: list[str] | None, limit: int
) -> list[list[int]] | None:
    """Return the token ids that translations begin with; `None` if there are no prefixes.

    Raises:
        UserError: a prefix of more than `limit` tokens, or with an unknown character.
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
                f"but a translation has at most {limit} before its end symbol"
            )
    return tokens if any(tokens) else None


def checked_texts(texts: Iterable[str]) -> list[str]:
    """Return sentences, or a single one, as a list.

    Raises:
        UserError: a sentence that is not text; or a table, whose names of columns would be taken for texts.
    """
    table = isinstance(texts, Mapping | bytes) or hasattr(texts, "columns")
    if table or not isinstance(texts, Iterable):
        raise UserError(
            f"the texts are of type {type(texts).__name__}: pass a list of str, or the column of a table "
            'that has them, such as table["en"]'
        )
    texts = [texts] if isinstance(texts, str) else list(texts)
    for number, text in enumerate(texts, 1):
        if not isinstance(text, str):
            kind = type(text).__name__
            raise UserError(f"row {number - 1} (from 0) of the texts must be a str, not {kind}: {text!r:.40}")
        try:
            text.encode()
        except UnicodeEncodeError:  # JSON can contain "\ud800"
            raise UserError(f"sentence {number} is not text: it has half of a surrogate pair") from None
    return texts


def pieces(tokenizer: "Tokenizer", tokens: list[int]) -> list[str]:
    """Return the subwords of token ids, then the end symbol."""
    return [*(tokenizer.id_to_token(token) for token in tokens), tokenizer.id_to_token(END)]


def as_hypotheses(found: list, n: int, tokenizer: "Tokenizer") -> list[list[Hypothesis]]:
    """Return the `n` best distinct texts of each sentence's hypotheses, each with its best score.

    Args:
        found: for each sentence, token ids `(K, T)` and scores `(K,)`, best first; `None` for an empty one.
        n: int. At most K; there are fewer if the search found fewer texts.
        tokenizer: of the target language.

    Raises:
        UserError: a sentence has no hypothesis because its token scores are NaN or infinite.
    """
    real_scores, ended = [], []
    for number, best in enumerate(found, 1):
        tokens, scores = best or ([[END]], [0.0])
        real = [i for i, score in enumerate(scores if n > 1 else scores[:1]) if score > -1e8]
        if not real:
            raise UserError(
                f"the scores of sentence {number} are not finite: use an earlier checkpoint, retrain with a "
                "lower rate or a clip_norm, or use float32 instead of float16"
            )
        real_scores.append([float(scores[i]) for i in real])
        for i in real:  # cut at once: padding can be most of a batch
            row = np.asarray(tokens[i]).tolist()
            ended.append(row[: row.index(END)])
    texts = iter(tokenizer.detokenize(ended) if ended else ())
    hypotheses = []
    for scores in real_scores:
        best = {}  # by text, because different subword sequences can give the same text
        for score in scores:
            best.setdefault(next(texts), score)
        hypotheses.append([Hypothesis(text, score) for text, score in best.items()][:n])
    return hypotheses


class SplitTexts:
    """Splits texts into sentences; `join` joins the sentences' translations again.

    Args:
        texts: checked strings.
        directions: each text's language and that of its translation, as codes or `None`.
        split: bool. Whether to split; `False`: each text is one sentence. `None`: as `False`, with a warning
            if a text has several sentences.
        codes: the target languages of a model of several. A text may begin with one, such as `>>fra<<`, which
            all its sentences then get.

    Attributes:
        sentences: those of all texts, in order.
        text_of: `(sentences,)`, the index of each sentence's text.

    Raises:
        UserError: a text whose target language is missing or not one of the `codes`.
    """

    def __init__(
        self,
        texts: list[str],
        directions: Sequence[Direction],
        split: bool | None,
        codes: Sequence[str] = (),
    ):
        if codes:
            texts = [
                _coded(text, target, codes, number)
                for number, (text, (_, target)) in enumerate(zip(texts, directions, strict=True), 1)
            ]
        sources = [source for source, _ in directions]
        if split is None and any(len(parts) > 1 for parts in map(split_sentences, texts, sources)):
            warnings.warn(
                "a text has several sentences, and the model may skip some: split_sentences=True "
                "(--split-sentences) translates each",
                stacklevel=1,
            )
        self._parts = list(map(split_sentences, texts, sources)) if split else [[text] for text in texts]
        self.sentences, self._targets = [], []  # the languages of the translations
        for parts, (_, target) in zip(self._parts, directions, strict=True):
            first, *others = [part.strip() for part in parts] if split else parts
            named = TARGET_CODE.match(first) if codes else None
            code = named[0] if named else ""
            self._targets.append(named[1] if named else target)
            self.sentences += [first, *(code + sentence for sentence in others)]
        self.text_of = np.repeat(np.arange(len(texts)), list(map(len, self._parts)))

    def prefixes(self, prefixes: Iterable[str] | None) -> list[str] | None:
        """Return the prefix of each sentence: its text's for a text's first sentence, `""` for the others.

        Raises:
            UserError: the number of prefixes differs from the number of texts.
        """
        if prefixes is None:
            return None
        prefixes, count = [prefixes] if isinstance(prefixes, str) else list(prefixes), len(self._parts)
        if len(prefixes) != count:
            raise UserError(f'{len(prefixes)} prefixes but {count} texts: give one per text, "" for none')
        given = zip(prefixes, self._parts, strict=True)
        return [begun for prefix, parts in given for begun in (prefix, *[""] * (len(parts) - 1))]

    def join(self, found: list[list[Hypothesis]]) -> list[list[Hypothesis]]:
        """Return each text's hypotheses: number i joins number i of each of its sentences.

        A sentence with fewer hypotheses repeats its last one. The score is the mean of the sentences'.

        Args:
            found: the hypotheses of each of `sentences`, best first.
        """
        rows = iter(found)
        return [
            _joined(parts, list(itertools.islice(rows, len(parts))), target)
            for parts, target in zip(self._parts, self._targets, strict=True)
        ]


def _joined(parts: list[str], found: list[list[Hypothesis]], language: str | None) -> list[Hypothesis]:
    if len(parts) == 1:
        return found[0]
    between = "" if is_chinese_or_japanese(language) else " "
    spaces = [part[len(part.rstrip()) :] for part in parts]
    gaps = [space if "\n" in space else between for space in spaces[:-1]]
    ranks = range(max(map(len, found)))
    chosen = [[best[min(rank, len(best) - 1)] for best in found] for rank in ranks]
    return [
        Hypothesis(
            "".join(hypothesis.text + gap for hypothesis, gap in zip(row, [*gaps, ""], strict=True)),
            fmean(hypothesis.score for hypothesis in row),
        )
        for row in chosen
    ]


def _coded(text: str, target: str | None, codes: Sequence[str], number: int) -> str:
    """Return a text for a model of several targets, with the code at its beginning as the model writes it."""
    if found := TARGET_CODE.match(text):
        if code := matching_code(found[1], codes):
            return f">>{code}<<{text[found.end() :]}"
        raise UserError(
            f"sentence {number} begins with {found[0].strip()!r:.40}; the model translates to "
            f"{not_known(found[1], codes)}"
        )
    if target not in codes and text.strip():
        raise UserError(
            f"the model translates to {', '.join(codes)}: give target_language (--to), or begin sentence "
            f"{number} with a code, such as >>{codes[0]}<<"
        )
    return text


def split_sentences(text: str, language: str | None = None) -> list[str]:
    """Return a text's sentences, each with the white space after it; joined, they give the text.

    A line end also ends a sentence. Quotes and parentheses are not split. A text without a sentence is
    returned as one.

    Args:
        text: any text.
        language: its code, which selects the abbreviations; English for `None` or a language without rules.

    Example:

    >>> split_sentences("Mr. Smith sees a dog. It runs.", "en")
    ['Mr. Smith sees a dog. ', 'It runs.']
    """
    import sentencex  # not needed in training

    sentences = [""]
    for line in text.splitlines(keepends=True):
        place = 0
        # sentencex 1.0.32 takes every space for one byte, and panics at "plan B\u00a0.".
        for found in sentencex.segment(main_code(language) or "en", re.sub(r"\s", " ", line)):
            part = line[place : place + len(found)]
            place += len(found)
            last = sentences[-1]
            ended = last.endswith("\n") or CHINESE_OR_JAPANESE.match(part) or not NO_END.search(last[-20:])
            if part.strip() and last.strip() and ended:
                sentences.append("")
            sentences[-1] += part
    return sentences


def character_tokens(ids: dict[str, int], texts: Iterable[str]) -> list[list[int]]:
    """Return the ids of each text's characters; none for a text of spaces."""
    lines = map(prepare, texts)
    return [[ids.get(character, UNKNOWN) for character in line] if line.strip() else [] for line in lines]


def segments_to_tags(segments: Iterable[Segment]) -> tuple[str, list[str]]:
    """Return the characters of tagged words, and their tags: `B-` for a word's first character, else `I-`.

    Raises:
        UserError: a word is empty or has no tag.

    Example:

    >>> segments_to_tags([("学生", "NOUN"), ("来", "VERB")])
    ('学生来', ['B-NOUN', 'I-NOUN', 'B-VERB'])
    """
    characters, tags = [], []
    for segment in segments:
        if isinstance(segment, str):  # Python would unpack a word of two characters
            raise UserError(f"give each word with its tag, such as ('来', 'VERB'), not {segment!r:.80}")
        word, tag = segment
        if not word:
            raise UserError(f"a word with the tag {tag} is empty")
        characters.append(word)
        tags += [f"B-{tag}"] + [f"I-{tag}"] * (len(word) - 1)
    return "".join(characters), tags


def tags_to_segments(characters: Sequence[str], tags: Sequence[str]) -> list[Segment]:
    """Return the tagged words: the inverse of `segments_to_tags`.

    An `I-` tag after another tag, or at the beginning, begins a new word, as in CoNLL's evaluation.

    Example:

    >>> tags_to_segments("学生来", ["I-NOUN", "I-NOUN", "I-VERB"])
    [('学生', 'NOUN'), ('来', 'VERB')]
    """
    segments = []
    for character, tag in zip(characters, tags, strict=True):
        place, _, name = tag.partition("-")
        if place == "I" and segments and segments[-1][1] == name:
            segments[-1] = (segments[-1][0] + character, name)
        else:
            segments.append((character, name))
    return segments
