"""Documents that are ZIP archives: some of their parts are read and replaced, the others copied."""

import re
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from kzoo.errors import UserError

LARGEST, MOST_READ = 2**31, 2**27  # bytes of all parts, and of those that are translated


class Archive:
    """An archive's parts.

    Args:
        path: the file.
        pattern: of the names of the parts to read.
        needed: the name of a part, or its beginning, that such an archive has.

    Attributes:
        parts: the contents of the parts to read.

    Raises:
        UserError: the archive unpacks to too much, or lacks `needed`.
        zipfile.BadZipFile: and others, if it is damaged.
    """

    def __init__(self, path: Path, pattern: str, needed: str):
        self._path = path
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            # zipfile never reads more of a part than it has here.
            wanted = [member for member in members if re.fullmatch(pattern, member.filename)]
            for size, most in (
                (sum(member.file_size for member in members), LARGEST),
                (sum(member.file_size for member in wanted), MOST_READ),
            ):
                if size > most:
                    raise UserError(
                        f"{path}: unpacks to {size / 1e9:,.1f} GB; at most {most / 1e9:,.1f} GB are read"
                    )
            if not any(member.filename.startswith(needed) for member in members):
                raise UserError(f"{path}: has no {needed}, as a {path.suffix} has: is its ending right?")
            if damaged := archive.testzip():  # all parts, before anything is translated
                raise zipfile.BadZipFile(f"{damaged} is damaged")
            self.parts = {member.filename: archive.read(member) for member in wanted}

    def write(self, file: BinaryIO, contents: Mapping[str, bytes]):
        """Write the archive with other contents of parts; their order, packing and dates stay."""
        with zipfile.ZipFile(self._path) as archive, zipfile.ZipFile(file, "w") as new:
            for member in archive.infolist():
                copy = zipfile.ZipInfo(member.filename, member.date_time)
                copy.compress_type, copy.external_attr = member.compress_type, member.external_attr
                if member.filename in contents:
                    new.writestr(copy, contents[member.filename])
                else:
                    copy.file_size = member.file_size  # it decides on ZIP64
                    with archive.open(member) as old, new.open(copy, "w") as part:
                        shutil.copyfileobj(old, part)
