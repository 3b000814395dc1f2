"""Documents over LibreTranslate's API: their limits, and their translations, kept in memory for a while."""

import asyncio
import contextlib
import secrets
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from kzoo.documents.document import DAMAGED, Document, check_is_document
from kzoo.errors import UserError, printable, unreadable
from kzoo.serve.batching import Busy

AT_A_TIME = 4  # documents: unpacked and read, one may take hundreds of megabytes
UNPACKED = 64 * 2**20  # bytes
# Elements and lines. As objects, they take up to a kilobyte each.
MOST_MARKS = 200_000
ARCHIVES, MARKUP = (".docx", ".pptx", ".odt", ".epub"), (".xml", ".xhtml", ".html", ".htm", ".ncx")
KEPT_SECONDS, MOST_KEPT, MOST_BYTES = 600, 64, 256 * 2**20
LONGEST_NAME = 100


class Download(NamedTuple):
    """A translated document; `until` is `time.monotonic`'s."""

    name: str
    content: bytes
    until: float


class Documents:
    """Counts the documents that are being translated, and keeps the translated ones for a while.

    If these become too many, or too large together, the oldest go earlier.

    Args:
        seconds: float. How long they are kept.
    """

    def __init__(self, seconds: float = KEPT_SECONDS):
        self._seconds, self._running = seconds, 0
        self._kept: dict[str, Download] = {}

    @contextlib.contextmanager
    def one(self) -> Iterator[None]:
        """Count a document while it is translated.

        Raises:
            Busy: there are too many.
        """
        if self._running == AT_A_TIME:
            raise Busy(f"{AT_A_TIME} other documents are being translated: try again later")
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1

    def keep(self, name: str, content: bytes) -> str:
        """Keep a document, and return a name for it that nobody can guess."""
        token, until = secrets.token_urlsafe(16), time.monotonic() + self._seconds
        self._kept[token] = Download(name, content, until)
        while (
            len(self._kept) > MOST_KEPT or sum(len(one.content) for one in self._kept.values()) > MOST_BYTES
        ):
            del self._kept[next(iter(self._kept))]
        return token

    def get(self, token: str) -> Download | None:
        """Return a document; `None` if there is none of that name, or no longer."""
        now = time.monotonic()
        self._kept = {token: one for token, one in self._kept.items() if one.until > now}
        return self._kept.get(token)


async def finished(function: Callable, *args):
    """Return `function(*args)`, called in a thread. If the client leaves meanwhile, wait for its end.

    Its memory is in use until then, so its document still counts.
    """
    call = asyncio.create_task(asyncio.to_thread(function, *args))
    try:
        return await asyncio.shield(call)
    finally:
        await asyncio.gather(call, return_exceptions=True)


class Upload:
    """A client's document, in a folder of its own while the block lasts.

    Args:
        name: that the client gave it.
        content: the file.

    Attributes:
        name: as above, without folders.
    """

    def __init__(self, name: str, content: bytes):
        self.name, self._content = PurePosixPath(name.replace("\\", "/")).name[-LONGEST_NAME:], content

    def __enter__(self) -> "Upload":
        with self.naming():
            check_is_document(self.name)
        self._folder = tempfile.TemporaryDirectory(prefix="kzoo_file_")
        self._path = Path(self._folder.name) / f"document{self._suffix}"
        self._path.write_bytes(self._content)
        return self

    def __exit__(self, *_):
        self._folder.cleanup()

    @property
    def _suffix(self) -> str:
        return Path(self.name).suffix.lower()

    def named_for(self, language: str) -> str:
        """Return the name of the translation, as LibreTranslate gives it."""
        return f"{Path(self.name).stem}_{language}{self._suffix}"

    def read(self, longest: int) -> Document:
        """Return the document, whose texts have at most `longest` characters.

        Raises:
            UserError: as `Document`; it is too large, or has too many elements or lines.
        """
        with self.naming():
            marks = sum(content.count(b"<") + content.count(b"\n") for content in self._contents())
            if marks > MOST_MARKS:
                raise UserError(f"{self._path} has over {MOST_MARKS:,} elements and lines: send parts of it")
            return Document(self._path, longest)

    def _contents(self) -> Iterator[bytes]:
        if self._suffix not in ARCHIVES:
            yield self._content
            return
        try:
            with zipfile.ZipFile(self._path) as archive:
                members = archive.infolist()
                if sum(member.file_size for member in members) > UNPACKED:
                    raise UserError(f"{self._path} unpacks to over {UNPACKED:,} bytes: send parts of it")
                for member in members:
                    if member.filename.lower().endswith(MARKUP):
                        yield archive.read(member)
        except DAMAGED as error:
            raise unreadable(self._path, error) from None

    def translated(self, document: Document, translations: dict[str, str], target: str) -> bytes:
        """Return the file of the document with translations."""
        with self.naming():
            file = BytesIO()
            document.write(file, translations, target)
            return file.getvalue()

    @contextlib.contextmanager
    def naming(self) -> Iterator[None]:
        """Name the document in errors as the client does."""
        try:
            yield
        except UserError as error:
            path = str(getattr(self, "_path", self.name))
            raise UserError(printable(str(error).replace(path, self.name))) from None
