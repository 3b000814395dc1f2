"""The bias on the logits: what every layer does, and that it is added."""

import numpy as np
from check_layer import check_layer
from keras import ops

from kzoo.layers import OutputBias


def test_it_is_a_layer(random, tmp_path):
    check_layer(OutputBias(), {"inputs": random.normal(size=(2, 3, 5)).astype("float32")}, tmp_path)


def test_each_token_has_its_number(random):
    layer, logits = OutputBias(), random.normal(size=(2, 3, 5)).astype("float32")
    layer.build(logits.shape)
    layer.bias.assign([1, 2, 3, 4, 5])
    np.testing.assert_allclose(ops.convert_to_numpy(layer(logits)), logits + np.arange(1, 6), atol=1e-6)
