"""`kzoo translate` at work: blocks of lines, or of a document's texts, translated and written one by one."""

import os
import shutil
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import BinaryIO

from kzoo.cli.console import telling_when_stopped
from kzoo.cli.streams import MOST, arriving_lines, done_in
from kzoo.errors import UserError
from kzoo.text.languages import Direction

# On CTranslate2, the first block has this many texts for each thread: two batches. Later blocks take about
# this many seconds, which a stop may lose. 4,000 captions then take 3 % more processor time.
FEWEST, SECONDS = 48, 4
# On Keras, each block may have batches in further shapes, which are then compiled, so blocks are larger: of
# lines, at least an eighth of them, from this number to `MOST`; of a document's texts, at least this number,
# as all of a block is lost when stopped. In blocks of 256, a document of 1,000 captions takes 1.3 times the
# processor time on JAX and 1.5 times on TensorFlow; 4,000 captions take 1 % more than in blocks of 500.
LINES_ON_KERAS, TEXTS_ON_KERAS = 4096, 256


class TextLines:
    """Lines of text, translated one by one.

    Args:
        texts: the lines.
        n_best_of: returns the translations of a block of lines, given further arguments for each.
        n_best: int. Number of translations of each line. Of several, each begins with the line's number.

    Attributes:
        unit: what a text is called in messages.
        plain: the texts as the model reads them.
        in_parts: sentences whose placeholders the model changed, and which were translated in parts.
        changed: lines that lost placeholders.
        left: places that were left as they were.
    """

    unit = "line"

    def __init__(self, texts: list[str], n_best_of: Callable[..., list[list]], n_best: int = 1):
        self.texts = self.plain = texts
        self.n_best_of, self.n_best = n_best_of, n_best
        self.in_parts, self.changed, self.left = [], [], []

    def translated(self, block: list[str], done: int, **rows) -> bytes:
        """Return the lines of a block after `done` other texts."""
        try:
            lines = self._lines_of(block, **rows)
        except UserError as error:  # it counts from the block's first line
            if not done:
                raise
            raise UserError(f"in the {self.unit}s after {self.unit} {done:,}: {error}") from None
        return "".join(
            f"{number}\t{line}\n" if self.n_best > 1 else f"{line}\n"
            for number, some in enumerate(lines, done + 1)
            for line in some
        ).encode("utf-8")

    def _lines_of(self, block: list[str], **rows) -> list[list[str]]:
        """Return the translations of each text; of several, each after its score."""
        results = self.n_best_of(block, **rows)
        if self.n_best == 1:
            return [[hypotheses[0].text] for hypotheses in results]
        return [[f"{one.score:.4f}\t{one.text}" for one in hypotheses] for hypotheses in results]

    def write(self, lines: BinaryIO, file: BinaryIO):
        """Write the finished file from the lines of all texts."""
        shutil.copyfileobj(lines, file)


class KeptLines(TextLines):
    """Lines of text, one translation each; those that lose placeholders are translated again.

    Args:
        parts_of: as `n_best_of`, for the sentences and the parts of these lines.
    """

    def __init__(
        self,
        texts: list[str],
        n_best_of: Callable[..., list[list]],
        parts_of: Callable[..., list[list]],
        translator,
        direction: Direction,
    ):
        super().__init__(texts, n_best_of)
        self.parts_of, self.translator, self.direction = parts_of, translator, direction

    def _lines_of(self, block, **rows):
        from kzoo.documents.placeholders import keeps
        from kzoo.documents.translating import keeping_placeholders, run_steps

        def translate(parts: list[str]) -> list[str]:
            return [results[0].text for results in self.parts_of(parts)]

        best = [results[0].text for results in self.n_best_of(block, **rows)]
        steps = keeping_placeholders(block, best, self.direction, self.translator, self.in_parts)
        found = run_steps(steps, translate, self.translator, self.direction)
        kept = (keeps(line, one, numbers=False) for line, one in zip(block, found, strict=True))
        self.changed += [line for line, one in zip(block, kept, strict=True) if not one]
        return [[one] for one in found]


