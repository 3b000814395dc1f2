"""Word similarity: whether character vectors rank pairs of words as people do."""

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import spearmanr

from kzoo.data.text_files import read_lines
from kzoo.errors import UserError, nearest
from training.paper_tables import data_folder

# The data sets' files in the folder KZOO_DATA/wordsim, in traditional characters (Su and Lee 2017).
WORD_PAIRS = {
    "wordsim_240": "240_trad.txt",
    "wordsim_297": "297_trad.txt",
    "simlex_999": "SimLex-999_translated.txt",
}


class WordPair(NamedTuple):
    """Two words and a human score of their similarity."""

    first: str
    second: str
    score: float


@dataclass(frozen=True)
class Correlation:
    """Spearman's rank correlation with human scores, times 100; NaN for fewer than two pairs.

    Args:
        spearman: the correlation.
        pairs: its number of pairs.
    """

    spearman: float
    pairs: int


@dataclass(frozen=True)
class WordSimilarity:
    """The columns of Table 7.

    Args:
        seen: pairs of words whose characters all occurred in training.
        unseen_without: the other pairs, with their words' vectors from the seen characters only.
        unseen_with: the other pairs, with all characters.
    """

    seen: Correlation
    unseen_without: Correlation
    unseen_with: Correlation


def open_word_pairs(name: str) -> list[WordPair]:
    """Return a data set of word pairs from the folder of the environment variable KZOO_DATA.

    Args:
        name: a key of `WORD_PAIRS`.

    Raises:
        UserError: no such set, or as for `data_folder` or `read_word_pairs`.
    """
    if name not in WORD_PAIRS:
        raise UserError(f"there are no word pairs {name!r}: {nearest(name, list(WORD_PAIRS))}")
    return read_word_pairs(data_folder("wordsim") / WORD_PAIRS[name])


def read_word_pairs(path: str | Path) -> list[WordPair]:
    """Return the pairs of a file with a pair per line: word, word and score, separated by white space.

    Args:
        path: the file.

    Raises:
        UserError: it cannot be read or is empty; or a line does not have three fields, or its score is
            not a number.
    """
    text = read_lines(Path(path))
    pairs = []
    for number, line in enumerate(text.sentences, 1):
        fields = line.split()
        if len(fields) != 3:
            raise UserError(f"{text.where}, line {number}: {len(fields)} fields instead of word, word, score")
        try:
            score = float(fields[2])
        except ValueError:
            score = math.nan
        if not math.isfinite(score):
            raise UserError(f"{text.where}, line {number}: the score is {fields[2]!r}, not a number")
        pairs.append(WordPair(fields[0], fields[1], score))
    if not pairs:
        raise UserError(f"{text.where} is empty: it has no pair of words")
    return pairs


def score_word_similarity(
    pairs: Sequence[WordPair], vectors: Mapping[str, np.ndarray], seen: Container[str]
) -> WordSimilarity:
    """Correlate human scores with the cosines of word vectors, the means of character vectors.

    Pairs with a word that has no vector are left out; `Correlation.pairs` counts the others. A
    lookup embedding has no vectors of unseen characters, so its two columns of unseen words are equal. A
    glyph encoder has a vector for every character that its font can draw.

    Args:
        pairs: as `open_word_pairs` returns them.
        vectors: a vector `(D,)` for each character that has one.
        seen: the characters that occurred in training.

    Example:

    >>> vectors = {"人": np.array([1.0, 0.0]), "口": np.array([0.9, 0.1]), "天": np.array([0.0, 1.0])}
    >>> pairs = [WordPair("人", "口", 8.0), WordPair("人口", "天", 2.0)]
    >>> round(score_word_similarity(pairs, vectors, seen="人口天").seen.spearman)
    100

    Reference:
        Broscheit et al. 2018, "Learning Distributional Token Representations from Visual Features", Table 7.
        https://aclanthology.org/W18-3025
    """
    known, others = [], []
    for pair in pairs:
        all_seen = all(character in seen for character in pair.first + pair.second)
        (known if all_seen else others).append(pair)
    seen_vectors = {character: vector for character, vector in vectors.items() if character in seen}
    return WordSimilarity(
        seen=_correlation(known, seen_vectors),
        unseen_without=_correlation(others, seen_vectors),
        unseen_with=_correlation(others, vectors),
    )


def _correlation(pairs: Sequence[WordPair], vectors: Mapping[str, np.ndarray]) -> Correlation:
    cosines, scores = [], []
    for first, second, score in pairs:
        a, b = (_word_vector(word, vectors) for word in (first, second))
        if a is not None and b is not None:
            # Words with the same characters have equal cosines. Rounding errors must not rank them.
            cosines.append(round(float(a @ b) / max(np.linalg.norm(a) * np.linalg.norm(b), 1e-12), 9))
            scores.append(score)
    constant = len(set(cosines)) < 2 or len(set(scores)) < 2
    return Correlation(
        math.nan if constant else 100 * float(spearmanr(cosines, scores).statistic), len(scores)
    )


def _word_vector(word: str, vectors: Mapping[str, np.ndarray]) -> np.ndarray | None:
    found = [vectors[character] for character in word if character in vectors]
    return np.mean(np.asarray(found, "float64"), axis=0) if found else None
