"""`kzoo train`: trains a recipe's model in a folder, with checkpoints, history and the trained preset."""

import contextlib
import dataclasses
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras

from kzoo.data.wrapped_batches import CountedBatches, TwiceEachRow
from kzoo.errors import UserError
from kzoo.files import remove_unfinished
from kzoo.hub.location import RECIPE_FILE
from kzoo.hub.preset import write_low_scores
from kzoo.text.vocabulary import unknown_line
from kzoo.training.back_translation import back_translate
from kzoo.training.checkpoints import Checkpoints, updates
from kzoo.training.compiling import compile_step, tune_process
from kzoo.training.cooldown import Cooldown, Occasionally
from kzoo.training.corpus import odd_rows_table, record_held_out
from kzoo.training.language_model import train_language_model
from kzoo.training.optimizer import rate_callbacks
from kzoo.training.prepared_run import PreparedRun, Task
from kzoo.training.recipe import Recipe
from kzoo.training.recipe_checks import check_recipe
from kzoo.training.report import HISTORY, Curves, History, RunReport, print_report, write_history
from kzoo.training.resuming import Preemption, fit_from
from kzoo.training.run_folder import claim, lock, record
from kzoo.training.strategies import Strategy, open_strategy
from kzoo.training.tasks import recipe_task


def train(
    recipe: Recipe, folder: str | Path, verbose: str | int = "auto", strategy: str | Strategy = ""
) -> Any:
    """Train a recipe's model, or resume a run that was stopped.

    Writes to the run's folder: `recipe.json`; `subwords.*.model` and other files that the text needs, or the
    preset to fine-tune in `start/`; `held_out.json`, digests of your own validation and test text;
    `trained_rows.bin`, digests of the training text's rows; `reverse/`, the run of the reverse model, and its
    translations; `language_model/`, `checkpoints/`, `history.csv` and `tensorboard/`; and
    finally `preset/`.

    Args:
        recipe: what to train.
        folder: the run's folder. It must not hold a run of another recipe. A resumed run may raise `epochs`
            and change the other `may_differ` keys of `Recipe`, but no others.
        verbose: as in `keras.Model.fit`; `"auto"` is a progress bar on a terminal or in a notebook, elsewhere
            a line per epoch. Unless it is 0, a table at the end reports the speed.
        strategy: where to train, one of `kzoo.training.strategies.STRATEGIES`; by default on
            all processes that the environment names, else on all GPUs, else on one device.

    Returns:
        The `Translator` or `MultilingualTranslator` with its final weights: the mean of the recipe's best
        checkpoints.

    Raises:
        UserError: the corpus, the recipe or the folder cannot be used; another process trains in the folder;
            a loss is not finite; or the disk is full.
        SystemExit: with status 0, on SIGTERM: the run is saved, and resumes when it is started again.
    """
    return train_task(recipe_task, check_recipe(recipe), Path(folder), verbose, strategy)


def train_task(
    task: Callable[[Recipe], Task],
    recipe: Recipe,
    folder: Path,
    verbose: str | int = "auto",
    strategy: str | Strategy = "",
) -> Any:
    """Train what a task of a checked recipe prepares, with back-translations; the rest is as in `train`."""
    began = time.perf_counter()
    tune_process()
    if verbose == "auto":
        verbose = 1 if sys.stdout.isatty() or "ipykernel" in sys.modules else 2
    with open_strategy(strategy) as strategy, Preemption(strategy).listening() as preemption:
        _check_possible(recipe, strategy)
        read = task(recipe)
        with _claimed(folder, recipe, strategy):
            if recipe.monolingual_target:
                read = _with_back_translations(read, folder, preemption, began, verbose)
            return _trained(read, folder, preemption, began, verbose)


@contextlib.contextmanager
def _claimed(folder: Path, recipe: Recipe, strategy: Strategy) -> Iterator[None]:
    """Lock a run's folder during the block, and write the recipe into it."""
    with contextlib.ExitStack() as stack:
        with strategy.shared_errors():
            if strategy.is_chief:
                stack.enter_context(lock(folder))
                claim(folder, recipe)
                remove_unfinished(folder)
        yield


