"""The shapes of batches: few, and each usual one comes up before the first client."""

from types import SimpleNamespace

import numpy as np
import pytest

from kzoo.decoding import SearchSettings
from kzoo.decoding.batched_search import batches_by_length
from kzoo.decoding.search_settings import LENGTHS
from kzoo.serve.keras_search import USUAL_LENGTH, KerasSearch, filled, row_counts, usual_texts


def by_word(texts):
    return [text.split() for text in texts]


def two_a_word(texts):
    return [text.split() * 2 for text in texts]


@pytest.mark.parametrize(
    ("max_batch", "counts"),
    [(1, [1]), (3, [1, 3]), (8, [1, 4, 8]), (12, [1, 4, 8, 12]), (32, [1, 4, 8, 16, 32])],
)
def test_batches_are_filled_up_to_few_sizes(max_batch, counts):
    assert row_counts(max_batch) == counts
    for size in range(1, counts[-1] + 1):
        rows = filled(list(range(size)), counts)
        assert rows[:size] == list(range(size))
        assert set(rows[size:]) <= {0}
        assert len(rows) == min(count for count in counts if count >= size)


@pytest.mark.parametrize("tokenizer", [by_word, two_a_word])
@pytest.mark.parametrize("max_length", [2, 16, 20, 256])
def test_each_usual_length_has_a_text(tokenizer, max_length):
    words = tokenizer(usual_texts(tokenizer, max_length))
    lengths = [length for sentence in words for length, _ in batches_by_length([sentence], max_length)]
    usual = {min(length, max_length) for length in LENGTHS if length <= USUAL_LENGTH}
    expected = sorted(usual) if max_length > 2 or tokenizer is by_word else []  # two subwords do not fit
    assert lengths == expected


def test_rows_have_images_as_requests_have_them():
    def batches(image_shape):
        model = SimpleNamespace(
            multilingual=False,
            languages=["en", "de"],
            image_shape=image_shape,
            source_tokenizer=by_word,
            backbone=SimpleNamespace(max_length=16),
        )
        return [rows for _, rows in KerasSearch(model, SearchSettings(), 4).usual()]

    pictures = batches((4, 4, 3))
    assert [len(rows) for rows in pictures] == [1, 4]
    assert pictures[0][0][1].dtype == np.uint8
    assert batches((2, 5))[0][0][1].dtype == np.float32
    assert batches(None)[0][0][1] is None
