"""A server's glossaries: terms, each for a direction of its presets."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kzoo.errors import UserError, nearest
from kzoo.hub.preset import direction_key
from kzoo.text.glossary import Glossary
from kzoo.text.languages import common_codes


class Terms(NamedTuple):
    """Terms, their translations, and their direction as a key, such as `"en-de"`; `""`: the server's only."""

    direction: str
    table: Mapping[str, str]


def check_terms(terms: Sequence[Terms], translators: Sequence):
    """Raise `UserError` for terms of a direction that no translator has, or of none if there are several; or
    for two glossaries of one direction.
    """
    pairs = dict.fromkeys(pair for one in translators for pair in one.directions)
    keys = _keys(pairs)
    known = [common for _, common in keys.values()]
    for direction, _ in terms:
        if not direction and len(pairs) > 1:
            raise UserError(
                f"the server has {len(pairs)} directions: name one, as in --terms {known[0]}=FILE"
            )
        if direction and not any(direction in some for some in keys.values()):
            raise UserError(
                f"--terms {direction}=…: no preset has this direction; {nearest(direction, known)}"
            )
    for one in translators:
        pairs = [glossary.direction for glossary in glossaries_of(one, terms)]
        if twice := next((pair for pair in pairs if pairs.count(pair) > 1), None):
            named = "-".join(filter(None, twice)) or "one direction"
            raise UserError(f"two glossaries (--terms) are for {named}: write their terms into one file")


def glossaries_of(translator, terms: Sequence[Terms]) -> list[Glossary]:
    """Return the glossaries for a translator's directions; for any, if it does not name its languages."""
    if not (pairs := translator.directions):
        return [Glossary(one.table, (None, None)) for one in terms if not one.direction]
    keys = _keys(pairs)
    return [
        Glossary(one.table, pair) for one in terms for pair in pairs if one.direction in ("", *keys[pair])
    ]


def _keys(pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], tuple[str, str]]:
    """Return the key of each direction in the translator's codes, and in those that clients use."""
    common = common_codes(dict.fromkeys(itertools.chain(*pairs)))
    return {
        (source, target): (direction_key(source, target), direction_key(common[source], common[target]))
        for source, target in pairs
    }
