"""Beam search against brute force, step-by-step argmax and a search in plain Python."""

import itertools
import math

import keras
import numpy as np
import pytest
from keras import ops, tree

from kzoo.decoding import GNMT, BeamSearch, Exponent, SearchSettings, batched_search
from kzoo.decoding.batched_search import BatchedSearch, batches_by_shape
from kzoo.models import TransformerBackbone
from kzoo.text.vocabulary import END, PAD, START, UNKNOWN

NOT_TEXT = [PAD, UNKNOWN, START]


class Table:
    """A model that keeps the decoding contract: log-probabilities of the next word by the last two words.

    Its state follows the beam (the word before the last), so a wrong order of hypotheses shows.
    """

    def __init__(self, random, vocabulary_size, sentences):
        logits = random.normal(size=(sentences, vocabulary_size, vocabulary_size, vocabulary_size)) * 2
        self.logits = logits.astype("float32")

    def encode(self, inputs):
        return {"number": inputs["source"][:, 0] - 1}

    def start(self, memory, beam_size, max_length):
        sentences = ops.shape(memory["number"])[0]
        return {"reorder": {"before": ops.zeros((sentences, beam_size), "int32")}, "keep": {}}

    def decode_step(self, tokens, step, memory, state):
        vocabulary_size = self.logits.shape[1]
        rows = ops.reshape(ops.convert_to_tensor(self.logits), (-1, vocabulary_size))
        row = (
            memory["number"][:, None] * vocabulary_size + state["reorder"]["before"]
        ) * vocabulary_size + tokens
        return ops.take(rows, row, axis=0), {"reorder": {"before": tokens}, "keep": state["keep"]}

    def log_probability(self, sentence, words):
        """Return log P of words, computed apart from the search."""
        total, before, last = 0.0, 0, START
        for word in words:
            total += log_probabilities(self.logits[sentence, before, last])[word]
            before, last = last, word
        return total


class Growing(Table):
    """Its state grows with the maximum length, as a cache does."""

    def start(self, memory, beam_size, max_length):
        cache = ops.zeros((ops.shape(memory["number"])[0], max_length))
        return {**super().start(memory, beam_size, max_length), "keep": {"cache": cache}}


def log_probabilities(logits):
    """Return the log-probabilities `(…, V)` of the words that an output may have; -inf for padding etc."""
    logits = logits.astype("float64")
    logits[..., NOT_TEXT] = -np.inf
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def search(model, source, prefix=None, **arguments):
    """On TensorFlow eager: each search runs once. JAX would compile each operation, which takes longer."""
    beam = BeamSearch(model, **arguments)
    beam.compile(run_eagerly=keras.backend.backend() == "tensorflow")
    inputs = {"source": source.astype("int32")}
    return beam.predict_on_batch(inputs if prefix is None else {**inputs, "prefix": prefix})


def compiled_search(model, **arguments):
    """Return the search as a function of the source that is compiled once a shape."""
    beam = BeamSearch(model, **arguments)
    beam.compile(jit_compile=keras.backend.backend() == "jax")
    return lambda source: beam.predict_on_batch({"source": source.astype("int32")})


def words_of(row):
    return [int(word) for word in row[: list(row).index(END) + 1]]


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("penalty", [Exponent(0.0), Exponent(1.0), GNMT(0.6)])
def test_a_beam_as_wide_as_the_space_is_brute_force(penalty, staged, random):
    sizes, longest = 7, 4
    model = Table(random, sizes, 3)
    settings = {"beam_size": 64, "max_length": longest, "length_penalty": penalty, "staged": staged}
    found = search(model, np.array([[1], [2], [3]]), **settings)
    words = [w for w in range(sizes) if w not in (*NOT_TEXT, END)]
    for sentence in range(3):
        every = [
            [*beginning, END]
            for length in range(longest)
            for beginning in itertools.product(words, repeat=length)
        ]
        scores = [model.log_probability(sentence, w) / penalty(len(w)) for w in every]
        best = np.argsort(scores)[::-1]
        assert len(every) == 40
        for rank in range(40):
            assert words_of(found["tokens"][sentence, rank]) == every[best[rank]]
            np.testing.assert_allclose(found["scores"][sentence, rank], scores[best[rank]], atol=1e-4)
        assert (found["scores"][sentence, 40:] < -1e8).all()


