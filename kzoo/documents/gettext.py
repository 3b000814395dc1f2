"""Catalogues of gettext: the messages without a translation get one, marked as fuzzy."""

import gettext
import importlib.util
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO

from kzoo.documents.document import Content
from kzoo.documents.icu import form_pieces
from kzoo.documents.inline import Piece, Segment, texts
from kzoo.documents.placeholders import has_words
from kzoo.documents.tagged import string_of, tagged_pieces
from kzoo.errors import UserError, first_line

MOST_FORMS = 10  # of a plural; Arabic has 6


def read(path: Path) -> Content:
    """Read a .po."""
    if not importlib.util.find_spec("translate"):
        raise UserError(f"{path} needs translate-toolkit: pip install translate-toolkit")
    from translate.storage import base, pypo

    try:
        store = pypo.pofile.parsestring(path.read_bytes())
    except (base.ParseError, ValueError) as error:
        raise UserError(f"{path}: not a gettext catalogue ({first_line(error):.100})") from None
    if "charset=CHARSET" in store.parseheader().get("Content-Type", ""):  # xgettext's template
        store.updateheader()  # UTF-8

    def write(file: BinaryIO, target: str | None):
        file.write(bytes(store))

    return Content(_segments(store, path), write, (None, store.gettargetlanguage() or None))


def _segments(store, path: Path) -> Iterator[Segment]:
    forms, singular = _plurals(store, path)
    for unit in store.units:
        if not (unit.isheader() or unit.isobsolete() or any(_strings(unit.target))):
            yield from _message(unit, forms, singular)


def _message(unit, forms: int, singular: int | None) -> Iterator[Segment]:
    """Yield the texts of a message: one, or those of its singular and its plural."""
    sources = _strings(unit.source)
    pieces = [form_pieces(tagged_pieces(source)) for source in sources]
    # A document has no segments without words.
    found = {i: source for i, source in enumerate(sources) if not any(map(has_words, texts(pieces[i])))}

    def put(new: list[Piece], number: int):
        found[number] = string_of(new)
        if len(found) < len(sources):
            return
        unit.target = found[0]
        if len(sources) > 1:  # the source's plural stands for all forms but one
            unit.target = [found[0 if form == singular else 1] for form in range(forms)]
        unit.markfuzzy()

    for number, source in enumerate(sources):
        yield Segment(f"message {source!r:.60}", pieces[number], partial(put, number=number))


def _plurals(store, path: Path) -> tuple[int, int | None]:
    """Return the number of forms, and that of the form for one, `None` if it is also that of all others."""
    count, rule = store.getheaderplural()
    try:
        forms, singular = int(count or 2), gettext.c2py(rule or "n != 1")(1)
    except (ValueError, ArithmeticError) as error:
        raise UserError(f"{path}: Plural-Forms in its header: {first_line(error)}") from None
    if not 1 <= forms <= MOST_FORMS:
        raise UserError(f"{path}: Plural-Forms in its header: nplurals is {forms}, not 1 to {MOST_FORMS}")
    return forms, singular if forms > 1 else None


def _strings(text) -> list[str]:
    """Return the forms of a text that may have several, for numbers."""
    return [str(form) for form in getattr(text, "strings", [text])]
