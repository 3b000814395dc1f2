"""Sizes, dropouts and choices that models may have: checked when one is built; in recipes without Keras."""

from collections.abc import Sequence
from numbers import Integral, Real

# Upper limits: building a larger model would take forever or fill the memory.
MOST_LAYERS, LARGEST_SIZE = 1000, 10**7


def check_sizes(name: str, value: int | list[int]):
    """Raise `ValueError` unless a size, or each size of a list, is a whole number from 1 to the maximum."""
    if value == []:
        raise ValueError(f"no {name}: give at least one")
    label = f"each of {name}" if isinstance(value, list) else name
    most = MOST_LAYERS if name.endswith("layers") else LARGEST_SIZE
    for size in value if isinstance(value, list) else [value]:
        if not isinstance(size, Integral) or size < 1:
            raise ValueError(f"{label} must be a whole number of at least 1, not {size!r}")
        if size > most:
            raise ValueError(f"{label} must be at most {most:,}, not {size:,}")


def check_dropout(name: str, value: float):
    """Raise `ValueError` unless a dropout is a number from 0 to less than 1."""
    if not isinstance(value, Real) or not 0 <= value < 1:
        raise ValueError(f"{name} must be at least 0 and less than 1, not {value!r}")


def check_choice(name: str, value: str, choices: Sequence[str]):
    """Raise `ValueError` unless a value is one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, not {value!r}")


def check_heads(width: int, num_heads: int, rotary: bool):
    """Raise `ValueError` unless the heads divide the model's width; with rotary positions, into even ones."""
    if width % num_heads:
        raise ValueError(f"num_heads={num_heads} does not divide width={width}")
    if rotary and width // num_heads % 2:
        raise ValueError(
            f"rotary positions need heads of even width, not width={width} / num_heads={num_heads}"
        )
