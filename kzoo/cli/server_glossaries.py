"""A server's glossaries: terms, each for a direction of its presets."""

import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from kzoo.errors import UserError, nearest
from kzoo.hub.preset import direction_key
from kzoo.text.glossary import Glossary
from kzoo.text.languages import common_code, common_codes


class Terms(NamedTuple):
    """Terms, their translations, and their direction as a key, such as `"en-de"`; `""`: the server's only."""

    direction: str
    table: Mapping[str, str]


def check_terms(terms: Sequence[Terms], translators: Sequence):
    """Raise `UserError` for terms of a direction that no translator has, or of none if there are several; or
    for two glossaries of one direction.
    """
    pairs = dict.fromkeys(pair for one in translators for pair in one.directions)
    common = common_codes(dict.fromkeys(itertools.chain(*pairs)))
    known = [direction_key(common[source], common[target]) for source, target in pairs]
    for one in terms:
        direction = one.direction
        if not direction and len(pairs) > 1:
            raise UserError(
                f"the server has {len(pairs)} directions: name one, as in --terms {known[0]}=FILE"
            )
        if direction and not any(glossaries_of(translator, [one]) for translator in translators):
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
    written = _written(dict.fromkeys(itertools.chain(*pairs)))
    return [
        Glossary(one.table, (source, target))
        for one in terms
        for source, target in pairs
        if not one.direction
        or one.direction
        in itertools.starmap(direction_key, itertools.product(written[source], written[target]))
    ]


def _written(codes: Collection[str]) -> dict[str, set[str]]:
    """Return the forms of a translator's codes: its own, and, with and without a script, those of clients.

    A server's other presets decide which of these it lists, so each is taken.
    """
    common = common_codes(codes)
    return {code: {code, common_code(code), common[code]} for code in codes}
