"""Writes sentence pairs to shards on disk: tokenized in parallel, distributed at random, in constant memory.

Its processes import only this file and their tokenizers.
"""

import contextlib
import importlib.util
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

import msgspec
import numpy as np

from kzoo.errors import UserError
from kzoo.files import sha256
from kzoo.text.texts import one_line
from kzoo.text.vocabulary import END, UNKNOWN, UnknownCharacters, unknown_characters

PAIRS = 100_000  # per shard
BLOCK = 10_000  # pairs that a process tokenizes at a time
# One pair per record, for random access. Compression does not make records this small smaller.
WRITER = "group_size:1,uncompressed"


@dataclass(frozen=True)
class Encoding:
    """How to tokenize and distribute pairs. It can be pickled, to be sent to other processes."""

    source: Callable[[list[str]], list[list[int]]]  # returns token ids with the end symbol
    target: Callable[[list[str]], list[list[int]]]
    dtype: str  # of the token ids, such as "<u2"
    shards: int  # number of shards
    seed: int  # determines each pair's shard


class ShardFiles(msgspec.Struct):
    """A shard's entry in the index: its ArrayRecord file, the file's size, its pairs, and its lengths."""

    file: str
    bytes: int
    pairs: int
    lengths: str
    lengths_sha256: str


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
                for number, part in enumerate(parts):  # not all open at once: a process may open too few
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
        raise UserError("shards need the package array_record: pip install 'kzoo[streaming]'")


def character_tokens(ids: dict[str, int], texts: list[str]) -> list[list[int]]:
    """Return the ids of each text's characters, followed by the end symbol."""
    return [[*(ids.get(character, UNKNOWN) for character in one_line(text)), END] for text in texts]


def subword_tokens(processor, texts: list[str]) -> list[list[int]]:
    """Return the ids of each text's subwords, followed by the end symbol."""
    return processor.encode([one_line(text) for text in texts], add_eos=True, num_threads=1)


def _blocks(pairs: Iterable[tuple[str, str]], advance: Callable) -> Iterator[tuple[int, list]]:
    """Yield blocks of pairs, each with the number of its first pair."""
    pairs, first = iter(pairs), 0
    while block := list(itertools.islice(pairs, BLOCK)):
        yield first, block
        first += len(block)
        advance(len(block))


def _tokenize(encoding: Encoding, block: tuple[int, list]) -> tuple[list[bytes], list[UnknownCharacters]]:
    """Return each shard's part of a block's tokens, and for both sides the characters that it lacks."""
    first, pairs = block
    random = np.random.default_rng((encoding.seed, first))
    shard_of = (random.permutation(len(pairs)) + first) % encoding.shards
    texts = [list(side) for side in zip(*pairs, strict=True)]
    encoders = encoding.source, encoding.target
    sides = [encode(side) for encode, side in zip(encoders, texts, strict=True)]
    unknown = [unknown_characters(*side) for side in zip(texts, sides, encoders, strict=True)]
    parts = [[] for _ in range(encoding.shards)]
    for shard, source, target in zip(shard_of.tolist(), *sides, strict=True):
        parts[shard] += source
        parts[shard] += target
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
    path, beside = folder / f"{name}.array_record", folder / f"{name}.lengths.npy"
    try:
        writer = ArrayRecordWriter(str(path), WRITER)
        for record in np.split(tokens, stops[1:-1:2]):
            writer.write(record.tobytes())
        writer.close()
    except RuntimeError as error:
        raise OSError(None, str(error).partition(";")[0], str(path)) from None
    np.save(beside, lengths)
    spool.unlink()
    return ShardFiles(path.name, path.stat().st_size, len(lengths), beside.name, sha256(beside))


@contextlib.contextmanager
def _workers(encoding: Encoding, processes: int) -> Iterator[Callable]:
    """Yield a `map` over processes: `each(function, items)` yields `function(encoding, item)` in order.

    It takes only as many items as keep the processes busy.
    """
    if processes == 1:
        yield lambda function, items: (function(encoding, item) for item in items)
        return
    # Not forked, because a backend may have started threads.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, initializer=_start, initargs=(encoding,)) as pool:

        def each(function, items):
            items = iter(items)
            while some := list(itertools.islice(items, 4 * processes)):
                yield from pool.map(_call, itertools.repeat(function), some)

        try:
            yield each
        except BrokenProcessPool:
            raise UserError(
                f"one of the {processes} processes died, perhaps out of memory: use fewer processes"
            ) from None


def _start(encoding: Encoding):
    """Set up a process that leaves Ctrl-C to its parent, and ends if the parent is killed."""
    global _encoding
    _encoding = encoding
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent():
    multiprocessing.parent_process().join()
    os._exit(1)


def _call(function, item):
    return function(_encoding, item)
