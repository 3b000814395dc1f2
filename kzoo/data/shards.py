"""Shards on disk: a tokenized corpus of any size, written by `kzoo prepare` and read on demand.

Several processes write them: they tokenize in parallel and distribute pairs at random, in constant memory.
They import only this file and their tokenizers.
"""

import contextlib
import functools
import hashlib
import importlib.util
import io
import itertools
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from kzoo.errors import UserError
from kzoo.files import atomic_write, sha256
from kzoo.text.vocabulary import END, UnknownCharacters, unknown_characters

INDEX, FORMAT = "index.json", 2
READER = "readahead_buffer_size:0,max_parallelism:0"  # for random access
PAIRS = 100_000  # per shard
BLOCK = 10_000  # pairs that a process tokenizes at a time
# One pair per record, for random access. Compression does not shrink records this small.
WRITER = "group_size:1,uncompressed"


class ShardFiles(msgspec.Struct):
    """A shard's entry in the index: its ArrayRecord file, the file's size, its pairs, and its lengths."""

    file: str
    bytes: int
    pairs: int
    lengths: str
    lengths_sha256: str


class Index(msgspec.Struct, omit_defaults=True):
    """The contents of `index.json`."""

    format: int  # its version
    settings: dict[str, Any]  # the recipe's keys and values that the shards depend on
    text: dict[str, Any]  # the corpus, its files and its SHA-256
    pairs: int
    vocabularies: dict[str, str]  # the SHA-256 of each vocabulary file
    dtype: str  # of the token ids
    shards: list[ShardFiles]
    unknown: list[tuple[int, int, str]] = []  # as `Shards.unknown`

    def write(self, folder: Path):
        """Write the index into a folder of shards."""
        (folder / INDEX).write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")


class Shards:
    """A folder of shards that `kzoo prepare` wrote.

    Args:
        folder: the folder.

    Attributes:
        pairs: int. Number of pairs.
        unknown: for both languages, the characters that the vocabularies lack; empty if none.

    Raises:
        UserError: array_record is not installed, the folder has no shards, or a shard has another size than
            in the index.
    """

    def __init__(self, folder: str | os.PathLike):
        check_installed()
        self.folder = Path(os.path.expanduser(folder))
        path = self.folder / INDEX
        if not path.is_file():
            raise UserError(
                f"{folder}: no shards there (no {INDEX}); write them with kzoo prepare RECIPE -o {folder}"
            )
        try:
            self._index = index = msgspec.json.decode(path.read_bytes(), type=Index)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise UserError(f"{path}: not an index of shards, or damaged; run kzoo prepare again") from None
        if index.format != FORMAT:
            raise UserError(
                f"{path}: format {index.format}, this kzoo reads {FORMAT}; run kzoo prepare again"
            )
        languages = index.settings.get("source"), index.settings.get("target")
        unknown = [UnknownCharacters(*side) for side in index.unknown]
        self.pairs, self.unknown = index.pairs, dict(zip(languages, unknown, strict=False))
        for number, row in enumerate(index.shards):
            file = self.path(number)
            size = file.stat().st_size if file.is_file() else 0
            if size != row.bytes:
                raise _damaged(file, f"it has {size:,} bytes instead of {row.bytes:,}")

    def __len__(self) -> int:
        return len(self._index.shards)

    def digest(self) -> str:
        """Return a SHA-256 that identifies the text and the settings."""
        return sha256(self.folder / INDEX)

    def require(self, **settings):
        """Refuse shards that were made for other settings.

        Args:
            **settings: the recipe's keys and values.

        Raises:
            UserError: one of them differs in the index.
        """
        for name, wanted in settings.items():
            found = self._index.settings.get(name)
            if (found or None) != (wanted or None):  # a key may be newer than the index
                raise UserError(
                    f"the shards in {self.folder} have {name} {found!r}, the recipe {wanted!r}: "
                    "prepare them again, or change the recipe"
                )

    def copy_vocabularies(self, folder: Path):
        """Copy the vocabularies into a run's folder, unless it has them.

        Raises:
            UserError: a vocabulary file is damaged or missing.
        """
        for name, digest in self._index.vocabularies.items():
            if Path(name).name != name:  # it would be written outside of the run
                raise _damaged(self.folder / INDEX, f"it names the vocabulary {name!r:.80}")
            if not (folder / name).exists():
                with atomic_write(folder / name) as file:
                    file.write_bytes(self._read(name, digest))

    def path(self, number: int) -> Path:
        """Return the ArrayRecord file of a shard."""
        return self.folder / self._index.shards[number].file

    def lengths(self, number: int) -> np.ndarray:
        """Return the lengths of a shard's pairs in tokens, `(pairs, 2)`, end symbols included.

        Raises:
            UserError: the file is damaged or missing.
        """
        row = self._index.shards[number]
        return np.load(io.BytesIO(self._read(row.lengths, row.lengths_sha256)))

    def open(self, number: int) -> "OpenShard":
        """Return a shard to read from."""
        return OpenShard(self.path(number), self._index.dtype)

    def _read(self, name: str, digest: str) -> bytes:
        path = self.folder / name
        try:
            data = path.read_bytes()
        except OSError as error:
            raise _damaged(path, error.strerror) from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise _damaged(path, "its SHA-256 is not that in the index")
        return data