def _with_back_translations(
    task: Task, folder: Path, preemption: Preemption, began: float, verbose: str | int
) -> Task:
    """Return a task with the rows whose sources a reverse model writes, which is trained first."""

    def train_reverse(recipe: Recipe, where: Path) -> Any:
        reverse, now = recipe_task(recipe, task.corpus), time.perf_counter()
        with _claimed(where, recipe, preemption.strategy):
            return _trained(reverse, where, preemption, now, verbose)

    return dataclasses.replace(
        task, further=back_translate(task.recipe, task.corpus, folder, train_reverse, began)
    )


def _trained(task: Task, folder: Path, preemption: Preemption, began: float, verbose: str | int) -> Any:
    """Return the translator of a task, trained in the run's folder and written there."""
    recipe, strategy = task.recipe, preemption.strategy
    prints = verbose and strategy.is_chief
    with strategy.shared_errors():
        if strategy.is_chief:
            task.begin(folder)
    _check_same_run(recipe, folder, strategy)
    keras.utils.set_random_seed(recipe.seed)
    with strategy.scope():
        run = task.prepare(folder)
    strategy.check_same("other data", run.digest)
    if prints:
        if line := unknown_line(run.unknown):
            print(line)
        if recipe.corpus == "files" and recipe.clean and not recipe.shards:
            print(odd_rows_table(recipe, task.corpus))
    checkpoints = Checkpoints(
        folder / "checkpoints",
        keep_best=recipe.average,
        minutes=recipe.checkpoint_minutes,
        data=run.digest,
        strategy=strategy,
    )
    checkpoints.set_model(run.translator)
    with preemption.saving(checkpoints):
        with strategy.scope():
            checkpoints.restore()
        if strategy.is_chief:
            record(folder, recipe)  # keys with `may_differ` may have changed
            record_held_out(folder, recipe, task.corpus)
            if checkpoints.step == 0:
                task.record_rows(folder)
        report = RunReport(CountedBatches(run.batches), checkpoints, began)
        _train_prepared(run, recipe, folder, preemption, report, verbose)
        if recipe.lora:  # so that the best checkpoints are merged, then averaged
            run.translator.backbone.merge_lora()
        _write_preset(run, folder, checkpoints)
        if prints:
            print_report(report)
    return run.translator


def _check_possible(recipe: Recipe, strategy: Strategy):
    if (recipe.accumulate > 1 or recipe.precision == "mixed_float16") and not strategy.accumulates_and_scales:
        raise UserError(
            "under tf.distribute, Keras neither accumulates gradients nor scales float16 losses: "
            "raise tokens, use mixed_bfloat16, or use data_parallel on JAX"
        )
    if recipe.monolingual_target and strategy.workers > 1:
        raise UserError("with monolingual_target, train with one process: it trains two models")
    if recipe.minutes and strategy.workers > 1:
        raise UserError("several processes have several clocks: remove minutes, or train with one process")


def _check_same_run(recipe: Recipe, folder: Path, strategy: Strategy):
    """Raise `UserError` if this worker's recipe or folder is not the chief's."""
    everywhere = dataclasses.replace(recipe, shards="", images="")  # may differ between workers
    strategy.check_same("another recipe", json.dumps(dataclasses.asdict(everywhere)))
    if not (folder / RECIPE_FILE).exists():
        raise UserError(f"{folder} is not the folder that worker 1 uses: give all workers the same folder")


