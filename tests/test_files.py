"""Files and folders are whole or not there."""

import errno
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from message_of import message_of

from kzoo.data.text_files import read_lines
from kzoo.errors import UserError
from kzoo.files import (
    atomic_folder,
    atomic_write,
    cache_folder,
    cached_folder,
    check_replaceable,
    check_writable,
    read_object,
    remove_unfinished,
    write_json,
)


def full_disk(*_):
    raise OSError(28, "No space left on device")


def test_a_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "new" / "file"
    with atomic_write(path) as file:
        file.write_text("text")
        assert not path.exists()
    assert path.read_text() == "text"
    assert os.listdir(path.parent) == ["file"]


def test_what_others_may_not_read_stays_so(tmp_path):
    file, folder = tmp_path / "file", tmp_path / "folder"
    write_json(file, 1)
    folder.mkdir()
    file.chmod(0o600)
    folder.chmod(0o700)
    write_json(file, 2)
    with atomic_folder(folder):
        pass
    assert [stat.S_IMODE(path.stat().st_mode) for path in (file, folder)] == [0o600, 0o700]


def test_a_failure_leaves_the_earlier_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("earlier")
    with (
        pytest.raises(UserError, match="file: .*space"),
        atomic_write(path) as file,
    ):
        file.write_text("half")
        full_disk()
    assert path.read_text() == "earlier"
    assert os.listdir(tmp_path) == ["file"]


def test_a_folder_replaces_the_earlier_one_or_leaves_it(tmp_path):
    path = tmp_path / "folder"
    for text in ("one", "two"):
        with atomic_folder(path) as folder:
            (folder / text).write_text(text)
        assert os.listdir(path) == [text]
    with pytest.raises(UserError, match="space"), atomic_folder(path) as folder:
        (folder / "three").write_text("half")
        full_disk()
    assert os.listdir(path) == ["two"]
    assert os.listdir(tmp_path) == ["folder"]


def test_what_a_killed_process_left_of_a_folder_is_removed(tmp_path):
    names = ("kzoo-01234567", "kzoo-01234567.earlier", "kzoo-89abcdef", "20240131")
    left, aside, younger, others = (tmp_path / f".folder.{name}" for name in names)
    for path in (left, aside, younger, others, tmp_path / "folder"):
        path.mkdir()
    for path in (left, aside, others):  # the user's own has a date
        os.utime(path, (0, 0))
    with atomic_folder(tmp_path / "folder"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([younger.name, others.name, "folder"])


def test_folders_need_not_be_flushed(tmp_path, monkeypatch):
    def fsync(descriptor, real=os.fsync):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with atomic_folder(tmp_path / "folder") as folder:
        write_json(folder / "file", 1)
    assert (tmp_path / "folder" / "file").read_text() == "1\n"


def test_a_mount_point_is_refused_before_the_work(tmp_path):
    assert "mount" in message_of(check_replaceable, "/", "index.json")
    check_replaceable(tmp_path / "folder", "index.json")


def test_what_a_killed_process_left_of_a_file_is_removed(tmp_path):
    left, younger = tmp_path / ".file.kzoo-01234567", tmp_path / ".file.kzoo-89abcdef"
    for path in (left, younger):
        path.touch()
    os.utime(left, (0, 0))
    write_json(tmp_path / "file", 1)
    assert sorted(os.listdir(tmp_path)) == [younger.name, "file"]


def test_the_users_own_hidden_files_stay(tmp_path):
    (tmp_path / ".notes.earlier").touch()
    remove_unfinished(tmp_path)
    assert os.listdir(tmp_path) == [".notes.earlier"]


def test_a_folder_whose_replacement_fails_gets_its_name_back(tmp_path, monkeypatch):
    path, renames = tmp_path / "folder", iter([os.rename, full_disk, os.rename])
    path.mkdir()
    (path / "one").touch()
    monkeypatch.setattr(os, "rename", lambda *paths: next(renames)(*paths))
    with pytest.raises(UserError, match="space"), atomic_folder(path):
        pass
    assert os.listdir(tmp_path) == ["folder"]
    assert os.listdir(path) == ["one"]


@pytest.mark.parametrize("replaced", [False, True])
def test_a_folder_whose_replacement_was_killed_gets_its_name_back(replaced, tmp_path, monkeypatch):
    """Killed between the two renames, before and after the new folder has the name."""
    path, renames = tmp_path / "folder", [os.rename] * (1 + replaced)
    path.mkdir()
    (path / "one").touch()

    def killed(*paths):
        if renames:
            renames.pop()(*paths)
        if not renames:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", killed)
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
    with pytest.raises(KeyboardInterrupt), atomic_folder(path) as folder:
        (folder / "two").touch()
    monkeypatch.undo()
    remove_unfinished(tmp_path)
    assert [found.name for found in tmp_path.iterdir()] == ["folder"]
    assert os.listdir(path) == ["two" if replaced else "one"]


def test_other_errors_pass_through_and_leave_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError), atomic_folder(tmp_path / "folder"):
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == []


def test_what_cannot_be_written_shows_before_the_work(tmp_path):
    path = tmp_path / "file"
    path.write_text("earlier")
    check_writable(path)
    check_writable(tmp_path / "new" / "other")
    assert path.read_text() == "earlier"
    assert sorted(os.listdir(tmp_path)) == ["file", "new"]
    assert os.listdir(tmp_path / "new") == []
    with pytest.raises(UserError, match="file/below: "):
        check_writable(path / "below")
    with pytest.raises(UserError, match="folder"):
        check_writable(tmp_path)


def test_a_name_that_no_file_can_have_is_one_line(tmp_path):
    for write in (
        check_writable,
        lambda path: write_json(path, 1),
        lambda path: atomic_folder(path).__enter__(),
    ):
        with pytest.raises(UserError, match="written") as error:
            write(tmp_path / ("x" * 300))
        assert "\n" not in str(error.value)


def test_a_file_name_with_a_nul_is_one_line(tmp_path):
    name = tmp_path / "a\0b"
    for use in (
        check_writable,
        lambda path: write_json(path, 1),
        lambda path: atomic_folder(path).__enter__(),
        read_object,
        read_lines,
    ):
        assert "NUL" in message_of(use, name)


def test_a_pipe_is_written_to_as_it_is():
    write = "from kzoo.files import *; check_writable('/dev/stdout')\n"
    write += "with atomic_write('/dev/stdout') as file: file.write_text('through')"
    done = subprocess.run([sys.executable, "-c", write], capture_output=True, text=True, check=True)
    assert done.stdout == "through"


def test_a_folder_with_other_contents_is_not_replaced(tmp_path):
    check_replaceable(tmp_path / "new", "model.bin")
    check_replaceable(tmp_path, "model.bin")  # empty
    (tmp_path / "precious").write_text("keep")
    with pytest.raises(UserError, match=r"\(no model\.bin\)"):
        check_replaceable(tmp_path, "model.bin")
    (tmp_path / "model.bin").write_text("")
    with pytest.raises(UserError, match=r"\(precious\)"):
        check_replaceable(tmp_path, "model.bin", "*.spm")
    check_replaceable(tmp_path, "model.bin", "prec*")
    with (
        pytest.raises(UserError, match="folder"),
        atomic_folder(tmp_path / "precious") as folder,
    ):
        folder.touch()
    assert (tmp_path / "precious").read_text() == "keep"


def test_the_cache_folder(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.delenv("KZOO_CACHE", raising=False)
    assert cache_folder() == Path("/home/me/.cache/kzoo")
    monkeypatch.setenv("KZOO_CACHE", "~/elsewhere")
    assert cache_folder() == Path("/home/me/elsewhere")


def test_a_cache_that_cannot_be_written_says_how_to_choose_another(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("KZOO_CACHE", str(tmp_path / "file" / "cache"))
    assert "set KZOO_CACHE" in message_of(cached_folder, "kind", "key", os.mkdir)
    assert "set KZOO_CACHE" in message_of(write_json, cache_folder() / "corpus", 1)
    assert "KZOO_CACHE" not in message_of(write_json, tmp_path / "file" / "elsewhere", 1)


def test_a_folder_of_the_cache_is_written_once(tmp_path, monkeypatch):
    """Also by processes that need it at the same time; after a failure, by the next."""
    monkeypatch.setenv("KZOO_CACHE", str(tmp_path / "cache"))
    with pytest.raises(OSError, match="space"):  # as `make` raises it
        cached_folder("kind", "key", full_disk)
    code = """
import sys, time
from kzoo.files import cached_folder, atomic_folder
def make(folder):
    with atomic_folder(folder) as unfinished:
        time.sleep(0.5)
        (unfinished / "file").touch()
        print("made", flush=True)
print((cached_folder("kind", "key", make) / "file").is_file())
"""
    runs = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(3)]
    printed = b"".join(run.communicate()[0] for run in runs).decode().split()
    assert sorted(printed) == ["True", "True", "True", "made"]
    assert cached_folder("kind", "key", full_disk) != cached_folder("kind", "other", os.mkdir)
