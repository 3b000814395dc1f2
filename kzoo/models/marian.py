"""Converts Marian models from Hugging Face, such as OPUS-MT, to presets.

Their weights are read from safetensors and PyTorch files as NumPy arrays, without running code in them.
"""

import io
import math
import os
import pickle
import re
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from kzoo.decoding import SearchSettings
from kzoo.errors import UserError, first_line
from kzoo.files import check_fetched, read_object, read_typed
from kzoo.hub.preset import CONFIG_FILE
from kzoo.models.transformer import TransformerBackbone
from kzoo.models.translator import Translator
from kzoo.positions import sine_table
from kzoo.text.tokenizers import MarianTokenizer
from kzoo.text.vocabulary import SPECIAL
from kzoo.transformer_weights import ATTENTIONS, FEEDFORWARD, marian_layer

FILES = (CONFIG_FILE, "vocab.json", "source.spm", "target.spm")
# Settings of Marian's configuration: the default, and the value that kzoo's Transformer needs.
NEEDED = {
    "scale_embedding": (False, True),
    "normalize_before": (False, False),
    "normalize_embedding": (False, False),
    "add_final_layer_norm": (False, False),
    "tie_word_embeddings": (True, True),
    "static_position_embeddings": (True, True),
}
ACTIVATIONS = {"swish": "silu", "silu": "silu", "relu": "relu", "gelu": "gelu"}
# PyTorch's names of dtypes, and NumPy's.
DTYPES = {
    "FloatStorage": "<f4",
    "HalfStorage": "<f2",
    "BFloat16Storage": "bfloat16",  # ml_dtypes, which Keras imports, registers it
    "DoubleStorage": "<f8",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
}
ZIP = b"PK"  # the first bytes of PyTorch's files since 1.6
FLOATS = ("float16", "bfloat16", "float32", "float64")
ROUNDED = 0.01  # more than bfloat16 changes a sine

Layers = Annotated[int, Meta(ge=1, le=1000)]
Size = Annotated[int, Meta(ge=1, le=10**6)]
Token = Annotated[int, Meta(ge=0, le=10**7)]


class Config(msgspec.Struct):
    """The entries of `config.json` that kzoo reads, besides those in `NEEDED`."""

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
    decoder_vocab_size: Token | None = None
    share_encoder_decoder_embeddings: bool = True
    dropout: Annotated[float, Meta(ge=0, lt=1)] = 0.1
    num_beams: int | None = None
    length_penalty: float | None = None


class Options(msgspec.Struct):
    """The entries of `tokenizer_config.json` that kzoo reads."""

    source_lang: str | None = None
    target_lang: str | None = None


def read_marian(folder: str | os.PathLike, name: str | None = None) -> Translator:
    """Convert the Marian model of a repository, such as Helsinki-NLP's OPUS-MT models, to a translator.

    Tokens and features are reordered. Marian's vocabulary begins with the end symbol and ends with padding,
    which is also the start symbol; kzoo's begins with padding, unknown, start and end. In Marian's position
    encoding all sines precede all cosines; in Vaswani's they alternate.

    Args:
        folder: `config.json`, `vocab.json`, `source.spm`, `target.spm`, and the weights in
            `model.safetensors` or `pytorch_model.bin`.
        name: the repository's name, which may end in its language codes; the folder's name by default.

    Raises:
        UserError: a file is missing, damaged, or of another architecture.

    Reference:
        Tiedemann and Thottingal 2020, "OPUS-MT: Building open translation services for the World".
        https://aclanthology.org/2020.eamt-1.61
    """
    folder = Path(folder)
    if missing := [file for file in FILES if not (folder / file).is_file()]:
        raise UserError(f"{folder} is not a Marian model: it has no {', '.join(missing)}")
    settings, config = _settings(folder)
    options = folder / "tokenizer_config.json"
    options = read_typed(options, Options) if options.is_file() else Options()
    entries = {"beam_size": config.num_beams or 4, "length_penalty": config.length_penalty}
    search = SearchSettings.from_entries(entries, folder / CONFIG_FILE)
    sizes = {"vocab.json": config.vocab_size}
    if not config.share_encoder_decoder_embeddings:
        sizes["target_vocab.json"] = config.decoder_vocab_size
    orders = [_order(folder / file, config, size) for file, size in sizes.items()]
    tokenizers = [
        _tokenizer(folder, side, pieces)
        for side, (_, pieces) in zip(("source", "target"), (orders[0], orders[-1]), strict=True)
    ]
    tensors = _checked(read_tensors(folder), config, folder)
    try:
        backbone = TransformerBackbone(**settings)
    except (TypeError, ValueError) as error:
        raise UserError(f"{folder}: {CONFIG_FILE}: {first_line(error):.160}") from None
    _assign(backbone, tensors, [order for order, _ in orders])
    codes = re.search(r"(?<![A-Za-z_+])([a-z]{2,3})-([a-z]{2,3})$", name or folder.resolve().name)
    source, target = codes.groups() if codes else (None, None)
    source, target = options.source_lang or source, options.target_lang or target
    return Translator(backbone, *tokenizers, source, target, search=search)


