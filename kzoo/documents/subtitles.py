"""Subtitles, SubRip's and WebVTT's: the texts of the cues are translated; their times and the rest stay."""

import html
import math
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from kzoo.documents.document import Content
from kzoo.documents.inline import Piece, Segment
from kzoo.documents.tagged import TAG, string_of, tagged_pieces
from kzoo.errors import UserError
from kzoo.text.languages import has_spaces

TIMES = r"[ \t]*(?:\d+:)?\d+:\d+[,.]\d+[ \t]+-->[ \t]+(?:\d+:)?\d+:\d+[,.]\d+"
# A line of a cue; not the next cue's number and times, which need no empty line before them.
LINE = rf"(?!(?:\d+[ \t]*\r?\n)?{TIMES})[^\r\n]+"
TEXT = rf"(?P<text>{LINE}(?:\r?\n{LINE})*)"
CUE = rf"(?P<times>{TIMES}[^\r\n]*)\r?\n"
# An empty line ends a cue of WebVTT. Of SubRip's, players show what is behind it, too.
CUES = {".vtt": re.compile(f"(?m)^{CUE}{TEXT}"), ".srt": re.compile(f"(?m)^(?:{CUE})?{TEXT}")}
UNBROKEN = "\0"  # stands for a space within a tag
# A dash begins what another person says. Not those of <i>black</i>-and-white and -5. Notes are around songs.
SAID = re.compile(TAG.pattern[:-1] + r"|(?<![^\n>}])[-–—](?=[^\da-z])\s*|[ \t]*[♪♫]+[ \t]*)")
WRAPPED = re.compile(r"(?<![\]♪♫])\n(?!(?:\s|<[^<>]*>|\{\\[^{}]*\})*[-–—\[♪♫])")  # nor sounds
ENTITY = re.compile(r"&\w+;")
TIMESTAMP = re.compile(r"<\d+:[\d:.]+>")  # when a word is shown; the words of the translation are others


def read(path: Path) -> Content:
    """Read an .srt or .vtt."""
    content = path.read_bytes()
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not valid {encoding.upper()} ({error.reason}): save it as UTF-8") from None
    is_vtt = path.suffix.lower() == ".vtt"
    if is_vtt != text.removeprefix("\ufeff").startswith("WEBVTT"):
        begins = "does not begin" if is_vtt else "begins"
        raise UserError(f"{path}: {begins} with WEBVTT, as a .vtt does: is its ending right?")
    if not re.search(f"(?m)^{CUE}", text):
        raise UserError(f"{path}: has no subtitles of {path.suffix}")
    cues, new = CUES[path.suffix.lower()], {}
    # Only WebVTT has entities.
    unescape, escape = (html.unescape, _escaped) if is_vtt else (str, str)

    def segments() -> Iterator[Segment]:
        times = ""
        for cue in cues.finditer(text):
            times = (cue["times"] or times).strip()
            shown = TIMESTAMP.sub("", cue["text"].replace("\r\n", "\n"))
            pieces = _changed(tagged_pieces(WRAPPED.sub(" ", shown), SAID), unescape)
            yield Segment(f"at {times}", pieces, lambda pieces, at=cue: put(at, pieces))

    def put(cue: re.Match, pieces: list[Piece]):
        new[cue.start()] = string_of(_changed(pieces, escape))

    def write(file: BinaryIO, target: str | None):
        def cue_of(cue: re.Match) -> str:
            if cue.start() not in new:
                return cue[0]
            lines = _wrapped(new[cue.start()], cue["text"].count("\n") + 1, target)
            end = "\r\n" if "\r\n" in cue[0] else "\n"
            return cue[0][: cue.start("text") - cue.start()] + end.join(lines)

        file.write(cues.sub(cue_of, text).encode(encoding))

    return Content(segments(), write)


def _changed(pieces: list[Piece], change: Callable[[str], str]) -> list[Piece]:
    """Return pieces with changed text."""
    return [
        change(piece) if isinstance(piece, str) else piece._replace(pieces=_changed(piece.pieces, change))
        for piece in pieces
    ]


def _escaped(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace("\xa0", "&nbsp;")
    return text.replace("-->", "--&gt;")  # which times have; any other `>` may stay


def _wrapped(text: str, count: int, language: str | None) -> list[str]:
    """Return a text in at most `count` lines of about the same length, unless it has several already."""
    lines = text.split("\n")
    if len(lines) > 1 or count == 1:
        return lines
    # A tag or an entity must stay in one piece.
    breaks = {"break_long_words": not (has_spaces(language) or TAG.search(text) or ENTITY.search(text))}
    text = TAG.sub(lambda tag: tag[0].replace(" ", UNBROKEN), text)
    width = math.ceil(len(text) / count)
    while len(lines := textwrap.wrap(text, width, **breaks)) > count:
        width += 1
    return [line.replace(UNBROKEN, " ") for line in lines]
