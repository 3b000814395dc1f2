"""A Transformer's preset as a CTranslate2 model, read from the preset's files without a Keras model."""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from kzoo.engine import import_ctranslate2
from kzoo.engine.choice import check_supported
from kzoo.engine.vocabulary import pieces_of
from kzoo.errors import UserError
from kzoo.files import atomic_folder, cached_folder, write_json
from kzoo.hub.preset import CONFIG_FILE, SEARCH_FILE, Preset, holds_values, tokenizer_asset
from kzoo.positions import pope_table, sine_table
from kzoo.text.pieces import MODEL_FILE, PIECES_FILE
from kzoo.text.vocabulary import END, NOT_TEXT, UNKNOWN
from kzoo.transformer_weights import ACTIVATIONS, ATTENTIONS, FEEDFORWARD, layer_path

SIDES = ("source", "target")  # a converted model has a tokenizer for each
FORMAT = 4  # increase it when the conversion changes: cached models are then converted again
UNLIKELY = -60_000.0  # bias of tokens that never occur in text; fits into float16
# Unless the preset sets them: of relative positions, and of rotary ones.
BUCKETS, MAX_DISTANCE, WAVELENGTH = 32, 128, 10_000
OPTIONS = ("language", "normalize_punctuation", "languages", "names")  # of tokenizers with a vocabulary

Weight = Callable[..., np.ndarray]  # of a layer's path, a variable's number there, and its shape


def converted(preset: Preset) -> Path:
    """Return the cached folder of a preset's CTranslate2 model. Convert the preset if it is not cached.

    The cache key is the SHA-256 of the preset's files, so a different preset in the same folder is
    converted again. Files that are needed only for the conversion are only then checked.

    Raises:
        UserError: as `check_supported` and `convert`; or a file of the preset is missing or altered.
    """
    key = "\n".join(f"{name} {seen}" for name, seen in sorted(preset.files.items()) if name != SEARCH_FILE)

    def make(made: Path):
        check_supported(preset)
        preset.check()
        convert(preset, made)

    return cached_folder("ctranslate2", f"{FORMAT}\n{key}", make)


@contextlib.contextmanager
def as_preset(translator) -> Iterator[Preset]:
    """Yield an exact preset of a Keras translator, removed afterwards; of a preset, the preset itself."""
    if isinstance(translator, Preset):
        yield translator
        return
    with tempfile.TemporaryDirectory() as folder:
        preset = Preset(Path(folder) / "translator")
        translator.save_to_preset(preset.folder, dtype="float32")
        yield preset