def _tokenizer(folder: Path, side: str, pieces: list[str]) -> MarianTokenizer:
    path, vocabulary = folder / f"{side}.spm", [*SPECIAL.values(), *pieces]
    check_fetched(path)
    try:
        # SentencePiece accepts an empty file as a model.
        return MarianTokenizer(path.read_bytes() or b"x", vocabulary, config_file=f"{side}_tokenizer.json")
    except (OSError, RuntimeError):
        raise UserError(f"{path} is damaged: fetch the repository again") from None


def _settings(folder: Path) -> tuple[dict, Config]:
    """Return the backbone's arguments and the configuration; refuse settings that it does not support."""
    path = folder / CONFIG_FILE
    config, entries = read_typed(path, Config), read_object(path)

    def same(name: str) -> int:
        sizes = [getattr(config, f"{side}_{name}") for side in ("encoder", "decoder")]
        if sizes[0] != sizes[1]:
            raise UserError(f"{folder}: encoder and decoder differ in {name}, {sizes[0]} and {sizes[1]}")
        return sizes[0]

    for key, (usual, needed) in NEEDED.items():
        if (value := entries.get(key, usual)) != needed:
            raise UserError(f"{folder}: {key} is {value!r:.80}; kzoo reads only Marian models with {needed}")
    activation = config.activation_function
    if activation not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise UserError(f"{folder}: activation_function is {activation!r:.80}, not one of {known}")
    if config.decoder_start_token_id not in (config.pad_token_id, config.eos_token_id):
        raise UserError(
            f"{folder}: decoder_start_token_id is {config.decoder_start_token_id}; kzoo reads only Marian "
            "models that start with the padding or the end symbol"
        )
    joint = config.share_encoder_decoder_embeddings
    if not joint and config.decoder_vocab_size is None:
        raise UserError(f"{folder}: {CONFIG_FILE} lacks decoder_vocab_size")
    settings = {  # one more token: kzoo has a start symbol, Marian starts with padding
        "source_vocabulary_size": config.vocab_size + 1,
        "target_vocabulary_size": None if joint else config.decoder_vocab_size + 1,
        "position_encoding": "sine",
        "num_layers": same("layers"),
        "width": config.d_model,
        "num_heads": same("attention_heads"),
        "feedforward_dim": same("ffn_dim"),
        "dropout": config.dropout,
        "norm": "post",
        "activation": ACTIVATIONS[activation],
        "output_bias": True,
        "max_length": config.max_position_embeddings,
    }
    return settings, config


def _order(path: Path, config: Config, size: int) -> tuple[list[int], list[str]]:
    """Return a vocabulary's ids in kzoo's order, special tokens first, and the other pieces."""
    vocabulary = read_object(path)
    if len(vocabulary) != size:
        raise UserError(f"{path} has {len(vocabulary):,} pieces, but the model {size:,}")
    pieces = {}
    for piece, token in vocabulary.items():
        if type(token) is not int or not 0 <= token < size or token in pieces:
            raise UserError(
                f"{path}: {piece!r:.80} has the id {token!r:.80}, not one of its own from 0 to {size - 1}"
            )
        pieces[token] = piece
    if "<unk>" not in vocabulary:
        raise UserError(f"{path} has no <unk>")
    for piece, key in (("</s>", "eos_token_id"), ("<pad>", "pad_token_id")):
        token, expected = vocabulary.get(piece), getattr(config, key)
        if token != expected:
            raise UserError(f"{path}: {piece} has the id {token}, but {key} in {CONFIG_FILE} is {expected}")
    special = [config.pad_token_id, vocabulary["<unk>"], config.decoder_start_token_id, config.eos_token_id]
    others = [token for token in range(size) if token not in special]
    # Newer vocabularies also have SentencePiece's own "<s>", which no text contains.
    names = [f"<unused {token}>" if pieces[token] in SPECIAL.values() else pieces[token] for token in others]
    return [*special, *others], names


