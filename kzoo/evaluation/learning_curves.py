"""Learning curves of runs, as in the PoPE paper's Figure 4, for `kzoo plot curves`.

They are read from `history.csv`, to which a run adds a line after each epoch.
"""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.ticker import MaxNLocator

from kzoo.errors import UserError
from kzoo.evaluation.figures import look, picture
from kzoo.evaluation.scores import markdown_table
from kzoo.hub.integrity import read_object


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


def read_history(path: str | Path) -> dict[str, list[float]]:
    """Return the columns epoch, val_bleu and loss of a run's `history.csv`.

    Args:
        path: CSV file with a header line; other columns are ignored.

    Raises:
        UserError: the file cannot be read, lacks a column or has no epoch, or a value is not a number.
    """
    try:
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        columns = {name: [float(row[name]) for row in rows] for name in ("epoch", "val_bleu", "loss")}
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from None
    except KeyError as error:
        raise UserError(f"{path}: no column {error.args[0]}; is it a run's history.csv?") from None
    except (ValueError, TypeError, csv.Error) as error:  # no UTF-8, no number, a line that is cut off
        raise UserError(f"{path} is damaged ({error})") from None
    if not rows:
        raise UserError(f"{path}: no epoch is finished yet")
    return columns


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
                    axes.plot(run["epoch"], run[column], **look(number), marker=marker, markersize=3)
            axes.set(title=title, xlabel="epoch")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.grid(True)
        figure.legend(places[0].lines, list(runs), loc="outside lower center", ncols=across)


def loss_name(history: Path) -> str:
    """Return the unit of a run's loss and its extra terms, from the recipe beside its history.

    Runs without a recipe are assumed to have the same loss.
    """
    recipe = history.with_name("recipe.json")
    settings = read_object(recipe) if recipe.is_file() else {}
    unit = "nats per sentence" if settings.get("languages") else "nats per token" if settings else "nats"
    terms = {
        "smoothing": settings.get("label_smoothing"),
        "penalty ×": (settings.get("model") or {}).get("penalty_weight"),
        "consistency ×": settings.get("consistency"),
    }
    return ", ".join([unit, *(f"{name} {value:g}" for name, value in terms.items() if value)])
