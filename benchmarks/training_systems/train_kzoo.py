"""kzoo's side of `benchmarks/training.py`: trains until it is stopped, one line per step."""

import json
import sys
import time
from pathlib import Path

import keras

from benchmarks.arithmetic import kernel_sizes
from kzoo.data import Batches, PairBatches
from kzoo.data.text_files import read_lines
from kzoo.models import LabelSmoothedCrossEntropy, SentenceCrossEntropy
from kzoo.presets import build
from kzoo.text import SubwordTokenizer
from kzoo.training.compiling import compile_shapes, compile_step, tune_process


def main(folder: Path):
    tune_process()  # as `kzoo train` does
    settings = json.loads((folder / "settings.json").read_text())
    tokenizer = SubwordTokenizer((folder / "subwords.model").read_bytes())
    sides = {code: tokenizer(read_lines(folder / f"train.{code}").sentences) for code in ("en", "de")}
    keras.utils.set_random_seed(1)
    model, batches = (bridge if settings["model"] == "lstm" else transformer)(settings, tokenizer, sides)
    print("operations", 6 * sum(kernel_sizes(model.backbone)))
    batches.start_epoch(0)
    compile_step(model)
    compile_shapes(model, batches)
    model.fit(batches, epochs=10**6, shuffle=False, verbose=0, callbacks=[Steps(batches)])


def transformer(settings: dict, tokenizer: SubwordTokenizer, sides: dict):
    """Return a Transformer and its batches."""
    model = build(
        "pope_tiny",
        tokenizer,
        num_layers=settings["layers"],
        width=settings["width"],
        num_heads=settings["heads"],
        feedforward_dim=settings["feedforward"],
        dropout=settings["dropout"],
        norm="pre",
        dtype=settings["precision"],
    )
    compile_model(model, LabelSmoothedCrossEntropy(0.1))
    return model, Batches(sides["en"], sides["de"], settings["tokens"])


def bridge(settings: dict, tokenizer: SubwordTokenizer, sides: dict):
    """Return the attention bridge's bilingual model, and its batches of one direction."""
    model = build(
        "attention_bridge_bilingual",
        {"en": tokenizer, "de": tokenizer},
        dropout=settings["dropout"],
        layer_dropout=0.0,
        tied_embeddings=True,
        dtype=settings["precision"],
    )
    compile_model(model, SentenceCrossEntropy(0.1))
    return model, PairBatches(sides, [("en", "de")], ["en", "de"], tokens=settings["tokens"])


def compile_model(model: keras.Model, loss: keras.losses.Loss):
    adam = keras.optimizers.Adam(1e-3, beta_2=0.98)
    model.compile(optimizer=adam, loss=loss)


class Steps(keras.callbacks.Callback):
    """Prints a line after each step; the first epoch is the warm-up."""

    def __init__(self, batches):
        super().__init__()
        self.batches = batches

    def on_epoch_begin(self, epoch, logs=None):
        self.words = [int(self.batches[number][-1].sum()) for number in range(len(self.batches))]
        if epoch == 1:
            print("warm")

    def on_train_batch_end(self, batch, logs=None):
        float(logs["loss"])  # on JAX the step may still be under way
        print("step", time.perf_counter(), self.words[batch])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