def _checked(tensors: dict[str, np.ndarray], config: Config, folder: Path) -> dict[str, np.ndarray]:
    """Return the tensors that the configuration needs, in float32.

    Raises:
        UserError: a tensor is missing or unknown, has another shape, or is not of finite floating-point
            numbers; a second embedding table is not a copy, or positions are not Marian's.
    """
    shapes, copies = _shapes(config)
    positions = (config.max_position_embeddings, config.d_model)
    tables = {f"model.{side}.embed_positions.weight": positions for side in ("encoder", "decoder")}
    optional = tables | {copy: shapes[name] for copy, name in copies.items()}
    if missing := sorted(shapes.keys() - tensors.keys()):
        raise UserError(f"{folder}: the weights lack {missing[0]}, {len(missing)} in all")
    if unknown := sorted(tensors.keys() - shapes.keys() - optional.keys()):
        raise UserError(
            f"{folder}: the weights have {unknown[0]!r:.80}, {len(unknown)} in all, which a model of this "
            f"{CONFIG_FILE} does not have"
        )
    found = {}
    for name, values in tensors.items():
        expected = shapes.get(name) or optional[name]
        if values.shape != expected:
            raise UserError(f"{folder}: {name} has the shape {values.shape}, not {expected}")
        if values.dtype.name not in FLOATS:
            raise UserError(f"{folder}: {name} has numbers of type {values.dtype.name}, not floating-point")
        with np.errstate(over="ignore"):
            found[name] = np.asarray(values, "float32")
        if not np.isfinite(found[name]).all():
            raise UserError(f"{folder}: {name} has a number that is not finite, or too large for float32")
    for copy, name in copies.items():
        if copy in found and not np.array_equal(found[copy], found[name]):
            raise UserError(f"{folder}: {copy} differs from {name}, but kzoo has one table for both")
    for name in sorted(tables.keys() & found.keys()):
        expected = sine_table(*positions)[:, np.argsort(_features(config.d_model))]
        if np.abs(found[name] - expected).max() > ROUNDED:
            raise UserError(f"{folder}: {name} does not hold sines and cosines of positions, as in Marian")
    return {name: found[name] for name in shapes}


def _shapes(config: Config) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
    """Return the shape of each tensor by its name; and the names of copies, with that of the original."""
    D, inner = config.d_model, config.encoder_ffn_dim

    def dense(name: str, into: int, out: int) -> dict:
        return {f"{name}.weight": (out, into), f"{name}.bias": (out,)}

    def norm(name: str) -> dict:
        return {f"{name}.weight": (D,), f"{name}.bias": (D,)}

    source, target = (f"model.{side}.embed_tokens.weight" for side in ("encoder", "decoder"))
    if config.share_encoder_decoder_embeddings:
        shared, size = "model.shared.weight", config.vocab_size
        shapes, copies = {shared: (size, D)}, {source: shared, target: shared, "lm_head.weight": shared}
    else:
        size = config.decoder_vocab_size
        shapes, copies = {source: (config.vocab_size, D), target: (size, D)}, {"lm_head.weight": target}
    shapes["final_logits_bias"] = (1, size)
    for side, attentions in ATTENTIONS.items():
        for number in range(config.encoder_layers):
            layer = marian_layer(side, number)
            for part in attentions:
                for projection in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    shapes |= dense(f"{layer}.{part.marian}.{projection}", D, D)
                shapes |= norm(f"{layer}.{part.marian}_layer_norm")
            for part, sizes in zip(FEEDFORWARD, ((D, inner), (inner, D)), strict=True):
                shapes |= dense(f"{layer}.{part.marian}", *sizes)
            shapes |= norm(f"{layer}.final_layer_norm")
    return shapes, copies


