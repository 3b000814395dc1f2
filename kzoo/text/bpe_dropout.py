"""BPE-dropout: words in other subwords than their usual ones, drawn at random."""

import functools
from collections.abc import Sequence
from itertools import chain, pairwise
from random import Random

import sentencepiece

from kzoo.text.pieces import SPACE
from kzoo.text.vocabulary import UNKNOWN

SEGMENTATIONS = 16  # that a short word can have; each reading takes one of them, as drawing takes longer
SHORT = 8  # usual subwords; longer words, such as sentences without spaces, hardly occur twice
KEPT = 2**17  # words whose segmentations are in memory, about 2 kB each


class BPEDropout:
    """Splits sentences into other subwords than their usual ones, as merges are left out at random.

    Args:
        proto: bytes. A SentencePiece model of byte-pair encodings, as `train_subwords` learns it.
        dropout: float. Probability with which each possible merge is left out, at each step of Algorithm 1.
        seed: int. With a short word itself, it fixes the segmentations that the word can have.

    Reference:
        Provilkov et al. 2020, "BPE-Dropout: Simple and Effective Subword Regularization", Algorithm 1.
        https://arxiv.org/abs/1910.13267
    """

    def __init__(self, proto: bytes, dropout: float, seed: int):
        self.dropout, self.seed = dropout, seed
        processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
        tokens = list(range(processor.vocab_size()))
        self._pieces = processor.id_to_piece(tokens)
        self._ids = dict(zip(self._pieces, tokens, strict=True))
        self._scores = dict(zip(self._pieces, processor.get_score(tokens), strict=True))
        self._first = {token for token in tokens if self._pieces[token].startswith(SPACE)}  # of a word
        self._short_word = functools.lru_cache(KEPT)(self._draw)

    def __call__(self, tokens: Sequence[int], limit: int, random: Random) -> list[int]:
        """Return the token ids of the same text in other subwords.

        Args:
            tokens: the usual token ids, at most `limit`.
            limit: int. If the text would get more tokens, some words, at random, keep their usual ones.
            random: draws each word's subwords.
        """
        firsts = [place for place in range(1, len(tokens)) if tokens[place] in self._first]
        words = [tuple(tokens[i:j]) for i, j in pairwise([0, *firsts, len(tokens)])]
        drawn = [self._word(word, random) for word in words]
        places, excess = random.sample(range(len(words)), len(words)), sum(map(len, drawn)) - limit
        while excess > 0:
            place = places.pop()
            excess -= len(drawn[place]) - len(words[place])
            drawn[place] = words[place]
        return list(chain.from_iterable(drawn))

    def growth(self, sentences: Sequence[Sequence[int]]) -> float:
        """Return how many times as many tokens as usual sentences have on average, at least 1."""
        random, usual = Random(self.seed), sum(map(len, sentences))
        drawn = sum(len(self(sentence, 10**9, random)) for sentence in sentences)
        return max(1.0, drawn / usual) if usual else 1.0

    def _word(self, word: tuple[int, ...], random: Random) -> tuple[int, ...]:
        if UNKNOWN in word:  # its characters are lost
            return word
        return self._split(word, random) if len(word) > SHORT else random.choice(self._short_word(word))

    def _draw(self, word: tuple[int, ...]) -> list[tuple[int, ...]]:
        random = Random(f"{self.seed} {word}")
        return [self._split(word, random) for _ in range(SEGMENTATIONS)]

    def _split(self, word: tuple[int, ...], random: Random) -> tuple[int, ...]:
        return tuple(self._ids[part] for part in self.split("".join(self._pieces[i] for i in word), random))

    def split(self, word: str, random: Random) -> list[str]:
        """Return a word's subwords: of the merges that are not left out, the best one, time after time."""
        parts = list(word)
        while True:
            merges = [
                (self._scores[left + right], -place)
                for place, (left, right) in enumerate(pairwise(parts))
                if left + right in self._scores and random.random() >= self.dropout
            ]
            if not merges:
                return parts
            place = -max(merges)[1]
            parts[place : place + 2] = [parts[place] + parts[place + 1]]
