"""Settings of a beam search, and length penalties.

A length penalty divides a hypothesis's log-probability; without it, short hypotheses would win.
"""

import dataclasses
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Self

from kzoo.errors import UserError, nearest

# The largest settings that the search takes: beyond them, the machine's memory ends first.
LARGEST_BEAM, LONGEST = 10_000, 100_000
# Source lengths that decoding is compiled for: sentences are padded up to these.
LENGTHS = (16, 24, 32, 48, 64, 96, 128, 256)


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
        alpha = self.alpha
        finite = isinstance(alpha, Real) and abs(alpha) <= sys.float_info.max  # JSON has any whole number
        if not finite or isinstance(alpha, bool):
            raise UserError(
                "length_penalty must be a finite number α, or a function such as kzoo.decoding.GNMT(0.6), "
                f"not {alpha!r}"
            )
        object.__setattr__(self, "alpha", float(alpha))

    def __call__(self, length):
        """Return the divisor for `length`, in tokens with the end symbol; a number or a float tensor."""
        return length**self.alpha

    def __str__(self) -> str:
        return f"log P / length^{self.alpha:g}"


@dataclass(frozen=True)
class GNMT(Exponent):
    """((5 + length) / 6)^alpha: Wu et al. 2016, "Google's Neural Machine Translation System", Eq. 14.

    Args:
        alpha: float. Defaults to `0.6`.

    Raises:
        UserError: α is not a finite number.
    """

    alpha: float = 0.6

    def __call__(self, length):
        """Return the divisor for `length`, in tokens with the end symbol; a number or a float tensor."""
        return ((5.0 + length) / 6.0) ** self.alpha

    def __str__(self) -> str:
        return f"GNMT's length penalty with α = {self.alpha:g}"


ALPHAS = {Exponent: "length_penalty", GNMT: "gnmt"}  # the key of each penalty's α in a file


@dataclass(frozen=True)
class SearchSettings:
    """Settings of the search for translations.

    Args:
        beam_size: int. Hypotheses kept at each step, at most 10,000; 1 is greedy search.
        length_penalty: α in log P / length^α, `GNMT(α)`, or another function of the length.
        max_length: int. Maximum length of a translation in tokens, end symbol included, at most 100,000, as
            the next two; `None`: 1.5 × the padded source length + 8.
        min_length: int. Minimum length of a translation in tokens, end symbol included.
        no_repeat_ngram: int. n: no sequence of n tokens occurs twice in a translation; 0 allows repeats.

    Raises:
        UserError: an invalid setting.

    Example:

    >>> translator = kzoo.presets.load("pope_small_multi30k_en_de")
    >>> translator.search = SearchSettings(beam_size=10, length_penalty=0.9)
    """

    beam_size: int = 5
    length_penalty: float | Callable = 1.0
    max_length: int | None = None
    min_length: int = 0
    no_repeat_ngram: int = 0

    def __post_init__(self):
        if not callable(self.length_penalty):
            object.__setattr__(self, "length_penalty", Exponent(self.length_penalty))
        check_whole_numbers(1, LARGEST_BEAM, beam_size=self.beam_size)
        check_whole_numbers(0, LONGEST, min_length=self.min_length, no_repeat_ngram=self.no_repeat_ngram)
        if self.max_length is not None:
            check_whole_numbers(1, LONGEST, max_length=self.max_length)
            if self.min_length > self.max_length:
                raise UserError(f"min_length {self.min_length} is above max_length {self.max_length}")

    def changed(self, **settings) -> Self:
        """Return a copy with some settings replaced; `None` keeps the current value.

        Args:
            **settings: the class's arguments; also `gnmt`, the α of GNMT's penalty, instead of
                `length_penalty`.

        Raises:
            UserError: an invalid setting.
        """
        given = {name: value for name, value in settings.items() if value is not None}
        if "gnmt" in given:
            if "length_penalty" in given:
                raise UserError("length_penalty and gnmt exclude each other: keep one of them")
            given["length_penalty"] = GNMT(given.pop("gnmt"))
        return dataclasses.replace(self, **given)

    def entries(self) -> dict:
        """Return the settings as a JSON object, such as `{"beam_size": 4, "gnmt": 0.6}`.

        Raises:
            UserError: the length penalty is a function other than `Exponent` and `GNMT`.
        """
        penalty = self.length_penalty
        if type(penalty) not in ALPHAS:
            raise UserError(
                f"a preset's length_penalty must be a number or kzoo.decoding.GNMT, not {penalty!r}"
            )
        others = ("max_length", "min_length", "no_repeat_ngram")
        return {
            "beam_size": int(self.beam_size),
            ALPHAS[type(penalty)]: float(penalty.alpha),
            **{name: int(getattr(self, name)) for name in others if getattr(self, name)},
        }

    @classmethod
    def from_entries(cls, entries: dict, where: str | os.PathLike) -> Self:
        """Return the settings of a JSON object, as `entries` returns it; missing keys get their defaults.

        Args:
            entries: a JSON object.
            where: its file, named in errors.

        Raises:
            UserError: an unknown key or an invalid value.
        """
        known = [*(field.name for field in dataclasses.fields(cls)), "gnmt"]
        if unknown := [key for key in entries if key not in known]:
            raise UserError(f"{where} has an unknown key {unknown[0]!r:.80}; {nearest(unknown[0], known)}")
        try:
            return cls().changed(**entries)
        except UserError as error:
            raise UserError(f"{where}: {error}") from None

    def __str__(self) -> str:
        limits = {
            f"at most {self.max_length} tokens": self.max_length,
            f"at least {self.min_length} tokens": self.min_length,
            f"no {self.no_repeat_ngram}-gram twice": self.no_repeat_ngram,
        }
        given = [text for text, value in limits.items() if value]
        return ", ".join([f"beam {self.beam_size}", str(self.length_penalty), *given])


def check_whole_numbers(least: int = 1, most: int | None = None, **numbers):
    """Raise `UserError` for an argument that is not a whole number from `least` to `most`."""
    for name, value in numbers.items():
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        if not whole or value < least or (most is not None and value > most):
            bounds = f"of at least {least}" if most is None else f"from {least} to {most:,}"
            raise UserError(f"{name} must be a whole number {bounds}, not {value!r}")


def checked_n(n: int | None, search: SearchSettings) -> int:
    """Return the number of best translations to return: `n`, by default the beam size.

    Raises:
        UserError: `n` is not a whole number from 1 to the beam size.
    """
    n = search.beam_size if n is None else n
    check_whole_numbers(n=n)
    if n > search.beam_size:
        raise UserError(f"{n} best translations need a beam_size of at least {n}, not {search.beam_size}")
    return n


def padded_length(count: int, most: int) -> int:
    """Return the padded length, at most `most`, of a sentence of `count` tokens and its end symbol."""
    return min(next((length for length in LENGTHS if length > count), most), most)


def output_limit(settings: SearchSettings, length: int, most: int) -> int:
    """Return the maximum output length: by default 1.5 × the padded source length + 8, at most `most`.

    Raises:
        UserError: the minimum length is above `most`.
    """
    if settings.min_length > most:
        raise UserError(f"min_length is {settings.min_length}, but the model writes at most {most} tokens")
    return min(settings.max_length or max(length + length // 2 + 8, settings.min_length), most)
