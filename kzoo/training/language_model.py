"""The decoder's first training: as a language model of the target, before it sees a source."""

import json
import math
from pathlib import Path

import keras

from kzoo.data import Batches
from kzoo.files import whole_folder
from kzoo.models import LabelSmoothedCrossEntropy

WEIGHTS, RESULT = "decoder.weights.h5", "language_model.json"


def train_language_model(
    translator: keras.Model, batches: Batches, validation: Batches, epochs: int, folder: Path, verbose="auto"
):
    """Train a recurrent translator's decoder without source, once a run.

    Its perplexity of a subword on the validation split is printed and written beside the weights; a run that
    goes on takes them from there.

    Args:
        translator: its backbone has `language_model`.
        batches: training batches; their sources do not count.
        validation: the validation split's.
        epochs: int.
        folder: the run.
        verbose: as in `keras.Model.fit`.
    """
    folder = folder / "language_model"
    model = translator.backbone.language_model()
    if folder.is_dir():
        model.load_weights(folder / WEIGHTS)
        return
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3, global_clipnorm=5.0),
        loss=LabelSmoothedCrossEntropy(0.0),
        jit_compile=translator.jit_compile,
    )
    model.fit(TargetOnly(batches), epochs=epochs, shuffle=False, verbose=verbose)
    perplexity = word_perplexity(model, TargetOnly(validation))
    print(f"language model: perplexity {perplexity:.2f} of a subword on the validation split")
    with whole_folder(folder) as unfinished:
        model.save_weights(unfinished / WEIGHTS)
        (unfinished / RESULT).write_text(json.dumps({"epochs": epochs, "perplexity": perplexity}) + "\n")


def word_perplexity(model: keras.Model, batches: keras.utils.PyDataset) -> float:
    """Return exp of the mean cross-entropy of all words, however they stand in batches."""
    loss, words = 0.0, 0.0
    for number in range(len(batches)):
        inputs, labels, weights = batches[number]
        loss += float(model.test_on_batch(inputs, labels, weights)) * weights.sum()
        words += weights.sum()
        model.reset_metrics()
    return math.exp(loss / words)


class TargetOnly(keras.utils.PyDataset):
    """Batches without their sources."""

    def __init__(self, batches: Batches):
        super().__init__()
        self.batches = batches

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index: int):
        inputs, labels, weights = self.batches[index]
        return {"target": inputs["target"]}, labels, weights

    def on_epoch_end(self):
        self.batches.on_epoch_end()
