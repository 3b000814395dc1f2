"""Every dropout of a backbone is where its name says: alone on, it changes what the model computes."""

import numpy as np
import pytest
from keras import ops

from kzoo.layers import Dropout
from kzoo.models import AttentionBridgeBackbone, RecurrentBackbone, TransformerBackbone

INPUTS = {
    "source": np.array([[5, 6, 7, 8, 3], [9, 10, 3, 0, 0]], "int32"),
    "target": np.array([[2, 4, 5], [2, 7, 8]], "int32"),
}
LANGUAGES = {"source_language": np.zeros(2, "int32"), "target_language": np.ones(2, "int32")}
MODELS = {
    "transformer": lambda: TransformerBackbone(
        12, num_layers=1, width=8, num_heads=2, feedforward_dim=12, dropout=0.5, max_length=16
    ),
    "recurrent": lambda: RecurrentBackbone(
        12, 12, embedding_dim=6, bidirectional=(4,), unidirectional=(8,), decoder_units=(5, 7), dropout=0.5
    ),
    "bridge": lambda: AttentionBridgeBackbone(
        [12, 12], embedding_dim=6, width=8, num_heads=3, hidden_dim=10, dropout=0.5, layer_dropout=0.5
    ),
}


NAMES = {
    "transformer": ["source_dropout", "target_dropout"],
    "recurrent": ["target_dropout", "output_dropout"],
    "bridge": ["source_dropout", "target_dropout", "encoded_dropout", "output_dropout"]
    + ["encoder_dropout_0", "decoder_dropout_0", "decoder_dropout_1"],
}


@pytest.mark.parametrize("kind", MODELS)
def test_alone_it_changes_training_only(kind):
    model = MODELS[kind]()
    inputs = {**INPUTS, **LANGUAGES} if kind == "bridge" else INPUTS
    dropouts = [layer for layer in model._flatten_layers() if isinstance(layer, Dropout)]
    calm, again = (ops.convert_to_numpy(model(inputs, training=False)) for _ in range(2))  # with all of them
    np.testing.assert_array_equal(again, calm)
    for name in NAMES[kind]:
        for dropout in dropouts:
            dropout.rate = 0.5 if dropout.name == name else 0
        assert np.abs(ops.convert_to_numpy(model(inputs, training=True)) - calm).max() > 1e-4, name
