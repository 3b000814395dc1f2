"""Compiled programs stay in the cache, within a limit, and where the user wants them."""

import os
import subprocess
import sys

import pytest

from kzoo.cli.compiled_programs import FLAG, keep_compiled_programs, remove_oldest

# Compiles a program, and prints whether it was read from the cache.
PROGRAM = """
from kzoo.cli.compiled_programs import keep_compiled_programs
keep_compiled_programs()
import jax
found = []
jax.monitoring.register_event_listener(lambda name, **_: found.append(name))
print(jax.jit(lambda x: (x @ x).sum())(jax.numpy.ones((4, 4))))
print("/jax/compilation_cache/cache_hits" in found)
"""


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    for name in ("JAX_COMPILATION_CACHE_DIR", "TF_XLA_FLAGS", "KZOO_KEEP_COMPILED"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)  # what is set in the test is removed after it
    monkeypatch.setenv("KZOO_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_both_backends_keep_programs_in_one_folder_of_the_cache(cache):
    keep_compiled_programs()
    (folder,) = (cache / "compiled").iterdir()
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == str(folder)
    assert os.environ["TF_XLA_FLAGS"] == f"{FLAG}={folder}"


def test_the_user_s_own_folders_are_kept(monkeypatch):
    own = {"JAX_COMPILATION_CACHE_DIR": "/own", "TF_XLA_FLAGS": f"--other {FLAG}=/own"}
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    keep_compiled_programs()
    assert {name: os.environ[name] for name in own} == own


def test_other_flags_are_kept(monkeypatch):
    monkeypatch.setenv("TF_XLA_FLAGS", "--other")
    keep_compiled_programs()
    assert os.environ["TF_XLA_FLAGS"].startswith(f"--other {FLAG}=")


def test_it_can_be_turned_off(monkeypatch, cache):
    monkeypatch.setenv("KZOO_KEEP_COMPILED", "0")
    keep_compiled_programs()
    assert "JAX_COMPILATION_CACHE_DIR" not in os.environ and not cache.exists()


def test_without_a_place_to_write_nothing_is_kept(monkeypatch, cache):
    cache.write_text("a file, not a folder")
    keep_compiled_programs()
    assert "JAX_COMPILATION_CACHE_DIR" not in os.environ


def test_the_oldest_programs_beyond_the_limit_are_removed(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    for age, name in enumerate(["one/new", "other/older", "one/oldest"]):
        (tmp_path / name).write_bytes(bytes(100))
        os.utime(tmp_path / name, (10**9 - age, 10**9 - age))
    remove_oldest(tmp_path, limit=250)
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {"new", "older"}


def test_a_second_process_reads_what_the_first_compiled(monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    command = [sys.executable, "-c", PROGRAM]
    found = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert [text.split() for text in found] == [["64.0", "False"], ["64.0", "True"]]
