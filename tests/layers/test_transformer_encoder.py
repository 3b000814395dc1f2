"""The whole Transformer encoder: its positions against SciPy, its order of parts, its padding."""

import numpy as np
from check_layer import assert_ignores_padding, check_layer
from keras import ops
from scipy.special import eval_legendre
from test_recurrent_encoder import MASK
from test_transformer_layer import normalized

from kzoo.layers import TransformerEncoder


def entered(layer, x):
    """Return the inputs mapped to D, with orthonormal Legendre functions added; the weights that follow."""
    kernel, bias, *others = layer.get_weights()
    positions, width = np.arange(x.shape[1])[:, None], kernel.shape[1]
    legendre = eval_legendre(positions, -1 + 2 * np.arange(width) / width) * np.sqrt((2 * positions + 1) / 2)
    return x @ kernel + bias + legendre, others


def test_without_layers_it_is_positions_and_a_norm(random):
    x = random.normal(size=(2, 5, 4)).astype("float32")
    layer = TransformerEncoder(width=8, num_layers=0)
    layer(x)
    layer.set_weights([random.normal(size=w.shape) for w in layer.get_weights()])
    expected, (scale, offset) = entered(layer, x)
    np.testing.assert_allclose(
        ops.convert_to_numpy(layer(x)), normalized(expected) * scale + offset, atol=1e-4
    )


def test_its_layers_follow_one_another(random):
    """Each layer is tested on its own elsewhere."""
    x = random.normal(size=(2, 5, 4)).astype("float32")
    layer = TransformerEncoder(width=8, num_layers=2, num_heads=2)
    layer(x)
    expected = entered(layer, x)[0].astype("float32")
    for part in layer.layers:
        assert part.norm == "pre"
        expected = ops.convert_to_numpy(part(expected, mask=MASK))
    found = ops.convert_to_numpy(layer(x, mask=MASK))
    np.testing.assert_allclose(found[MASK], normalized(expected)[MASK], atol=1e-4)


def test_ignores_padding(random):
    x = random.normal(size=(2, 5, 4)).astype("float32")
    layer = TransformerEncoder(width=8, num_heads=2)
    assert_ignores_padding(lambda x, m: layer(x, mask=m), x, MASK, outputs_masked=True)


def test_behaves_as_a_layer(random, tmp_path):
    x = random.normal(size=(2, 5, 4)).astype("float32")
    check_layer(TransformerEncoder(width=8, num_heads=2), {"inputs": x, "mask": MASK}, tmp_path)
