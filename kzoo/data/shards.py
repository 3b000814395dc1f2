"""Shards on disk: a tokenized corpus of any size, written by `kzoo prepare` and read on demand."""

import hashlib
import io
import os
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from kzoo.data.shard_writing import ShardFiles, check_installed
from kzoo.errors import UserError
from kzoo.files import sha256, whole_file
from kzoo.text.vocabulary import END, UnknownCharacters

INDEX, FORMAT = "index.json", 1
READER = "readahead_buffer_size:0,max_parallelism:0"  # for random access


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
        self.folder = Path(folder).expanduser()
        path = self.folder / INDEX
        if not path.is_file():
            raise UserError(
                f"{folder}: no shards there (no {INDEX}); write them with kzoo prepare RECIPE -o {folder}"
            )
        try:
            self._index = index = msgspec.json.decode(path.read_bytes(), type=Index)
        except msgspec.DecodeError:
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
            if (found := self._index.settings.get(name)) != wanted:
                raise UserError(
                    f"the shards in {self.folder} have {name} {found!r}, the recipe {wanted!r}: "
                    "prepare them again, or change the recipe"
                )

    def copy_vocabularies(self, folder: Path):
        """Copy the vocabularies into a run's folder, unless it has them.

        Raises:
            UserError: a vocabulary file is damaged.
        """
        for name, digest in self._index.vocabularies.items():
            if not (folder / name).exists():
                with whole_file(folder / name) as file:
                    file.write_bytes(self._read(name, digest))

    def path(self, number: int) -> Path:
        """Return the ArrayRecord file of a shard."""
        return self.folder / self._index.shards[number].file

    def lengths(self, number: int) -> np.ndarray:
        """Return the lengths of a shard's pairs in tokens, `(pairs, 2)`, end symbols included.

        Raises:
            UserError: the file is damaged.
        """
        row = self._index.shards[number]
        return np.load(io.BytesIO(self._read(row.lengths, row.lengths_sha256)))

    def open(self, number: int) -> "OpenShard":
        """Return a shard to read from."""
        return OpenShard(self.path(number), self._index.dtype)

    def _read(self, name: str, digest: str) -> bytes:
        path = self.folder / name
        data = path.read_bytes()
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
