"""Figures of position encodings: the PoPE paper's Figures 1, 2 and 3, by `kzoo plot`.

The numbers come from `position_statistics`. Reference: Aggarwal 2024, "PoPE: Legendre Orthogonal
Polynomials Based Position Encoding for Large Language Models", https://arxiv.org/abs/2405.04585
"""

from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.polynomial.legendre import legvander

from kzoo.errors import UserError, nearest
from kzoo.evaluation.figures import look, picture
from kzoo.evaluation.position_statistics import (
    correlation,
    mean_by_distance,
    mutual_information,
    pope_encoding,
    sine_encoding,
)

ENCODINGS = {"sine": sine_encoding, "pope": pope_encoding}
TITLES = {"sine": "Sinusoidal encoding", "pope": "PoPE, Legendre polynomials"}
SHOWN = 128  # encodings drawn
HIGHEST_ORDER = 5  # highest order of the polynomials drawn
LEVELS = 48  # of a colour scale: a PNG has 290 KB, 500 KB with 256 levels, and no steps are visible


def plot_positions(
    encoding: str, path: str | Path, num_positions: int = 512, width: int = 512, normalize: bool = False
) -> None:
    """Draw an encoding and how similar its positions are: the paper's Figure 1 (sine) or 3 (pope).

    Four images: the first encodings; the mutual information of positions in the high dimensions, that is over
    the features from D/2; the correlation of positions over all features, and over the high dimensions.
    The scales of the last three are the same for both encodings, so that the pictures can be compared.

    Args:
        encoding: `"sine"` or `"pope"`.
        path: picture to write, .png, .svg or .pdf.
        num_positions: positions `L`, at least 4.
        width: features `D`, at least 4.
        normalize: PoPE in orthonormal form; only the first image changes.

    Raises:
        UserError: an unknown encoding, a size under 4, or a file that cannot be written.
    """
    _check_sizes(num_positions, width)
    if encoding not in ENCODINGS:
        raise UserError(f"there is no position encoding {encoding!r}, {nearest(encoding, list(ENCODINGS))}")
    if normalize and encoding != "pope":
        raise UserError(f"only 'pope' can be normalized, not {encoding!r}")
    with picture(path, size=(6.6, 5.0), formulas=True) as figure:
        options = {"normalize": True} if normalize else {}
        encodings = ENCODINGS[encoding](num_positions, width, **options)
        high = encodings[:, width // 2 :]
        named = f"{TITLES[encoding]}{', normalized' if normalize else ''}"
        figure.suptitle(f"{named}, $L$ = {num_positions} positions, $D$ = {width} features")
        panels = figure.subplot_mosaic("aaa;bcd", height_ratios=(1, 0.95))

        # As many as there are rows of pixels: more would show moiré patterns.
        first = encodings[:SHOWN]
        # Few values of a plain PoPE come near its range of ±1; the scale fits most of them.
        limit = np.percentile(np.abs(first), 98)
        beyond = "both" if np.abs(first).max() > 1.01 * limit else "neither"
        colours = colormaps["RdBu_r"].resampled(LEVELS)
        image = panels["a"].imshow(
            first, cmap=colours, vmin=-limit, vmax=limit, aspect="auto", interpolation_stage="data"
        )
        shown = f", positions 0 to {SHOWN - 1}" if num_positions > SHOWN else ""
        panels["a"].set(title=f"(a) encoding{shown}", xlabel="feature $i$", ylabel="position")
        bar = figure.colorbar(image, ax=panels["a"], extend=beyond, aspect=22, pad=0.01)
        bar.set_label("value")

        nats = mutual_information(high)
        _position_image(figure, panels["b"], nats, 2, "(b) mutual information,\n$i \\geq D/2$", "nats")
        everywhere = np.abs(correlation(encodings))
        _position_image(figure, panels["c"], everywhere, 1, "(c) correlation,\nall features", "$|r|$")
        within = np.abs(correlation(high))
        _position_image(figure, panels["d"], within, 1, "(d) correlation,\n$i \\geq D/2$", "$|r|$")
        panels["b"].set_ylabel("position")


def plot_polynomials(path: str | Path) -> None:
    """Draw the Legendre polynomials P_0 … P_5 on [-1, 1]: the paper's Figure 2.

    Args:
        path: picture to write, .png, .svg or .pdf.

    Raises:
        UserError: a file that cannot be written.
    """
    with picture(path, size=(5.0, 3.1), formulas=True) as figure:
        axes = figure.subplots()
        x = np.linspace(-1, 1, 401)
        for order, values in enumerate(legvander(x, HIGHEST_ORDER).T):
            axes.plot(x, values, **look(order), label=f"$P_{order}$")
        axes.set(xlim=(-1, 1), ylim=(-1.05, 1.05), xlabel="$x$", ylabel="$P_n(x)$")
        axes.set_title("Legendre polynomials")
        axes.set_xticks([-1, -0.5, 0, 0.5, 1])
        axes.set_yticks([-1, -0.5, 0, 0.5, 1])
        axes.grid(True)
        figure.legend(loc="outside right center", handlelength=1.5)


def correlation_curves(num_positions: int = 512, width: int = 512) -> dict[str, dict[str, np.ndarray]]:
    """Return the mean |correlation| of two positions against their distance: the paper's Figure 3.

    Over all features, PoPE appears twice: as in the paper, and without feature 0. That feature is at x = -1,
    where every P_n is ±1, while elsewhere it shrinks as 1/sqrt(n): it alone correlates all positions of high
    order.

    Args:
        num_positions: positions `L`.
        width: features `D`.

    Returns:
        for "all features" and for "high dimensions" (features from D/2), the curves by name, each `(L,)`.
    """
    sine, pope = sine_encoding(num_positions, width), pope_encoding(num_positions, width)
    panels = {
        "all features": {"sine": sine, "PoPE": pope, "PoPE without feature 0": pope[:, 1:]},
        "high dimensions": {"sine": sine[:, width // 2 :], "PoPE": pope[:, width // 2 :]},
    }
    return {
        panel: {name: mean_by_distance(correlation(encodings)) for name, encodings in curves.items()}
        for panel, curves in panels.items()
    }


def plot_correlation(path: str | Path, num_positions: int = 512, width: int = 512) -> None:
    """Draw the correlation of positions against their distance, for sine and PoPE: the paper's Figure 3.

    Args:
        path: picture to write, .png, .svg or .pdf.
        num_positions: positions `L`, at least 4.
        width: features `D`, at least 4.

    Raises:
        UserError: a size under 4, or a file that cannot be written.
    """
    _check_sizes(num_positions, width)
    titles = {"all features": "(a) all features", "high dimensions": "(b) high dimensions, $i \\geq D/2$"}
    looks = {
        "sine": look(1),
        "PoPE": look(0),
        "PoPE without feature 0": look(2),
    }
    with picture(path, size=(6.6, 3.0), formulas=True) as figure:
        figure.suptitle(f"Correlation of positions' encodings, $L$ = {num_positions}, $D$ = {width}")
        panels = figure.subplots(1, 2, sharey=True)
        # Up to half the length, so that each mean is over at least half of the positions.
        distances = np.arange(1, num_positions // 2 + 1)
        drawn = correlation_curves(num_positions, width)
        for axes, (panel, curves) in zip(panels, drawn.items(), strict=True):
            for name, values in curves.items():
                axes.plot(distances, values[distances], label=name, **looks[name])
            axes.set(title=titles[panel], xlabel="distance between positions", xscale="log")
            axes.set(xlim=(1, num_positions // 2), ylim=(0, 1.02))
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axes.grid(True)
        panels[0].set_ylabel("mean $|r|$")
        panels[1].legend(*panels[0].get_legend_handles_labels(), loc="center", bbox_to_anchor=(0.55, 0.55))


def _check_sizes(num_positions: int, width: int):
    for name, value in (("num_positions", num_positions), ("width", width)):
        if value < 4:
            raise UserError(f"{name} must be at least 4, not {value}")


def _position_image(figure: Figure, axes: Axes, matrix: np.ndarray, limit: float, title: str, unit: str):
    axes.set(title=title, xlabel="position")
    axes.set_facecolor("#BBBBBB")  # shows where the value is not defined
    colours = colormaps["viridis"].resampled(LEVELS)
    # A pixel for several pairs shows the mean of their values, not of their colours.
    image = axes.imshow(matrix, cmap=colours, vmin=0, vmax=limit, interpolation_stage="data")
    extend = "max" if np.nanmax(matrix) > 1.01 * limit else "neither"
    bar = figure.colorbar(image, ax=axes, extend=extend, location="bottom", aspect=22, pad=0.02)
    bar.set_label(unit)
