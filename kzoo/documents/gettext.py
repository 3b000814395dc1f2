"""Catalogues of gettext: the messages without a translation get one, marked as fuzzy."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from kzoo.documents.document import Content
from kzoo.documents.inline import Piece, Segment
from kzoo.documents.tagged import string_of, tagged_pieces
from kzoo.errors import UserError, first_line


def read(path: Path) -> Content:
    """Read a .po."""
    if not importlib.util.find_spec("translate"):
        raise UserError(f"{path} needs translate-toolkit: pip install translate-toolkit")
    from translate.storage import base, pypo

    try:
        store = pypo.pofile.parsestring(path.read_bytes())
    except (base.ParseError, ValueError) as error:
        raise UserError(f"{path}: no catalogue of gettext ({first_line(error)})") from None

    def write(file: BinaryIO, target: str | None):
        file.write(bytes(store))

    return Content(_segments(store), write, (None, store.gettargetlanguage() or None))


def _segments(store) -> Iterator[Segment]:
    forms = int((store.getheaderplural() or ["2"])[0] or 2)
    for unit in store.units:
        if unit.isheader() or unit.isobsolete() or any(_strings(unit.target)):
            continue
        sources, found = _strings(unit.source), {}

        def put(pieces: list[Piece], number: int, unit=unit, sources=sources, found=found):
            found[number] = string_of(pieces)
            if len(found) == len(sources):
                # The last form of the source stands for all others.
                several = [found[min(form, len(found) - 1)] for form in range(forms)]
                unit.target = several if len(sources) > 1 else found[0]
                unit.markfuzzy()

        for number, source in enumerate(sources):
            yield Segment(
                f"message {source!r:.60}",
                tagged_pieces(source),
                lambda pieces, put=put, number=number: put(pieces, number),
            )


def _strings(text) -> list[str]:
    """Return the forms of a text that may have several, for numbers."""
    return [str(form) for form in getattr(text, "strings", [text])]
