"""`kzoo translate` at work: blocks of lines, or of a document's texts, translated and written one by one."""

import os
import sys
import warnings
from collections.abc import Callable
from typing import BinaryIO

from kzoo.cli.console import progress_bar, telling_when_stopped
from kzoo.cli.streams import MOST, arriving_lines, done_in
from kzoo.errors import UserError

# Lines to translate between writes: an eighth of all, from this number to `MOST`. Large blocks are faster.
FEWEST = 4096


def text_lines(n_best_of: Callable, n_best: int, block: list[str], done: int, **rows) -> str:
    """Return the translations of lines after `done` others, one per line.

    With several per line, each begins with the line's number and its score.
    """
    results = n_best_of(block, **rows)
    if n_best == 1:
        return "".join(f"{hypotheses[0].text}\n" for hypotheses in results)
    return "".join(
        f"{number}\t{hypothesis.score:.4f}\t{hypothesis.text}\n"
        for number, hypotheses in enumerate(results, done + 1)
        for hypothesis in hypotheses
    )


def document_lines(n_best_of: Callable, translator, direction, block: list[str], done: int, **rows) -> str:
    """Return the translations of a document's texts, one per line."""
    from kzoo.documents.translating import translate_texts

    def best_of(texts: list[str]) -> list[str]:
        return [results[0].text for results in n_best_of(texts, **rows)]

    return "".join(f"{best}\n" for best in translate_texts(block, best_of, translator, direction))


def translate_arriving(lines_of: Callable, prefix: list[str] | None):
    """Print the translations of standard input's lines as they arrive; `lines_of` returns a block's."""
    done = 0
    for block in arriving_lines():
        rows = {"prefixes": prefix * len(block)} if prefix else {}
        _print(_translated(lines_of, block, done, "line", **rows))
        done += len(block)


def translate_blocks(
    lines_of: Callable, texts: list[str], rows: dict, text_of, growing, n_best: int, unit: str, shown: bool
):
    """Print the translations of texts, or append them to the file that `growing` yields, which may have some.

    `lines_of` returns a block's lines, `n_best` for each text; `rows` has its other arguments, one for each
    text; `text_of` is the index of each sentence's text, for the progress bar; `unit`, what a text is called.
    """
    from kzoo.text.reading import UnknownCharactersWarning

    done = 0

    def where() -> str:
        resumes = done and written and os.path.isfile(written.name)  # a device is not
        kept = f", kept in {written.name}: the same command resumes" if resumes else ""
        return f"stopped after {done:,} of {len(texts):,} {unit}s{kept}"

    # A stop while the file is packed, too.
    with telling_when_stopped(where), growing as written, warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownCharactersWarning)  # the command names them once
        done = 0 if written is None else done_in(written, n_best)
        size = max(FEWEST, min(MOST, len(texts) // 8))
        with progress_bar("translating", int((text_of >= done).sum()), shown) as advance:
            while done < len(texts):
                block = slice(done, done + size)
                some = {name: given[block] for name, given in rows.items()}
                content = _translated(lines_of, texts[block], done, unit, progress=advance, **some)
                if written is None:
                    _print(content)
                else:
                    written.write(content)
                    written.flush()
                done = min(block.stop, len(texts))


def _translated(lines_of: Callable, block: list[str], done: int, unit: str, **rows) -> bytes:
    """Return the lines of a block after `done` others."""
    try:
        return lines_of(block, done, **rows).encode("utf-8")
    except UserError as error:  # it counts from the block's first line
        if not done:
            raise
        raise UserError(f"in the {unit}s after {unit} {done:,}: {error}") from None


def _print(content: bytes):
    # UTF-8, whatever the locale. Not `typer.echo`, which takes bytes for UTF-16 on Windows.
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def write_document(document, target: str, left: list[str], lines: BinaryIO, file: BinaryIO):
    """Write a document from the lines of its translations; add the places that are left as they were."""
    translations = dict(zip(document.texts, lines.read().decode("utf-8").split("\n"), strict=False))
    left += document.write(file, translations, target)