def _features(width: int) -> np.ndarray:
    """Return Marian's number of each of kzoo's features."""
    return np.stack([np.arange(width // 2), np.arange(width // 2) + width // 2], axis=1).ravel()


def _assign(backbone: TransformerBackbone, tensors: dict[str, np.ndarray], orders: list[list[int]]):
    """Copy the weights, whose names and shapes are checked; `orders` are the vocabularies' ids."""
    features = _features(backbone.width)

    def take(name: str, *orders) -> np.ndarray:
        """Return a tensor with each axis in the given order; `None` keeps an axis as it is."""
        values = tensors[name]
        for axis, order in enumerate(orders):
            if order is not None:
                values = np.take(values, order, axis)
        return values

    def dense(layer, name: str, into=None, out=None):
        layer.kernel.assign(take(f"{name}.weight", out, into).T)
        layer.bias.assign(take(f"{name}.bias", out))

    def norm(residual, name: str):
        residual.layer_norm.gamma.assign(take(f"{name}.weight", features))
        residual.layer_norm.beta.assign(take(f"{name}.bias", features))

    def attention(layer, residual, name: str):
        parts = [f"{name}.{part}_proj" for part in "qkv"]
        kernels = [take(f"{part}.weight", None, features).T for part in parts]
        layer.kernel.assign(np.concatenate(kernels, axis=1))
        layer.bias.assign(np.concatenate([take(f"{part}.bias") for part in parts]))
        dense(layer.output_dense, f"{name}.out_proj", out=features)
        norm(residual, f"{name}_layer_norm")

    def feed_forward(layer, name: str):
        for part, orders in zip(FEEDFORWARD, ({"into": features}, {"out": features}), strict=True):
            dense(getattr(layer.feedforward, part.ours), f"{name}.{part.marian}", **orders)
        norm(layer.feedforward_residual, f"{name}.final_layer_norm")

    tables = {"model.shared.weight": backbone.target_embedding}
    if len(orders) == 2:
        tables = {
            "model.encoder.embed_tokens.weight": backbone.source_embedding,
            "model.decoder.embed_tokens.weight": backbone.target_embedding,
        }
    for (name, layer), order in zip(tables.items(), orders, strict=True):
        layer.embeddings.assign(take(name, order, features))
    backbone.output_bias.bias.assign(take("final_logits_bias", None, orders[-1])[0])
    for side, attentions in ATTENTIONS.items():
        for number, layer in enumerate(getattr(backbone, f"{side}_layers")):
            name = marian_layer(side, number)
            for part in attentions:
                parts = (getattr(layer, part.ours), getattr(layer, f"{part.ours}_residual"))
                attention(*parts, f"{name}.{part.marian}")
            feed_forward(layer, name)


def read_tensors(folder: Path) -> dict[str, np.ndarray]:
    """Return the tensors of a model's `model.safetensors`, or else of its `pytorch_model.bin`.

    Raises:
        UserError: neither file exists, or the file is damaged or holds something other than tensors.
    """
    safe, torch = folder / "model.safetensors", folder / "pytorch_model.bin"
    path = safe if safe.is_file() else torch
    if not path.is_file():
        raise UserError(f"{folder} has neither {safe.name} nor {torch.name}")
    check_fetched(path)
    try:
        if path == safe:
            from safetensors.numpy import load_file

            return load_file(path)
        with open(path, "rb") as file:
            zipped = file.read(2) == ZIP
        return _from_zip(path) if zipped else _from_legacy(path)
    except UserError:
        raise
    except Exception as error:  # the parsers raise errors of many kinds
        raise UserError(f"{path} is damaged or holds no tensors: {first_line(error):.160}") from None


class _Tensors(pickle.Unpickler):
    """Unpickles the arguments of `_view` for each tensor, and refuses anything else.

    In place of a storage stands its key in the file, its data type and its number of elements.
    """

    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _tensor
        if module == "torch" and name in DTYPES:
            return DTYPES[name]
        raise UserError(f"the weights contain {module}.{name}, which is not a tensor: they were not loaded")

    def persistent_load(self, entry):
        kind, dtype, key, _, size, *_ = entry
        if kind != "storage" or dtype not in DTYPES.values():
            raise UserError("the weights contain an entry that is not a tensor: they were not loaded")
        return str(key), np.dtype(dtype), size


def _tensor(storage, offset, shape, strides, *_):
    return storage, offset, tuple(shape), tuple(strides)


def _view(storage: np.ndarray, offset: int, shape: tuple, strides: tuple) -> np.ndarray:
    last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    if min((offset, *shape, *strides)) < 0 or max(last + 1, math.prod(shape)) > len(storage):
        raise UserError("a tensor is larger than its storage")
    step = storage.itemsize
    return np.lib.stride_tricks.as_strided(storage[offset:], shape, [stride * step for stride in strides])


def _from_zip(path: Path) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(path) as archive:
        [listing] = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        root = listing.removesuffix("data.pkl")
        if any(member.compress_type for member in archive.infolist()):  # a bomb, perhaps
            raise UserError(f"{path}: has compressed members, which PyTorch does not write")
        found = _Tensors(io.BytesIO(archive.read(listing))).load()
        kinds = {key: kind for (key, *kind), *_ in found.values()}  # tied tensors share a storage
        stored = {key: np.frombuffer(archive.read(f"{root}data/{key}"), *kinds[key]) for key in kinds}
        return {name: _view(stored[key], *rest) for name, ((key, *_), *rest) in found.items()}


def _from_legacy(path: Path) -> dict[str, np.ndarray]:
    """Read PyTorch's format from before 1.6: four pickles (tensors in the last), the keys, the bytes."""
    with open(path, "rb") as file:
        for _ in range(3):  # magic number, version, system information
            _Tensors(file).load()
        found = _Tensors(file).load()
        kinds = {key: dtype for (key, dtype, _), *_ in found.values()}
        stored = {}
        for key in map(str, _Tensors(file).load()):
            [size] = np.frombuffer(file.read(8), "<i8")
            stored[key] = np.frombuffer(file.read(int(size) * kinds[key].itemsize), kinds[key], size)
    return {name: _view(stored[key], *rest) for name, ((key, *_), *rest) in found.items()}