class DocumentLines(TextLines):
    """A document's texts, translated one by one.

    Args:
        skip_long: bool. Whether texts with a sentence that is too long for the model are left as they are.
        unknown: str. As of `TextTranslator.translate`.
    """

    unit = "text"

    def __init__(
        self,
        document,
        n_best_of: Callable[..., list[list]],
        translator,
        direction: Direction,
        skip_long: bool,
        unknown: str,
    ):
        super().__init__(document.texts, n_best_of)
        self.document, self.translator, self.direction = document, translator, direction
        self.plain, self.skip_long, self.unknown = document.plain_texts, skip_long, unknown

    def _lines_of(self, block, **rows):
        from kzoo.documents.translating import translate_texts

        def best_of(texts: list[str]) -> list[str]:
            return [results[0].text for results in self.n_best_of(texts, **rows)]

        others = self.in_parts, self.skip_long, self.unknown
        found = translate_texts(block, best_of, self.translator, self.direction, *others)
        return [[best] for best in found]

    def write(self, lines, file):
        translations = dict(zip(self.texts, lines.read().decode("utf-8").split("\n"), strict=False))
        self.left = self.document.write(file, translations, self.direction[1])


def fewest_texts(translator, unit: str, count: int) -> int:
    """Return the number of texts in a translator's smallest blocks.

    Args:
        translator: of either engine.
        unit: what a text is called, `"line"` or, of documents, `"text"`.
        count: all texts.
    """
    if not translator.runs_on_keras:
        return FEWEST * translator.threads
    return TEXTS_ON_KERAS if unit == "text" else max(LINES_ON_KERAS, min(MOST, count // 8))


def next_size(size: int, seconds: float) -> int:
    """Return the size of the block after one that took some seconds: at most twice as many."""
    return min(MOST, int(size * SECONDS / max(seconds, SECONDS / 2)))


def translate_arriving(
    lines: TextLines, prefix: list[str] | None, tell: Callable[[list[str], list[str] | None], object]
):
    """Print the translations of standard input's lines as they arrive.

    After each block of lines, `tell` is called with it and its prefixes.
    """
    from kzoo.text.reading import UnknownCharactersWarning

    done = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownCharactersWarning)  # `tell` names them
        for block in arriving_lines():
            rows = {"prefixes": prefix * len(block)} if prefix else {}
            _print(lines.translated(block, done, **rows))
            tell(block, rows.get("prefixes"))
            done += len(block)


def translate_blocks(
    lines: TextLines,
    rows: dict,
    growing: AbstractContextManager[BinaryIO | None],
    fewest: int,
    bar: Callable[[int], AbstractContextManager[Callable[[int], object]]],
):
    """Print the translations of lines, or append them to the file that `growing` yields, which may have some.

    `rows` has the further arguments, one for each text; blocks have `fewest` texts or more; `bar` returns the
    progress bar after some texts.
    """
    from kzoo.text.reading import UnknownCharactersWarning

    texts, done = lines.texts, 0

    def where() -> str:
        resumes = done and written and os.path.isfile(written.name)  # a device is not
        kept = f", kept in {written.name}: the same command resumes" if resumes else ""
        return f"stopped after {done:,} of {len(texts):,} {lines.unit}s{kept}"

    # A stop while the file is packed, too.
    with telling_when_stopped(where), growing as written, warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownCharactersWarning)  # the command names them once
        done = 0 if written is None else done_in(written, lines.n_best)
        size = fewest
        with bar(done) as advance:
            while done < len(texts):
                began, block = time.perf_counter(), slice(done, done + size)
                some = {name: given[block] for name, given in rows.items()}
                content = lines.translated(texts[block], done, progress=advance, **some)
                if written is None:
                    _print(content)
                else:
                    written.write(content)
                    written.flush()
                done = min(block.stop, len(texts))
                size = max(fewest, next_size(size, time.perf_counter() - began))


def _print(content: bytes):
    # UTF-8, whatever the locale. Not `typer.echo`, which takes bytes for UTF-16 on Windows.
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()
