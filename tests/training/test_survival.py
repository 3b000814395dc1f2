"""A run that is killed, told to stop or short of disk goes on from its last checkpoint, to equal weights."""

import csv
import itertools
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from message_of import message_of

from kzoo.data import Batches
from kzoo.data.wrapped_batches import ResumedBatches
from kzoo.errors import UserError
from kzoo.files import remove_unfinished
from kzoo.training import Recipe
from kzoo.training import checkpoints as checkpoints_module
from kzoo.training.checkpoints import Checkpoints, damage
from kzoo.training.optimizer import make_optimizer
from kzoo.training.prepared_run import PreparedRun, Task, data_digest
from kzoo.training.run import MostSteps, train_task
from kzoo.training.run_folder import saved_in

RECIPE = Recipe(
    preset="pope_tiny", corpus="none", source="en", target="de", warmup_steps=50, epochs=3, average=2
)
BATCHES = 13  # of an epoch
COOLED = replace(RECIPE, optimizer="adam", rate=1e-2, warmup_steps=4000, cooldown=0.5)
OFTEN = 1e-9  # minutes between checkpoints: after every batch


class TinyModel(keras.Model):
    """A model of one embedding, a dropout and an output, which compiles at once."""

    backbone = SimpleNamespace(layers=[])

    def save_to_preset(self, folder):
        folder.mkdir(exist_ok=True)
        np.savez(folder / "weights.npz", *self.get_weights())
        (folder / "metadata.json").write_text("{}")


class Score(keras.callbacks.Callback):
    """A score that is worse after each epoch. It may also act on the model at the end of a step."""

    def __init__(self, step: int = 0, action=None):
        super().__init__()
        self.step, self.action = step, action

    def on_train_batch_end(self, batch, logs=None):
        if self.action and int(self.model.optimizer.iterations) == self.step:
            self.action(self.model)

    def on_epoch_end(self, epoch, logs=None):
        logs["val_bleu"] = -float(sum(np.abs(w).sum() for w in self.model.get_weights()))

    def low_scores(self, model):
        return {}


class TinyTask(Task):
    """A task with that model, random words in two shapes, and that score."""

    make_model, make_batches, validation, images = TinyModel, Batches, ("one", "two"), None

    def __init__(self, recipe, scorer=None, **changes):
        super().__init__(recipe)
        self.scorer = scorer or Score()
        vars(self).update(changes)

    def begin(self, folder):
        pass

    def prepare(self, folder):
        batches = self.batches()
        digest = data_digest(batches, self.validation, self.images)
        return PreparedRun(self.build(), batches, self.scorer, digest)

    def build(self):
        inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in ("source", "target")}
        words = keras.layers.Embedding(50, 16)
        hidden = keras.layers.Dropout(0.3)(words(inputs["source"]) + words(inputs["target"]))
        model = self.make_model(inputs, keras.layers.Dense(50)(hidden))
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        jit = keras.backend.backend() == "jax"
        model.compile(make_optimizer(self.recipe, 16), loss, jit_compile=jit)
        return model

    def batches(self):
        words = np.random.default_rng(7)
        sides = [[words.integers(4, 50, length).tolist() for length in range(3, 15)] * 8 for _ in "st"]
        return self.make_batches(*sides, tokens=100, num_shapes=2, seed=self.recipe.seed)


def train(recipe: Recipe, folder: Path, verbose=0, task=TinyTask, **changes):
    return train_task(partial(task, **changes), recipe, folder, verbose)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "unbroken"
    train(RECIPE, folder)
    return folder


def results(folder: Path) -> tuple[list, list]:
    """Return a run's weights, and its history but for its times."""
    with open(folder / "history.csv") as file:
        rows = [[row[name] for name in ("epoch", "loss", "val_bleu")] for row in csv.DictReader(file)]
    with np.load(folder / "preset" / "weights.npz") as weights:
        return rows, [weights[name].tolist() for name in weights.files]


def checkpoints(folder: Path) -> list[str]:
    return sorted(os.listdir(folder / "checkpoints"))


def signalled(step: int, *signals: int) -> Score:
    """Return a scorer that sends signals to this process at the end of a step."""

    def send(model):
        for number in signals:
            os.kill(os.getpid(), number)

    return Score(step, send)


# Processes that are killed: each is forked from one that has imported everything and computed nothing.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["kzoo.training.run", "kzoo.presets.pope", "keras_hub"])


