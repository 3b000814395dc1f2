"""The sentences that `kzoo translate` reads, and the file that grows with their translations."""

import contextlib
import hashlib
import io
import os
import queue
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from kzoo.errors import UserError
from kzoo.files import atomic_write, file_lock

MOST = 65_536  # lines that wait to be translated


def sentences_of(text: list[str] | None, file: Path | None) -> list[str]:
    """Return the sentences of a file, of the arguments, or else of standard input."""
    from kzoo.data.text_files import decode_lines, plain_lines, read_lines

    if file is not None:
        from kzoo.data.own_files import is_table
        from kzoo.data.parallel_files import is_parallel_file

        one_column = f"give a file of one column (of tabs: cut -f1 {file})"
        if is_table(file) and not is_parallel_file(file):
            raise UserError(f"{file} is a table, and --input reads text, one sentence per line: {one_column}")
        return list(plain_lines(read_lines(file).sentences, str(file), one_column))
    if text:
        if len(text) == 1 and os.path.isfile(text[0]):  # Path.is_file fails for long sentences
            print(f"{text[0]} is translated as a sentence; --input translates the file", file=sys.stderr)
        arguments = "".join(f"{line}\n" for line in text).encode("utf-8", "surrogateescape")
        return list(decode_lines(io.BytesIO(arguments), "the arguments", any_text=True))
    return list(_input_lines(io.BytesIO(sys.stdin.buffer.read())))


def _input_lines(file: BinaryIO) -> Iterator[str]:
    """Yield the lines of standard input, opened as `file`."""
    from kzoo.data.text_files import decode_lines, plain_lines

    name = "standard input"
    return plain_lines(decode_lines(file, name), name, "give one column, as cut -f1 writes it (of tabs)")


def is_input(output: Path, file: Path | None) -> bool:
    """Return whether the output is the file that is read; `None`: standard input."""
    try:
        read = os.fstat(sys.stdin.fileno()) if file is None else file.stat()
        return output.is_file() and os.path.samestat(read, output.stat())
    except (OSError, ValueError):  # no such file, or no file
        return False


def is_followed() -> bool:
    """Return whether standard input is no file: whoever writes a line may wait for its translation."""
    try:
        return not stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode)
    except (OSError, ValueError):  # replaced by another object, or closed
        return False


def arriving_lines() -> Iterator[list[str]]:
    """Yield the lines of standard input as they arrive: at least one, at most `MOST`.

    Raises:
        UserError: as in `sentences_of`, after the lines before.
    """
    arrived = queue.Queue(MOST)

    def read():
        try:
            # Not `sys.stdin`, whose lock this thread would hold when the program is stopped.
            with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as file:
                for line in _input_lines(file):
                    arrived.put(line)
            arrived.put(None)
        except UserError as error:
            arrived.put(error)

    threading.Thread(target=read, daemon=True).start()
    last = ""
    while isinstance(last, str):
        block = [arrived.get()]
        while len(block) < MOST and not arrived.empty():
            block.append(arrived.get())
        last = block[-1]
        if lines := [line for line in block if isinstance(line, str)]:
            yield lines
    if last is not None:
        raise last


@contextlib.contextmanager
def growing_file(
    path: Path, made_of: str, finish: Callable[[BinaryIO, BinaryIO], object]
) -> Iterator[BinaryIO]:
    """Yield a file to append to. When the block ends without an error, it becomes `path`.

    Until then, it is `NAME.DIGEST.part` next to `path`, and holds what interrupted calls wrote. At the end,
    `finish` writes `path` from it, compressed if `path` ends in `.gz`, `.bz2` or `.xz`, and it is removed. A
    device or a pipe is written directly.

    Args:
        path: the file.
        made_of: text that identifies the contents; a different text starts a new file.
        finish: writes `path`; its arguments are what was appended, and the file to write.

    Raises:
        UserError: another process is writing it, or the disk is full.
    """
    from kzoo.data.text_files import PACKERS

    if path.exists() and not path.is_file():
        with open(path, "wb") as file:
            yield file
        return
    path = path.resolve()
    part = path.with_name(f"{path.name}.{hashlib.sha256(made_of.encode()).hexdigest()[:8]}.part")
    lock = Path(f"{part}.lock")
    with file_lock(part, lock, "is writing it"):
        try:
            try:
                with open(part, "a+b") as file:
                    yield file
            except OSError as error:
                if error.filename:  # a write's error has none
                    raise
                raise UserError(
                    f"{path}: cannot be written ({error.strerror}): make space, and the same command resumes "
                    f"from {part.name}"
                ) from None
            packer = PACKERS.get(path.suffix.lower(), contextlib.nullcontext)
            with (
                atomic_write(path) as whole,
                open(part, "rb") as text,
                open(whole, "wb") as new,
                packer(new) as packed,
            ):
                finish(text, packed)
            part.unlink(missing_ok=True)
        finally:
            if part.exists() and not part.stat().st_size:
                part.unlink()
            with contextlib.suppress(OSError):  # fails on Windows, where releasing the lock removes it
                lock.unlink()  # before it is released: later, it may be another process's


def done_in(written: BinaryIO, n_best: int) -> int:
    """Return the number of translated sentences in a file, after removing any that may be incomplete."""
    if not written.readable():  # a device
        return 0
    written.seek(0)
    done = size = before_last = 0
    last = None
    for line in written:
        if not line.endswith(b"\n"):  # cut off
            break
        sentence = line.split(b"\t", 1)[0]
        if n_best == 1 or sentence != last:
            done, before_last, last = done + 1, size, sentence
        size += len(line)
    if n_best > 1 and done:  # the last sentence may lack translations
        done, size = done - 1, before_last
    written.truncate(size)
    return done
