"""What backbones check of their arguments, so that a wrong one is named before work begins."""

import inspect
from collections.abc import Callable
from numbers import Integral

from kzoo.errors import UserError, nearest


def check_sizes(**sizes):
    """Raise `ValueError` for a size, by its argument's name, that is not a whole number of at least 1.

    A list holds the sizes of a stack, of which there is at least one.
    """
    for name, value in sizes.items():
        if value == []:
            raise ValueError(f"no {name}: give at least one")
        for size in value if isinstance(value, list) else [value]:
            if not isinstance(size, Integral) or size < 1:
                one = f"each of {name}" if isinstance(value, list) else name
                raise ValueError(f"{one} is a whole number of at least 1, not {size!r}")


def check_rate(rate: float, name: str = "dropout"):
    """Raise `ValueError` for a rate outside [0, 1)."""
    if not 0 <= rate < 1:
        raise ValueError(f"{name} is at least 0 and less than 1, not {rate!r}")


def check_names(settings: dict, *takers: Callable):
    """Raise `UserError` for a setting that is no argument with a default of any of `takers`."""
    parameters = [one for taker in takers for one in inspect.signature(taker).parameters.values()]
    known = [one.name for one in parameters if one.default is not one.empty]
    for name in settings:
        if name not in known:
            raise UserError(f"there is no argument {name!r}; {nearest(name, known)}")
