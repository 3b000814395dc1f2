"""Each worker's rows: together those of the batches, none twice."""

import numpy as np

from kzoo.data import Batches
from kzoo.data.wrapped_batches import CountedBatches, WorkerRows


def batches(tokens=70):
    """41 pairs, each side being the pair's number, from once to nine times."""
    pairs = [[4 + number] * (1 + number % 9) for number in range(41)]
    return Batches(pairs, pairs, tokens=tokens, num_shapes=3, seed=1)


def test_workers_have_every_row_once():
    whole, parts = batches(), [WorkerRows(batches(), 4, 2, worker) for worker in range(2)]
    for epoch in range(2):
        seen = []
        for index in range(len(whole)):
            expected, found = whole[index], [part[index] for part in parts]
            assert len(found[0][1]) == len(found[1][1])
            assert sum(len(labels) for _, labels, _ in found) % 4 == 0
            for name, value in expected[0].items():
                together = np.concatenate([inputs[name] for inputs, _, _ in found])
                np.testing.assert_array_equal(together[: len(value)], value)
                assert not together[len(value) :].any()
            assert sum(weights.sum() for _, _, weights in found) == expected[2].sum()
            seen += [int(row[0]) for inputs, _, _ in found for row in inputs["source"] if row[0] > 3]
        assert sorted(seen) == list(range(4, 45)), epoch
        for each in (whole, *parts):
            each.on_epoch_end()


def test_no_batch_gets_more_rows_than_the_replicas_need():
    """Also where the first two are filled alike: Keras on TensorFlow fixes no number of rows."""
    whole = batches()
    assert [len(whole[index][1]) for index in range(len(whole))] == [17, 10, 7, 10, 7]
    for replicas, filled in ((4, [20, 12, 8, 12, 8]), (64, [64] * 5)):
        rows = WorkerRows(whole, replicas)
        assert [len(rows[index][1]) for index in range(len(rows))] == filled


def test_each_batch_is_counted_once():
    counted = CountedBatches(batches())
    parts = WorkerRows(counted, 4)
    for index in range(len(parts)):
        parts[index]
    found = counted.counts["batches"], counted.counts["target_tokens"]
    assert found == (len(parts), counted.batches.num_tokens)