def in_process(function, *arguments) -> int:
    """Return the exit status of a process that calls a function."""
    process = PROCESSES.Process(target=function, args=arguments)
    process.start()
    process.join(120)
    return process.exitcode


def killed_after(folder: Path, calls: int | None):
    """Train, killed after so many calls of Python's functions since the first batch of this process."""
    batch_end = Checkpoints.on_train_batch_end
    count = itertools.count(1)

    def kill(frame, event, argument):
        if next(count) == calls:
            os.kill(os.getpid(), signal.SIGKILL)

    def armed(checkpoints, batch, logs=None):
        sys.setprofile(kill)
        batch_end(checkpoints, batch, logs)

    Checkpoints.on_train_batch_end = armed
    train(replace(RECIPE, checkpoint_minutes=OFTEN), folder)


def test_a_run_killed_at_ten_random_moments_ends_with_the_same_weights(unbroken, tmp_path):
    moments = random.Random(1)
    for _ in range(10):
        # A batch takes 3,000 calls of functions, and the checkpoint behind it 66,000.
        assert in_process(killed_after, tmp_path, moments.randrange(500_000)) == -signal.SIGKILL
    assert in_process(killed_after, tmp_path, None) == 0
    assert results(tmp_path) == results(unbroken)


def killed_in_writing(folder: Path):
    write_digests = checkpoints_module.write_digests

    def killed(folder):
        if folder.name.startswith(".epoch_0001_batch_000006."):
            os.kill(os.getpid(), signal.SIGKILL)
        write_digests(folder)

    checkpoints_module.write_digests = killed
    train(replace(RECIPE, checkpoint_minutes=OFTEN), folder)


def test_a_half_written_checkpoint_is_left_out_and_removed(unbroken, tmp_path):
    assert in_process(killed_in_writing, tmp_path) == -signal.SIGKILL
    hidden = [path for path in (tmp_path / "checkpoints").glob(".epoch_0001_batch_000006.*") if path.is_dir()]
    written = [sorted(os.listdir(path)) for path in hidden]
    assert written == [["checkpoint.weights.h5", "state.json"]]
    train(RECIPE, tmp_path)
    assert not [name for name in checkpoints(tmp_path) if name.startswith(".")]
    assert results(tmp_path) == results(unbroken)


@pytest.mark.parametrize(("step", "batch"), [(BATCHES + 9, 9), (2 * BATCHES - 1, BATCHES)])
def test_sigterm_saves_and_ends_with_status_0(step, batch, unbroken, tmp_path, capsys):
    """In the middle of an epoch; and with one batch left, after which it has yet to be scored."""
    with pytest.raises(SystemExit) as stopped:
        train(RECIPE, tmp_path, scorer=signalled(step, signal.SIGTERM))
    assert stopped.value.code == 0
    assert "SIGTERM" in capsys.readouterr().out
    assert checkpoints(tmp_path) == ["epoch_0001", f"epoch_0001_batch_{batch:06d}"]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    train(RECIPE, tmp_path, verbose=2)
    assert results(tmp_path) == results(unbroken)
    if batch < BATCHES:
        assert f"Epoch 2/{RECIPE.epochs}" in capsys.readouterr().out


def test_sigterm_before_the_first_step_ends_with_status_0(unbroken, tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        train(RECIPE, tmp_path, build=lambda: os.kill(os.getpid(), signal.SIGTERM))
    assert stopped.value.code == 0
    assert "SIGTERM" in capsys.readouterr().out
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    train(RECIPE, tmp_path)
    assert results(tmp_path) == results(unbroken)


@pytest.mark.parametrize("recipe", [RECIPE, COOLED])
def test_sigterm_while_an_epoch_is_scored(recipe, tmp_path):
    class Signalled(Score):
        def on_epoch_end(self, epoch, logs=None):
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(SystemExit):
        train(recipe, tmp_path / "stopped", scorer=Signalled())
    assert checkpoints(tmp_path / "stopped") == [f"epoch_0000_batch_{BATCHES:06d}"]
    for folder in ("stopped", "unbroken"):
        train(recipe, tmp_path / folder)
    assert results(tmp_path / "stopped") == results(tmp_path / "unbroken")


@pytest.fixture
def interrupt():
    """Restore the action on Ctrl-C, and have Python's own meanwhile: background jobs ignore it."""
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, earlier)


