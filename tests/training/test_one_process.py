"""A run's folder belongs to one process at a time, and its recipe.json is read or refused in one line."""

import contextlib
import itertools
import os
import subprocess
import sys

import pytest
from message_of import message_of

from kzoo.training import Recipe
from kzoo.training.prepared_run import Task
from kzoo.training.run import train_task
from kzoo.training.run_folder import lock
from kzoo.training.strategies import Strategy

RECIPE = Recipe(preset="pope_tiny", corpus="none", source="en", target="de")
HOLDER = """
import sys
from pathlib import Path
from kzoo.training.run_folder import lock
with lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


class Reached(Exception):
    """The run has claimed its folder and would learn from the corpus now."""


class BegunTask(Task):
    def begin(self, folder):
        raise Reached


def train(recipe, folder, strategy=""):
    return train_task(BegunTask, recipe, folder, 0, strategy)


@contextlib.contextmanager
def held(folder):
    """Give another process that holds the folder."""
    command = [sys.executable, "-c", HOLDER, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        yield holder
        holder.kill()


def test_a_second_process_is_refused_until_the_first_is_killed(tmp_path):
    folder = tmp_path / "run"
    with held(folder) as holder:
        before = {path: path.read_bytes() for path in folder.iterdir()}
        message = message_of(train, RECIPE, folder)
        assert str(folder) in message and str(holder.pid) in message
        assert {path: path.read_bytes() for path in folder.iterdir()} == before
        holder.kill()
        holder.wait()
        with pytest.raises(Reached):
            train(RECIPE, folder)


def test_a_folder_is_held_within_one_process_too(tmp_path):
    with lock(tmp_path / "a"), lock(tmp_path / "b"):
        message = message_of(train, RECIPE, tmp_path / "a")
    assert str(tmp_path / "a") in message and str(os.getpid()) in message
    with lock(tmp_path / "a"):
        pass


def test_only_the_chief_of_several_workers_holds_the_folder(tmp_path):
    def check_same(what, value):
        raise Reached

    worker = Strategy()
    worker.workers, worker.worker, worker.check_same = 2, 1, check_same
    with lock(tmp_path), pytest.raises(Reached):
        train(RECIPE, tmp_path, strategy=worker)


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "run").touch()
    assert "File exists" in message_of(lock(tmp_path / "run").__enter__)


BROKEN = ('{"preset": "pope_tiny", "cor', "", "[]", '"\udcff"')


@pytest.mark.parametrize(("present", "begun"), [*itertools.product(BROKEN, [False, True]), (None, True)])
def test_a_broken_recipe_is_named_in_one_line(present, begun, tmp_path):
    path = tmp_path / "recipe.json"
    if present is not None:
        path.write_bytes(present.encode(errors="surrogateescape"))
    if begun:
        (tmp_path / "checkpoints" / "epoch_0001").mkdir(parents=True)
    assert message_of(train, RECIPE, tmp_path).startswith(f"{path} ")
