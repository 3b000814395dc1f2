"""Web pages."""

from pathlib import Path
from typing import BinaryIO

from kzoo.documents.document import Content
from kzoo.documents.markup import Markup
from kzoo.errors import UserError


def read(path: Path) -> Content:
    """Read an .html or .htm."""
    markup = marked_up(path.read_bytes(), str(path))
    segments = (segment._replace(place=f"text {segment.place}") for segment in markup.segments)

    def write(file: BinaryIO, target: str | None):
        file.write(markup.soup.encode(markup.soup.original_encoding or "utf-8"))

    return Content(segments, write)


def marked_up(html: bytes, where: str, parser: str = "html.parser") -> Markup:
    """Return the markup of a page; name it in errors."""
    try:
        return Markup(html, parser)
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
