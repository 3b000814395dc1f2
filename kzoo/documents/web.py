"""Web pages."""

import codecs
from pathlib import Path
from typing import BinaryIO

from kzoo.documents.document import Content
from kzoo.documents.markup import Markup, beautiful_soup
from kzoo.errors import UserError

BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
# What browsers read under other names (https://encoding.spec.whatwg.org/#names-and-labels): supersets.
SUPERSETS = {
    **dict.fromkeys(("gb2312", "gbk"), "gb18030"),
    **dict.fromkeys(("shift_jis", "shift-jis", "sjis", "x-sjis"), "ms932"),
    **dict.fromkeys(("iso-8859-1", "latin1", "us-ascii", "ascii"), "windows-1252"),
    "utf-16": "utf-8",  # a page that says so in ASCII
}


def read(path: Path) -> Content:
    """Read an .html or .htm."""
    html = path.read_bytes()
    mark, encoding = _encoding(html)
    try:
        page = html[len(mark) :].decode(encoding) if encoding else html
    except LookupError:
        page, encoding = html, None
    except UnicodeError:
        raise UserError(f"{path}: not valid {encoding:.40}, as it says: save it as UTF-8") from None
    if (b"\0" if isinstance(page, bytes) else "\0") in page:
        raise UserError(f"{path}: not a web page: it has bytes that are zero")
    markup = marked_up(page, str(path))
    encoding = encoding or markup.soup.original_encoding or "utf-8"  # BeautifulSoup guesses
    segments = (segment._replace(place=f"text {segment.place}") for segment in markup.segments)

    def write(file: BinaryIO, target: str | None):
        file.write(mark + markup.encode(encoding))

    return Content(segments, write)


def marked_up(html: str | bytes, where: str, parser: str = "html.parser") -> Markup:
    """Return the markup of a page; name it in errors."""
    try:
        return Markup(html, parser)
    except UserError as error:
        raise UserError(f"{where}: {error}") from None


def _encoding(html: bytes) -> tuple[bytes, str | None]:
    """Return a page's byte order mark, and the encoding that it says, if it says one."""
    for mark, encoding in BYTE_ORDER_MARKS.items():
        if html.startswith(mark):
            return mark, encoding
    if not html:
        return b"", "utf-8"  # BeautifulSoup would warn
    declared = beautiful_soup().dammit.EncodingDetector.find_declared_encoding(html, is_html=True)
    return b"", SUPERSETS.get(declared, declared)