class OpenShard:
    """A shard's ArrayRecord file opened for reading, also from several threads.

    Raises:
        UserError: the file is damaged; raised here or by `pairs`.
    """

    def __init__(self, path: Path, dtype: str):
        from array_record.python.array_record_module import ArrayRecordReader

        self.path, self.dtype = path, dtype
        try:
            self._reader = ArrayRecordReader(str(path), READER)
        except (RuntimeError, ValueError) as error:
            raise _damaged(path, str(error).partition(";")[0]) from None

    def pairs(self, numbers: np.ndarray) -> tuple[list[list[int]], list[list[int]]]:
        """Return the sources and the targets of pairs by number, without end symbols."""
        try:
            records = self._reader.read(numbers.tolist())
        except RuntimeError as error:
            raise _damaged(self.path, str(error).partition(";")[0]) from None
        sources, targets = [], []
        for record in records:
            tokens = np.frombuffer(record, self.dtype).tolist()
            end = tokens.index(END)
            sources.append(tokens[:end])
            targets.append(tokens[end + 1 : -1])
        return sources, targets


def _damaged(path: Path, reason: str) -> UserError:
    return UserError(f"{path}: damaged ({reason}); run kzoo prepare again")


@dataclass(frozen=True)
class Encoding:
    """How to tokenize and distribute pairs. Picklable, so that it can be sent to other processes."""

    source: Callable[[list[str]], list[list[int]]]  # returns token ids
    target: Callable[[list[str]], list[list[int]]]
    dtype: str  # of the token ids, such as "<u2"
    shards: int  # number of shards
    seed: int  # determines each pair's shard


def write_shards(
    folder: Path,
    pairs: Iterable[tuple[str, str]],
    encoding: Encoding,
    processes: int,
    progress: Callable,
    count: int,
) -> tuple[list[ShardFiles], list[UnknownCharacters]]:
    """Write the shards of a text into a folder: ArrayRecord files, and the lengths of their sentences.

    A record is a pair: the tokens of its source, the end symbol, the tokens of its target, the end symbol.
    First the pairs are distributed to plain files of token ids, one per shard; then the processes convert
    these. Only a few blocks and one shard per process are in memory. Shard sizes differ by at most one pair.
    The shards do not depend on `processes`.

    Args:
        folder: the folder to write to.
        pairs: `(source, target)` texts, `count` in all.
        encoding: how to tokenize and distribute them.
        processes: int. Number of processes; 1: this process alone.
        progress: as in `kzoo.training.prepare`.

    Returns:
        The shards' entries in the index; and for both sides, the characters that the vocabulary lacks.

    Raises:
        UserError: a process was killed.
        OSError: the disk is full.
    """
    unknown = [UnknownCharacters()] * 2
    with _workers(encoding, processes) as each:
        with progress("tokenizing", count) as advance:
            for parts, found in each(_tokenize, _blocks(pairs, advance)):
                for number, part in enumerate(parts):  # not all open at once: open files are limited
                    with _spool(folder, number).open("ab") as file:
                        file.write(part)
                unknown = [before + more for before, more in zip(unknown, found, strict=True)]
        with progress("writing shards", encoding.shards) as advance:
            rows = []
            for row in each(_write_shard, [(folder, number) for number in range(encoding.shards)]):
                rows.append(row)
                advance(1)
    return rows, unknown


