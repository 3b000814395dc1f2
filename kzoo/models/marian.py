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

import numpy as np

from kzoo.decoding import SearchSettings
from kzoo.errors import UserError, first_line
from kzoo.files import read_object
from kzoo.hub.integrity import CONFIG_FILE
from kzoo.models.transformer import TransformerBackbone
from kzoo.models.translator import Translator
from kzoo.text.tokenizers import MarianTokenizer
from kzoo.text.vocabulary import SPECIAL

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
    config = read_object(folder / CONFIG_FILE)
    try:
        settings = _settings(config, folder)
    except KeyError as key:
        raise UserError(f"{folder}: {CONFIG_FILE} lacks {key}") from None
    except TypeError as error:
        raise UserError(f"{folder}: {CONFIG_FILE}: {first_line(error):.160}") from None
    options = folder / "tokenizer_config.json"
    options = read_object(options) if options.is_file() else {}
    vocabularies = ["vocab.json"]
    if settings["target_vocabulary_size"] is not None:
        vocabularies.append("target_vocab.json")
    orders = [_order(folder / vocabulary, config) for vocabulary in vocabularies]
    tensors = read_tensors(folder)
    try:
        backbone = TransformerBackbone(**settings)
    except (TypeError, ValueError) as error:
        raise UserError(f"{folder}: {CONFIG_FILE}: {first_line(error):.160}") from None
    _assign(backbone, tensors, orders, config, folder)
    tokenizers = [
        _tokenizer(folder, side, pieces)
        for side, (_, pieces) in zip(("source", "target"), (orders[0], orders[-1]), strict=True)
    ]
    codes = re.search(r"(?<![A-Za-z_+])([a-z]{2,3})-([a-z]{2,3})$", name or folder.resolve().name)
    source, target = codes.groups() if codes else (None, None)
    source, target = options.get("source_lang") or source, options.get("target_lang") or target
    translator = Translator(backbone, *tokenizers, source, target)
    alpha = config.get("length_penalty")
    translator.search = SearchSettings(config.get("num_beams") or 4, 1.0 if alpha is None else float(alpha))
    return translator


def _tokenizer(folder: Path, side: str, pieces: list[str]) -> MarianTokenizer:
    path, vocabulary = folder / f"{side}.spm", [*SPECIAL.values(), *pieces]
    try:
        # SentencePiece accepts an empty file as a model.
        return MarianTokenizer(path.read_bytes() or b"x", vocabulary, config_file=f"{side}_tokenizer.json")
    except (OSError, RuntimeError):
        raise UserError(f"{path} is damaged: fetch the repository again") from None


def _settings(config: dict, folder: Path) -> dict:
    """Return the backbone's arguments; refuse settings that it does not support."""

    def same(name: str) -> int:
        sizes = [config[f"{side}_{name}"] for side in ("encoder", "decoder")]
        if sizes[0] != sizes[1]:
            raise UserError(f"{folder}: encoder and decoder differ in {name}, {sizes[0]} and {sizes[1]}")
        return sizes[0]

    for key, (usual, needed) in NEEDED.items():
        if config.get(key, usual) != needed:
            raise UserError(
                f"{folder}: {key} is {config.get(key, usual)!r}; kzoo reads only Marian models with {needed}"
            )
    activation = config.get("activation_function")
    if activation not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise UserError(f"{folder}: activation_function is {activation!r}, not one of {known}")
    joint = config.get("share_encoder_decoder_embeddings", True)
    return {  # one more token: kzoo has a start symbol, Marian starts with padding
        "source_vocabulary_size": config["vocab_size"] + 1,
        "target_vocabulary_size": None if joint else config["decoder_vocab_size"] + 1,
        "position_encoding": "sine",
        "num_layers": same("layers"),
        "width": config["d_model"],
        "num_heads": same("attention_heads"),
        "feedforward_dim": same("ffn_dim"),
        "dropout": config.get("dropout", 0.1),
        "norm": "post",
        "activation": ACTIVATIONS[activation],
        "output_bias": True,
        "max_length": config["max_position_embeddings"],
    }


