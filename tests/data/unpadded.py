"""What is in a batch apart from its padding."""

import numpy as np


def unpadded(inputs, labels, weights) -> list[tuple]:
    """Return the (source, target, labels) of a batch's rows that are not empty; check the weights."""
    np.testing.assert_array_equal(weights, labels != 0)
    return [
        tuple(tuple(int(word) for word in side[side != 0]) for side in row)
        for row in zip(inputs["source"], inputs["target"], labels, strict=True)
        if row[0].any()
    ]
