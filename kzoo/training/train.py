"""`kzoo train`: turns a recipe into a run: a folder with checkpoints, history and the trained preset."""

import contextlib
import dataclasses
import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import keras

from kzoo.data import Batches, PairBatches, TwiceEachRow
from kzoo.data.unknown_characters import unknown_line
from kzoo.errors import UserError
from kzoo.files import remove_folder, remove_unfinished
from kzoo.presets.shelf import is_builder
from kzoo.training.accounting import Account, CountedBatches, Speed
from kzoo.training.bilingual import BilingualTask
from kzoo.training.checkpoints import Checkpoints, updates
from kzoo.training.curves import curves
from kzoo.training.fitting import fit_from
from kzoo.training.history import History
from kzoo.training.multilingual import MultilingualTask
from kzoo.training.nothing_to_save import nothing_to_save
from kzoo.training.one_process import one_process
from kzoo.training.optimizers import rate_callbacks, too_long_a_warm_up
from kzoo.training.preemption import Interruptible, Preemption
from kzoo.training.recipe import Recipe, check_recipe
from kzoo.training.recipe_corpus import recipe_corpus
from kzoo.training.run_folder import claim, record
from kzoo.training.run_report import RunReport, print_report
from kzoo.training.starting_preset import copy_start
from kzoo.training.strategies import open_strategy
from kzoo.training.strategy import Strategy


def train(
    recipe: Recipe,
    folder: str | Path,
    verbose: str | int = "auto",
    strategy: str | Strategy = "",
) -> Any:
    """Train a recipe's model, or resume a run that was stopped.

    The run's folder gets `recipe.json`, `subwords.*.model` and other files that the text or the images need,
    or the preset that is fine-tuned in `start/`; `checkpoints/`, `history.csv`, `tensorboard/` and, at the
    end, `preset/`.

    Args:
        recipe: what to train.
        folder: the run's folder. If it holds a run of another recipe, this is an error; but `epochs` may be
            raised, and the other keys in `kzoo.training.run_folder.MAY_DIFFER` may differ.
        verbose: as in `keras.Model.fit`; `"auto"` is a progress bar on a terminal or in a notebook, and
            elsewhere a line per epoch. Unless it is 0, a table at the end reports the speed.
        strategy: where to train, one of `kzoo.training.strategies.STRATEGIES`; by default on all GPUs if
            there are any, else on one device.

    Returns:
        The `Translator` or `MultilingualTranslator` with its final weights: the mean of the recipe's best
        checkpoints.

    Raises:
        UserError: the corpus, the recipe or the folder lacks something; another process trains in the folder;
            a loss is not finite; the disk is full.
        SystemExit: with status 0, on SIGTERM: the run is saved, and resumes when it is started again.
    """
    recipe = check_recipe(recipe)
    if verbose == "auto":
        verbose = 1 if sys.stdout.isatty() or "ipykernel" in sys.modules else 2
    with open_strategy(strategy) as opened, nothing_to_save(opened.workers):
        return _train(recipe, Path(folder), verbose, opened)


def _train(recipe: Recipe, folder: Path, verbose: str | int, strategy: Strategy) -> keras.Model:
    if (recipe.accumulate > 1 or recipe.precision == "mixed_float16") and not strategy.clips_and_scales:
        raise UserError(
            "under tf.distribute Keras neither accumulates gradients nor scales float16 losses: "
            "raise tokens, or use mixed_bfloat16, or data_parallel on JAX"
        )
    began = time.perf_counter()
    make_task = MultilingualTask if recipe.languages else BilingualTask
    task = make_task(recipe, recipe_corpus(recipe))
    before = set(folder.iterdir()) if folder.is_dir() else None
    with contextlib.ExitStack() as held:
        strategy.together(lambda: strategy.is_chief and held.enter_context(one_process(folder)))
        try:
            with nothing_to_save(strategy.workers):  # a signal that was lost must not wait for the end
                translator, batches = _made(task, recipe, folder, strategy)
        except UserError:
            if strategy.workers == 1:  # another one may still be reading there
                _remove_new(folder, before)
            raise
        return _run(task, translator, batches, recipe, folder, verbose, strategy, began)


def _made(
    task, recipe: Recipe, folder: Path, strategy: Strategy
) -> tuple[keras.Model, Batches | PairBatches]:
    """Return the model to train and its batches; what it begins with is in the folder, or made there."""
    strategy.together(lambda: strategy.is_chief and _begin(task, recipe, folder))
    strategy.check_same("another recipe", _same_for_all(recipe))
    if not (folder / "recipe.json").exists():
        raise UserError(f"{folder} is not the folder that worker 1 sees: give all workers the same one")
    keras.utils.set_random_seed(recipe.seed)
    with strategy.scope():
        translator = task.build(folder)
    return translator, task.batches(translator)