def _order(path: Path, config: dict) -> tuple[list[int], list[str]]:
    """Return a vocabulary's ids in kzoo's order, special tokens first, and the other pieces."""
    vocabulary = read_object(path)
    special = [config.get("pad_token_id"), vocabulary.get("<unk>"), config.get("decoder_start_token_id")]
    special.append(config.get("eos_token_id"))
    pieces = {token: piece for piece, token in vocabulary.items()}
    if len(pieces) < len(vocabulary) or any(token not in pieces for token in special):
        raise UserError(f"{path} lacks a special token, or has an id twice")
    others = [token for token in sorted(pieces) if token not in special]
    # Newer vocabularies also have SentencePiece's own "<s>", which no text contains.
    names = [f"<unused {token}>" if pieces[token] in SPECIAL.values() else pieces[token] for token in others]
    return [*special, *others], names


def _assign(backbone: TransformerBackbone, tensors: dict, orders: list, config: dict, folder: Path):
    """Copy the weights, checking the shape of each."""
    width = config["d_model"]
    features = np.stack([np.arange(width // 2), np.arange(width // 2) + width // 2], axis=1).ravel()

    def take(name: str, *orders) -> np.ndarray:
        """Return a tensor with each axis in the given order; `None` keeps an axis as it is."""
        if name not in tensors:
            raise UserError(f"{folder}: the weights lack {name}")
        values = np.asarray(tensors[name], "float32")
        for axis, order in enumerate(orders):
            if order is not None:
                if axis >= values.ndim or max(order) >= values.shape[axis]:
                    raise UserError(f"{folder}: {name} has the shape {values.shape}")
                values = np.take(values, order, axis)
        return values

    def put(weight, values: np.ndarray, name: str):
        if weight.shape != values.shape:
            raise UserError(f"{folder}: {name} has the shape {values.shape}, not {tuple(weight.shape)}")
        weight.assign(values)

    def dense(layer, name: str, into=None, out=None):
        put(layer.kernel, take(f"{name}.weight", out, into).T, f"{name}.weight")
        put(layer.bias, take(f"{name}.bias", out), f"{name}.bias")

    def norm(residual, name: str):
        put(residual.layer_norm.gamma, take(f"{name}.weight", features), f"{name}.weight")
        put(residual.layer_norm.beta, take(f"{name}.bias", features), f"{name}.bias")

    def attention(layer, residual, name: str):
        parts = [f"{name}.{part}_proj" for part in "qkv"]
        kernels = [take(f"{part}.weight", None, features).T for part in parts]
        put(layer.kernel, np.concatenate(kernels, axis=1), name)
        put(layer.bias, np.concatenate([take(f"{part}.bias") for part in parts]), name)
        dense(layer.output_dense, f"{name}.out_proj", out=features)
        norm(residual, f"{name}_layer_norm")

    def feed_forward(layer, name: str):
        dense(layer.feedforward.inner, f"{name}.fc1", into=features)
        dense(layer.feedforward.outer, f"{name}.fc2", out=features)
        norm(layer.feedforward_residual, f"{name}.final_layer_norm")

    tables = {"model.shared.weight": backbone.target_embedding}
    if len(orders) == 2:
        tables = {
            "model.encoder.embed_tokens.weight": backbone.source_embedding,
            "model.decoder.embed_tokens.weight": backbone.target_embedding,
        }
    for (name, layer), (order, _) in zip(tables.items(), orders, strict=True):
        put(layer.embeddings, take(name, order, features), name)
    head = "lm_head.weight"
    if head in tensors and not np.array_equal(tensors[head], tensors[name]):
        raise UserError(f"{folder}: {head} differs from {name}, but kzoo has one table for both")
    bias = "final_logits_bias"
    put(backbone.output_bias.bias, take(bias, None, orders[-1][0])[0], bias)
    for number, layer in enumerate(backbone.encoder_layers):
        name = f"model.encoder.layers.{number}"
        attention(layer.attention, layer.attention_residual, f"{name}.self_attn")
        feed_forward(layer, name)
    for number, layer in enumerate(backbone.decoder_layers):
        name = f"model.decoder.layers.{number}"
        attention(layer.self_attention, layer.self_attention_residual, f"{name}.self_attn")
        attention(layer.cross_attention, layer.cross_attention_residual, f"{name}.encoder_attn")
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