def _train_prepared(
    run: PreparedRun,
    recipe: Recipe,
    folder: Path,
    preemption: Preemption,
    report: RunReport,
    verbose: str | int,
):
    """Train the steps that remain. If none do, the last epoch may still have to be scored."""
    translator, checkpoints, strategy = run.translator, preemption.checkpoints, preemption.strategy
    batches, counted = (strategy.share(some) for some in (run.batches, report.counted))
    if recipe.language_model_epochs and checkpoints.step == 0:
        seeds, epochs = checkpoints.seeds(), recipe.language_model_epochs
        train_language_model(translator, batches, run.validation, epochs, folder, preemption, verbose)
        checkpoints.assign_seeds(seeds)  # as in a resumed run, which does not train the decoder again
    if recipe.consistency:
        batches, counted = TwiceEachRow(batches), TwiceEachRow(counted)
    cooldown, scorer = None, run.scorer
    if recipe.cooldown:
        planned, per_epoch = planned_steps(recipe, len(batches)) * recipe.accumulate, len(batches)
        ends = recipe.minutes, recipe.patience, report.began
        cooldown = Cooldown(checkpoints, recipe.cooldown, planned, per_epoch, *ends)
        with strategy.scope():  # the optimizer may have to be built
            cooldown.resume()
        scorer = Occasionally(scorer)
    history = History(folder / HISTORY, checkpoints, 0 if cooldown else recipe.patience)
    epoch, batch, count = checkpoints.epoch, checkpoints.batch, len(batches)
    if epoch == recipe.epochs:
        return
    done, prints = bool(recipe.steps) and updates(translator) >= recipe.steps, verbose and strategy.is_chief
    cooled = cooldown is not None and cooldown.progress >= 1 and not batch
    if cooled or history.out_of_patience or (done and not batch):
        if prints:
            impatient = checkpoints.impatient_epoch(recipe.patience)
            what = "patience" if impatient else "its cooldown" if cooled else "steps"
            print(f"{what} ended this run after {epoch} epochs")
        return
    compile_step(translator)
    if prints:
        print(f"the loss is in nats per {run.loss_unit}")
    if prints and (advice := too_long_a_warm_up(recipe, count)):
        print(advice)
    callbacks = [
        *rate_callbacks(recipe),
        MostSteps(recipe.steps),
        report,
        # Before scoring: a model with NaN weights cannot translate.
        keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: checkpoints.check_finite()),
        *preemption.scoring(scorer),
        *strategy.same_logs(),
        *([cooldown] if cooldown else ()),
        checkpoints,
        history,
        *([Curves(folder / "tensorboard")] if strategy.is_chief else ()),
        preemption,
    ]
    epochs = recipe.epochs
    if done:
        batch, epochs = count, epoch + 1  # the epoch is only scored
    fit_from(epoch, batch, translator, counted, epochs, callbacks, verbose)


def _write_preset(run: PreparedRun, folder: Path, checkpoints: Checkpoints):
    """Write the trained preset, with the mean of the best checkpoints' weights."""
    translator, strategy = run.translator, checkpoints.strategy
    strategy.barrier()  # for the chief's last checkpoint
    write_history(folder / HISTORY, checkpoints)  # in case the run was killed after its last checkpoint
    checkpoints.load_average_of_best()
    low_scores = run.scorer.low_scores(translator)
    with strategy.write_path(folder / "preset") as preset:
        translator.save_to_preset(preset)
        write_low_scores(preset, low_scores)
    strategy.barrier()


def too_long_a_warm_up(recipe: Recipe, batches: int) -> str:
    """Return advice if training ends within the warm-up, else "". `batches` is the number per epoch."""
    steps = planned_steps(recipe, batches)
    if recipe.optimizer != "noam" or steps >= recipe.warmup_steps:
        return ""
    limit = "steps" if recipe.steps and recipe.steps == steps else "epochs"
    return (
        f"this run ends after {steps:,} steps, within the warm-up of {recipe.warmup_steps:,} steps: "
        f"its learning rate stays low; lower warmup_steps, or raise {limit}"
    )


def planned_steps(recipe: Recipe, batches: int) -> int:
    """Return how many steps a run has unless patience ends it. `batches` is the number per epoch."""
    steps = recipe.epochs * batches // recipe.accumulate
    return min(steps, recipe.steps) if recipe.steps else steps


class MostSteps(keras.callbacks.Callback):
    """Stops training after `steps` weight updates; 0 never stops it."""

    def __init__(self, steps: int):
        super().__init__()
        self.steps, self._left = steps, 0

    def on_train_batch_end(self, batch, logs=None):
        self._left -= 1
        if self.steps and self._left <= 0:  # reading the count at every batch would wait for the device
            self._left = self.steps - updates(self.model)
            self.model.stop_training = self.model.stop_training or self._left <= 0

    def on_epoch_end(self, epoch, logs=None):
        self._left = 0  # count again: a resumed epoch may have no batch left
        self.on_train_batch_end(None)
