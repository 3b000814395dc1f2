"""Strings with tags, as programs, web pages and subtitles have them: `Press <b>OK</b>`."""

import re

from kzoo.documents.inline import Inline, Piece, joined
from kzoo.documents.markup import INLINE, KEPT

TAG = re.compile(r"(</?\w[^<>]*>|\\n|\n|\{\\[^{}]*\})")  # the last are SubStation's, in subtitles
NAME = re.compile(r"</?(\w+)")


def tagged_pieces(text: str, tags: re.Pattern = TAG) -> list[Piece]:
    """Return the text and the tags of a string. Line ends, and tags without a partner, end a text."""
    opened, levels = [], [[]]
    for number, token in enumerate(tags.split(text)):
        name = NAME.match(token)[1].lower() if number % 2 and token[0] == "<" else ""
        if not number % 2:
            levels[-1].append(token)
        elif token.startswith("</") and name in [other for other, _ in opened]:
            while True:
                other, tag = opened.pop()
                inner = levels.pop()
                if other == name:
                    break
                levels[-1] += [Inline((tag, ""), []), *inner]
            if name in KEPT:
                levels[-1].append(Inline((tag + string_of(inner) + token, ""), []))
            elif name in INLINE or name == "c" or name.isdigit():  # of WebVTT, of i18next
                levels[-1].append(Inline((tag, token), inner))
            else:
                levels[-1] += [Inline((tag, ""), []), *inner, Inline((token, ""), [])]
        elif name and not token.startswith("</") and not token.endswith("/>"):
            opened.append((name, token))
            levels.append([])
        else:
            levels[-1].append(Inline((token, ""), []))
    while opened:
        inner = levels.pop()
        levels[-1] += [Inline((opened.pop()[1], ""), []), *inner]
    return joined(levels[0])


def string_of(pieces: list[Piece]) -> str:
    """Return the string of pieces, as of `tagged_pieces`."""
    return "".join(
        piece if isinstance(piece, str) else piece.node[0] + string_of(piece.pieces) + piece.node[1]
        for piece in pieces
    )
