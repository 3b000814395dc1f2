"""Downloads of a gzipped text file or of an archive: verified, then kept completely or not at all.

`kzoo.data.multi30k` and `kzoo.data.wmt17` use it for files that are not in the user's own folder.
"""

import contextlib
import hashlib
import http.client
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError, URLError

from kzoo.data.text_files import unpack
from kzoo.errors import UserError
from kzoo.files import sha256 as sha256_of
from kzoo.files import whole_file, writing

TIMEOUT = 30  # seconds without a byte


def download(address: str, sha256: str, path: Path) -> Path:
    """Download and unpack the gzipped text at `address` to `path`, and return `path`.

    An existing file with the right checksum is used as it is. The text is kept unpacked: servers may pack the
    same text differently, so only the text's checksum is meaningful.

    Args:
        address: URL of a gzip file.
        sha256: of the unpacked text, 64 hexadecimal digits.
        path: where to keep the unpacked text; its folder is created if necessary.

    Raises:
        UserError: no network, no such address, a truncated or altered file, no space; nothing is left behind.

    Example:
        >>> download("https://example.org/val.en.gz", "1f2a…", cache_folder() / "val.en")
        PosixPath('/home/me/.cache/kzoo/val.en')
    """
    if _is_kept(path, sha256):
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
    """Download the archive at `address` to `path`, byte for byte, and return `path`.

    It is written to disk while it is received, since an archive may be too large for memory. An existing file
    with the right checksum is used as it is.

    Args:
        address: URL of the archive, of any kind.
        sha256: of the archive itself, 64 hexadecimal digits.
        path: where to keep it; its folder is created if necessary.

    Raises:
        UserError: as for `download`.

    Example:
        >>> download_archive("https://example.org/all.zip", "1f2a…", cache_folder() / "all.zip")
        PosixPath('/home/me/.cache/kzoo/all.zip')
    """
    if _is_kept(path, sha256):
        return path
    digest = hashlib.sha256()
    with whole_file(path) as part:
        with part.open("wb") as file:

            def keep(block: bytes) -> None:
                digest.update(block)
                with writing(path):  # otherwise an error would look like the network's
                    file.write(block)

            came = _receive(address, keep)
        if digest.hexdigest() != sha256:
            raise UserError(
                f"{address}: truncated or altered ({came}): "
                f"its SHA-256 is {digest.hexdigest()} instead of {sha256}"
            )
    return path


def _is_kept(path: Path, sha256: str) -> bool:
    with contextlib.suppress(OSError):  # missing or not readable
        return sha256_of(path) == sha256
    return False


def _receive(address: str, keep: Callable[[bytes], object]) -> str:
    """Pass the bytes at the address to `keep`, block by block, with a progress bar on stderr.

    Returns:
        A text with the number of bytes received, and announced by the server.
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
