"""Treebanks in CoNLL-U format, read as sentences of words with their universal parts of speech."""

import re
from pathlib import Path

from kzoo.data.text_files import read_lines
from kzoo.errors import UserError

COLUMNS = 10
RANGE_OR_EMPTY = re.compile(r"\d+(-|\.)\d+")


def read_conllu(path: str | Path) -> list[list[tuple[str, str]]]:
    """Return the sentences of a CoNLL-U file: each a list of (word, UPOS).

    Lines of multiword tokens and of empty nodes are skipped, since only words are tagged.

    Args:
        path: the file; gzipped if its name ends in `.gz`.

    Raises:
        UserError: the file cannot be read or has no sentence; a line without ten columns, with a number
            out of order, or without word or UPOS. The message names the line.

    Example:

    >>> read_conllu("zh_gsdsimp-ud-dev.conllu.gz")[0][:2]
    [('同样', 'ADV'), ('，', 'PUNCT')]

    Reference:
        https://universaldependencies.org/format.html
    """
    sentences, words = [], []
    text = read_lines(Path(path).expanduser())
    for number, line in enumerate([*text.sentences, ""], 1):
        if line.strip() and not line.startswith("#"):
            words += _word(line, len(words) + 1, f"{text.where}, line {number}")
        elif not line.strip() and words:
            sentences.append(words)
            words = []
    if not sentences:
        raise UserError(f"{text.where}: no sentence in it; a CoNLL-U file has one word per line")
    return sentences


def _word(line: str, expected: int, where: str) -> list[tuple[str, str]]:
    """Return the word of a line, or nothing for a multiword token or an empty node."""
    columns = line.split("\t")
    if len(columns) != COLUMNS:
        raise UserError(f"{where}: {len(columns)} columns instead of {COLUMNS}, separated by tabs")
    identity, form, upos = columns[0], columns[1], columns[3]
    if RANGE_OR_EMPTY.fullmatch(identity):
        return []
    if identity != str(expected):
        raise UserError(f"{where}: the word's number is {identity!r}, {expected} was expected")
    if not form.strip():
        raise UserError(f"{where}: no word ({form!r}) in column 2")
    if upos.strip() in ("", "_"):
        raise UserError(f"{where}: no UPOS ({upos!r}) in column 4")
    return [(form, upos)]