def plain_search(model, sentence, beam_size, max_length, penalty):
    """Beam search as the docstring tells it, in plain Python."""
    living, finished = [([], 0.0)], []
    for step in range(max_length):
        candidates = []
        for words, score in living:
            before, last = ([0, START, *words])[-2:]
            log_p = log_probabilities(model.logits[sentence, before, last])
            for word in range(len(log_p)):
                if word not in NOT_TEXT and (word == END or step < max_length - 1):
                    candidates.append(([*words, word], score + log_p[word]))
        candidates.sort(key=lambda c: -c[1])
        candidates = candidates[: 2 * beam_size]
        for rank, (words, score) in enumerate(candidates):
            if words[-1] == END and rank < beam_size:
                finished.append((words, score / penalty(len(words))))
        if len(finished) >= beam_size:
            break
        living = [c for c in candidates if c[0][-1] != END][:beam_size]
    return sorted(finished, key=lambda f: -f[1])[:beam_size]


@pytest.mark.parametrize("beam_size", [1, 3])
def test_what_a_model_likes_best_is_not_written_if_it_is_no_text(beam_size, random):
    model = Table(random, 40, 4)
    model.logits[..., NOT_TEXT] += 20
    found = search(model, np.arange(1, 5)[:, None], beam_size=beam_size, max_length=9)
    written = [word for best in found["tokens"] for row in best for word in words_of(row)]
    assert not set(written) & set(NOT_TEXT)
    for sentence, best in enumerate(found["tokens"]):
        expected = model.log_probability(sentence, words_of(best[0])) / len(words_of(best[0]))
        assert found["scores"][sentence, 0] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("beam_size", [1, 2, 5])
def test_equals_a_plain_search(beam_size, staged, random):
    model = Table(random, 40, 4)
    settings = {"max_length": 9, "length_penalty": Exponent(0.9), "staged": staged}
    found = search(model, np.arange(1, 5)[:, None], beam_size=beam_size, **settings)
    for sentence in range(4):
        expected = plain_search(model, sentence, beam_size, 9, Exponent(0.9))
        for rank, (words, score) in enumerate(expected):
            assert words_of(found["tokens"][sentence, rank]) == words
            np.testing.assert_allclose(found["scores"][sentence, rank], score, atol=1e-4)


def test_halved_batches_find_what_single_sentences_find(random):
    """Twenty sentences are halved to ten on the way; each alone never is."""
    model = Table(random, 40, 20)
    together = search(model, np.arange(1, 21)[:, None], beam_size=3, max_length=12, staged=True)
    assert len({int((row == END).argmax()) for row in together["tokens"][:, 0]}) > 2
    single = compiled_search(model, beam_size=3, max_length=12)
    for sentence in range(20):
        alone = single(np.array([[sentence + 1]]))
        np.testing.assert_array_equal(alone["tokens"][0], together["tokens"][sentence])
        np.testing.assert_allclose(alone["scores"][0], together["scores"][sentence], atol=1e-5)


def test_halves_are_searched_one_after_another(random):
    """None of 17 sentences is done after half of the steps: eight continue, then eight, then one."""
    model = Growing(random, 40, 17)
    model.logits[..., END] -= 20
    found = search(model, np.arange(1, 18)[:, None], beam_size=3, max_length=9, staged=True)
    for sentence in (0, 7, 8, 16):
        for rank, (words, score) in enumerate(plain_search(model, sentence, 3, 9, Exponent(1.0))):
            assert words_of(found["tokens"][sentence, rank]) == words
            np.testing.assert_allclose(found["scores"][sentence, rank], score, atol=1e-4)


def test_an_empty_sentence_is_done_at_once(random):
    model = Table(random, 40, 4)
    found = search(model, np.array([[2], [PAD], [PAD]]), beam_size=3, max_length=12)
    alone = search(model, np.array([[2]]), beam_size=3, max_length=12)
    np.testing.assert_array_equal(found["tokens"][0], alone["tokens"][0])
    assert (found["tokens"][1:] == PAD).all() and (found["scores"][1:] < -1e8).all()


