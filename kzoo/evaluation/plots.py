"""Figures of `kzoo plot`: runs' learning curves, and attention to a sentence or a picture.

Learning curves are read from `history.csv`, to which a run adds a line after each epoch.
"""

import csv
import math
import os
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.ticker import MaxNLocator

from kzoo.errors import UserError
from kzoo.evaluation.figures import look, picture, without_marks
from kzoo.evaluation.scores import markdown_table
from kzoo.files import read_object

VEIL = (0.54, 0.56, 0.58, 0.85)  # dims unattended regions: a grey that is visible on black and on white


def read_labels(histories: Sequence[str]) -> dict[str, Path]:
    """Return the runs' histories by label, as `plot_learning_curves` takes them.

    Args:
        histories: `LABEL=PATH` or `PATH` each, where the path is a run's folder or its `history.csv`.
            The default label is the name of the run's folder, or of the file if it has another name.

    Raises:
        UserError: two runs have the same label.
    """
    labelled: dict[str, Path] = {}
    for given in histories:
        label, equals, path = given.partition("=")
        if not equals or Path(given).exists():  # a path may hold an equals sign
            label, path = "", given
        file = Path(path) / "history.csv" if Path(path).is_dir() else Path(path)
        label = label or (file.resolve().parent.name if file.name == "history.csv" else file.stem)
        if label in labelled:
            raise UserError(f"{given}: there is already a run named {label!r}; name this one as LABEL={path}")
        labelled[label] = file
    return labelled


def read_history(
    path: str | Path, columns: Sequence[str] = ("epoch", "val_bleu", "loss")
) -> dict[str, list[float]]:
    """Return columns of a run's `history.csv`. NaN stands for the score of an epoch that was not scored.

    Args:
        path: CSV file with a header line.
        columns: their names; others are ignored.

    Raises:
        UserError: the file cannot be read, lacks a column or has no epoch, or a value is not a number.
    """
    try:
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        values = {name: [row[name] for row in rows] for name in columns}
        found = {name: [math.nan if v == "" else float(v) for v in some] for name, some in values.items()}
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from None
    except KeyError as error:
        raise UserError(f"{path}: no column {error.args[0]}; is it a run's history.csv?") from None
    except (ValueError, TypeError, csv.Error) as error:  # not UTF-8, not a number, or a truncated line
        raise UserError(f"{path} is damaged ({error})") from None
    if not rows:
        raise UserError(f"{path}: no epoch is finished yet")
    return found


def reach_table(histories: Mapping[str, str | Path], thresholds: Sequence[float]) -> str:
    """Return the epoch in which each run first reached each validation BLEU, as a Markdown table.

    Args:
        histories: run label → its `history.csv`; one row each.
        thresholds: BLEU points, as the history has them; one column each. "–" means never.

    Raises:
        UserError: as for `read_history`.
    """
    rows = []
    for label, path in histories.items():
        history = read_history(path)
        scored = list(zip(history["epoch"], history["val_bleu"], strict=True))
        reached = [next((epoch for epoch, bleu in scored if bleu >= least), None) for least in thresholds]
        rows.append((label, *("–" if epoch is None else f"{epoch:.0f}" for epoch in reached)))
    return markdown_table(("BLEU", *(f"{threshold:g}" for threshold in thresholds)), rows)


