"""What positions alone add to a trained Transformer's attention scores: the last term of Eq. 4.

Reference: Aggarwal 2024, Sections 2.2 and 2.3, https://arxiv.org/abs/2405.04585
"""

from dataclasses import dataclass
from pathlib import Path

import keras
import numpy as np
from matplotlib import colormaps

from kzoo.errors import UserError
from kzoo.evaluation.figures import picture
from kzoo.evaluation.scores import markdown_table
from kzoo.positions import sine_table
from training.pope.positions import POSITIONS, blocks, correlation, first_high_dimension, position_products

PAIR = (2, 299)  # the positions of Section 2.2
LEVELS = 48  # of a colour scale
HIGHEST = 99  # percentile of the products at the end of the colour scale


@dataclass
class Products:
    """The products of positions in a translator's first encoder layer.

    Attributes:
        encodings: `(L, D)`, as they enter the attention.
        parts: `(H, L, L)` for all dimensions, the low ones, the high ones, and low with high.
        first_high: first feature of the high dimensions.
    """

    encodings: np.ndarray
    parts: dict[str, np.ndarray]
    first_high: int


def trained_products(translator, threshold: float = 0.99) -> Products:
    """Return the products of positions in the first encoder layer of a translator.

    Later layers have no term of positions alone, because their input is not a sum of tokens and positions.
    For all encodings, the high dimensions are those of sine at the model's width, so that models are
    comparable.

    Args:
        translator: a Transformer whose encoder adds sine or PoPE positions to looked-up embeddings.
        threshold: mean |correlation| of sine's positions over the high dimensions.

    Raises:
        UserError: another translator, or a threshold that sine's features do not reach.
    """
    backbone = translator.backbone
    encodings = entering_encodings(backbone, POSITIONS)  # may exceed the translator's maximum length
    attention = backbone.encoder_layers[0].attention
    width, sizes = encodings.shape[1], (3, attention.num_heads, attention.key_dim)
    query, key, _ = np.moveaxis(_array(attention.kernel).reshape(width, *sizes), 1, 0)
    first_high = first_high_dimension(sine_table(POSITIONS, width), threshold)
    return Products(encodings, position_products(encodings, query, key, first_high), first_high)


def entering_encodings(backbone: keras.Model, num_positions: int) -> np.ndarray:
    """Return the encodings as they enter the first encoder layer's attention, `(L, D)`.

    In a post-norm layer, they are unchanged. In a pre-norm layer, layer normalization comes first: it
    subtracts a token's mean, divides by its standard deviation and scales. The same is done to the encodings
    here, with the root mean square of the standard deviations of all embeddings at a position.

    Raises:
        UserError: the backbone adds neither sine nor PoPE to looked-up embeddings.
    """
    settings, added = backbone.get_config(), getattr(backbone, "source_positions", None)
    if settings.get("position_encoding") not in ("sine", "pope") or added is None:
        raise UserError(
            "the products of positions are those of sine or PoPE added to the embeddings, but this model has "
            f"position_encoding={settings.get('position_encoding')!r}"
        )
    if settings["source_embedding"] != "lookup":
        raise UserError("the products of positions need a source embedding that is looked up, not glyphs")
    config = added.get_config()
    longer = {"max_length": num_positions} if "max_length" in config else {}
    layer = type(added).from_config({**config, **longer})  # PoPE's values do not depend on max_length
    encodings = _array(layer(np.zeros((1, num_positions, backbone.width), "float32")))[0]
    if settings["norm"] == "post":
        return encodings
    norm = backbone.encoder_layers[0].attention_residual.layer_norm
    tokens = _array(backbone.source_embedding.embeddings) * backbone.width**0.5
    tokens -= tokens.mean(axis=1, keepdims=True)
    encodings -= encodings.mean(axis=1, keepdims=True)
    # Mean over tokens of |token + position|² / D, without an array of all pairs.
    variance = (
        (tokens**2).mean() + (encodings**2).mean(axis=1) + 2 * (encodings * tokens.mean(0)).mean(axis=1)
    )
    return encodings / np.sqrt(variance + norm.epsilon)[:, None] * _array(norm.gamma)


def product_table(models: dict[str, Products], num_positions: int = 64) -> str:
    """Return a Markdown table of the products' sizes, in units of the scores before softmax.

    Includes the deviation over a query's keys, because a value equal for all keys changes no weight.

    Args:
        models: the products by the name of their model, with at least 300 positions.
        num_positions: number of first positions for means and deviations: about the length of training
            sentences, because later positions are not trained.
    """
    m, n = PAIR
    rows = []
    for name, products in models.items():
        for part, values in products.parts.items():
            features = blocks(products.first_high).get(part)
            related = f"{correlation(products.encodings[:, features])[m, n]:.2f}" if features else ""
            learned = values[:, :num_positions, :num_positions]
            sizes = np.abs(learned).mean(), learned.std(axis=2).mean(), np.abs(values[:, m, n]).mean()
            rows.append([name, part, *(f"{size:.2f}" for size in sizes), related])
    head = ["model", "dimensions", "mean size", "deviation over a query's keys"]
    table = markdown_table([*head, f"size, {m} and {n}", f"correlation, {m} and {n}"], rows, left=2)
    firsts = sorted({(p.first_high, p.encodings.shape[1]) for p in models.values()})
    return "\n".join([table, "", *(f"D = {width}: high from feature {first}" for first, width in firsts)])


def plot_products(models: dict[str, Products], path: str | Path, num_positions: int = 64) -> None:
    """Draw each model's products, means over the heads: of all dimensions, of the low and of the high ones.

    Args:
        models: the products by the name of their model.
        path: picture to write, .png, .svg or .pdf.
        num_positions: number of first positions to draw.

    Raises:
        UserError: a file that cannot be written.
    """
    shown = ("all", "low", "high")
    with picture(path, size=(6.6, 0.4 + 2.1 * len(models)), formulas=True) as figure:
        figure.suptitle("Products of positions in the first encoder layer, mean over the heads")
        panels = figure.subplots(len(models), len(shown), squeeze=False, sharex=True, sharey=True)
        drawn = slice(num_positions)
        means = {
            name: [p.parts[part].mean(axis=0)[drawn, drawn] for part in shown] for name, p in models.items()
        }
        limit = np.percentile(np.abs([part for parts in means.values() for part in parts]), HIGHEST)
        colours = colormaps["RdBu_r"].resampled(LEVELS)
        for row, (name, parts) in zip(panels, means.items(), strict=True):
            for axes, part, values in zip(row, shown, parts, strict=True):
                image = axes.imshow(values, cmap=colours, vmin=-limit, vmax=limit, interpolation_stage="data")
                first = models[name].first_high
                ends = {"all": "", "low": f", $i < {first}$", "high": f", $i \\geq {first}$"}[part]
                axes.set_title(f"{name}\n{part} dimensions{ends}" if part == "all" else f"{part}{ends}")
            row[0].set_ylabel("query's position")
        for axes in panels[-1]:
            axes.set_xlabel("key's position")
        bar = figure.colorbar(image, ax=panels, extend="both", aspect=40, pad=0.01)
        bar.set_label("added to the score")


def _array(tensor) -> np.ndarray:
    return np.asarray(keras.ops.convert_to_numpy(tensor), "float64")
