"""The PoPE paper's figures: position encodings, Legendre polynomials, and how similar positions are.

    python -m training.pope.figures positions FILE --encoding sine     Figure 1; with pope, Figure 3
    python -m training.pope.figures polynomials FILE                   Figure 2
    python -m training.pope.figures correlation FILE                   Figure 3
    python -m training.pope.figures products FILE PRESET …             Section 2.3, of trained models
    kzoo plot curves FILE RUN …                                        Figure 4

FILE ends in .png, .svg or .pdf. Reference: Aggarwal 2024, "PoPE: Legendre Orthogonal Polynomials Based
Position Encoding for Large Language Models", https://arxiv.org/abs/2405.04585
"""

from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import typer
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.polynomial.legendre import legvander

from kzoo.cli import main
from kzoo.cli.console import start_backend
from kzoo.errors import UserError
from kzoo.evaluation.figures import look, picture
from kzoo.files import check_writable
from kzoo.positions import pope_table, sine_table
from kzoo.presets.shelf import load, locate
from training.pope.positions import (
    POSITIONS,
    correlation,
    first_high_dimension,
    mean_by_distance,
    mutual_information,
)

ENCODINGS = {"sine": sine_table, "pope": pope_table}
TITLES = {"sine": "Sinusoidal encoding", "pope": "PoPE, Legendre polynomials"}
SHOWN = 128  # encodings drawn
HIGHEST_ORDER = 5  # highest order of the polynomials drawn
LEVELS = 48  # of a colour scale: no steps are visible, and a PNG has 290 KB; with 256 levels, 500 KB

app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__)
Picture = Annotated[Path, typer.Argument(help="PNG, SVG or PDF file.")]
Positions = Annotated[int, typer.Option("--positions", min=4, help="Number of positions compared.")]
Width = Annotated[int, typer.Option(min=4, help="Number of features of an encoding.")]
Threshold = Annotated[
    float,
    typer.Option(
        min=0, max=1, help="Mean |correlation| of sine's positions over the high dimensions; 0.99 is ours."
    ),
]


@app.command("positions")
def plot_positions(
    path: Picture,
    encoding: Literal["sine", "pope"] = "pope",
    num_positions: Positions = 512,
    width: Width = 512,
    normalize: Annotated[
        bool, typer.Option(help="PoPE in orthonormal form, as in the small presets.")
    ] = False,
    threshold: Threshold = 0.99,
):
    """Draw an encoding and how similar its positions are: the paper's Figure 1 (sine) or 3 (pope).

    Four images: the first encodings; the mutual information of positions over the high dimensions, those
    over which sine's positions correlate; the correlation of positions over all features, and over the high
    dimensions. The last three have the same scales for sine and PoPE. Normalization changes only the first
    image.
    """
    if normalize and encoding != "pope":
        raise UserError(f"only 'pope' can be normalized, not {encoding!r}")
    first_high = first_high_dimension(sine_table(POSITIONS, width), threshold)
    with picture(path, size=(6.6, 5.0), formulas=True) as figure:
        options = {"normalize": True} if normalize else {}
        encodings = ENCODINGS[encoding](num_positions, width, **options)
        high, features = encodings[:, first_high:], f"$i \\geq {first_high}$"
        named = f"{TITLES[encoding]}{', normalized' if normalize else ''}"
        figure.suptitle(f"{named}, $L$ = {num_positions} positions, $D$ = {width} features")
        panels = figure.subplot_mosaic("aaa;bcd", height_ratios=(1, 0.95))

        # Not more than the rows of pixels, to avoid moiré patterns.
        first = encodings[:SHOWN]
        # Few values of a plain PoPE come near its limits ±1, so the scale fits 98 % of them.
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
        _position_image(figure, panels["b"], nats, 2, f"(b) mutual information,\n{features}", "nats")
        everywhere = np.abs(correlation(encodings))
        _position_image(figure, panels["c"], everywhere, 1, "(c) correlation,\nall features", "$|r|$")
        within = np.abs(correlation(high))
        _position_image(figure, panels["d"], within, 1, f"(d) correlation,\n{features}", "$|r|$")
        panels["b"].set_ylabel("position")


@app.command("polynomials")
def plot_polynomials(path: Picture):
    """Draw the Legendre polynomials P_0 … P_5 on [-1, 1]: the paper's Figure 2."""
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