def test_a_sentence_does_not_depend_on_its_neighbours(random):
    model = Table(random, 40, 4)
    together = search(model, np.arange(1, 5)[:, None], beam_size=3, max_length=12)
    single = compiled_search(model, beam_size=3, max_length=12)
    for sentence in range(4):
        alone = single(np.array([[sentence + 1]]))
        np.testing.assert_array_equal(alone["tokens"][0], together["tokens"][sentence])


@pytest.mark.parametrize(
    ("position_encoding", "options"),
    [("pope", None), ("pope", {"per_head": True}), ("rope", None), ("bias", None)],
)
def test_greedy_on_a_transformer_is_argmax_of_the_whole_model(position_encoding, options, random):
    """The cached steps against the uncached model: each word is the likeliest after those before it."""
    model = TransformerBackbone(
        40,
        position_encoding=position_encoding,
        position_options=options,
        num_layers=2,
        width=16,
        num_heads=2,
        feedforward_dim=32,
        norm="pre",
    )
    # Random biases and wide embeddings, or an untrained model repeats one word.
    model.set_weights([w + random.normal(size=w.shape) * 0.2 for w in model.get_weights()])
    source = random.integers(4, 40, (3, 7)).astype("int32")
    source[1, 4:] = PAD
    found = search(model, source, beam_size=1, max_length=8)
    for sentence in range(3):
        words = words_of(found["tokens"][sentence, 0])
        target = [START, *words[:-1], *[PAD] * (8 - len(words))]  # of one shape, compiled once
        inputs = {"source": source[sentence : sentence + 1], "target": np.array([target], "int32")}
        log_p = log_probabilities(ops.convert_to_numpy(model(inputs))[0, : len(words)])
        likeliest = log_p.argmax(-1)
        likeliest[7:] = END  # the eighth must end
        assert words == likeliest.tolist()
        score = log_p[np.arange(len(words)), words].sum()
        np.testing.assert_allclose(found["scores"][sentence, 0], score / len(words), atol=1e-4)


@pytest.mark.parametrize("sentences, max_length", [(2, 7), (32, 13)])
def test_scores_of_a_transformer_s_beam_are_its_log_probabilities(sentences, max_length, random):
    """Every hypothesis of the shared, never reordered cache, scored again by the whole model.

    Thirty-two sentences are halved twice on the way, and their cache is made longer twice.
    """
    keras.utils.set_random_seed(1)
    model = TransformerBackbone(64, num_layers=2, width=16, num_heads=2, feedforward_dim=32)
    model.set_weights([w + random.normal(size=w.shape) * 0.2 for w in model.get_weights()])
    source = random.integers(4, 64, (sentences, 5)).astype("int32")
    found = search(
        model, source, beam_size=4, max_length=max_length, length_penalty=Exponent(0.0), staged=True
    )
    assert max(len(words_of(row)) for row in found["tokens"][:, 0]) > max_length // 2
    for sentence in (0, sentences - 1):
        for rank in range(4):
            words = words_of(found["tokens"][sentence, rank])
            target = [START, *words[:-1], *[PAD] * (max_length - len(words))]  # of one shape, compiled once
            inputs = {"source": source[sentence : sentence + 1], "target": np.array([target], "int32")}
            log_p = log_probabilities(ops.convert_to_numpy(model(inputs))[0])
            expected = log_p[np.arange(len(words)), words].sum()
            np.testing.assert_allclose(found["scores"][sentence, rank], expected, atol=1e-3)


def test_compiled_equals_eager(random):
    model = TransformerBackbone(64, num_layers=1, width=16, num_heads=2, feedforward_dim=32)
    model.set_weights([w + random.normal(size=w.shape) * 0.2 for w in model.get_weights()])
    source = {"source": random.integers(4, 64, (3, 5)).astype("int32")}
    beam = BeamSearch(model, beam_size=3, max_length=10)
    eager = tree.map_structure(ops.convert_to_numpy, beam(source))
    beam.compile(jit_compile=True)
    compiled = beam.predict_on_batch(source)
    np.testing.assert_array_equal(compiled["tokens"], eager["tokens"])
    np.testing.assert_allclose(compiled["scores"], eager["scores"], atol=1e-5)


