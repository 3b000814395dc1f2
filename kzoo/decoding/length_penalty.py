"""Length penalties: divisors of a hypothesis's log-probability, which would otherwise favour short ones."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Exponent:
    """length^alpha: 0 leaves log-probabilities unchanged, 1 takes their mean over the tokens.

    Args:
        alpha: float. Defaults to `1`.
    """

    alpha: float = 1.0

    def __call__(self, length):
        """Return the divisor for `length`, in tokens with the end symbol; a number or a float tensor."""
        return length**self.alpha


@dataclass(frozen=True)
class GNMT:
    """((5 + length) / 6)^alpha: Wu et al. 2016, "Google's Neural Machine Translation System", Eq. 14.

    Args:
        alpha: float. Defaults to `0.6`.
    """

    alpha: float = 0.6

    def __call__(self, length):
        """Return the divisor for `length`, in tokens with the end symbol; a number or a float tensor."""
        return ((5.0 + length) / 6.0) ** self.alpha
