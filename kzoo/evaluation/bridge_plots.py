"""Attention of the bridge's heads to the words of a sentence."""

import os

import numpy as np

from kzoo.evaluation.figures import picture, without_marks


def plot_bridge(attention: dict[str, tuple[list[str], np.ndarray]], path: str | os.PathLike):
    """Draw A, heads × words, for a sentence in each language.

    Args:
        attention: for each title, such as a language, the sentence's subwords and its A `(k, S)`.
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
