"""Tables in Arrow's formats as units: Parquet, and folders of the library `datasets`.

Both are read a few rows at a time; of Parquet, pages are unpacked whole.
"""

import importlib.util
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kzoo.data.text_files import CHUNK, check_unpacked_size
from kzoo.data.translation_memories import Unit
from kzoo.errors import UserError, unreadable
from kzoo.text.languages import matching_code

NAME_THEM = """name the columns, as in 'columns=["English", "German"]'"""
# In a folder of `datasets`: of one split, or of several in folders of their own.
DATASET, SPLITS = "state.json", "dataset_dict.json"
NESTED = "translation."  # columns of `datasets` that have the texts of a row
ROWS, DECODED = 1000, 2**22  # that are read at a time, and bytes of each column
FEW = 8  # rows that are read at a time of larger columns: long texts may follow short ones


def parquet_units(path: Path, languages: Sequence[str], columns: Sequence, approved: bool) -> Iterator[Unit]:
    """Yield the rows of a Parquet file."""
    pyarrow = _pyarrow(path)
    try:
        metadata = pyarrow.parquet.read_metadata(path)
        groups = list(map(metadata.row_group, range(metadata.num_row_groups)))
        check_unpacked_size(str(path), sum(group.total_byte_size for group in groups), path.stat().st_size)
        paths = [metadata.schema.column(i).path for i in range(metadata.num_columns)]
        flat = metadata.schema.to_arrow_schema().empty_table().flatten().column_names
        # Without lists and structures in structures, whose values have longer paths.
        texts = _text_columns(path, [name for name in flat if name in paths], languages, columns)
        places = [i for i, name in enumerate(paths) if name in texts]
        chunks = [[group.column(i) for i in places] for group in groups]
        # Decoded, a page may be far larger: texts are given once in a dictionary, or by what they share with
        # the text before. So as few rows are read at a time as the longest possible text demands.
        shared = any("DELTA_BYTE_ARRAY" in chunk.encodings for some in chunks for chunk in some)
        options = {"metadata": metadata, "buffer_size": CHUNK, "pre_buffer": False}  # else, pages are kept
        with (
            pyarrow.parquet.ParquetFile(path, **options) as file,
            pyarrow.parquet.ParquetFile(path, read_dictionary=list(texts), **options) as as_dictionary,
        ):
            for number, group in enumerate(groups):
                size = longest = max(chunk.total_uncompressed_size for chunk in chunks[number])
                if not shared and group.num_rows:
                    longest = _longest_in_dictionary(  # the batch is not kept: it may be large
                        next(as_dictionary.iter_batches(1, [number], list(texts)))
                    )
                most = ROWS if size <= DECODED else FEW
                rows = max(1, min(most, DECODED // max(longest, 1)))
                for batch in file.iter_batches(rows, [number], list(texts)):
                    yield from _rows(batch, texts)
    except (OSError, pyarrow.ArrowException) as error:
        raise unreadable(path, error) from None


def dataset_units(path: Path, languages: Sequence[str], columns: Sequence, approved: bool) -> Iterator[Unit]:
    """Yield the rows of a folder that `Dataset.save_to_disk` of the library `datasets` wrote."""
    if not (path / DATASET).is_file():
        splits = ", ".join(sorted(str(file.parent) for file in path.glob(f"*/{DATASET}")))
        raise UserError(f"{path} has splits: name one of them: {splits or 'there is none'}")
    pyarrow = _pyarrow(path)
    try:
        state = json.loads((path / DATASET).read_bytes())
        names = [os.path.basename(file["filename"]) for file in state["_data_files"]]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise UserError(f"{path}: its {DATASET} is not that of a folder of datasets") from None
    try:
        for name in names:
            with pyarrow.memory_map(str(path / name)) as file:
                if any(map(_is_packed, pyarrow.ipc.MessageReader.open_stream(file))):
                    raise UserError(f"{path / name} is packed, which datasets does not do: save it unpacked")
                file.seek(0)
                with pyarrow.ipc.open_stream(file) as stream:
                    known = stream.schema.empty_table().flatten().column_names
                    texts = _text_columns(path, known, languages, columns)
                    for batch in stream:
                        yield from _rows(batch, texts)
    except (OSError, pyarrow.ArrowException) as error:
        raise unreadable(path, error) from None


def _text_columns(
    path: Path, names: Sequence[str], languages: Sequence[str], columns: Sequence
) -> dict[str, str]:
    """Return the names of a table's columns that are texts, and what these are called in a row."""
    called = {name: name if columns else name.removeprefix(NESTED) for name in names}
    meant = {
        name: call if columns else matching_code(call, languages) for name, call in called.items() if call
    }
    for wanted in columns or languages:
        if wanted not in meant.values():
            has = ", ".join(called) or "none of texts"
            hint = "" if columns or not called else f"; {NAME_THEM}"
            raise UserError(f"{path}: has no column {wanted}; it has {has:.200}{hint}")
    texts = {name: called[name] for name, text in meant.items() if text in (columns or languages)}
    for name in texts:
        if names.count(name) > 1:
            raise UserError(f"{path}: has several columns {name}: rename or remove the others")
    return texts


def _flat(batch):
    """Return a batch of Arrow as a table with the fields of structures as columns of their own."""
    import pyarrow

    return pyarrow.Table.from_batches([batch]).flatten()


def _rows(batch, texts: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a batch of Arrow, one by one: together, they may be far larger than the batch."""
    for row in zip(*_flat(batch).select(list(texts)).columns, strict=True):
        yield dict(zip(texts.values(), (text.as_py() for text in row), strict=True))


def _longest_in_dictionary(batch) -> int:
    """Return the bytes of the longest text in the dictionaries of a batch; 0 if there is none."""
    from pyarrow import compute, types

    columns = [column.chunk(0) for column in _flat(batch).columns if types.is_dictionary(column.type)]
    lengths = [compute.max(compute.binary_length(column.dictionary)).as_py() for column in columns]
    return max(filter(None, lengths), default=0)


def _is_packed(message) -> bool:
    """Return whether buffers of Arrow's message are packed; pyarrow does not tell, and unpacks any size.

    It is said in a field of a FlatBuffers table: https://arrow.apache.org/docs/format/Columnar.html.
    """
    content = message.metadata.to_pybytes()

    def number(place: int, size: int) -> int:
        return int.from_bytes(content[place : place + size], "little", signed=size == 4)

    def field(table: int, which: int) -> int:
        """Return the place of a table's field; 0 if it has none."""
        fields = table - number(table, 4)
        offset = number(fields + 4 + 2 * which, 2) if 4 + 2 * which < number(fields, 2) else 0
        return offset and table + offset

    def table_at(place: int) -> int:
        return place + number(place, 4)

    if message.type not in ("record batch", "dictionary"):
        return False
    table = table_at(field(table_at(0), 2))
    if message.type == "dictionary":
        table = table_at(field(table, 1))
    return bool(field(table, 3))


def _pyarrow(path: Path):
    if not importlib.util.find_spec("pyarrow"):
        raise UserError(f"{path} needs pyarrow: pip install pyarrow")
    import pyarrow.parquet

    return pyarrow
