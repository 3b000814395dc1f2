"""Downloads of a packed text file or of an archive: checked before it is kept, kept whole or not at all.

`kzoo.data.corpora` and `kzoo.data.wmt17` call it for what is not in the user's own folder.
"""

import contextlib
import gzip
import hashlib
import http.client
import io
import urllib.request
import zlib
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError, URLError

from kzoo import files
from kzoo.errors import UserError
from kzoo.files import whole_file

TIMEOUT = 30  # seconds without a byte


def download(address: str, sha256: str, path: Path) -> Path:
    """Make `path` hold the text that stands packed at `address`, and return `path`.

    A file that is there already and has the right checksum is taken as it is. The text is kept unpacked:
    servers may pack the same text differently, so only its own checksum means something.

    Args:
        address: of a gzip file.
        sha256: of the unpacked text, 64 hexadecimal digits.
        path: where to keep the unpacked text; its folder is made if need be.

    Raises:
        UserError: no network, no such address, a truncated or altered file, no space; nothing is left behind.

    Example:
        >>> download("https://example.org/val.en.gz", "1f2a…", cache_folder() / "val.en")
        PosixPath('/home/me/.cache/kzoo/val.en')
    """
    with contextlib.suppress(OSError):  # not there, or not readable
        if hashlib.sha256(path.read_bytes()).hexdigest() == sha256:
            return path
    packed = bytearray()
    came = _receive(address, packed.extend)
    text, broken = unpack(packed)
    seen = hashlib.sha256(text).hexdigest()
    if seen != sha256:
        raise UserError(
            f"{address}: truncated or altered ({came}{broken and f'; {broken}'}): "
            f"SHA-256 of the unpacked text is {seen} instead of {sha256}"
        )
    with whole_file(path) as file:
        file.write_bytes(text)
    return path


def download_archive(address: str, sha256: str, path: Path) -> Path:
    """Make `path` hold what stands at `address`, byte for byte, and return `path`.

    It goes to the disk as it comes: an archive may be too large for memory. One that is there already and has
    the right checksum is taken as it is.

    Args:
        address: of the archive, of any kind.
        sha256: of the archive itself, 64 hexadecimal digits.
        path: where to keep it; its folder is made if need be.

    Raises:
        UserError: as `download`.

    Example:
        >>> download_archive("https://example.org/all.zip", "1f2a…", cache_folder() / "all.zip")
        PosixPath('/home/me/.cache/kzoo/all.zip')
    """
    with contextlib.suppress(OSError):
        if files.sha256(path) == sha256:
            return path
    digest = hashlib.sha256()
    with whole_file(path) as part:
        with part.open("wb") as file:

            def keep(block: bytes) -> None:
                digest.update(block)
                try:
                    file.write(block)
                except OSError as error:  # else it would pass for the network's
                    raise UserError(f"{path}: cannot be written ({error.strerror or error})") from None

            came = _receive(address, keep)
        if digest.hexdigest() != sha256:
            raise UserError(
                f"{address}: truncated or altered ({came}): "
                f"its SHA-256 is {digest.hexdigest()} instead of {sha256}"
            )
    return path


def unpack(packed: bytes | bytearray) -> tuple[bytes, str]:
    """Return the text in a gzip file up to where it breaks off, and what broke ("" if nothing did).

    Args:
        packed: the bytes of the gzip file.

    Example:
        >>> unpack(gzip.compress(b"one"))
        (b'one', '')
    """
    text = bytearray()
    try:
        with gzip.open(io.BytesIO(packed)) as file:
            while block := file.read1():  # one step each: a break loses nothing before it
                text += block
    except (OSError, EOFError, zlib.error) as error:
        return bytes(text), str(error)
    return bytes(text), ""


def _receive(address: str, keep: Callable[[bytes], object]) -> str:
    """Give `keep` the bytes at the address, block by block, with a progress bar on stderr.

    Returns:
        How many bytes came of how many that the server announced, in words.
    """
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    came = 0
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT) as response:
            announced = response.length
            with Progress(*columns, console=Console(stderr=True)) as progress:
                task = progress.add_task(address.rsplit("/", 1)[-1], total=announced)
                while block := response.read(1 << 14):
                    keep(block)
                    came += len(block)
                    progress.update(task, completed=came)
    except (OSError, http.client.HTTPException) as error:
        raise UserError(
            f"{address} cannot be downloaded ({_reason(error)}); without a network, "
            "set KZOO_DATA to a folder that holds the corpus"
        ) from None
    return f"{came:,} bytes came" if announced is None else f"{came:,} of {announced:,} bytes came"


def _reason(error: Exception) -> str:
    if isinstance(error, HTTPError):
        error.close()
        return f"HTTP status {error.code}"
    if isinstance(error, URLError):
        return str(error.reason)
    return str(error) or type(error).__name__
