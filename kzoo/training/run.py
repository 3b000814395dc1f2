"""`kzoo train`: turns a recipe into a run: a folder with checkpoints, history and the trained preset."""

import contextlib
import dataclasses
import functools
import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import keras

from kzoo.data import TwiceEachRow
from kzoo.data.unknown_characters import unknown_line
from kzoo.errors import UserError
from kzoo.files import remove_folder, remove_unfinished
from kzoo.presets.description import write_low_scores
from kzoo.training.checkpoints import Checkpoints, updates
from kzoo.training.corpus import recipe_corpus
from kzoo.training.distribution import open_strategy
from kzoo.training.preemption import Preemption
from kzoo.training.recipe import Recipe, check_recipe
from kzoo.training.report import CountedBatches, History, RunReport, curves, print_report
from kzoo.training.resuming import fit_from
from kzoo.training.run_folder import RECIPE, claim, one_process, record
from kzoo.training.signals import nothing_to_save
from kzoo.training.strategies import Strategy
from kzoo.training.tasks import OneDirection, SeveralDirections, Task


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
            raised, and the other keys that `Recipe` declares with `may_differ` may differ.
        verbose: as in `keras.Model.fit`; `"auto"` is a progress bar on a terminal or in a notebook, and
            elsewhere a line per epoch. Unless it is 0, a table at the end reports the speed.
        strategy: where to train, one of `kzoo.training.distribution.STRATEGIES`; by default on all GPUs if
            there are any, else on one device.

    Returns:
        The `Translator` or `MultilingualTranslator` with its final weights: the mean of the recipe's best
        checkpoints.

    Raises:
        UserError: the corpus, the recipe or the folder lacks something; another process trains in the folder;
            a loss is not finite; the disk is full.
        SystemExit: with status 0, on SIGTERM: the run is saved, and resumes when it is started again.
    """
    recipe, folder = check_recipe(recipe), Path(folder)
    if verbose == "auto":
        verbose = 1 if sys.stdout.isatty() or "ipykernel" in sys.modules else 2
    with contextlib.ExitStack() as held:
        strategy = held.enter_context(open_strategy(strategy))
        held.enter_context(nothing_to_save(strategy.workers))
        began, told = time.perf_counter(), verbose and strategy.is_chief
        _check_possible(recipe, strategy)
        task = (SeveralDirections if recipe.languages else OneDirection)(recipe, recipe_corpus(recipe))

        # The run's folder, with the vocabularies or the preset to fine-tune; the model and its batches.
        before = set(folder.iterdir()) if folder.is_dir() else None
        strategy.together(lambda: strategy.is_chief and held.enter_context(one_process(folder)))
        try:
            with nothing_to_save(strategy.workers):  # a signal that was lost must not wait for the end
                strategy.together(lambda: strategy.is_chief and _begin(task, recipe, folder))
                strategy.check_same("another recipe", _same_for_all(recipe))
                if not (folder / RECIPE).exists():
                    raise UserError(
                        f"{folder} is not the folder that worker 1 sees: give all workers the same one"
                    )
                keras.utils.set_random_seed(recipe.seed)
                with strategy.scope():
                    translator = task.build(folder)
                batches = task.batches(translator)
        except UserError:
            if strategy.workers == 1:  # another one may still be reading there
                _remove_new(folder, before)
            raise

        # What it has trained already.
        with nothing_to_save(strategy.workers):
            shared = strategy.share(batches)
            data = hashlib.sha256(f"{batches.digest()} {json.dumps(task.validation)}".encode()).hexdigest()
            checkpoints = Checkpoints(
                folder / "checkpoints",
                keep_best=recipe.average,
                keep_last=recipe.checkpoints_kept,
                minutes=recipe.checkpoint_minutes,
                data=data,
                strategy=strategy,
            )
            checkpoints.set_model(translator)
            strategy.check_same("other data", data)
        if told and (line := unknown_line(task.unknown)):
            print(line)
        preemption = held.enter_context(Preemption(checkpoints).listening())
        with strategy.scope():
            checkpoints.restore()
        if strategy.is_chief:
            record(folder, recipe)  # the keys that may differ may have changed
        counted = CountedBatches(batches)
        report = RunReport(counted, checkpoints, began, strategy.devices)
        if recipe.language_model_epochs and checkpoints.step == 0:
            seeds = checkpoints.seeds()
            task.train_decoder(translator, shared, folder, verbose, preemption)
            checkpoints.assign_seeds(seeds)  # those that a run which finds it trained begins with

        # What is left to train. Even when the last step is done, its epoch may still have to be scored.
        history = History(folder / "history.csv", checkpoints, recipe.patience)
        scorer = task.score(translator)
        callbacks = [
            *rate_callbacks(recipe),
            MostSteps(recipe.steps),
            report,
            # Before scoring: weights that the last step made NaN cannot translate.
            keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: checkpoints.check_finite()),
            *preemption.scoring(scorer),
            *strategy.same_logs(),
            checkpoints,
            history,
            *(curves(folder / "tensorboard") if strategy.is_chief else ()),
            preemption,
        ]
        counted = strategy.share(counted)
        if recipe.consistency:
            counted = TwiceEachRow(counted)
        enough = bool(recipe.steps) and updates(translator) >= recipe.steps
        batch = checkpoints.batch and (len(batches) if enough else checkpoints.batch)
        left = checkpoints.epoch < recipe.epochs and (batch or not enough)
        if left and not history.out_of_patience:
            if told and (advice := too_long_a_warm_up(recipe, len(batches))):
                print(advice)
            fit_from(checkpoints.epoch, batch, translator, counted, recipe.epochs, callbacks, verbose)

        # The trained preset: the mean of the best.
        strategy.wait()  # for the chief's last checkpoint
        history.write()  # a run may have been killed between its last checkpoint and this
        checkpoints.load_average_of_best()
        low_scores = scorer.low_scores(translator)
        with strategy.own_place(folder / "preset") as preset:
            translator.save_to_preset(preset)  # whole or not at all, and beside what stands there
            write_low_scores(Path(preset), low_scores)
        strategy.wait()
        if told:
            print_report(report)
    return translator


def _check_possible(recipe: Recipe, strategy: Strategy):
    if (recipe.accumulate > 1 or recipe.precision == "mixed_float16") and not strategy.clips_and_scales:
        raise UserError(
            "under tf.distribute Keras neither accumulates gradients nor scales float16 losses: "
            "raise tokens, or use mixed_bfloat16, or data_parallel on JAX"
        )


def _begin(task: Task, recipe: Recipe, folder: Path):
    """Make the folder a run of the recipe."""
    claim(folder, recipe)
    remove_unfinished(folder)
    task.begin(folder)


def _same_for_all(recipe: Recipe) -> str:
    """Return the values that must be the same on all workers; the paths of shards and images may differ."""
    return json.dumps(dataclasses.asdict(dataclasses.replace(recipe, shards="", images="")))


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


def too_long_a_warm_up(recipe: Recipe, batches: int) -> str:
    """Return a line for the user whose training ends before its rate has reached the peak, else "".

    Args:
        recipe: the recipe.
        batches: int. Batches per epoch.
    """
    updates = recipe.epochs * batches // recipe.accumulate
    if recipe.steps:
        updates = min(updates, recipe.steps)
    if recipe.optimizer != "noam" or updates >= recipe.warmup_steps:
        return ""
    return (
        f"this run has {updates:,} steps, all of them in the warm-up of {recipe.warmup_steps:,}: "
        "its rate stays low; lower warmup_steps, or raise epochs"
    )


def rate_callbacks(recipe: Recipe) -> list[keras.callbacks.Callback]:
    """Return the callback that sets the rate of each epoch, if the recipe halves it."""
    rate = functools.partial(halved_rate, recipe.rate, recipe.halve_after)
    return [keras.callbacks.LearningRateScheduler(rate)] if recipe.halve_after else []


def halved_rate(rate: float, halve_after: int, epoch: int) -> float:
    """Return the rate of an epoch, counted from 0: constant for `halve_after` epochs, then halved each time.

    It is at least 1e-5 (Broscheit et al. 2018, Section 4.2).
    """
    return max(rate * 0.5 ** max(0, epoch + 1 - halve_after), min(rate, 1e-5))


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
