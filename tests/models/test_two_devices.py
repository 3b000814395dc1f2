"""Two devices lose what one loses: the bridge's penalty, dropout, the tagger. JAX does not divide a batch."""

import json
import os
import subprocess
import sys

import keras
import numpy as np
import pytest

# Prints what a model with a bridge loses in four batches of 8 sentences, on one device and on two.
BRIDGE = """
import json
import keras, numpy as np
from kzoo.layers import AttentionBridge

random = np.random.default_rng(1)
x, y = random.integers(1, 9, (32, 5)).astype("int32"), random.normal(size=(32, 3, 4)).astype("float32")
x[np.arange(5) >= random.integers(1, 6, (32, 1))] = 0
weights = [random.normal(size=shape).astype("float32") for shape in ((9, 4), (4, 6), (6, 3))]

def losses():
    words = keras.Input((5,), dtype="int32")
    embedded = keras.layers.Embedding(9, 4)(words)
    bridge = AttentionBridge(num_heads=3, hidden_dim=6)
    model = keras.Model(words, bridge(embedded, mask=keras.ops.not_equal(words, 0)))
    model.compile(keras.optimizers.SGD(0.1), "mse")
    model.set_weights(weights)
    return model.fit(x, y, batch_size=8, epochs=3, shuffle=False, verbose=0).history["loss"]

one = losses()
assert len(keras.distribution.list_devices()) == 2
keras.distribution.set_distribution(keras.distribution.DataParallel())
print(json.dumps([one, losses()]))
"""

# Prints what a translator and a tagger lose in four steps, on one device and on two. On TensorFlow all
# replicas drop the same elements of their rows, so that two with the same rows lose what one does; on JAX the
# batch is one.
MODELS = """
import json, sys
import keras, numpy as np

twice = keras.backend.backend() == "tensorflow"
if twice:
    import tensorflow as tf
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)

from kzoo.models import AttentionBridgeBackbone, CharacterTagger, MultilingualTranslator, SentenceCrossEntropy
from kzoo.training.strategies import open_strategy

random = np.random.default_rng(1)
words = {side: random.integers(3, 12, (4, 5)).astype("int32") for side in ("source", "target")}
words |= {side: np.zeros(4, "int32") for side in ("source_language", "target_language")}
labels = random.integers(3, 12, (4, 5)).astype("int32")
# The second device has fewer sentences and characters than the first.
ids = np.where(np.arange(6) < np.array([[6], [5], [2], [0]]), random.integers(4, 12, (4, 6)), 0)
tags = random.integers(0, 3, (4, 6))

def losses(strategy, times):
    with open_strategy(strategy) as opened, opened.scope():
        assert opened.devices == (1 if strategy == "one" else 2)
        keras.utils.set_random_seed(1)
        backbone = AttentionBridgeBackbone(
            [12], "lstm", 4, 4, num_decoder_layers=1, num_heads=2, hidden_dim=6, layer_dropout=0.5
        )
        translator = MultilingualTranslator(backbone, {})
        embedding = keras.layers.Embedding(12, 4)
        tagger = CharacterTagger(embedding, ["B", "I", "O"], None, dropout=0.0, output_dropout=0.0)
        translator.compile(keras.optimizers.SGD(0.1), SentenceCrossEntropy(), jit_compile=not twice)
        tagger.compile(keras.optimizers.SGD(0.1), jit_compile=not twice)
        x = {name: np.concatenate([part] * times) for name, part in words.items()}
        y = np.concatenate([labels] * times)
        weights = np.ones(y.shape, "float32")
        as_it_is = {"epochs": 4, "shuffle": False, "verbose": 0}
        translating = translator.fit(x, y, sample_weight=weights, batch_size=len(y), **as_it_is)
        tagging = tagger.fit(ids, tags, batch_size=4, **as_it_is)
        return translating.history["loss"], tagging.history["loss"]

print()
print(json.dumps([losses("one", 1), losses("mirrored" if twice else "data_parallel", 2 if twice else 1)]))
"""


def losses_of(program: str) -> list[list[float]]:
    """Return the losses on one device and on two."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"
    found = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "XLA_FLAGS": flags},
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stderr[-2000:]
    return json.loads(found.stdout.splitlines()[-1])


@pytest.mark.skipif(
    keras.backend.backend() != "jax", reason="on TensorFlow tests/training/test_strategies.py has this"
)
def test_a_bridge_s_penalty_and_loss():
    """Under JAX's DataParallel, as it trains."""
    one, two = losses_of(BRIDGE)
    assert one[-1] < one[0]
    np.testing.assert_allclose(two, one, rtol=1e-5)


@pytest.mark.skipif(keras.backend.backend() == "torch", reason="there is no strategy for torch")
def test_two_devices_drop_alike_and_tag_alike():
    one, two = losses_of(MODELS)
    assert np.ptp(one, axis=1).min() > 0.05
    np.testing.assert_allclose(two, one, rtol=1e-5)