def convert(
    preset: Preset,
    output: str | os.PathLike,
    precision: str = "float32",
    arguments: dict | None = None,
    positions: int = 0,
):
    """Write a preset as a CTranslate2 model, with its SentencePiece models beside it.

    Args:
        preset: the preset, which `check_supported` accepts.
        output: folder to write, atomically.
        precision: of the weights: `"float32"`, `"float16"` or `"int8"`.
        arguments: of `translate_batch`, to write next to the model.
        positions: int. The fewest positions that the model must take, for a program that does not know its
            `max_length`. Where they are learned, those beyond it repeat the last one.

    Raises:
        UserError: CTranslate2 cannot be imported; weights that are missing, unexpected, of another shape, not
            finite, too large for the precision, or stored in another file.
    """
    specs = import_ctranslate2().specs
    config = preset.backbone["config"]
    layers = config["num_layers"]
    decoder_layers = config.get("decoder_layers") or layers
    shared = {
        "num_heads": config["num_heads"],
        "pre_norm": config["norm"] == "pre",
        "activation": getattr(specs.common_spec.Activation, ACTIVATIONS[config["activation"]]),
        "relative_attention_bias": config["position_encoding"] == "bias",
    }
    if config["position_encoding"] == "rope":
        base = config["position_options"].get("max_wavelength", WAVELENGTH)
        shared |= {"rotary_dim": 0, "rotary_interleave": False, "rotary_base": base}  # 0: all features
    alignment = {"alignment_layer": max(decoder_layers - 2, 0), "alignment_heads": 0}  # all
    spec = specs.TransformerSpec(
        specs.TransformerEncoderSpec(layers, **shared),
        specs.TransformerDecoderSpec(decoder_layers, **shared, **alignment),
    )
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = 1e-5
    with _weights(preset, precision) as weight:
        _fill(spec, config, weight, positions)
    names = dict(zip(SIDES, preset.settings["tokenizers"], strict=True))
    pieces = dict(zip(SIDES, pieces_of(preset), strict=True))
    special = slice(UNKNOWN, END + 1)
    pieces["source"][special] = pieces["target"][special]  # which CTranslate2 looks up on both sides
    spec.register_source_vocabulary(pieces["source"])
    spec.register_target_vocabulary(pieces["target"])
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = pieces["target"][special]
    spec.config.decoder_start_token = spec.config.bos_token
    spec.validate()
    spec.optimize(quantization=None if precision == "float32" else precision)
    with atomic_folder(output) as unfinished:
        spec.save(str(unfinished))
        for side, name in names.items():
            (unfinished / f"{side}.spm").write_bytes(preset.read(tokenizer_asset(name, MODEL_FILE)))
            if tokenizer_asset(name, PIECES_FILE) in preset.files:
                config = preset.object(name)["config"]
                options = {key: config[key] for key in OPTIONS if key in config}
                write_json(unfinished / f"{side}.json", {"vocabulary": pieces[side], **options})
        if arguments is not None:
            write_json(unfinished / "translate_batch.json", arguments)


@contextlib.contextmanager
def _weights(preset: Preset, precision: str):
    """Yield a function that returns a variable as float32, given its layer's path, its number and its shape.

    At the end, raise `UserError` if the files have another variable.
    """
    import h5py

    with contextlib.ExitStack() as opened:
        # Other weights may lie beside the preset's own.
        paths = [preset.folder / name for name in sorted(preset.files) if name.endswith(".weights.h5")]
        files = {str(path): opened.enter_context(h5py.File(path)) for path in paths}

        rest = set()
        for file in files.values():
            file.visititems(lambda name, item: rest.add(name) if isinstance(item, h5py.Dataset) else None)

        def weight(layer: str, number: int, *shape: int) -> np.ndarray:
            name = f"layers/{layer}/vars/{number}"
            found = next((file[name] for file in files.values() if name in file), None)
            stored_here = found and found.file.filename in files and holds_values(found)
            floats = stored_here and found.dtype.kind == "f"
            values = found[()].astype("float32") if floats else np.nan
            if not np.isfinite(values).all():
                raise UserError(
                    f"{preset}: the weights {name} are missing, no finite floating-point numbers, or "
                    "in a file outside of it"
                )
            if values.shape != shape:
                raise UserError(f"{preset}: the weights {name} have the shape {values.shape}, not {shape}")
            if precision == "float16" and np.abs(values).max(initial=0) > np.finfo("float16").max:
                raise UserError(f"{preset}: float16 cannot hold the weights {name}: choose another precision")
            rest.discard(name)
            return values

        yield weight
        if rest:
            raise UserError(
                f"{preset}: its weights have {sorted(rest)[0]}, {len(rest)} in all, which its "
                f"{CONFIG_FILE} does not"
            )


