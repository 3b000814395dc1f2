"""Figures of glyphs: a table of them, the nearest characters, and the activations of a softmax encoder.

Reference: Broscheit et al. 2018, "Learning Distributional Token Representations from Visual Features",
https://aclanthology.org/W18-3025
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.metrics.pairwise import cosine_similarity

from kzoo.errors import UserError
from kzoo.evaluation.figures import COLOURS, picture

GAP = 2  # pixels between glyphs
NEAREST = 10  # characters drawn beside a query
FEATURES, MEMBERS = 20, 24  # maximum number of features drawn, and of characters for each


def plot_glyphs(glyphs: np.ndarray, path: str | Path, columns: int = 40) -> None:
    """Draw a table of glyphs, row by row.

    Args:
        glyphs: `(N, 22, 22)`, as `kzoo.text.render_glyphs` returns them.
        path: picture to write, .png, .svg or .pdf.
        columns: glyphs per row.

    Raises:
        UserError: no glyphs, or a file that cannot be written.
    """
    if not len(glyphs):
        raise UserError("there are no glyphs to draw")
    image = _tiled(glyphs, columns)
    with picture(path, size=(6.6, 6.6 * image.shape[0] / image.shape[1])) as figure:
        _show(figure, image)


def nearest_characters(
    character: str, characters: Sequence[str], vectors: np.ndarray, count: int = 10
) -> list[tuple[str, float]]:
    """Return the characters whose vectors are nearest to a character's, nearest first, and their cosines.

    Args:
        character: one of `characters`.
        characters: a vocabulary; entries longer than a character are skipped.
        vectors: `(V, D)`, for example from `GlyphEmbedding.bake()`.
        count: number of characters.

    Raises:
        UserError: the character is not in the vocabulary.

    Example:

    >>> nearest_characters("人", ["人", "入", "口"], np.array([[1, 0], [0.9, 0.1], [0, 1]]), count=1)
    [('入', 0.993...)]
    """
    if character not in characters:
        raise UserError(f"{character!r} is not in the vocabulary of {len(characters):,} characters")
    vectors = np.asarray(vectors, "float64")
    query = vectors[list(characters).index(character)]
    cosines = cosine_similarity([query], vectors)[0]
    order = np.argsort(-cosines, kind="stable")
    others = [i for i in order if len(characters[i]) == 1 and characters[i] != character]
    return [(characters[i], float(cosines[i])) for i in others[:count]]


def plot_nearest(
    queries: Sequence[str],
    characters: Sequence[str],
    glyphs: np.ndarray,
    encoders: Mapping[str, np.ndarray],
    path: str | Path,
) -> None:
    """Draw each query and the characters nearest to it, one row per encoder.

    Args:
        queries: characters.
        characters: the vocabulary.
        glyphs: `(V, 22, 22)`. Their bitmaps.
        encoders: the vectors `(V, D)` of each encoder, by its name.
        path: picture to write, .png, .svg or .pdf.

    Raises:
        UserError: a query is not in the vocabulary, there is no query, or the file cannot be written.
    """
    rows, labels = [], []
    number = {character: i for i, character in enumerate(characters)}
    for query in queries:
        if rows:
            rows.append([])
            labels.append("")
        for name, vectors in encoders.items():
            near = nearest_characters(query, characters, vectors, NEAREST)
            rows.append([number[query], *(number[character] for character, _ in near)])
            labels.append(name)
    _plot_rows(rows, labels, glyphs, path, f"A character, and the {NEAREST} nearest to it")


def activation_magnitudes(
    sentences: Sequence[str], characters: Sequence[str], activations: np.ndarray, top: int = 3
) -> np.ndarray:
    """Return the greatest activations of each character of a text, `(N, top)`, the greatest first.

    The paper's Figure 1 is their distribution over 350 random training sentences. Every occurrence of a
    character counts; white space and characters outside the vocabulary do not.

    Args:
        sentences: the text.
        characters: the vocabulary.
        activations: `(V, F)`, as `GlyphCharEncoder.activations` returns them.
        top: int. Number of activations per character.

    Raises:
        UserError: the text has no character of the vocabulary.

    Example:

    >>> activation_magnitudes(["人人"], ["口", "人"], np.array([[1, 0], [0.3, 0.7]]), top=2)
    array([[0.7, 0.3],
           [0.7, 0.3]])
    """
    number = {character: i for i, character in enumerate(characters) if not character.isspace()}
    text = [number[character] for sentence in sentences for character in sentence if character in number]
    if not text:
        raise UserError("the text has no character of the vocabulary")
    return -np.sort(-np.asarray(activations), axis=1)[text, :top]


def magnitude_quartiles(magnitudes: np.ndarray) -> list[dict[str, float]]:
    """Return the mean, the quartiles and the median of each column of `activation_magnitudes`."""
    quartiles = np.percentile(magnitudes, (25, 50, 75), axis=0)  # (3, top)
    names = ("mean", "lower_quartile", "median", "upper_quartile")
    rows = np.concatenate([magnitudes.mean(axis=0, keepdims=True), quartiles]).T
    return [dict(zip(names, map(float, row), strict=True)) for row in rows]


def plot_magnitudes(magnitudes: np.ndarray, path: str | Path) -> None:
    """Draw the distribution of each column of `activation_magnitudes`: the paper's Figure 1.

    Boxes show quartiles and median, triangles the mean, whiskers the percentiles 5 and 95.

    Args:
        magnitudes: `(N, top)`.
        path: picture to write, .png, .svg or .pdf.

    Raises:
        UserError: a file that cannot be written.
    """
    with picture(path, size=(4.4, 3.0)) as figure:
        axes = figure.subplots()
        axes.boxplot(
            magnitudes, whis=(5, 95), showmeans=True, showfliers=False, medianprops={"color": COLOURS[1]}
        )
        axes.set(ylim=(0, 1), xlabel="rank of the activation", ylabel="softmax activation")
        axes.set_title(f"The {magnitudes.shape[1]} greatest activations of {len(magnitudes):,} characters")


def top_activations(
    sentences: Sequence[str], characters: Sequence[str], activations: np.ndarray, top: int = 3
) -> dict[int, list[str]]:
    """Return for each softmax feature the characters that have it among their strongest.

    Features with the most characters come first; within a feature, characters with the greatest activation.

    Args:
        sentences: the text.
        characters: the vocabulary.
        activations: `(V, F)`, as `GlyphCharEncoder.activations` returns them.
        top: int. Number of features per character.
    """
    present = {character for sentence in sentences for character in sentence}
    chosen = [i for i, character in enumerate(characters) if character in present]
    strongest = np.argsort(-activations[chosen], axis=1, kind="stable")[:, :top]
    frequent = Counter(strongest.ravel().tolist()).most_common()
    result = {}
    for feature, _ in frequent:
        members = [i for i, features in zip(chosen, strongest, strict=True) if feature in features]
        members.sort(key=lambda i: -activations[i, feature])
        result[feature] = [characters[i] for i in members]
    return result


def plot_activations(
    features: Mapping[int, Sequence[str]], characters: Sequence[str], glyphs: np.ndarray, path: str | Path
) -> None:
    """Draw the characters of the first features of `top_activations`, one feature per row.

    Args:
        features: as `top_activations` returns them.
        characters: the vocabulary.
        glyphs: `(V, 22, 22)`. Their bitmaps.
        path: picture to write, .png, .svg or .pdf.

    Raises:
        UserError: no features, or a file that cannot be written.
    """
    number = {character: i for i, character in enumerate(characters)}
    shown = list(features)[:FEATURES]
    drawn = [[number[character] for character in features[feature][:MEMBERS]] for feature in shown]
    labels = [f"feature {feature}" for feature in shown]
    _plot_rows(drawn, labels, glyphs, path, "Characters that have a softmax feature among their strongest")


def _plot_rows(rows: list[list[int]], labels: list[str], glyphs: np.ndarray, path: str | Path, title: str):
    """Draw rows of numbered glyphs, each with a label."""
    if not rows:
        raise UserError("there are no characters to draw")
    columns = max(map(len, rows))
    table = np.zeros((len(rows), columns, *glyphs.shape[1:]), "uint8")
    for row, numbers in zip(table, rows, strict=True):
        row[: len(numbers)] = glyphs[numbers]
    image = _tiled(table.reshape(-1, *glyphs.shape[1:]), columns)
    beside = 0.3 + 0.08 * max(map(len, labels))  # inches for the labels
    with picture(path, size=(5.4 + beside, 0.4 + 5.4 * image.shape[0] / image.shape[1])) as figure:
        figure.suptitle(title)
        axes = _show(figure, image)
        cell = glyphs.shape[1] + GAP
        axes.set_yticks([GAP + cell * i + glyphs.shape[1] / 2 for i in range(len(rows))], labels)
        axes.tick_params(length=0)
        axes.set_anchor("E")  # the rest of the width is for the labels


def _tiled(glyphs: np.ndarray, columns: int) -> np.ndarray:
    """Return one image of `(N, h, w)` glyphs, row by row, with a gap around each."""
    columns = min(columns, len(glyphs))
    cells = np.pad(glyphs, ((0, -len(glyphs) % columns), (GAP, 0), (GAP, 0)))
    height, width = cells.shape[1:]
    rows = cells.reshape(-1, columns, height, width).swapaxes(1, 2).reshape(-1, columns * width)
    return np.pad(rows, ((0, GAP), (0, GAP))).astype("uint8")


def _show(figure: Figure, image: np.ndarray):
    axes = figure.subplots()
    axes.imshow(image, cmap="binary", vmin=0, vmax=1, interpolation="antialiased")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    return axes
