"""Prefixes, minimum lengths and n-grams, against all outputs that a small model can have."""

import itertools

import numpy as np
import pytest
from keras import ops
from test_beam_search import Table, search, words_of

from kzoo.decoding import BeamSearch, Exponent, SearchSettings
from kzoo.decoding.batched_search import BatchedSearch, output_limit
from kzoo.errors import UserError
from kzoo.text.vocabulary import END, PAD

SIZE, LONGEST, WORDS = 7, 5, (4, 5, 6)
EVERY = [
    [*words, END] for length in range(LONGEST) for words in itertools.product(WORDS, repeat=length)
]  # but for those with the unknown token
PREFIXES = ([], [5], [4, 4], [6, 5, 6, 5])  # one that ends where an output must, and some that repeat


@pytest.fixture
def model(random):
    """A table in which the unknown token is less likely than anything else, whether or not it is allowed."""
    table = Table(random, SIZE, len(PREFIXES))
    table.logits[..., 1] = -50
    return table


def allowed(words, prefix, min_length, n):
    """Return whether an output keeps the constraints, as their definitions have it."""
    if words[: len(prefix)] != prefix or len(words) < min_length:
        return False
    for end in range(max(len(prefix) + 1, n), len(words) + 1) if n else ():
        if any(words[i : i + n] == words[end - n : end] for i in range(end - n)):
            return False
    return True


# The first of the prefixes is empty, so without prefixes each value is tried once.
@pytest.mark.parametrize(
    ("prefixed", "n", "min_length"),
    [
        *itertools.product([True], [0, 1, 2, 3], [0, 3, LONGEST, 9]),
        *((False, n, min_length) for n, min_length in enumerate((LONGEST, 0, 3, 9))),
    ],
)
def test_outputs_are_the_best_of_all_that_are_allowed(model, prefixed, n, min_length):
    numbers = np.arange(1, len(PREFIXES) + 1)
    inputs = {"source": numbers[:, None].astype("int32")}
    prefixes = PREFIXES if prefixed else [[]] * len(PREFIXES)
    if prefixed:
        inputs["prefix"] = np.array([[*p, *[PAD] * (LONGEST + 1 - len(p))] for p in prefixes], "int32")
    beam = BeamSearch(model, 128, LONGEST, Exponent(0.5), min_length=min_length, no_repeat_ngram=n)
    found = {name: ops.convert_to_numpy(value) for name, value in beam(inputs).items()}
    for sentence, prefix in enumerate(prefixes):
        kept = [words for words in EVERY if allowed(words, prefix, min(min_length, LONGEST), n)]
        scores = [model.log_probability(sentence, words) / len(words) ** 0.5 for words in kept]
        for rank, best in enumerate(np.argsort(scores)[::-1]):
            assert words_of(found["tokens"][sentence, rank]) == kept[best]
            np.testing.assert_allclose(found["scores"][sentence, rank], scores[best], atol=1e-4)
        rest = found["tokens"][sentence, len(kept) :]
        assert ((rest == 1).any(axis=1) | (rest == PAD).all(axis=1)).all()


def test_a_narrow_beam_keeps_them_too_and_halved_batches_do(random):
    model = Table(random, 40, 20)
    source = np.arange(1, 21)[:, None].astype("int32")
    prefix = np.zeros((20, 12), "int32")
    prefix[:, 0], prefix[::2, 1] = np.arange(10, 30), 7
    options = {"beam_size": 3, "max_length": 12, "min_length": 6, "no_repeat_ngram": 2}
    together = search(model, source, prefix, **options, staged=True)
    for sentence in (0, 1, 19):
        itself = slice(sentence, sentence + 1)
        alone = search(model, source[itself], prefix[itself], **options)
        np.testing.assert_array_equal(together["tokens"][sentence], alone["tokens"][0])
        for row in together["tokens"][sentence]:
            words = words_of(row)
            beginning = [word for word in prefix[sentence] if word]
            assert allowed(words, beginning, 6, 2)


def test_a_prefix_longer_than_its_sentence_has_room(random):
    """And a sentence with its prefix does not depend on others."""
    model = Table(random, 40, 3)
    searches = BatchedSearch(model, max_length=64, jit_compile=False)
    words, prefixes = [[1], [2], [3] * 20], [[5, 6] * 15, [], [7]]
    settings = SearchSettings(2, min_length=4, no_repeat_ngram=40)
    found = searches.search(words, {}, settings, prefixes=prefixes)
    for number, prefix in enumerate(prefixes):
        (tokens, scores), best = found[number], words_of(found[number][0][0])
        assert best[: len(prefix)] == prefix and len(best) > len(prefix)
        ((alone, its_scores),) = searches.search([words[number]], {}, settings, prefixes=[prefix])
        np.testing.assert_array_equal(tokens, alone)
        np.testing.assert_allclose(scores, its_scores, atol=1e-5)
    without = searches.search(words[1:2], {}, settings)[0]
    np.testing.assert_array_equal(found[1][0], without[0])


def test_outputs_have_room_for_their_minimum_length():
    assert output_limit(SearchSettings(min_length=50), 16, 64) == 50
    assert output_limit(SearchSettings(min_length=20), 16, 64) == 32
    with pytest.raises(UserError, match="min_length .*65"):
        output_limit(SearchSettings(min_length=65), 16, 64)