def check_installed():
    """Raise `UserError` if the package for shards is missing."""
    if importlib.util.find_spec("array_record") is None:
        raise UserError("shards need the package array_record: pip install array_record")


def _blocks(pairs: Iterable[tuple[str, str]], advance: Callable) -> Iterator[tuple[int, list]]:
    """Yield blocks of pairs, each with the number of its first pair."""
    pairs, first = iter(pairs), 0
    while block := list(itertools.islice(pairs, BLOCK)):
        yield first, block
        first += len(block)
        advance(len(block))


def _tokenize(encoding: Encoding, block: tuple[int, list]) -> tuple[list[bytes], list[UnknownCharacters]]:
    """Return each shard's part of a block's tokens, and for both sides the unknown characters."""
    first, pairs = block
    random = np.random.default_rng((encoding.seed, first))
    shard_of = (random.permutation(len(pairs)) + first) % encoding.shards
    texts = [list(side) for side in zip(*pairs, strict=True)]
    encoders = encoding.source, encoding.target
    sides = [encode(side) for encode, side in zip(encoders, texts, strict=True)]
    unknown = [unknown_characters(*side) for side in zip(texts, sides, encoders, strict=True)]
    parts = [[] for _ in range(encoding.shards)]
    for shard, source, target in zip(shard_of.tolist(), *sides, strict=True):
        parts[shard] += [*source, END, *target, END]
    return [np.array(part, encoding.dtype).tobytes() for part in parts], unknown


def _spool(folder: Path, number: int) -> Path:
    return folder / f"{number:05d}.tokens"


def _write_shard(encoding: Encoding, place: tuple[Path, int]) -> ShardFiles:
    """Write a shard from its tokens and return its entry for the index."""
    from array_record.python.array_record_module import ArrayRecordWriter

    folder, number = place
    spool = _spool(folder, number)
    tokens = np.fromfile(spool, encoding.dtype)
    stops = np.flatnonzero(tokens == END) + 1
    lengths = np.diff(stops, prepend=0).reshape(-1, 2).astype("<u4")
    name = f"{number:05d}-of-{encoding.shards:05d}"
    path, lengths_path = folder / f"{name}.array_record", folder / f"{name}.lengths.npy"
    try:
        writer = ArrayRecordWriter(str(path), WRITER)
        for record in np.split(tokens, stops[1:-1:2]):
            writer.write(record.tobytes())
        writer.close()
    except RuntimeError as error:
        raise OSError(None, str(error).partition(";")[0], str(path)) from None
    array = io.BytesIO()  # if NumPy writes the file, a full disk is "2000 requested and 992 written"
    np.save(array, lengths)
    lengths_path.write_bytes(array.getbuffer())
    spool.unlink()
    return ShardFiles(path.name, path.stat().st_size, len(lengths), lengths_path.name, sha256(lengths_path))


@contextlib.contextmanager
def _workers(encoding: Encoding, processes: int) -> Iterator[Callable]:
    """Yield a `map` over processes: `each(function, items)` yields `function(encoding, item)` in order.

    It consumes only as many items at a time as keep the processes busy.
    """
    if processes == 1:
        yield lambda function, items: (function(encoding, item) for item in items)
        return
    # Not forked, because a backend may have started threads.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, initializer=_start) as pool:

        def each(function, items):
            items, call = iter(items), functools.partial(function, encoding)
            while some := list(itertools.islice(items, 4 * processes)):
                yield from pool.map(call, some)

        try:
            yield each
        except BrokenProcessPool:
            raise UserError(
                f"one of the {processes} processes died, perhaps out of memory: use fewer processes"
            ) from None


def _start():
    """Set up a process that leaves Ctrl-C to its parent, and ends if the parent is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent():
    multiprocessing.parent_process().join()
    os._exit(1)
