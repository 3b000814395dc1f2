"""The directions that a multilingual model is trained on."""

import math
from collections import Counter
from collections.abc import Sequence
from numbers import Real

from kzoo.errors import UserError, nearest


def language_pairs(
    languages: Sequence[str],
    centre: str | None = None,
    left_out: str | None = None,
    monolingual: bool = False,
    only: Sequence[str] = (),
) -> list[tuple[str, str]]:
    """Return the (source, target) directions among languages.

    Args:
        languages: codes, each once.
        centre: keep only directions from and to this language.
        left_out: two languages, such as `"de-fr"`, to leave out in both directions.
        monolingual: also pair each language with itself: a sentence with the same sentence.
        only: directions, such as `"en-de"`, that replace those chosen by the other arguments.

    Raises:
        UserError: an unknown or repeated language or direction, a `left_out` that changes nothing, or no
            direction at all.

    Example:

    >>> language_pairs(["en", "de", "fr"], centre="en")
    [('en', 'de'), ('en', 'fr'), ('de', 'en'), ('fr', 'en')]
    """
    languages = list(languages)
    for language in languages:
        if languages.count(language) > 1:
            raise UserError(f"language {language!r} is named {languages.count(language)} times: name it once")
    if only:
        return _checked([two_languages(pair, languages) for pair in only], ", ".join(only))
    apart = set(two_languages(left_out, languages)) if left_out else set()
    if len(apart) == 1:
        raise UserError(f"left_out is {left_out!r}, the same language twice: name two, as in de-fr")
    if centre and centre not in languages:
        raise UserError(f"no language {centre!r} among {', '.join(languages)}; {nearest(centre, languages)}")
    if centre and apart and centre not in apart:
        raise UserError(f"left_out {left_out!r} changes nothing with centre {centre!r}: remove one of them")
    pairs = [
        (source, target)
        for source in languages
        for target in languages
        if (monolingual if source == target else {source, target} != apart)
        and (not centre or source == target or centre in (source, target))
    ]
    return _checked(pairs, ", ".join(languages) or "no language")


def _checked(pairs: list[tuple[str, str]], where: str) -> list[tuple[str, str]]:
    for pair, count in Counter(pairs).items():
        if count > 1:
            raise UserError(f"{where}: {'-'.join(pair)} is named {count} times: name it once")
    if not any(source != target for source, target in pairs):
        raise UserError(f"{where}: no language pair is left to train on")
    return pairs


def two_languages(pair: str, languages: Sequence[str]) -> tuple[str, str]:
    """Return the two languages that a pair such as `"de-fr"` names.

    Raises:
        UserError: it does not name two of the languages.
    """
    for source in languages:  # not split: a code may itself have a hyphen, such as pt-BR
        target = pair.removeprefix(f"{source}-")
        if target != pair and target in languages:
            return source, target
    raise UserError(
        f"{pair!r} does not name two of the languages {', '.join(languages)}; write them as "
        f"{languages[0]}-{languages[-1]}"
    )


def check_weights(weights: dict[tuple[str, str], float], pairs: list[tuple[str, str]]):
    """Raise `UserError` unless each pair has a positive weight, and nothing else has one."""
    known = set(pairs)
    unknown = [f"{source}-{target}" for source, target in weights if (source, target) not in known]
    if unknown:
        raise UserError(f"weights are given for pairs that are not trained: {', '.join(unknown)}")
    for (source, target), weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, Real) or not math.isfinite(weight):
            raise UserError(f"the weight of {source}-{target} is {weight!r}, not a number")
    without = [f"{source}-{target}" for source, target in pairs if not weights.get((source, target), 0) > 0]
    if without:
        raise UserError(f"every pair needs a weight over 0; {', '.join(without)} has none")
