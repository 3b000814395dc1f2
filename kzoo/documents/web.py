"""Web pages."""

from pathlib import Path
from typing import BinaryIO

from kzoo.documents.document import Content
from kzoo.documents.markup import Markup


def read(path: Path) -> Content:
    """Read an .html or .htm."""
    markup = Markup(path.read_bytes())
    segments = (segment._replace(place=f"text {segment.place}") for segment in markup.segments)

    def write(file: BinaryIO, target: str | None):
        file.write(markup.soup.encode(markup.soup.original_encoding or "utf-8"))

    return Content(segments, write)
