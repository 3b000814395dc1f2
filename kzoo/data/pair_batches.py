"""Batches of several directions, for one `fit` call."""

import functools
import hashlib
from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np

from kzoo.data.batch_shapes import batch_shapes, check_longest, differing_first_two, grown, pair_lengths
from kzoo.data.batches import Batches, BatchesByEpoch
from kzoo.data.language_pairs import check_weights
from kzoo.errors import UserError


class PairBatches(BatchesByEpoch):
    """Batches that rotate over (source, target) pairs of languages, one pair per batch, in common shapes.

    Without weights, an epoch has each batch once, and each pair's batches are spread evenly over it: pairs of
    equal size alternate. With weights, each pair gets its share of the epoch's batches. If a pair gets fewer
    batches than it has, the next epoch continues with the rest; if it gets more, it starts again.

    Args:
        token_ids: for each language, those of its sentences as lists, aligned across all languages; or else,
            for each pair, its two sides.
        pairs: (source, target) pairs.
        languages: codes, in the order of the model's language numbers; `None`: the token ids name them.
        weights: for each pair, its share of the batches; `None`: in proportion to its number of batches.
        tokens: int. Maximum tokens per batch on either side, padding included.
        sentences: int. Rows of every batch, instead of `tokens`.
        num_shapes: int. Maximum number of batch shapes.
        num_batches: int. Batches per epoch; by default the batches of all pairs.
        seed: int. Fixes the order of every epoch.
        max_length: int. Maximum sentence length, with its start or end symbol. `None`: any.
        growth: float. Room for so many times the tokens that the sentences have.
        **kwargs: `workers` and other arguments of `keras.utils.PyDataset`.

    Returns (a batch):
        As for `Batches`, with the further inputs `"source_language"` and `"target_language"`, `(B,)` each,
        unless `languages` is `None`.

    Raises:
        UserError: a pair's language has no text or no number; the sides of a pair are empty or of different
            lengths; the weights do not match the pairs; or a sentence is too long.
    """

    def __init__(
        self,
        token_ids: dict,
        pairs: list[tuple[str, str]],
        languages: list[str] | None,
        weights: dict[tuple[str, str], float] | None = None,
        tokens: int = 2048,
        sentences: int | None = None,
        num_shapes: int = 7,
        num_batches: int | None = None,
        seed: int = 0,
        max_length: int | None = None,
        growth: float = 1.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        for pair in pairs:
            for code in pair:
                numbered = languages is None or code in languages
                if not numbered or (pair not in token_ids and code not in token_ids):
                    raise UserError(f"pair {'-'.join(pair)}: {code!r} is not in both token_ids and languages")
        sides = {
            pair: token_ids[pair] if pair in token_ids else (token_ids[pair[0]], token_ids[pair[1]])
            for pair in pairs
        }
        if weights is not None:
            check_weights(weights, pairs)
        lengths = [pair_lengths(*both, "-".join(pair)) for pair, both in sides.items()]
        longest = max(lengths, key=np.max)
        limit = (max_length or longest.max()) if sentences else min(max_length or tokens, tokens)
        check_longest(longest, limit, "sentence pair")
        shapes = batch_shapes(grown(np.concatenate(lengths), growth, limit), tokens, num_shapes, sentences)
        self.languages = list(languages or ())
        self.batches = [
            Batches(*sides[pair], shapes=shapes, seed=seed + number, growth=growth)
            for number, pair in enumerate(pairs)
        ]
        self.pairs = list(pairs)
        sizes = [len(batches) for batches in self.batches]
        shares = sizes if weights is None else [weights[pair] for pair in pairs]
        self._counts = apportioned(num_batches or sum(sizes), shares)
        self.start_epoch(0)

    @property
    def num_tokens(self) -> int:
        """Average number of target tokens per epoch, end symbols included."""
        counts = zip(self.batches, self._counts, strict=True)
        return round(sum(batches.num_tokens * count / len(batches) for batches, count in counts))

    def __getitem__(self, index: int):
        pair, batch = self._plan[index]
        inputs, labels, weights = self.batches[pair].batch(*batch)
        for side, code in zip(("source", "target"), self.pairs[pair], strict=True):
            if self.languages:
                inputs[f"{side}_language"] = np.full(len(labels), self.languages.index(code), "int32")
        return inputs, labels, weights

    def digest(self) -> str:
        """Return the SHA-256 of all pairs' training data."""
        return hashlib.sha256("".join(batches.digest() for batches in self.batches).encode()).hexdigest()

    def plan(self, epoch: int) -> list[tuple]:
        """Return the batches of an epoch, each as the number of a pair and one of its batches."""
        plan = []
        for pair, (batches, count) in enumerate(zip(self.batches, self._counts, strict=True)):
            plan_of = functools.cache(batches.plan)  # of each pass over the pair's sentences
            for turn in range(count):
                number, place = divmod(epoch * count + turn, len(batches))
                plan.append(((turn + 0.5) / count, pair, plan_of(number)[place]))
        plan.sort(key=lambda item: item[:2])
        plan = [item[1:] for item in plan]
        lengths = {length for _, ((_, length), _) in plan}
        if len(lengths) == 1:  # an epoch of few batches; on TensorFlow, Keras would expect no other length
            every = ((pair, one) for pair, batches in enumerate(self.batches) for one in batches.plan(epoch))
            plan[-1] = next((item for item in every if item[1][0][1] not in lengths), plan[-1])
        return differing_first_two(plan, lambda item: item[1][0])


def apportioned(count: int, shares: Sequence[float]) -> list[int]:
    """Return whole numbers proportional to `shares` with the sum `count`, but each at least 1.

    Example:

    >>> apportioned(10, [1, 1, 1])
    [3, 4, 3]
    """
    ends = [round(count * part / sum(shares)) for part in accumulate(shares)]
    return [max(1, end - start) for start, end in pairwise([0, *ends])]
