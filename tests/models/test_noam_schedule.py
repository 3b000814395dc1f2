"""Noam's schedule against its formula."""

import numpy as np
from keras import ops

from kzoo.models import NoamSchedule


def test_equals_the_formula():
    schedule = NoamSchedule(512, warmup_steps=4000, factor=2.0)
    for step in (1, 2, 3999, 4000, 4001, 100000):
        expected = 2 * 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
        np.testing.assert_allclose(ops.convert_to_numpy(schedule(step - 1)), expected, rtol=1e-5)


def test_the_peak_is_the_paper_s_by_default():
    rates = [float(NoamSchedule(512)(step - 1)) for step in (3999, 4000, 4001)]
    np.testing.assert_allclose(max(rates), 1 / np.sqrt(512 * 4000), rtol=1e-5)
    assert rates.index(max(rates)) == 1


def test_config():
    assert NoamSchedule.from_config(NoamSchedule(8, 20, 3.0).get_config()).get_config() == {
        "width": 8,
        "warmup_steps": 20,
        "factor": 3.0,
        "batches_per_step": 1,
    }
