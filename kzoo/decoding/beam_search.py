"""Beam search for any model that implements the decoding contract of this package."""

from collections.abc import Callable

import keras
import numpy as np
from keras import ops, tree

from kzoo.decoding.search_settings import Exponent
from kzoo.text.vocabulary import END, NOT_TEXT, PAD, START

MEAN = Exponent(1.0)
# Used as log 0: finite, so that sums of it stay ordered and no backend makes it NaN.
NEVER = -1e9
# Smaller batches are not halved: every halving adds a loop to compile.
SMALLEST_HALVED = 16
# Sizes of the groups of tokens whose maxima are compared first: the greatest that divides V. Of sizes from 12
# to 60, those from 15 to 30 were the fastest.
MEMBERS = range(32, 15, -1)


class BeamSearch(keras.Model):
    """Finds the `beam_size` best outputs of a model; a `keras.Model`, so that `predict_on_batch` compiles it.

    Each step computes the 2K best continuations of the K active hypotheses. Those among the first K that end
    the sentence are finished and compete by log P / penalty(length). The K best that do not end remain
    active. A sentence is done when K of its hypotheses are finished; at `max_length` every active hypothesis
    must end. Beam size 1 is greedy search. Outputs never contain padding, unknown or start tokens; P is
    computed without them.

    Args:
        model: implements the decoding contract (`encode`, `start`, `decode_step`).
        beam_size: int. K.
        max_length: int. T, the maximum number of tokens of an output, end symbol included.
        length_penalty: function from a length, end symbol included, to the divisor of log P.
        staged: bool. Search a large batch in several loops: compute one hypothesis in the first step, enlarge
            the state in stages, and continue with half a batch at a time when half of its sentences are done
            or after half of the steps. This takes 0.62 of the time for 64 captions, but compiling takes three
            times as long. Defaults to `False`.
        min_length: int. Minimum number of tokens of an output, end symbol included.
        no_repeat_ngram: int. n: no sequence of n tokens occurs twice in an output; 0 allows repeats.

    Call arguments:
        inputs: the inputs of the model's `encode`, with first axes B, including `"source"` `(B, S)`. A
            sentence of only padding has no outputs and takes no steps. Optionally `"prefix"`, int32 `(B, P)`,
            P at least T: the tokens that the outputs begin with, then padding; and `"language_token"`, int32
            `(B,)`: the target language's token, with which the outputs begin; its probability does not count.

    Returns:
        `{"tokens": int32 (B, K, T), "scores": float32 (B, K)}`, best first: tokens with their end symbol,
        then padding; a score of about -1e9 if there are fewer than K outputs.

    Reference:
        Wu et al. 2016, "Google's Neural Machine Translation System", Section 7.
        https://arxiv.org/abs/1609.08144
    """

    def __init__(
        self,
        model: keras.Model,
        beam_size: int = 5,
        max_length: int = 128,
        length_penalty: Callable = MEAN,
        staged: bool = False,
        min_length: int = 0,
        no_repeat_ngram: int = 0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.model = model
        self.beam_size = beam_size
        self.max_length = max_length
        self.length_penalty = length_penalty
        self.min_length = min(min_length, max_length)
        self.no_repeat_ngram = no_repeat_ngram if no_repeat_ngram <= max_length else 0
        self.staged = staged
        self.built = True  # it has no weights of its own

    def call(self, inputs):
        memory = self.model.encode(inputs)
        if "prefix" in inputs:  # as part of the memory, it is halved with the batch
            memory = {**memory, "prefix": inputs["prefix"]}
        batch = ops.shape(tree.flatten(memory)[0])[0]
        K, T = self.beam_size, self.max_length
        quarter, half = -(-T // 4), -(-T // 2)
        # Only the first of equal beginnings is active, or the beam would fill with copies. A first step of a
        # single hypothesis makes a staged search 4 % faster, but takes 2 s to compile.
        beginnings = 1 if self.staged else K
        active = np.array([0.0] + [NEVER] * (beginnings - 1), "float32")
        loop = {
            "step": ops.zeros((), "int32"),
            "tokens": ops.full((batch, beginnings), START, "int32"),
            "scores": ops.broadcast_to(ops.convert_to_tensor(active), (batch, beginnings)),
            "history": ops.full((batch, beginnings, T), PAD, "int32"),
            "finished": ops.full((batch, K, T), PAD, "int32"),
            "finished_scores": ops.full((batch, K), NEVER, "float32"),
            "num_finished": K * ops.cast(ops.all(ops.equal(inputs["source"], PAD), axis=1), "int32"),
            # Room for two steps, because Keras warns of a softmax over a single entry.
            "state": self.model.start(memory, beginnings, min(2, quarter)),
        }
        if "language_token" in inputs:
            loop = self._after_language_token(loop, memory, inputs["language_token"])
        if self.staged:
            loop = self._step(loop, memory)
        staged = self._halves(loop) and self._state_grows(memory)
        tokens, scores = self._search(loop, memory, (quarter, half) if staged else (T,))
        # Make hypotheses that were not found padding: which ones `ops.top_k` returns depends on the backend.
        return {"tokens": ops.where(scores[..., None] > NEVER / 2, tokens, PAD), "scores": scores}

    def _after_language_token(self, loop: dict, memory: dict, token) -> dict:
        """Return the loop after a first token `(B,)`, which is not searched for."""
        _, state = self.model.decode_step(loop["tokens"], loop["step"], memory, loop["state"])
        tokens = ops.broadcast_to(token[:, None], ops.shape(loop["tokens"]))
        history = ops.where(ops.equal(ops.arange(self.max_length), 0), tokens[..., None], loop["history"])
        return {**loop, "step": loop["step"] + 1, "tokens": tokens, "history": history, "state": state}

    def _search(self, loop: dict, memory: dict, lengths: tuple[int, ...]):
        """Return the finished hypotheses `(B, K, T)` of all sentences, and their scores `(B, K)`.

        The state has room for `lengths[0]` steps, then for `lengths[1]`, and so on, because a larger cache
        makes steps slower. When half of the sentences are done, or after the last of these steps, the search
        continues with the others only, half a batch at a time, because a batch is as slow as its slowest
        sentence.
        """
        K, batch = self.beam_size, loop["tokens"].shape[0]
        fewer = batch // 2 if self._halves(loop) else 0
        for length in lengths:
            loop["state"] = tree.map_structure(
                lambda larger, now: ops.slice_update(larger, [0] * len(now.shape), now),
                self.model.start(memory, K, length),
                loop["state"],
            )
            loop = ops.while_loop(
                lambda loop, length=length: ops.logical_and(
                    loop["step"] < length, ops.sum(ops.cast(loop["num_finished"] < K, "int32")) > fewer
                ),
                lambda loop: (self._step(loop, memory),),
                (loop,),
            )[0]
        found = loop["finished"], loop["finished_scores"]
        if not fewer:
            return found
        done = ops.cast(loop["num_finished"] >= K, "int32")
        order = ops.cast(ops.argsort(done), "int32")  # the unfinished sentences first
        unfinished = ops.where(loop["step"] < self.max_length, batch - ops.sum(done), 0)

        def search_half(first, *found):
            rows = ops.take(order, ops.minimum(first + ops.arange(fewer, dtype="int32"), batch - 1))
            half = tree.map_structure(
                lambda leaf: ops.take(leaf, rows, axis=0) if len(leaf.shape) else leaf, (loop, memory)
            )
            tokens, scores = (
                ops.scatter_update(old, rows[:, None], new)
                for old, new in zip(found, self._search(*half, (self.max_length,)), strict=True)
            )
            return first + fewer, tokens, scores

        start = ops.zeros((), "int32")
        return ops.while_loop(lambda first, *_: first < unfinished, search_half, (start, *found))[1:]

    def _halves(self, loop: dict) -> bool:
        """Return whether to halve the batch during the search; never if its size is not known in advance."""
        rows = loop["tokens"].shape[0]
        return self.staged and rows is not None and rows >= SMALLEST_HALVED

    def _state_grows(self, memory: dict) -> bool:
        """Return whether the state's size depends on the maximum output length."""
        short, long = (tree.flatten(self.model.start(memory, self.beam_size, length)) for length in (1, 2))
        return any(a.shape != b.shape for a, b in zip(short, long, strict=True))

    def _step(self, loop: dict, memory: dict) -> dict:
        K, step = self.beam_size, loop["step"]
        logits, state = self.model.decode_step(loop["tokens"], step, memory, loop["state"])
        never = self._ruled_out(loop["history"], step, memory.get("prefix"), logits.shape[-1])
        scores, parents, tokens = self._continuations(logits, loop["scores"], step, never)  # (B, 2K) each

        done = (loop["num_finished"] >= K)[:, None]
        ends = ops.equal(tokens, END)
        among_first = ops.arange(2 * K, dtype="int32")[None, :] < K
        finishing = ends & among_first & ~done & (scores > NEVER / 2)
        newest = ops.equal(ops.arange(self.max_length, dtype="int32"), step)
        histories = ops.where(newest, tokens[..., None], take_rows(loop["history"], parents))  # (B, 2K, T)

        normalized = scores / self.length_penalty(ops.cast(step + 1, "float32"))
        pool_scores = ops.concatenate(
            [loop["finished_scores"], ops.where(finishing, normalized, NEVER)], axis=1
        )
        pool = ops.concatenate([loop["finished"], histories], axis=1)
        finished_scores, kept = ops.top_k(pool_scores, K)

        living_scores, living = ops.top_k(ops.where(ends, NEVER, scores), K)
        parents = take_rows(parents, living)
        return {
            "step": step + 1,
            "tokens": take_rows(tokens, living),
            "scores": living_scores,
            "history": take_rows(histories, living),
            "finished": take_rows(pool, kept),
            "finished_scores": finished_scores,
            "num_finished": loop["num_finished"] + ops.sum(ops.cast(finishing, "int32"), axis=1),
            "state": {
                "reorder": tree.map_structure(lambda leaf: take_rows(leaf, parents), state["reorder"]),
                "keep": state["keep"],
            },
        }

    def _ruled_out(self, history, step, prefix, vocabulary_size: int):
        """Return a mask to add to the log-probabilities of the next tokens: 0, or `NEVER` if ruled out.

        Args:
            history: int32 `(B, K, T)`. The tokens so far, then padding.
            step: int32 scalar. Number of tokens so far.
            prefix: int32 `(B, P)`, the tokens that outputs begin with, then padding; P is at least T. It may
                repeat n-grams. `None`: no prefix.
            vocabulary_size: int. V.

        Returns:
            A tensor that broadcasts to `(B, K, V)`; `None` if nothing is ruled out.
        """
        if prefix is None and self.min_length <= 1 and not self.no_repeat_ngram:
            return None
        found = 0.0
        if self.min_length > 1:
            end = np.zeros(vocabulary_size, "float32")
            end[END] = NEVER
            found = ops.where(step + 1 < self.min_length, end, found)
        if self.no_repeat_ngram:
            found = found + _repeated(history, step, self.no_repeat_ngram, vocabulary_size)
        if prefix is not None:
            next_token = ops.take(prefix, step, axis=1)[:, None, None]  # (B, 1, 1)
            others = ops.not_equal(ops.arange(vocabulary_size, dtype="int32"), next_token)
            found = ops.where(ops.equal(next_token, PAD), found, ops.where(others, NEVER, 0.0))
        return found

    def _continuations(self, logits, scores, step, never):
        """Return the 2K best of all one-token continuations: scores, parents and tokens, `(B, 2K)` each.

        Exact, in two stages: the 2K best are in the 2K groups of tokens with the greatest maxima. In the last
        step, only the groups with the end symbol compete, one for each hypothesis.

        Args:
            logits: `(B, K, V)`.
            scores: `(B, K)`. log P of the hypotheses so far.
            step: int32 scalar. Number of tokens so far.
            never: what `_ruled_out` returns.
        """
        (rows, hypotheses), size = ops.shape(logits)[:2], logits.shape[-1]
        no_text = ops.full((rows, hypotheses, len(NOT_TEXT)), NEVER, "float32")  # these are the first ids
        # XLA writes them in place; to add a mask, it would copy all logits.
        logits = ops.slice_update(ops.cast(logits, "float32"), (0, 0, 0), no_text)
        grouped, maxima = _in_groups(logits)
        # TensorFlow's logsumexp also handles infinite maxima, and takes twice as long.
        highest = ops.max(maxima, axis=-1)
        log_sums = highest + ops.log(ops.sum(ops.exp(grouped - highest[..., None, None]), axis=(2, 3)))
        offsets = (scores - log_sums)[..., None]  # (B, K, 1)
        if never is not None:
            grouped, maxima = _in_groups(logits + never)

        members, groups = grouped.shape[2:]
        last = step >= self.max_length - 1  # then only the end symbol can follow
        barred = last & ops.not_equal(ops.arange(groups, dtype="int32"), END % groups)
        bounds = ops.reshape(ops.where(barred, NEVER, offsets + maxima), (rows, hypotheses * groups))
        _, best = ops.top_k(bounds, min(2 * self.beam_size, hypotheses * groups))  # (B, N) groups
        parents = best // groups
        tokens = (best % groups)[..., None] + groups * ops.arange(members, dtype="int32")  # (B, N, members)
        places = parents[..., None] * (members * groups) + tokens
        totals = take_rows(ops.reshape(grouped, (rows, hypotheses * members * groups)), places)
        totals = totals + take_rows(offsets, parents)
        totals = ops.where(last & ops.not_equal(tokens, END), NEVER, totals)

        totals, tokens = (ops.reshape(part, (rows, best.shape[1] * members)) for part in (totals, tokens))
        found = min(2 * self.beam_size, totals.shape[1])  # fewer for one hypothesis and a small vocabulary
        totals, chosen = ops.top_k(totals, found)
        parents, tokens = take_rows(parents, chosen // members), take_rows(tokens, chosen)
        tokens = ops.minimum(tokens, size - 1)  # where a group was padded
        lacking = ((0, 0), (0, 2 * self.beam_size - found))
        return (
            ops.pad(totals, lacking, constant_values=NEVER),
            ops.pad(parents, lacking),
            ops.pad(tokens, lacking),
        )


def _repeated(history, step, n: int, vocabulary_size: int):
    """Return `NEVER` for tokens that, after the newest n - 1, would repeat an n-gram of the history."""
    B, (K, T) = ops.shape(history)[0], history.shape[1:]
    places = T - n + 1  # where an n-gram can begin
    newest = ops.take(history, ops.maximum(step - n + 1, 0) + ops.arange(n - 1, dtype="int32"), axis=2)
    same = ops.broadcast_to(ops.arange(places, dtype="int32") + n <= step, (B, K, places))
    for i in range(n - 1):
        same = same & ops.equal(history[:, :, i : i + places], newest[:, :, i : i + 1])
    tokens = ops.where(same, history[:, :, n - 1 :], PAD)  # padding is ruled out anyway
    rows = ops.reshape(ops.arange(B * K, dtype="int32"), (B, K, 1))
    positions = ops.reshape(rows * vocabulary_size + tokens, (B * K * places, 1))
    nothing = ops.zeros((B * K * vocabulary_size,), "float32")
    found = ops.scatter_update(nothing, positions, ops.full((B * K * places,), NEVER, "float32"))
    return ops.reshape(found, (B, K, vocabulary_size))


def _in_groups(logits):
    """Divide a vocabulary into groups: token t is member t // groups of group t % groups.

    In this order, XLA computes the maxima of many groups at once, with the processor's vectors.

    Args:
        logits: `(B, K, V)`.

    Returns:
        The logits `(B, K, members, groups)`, padded with `NEVER` where V is not members × groups, and the
        maximum of each group `(B, K, groups)`, at least `NEVER`.
    """
    size = logits.shape[-1]
    members = next((members for members in MEMBERS if size % members == 0), min(size, MEMBERS[0]))
    if size % members:
        logits = ops.pad(logits, ((0, 0), (0, 0), (0, -size % members)), constant_values=NEVER)
    grouped = ops.reshape(logits, (*ops.shape(logits)[:2], members, logits.shape[-1] // members))
    return grouped, ops.maximum(ops.max(grouped, axis=2), NEVER)


def take_rows(values, rows):
    """Return `values[b, rows[b, …]]`: `(B, N, *)` and int32 `(B, …)` to `(B, …, *)`.

    Uses flat positions, which XLA turns into plain copies; `take_along_axis` was half as fast.
    """
    batch, size = ops.shape(values)[0], values.shape[1]
    first = ops.reshape(ops.arange(batch, dtype="int32") * size, (batch, *[1] * (len(rows.shape) - 1)))
    return ops.take(ops.reshape(values, (batch * size, *values.shape[2:])), rows + first, axis=0)