@pytest.mark.parametrize("ruled_out", [False, True])
@pytest.mark.parametrize("step", [0, 3])  # the last
@pytest.mark.parametrize("size", [10, 640, 647, 1500])
def test_continuations_equal_sorting(size, step, ruled_out, random):
    logits = random.normal(size=(3, 5, size)).astype("float32") * 3 - 200
    logits[..., 5::20] = -np.inf  # of 640 tokens, a whole group
    scores = -random.uniform(size=(3, 5)).astype("float32")
    never = None
    if ruled_out:
        never = np.where(random.uniform(size=(3, 1, size)) < 0.5, -1e9, 0).astype("float32")
        never[0, 0] = np.where(np.arange(size) == END, 0, -1e9)
    search = BeamSearch(None, beam_size=5, max_length=4)
    found = [ops.convert_to_numpy(x) for x in search._continuations(logits, scores, step, never)]

    totals = scores[..., None] + log_probabilities(logits)
    if ruled_out:
        totals = totals + never
    if step == 3:
        totals[..., np.arange(size) != END] = -np.inf
    totals = totals.reshape(3, 5 * size)
    best = np.argsort(-totals, axis=1)[:, :10]
    expected = np.take_along_axis(totals, best, axis=1), best // size, best % size
    possible = expected[0] > -1e8
    assert possible.any()
    for values, answer in zip(found, expected, strict=True):
        np.testing.assert_allclose(values[possible], answer[possible], rtol=0, atol=5e-5)
    assert (found[0][~possible] < -1e8).all()
    assert (found[2] < size).all()


def test_outputs_end_at_one_and_a_half_times_the_padded_length_and_eight(random):
    endless = Table(random, 8, 1)
    endless.logits[..., END] = -100
    searches, words = BatchedSearch(endless, max_length=64, jit_compile=False), [[1] * 5, [1] * 20, [1] * 60]
    for most, lengths in ((None, [32, 44, 64]), (9, [9, 9, 9]), (100, [64, 64, 64])):
        found = searches.search(words, {}, SearchSettings(1, max_length=most))
        assert [len(words_of(tokens[0])) for tokens, _ in found] == lengths


def test_longer_sentences_than_the_lengths_are_padded_to_the_model_s_maximum():
    assert batches_by_shape([[5] * 300, [5] * 3], 512) == [((1, 512), [0]), ((1, 16), [1])]


def test_the_end_symbol_has_a_place():
    assert batches_by_shape([[5] * 15, [5] * 16], 512) == [((1, 24), [1]), ((1, 16), [0])]


@pytest.mark.parametrize("count", [1, 5, 64, 65, 97, 129, 1000])
def test_sentences_of_one_length_are_in_as_few_batches_as_possible_of_one_shape(count):
    batches = batches_by_shape([[5] * 3] * count, 512)
    assert len(batches) == -(-count // 64) and len({shape for shape, _ in batches}) == 1
    assert all(len(numbers) <= rows for (rows, _), numbers in batches)
    assert [number for _, numbers in batches for number in numbers] == list(range(count))


def test_many_sentences_of_one_length_are_searched_in_stages():
    class Search(BatchedSearch):
        def _compiled(self, shape, settings, staged, prefixed):
            found.append(staged)
            return self

        def predict_on_batch(self, inputs):
            return {"tokens": inputs["source"], "scores": inputs["source"]}

    found = []
    for words in ([[5]] * batched_search.MANY, [[5], [5], [5] * 30]):
        Search(None, 64, False).search(words, {}, SearchSettings(1), threads=1)
    assert set(found[:-2]) == {True} and found[-2:] == [False, False]


def test_length_penalties():
    assert Exponent(0.0)(7) == 1
    assert Exponent(1.0)(7) == 7
    np.testing.assert_allclose(GNMT(0.6)(7), 2**0.6)
    assert (Exponent(), GNMT()) == (Exponent(1.0), GNMT(0.6))
    assert SearchSettings(length_penalty=2).length_penalty(7) == 7**2  # a number is an exponent of the length
    assert SearchSettings(length_penalty=math.sqrt).length_penalty(49) == 7
