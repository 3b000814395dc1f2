"""Messages of ICU, such as `{n, plural, one {# dog} other {# dogs}}`: each form is a text of its own.

https://unicode-org.github.io/icu/userguide/format_parse/messages/
"""

import re

from kzoo.documents.inline import Inline, Piece, joined

FORM = r"\s*(?:=\d+|\w+)\s*\{"
BEGIN = rf"\{{\s*\w+\s*,\s*(?:plural|select|selectordinal)\s*,(?:\s*offset:\d+)?{FORM}"
ARGUMENT = r"\{[^{}]*\}"  # any other
# Outside of forms, and in one, which ends before the next or with the last brace of all.
TOKENS = re.compile(rf"({BEGIN})|{ARGUMENT}"), re.compile(rf"({BEGIN}|\}}{FORM}|\}}\s*\}})|{ARGUMENT}")


def form_pieces(pieces: list[Piece]) -> list[Piece]:
    """Return pieces in which what is between the forms of a message are elements that end a text.

    Their nodes are pairs of strings, as of `tagged_pieces`. Pieces that are no such message stay as they are.
    """
    depth = 0

    def scanned(some: list[Piece]) -> list[Piece]:
        nonlocal depth
        found = []
        for piece in some:
            if isinstance(piece, Inline):
                found.append(piece._replace(pieces=scanned(piece.pieces)))
                continue
            start = at = 0
            while token := TOKENS[depth > 0].search(piece, at):
                at = token.end()
                if token[1]:
                    depth += (token[1][0] == "{") - (token[1][-1] == "}")
                    found += [piece[start : token.start()], Inline((token[1], ""), [])]
                    start = at
            found.append(piece[start:])
        return joined(found)

    new = scanned(pieces)
    return pieces if depth else new