def test_ctrl_c_saves_and_a_second_one_does_not_wait(interrupt, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        train(RECIPE, tmp_path / "once", scorer=signalled(5, signal.SIGINT))
    assert checkpoints(tmp_path / "once") == ["epoch_0000_batch_000005"]
    with pytest.raises(KeyboardInterrupt):
        train(RECIPE, tmp_path / "twice", scorer=signalled(5, signal.SIGINT, signal.SIGINT))
    assert not (tmp_path / "twice" / "checkpoints").exists()


def test_a_background_job_ignores_ctrl_c(interrupt, tmp_path):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    train(RECIPE, tmp_path, scorer=signalled(5, signal.SIGINT))
    assert (tmp_path / "preset").is_dir()


def test_the_last_step_is_scored_when_the_run_goes_on(tmp_path):
    recipe = replace(RECIPE, steps=BATCHES + 5)
    train(recipe, tmp_path / "unbroken")
    stopped_run(tmp_path / "stopped", recipe)
    train(recipe, tmp_path / "stopped")
    assert results(tmp_path / "stopped") == results(tmp_path / "unbroken")
    assert len(results(tmp_path / "stopped")[0]) == 2


def test_patience_counts_the_epochs_before_a_stop(tmp_path):
    """The score is worse after each epoch: with patience for two, the third is the last."""
    recipe = replace(RECIPE, epochs=6, patience=2)
    train(recipe, tmp_path / "unbroken")
    stopped_run(tmp_path / "stopped", recipe)
    train(recipe, tmp_path / "stopped")
    assert results(tmp_path / "stopped") == results(tmp_path / "unbroken")
    assert [row[0] for row in results(tmp_path / "stopped")[0]] == ["1", "2", "3"]


def stopped_run(folder: Path, recipe: Recipe = RECIPE, **changes) -> Path:
    """Return the checkpoints of a run that was stopped in its second epoch."""
    with pytest.raises(SystemExit):
        train(recipe, folder, scorer=signalled(BATCHES + 5, signal.SIGTERM), **changes)
    return folder / "checkpoints"


def test_the_best_and_the_last_three_are_kept(tmp_path):
    """The score is worse after each epoch: the first is the best."""
    train(replace(RECIPE, epochs=6, average=1), tmp_path)
    assert checkpoints(tmp_path) == ["epoch_0001", "epoch_0004", "epoch_0005", "epoch_0006"]


def test_a_damaged_checkpoint_is_reported_and_the_one_before_used(unbroken, tmp_path, capsys):
    saved = stopped_run(tmp_path)
    path = saved / f"epoch_0001_batch_{5:06d}" / "state.json"
    path.write_bytes(path.read_bytes()[:-20] + b"1" + path.read_bytes()[-19:])
    train(RECIPE, tmp_path)
    assert "epoch_0001_batch_000005 is damaged" in capsys.readouterr().out
    assert results(tmp_path) == results(unbroken)
    assert [line for line in os.listdir(saved) if "batch" in line] == []

    for folder in saved.iterdir():
        weights = folder / "checkpoint.weights.h5"
        weights.write_bytes(weights.read_bytes()[:-1])
    before = checkpoints(tmp_path)
    assert "damaged" in message_of(train, RECIPE, tmp_path)
    assert checkpoints(tmp_path) == before


@pytest.mark.parametrize("sums", [b"", b"\xff\0" * 80, b"cut"])
def test_damaged_digests_are_a_damaged_checkpoint(sums, unbroken, tmp_path):
    shutil.copytree(unbroken / "checkpoints" / "epoch_0003", tmp_path / "copy")
    digests = tmp_path / "copy" / "SHA256SUMS"
    assert not damage(tmp_path / "copy")
    digests.write_bytes(digests.read_bytes()[:90] if sums == b"cut" else sums)
    assert "SHA256SUMS" in damage(tmp_path / "copy")


@pytest.mark.parametrize("fails", ["its digest", "its weights"])
def test_a_checkpoint_that_cannot_be_read_now_is_kept(fails, unbroken, tmp_path, monkeypatch):
    """As when a network's disk fails for a moment: the checkpoint itself is whole."""
    saved = stopped_run(tmp_path)
    before = checkpoints(tmp_path)

    def read(path, *_, **__):
        raise OSError(5, "Input/output error", str(path))

    class Unreadable(TinyModel):
        load_weights = staticmethod(read)

    model = Unreadable if fails == "its weights" else TinyModel
    with monkeypatch.context() as patch, pytest.raises((OSError, UserError), match="Input/output error"):
        if fails == "its digest":
            patch.setattr(checkpoints_module, "sha256", read)
        train(RECIPE, tmp_path, make_model=model)
    assert checkpoints(tmp_path) == before
    assert (saved / before[-1] / "SHA256SUMS").exists()
    train(RECIPE, tmp_path)
    assert results(tmp_path) == results(unbroken)


def test_a_damaged_best_checkpoint_is_left_out_of_the_mean(unbroken, tmp_path, capsys):
    shutil.copytree(unbroken, tmp_path / "run")
    best = json.loads((unbroken / "checkpoints" / "epoch_0003" / "state.json").read_text())["history"]
    worst_kept, damaged = sorted(best, key=lambda row: row["val_bleu"])[1:]
    folder = tmp_path / "run" / "checkpoints"
    (folder / f"epoch_{damaged['epoch']:04d}" / "checkpoint.weights.h5").unlink()
    translator = train(RECIPE, tmp_path / "run")
    assert "checkpoint.weights.h5" in capsys.readouterr().out
    expected = TinyTask(RECIPE).build()
    expected.load_weights(folder / f"epoch_{worst_kept['epoch']:04d}" / "checkpoint.weights.h5")
    for ours, theirs in zip(translator.get_weights(), expected.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("seed", [RECIPE.seed, 7])
def test_a_trained_preset_without_its_checkpoints_is_not_overwritten(seed, unbroken, tmp_path):
    shutil.copytree(unbroken, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    (tmp_path / "run" / "checkpoints" / "epoch_old").mkdir(parents=True)  # the user's own
    wrong = replace(RECIPE, seed=seed)
    assert "checkpoints" in message_of(train, wrong, tmp_path / "run")
    assert results(tmp_path / "run") == results(unbroken)


def test_steps_are_counted_without_looking_at_each():
    class Optimizer:
        done, looked = 40, 0

        @property
        def iterations(self):
            self.looked += 1
            return self.done

    callback, optimizer = MostSteps(100), Optimizer()
    model = SimpleNamespace(optimizer=optimizer, stop_training=False)
    callback.set_model(model)
    for batch in range(200):
        optimizer.done += batch % 2  # every other batch changes the weights
        callback.on_train_batch_end(batch)
        if model.stop_training:
            break
    assert optimizer.done == 100
    assert optimizer.looked < 10


def test_changed_data_is_refused_and_nothing_written(tmp_path):
    stopped_run(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    longer, changed = replace(RECIPE, epochs=RECIPE.epochs + 1), ("one", "three")
    assert "changed" in message_of(train, longer, tmp_path, validation=changed)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_changed_validation_pictures_are_refused(tmp_path):
    stopped_run(tmp_path, images=np.zeros((2, 3)))
    assert "changed" in message_of(train, RECIPE, tmp_path, images=np.ones((2, 3)))


def test_batches_are_counted_on_where_several_make_an_update(tmp_path):
    recipe = replace(RECIPE, accumulate=2)
    with pytest.raises(SystemExit):
        train(recipe, tmp_path, scorer=signalled(2, signal.SIGTERM))
    (saved,) = (tmp_path / "checkpoints").iterdir()
    data = json.loads((saved / "state.json").read_text())["data"]
    restored = Checkpoints(tmp_path / "checkpoints", data=data)
    restored.set_model(TinyTask(recipe).build())
    restored.restore()
    assert (restored.epoch, restored.batch, restored.step) == (0, 4, 4)


def test_the_latest_checkpoint_is_known_by_its_numbers(tmp_path):
    for name in ("epoch_0001", "epoch_0001_batch_999999", "epoch_0001_batch_1000000", "epoch_0000"):
        (tmp_path / name).mkdir()
    latest = (1, 1_000_000, tmp_path / "epoch_0001_batch_1000000")
    assert saved_in(tmp_path)[-1] == latest


def test_the_space_that_a_checkpoint_needs_is_known_before(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(checkpoints_module, "check_space", lambda folder, size: asked.append(size))
    saving = Checkpoints(tmp_path)
    saving.set_model(keras.Sequential([keras.Input((256,)), keras.layers.Dense(1024)]))
    saving.model.compile("adam", "mse")
    saving.model.optimizer.build(saving.model.trainable_variables)
    saving.save()
    needed = sum(path.stat().st_size for path in (tmp_path / "epoch_0000").iterdir())
    assert needed <= asked[0] < 1.2 * needed


def test_the_digest_is_that_of_words_and_sides():
    digests = {
        Batches(*sides).digest()
        for sides in ([[[4], [5, 6]], [[7], [8]]], [[[4, 5], [6]], [[7], [8]]], [[[7], [8]], [[4], [5, 6]]])
    }
    assert len(digests) == 3
    assert Batches([[4]], [[5]]).digest() != Batches([[4]], [[6]]).digest()
    pictures = [Batches([[4]] * 2, [[5]] * 2, images=np.full((2, 3), value)).digest() for value in (1, 2)]
    assert pictures[0] != pictures[1]


class NotANumber(Batches):
    """A batch of the second epoch has a weight that is not a number."""

    def __getitem__(self, index):
        inputs, labels, weights = super().__getitem__(index)
        return inputs, labels, weights * (np.nan if (self.epoch, index) == (2, 8) else 1)


def test_a_loss_that_is_not_a_number_stops_the_run(tmp_path, capsys):
    step = BATCHES + 9
    message = message_of(train, RECIPE, tmp_path, make_batches=NotANumber)
    assert f"{step} (epoch 2, batch 9)" in message and "epoch_0001 " in message
    assert checkpoints(tmp_path) == ["epoch_0001"]
    often = replace(RECIPE, checkpoint_minutes=OFTEN)
    for again in (often, RECIPE):  # which goes on at the spoiled batch
        message = message_of(train, again, tmp_path, verbose=1, make_batches=NotANumber)
        assert f"step {step} " in message and "epoch_0001_batch_000008" in message
    assert capsys.readouterr().out.endswith("\n")  # the error has a line of its own
    model = TinyTask(RECIPE).build()
    model.load_weights(tmp_path / "checkpoints" / "epoch_0001_batch_000008" / "checkpoint.weights.h5")
    assert all(np.isfinite(weight).all() for weight in model.get_weights())


def test_a_weight_that_is_not_a_number_is_not_saved(tmp_path):
    """Its loss would be so in the next step only."""

    def spoil(model):
        weight = model.trainable_variables[0]
        weight.assign(weight + np.inf)
        os.kill(os.getpid(), signal.SIGTERM)

    message = message_of(train, RECIPE, tmp_path, scorer=Score(BATCHES + 5, spoil))
    assert f" step {BATCHES + 5} " in message
    assert checkpoints(tmp_path) == ["epoch_0001"]


def test_weights_that_the_last_step_spoils_are_not_scored(tmp_path):
    """The epoch's loss is finite; the search would find no translation."""

    class Spoils(Score):
        def on_epoch_end(self, epoch, logs=None):
            pytest.fail("scored")

    def spoil(model):
        weight = model.trainable_variables[0]
        weight.assign(weight + np.nan)

    message = message_of(train, RECIPE, tmp_path, scorer=Spoils(BATCHES, spoil))
    assert f" step {BATCHES} " in message


def full_disk(folder: Path):
    """Train with a disk where no file grows over 100 bytes when it saves after the second epoch."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    epoch_end = Checkpoints.on_epoch_end

    def filled(callback, epoch, logs=None):
        if epoch == 1:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
        epoch_end(callback, epoch, logs)

    Checkpoints.on_epoch_end = filled
    try:
        train(RECIPE, folder)
    except UserError as error:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        (folder / "error").write_text(str(error))


def test_a_full_disk_stops_the_run_and_leaves_the_last_checkpoint(tmp_path):
    in_process(full_disk, tmp_path)
    assert (tmp_path / "error").read_text().endswith("/epoch_0002: cannot be written (File too large)")
    assert checkpoints(tmp_path) == ["epoch_0001"]
    assert not damage(tmp_path / "checkpoints" / "epoch_0001")


def test_the_rest_of_an_epoch_has_the_shapes_of_the_whole():
    batches = TinyTask(RECIPE).batches()
    assert len(batches) == BATCHES
    rest = ResumedBatches(batches)
    rest.first = 6
    assert len(rest) == BATCHES - 6
    shapes = [rest[i][1].shape for i in range(2)]
    assert shapes[0][0] != shapes[1][0] and shapes[0][1] != shapes[1][1]
    rest.on_epoch_begin()
    np.testing.assert_array_equal(rest[3][1], batches[9][1])


def test_what_a_killed_write_left_is_removed(tmp_path):
    for name in (".a.kzoo-0123abcd", ".notes", "c"):
        (tmp_path / name).mkdir()
    (tmp_path / ".file.kzoo-89abcdef").touch()
    remove_unfinished(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".notes", "c"]
