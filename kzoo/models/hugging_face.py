"""What the Transformers in Hugging Face's repositories share: `kzoo.models.marian` and `kzoo.models.m2m`.

Their weights have the same names. kzoo reorders tokens and features: a vocabulary begins with padding,
unknown, start and end; in theirs, the start symbol is padding or the end symbol. In their position encodings
all sines precede all cosines; in Vaswani's they alternate.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from kzoo.decoding import SearchSettings
from kzoo.errors import UserError, first_line
from kzoo.files import check_fetched, read_object, read_typed
from kzoo.hub.preset import CONFIG_FILE
from kzoo.models.tensor_files import Stored, stored_tensors
from kzoo.models.transformer import TransformerBackbone
from kzoo.positions import sine_table
from kzoo.text.vocabulary import SPECIAL
from kzoo.transformer_weights import ATTENTIONS, FEEDFORWARD, marian_layer

ACTIVATIONS = {"swish": "silu", "silu": "silu", "relu": "relu", "gelu": "gelu"}
FLOATS = ("float16", "bfloat16", "float32", "float64")
ROUNDED = 0.01  # more than bfloat16 changes a sine
COPY_IT = "copy it from the repository that the model comes from"

Layers = Annotated[int, Meta(ge=1, le=1000)]
Size = Annotated[int, Meta(ge=1, le=10**6)]
Token = Annotated[int, Meta(ge=0, le=10**7)]


class Config(msgspec.Struct):
    """The entries of `config.json` that kzoo reads, besides those that have only one value."""

    vocab_size: Token
    d_model: Annotated[int, Meta(ge=2, le=10**5, multiple_of=2)]
    encoder_layers: Layers
    decoder_layers: Layers
    encoder_attention_heads: Size
    decoder_attention_heads: Size
    encoder_ffn_dim: Size
    decoder_ffn_dim: Size
    max_position_embeddings: Annotated[int, Meta(ge=2, le=10**5)]
    pad_token_id: Token
    decoder_start_token_id: Token
    eos_token_id: Token
    activation_function: str
    dropout: Annotated[float, Meta(ge=0, lt=1)] = 0.1
    num_beams: int | None = None
    length_penalty: float | None = None

    @property
    def vocabulary_sizes(self) -> tuple[int, ...]:
        """The size of the joint vocabulary, or those of source and target."""
        return (self.vocab_size,)


def check_files(folder: Path, names: Sequence[str], kind: str):
    """Raise `UserError` for a missing file."""
    if missing := [file for file in names if not (folder / file).is_file()]:
        raise UserError(f"{folder} is not {kind}: it has no {', '.join(missing)}; if it is one, {COPY_IT}")


def read_config(folder: Path, kind: type[Config], name: str, needed: dict[str, tuple]) -> tuple[Config, dict]:
    """Return a repository's configuration and arguments of the backbone.

    Args:
        folder: the repository.
        kind: the configuration's class.
        name: the models', for errors.
        needed: by their keys, the default and the only supported value of other settings.

    Raises:
        UserError: an entry is missing, of another type, or not supported.
    """
    path = folder / CONFIG_FILE
    config, entries = read_typed(path, kind), read_object(path)

    def same(key: str) -> int:
        sizes = [getattr(config, f"{side}_{key}") for side in ("encoder", "decoder")]
        if sizes[0] != sizes[1]:
            raise UserError(f"{folder}: encoder and decoder differ in {key}, {sizes[0]} and {sizes[1]}")
        return sizes[0]

    for key, (usual, only) in needed.items():
        if (value := entries.get(key, usual)) != only:
            raise UserError(f"{folder}: {key} is {value!r:.80}; kzoo reads only {name} models with {only}")
    activation = config.activation_function
    if activation not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise UserError(f"{folder}: activation_function is {activation!r:.80}, not one of {known}")
    if config.decoder_start_token_id not in (config.pad_token_id, config.eos_token_id):
        raise UserError(
            f"{folder}: decoder_start_token_id is {config.decoder_start_token_id}; kzoo reads only {name} "
            "models that start with the padding or the end symbol"
        )
    differ = config.decoder_layers != config.encoder_layers
    sizes = [size + 1 for size in config.vocabulary_sizes]  # kzoo's start symbol is another token
    return config, {
        "source_vocabulary_size": sizes[0],
        "target_vocabulary_size": sizes[1] if len(sizes) == 2 else None,
        "position_encoding": "sine",
        "num_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers if differ else None,
        "width": config.d_model,
        "num_heads": same("attention_heads"),
        "feedforward_dim": same("ffn_dim"),
        "dropout": config.dropout,
        "activation": ACTIVATIONS[activation],
        "max_length": config.max_position_embeddings,
    }


def search_settings(folder: Path, config: Config) -> SearchSettings:
    """Return the search settings of a configuration."""
    entries = {"beam_size": config.num_beams or 4, "length_penalty": config.length_penalty}
    return SearchSettings.from_entries(entries, folder / CONFIG_FILE)


def read_vocabulary(path: Path, size: int, most: int | None = None) -> list[str]:
    """Return the pieces of a `vocab.json` in the order of their ids.

    Args:
        path: the file.
        size: the number of pieces that it has; with `most`, the fewest.
        most: the most pieces that it may have.

    Raises:
        UserError: it has another number of pieces, or ids other than 0 to the number of pieces - 1.
    """
    vocabulary = read_object(path)
    count = len(vocabulary)
    if not size <= count <= (most or size):
        raise UserError(f"{path} has {count:,} pieces, but the model {most or size:,}")
    pieces = {}
    for piece, token in vocabulary.items():
        if type(token) is not int or not 0 <= token < count or token in pieces:
            raise UserError(
                f"{path}: {piece!r:.80} has the id {token!r:.80}, not one of its own from 0 to {count - 1}"
            )
        pieces[token] = piece
    return [pieces[token] for token in range(count)]


def order(path: Path, pieces: list[str], config: Config) -> tuple[list[int], list[str]]:
    """Return a vocabulary's ids in kzoo's order, special tokens first, and the other pieces.

    Args:
        path: the vocabulary's file, named in errors.
        pieces: its pieces in the order of their ids.
        config: the model's configuration.

    Raises:
        UserError: a special token is missing, or has another id in the configuration.
    """
    ids = {piece: token for token, piece in enumerate(pieces)}
    if "<unk>" not in ids:
        raise UserError(f"{path} has no <unk>")
    for piece, key in (("</s>", "eos_token_id"), ("<pad>", "pad_token_id")):
        token, expected = ids.get(piece), getattr(config, key)
        if token != expected:
            raise UserError(f"{path}: {piece} has the id {token}, but {key} in {CONFIG_FILE} is {expected}")
    special = [config.pad_token_id, ids["<unk>"], config.decoder_start_token_id, config.eos_token_id]
    others = [token for token in range(len(pieces)) if token not in special]
    # Some vocabularies also have SentencePiece's own "<s>", which no text contains.
    names = [f"<unused {token}>" if pieces[token] in SPECIAL.values() else pieces[token] for token in others]
    return [*special, *others], names


def sentence_piece_model(path: Path) -> bytes:
    """Return the bytes of a SentencePiece model's file.

    Raises:
        UserError: it is damaged, or a pointer of Git LFS.
    """
    from sentencepiece import SentencePieceProcessor

    check_fetched(path)
    try:
        proto = path.read_bytes() or b"x"  # SentencePiece accepts an empty file as a model
        SentencePieceProcessor(model_proto=proto)
    except (OSError, RuntimeError):
        raise UserError(f"{path} is damaged: fetch the repository again") from None
    return proto


def build(folder: Path, config: Config, settings: dict, orders: list[list[int]]) -> TransformerBackbone:
    """Return the backbone with a repository's weights, which are read one after the other.

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
    try:
        backbone = TransformerBackbone(**settings)
    except (TypeError, ValueError) as error:
        raise UserError(f"{folder}: {CONFIG_FILE}: {first_line(error):.160}") from None
    _assign(backbone, stored, folder, orders)
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