def _fill(spec, config: dict, weight: Weight, positions: int):
    """Copy a backbone's weights; the names are those that Keras gives its layers, by class and order."""
    width, inner = config["width"], config["feedforward_dim"]
    sizes = {"": config["source_vocabulary_size"]}
    if config["target_vocabulary_size"] is not None:
        sizes["_1"] = config["target_vocabulary_size"]
    tables = [weight(f"reversible_embedding{end}", 0, size, width) for end, size in sizes.items()]
    buckets = config["position_options"].get("num_buckets", BUCKETS)
    distance = np.int32(config["position_options"].get("max_distance", MAX_DISTANCE))
    stacks = ((spec.encoder, spec.encoder.embeddings[0]), (spec.decoder, spec.decoder.embeddings))
    for (stack, embeddings), table, end in zip(stacks, (tables[0], tables[-1]), ("", "_1"), strict=True):
        embeddings.weight = table  # CTranslate2 multiplies by √D, as kzoo does
        if config["position_encoding"] == "bias":
            bias = weight(f"relative_position_bias{end}", 0, buckets, config["num_heads"])
            for layer in stack.layer:
                layer.self_attention.relative_attention_bias = bias
                layer.self_attention.relative_attention_max_distance = distance
        elif config["position_encoding"] != "rope":
            stack.position_encodings.encodings = _positions(config, weight, end, positions)
        if config["norm"] == "pre":
            _norm(stack.layer_norm, weight, f"layer_normalization{end}", width)
    projection = spec.decoder.projection
    projection.weight, projection.bias = tables[-1], np.zeros(len(tables[-1]), "float32")
    if config["output_bias"]:
        projection.bias = weight("output_bias", 0, len(tables[-1]))
    projection.bias[NOT_TEXT] = UNLIKELY  # otherwise, CTranslate2 would generate these too
    for side, attentions in ATTENTIONS.items():
        for number, layer in enumerate(getattr(spec, side).layer):
            name = layer_path(side, number)
            for part in attentions:
                _attention(getattr(layer, part.ctranslate2), weight, f"{name}/{part.ours}", width)
            _feedforward(layer.ffn, weight, f"{name}/feedforward", width, inner)


def _positions(config: dict, weight: Weight, end: str, fewest: int) -> np.ndarray:
    """Return the positions to add to the embeddings, `(length, width)`; the length is at least `fewest`."""
    kind = config["position_encoding"]
    options = {name: value for name, value in config["position_options"].items() if name != "per_head"}
    learned, width = config["max_length"], config["width"]
    shape = max(learned, fewest), width
    if kind == "pope":
        return pope_table(*shape, **options).astype("float32")
    if kind == "sine":
        return sine_table(*shape, **options).astype("float32")
    if kind == "learned":
        table = weight(f"position_embedding{end}", 0, learned, width)
        return np.pad(table, ((0, shape[0] - learned), (0, 0)), "edge")
    return np.zeros(shape, "float32")


def _attention(spec, weight: Weight, name: str, width: int):
    """Copy an attention layer: query, key and value in one matrix; in cross-attention, query alone."""
    *linears, output = spec.linear
    kernel, bias = weight(name, 0, width, 3 * width), weight(name, 1, 3 * width)
    cuts = [width] if len(linears) == 2 else []
    for linear, part, shift in zip(
        linears, np.split(kernel, cuts, axis=1), np.split(bias, cuts), strict=True
    ):
        linear.weight, linear.bias = np.ascontiguousarray(part.T), shift
    _dense(output, weight, f"{name}/output_dense", width, width)
    _norm(spec.layer_norm, weight, f"{name}_residual/layer_norm", width)


def _feedforward(spec, weight: Weight, name: str, width: int, inner: int):
    for part, sizes in zip(FEEDFORWARD, ((width, inner), (inner, width)), strict=True):
        _dense(getattr(spec, part.ctranslate2), weight, f"{name}/{part.ours}", *sizes)
    _norm(spec.layer_norm, weight, f"{name}_residual/layer_norm", width)


def _dense(spec, weight: Weight, name: str, into: int, out: int):
    spec.weight, spec.bias = np.ascontiguousarray(weight(name, 0, into, out).T), weight(name, 1, out)


def _norm(spec, weight: Weight, name: str, width: int):
    spec.gamma, spec.beta = weight(name, 0, width), weight(name, 1, width)
