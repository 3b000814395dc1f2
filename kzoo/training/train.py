"""`kzoo train`: a recipe becomes a run: a folder with checkpoints, history and the trained preset."""

import csv
import dataclasses
import importlib.util
import json
import shutil
import time
from pathlib import Path

import keras

from kzoo.data import Batches, Corpus, PairBatches, open_corpus, open_files
from kzoo.errors import UserError
from kzoo.files import whole_file
from kzoo.presets import builder
from kzoo.training.bilingual import BilingualTask
from kzoo.training.checkpoints import Checkpoints
from kzoo.training.multilingual import MultilingualTask
from kzoo.training.optimizers import rate_callbacks
from kzoo.training.recipe import Recipe, make_recipe


def train(recipe: Recipe, folder: str | Path, verbose: str | int = "auto") -> keras.Model:
    """Train a recipe's model, or go on with a run that was stopped.

    The run's folder gets `recipe.json`, `subwords.*.model`, `checkpoints/`, `history.csv`, `tensorboard/`
    and, at the end, `preset/`.

    Args:
        recipe: what to train.
        folder: the run. One that holds a run of another recipe is refused; `epochs` may differ.
        verbose: as in `keras.Model.fit`.

    Returns:
        The translator with its final weights: the mean of the recipe's best checkpoints.

    Raises:
        UserError: what the corpus, the recipe or the folder lacks.
    """
    folder = Path(folder)
    builder(recipe.preset)
    make_task = MultilingualTask if recipe.languages else BilingualTask
    task = make_task(recipe, recipe_corpus(recipe))
    _claim(folder, recipe)
    keras.utils.set_random_seed(recipe.seed)
    translator = task.build(folder)
    batches = task.batches(translator)

    checkpoints = Checkpoints(folder / "checkpoints", keep_best=recipe.average)
    checkpoints.set_model(translator)
    epoch = checkpoints.restore()
    if epoch == 0:
        task.prepare(translator, batches, folder, verbose)
    batches.start_epoch(epoch)
    done = recipe.steps and int(translator.optimizer.iterations) >= recipe.steps
    if not done and not _out_of_patience(checkpoints.history, recipe.patience):
        translator.fit(
            batches,
            epochs=recipe.epochs,
            initial_epoch=epoch,
            shuffle=False,
            verbose=verbose,
            callbacks=[
                *rate_callbacks(recipe),
                MostSteps(recipe.steps),
                Speed(batches),
                task.score(),
                checkpoints,
                History(folder / "history.csv", checkpoints, recipe.patience),
                *_tensorboard(folder / "tensorboard"),
            ],
        )
    checkpoints.load_average_of_best()
    translator.save_to_preset(folder / "preset")
    return translator


def _tensorboard(folder: Path) -> list[keras.callbacks.Callback]:
    """Return Keras's TensorBoard callback, which writes through TensorFlow; none where that is missing."""
    if importlib.util.find_spec("tensorflow") is None:
        print("TensorFlow is not installed: this run has no TensorBoard log, only history.csv")
        return []
    return [keras.callbacks.TensorBoard(folder)]


def recipe_corpus(recipe: Recipe) -> Corpus:
    """Return the corpus that the recipe names."""
    if recipe.corpus != "files":
        corpus = open_corpus(recipe.corpus)
    else:
        splits = {name: getattr(recipe, name) or None for name in ("train", "val", "test")}
        corpus = open_files(**splits, languages=recipe.languages or (recipe.source, recipe.target))
    return corpus.with_images(recipe.images) if recipe.images else corpus


class MostSteps(keras.callbacks.Callback):
    """Stops training after `steps` updates of the weights; 0 never stops it."""

    def __init__(self, steps: int):
        super().__init__()
        self.steps = steps

    def on_train_batch_end(self, batch, logs=None):
        if self.steps and int(self.model.optimizer.iterations) >= self.steps:
            self.model.stop_training = True


class Speed(keras.callbacks.Callback):
    """Logs the seconds of each epoch's training and its target words a second."""

    def __init__(self, batches: Batches | PairBatches):
        super().__init__()
        self.batches = batches

    def on_epoch_begin(self, epoch, logs=None):
        self._start, self._seen = time.perf_counter(), 0

    def on_train_batch_end(self, batch, logs=None):
        self._seen += 1

    def on_epoch_end(self, epoch, logs=None):
        logs["seconds"] = time.perf_counter() - self._start
        words = self.batches.num_words * self._seen / len(self.batches)
        logs["words_per_second"] = words / logs["seconds"]


class History(keras.callbacks.Callback):
    """Writes the history as CSV after each epoch, and stops training when patience is at an end."""

    def __init__(self, path: Path, checkpoints: Checkpoints, patience: int):
        super().__init__()
        self.path, self.checkpoints, self.patience = path, checkpoints, patience

    def on_epoch_end(self, epoch, logs=None):
        history = self.checkpoints.history
        with whole_file(self.path) as path, open(path, "w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(history[0]))
            writer.writeheader()
            writer.writerows(history)
        if _out_of_patience(history, self.patience):
            self.model.stop_training = True


def _out_of_patience(history: list[dict], patience: int) -> bool:
    """Whether the last `patience` epochs brought no better validation BLEU."""
    scores = [row["val_bleu"] for row in history]
    return bool(patience) and len(scores) > patience and max(scores[-patience:]) <= max(scores[:-patience])


def _claim(folder: Path, recipe: Recipe):
    """Write the recipe into the run's folder, or check that it is the one that is there."""
    wanted = dataclasses.asdict(recipe)
    path = folder / "recipe.json"
    if any((folder / "checkpoints").glob("epoch_*")):
        present = dataclasses.asdict(make_recipe(json.loads(path.read_text()), where=str(path)))
        differing = [key for key in wanted if key != "epochs" and present[key] != wanted[key]]
        if differing:
            raise UserError(
                f"{folder} holds a run with another {', '.join(differing)}: "
                "give another folder, or the recipe that the run began with"
            )
    elif not path.exists() or json.loads(path.read_text()) != wanted:
        for stale in (*folder.glob("subwords.*.model"), *folder.glob("characters.json")):
            stale.unlink()
        shutil.rmtree(folder / "language_model", ignore_errors=True)
    with whole_file(path) as file:
        file.write_text(json.dumps(wanted, indent=2) + "\n")
