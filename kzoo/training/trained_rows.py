"""The rows that a run was trained on, as digests: scoring a model on some of them says so."""

import itertools
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from kzoo.data.corpora import Corpus
from kzoo.data.held_out import DIGEST, digests
from kzoo.files import atomic_write
from kzoo.training.run_folder import START

ROWS = (
    "trained_rows.bin"  # in a run's folder; among shards; and in `START`, of what that preset was trained on
)
BLOCK = 1 << 20  # digests in memory at a time


def row_digests(first: Iterable[str], second: Iterable[str]) -> np.ndarray:
    """Return a number for each row of two languages; it is the same for both directions."""
    rows = ("\t".join(sorted(map(str.strip, row))) for row in zip(first, second, strict=True))
    return digests(map(str.encode, rows))


def record_rows(path: Path, sides: Sequence[Sequence[str]]):
    """Write the digests of a text's rows, for each two of its languages."""
    with atomic_write(path) as whole, open(whole, "wb") as file:
        for pair in itertools.combinations(sides, 2):
            file.write(row_digests(*pair).tobytes())


def copy_rows(files: Iterable[Path], path: Path):
    """Copy the digests of several files into one."""
    with atomic_write(path) as whole, open(whole, "wb") as copy:
        for file in files:
            with open(file, "rb") as original:
                shutil.copyfileobj(original, copy)


def recorded(path: Path, pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield sentence pairs, and write their digests in constant memory."""
    pairs = iter(pairs)
    with open(path, "wb") as file:
        while block := list(itertools.islice(pairs, BLOCK // 100)):
            file.write(row_digests(*zip(*block, strict=True)).tobytes())
            yield from block


def recorded_in(preset: Path) -> list[Path]:
    """Return the files with the digests of a preset's run, and of the preset that the run began with."""
    if preset.name != "preset":  # not in a run's folder
        return []
    run = preset.parent
    return [file for file in (run / ROWS, run / START / ROWS) if file.is_file()]


def count_trained_rows(
    preset: Path, data: Corpus, split: str, directions: Iterable[tuple[str, str]]
) -> int | None:
    """Return how many rows of a split a preset was trained on.

    A row counts if its two sentences were a row of the training text, in any of the directions.

    Args:
        preset: its folder.
        data: the corpus.
        split: the split's name.
        directions: (source, target) languages.

    Returns:
        The number; `None` if it is unknown, for a preset outside its run.
    """
    if not (files := recorded_in(preset)):
        return None
    wanted = np.stack(
        [
            row_digests(data.sentences(split, source), references)
            for source, target in directions
            for references in (data.sentences(split, target), *data.more_references(split, target))
        ]
    )
    seen = np.zeros(wanted.shape, bool)
    for path in files:
        with open(path, "rb") as file:
            while len(block := np.fromfile(file, DIGEST, BLOCK)):
                seen |= np.isin(wanted, block)
    return int(seen.any(axis=0).sum())