def _remove_new(folder: Path, before: set[Path] | None):
    """Remove what a refused run has written: what was not in the folder before, or all of a new folder."""
    if before is None:
        remove_folder(folder)
        return
    for path in set(folder.iterdir()) - before:
        if path.is_dir():
            remove_folder(path)
        else:
            path.unlink()


def _begin(task, recipe: Recipe, folder: Path):
    """Make the folder a run of the recipe, with its vocabularies or the preset that it fine-tunes."""
    claim(folder, recipe)
    remove_unfinished(folder)
    if is_builder(recipe.preset):
        task.learn(folder)
    else:
        copy_start(recipe, folder)


def _run(
    task,
    translator: keras.Model,
    batches: Batches | PairBatches,
    recipe: Recipe,
    folder: Path,
    verbose: str | int,
    strategy: Strategy,
    began: float,
) -> keras.Model:
    """Train a task in the folder, from the last checkpoint in it if there is one.

    `began` is the time of `time.perf_counter` at which the run was started.
    """
    with nothing_to_save(strategy.workers):
        shared = strategy.share(batches)
        checkpoints = Checkpoints(
            folder / "checkpoints",
            keep_best=recipe.average,
            keep_last=recipe.checkpoints_kept,
            minutes=recipe.checkpoint_minutes,
            data=_digest(batches, task.validation),
            strategy=strategy,
        )
        checkpoints.set_model(translator)
        strategy.check_same("other data", checkpoints.data)
    if verbose and strategy.is_chief and (line := unknown_line(task.unknown)):
        print(line)
    with Preemption(checkpoints) as preemption:
        with strategy.scope():
            checkpoints.restore()
        if strategy.is_chief:
            record(folder, recipe)  # the keys that may differ may have changed
        account = Account()
        report = RunReport(account, checkpoints, began, strategy.devices)
        if recipe.language_model_epochs and checkpoints.step == 0:
            seeds = checkpoints.seeds()
            task.train_decoder(translator, shared, folder, verbose, preemption)
            checkpoints.assign_seeds(seeds)  # those that a run which finds it trained begins with
        history = History(folder / "history.csv", checkpoints, recipe.patience)
        callbacks = [
            *rate_callbacks(recipe),
            MostSteps(recipe.steps),
            Speed(batches, checkpoints, account),
            # Before scoring: weights that the last step made NaN cannot translate.
            keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: checkpoints.check_finite()),
            Interruptible(task.score(translator), preemption),
            *strategy.same_logs(),
            checkpoints,
            history,
            *(curves(folder / "tensorboard") if strategy.is_chief else ()),
            report,
            preemption,
        ]
        counted = strategy.share(CountedBatches(batches, account))
        if recipe.consistency:
            counted = TwiceEachRow(counted)
        if not history.out_of_patience:
            _fit(recipe, translator, counted, checkpoints, callbacks, verbose)
        strategy.wait()  # for the chief's last checkpoint
        history.write()  # a run may have been killed between its last checkpoint and this
        checkpoints.load_average_of_best()
        with strategy.own_place(folder / "preset") as preset:
            translator.save_to_preset(preset)  # whole or not at all, and beside what stands there
        strategy.wait()
    if verbose and strategy.is_chief:
        print_report(report)
    return translator


def _fit(recipe: Recipe, translator, batches, checkpoints: Checkpoints, callbacks: list, verbose):
    """Train what is left of the recipe."""
    enough = bool(recipe.steps) and updates(translator) >= recipe.steps
    batch = checkpoints.batch and (len(batches) if enough else checkpoints.batch)
    # Even when the last step is done, its epoch may still have to be scored.
    if checkpoints.epoch < recipe.epochs and (batch or not enough):
        if verbose and checkpoints.strategy.is_chief and (advice := too_long_a_warm_up(recipe, len(batches))):
            print(advice)
        fit_from(checkpoints.epoch, batch, translator, batches, recipe.epochs, callbacks, verbose)


def _same_for_all(recipe: Recipe) -> str:
    """Return the values that must be the same on all workers; the paths of shards and images may differ."""
    return json.dumps(dataclasses.asdict(dataclasses.replace(recipe, shards="", images="")))


def _digest(batches: Batches | PairBatches, validation) -> str:
    """Return the SHA-256 of the data that a run trains on and is validated on."""
    return hashlib.sha256(f"{batches.digest()} {json.dumps(validation)}".encode()).hexdigest()


class MostSteps(keras.callbacks.Callback):
    """Stops training after `steps` weight updates; 0 never stops it."""

    def __init__(self, steps: int):
        super().__init__()
        self.steps, self._left = steps, 0

    def on_train_batch_end(self, batch, logs=None):
        self._left -= 1
        if self.steps and self._left <= 0:  # checking sooner would wait for the device
            self._left = self.steps - updates(self.model)
            self.model.stop_training = self.model.stop_training or self._left <= 0

    def on_epoch_end(self, epoch, logs=None):
        self._left = 0  # an epoch that was fully trained when the run was stopped has no batches left
        self.on_train_batch_end(None)
