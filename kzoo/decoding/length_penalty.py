"""Length penalties: divisors of a hypothesis's log-probability, which would otherwise favour short ones."""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from numbers import Real

from kzoo.errors import UserError


@dataclass(frozen=True)
class Exponent:
    """length^alpha: 0 leaves log-probabilities unchanged, 1 takes their mean over the tokens.

    Args:
        alpha: float. Defaults to `1`.

    Raises:
        UserError: α is not a finite number.
    """

    alpha: float = 1.0

    def __post_init__(self):
        check_alpha(self.alpha)

    def __call__(self, length):
        """Return the divisor for `length`, in tokens with the end symbol; a number or a float tensor."""
        return length**self.alpha

    def __str__(self) -> str:
        return f"log P / length^{self.alpha:g}"


@dataclass(frozen=True)
class GNMT:
    """((5 + length) / 6)^alpha: Wu et al. 2016, "Google's Neural Machine Translation System", Eq. 14.

    Args:
        alpha: float. Defaults to `0.6`.

    Raises:
        UserError: α is not a finite number.
    """

    alpha: float = 0.6

    def __post_init__(self):
        check_alpha(self.alpha)

    def __call__(self, length):
        """Return the divisor for `length`, in tokens with the end symbol; a number or a float tensor."""
        return ((5.0 + length) / 6.0) ** self.alpha

    def __str__(self) -> str:
        return f"GNMT's length penalty with α = {self.alpha:g}"


def check_alpha(alpha: float):
    """Raise `UserError` for an α that is not a finite number."""
    if not _is_finite(alpha):
        raise UserError(f"the α of a length penalty is a finite number, not {alpha!r}")


def as_penalty(length_penalty: float | Callable) -> Callable:
    """Return the function of a length that a number α stands for; functions are returned as they are.

    Raises:
        UserError: neither a finite number nor a function; a function without a hash.
    """
    if callable(length_penalty):
        if not isinstance(length_penalty, Hashable):  # searches are compiled once for each
            raise UserError(f"length_penalty {length_penalty!r} has no hash: make it a frozen dataclass")
        return length_penalty
    if not _is_finite(length_penalty):
        raise UserError(
            "length_penalty is a finite number, or a function such as kzoo.decoding.GNMT(0.6), "
            f"not {length_penalty!r}"
        )
    return Exponent(float(length_penalty))


def _is_finite(value) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
