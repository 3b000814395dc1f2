"""BLEU of each direction of a multilingual translator: scoring, tables and figures."""

import os
from collections.abc import Collection, Iterable
from dataclasses import asdict
from pathlib import Path
from statistics import fmean

from kzoo.data.corpora import Corpus
from kzoo.errors import UserError
from kzoo.evaluation.scores import SplitScores, evaluate, markdown_table
from kzoo.files import read_object, write_json


def evaluate_directions(
    translator, corpus: Corpus, split: str, directions: Iterable[tuple[str, str]], **options
) -> dict[tuple[str, str], SplitScores]:
    """Translate a split in each direction and score it against all its references, as `evaluate` does.

    Args:
        translator: a translator of several languages.
        corpus: has the split in all the languages.
        split: its name.
        directions: (source, target) pairs.
        **options: of `Translator.translate`, such as `beam_size`, `truncate` and `progress`.
    """
    return {
        (source, target): evaluate(translator, corpus, [split], source, target, **options)[0][0]
        for source, target in directions
    }


def write_directions(
    scores: dict[tuple[str, str], SplitScores],
    path: str | os.PathLike,
    unseen: Collection[tuple[str, str]] | None = None,
    **about,
):
    """Write what `evaluate_directions` returned as JSON, with further entries such as `beam_size=5`.

    `unseen` are the directions that were not trained on; `None`: unknown.
    """
    rows = []
    for (source, target), score in scores.items():
        untrained = None if unseen is None else (source, target) in unseen
        rows.append({"source": source, "target": target, "unseen": untrained, **asdict(score)})
    write_json(path, {**about, "scores": rows})


def read_directions(
    path: str | os.PathLike, lowercased: bool = False
) -> tuple[dict[tuple[str, str], float], list[tuple[str, str]]]:
    """Return BLEU by direction, and the unseen directions, from a file that `write_directions` wrote.

    Raises:
        UserError: it cannot be read or is not such a file.
    """
    name = "bleu_lowercased" if lowercased else "bleu"
    content = read_object(Path(path))
    try:
        rows = content["scores"]
        bleu = {(row["source"], row["target"]): float(row[name]) for row in rows}
        unseen = [(row["source"], row["target"]) for row in rows if row["unseen"]]
    except (KeyError, TypeError, ValueError):
        bleu = {}
    if not bleu:
        raise UserError(f"{path} has no scores by direction")
    return bleu, unseen


def direction_table(
    bleu: dict[tuple[str, str], float],
    unseen: Iterable[tuple[str, str]] = (),
    published: dict[tuple[str, str], float] | None = None,
) -> str:
    """Return BLEU by direction as a Markdown table, one row per source; unseen directions are in italics.

    Args:
        bleu: BLEU of each (source, target) direction.
        unseen: directions that were not trained on.
        published: BLEU of another system, such as a paper's, shown in parentheses.

    Example:

    >>> print(direction_table({("en", "de"): 30.0, ("de", "en"): 32.5}, unseen=[("de", "en")]))
    | from \\ to | de | en |
    | --- | ---: | ---: |
    | de |  | *32.5* |
    | en | 30.0 |  |
    """
    codes, unseen, published = _languages(bleu), set(unseen), published or {}

    def cell(*direction: str) -> str:
        if direction not in bleu:
            return ""
        score = f"*{bleu[direction]:.1f}*" if direction in unseen else f"{bleu[direction]:.1f}"
        # A paper's two decimals, rounded half up; Python makes 35.25 the even 35.2.
        return f"{score} ({published[direction] + 1e-9:.1f})" if direction in published else score

    rows = [(source, *(cell(source, target) for target in codes)) for source in codes]
    return markdown_table(("from \\ to", *codes), rows)


def summarize_directions(
    scores: dict[tuple[str, str], SplitScores], unseen: Iterable[tuple[str, str]] = ()
) -> str:
    """Return the table of BLEU, the mean over the directions, and sacreBLEU's signature for each target."""
    cased, lowercased = (
        fmean(getattr(score, name) for score in scores.values()) for name in ("bleu", "bleu_lowercased")
    )
    split = next(iter(scores.values())).split
    targets = {}
    for (_, target), score in scores.items():
        targets.setdefault(score.signatures["bleu"], {})[target] = None
    return "\n".join(
        [
            direction_table({direction: score.bleu for direction, score in scores.items()}, unseen),
            f"{split}: mean BLEU {cased:.1f} (lowercased: {lowercased:.1f}) of {len(scores)} directions",
            *(f"BLEU into {', '.join(codes)}: `{signature}`" for signature, codes in targets.items()),
        ]
    )


def plot_directions(
    bleu: dict[tuple[str, str], float],
    unseen: Iterable[tuple[str, str]],
    path: str | os.PathLike,
    lowercased: bool = False,
):
    """Draw BLEU by direction as a matrix; unseen directions have a dashed frame.

    Args:
        bleu: BLEU of each (source, target) direction.
        unseen: directions that were not trained on.
        path: PNG, SVG or PDF file.
        lowercased: whether BLEU is that of lowercased text, for the label.
    """
    from matplotlib.patches import Rectangle  # not needed for scoring

    from kzoo.evaluation.figures import picture

    codes, unseen = _languages(bleu), set(unseen)
    name = "BLEU, lowercased" if lowercased else "BLEU, cased"
    with picture(path, size=(max(0.9 * len(codes) + 1.2, 3.6), 0.8 * len(codes) + 0.9)) as figure:
        axes = figure.subplots()
        values = [[bleu.get((source, target), float("nan")) for target in codes] for source in codes]
        image = axes.imshow(values, cmap="Blues", vmin=0)
        light = 0.68 * max(bleu.values())  # up to here, dark letters are easier to read than white ones
        for (source, target), score in bleu.items():
            x, y = codes.index(target), codes.index(source)
            colour = "white" if score > light else "#222222"
            axes.text(x, y, f"{score:.1f}", ha="center", va="center", color=colour)
            if (source, target) in unseen:
                frame = {"fill": False, "edgecolor": "#D55E00", "linestyle": "--", "linewidth": 1.4}
                axes.add_patch(Rectangle((x - 0.46, y - 0.46), 0.92, 0.92, **frame))
        axes.set_xticks(range(len(codes)), codes)
        axes.set_yticks(range(len(codes)), codes)
        axes.set_xlabel("to")
        axes.set_ylabel("from")
        figure.suptitle("BLEU by direction" + (" (dashed: not trained on)" if unseen else ""))
        figure.colorbar(image, shrink=0.8, label=name)


def _languages(bleu: dict[tuple[str, str], float]) -> list[str]:
    return sorted({code for direction in bleu for code in direction})