def correlation_curves(num_positions: int, width: int, first_high: int) -> dict[str, dict[str, np.ndarray]]:
    """Return the mean |correlation| of two positions against their distance: the paper's Figure 3.

    Over all features, PoPE appears twice: as in the paper, and without feature 0, which is at x = -1. There
    every P_n is ±1, while it shrinks as 1/sqrt(n) elsewhere, so feature 0 alone correlates all positions of
    high order.

    Args:
        num_positions: positions `L`.
        width: features `D`.
        first_high: first feature of the high dimensions.

    Returns:
        For "all features" and for "high dimensions", the curves by name, each `(L,)`.
    """
    sine, pope = sine_table(num_positions, width), pope_table(num_positions, width)
    panels = {
        "all features": {"sine": sine, "PoPE": pope, "PoPE without feature 0": pope[:, 1:]},
        "high dimensions": {"sine": sine[:, first_high:], "PoPE": pope[:, first_high:]},
    }
    return {
        panel: {name: mean_by_distance(correlation(encodings)) for name, encodings in curves.items()}
        for panel, curves in panels.items()
    }


@app.command("correlation")
def plot_correlation(
    path: Picture, num_positions: Positions = 512, width: Width = 512, threshold: Threshold = 0.99
):
    """Draw the correlation of positions against their distance, for sine and PoPE: the paper's Figure 3."""
    first_high = first_high_dimension(sine_table(POSITIONS, width), threshold)
    high = f"(b) high dimensions, $i \\geq {first_high}$"
    titles = {"all features": "(a) all features", "high dimensions": high}
    looks = {"sine": look(1), "PoPE": look(0), "PoPE without feature 0": look(2)}
    with picture(path, size=(6.6, 3.0), formulas=True) as figure:
        figure.suptitle(f"Correlation of positions' encodings, $L$ = {num_positions}, $D$ = {width}")
        panels = figure.subplots(1, 2, sharey=True)
        # Up to half the length, so that each mean is over at least half the positions.
        distances = np.arange(1, num_positions // 2 + 1)
        drawn = correlation_curves(num_positions, width, first_high)
        for axes, (panel, curves) in zip(panels, drawn.items(), strict=True):
            for name, values in curves.items():
                axes.plot(distances, values[distances], label=name, **looks[name])
            axes.set(title=titles[panel], xlabel="distance between positions", xscale="log")
            axes.set(xlim=(1, num_positions // 2), ylim=(0, 1.02))
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axes.grid(True)
        panels[0].set_ylabel("mean $|r|$")
        panels[1].legend(*panels[0].get_legend_handles_labels(), loc="center", bbox_to_anchor=(0.55, 0.55))


@app.command("products")
def plot_trained_products(
    path: Picture,
    presets: Annotated[
        list[str], typer.Argument(help="Trained presets or runs with sine or PoPE positions.")
    ],
    threshold: Threshold = 0.99,
    num_positions: Annotated[
        int, typer.Option("--positions", min=4, max=300, help="Number of positions drawn and averaged.")
    ] = 64,
):
    """Draw what positions alone add to attention scores, by low and high dimensions, and print a table."""
    for preset in presets:
        locate(preset)
    check_writable(path)
    start_backend()
    from training.pope.products import plot_products, product_table, trained_products

    models = {preset.rstrip("/"): trained_products(load(preset), threshold) for preset in presets}
    plot_products(models, path, num_positions)
    print(product_table(models, num_positions))


def _position_image(figure: Figure, axes: Axes, matrix: np.ndarray, limit: float, title: str, unit: str):
    axes.set(title=title, xlabel="position")
    axes.set_facecolor("#BBBBBB")  # where the value is not defined
    colours = colormaps["viridis"].resampled(LEVELS)
    # A pixel of several pairs shows the mean of their values, not of their colours.
    image = axes.imshow(matrix, cmap=colours, vmin=0, vmax=limit, interpolation_stage="data")
    extend = "max" if np.nanmax(matrix) > 1.01 * limit else "neither"
    bar = figure.colorbar(image, ax=axes, extend=extend, location="bottom", aspect=22, pad=0.02)
    bar.set_label(unit)


if __name__ == "__main__":
    main(app)