def _assign(backbone: TransformerBackbone, stored: dict[str, Stored], folder: Path, orders: list[list[int]]):
    """Copy the weights, whose names and shapes are checked; `orders` are the vocabularies' ids."""
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
        layer.kernel.assign(take(f"{name}.weight", out, into).T)
        layer.bias.assign(take(f"{name}.bias", out))

    def norm(layer, name: str):
        layer.gamma.assign(take(f"{name}.weight", features))
        layer.beta.assign(take(f"{name}.bias", features))

    def attention(layer, residual, name: str):
        parts = [f"{name}.{part}_proj" for part in "qkv"]
        kernels = [take(f"{part}.weight", None, features).T for part in parts]
        layer.kernel.assign(np.concatenate(kernels, axis=1))
        layer.bias.assign(np.concatenate([take(f"{part}.bias") for part in parts]))
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
        layer.embeddings.assign(take(name, order, features))
    if backbone.output_bias is not None:
        backbone.output_bias.bias.assign(take("final_logits_bias", None, orders[-1])[0])
    for side, attentions in ATTENTIONS.items():
        for number, layer in enumerate(getattr(backbone, f"{side}_layers")):
            name = marian_layer(side, number)
            for part in attentions:
                parts = (getattr(layer, part.ours), getattr(layer, f"{part.ours}_residual"))
                attention(*parts, f"{name}.{part.marian}")
            feed_forward(layer, name)
        if (last := getattr(backbone, f"{side}_norm")) is not None:
            norm(last, f"model.{side}.layer_norm")
