"""The texts of a web page or a program in JSON: the strings are translated, their keys are not."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from kzoo.documents.document import Content
from kzoo.documents.icu import form_pieces
from kzoo.documents.inline import Piece, Segment
from kzoo.documents.tagged import string_of, tagged_pieces
from kzoo.errors import UserError

STRING = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?')  # the second group follows a key


def read(path: Path) -> Content:
    """Read a .json. All but the strings stays as it is written."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
        json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: is not JSON ({error})") from None
    new = {}

    def segments() -> Iterator[Segment]:
        line, before = 1, 0
        for match in STRING.finditer(text):
            line, before = line + text.count("\n", before, match.start()), match.start()
            if not match[2]:
                # JSON may escape half of a surrogate pair, which is no character.
                string = json.loads(match[1]).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
                pieces = form_pieces(tagged_pieces(string))
                yield Segment(f"line {line}", pieces, lambda pieces, at=before: put(at, pieces))

    def put(start: int, pieces: list[Piece]):
        new[start] = json.dumps(string_of(pieces), ensure_ascii=False)

    def write(file: BinaryIO, target: str | None):
        file.write(STRING.sub(lambda match: new.get(match.start(), match[0]), text).encode("utf-8"))

    return Content(segments(), write)
