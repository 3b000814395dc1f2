"""The shapes of batches: few, and each usual one comes up before the first client."""

from types import SimpleNamespace

import numpy as np
import pytest

from kzoo.decoding import SearchSettings
from kzoo.decoding.batched_search import batches_by_shape
from kzoo.decoding.search_settings import LENGTHS
from kzoo.serve.searches import USUAL_LENGTH, KerasSearch
from kzoo.text.vocabulary import UNKNOWN


def search_of(max_length=16, image_shape=None, max_batch=4) -> KerasSearch:
    sizes = {"image_shape": image_shape, "max_length": max_length}
    model = SimpleNamespace(languages=["en", "de"], multilingual=True, **sizes)
    return KerasSearch(model, SearchSettings(), max_batch)


@pytest.mark.parametrize("max_batch", [1, 3, 8, 12, 32, 64])
def test_batches_of_any_size_are_padded_to_a_size_that_is_compiled_at_startup(max_batch):
    def padded_size(count: int) -> int:
        [((rows, _), _)] = batches_by_shape([[UNKNOWN]] * count, 16)
        return rows

    usual = {padded_size(len(rows)) for _, rows in search_of(max_batch=max_batch).usual()}
    assert usual == {padded_size(count) for count in range(1, max_batch + 1)}


@pytest.mark.parametrize("max_length", [2, 16, 20, 256])
def test_each_usual_length_has_a_sentence(max_length):
    found = [(key[1], len(rows), rows[0][0]) for key, rows in search_of(max_length).usual()]
    usual = sorted({min(length, max_length) for length in LENGTHS if length <= USUAL_LENGTH})
    assert [(length, count) for length, count, _ in found] == [
        (length, n) for n in (1, 4) for length in usual
    ]
    for length, _, tokens in found:
        assert [padded for (_, padded), _ in batches_by_shape([tokens], max_length)] == [length]


def test_rows_have_images_as_requests_have_them():
    def images(image_shape):
        return [rows[0][1] for _, rows in search_of(image_shape=image_shape).usual()]

    assert images((4, 4, 3))[0].dtype == np.uint8
    assert images((2, 5))[0].dtype == np.float32
    assert images(None)[0] is None