def plot_learning_curves(histories: Mapping[str, str | Path], path: str | Path) -> None:
    """Draw validation BLEU and training loss of runs against the epoch, as in the PoPE paper's Figure 4.

    Each kind of loss has its own axes, because a loss per sentence and one per token cannot be compared.

    Args:
        histories: run label → its `history.csv`, at least one; drawn in this order.
        path: picture to write, .png, .svg or .pdf.

    Raises:
        UserError: a history that `read_history` rejects, or a file that cannot be written.
    """
    runs = {label: read_history(file) for label, file in histories.items()}
    losses = {label: loss_name(Path(file)) for label, file in histories.items()}
    panels = [("val_bleu", "validation BLEU", None)]
    panels += [("loss", f"training loss, {loss}", loss) for loss in dict.fromkeys(losses.values())]
    across = max(1, min(3, 33 * len(panels) // max(map(len, runs))))  # names in a row of the legend
    with picture(path, size=(3.3 * len(panels), 2.9 + 0.2 * -(-len(runs) // across))) as figure:
        places = figure.subplots(1, len(panels))
        for axes, (column, title, loss) in zip(places, panels, strict=True):
            for number, (label, run) in enumerate(runs.items()):
                if loss in (None, losses[label]):
                    # A line through a single point would be invisible.
                    marker = "o" if len(run["epoch"]) < 20 else ""
                    values = np.array(run[column])
                    known = ~np.isnan(values)
                    axes.plot(
                        np.array(run["epoch"])[known],
                        values[known],
                        **look(number),
                        marker=marker,
                        markersize=3,
                    )
            axes.set(title=textwrap.fill(title, 40), xlabel="epoch")  # a panel has room for 43
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
            axes.grid(True)
        figure.legend(places[0].lines, list(runs), loc="outside lower center", ncols=across)


def loss_name(history: Path) -> str:
    """Return the unit of a run's loss and its extra terms, from the recipe beside its history.

    Runs without a recipe are assumed to have the same loss.
    """
    recipe = history.with_name("recipe.json")
    settings = read_object(recipe) if recipe.is_file() else {}
    unit = "nats per sentence" if settings.get("languages") else "nats per token" if settings else "nats"
    model = settings.get("model") or {}
    bridge = str(settings.get("preset")).startswith("attention_bridge_") and model.get("bridge", True)
    saved = history.with_name("preset") / "config.json"
    saved = read_object(saved).get("config", {}) if saved.is_file() else {}
    usual = saved.get("penalty_weight", 0.015625) if bridge else None  # the builders' default today
    terms = {
        "smoothing": settings.get("label_smoothing"),
        "penalty ×": model.get("penalty_weight", usual),
        "consistency ×": settings.get("consistency"),
    }
    return ", ".join([unit, *(f"{name} {value:g}" for name, value in terms.items() if value)])


def plot_bridge(attention: dict[str, tuple[list[str], np.ndarray]], path: str | os.PathLike):
    """Draw the bridge's attention A, heads × subwords, for one sentence or several.

    Args:
        attention: by title, such as a language: a sentence's subwords and its A `(k, S)`.
        path: PNG, SVG or PDF file.
    """
    longest = max(len(words) for words, _ in attention.values())
    heads = max(len(scores) for _, scores in attention.values())
    size = (max(4.0, 0.42 * longest + 1.5), len(attention) * (0.22 * heads + 1.1))
    with picture(path, size) as figure:
        rows = figure.subplots(len(attention), squeeze=False)[:, 0]
        for axes, (title, (words, scores)) in zip(rows, attention.items(), strict=True):
            image = axes.imshow(scores, cmap="Blues", vmin=0, vmax=1, aspect="auto")
            axes.set_xticks(range(len(words)), without_marks(words), rotation=60)
            axes.set_yticks(range(len(scores)), range(1, len(scores) + 1))
            axes.set_ylabel("head")
            axes.set_title(title)
        figure.colorbar(image, ax=rows.tolist(), label="attention", shrink=0.7)


def plot_image_attention(
    words: list[str], scores: np.ndarray, path: str | os.PathLike, image: np.ndarray | None = None
):
    """Draw a picture's attention to the subwords: one strip per layer, with one row per head.

    Args:
        words: the sentence's S subwords.
        scores: `(layers, H, R, S)`, as returned by `Translator.image_attention`. The mean over the R regions
            is drawn.
        path: PNG, SVG or PDF file.
        image: the picture `(h, w, 3)` to draw next to them, or `None`.
    """
    layers, heads = scores.shape[:2]
    size = (
        max(4.5, 0.45 * len(words) + (3.0 if image is not None else 1.0)),
        layers * (0.2 * heads + 0.35) + 0.8,
    )
    with picture(path, size) as figure:
        left, right = figure.subfigures(1, 2, width_ratios=(1, 3)) if image is not None else (None, figure)
        if image is not None:
            axes = left.subplots()
            axes.imshow(image)
            axes.set_axis_off()
        # Attention is spread over many words: a scale up to 1 would show little.
        most = scores.mean(axis=2).max()
        rows = right.subplots(layers, squeeze=False)[:, 0]
        for number, (axes, layer) in enumerate(zip(rows, scores, strict=True), 1):
            drawn = axes.imshow(layer.mean(axis=1), cmap="Blues", vmin=0, vmax=most, aspect="auto")
            axes.set_yticks(range(heads), range(1, heads + 1))
            axes.set_xticks([])
            axes.set_ylabel(f"layer {number}\nhead")
        rows[0].xaxis.tick_top()  # the subwords, one above each column
        above = {"rotation": 45, "ha": "left", "rotation_mode": "anchor"}
        rows[0].set_xticks(range(len(words)), without_marks(words), **above)
        right.colorbar(drawn, ax=rows.tolist(), label="attention", shrink=0.8)


def plot_regions(
    scores: np.ndarray,
    image: np.ndarray,
    words: list[str],
    path: str | os.PathLike,
    image_shape: tuple[int, ...],
):
    """Draw the picture once for each subword, dimming the regions that do not attend to it.

    The undimmed picture comes first. The less a region is dimmed, the more it attends to the subword. All
    subwords share one scale.

    Args:
        scores: `(layers, H, R, S)`. The mean over layers and heads is drawn.
        image: the picture `(h, w, 3)`.
        words: the S subwords.
        path: PNG, SVG or PDF file.
        image_shape: the model's `image_shape`, which determines the layout of the regions.

    Raises:
        UserError: features of whole pictures, or of regions that do not form a square.
    """
    height, width = image.shape[:2]
    by_word = scores.mean(axis=(0, 1)).reshape(*_grid(scores.shape[2], image_shape), len(words))
    columns = min(len(words) + 1, 6)
    rows = -(-(len(words) + 1) // columns)
    most, place = by_word.max(), (0, width, height, 0)
    with picture(path, (1.3 * columns + 0.8, (1.3 * height / width + 0.2) * rows)) as figure:
        places = figure.subplots(rows, columns, squeeze=False)
        for axes in places.ravel():
            axes.set_axis_off()
        places[0, 0].imshow(image, extent=place)
        panels = zip(places.ravel()[1:], without_marks(words), np.moveaxis(by_word, -1, 0), strict=False)
        for axes, word, weights in panels:
            axes.imshow(image, extent=place)
            veil = np.full((*weights.shape, 4), VEIL)
            veil[..., 3] *= 1 - weights / most
            axes.imshow(veil, extent=place)
            axes.set_title(word)
        scale = ScalarMappable(Normalize(0, most), LinearSegmentedColormap.from_list("veil", [VEIL, "white"]))
        figure.colorbar(scale, ax=places.ravel().tolist(), label="attention", shrink=0.8)


def _grid(regions: int, image_shape: tuple[int, ...]) -> tuple[int, int]:
    """Return the numbers of rows and columns of a picture's regions.

    A model that reads pictures resizes them to its `(h, w, 3)`, and its regions are square. Features
    `(R, D_img)` come from networks whose pictures are square: VGG's 49 regions are 7×7.
    """
    if len(image_shape) == 1:
        raise UserError(
            f"the model reads features {image_shape} of whole pictures: there are no regions to draw, only "
            "its attention to the words"
        )
    height, width = image_shape[:2] if len(image_shape) == 3 else (1, 1)
    down = round((regions * height / width) ** 0.5)
    if down * down * width != regions * height:
        raise UserError(f"{regions} regions do not form a square, so their places in the picture are unknown")
    return down, regions // down
