"""Electronic books: archives of XHTML."""

import html.entities
import re
from pathlib import Path
from typing import BinaryIO

from kzoo.documents.archive import Archive
from kzoo.documents.document import Content
from kzoo.documents.web import marked_up
from kzoo.documents.xml import parsed

PAGES = r"(?i).+\.(xhtml|html|htm|ncx)"
ENTITY = re.compile(rb"&(\w+);")
OF_XML = {b"amp", b"lt", b"gt", b"quot", b"apos"}


def read(path: Path) -> Content:
    """Read an .epub."""
    archive = Archive(path, PAGES, "META-INF/container.xml")
    pages = {}
    for name, content in archive.parts.items():
        numbered = ENTITY.sub(_numbered, content)
        parsed(numbered, f"{path}: {name}")  # BeautifulSoup would repair what is damaged
        pages[name] = marked_up(numbered, f"{path}: {name}", "xml")
    segments = (
        segment._replace(place=f"{name}, text {segment.place}")
        for name, page in pages.items()
        for segment in page.segments
    )

    def write(file: BinaryIO, target: str | None):
        archive.write(file, {name: page.encode("utf-8") for name, page in pages.items()})

    return Content(segments, write)


def _numbered(match: re.Match) -> bytes:
    """Return HTML's entity as a number, which XML without a DTD knows."""
    point = html.entities.name2codepoint.get(match[1].decode("ascii", "ignore"))
    return match[0] if point is None or match[1] in OF_XML else b"&#%d;" % point
