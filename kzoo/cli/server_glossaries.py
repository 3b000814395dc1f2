"""A server's glossaries: terms, each for a direction of its presets."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kzoo.errors import UserError, nearest
from kzoo.hub.preset import direction_key
from kzoo.serve.directions import pairs_of
from kzoo.text.glossary import Glossary
from kzoo.text.languages import common_code


class Terms(NamedTuple):
    """Terms, their translations, and their direction as a key, such as `"en-de"`; `""`: the server's only."""

    direction: str
    table: Mapping[str, str]


def check_terms(terms: Sequence[Terms], translators: Sequence):
    """Raise `UserError` for terms of a direction that no translator has, or of none if there are several; or
    for two glossaries of one direction.
    """
    ways = dict.fromkeys(way for one in translators for way in pairs_of(one))
    known = [_keys(*way)[-1] for way in ways]
    for direction, _ in terms:
        if not direction and len(ways) > 1:
            raise UserError(f"the server has {len(ways)} directions: name one, as in --terms {known[0]}=FILE")
        if direction and not any(direction in _keys(*way) for way in ways):
            raise UserError(
                f"--terms {direction}=…: no preset has this direction; {nearest(direction, known)}"
            )
    for one in translators:
        ways = [glossary.direction for glossary in glossaries_of(one, terms)]
        if twice := next((way for way in ways if ways.count(way) > 1), None):
            named = "-".join(filter(None, twice)) or "one direction"
            raise UserError(f"two glossaries (--terms) are for {named}: write their terms into one file")


def glossaries_of(translator, terms: Sequence[Terms]) -> list[Glossary]:
    """Return the glossaries for a translator's directions; for any, if it does not name its languages."""
    ways = pairs_of(translator)
    if not ways:
        return [Glossary(one.table, (None, None)) for one in terms if not one.direction]
    return [Glossary(one.table, way) for one in terms for way in ways if one.direction in ("", *_keys(*way))]


def _keys(source: str, target: str) -> list[str]:
    """Return a direction's key in the translator's codes, and in those that clients use."""
    return [direction_key(source, target), direction_key(common_code(source), common_code(target))]
