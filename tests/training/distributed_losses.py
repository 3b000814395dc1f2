"""Prints what tiny models of the four families lose in 50 steps under a strategy; see test_strategies.py.

python distributed_losses.py STRATEGY,… DEVICES [FAMILY…]
"""

import json
import os
import sys
from functools import partial

import keras
import numpy as np

from kzoo import cli
from kzoo.data import Batches, PairBatches
from kzoo.data.wrapped_batches import WrappedBatches
from kzoo.models import (
    SGD,
    Adam,
    AttentionBridgeBackbone,
    LabelSmoothedCrossEntropy,
    MultilingualTranslator,
    NoamSchedule,
    RecurrentBackbone,
    SentenceCrossEntropy,
    TransformerBackbone,
    Translator,
)
from kzoo.models.backbones import uses_xla
from kzoo.training.strategies import open_strategy

STEPS, WORDS = 50, 20
TRANSFORMER = {"num_layers": 1, "width": 16, "num_heads": 2, "feedforward_dim": 32}


def sides(count: int = 41) -> list[list[list[int]]]:
    """Return two sides' sentences of one to nine words, of which replicas have unequally many."""
    random = np.random.default_rng(1)
    return [[random.integers(4, WORDS, random.integers(1, 10)).tolist() for _ in range(count)] for _ in "st"]


def pope(dropout: float = 0.0, **options):
    backbone = TransformerBackbone(WORDS, **TRANSFORMER, dropout=dropout, **options)
    return backbone, noam(), LabelSmoothedCrossEntropy(), Batches(*sides(), tokens=70, num_shapes=1)


def without_weights(**options):
    *parts, batches = pope(**options)
    return *parts, WithoutWeights(batches)


class WithoutWeights(WrappedBatches):
    """Batches of inputs and labels alone."""

    def __getitem__(self, index: int):
        return self.batches[index][:2]


def image_text(dropout: float = 0.0, **options):
    seen = {"image_shape": (16, 16, 3), "position_encoding": "sine"}
    backbone = TransformerBackbone(WORDS, **TRANSFORMER, **seen, dropout=dropout, **options)
    images = np.random.default_rng(3).integers(0, 256, (len(sides()[0]), 16, 16, 3)).astype("uint8")
    batches = Batches(*sides(), tokens=70, num_shapes=1, images=images)
    return backbone, noam(), LabelSmoothedCrossEntropy(), batches


def glyph(dropout=0.0, architecture="fc_2", num_features=8, rate=1e-3, **options):
    backbone = RecurrentBackbone(
        WORDS,
        WORDS,
        source_embedding="glyph",
        glyph_options={"architecture": architecture, "num_features": num_features},
        embedding_dim=16,
        bidirectional=[8],
        unidirectional=[16],
        decoder_units=[16],
        dropout=dropout,
        **options,
    )
    glyphs = np.random.default_rng(3).integers(0, 2, (WORDS, 22, 22))
    glyphs[:4] = 0
    backbone.source_embedding.glyphs.assign(glyphs)
    optimizer = Adam(rate, global_clipnorm=5.0)
    return backbone, optimizer, LabelSmoothedCrossEntropy(0.0), Batches(*sides(), tokens=70, num_shapes=1)


def attention_bridge(dropout: float = 0.0, encoder: str = "cnn", **options):
    backbone = AttentionBridgeBackbone(
        [WORDS, WORDS + 4],
        encoder,
        embedding_dim=16,
        width=16,
        num_decoder_layers=1,
        num_heads=3,
        hidden_dim=24,
        dropout=dropout,
        **options,
    )
    pairs, words = [("en", "de"), ("de", "en")], dict(zip(("en", "de"), sides(), strict=True))
    batches = PairBatches(words, pairs, ["en", "de"], sentences=7, num_shapes=1)
    return backbone, SGD(0.1, global_clipnorm=5.0), SentenceCrossEntropy(), batches


def noam():
    # At twice this rate round-off grows a hundredfold within the fifty steps.
    return keras.optimizers.Adam(NoamSchedule(16, 400), beta_2=0.98, epsilon=1e-9)


FAMILIES = {
    "pope": pope,
    "pope without weights": without_weights,
    "image_text": image_text,
    "glyph": glyph,
    # At the rate of 1e-3 the losses part on TensorFlow from step 17 on: by 9e-4 at step 46.
    "glyph cnn_fc_relu": partial(glyph, architecture="cnn_fc_relu", num_features=64, rate=3e-4),
    "attention_bridge": attention_bridge,  # its "cnn" is compiled sooner than the other encoders
    "attention_bridge lstm": partial(attention_bridge, encoder="lstm"),
}


class Curve(keras.callbacks.Callback):
    """Takes Keras's running mean over an epoch, in which a batch counts by its rows, apart into steps."""

    def __init__(self, batches, workers: int):
        super().__init__()
        self.batches, self.workers, self.losses = batches, workers, []

    def on_epoch_begin(self, epoch, logs=None):
        self.total = self.rows = 0.0

    def on_train_batch_end(self, batch, logs=None):
        rows = len(self.batches[batch][1]) * self.workers
        total = logs["loss"] * (self.rows + rows)
        self.losses.append(float((total - self.total) / rows))
        self.total, self.rows = total, self.rows + rows
        self.model.stop_training = len(self.losses) == STEPS


def losses(family: str, strategy) -> list[float]:
    keras.utils.set_random_seed(1)
    with strategy.scope():
        backbone, optimizer, loss, batches = FAMILIES[family]()
        multilingual = isinstance(backbone, AttentionBridgeBackbone)
        model = (MultilingualTranslator if multilingual else Translator)(backbone, {})
        compiled = keras.backend.backend() == "jax"  # what XLA would take on TensorFlow is not worth its time
        model.compile(optimizer=optimizer, loss=loss, jit_compile=compiled and uses_xla(backbone))
    batches = strategy.share(batches)
    curve = Curve(batches, strategy.workers)
    death = [Death()] * (os.environ.get("DIES") == str(strategy.worker))
    model.fit(batches, epochs=STEPS, shuffle=False, verbose=0, callbacks=[curve, *death])
    return curve.losses[:STEPS]


class Death(keras.callbacks.Callback):
    """Ends the process as a crash does."""

    def on_train_batch_end(self, batch, logs=None):
        if batch == 3:
            os._exit(9)


def main(names: list[str], devices: int, families: list[str]):
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        cpu, each = tf.config.list_physical_devices("CPU")[0], tf.config.LogicalDeviceConfiguration()
        tf.config.set_logical_device_configuration(cpu, [each] * devices)
    found = {}
    for name in names:
        with open_strategy(name) as strategy:
            assert strategy.devices == (1 if name == "one" else devices * strategy.workers)
            found[name] = {family: losses(family, strategy) for family in families}
            strategy.barrier()
    print(json.dumps(found))


if __name__ == "__main__":
    cli.main(lambda: main(sys.argv[1].split(","), int(sys.argv[2]), sys.argv[3:] or list(FAMILIES)))
