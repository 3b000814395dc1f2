"""Files that hold a text in several languages: translation memories, OPUS's archives, JSON lines, Parquet.

All are streamed. A row has the text of each language. Languages are matched by code, so `en-GB` is `en`.
"""

import re
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kzoo.data.binary_tables import DATASET, NAME_THEM, SPLITS, dataset_units, parquet_units
from kzoo.data.kinds_of_rows import KindOfRows, lines_of
from kzoo.data.text_files import (
    DAMAGED,
    LONGEST_LINE,
    aligned,
    check_unpacked_size,
    decode_lines,
    open_unpacked,
    unpacked_name,
)
from kzoo.data.translation_memories import LeftOut, Unit, tmx_units, xliff_units
from kzoo.errors import UserError, unreadable
from kzoo.text.languages import matching_code

XLIFF = (".xlf", ".xliff", ".sdlxliff", ".mqxliff")
BLANKS = re.compile(r"[ \t\r\n]+")


def is_parallel_file(path: Path) -> bool:
    """Return whether a path is a file or folder that `parallel_rows` reads, by its name."""
    return _reader(path) is not None


def is_xliff(path: Path) -> bool:
    """Return whether a file is XLIFF, by its name."""
    return unpacked_name(path).endswith(XLIFF)


def has_columns(path: Path) -> bool:
    """Return whether columns of a table can be chosen, by its name: some kinds name the languages."""
    return _reader(path) not in (tmx_units, xliff_units, _moses)


def parallel_rows(
    path: Path, languages: Sequence[str], columns: Sequence[int | str] = (), approved: bool = False
) -> Iterator[list[str]]:
    """Yield the texts of each row in `languages`. At the end, warn of the rows left out, with a table of why.

    Args:
        path: a file or folder as `is_parallel_file` knows it.
        languages: the codes.
        columns: of JSON lines, Parquet and `datasets`: the names of the languages' columns. By default, the
            columns are named after the languages, or are such fields of a column `translation`. Other files
            name the languages themselves.
        approved: bool. Of XLIFF: only translations that are approved.

    Raises:
        UserError: the file cannot be read, is damaged, or not what its name says; it declares entities, or
            unpacks to far more than text would; no row has all languages; a package is missing.
    """
    columns = columns if has_columns(path) else ()
    given = _reader(path)(path, languages, columns, approved)
    codes, kinds, count = {}, {}, 0
    for count, unit in enumerate(given, 1):
        found = unit if isinstance(unit, LeftOut) else _row(unit, languages, columns, codes)
        if not isinstance(found, LeftOut):
            if max(map(len, found)) > LONGEST_LINE:
                raise UserError(
                    f"{path}, row {count}: has over {LONGEST_LINE:,} characters, which is no sentence"
                )
            yield found
        elif kind := kinds.get(found.why):
            kinds[found.why] = kind._replace(count=kind.count + 1)
        else:
            texts = [text for text in found.texts if isinstance(text, str) and text.strip()]
            kinds[found.why] = KindOfRows(found.why, 1, count, texts[: len(languages)])
    left_out = sum(kind.count for kind in kinds.values())
    if left_out == count:
        named = set(languages) <= set(codes.values())  # and what they hold is no text
        seen = "" if named else ", ".join(sorted(filter(None, codes)))
        has = f"it has {seen}" if seen else ", ".join(kinds) or "it is empty"
        wanted = " and ".join(map(str, columns or languages))
        hint = f"; {NAME_THEM}" if seen and has_columns(path) and not columns else ""
        raise UserError(f"{path}: none of its {count:,} rows has {wanted}; {has}{hint}")
    if kinds:
        lines = lines_of(sorted(kinds.values(), key=lambda kind: (-kind.count, kind.what)))
        first = f"{path}: {left_out:,} of {count:,} rows are left out:"
        warnings.warn("\n".join([first, *lines]), stacklevel=2)


def _reader(path: Path) -> Callable[..., Iterator[Unit]] | None:
    name = unpacked_name(path)
    for endings, reader in (
        (".tmx", tmx_units),
        (XLIFF, xliff_units),
        (".zip", _moses),
        ((".jsonl", ".ndjson"), _json_lines),
        (".parquet", parquet_units),
    ):
        if name.endswith(endings):
            return reader
    return dataset_units if any((path / name).is_file() for name in (DATASET, SPLITS)) else None


def _row(unit: dict, languages: Sequence[str], columns: Sequence, codes: dict) -> list[str] | LeftOut:
    """Return a unit's text in each language, on one line; or why it is left out.

    `codes` are the languages of the codes that occurred, and get further ones.
    """
    if columns:
        found = given = {name: unit.get(name) for name in columns}
    else:
        found, names = {}, unit.get("translation")
        given = names if isinstance(names, dict) else unit
        for code, text in given.items():
            if code not in codes:
                codes[code] = matching_code(code, languages) if code else None
            language = codes[code]
            if language and text and (language not in found or code == language):
                found[language] = text
    row = [found.get(name) for name in columns or languages]
    row = [BLANKS.sub(" ", text).strip() if isinstance(text, str) else "" for text in row]
    lacking = [name for name, text in zip(columns or languages, row, strict=True) if not text]
    if lacking:
        return LeftOut(f"without {' and '.join(map(str, lacking))}", list(given.values()))
    return row


def _moses(path: Path, languages: Sequence[str], columns: Sequence, approved: bool) -> Iterator[Unit]:
    """Yield the lines of OPUS's archives in Moses's format: a text file for each language."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = {}
            for member in archive.infolist():
                ending = Path(member.filename).suffix[1:]
                language = matching_code(ending, languages) if ending else None
                if language in members:
                    both = f"{members[language].filename} and {member.filename}"
                    raise UserError(f"{path}: has several texts in {language}: {both}")
                if language:
                    members[language] = member
            if lacking := [language for language in languages if language not in members]:
                has = ", ".join(archive.namelist()[:8]) or "nothing"
                raise UserError(f"{path}: has no file that ends in .{lacking[0]}; it has {has}")
            for member in members.values():
                check_unpacked_size(f"{path}: {member.filename}", member.file_size, member.compress_size)
            names = [f"{path}: {members[language].filename}" for language in languages]
            sides = [
                decode_lines(archive.open(members[language]), name, any_text=True)
                for language, name in zip(languages, names, strict=True)
            ]
            for row in aligned(sides, names):
                yield dict(zip(languages, row, strict=True))
    except (*DAMAGED, zipfile.BadZipFile, RuntimeError) as error:
        raise unreadable(path, error) from None


def _json_lines(path: Path, languages: Sequence[str], columns: Sequence, approved: bool) -> Iterator[Unit]:
    """Yield the objects of a file with one in each line."""
    decoder = msgspec.json.Decoder(dict[str, Any])
    try:
        with open_unpacked(path) as file:
            for number, line in enumerate(decode_lines(file, str(path), any_text=True), 1):
                if line.strip():
                    try:
                        yield decoder.decode(line)
                    except (msgspec.DecodeError, RecursionError) as error:
                        raise UserError(f"{path}, line {number}: not a JSON object ({error})") from None
    except DAMAGED as error:
        raise unreadable(path, error) from None
