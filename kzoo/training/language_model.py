"""Pretrains a recurrent decoder as a language model of the target language."""

import json
import math
from pathlib import Path

import keras

from kzoo.data import Batches
from kzoo.data.wrapped_batches import TargetOnly
from kzoo.errors import UserError
from kzoo.files import atomic_folder, check_space, remove_folder
from kzoo.models import Adam, LabelSmoothedCrossEntropy
from kzoo.training.checkpoints import Checkpoints, damage, data_has_changed, write_digests
from kzoo.training.resuming import Preemption, fit_from
from kzoo.training.strategies import Strategy

WEIGHTS, RESULT = "decoder.weights.h5", "language_model.json"


def train_language_model(
    translator: keras.Model,
    batches: Batches,
    validation: Batches,
    epochs: int,
    folder: Path,
    preemption: Preemption,
    verbose: str | int,
):
    """Pretrain a recurrent translator's decoder as a language model, once per run.

    Prints the perplexity per subword on the validation split, and writes it next to the weights. A resumed
    run reads these weights, or resumes the pretraining from its last checkpoint.

    Args:
        translator: a translator whose backbone has `language_model`.
        batches: the worker's training batches; their sources are ignored.
        validation: batches of the whole validation split, the same on all workers.
        epochs: int.
        folder: the run's folder.
        preemption: the run's callback. Pretraining uses the settings of its checkpoints.
        verbose: as in `keras.Model.fit`.

    Raises:
        UserError: the decoder in the folder was trained on other data, or is damaged.
    """
    folder, unfinished = folder / "language_model", folder / "language_model_checkpoints"
    run = preemption.checkpoints
    strategy = run.strategy
    with strategy.scope():
        model = translator.backbone.language_model()
    if folder.is_dir():  # an earlier start has trained it
        if reason := damage(folder):
            raise UserError(f"{folder} is damaged ({reason}): remove it to train it again")
        if json.loads((folder / RESULT).read_text())["data"] != run.data:
            raise UserError(data_has_changed(folder))
        model.load_weights(folder / WEIGHTS)
    else:
        with strategy.scope():
            model.compile(
                optimizer=Adam(1e-3, epsilon=1e-8, global_clipnorm=5.0),
                loss=LabelSmoothedCrossEntropy(0.0),
                jit_compile=translator.jit_compile,
            )
        checkpoints = Checkpoints(unfinished, "loss", 0, run.minutes, run.data, strategy)
        checkpoints.set_model(model)
        with preemption.saving(checkpoints):
            with strategy.scope():
                checkpoints.restore()
            if checkpoints.epoch < epochs:
                where = checkpoints.epoch, checkpoints.batch
                fit_from(*where, model, TargetOnly(batches), epochs, [checkpoints, preemption], verbose)
        perplexity = token_perplexity(model, TargetOnly(validation), strategy)
        print(f"language model: perplexity {perplexity:.2f} per subword on the validation split")
        result = {"epochs": epochs, "perplexity": perplexity, "data": run.data}
        with strategy.write_path(folder) as path, atomic_folder(path) as whole:
            check_space(whole, 4 * model.count_params() + 2**20)
            model.save_weights(whole / WEIGHTS)
            (whole / RESULT).write_text(json.dumps(result) + "\n")
            write_digests(whole)
    if strategy.is_chief and unfinished.exists():
        remove_folder(unfinished)


def token_perplexity(model: keras.Model, batches: keras.utils.PyDataset, strategy: Strategy) -> float:
    """Return exp of the mean cross-entropy over all tokens, which does not depend on the batches."""
    loss, tokens, parts = 0.0, 0.0, strategy.share(batches)
    for number in range(len(batches)):
        here = batches[number][2].sum()
        loss += float(model.test_on_batch(*parts[number])) * here
        tokens += here
    return math.exp(loss / tokens)
