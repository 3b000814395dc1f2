"""The bridge's dropout between layers and on what is fed back: where it is, alike on all backends."""

import keras
import numpy as np
import pytest
from keras import ops

from kzoo.layers import Dropout
from kzoo.models import AttentionBridgeBackbone, SentenceCrossEntropy

INPUTS = {
    "source": np.array([[5, 6, 7, 8, 3], [9, 10, 3, 0, 0]], "int32"),
    "target": np.array([[2, 4, 5], [2, 7, 8]], "int32"),
    "source_language": np.zeros(2, "int32"),
    "target_language": np.ones(2, "int32"),
}
LABELS = np.array([[4, 5, 3], [7, 8, 3]], "int32")


def made(**settings):
    keras.utils.set_random_seed(3)
    return AttentionBridgeBackbone(
        [12, 12], embedding_dim=6, width=8, num_heads=3, hidden_dim=10, layer_dropout=0.5, **settings
    )


def factors(dropout: Dropout, length: int) -> np.ndarray:
    """Return what the first call of a backbone's dropout multiplies by: the hash of its seed."""
    seed = int(ops.convert_to_numpy(dropout.seed_generator.state)[0])
    ones = np.ones((2, length, 8), "float32")
    return ops.convert_to_numpy(Dropout(dropout.rate, seed=seed)(ones, training=True))


def composed(model) -> np.ndarray:
    """Return the logits in training, by the layers alone, with dropout's factors given by hand."""
    language = 1
    offsets = {"source": 0, "target": 12}
    source, target = (
        table(INPUTS[side] + offsets[side])
        for side, table in (("source", model.embedding), ("target", model.target_embedding))
    )
    kept = [factors(dropout, 5) for dropout in model.encoder_dropouts]
    assert len(kept) == 1
    H = model.encoders.layers[0](source, mask=INPUTS["source"] > 0, kept=kept)
    M = model.bridge.attend(H, INPUTS["source"] > 0)[0]
    kept = [factors(dropout, 3) for dropout in model.decoder_dropouts]
    assert len(kept) == 2
    x = model.decoders.layers[language](target, M, [(ops.mean(M, axis=1),) * 2] * 2, kept=kept)
    return ops.convert_to_numpy(model.outputs_by_language.layers[language](x))


@pytest.mark.parametrize("tied", [True, False])
def test_what_is_dropped_is_the_hash_s_on_every_backend(tied):
    model = made(tied_embeddings=tied)
    expected = composed(model)
    calm = ops.convert_to_numpy(model(INPUTS))
    np.testing.assert_allclose(ops.convert_to_numpy(model(INPUTS, training=True)), expected, atol=1e-5)
    assert np.abs(expected - calm).max() > 1e-3


def test_a_compiled_step_drops_the_same():
    """In a graph, where the language is chosen while it runs."""
    model = made()
    jit = keras.backend.backend() == "jax"
    model.compile(keras.optimizers.SGD(0.0), SentenceCrossEntropy(), jit_compile=jit)
    expected = float(SentenceCrossEntropy()(LABELS, composed(model)))
    kept = [factors(dropout, 5) for dropout in model.encoder_dropouts]
    source, mask = model.embedding(INPUTS["source"]), INPUTS["source"] > 0
    model.bridge(model.encoders.layers[0](source, mask=mask, kept=kept), mask=mask)
    expected += float(model.bridge.losses[0])
    np.testing.assert_allclose(model.train_on_batch(INPUTS, LABELS), expected, rtol=1e-5)


def test_without_it_there_is_nothing_to_draw():
    assert not [
        x for x in AttentionBridgeBackbone([9], "cnn", 4, 4)._flatten_layers() if "r_dropout_" in x.name
    ]
    others = made(encoder="cnn")
    assert (len(others.encoder_dropouts), len(others.decoder_dropouts)) == (0, 2)
