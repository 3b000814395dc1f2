"""The weights of Transformers in Hugging Face's repositories, whose tensors have Marian's names.

kzoo reorders their features: in their position encodings all sines precede all cosines; in Vaswani's they
alternate.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from kzoo.errors import UserError, first_line
from kzoo.hub.preset import CONFIG_FILE
from kzoo.models.backbones import Waiting
from kzoo.models.transformer import TransformerBackbone
from kzoo.positions import sine_table
from kzoo.presets.hugging_face import Config
from kzoo.presets.tensor_files import Stored, stored_tensors
from kzoo.transformer_weights import ATTENTIONS, FEEDFORWARD, marian_layer

FLOATS = ("float16", "bfloat16", "float32", "float64")
ROUNDED = 0.01  # more than bfloat16 changes a sine


def build(folder: Path, config: Config, settings: dict, orders: list[list[int]]) -> TransformerBackbone:
    """Return the backbone with a repository's weights, read one after the other by `Waiting.give`.

    Args:
        folder: the repository.
        config: its configuration.
        settings: the backbone's arguments.
        orders: the ids of the joint vocabulary in kzoo's order, or those of source and target.

    Raises:
        UserError: a tensor is missing or unknown, has another shape, or is not of finite floating-point
            numbers; a second embedding table is not a copy, or positions are not sines; the arguments do not
            fit.
    """
    stored = stored_tensors(folder)
    shapes, copies = _shapes(config, settings)
    _check(stored, shapes, copies, config, folder)
    with Waiting() as waiting:
        try:
            backbone = TransformerBackbone(**settings)
        except (TypeError, ValueError) as error:
            raise UserError(f"{folder}: {CONFIG_FILE}: {first_line(error):.160}") from None
        _give(waiting.give, backbone, stored, folder, orders)
    return backbone


def _check(stored: dict[str, Stored], shapes: dict, copies: dict, config: Config, folder: Path):
    positions = (config.max_position_embeddings, config.d_model)
    tables = {f"model.{side}.embed_positions.weight": positions for side in ("encoder", "decoder")}
    optional = tables | {copy: shapes[name] for copy, name in copies.items()}
    if missing := sorted(shapes.keys() - stored.keys()):
        raise UserError(f"{folder}: the weights lack {missing[0]}, {len(missing)} in all")
    if unknown := sorted(stored.keys() - shapes.keys() - optional.keys()):
        raise UserError(
            f"{folder}: the weights have {unknown[0]!r:.80}, {len(unknown)} in all, which a model of this "
            f"{CONFIG_FILE} does not have"
        )
    for name, tensor in stored.items():
        expected = shapes.get(name) or optional[name]
        if tensor.shape != expected:
            raise UserError(f"{folder}: {name} has the shape {tensor.shape}, not {expected}")
        if tensor.dtype not in FLOATS:
            raise UserError(f"{folder}: {name} has numbers of type {tensor.dtype}, not floating-point")
    for copy, name in copies.items():
        same = copy not in stored or stored[copy].place == stored[name].place
        if not same and not np.array_equal(stored[copy].read(), stored[name].read()):
            raise UserError(f"{folder}: {copy} differs from {name}, but kzoo has one table for both")
    for name in sorted(tables.keys() & stored.keys()):
        expected = sine_table(*positions)[:, np.argsort(_features(config.d_model))]
        if np.abs(stored[name].read().astype("float32") - expected).max() > ROUNDED:
            raise UserError(f"{folder}: {name} does not hold sines and cosines of positions, as in Marian")


def _shapes(config: Config, settings: dict) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
    """Return the shape of each tensor by its name; and the names of copies, with that of the original."""
    D, inner = config.d_model, config.encoder_ffn_dim

    def dense(name: str, into: int, out: int) -> dict:
        return {f"{name}.weight": (out, into), f"{name}.bias": (out,)}

    def norm(name: str) -> dict:
        return {f"{name}.weight": (D,), f"{name}.bias": (D,)}

    source, target = (f"model.{side}.embed_tokens.weight" for side in ("encoder", "decoder"))
    sizes = config.vocabulary_sizes
    if len(sizes) == 1:
        shared = "model.shared.weight"
        shapes, copies = {shared: (*sizes, D)}, {source: shared, target: shared, "lm_head.weight": shared}
    else:
        shapes, copies = {source: (sizes[0], D), target: (sizes[1], D)}, {"lm_head.weight": target}
    if settings.get("output_bias"):
        shapes["final_logits_bias"] = (1, sizes[-1])
    for side, attentions in ATTENTIONS.items():
        for number in range(getattr(config, f"{side}_layers")):
            layer = marian_layer(side, number)
            for part in attentions:
                for projection in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    shapes |= dense(f"{layer}.{part.marian}.{projection}", D, D)
                shapes |= norm(f"{layer}.{part.marian}_layer_norm")
            for part, sizes in zip(FEEDFORWARD, ((D, inner), (inner, D)), strict=True):
                shapes |= dense(f"{layer}.{part.marian}", *sizes)
            shapes |= norm(f"{layer}.final_layer_norm")
        if settings["norm"] == "pre":
            shapes |= norm(f"model.{side}.layer_norm")
    return shapes, copies


def _features(width: int) -> np.ndarray:
    """Return the number in Hugging Face's order of each of kzoo's features."""
    return np.stack([np.arange(width // 2), np.arange(width // 2) + width // 2], axis=1).ravel()


def _give(
    give: Callable,
    backbone: TransformerBackbone,
    stored: dict[str, Stored],
    folder: Path,
    orders: list[list[int]],
):
    """Give each variable its function; names and shapes are checked, `orders` are the vocabularies' ids."""
    features = _features(backbone.width)

    def take(name: str, *orders) -> np.ndarray:
        """Return a tensor in float32 with each axis in the given order; `None` keeps an axis as it is."""
        with np.errstate(over="ignore"):
            values = np.asarray(stored[name].read(), "float32")
        if not np.isfinite(values).all():
            raise UserError(f"{folder}: {name} has a number that is not finite, or too large for float32")
        for axis, order in enumerate(orders):
            if order is not None:
                values = np.take(values, order, axis)
        return values

    def dense(layer, name: str, into=None, out=None):
        give(layer.kernel, lambda: take(f"{name}.weight", out, into).T)
        give(layer.bias, lambda: take(f"{name}.bias", out))

    def norm(layer, name: str):
        give(layer.gamma, lambda: take(f"{name}.weight", features))
        give(layer.beta, lambda: take(f"{name}.bias", features))

    def attention(layer, residual, name: str):
        parts = [f"{name}.{part}_proj" for part in "qkv"]

        def kernel() -> np.ndarray:
            return np.concatenate([take(f"{part}.weight", None, features).T for part in parts], axis=1)

        give(layer.kernel, kernel)
        give(layer.bias, lambda: np.concatenate([take(f"{part}.bias") for part in parts]))
        dense(layer.output_dense, f"{name}.out_proj", out=features)
        norm(residual.layer_norm, f"{name}_layer_norm")

    def feed_forward(layer, name: str):
        for part, orders in zip(FEEDFORWARD, ({"into": features}, {"out": features}), strict=True):
            dense(getattr(layer.feedforward, part.ours), f"{name}.{part.marian}", **orders)
        norm(layer.feedforward_residual.layer_norm, f"{name}.final_layer_norm")

    tables = {"model.shared.weight": backbone.target_embedding}
    if len(orders) == 2:
        tables = {
            "model.encoder.embed_tokens.weight": backbone.source_embedding,
            "model.decoder.embed_tokens.weight": backbone.target_embedding,
        }
    for (name, layer), order in zip(tables.items(), orders, strict=True):
        give(layer.embeddings, partial(take, name, order, features))
    if backbone.output_bias is not None:
        give(backbone.output_bias.bias, lambda: take("final_logits_bias", None, orders[-1])[0])
    for side, attentions in ATTENTIONS.items():
        for number, layer in enumerate(getattr(backbone, f"{side}_layers")):
            name = marian_layer(side, number)
            for part in attentions:
                parts = (getattr(layer, part.ours), getattr(layer, f"{part.ours}_residual"))
                attention(*parts, f"{name}.{part.marian}")
            feed_forward(layer, name)
        if (last := getattr(backbone, f"{side}_norm")) is not None:
            norm(last, f"model.{side}.layer_norm")
