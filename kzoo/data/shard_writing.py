"""Sentence pairs to shards on disk: tokenized in parallel processes, dealt out at random, in constant memory.

`kzoo.training.preparation` calls it. Its processes import nothing but this file and their tokenizers.
"""

import collections
import contextlib
import hashlib
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

import numpy as np

from kzoo.errors import UserError

PAIRS = 100_000  # of a shard
BLOCK = 10_000  # pairs that a process tokenizes at a time
BUFFER = 16 << 20  # bytes of words in memory before they go to the disk
# A record is a pair, for random access; so few bytes do not get smaller when they are packed.
WRITER = "group_size:1,uncompressed"


@dataclass(frozen=True)
class Encoding:
    """How pairs become words, and words records; goes to the other processes, so it can be pickled.

    Args:
        source: function from a list of sentences to their words, each with the end symbol.
        target: the same for the translations.
        end: int. The end symbol.
        dtype: of the words, such as `"<u2"`.
        shards: int. How many.
        seed: int. Fixes which pair gets into which shard.
    """

    source: Callable[[list[str]], list[list[int]]]
    target: Callable[[list[str]], list[list[int]]]
    end: int
    dtype: str
    shards: int
    seed: int


def write_shards(
    folder: Path,
    pairs: Iterable[tuple[str, str]],
    encoding: Encoding,
    processes: int,
    progress: Callable,
    count: int,
) -> list[dict]:
    """Write the shards of a text into a folder: ArrayRecord files, and the lengths of their sentences.

    A record is a pair: the words of its source, the end symbol, the words of its target, the end symbol. The
    pairs are first dealt out to plain files of words, a shard each, of which the processes then make shards:
    no more than a few blocks and one shard a process are in memory. Shards differ by one pair at most, and do
    not depend on `processes`.

    Args:
        folder: where to.
        pairs: `(source, target)`, their text.
        encoding: how they are tokenized and dealt out.
        processes: int. 1: this one alone.
        progress: as `kzoo.training.prepare` takes it.
        count: int. The pairs.

    Returns:
        A row for each shard, as `kzoo.data.shards` reads it.

    Raises:
        UserError: a process was killed.
        OSError: the disk is full.
    """
    spools = _Spools(folder, encoding.shards)
    with _workers(encoding, processes) as each:
        with progress("tokenizing", count) as advance:
            for parts in each(_tokenize, _blocks(pairs, advance)):
                spools.add(parts)
            spools.flush()
        with progress("writing shards", encoding.shards) as advance:
            rows = []
            for row in each(_write_shard, [(folder, number) for number in range(encoding.shards)]):
                rows.append(row)
                advance(1)
    return rows


def check_installed():
    """Raise `UserError` where the package is missing that shards are written and read with."""
    if importlib.util.find_spec("array_record") is None:
        raise UserError("shards need the package array_record: pip install -e '.[streaming]'")


def character_words(ids: dict[str, int], unknown: int, end: int, texts: list[str]) -> list[list[int]]:
    """Return the numbers of the characters of each text, then the end symbol."""
    return [[*(ids.get(character, unknown) for character in text), end] for text in texts]


def _blocks(pairs: Iterable[tuple[str, str]], advance: Callable) -> Iterator[tuple[int, list]]:
    """Yield the number of the first pair of each block, and the block."""
    pairs, first = iter(pairs), 0
    while block := list(itertools.islice(pairs, BLOCK)):
        yield first, block
        first += len(block)
        advance(len(block))


def _tokenize(encoding: Encoding, block: tuple[int, list]) -> list[bytes]:
    """Return each shard's part of the words of a block."""
    first, pairs = block
    random = np.random.default_rng((encoding.seed, first))
    shard_of = (random.permutation(len(pairs)) + first) % encoding.shards
    sources, targets = zip(*pairs, strict=True)
    sides = encoding.source(list(sources)), encoding.target(list(targets))
    parts = [[] for _ in range(encoding.shards)]
    for shard, source, target in zip(shard_of.tolist(), *sides, strict=True):
        parts[shard] += source
        parts[shard] += target
    return [np.array(part, encoding.dtype).tobytes() for part in parts]


class _Spools:
    """Each shard's words while they are dealt out: in memory until they are too many, then in a file."""

    def __init__(self, folder: Path, shards: int):
        self.files = [_spool(folder, number) for number in range(shards)]
        self.parts, self.size = [bytearray() for _ in self.files], 0

    def add(self, parts: list[bytes]):
        for whole, part in zip(self.parts, parts, strict=True):
            whole += part
            self.size += len(part)
        if self.size > BUFFER:
            self.flush()

    def flush(self):
        for path, part in zip(self.files, self.parts, strict=True):
            with open(
                path, "ab"
            ) as file:  # one at a time: there may be more shards than a process opens files
                file.write(part)
            part.clear()
        self.size = 0


def _spool(folder: Path, number: int) -> Path:
    return folder / f"{number:05d}.words"


def _write_shard(encoding: Encoding, place: tuple[Path, int]) -> dict:
    """Make a shard of its words; return its row for the index."""
    from array_record.python.array_record_module import ArrayRecordWriter

    folder, number = place
    spool = _spool(folder, number)
    words = np.fromfile(spool, encoding.dtype)
    stops = np.flatnonzero(words == encoding.end) + 1
    lengths = np.diff(stops, prepend=0).reshape(-1, 2).astype("<u4")
    name = f"{number:05d}-of-{encoding.shards:05d}"
    path, beside = folder / f"{name}.array_record", folder / f"{name}.lengths.npy"
    try:
        writer = ArrayRecordWriter(str(path), WRITER)
        for record in np.split(words, stops[1:-1:2]):
            writer.write(record.tobytes())
        writer.close()
    except RuntimeError as error:
        raise OSError(None, str(error).partition(";")[0], str(path)) from None
    np.save(beside, lengths)
    spool.unlink()
    return {
        "file": path.name,
        "bytes": path.stat().st_size,
        "pairs": len(lengths),
        "lengths": beside.name,
        "lengths_sha256": hashlib.sha256(beside.read_bytes()).hexdigest(),
    }


@contextlib.contextmanager
def _workers(encoding: Encoding, processes: int) -> Iterator[Callable]:
    """Give a `map` over processes: `each(function, items)` yields `function(encoding, item)` in order.

    Of the items only as many are taken as keep the processes busy.
    """
    if processes == 1:
        yield lambda function, items: (function(encoding, item) for item in items)
        return
    # Spawned: a process that has started a backend's threads must not be forked.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, initializer=_start, initargs=(encoding,)) as pool:

        def each(function, items):
            waiting = collections.deque()
            for item in items:
                waiting.append(pool.submit(_call, function, item))
                if len(waiting) > 2 * processes:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

        try:
            yield each
        except BrokenProcessPool:
            raise UserError(
                f"one of the {processes} processes died, perhaps for want of memory: give fewer processes"
            ) from None


def _start(encoding: Encoding):
    """Make a process ready: Ctrl-C is for the one that started it, and if that is killed, it ends too."""
    global _encoding
    _encoding = encoding
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent():
    multiprocessing.parent_process().join()
    os._exit(1)


def _call(function, item):
    return function(_encoding, item)
