"""The search with which a preset is scored: what the user gives, then the preset's own, then the default."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from kzoo.commands.options import chosen_penalty
from kzoo.presets.description import own_search


class Search(NamedTuple):
    """A beam search's settings.

    Args:
        beam_size: int.
        penalty: the length penalty, as `translate` takes it.
        alpha: its α under its name: `{"length_penalty": 1.0}` or `{"gnmt": 0.6}`.
    """

    beam_size: int
    penalty: Callable
    alpha: dict[str, float]

    def __str__(self) -> str:
        if "gnmt" in self.alpha:
            return f"beam {self.beam_size}, GNMT's length penalty with α = {self.alpha['gnmt']:g}"
        return f"beam {self.beam_size}, log P / length^{self.alpha['length_penalty']:g}"


def scoring_search(
    folder: Path, beam_size: int | None, length_penalty: float | None, gnmt: float | None = None
) -> Search:
    """Return the search for scoring a trained preset.

    Args:
        folder: the preset, whose own search has what the user leaves out; see `own_search`.
        beam_size: as the user gives it; `None`: left out.
        length_penalty: likewise.
        gnmt: likewise; it replaces the length penalty.

    Raises:
        UserError: α is not finite.
    """
    own = {"beam_size": 5, "length_penalty": 1.0, **own_search(folder)}
    if gnmt is None and length_penalty is None:
        length_penalty, gnmt = own["length_penalty"], own.get("gnmt")
    alpha = {"length_penalty": length_penalty} if gnmt is None else {"gnmt": gnmt}
    beam_size = own["beam_size"] if beam_size is None else beam_size
    return Search(beam_size, chosen_penalty(length_penalty, gnmt), alpha)
