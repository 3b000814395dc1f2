"""A Transformer as a CTranslate2 model, for that fast inference engine for CPUs."""

import os

import numpy as np
from keras import ops

from kzoo.decoding import Exponent, SearchSettings
from kzoo.decoding.beam_search import NOT_TEXT
from kzoo.errors import UserError
from kzoo.export.precision import check_precision, is_quantized
from kzoo.files import check_replaceable, whole_folder, write_json
from kzoo.models.losses import IN_FLOAT16
from kzoo.models.preset_checks import check_float16
from kzoo.text import SubwordTokenizer

REFUSED = {
    "position_encoding": lambda value: value == "rope",
    "position_options": lambda value: value.get("per_head"),
    "source_embedding": lambda value: value == "glyph",
}


def export_ctranslate2(translator, folder: str | os.PathLike, precision: str = "float32"):
    """Write a translator as a CTranslate2 model with its SentencePiece models beside it.

    `ctranslate2.Translator(folder)` takes the pieces of `source.spm` and returns those of `target.spm`; it
    adds the end symbol. Position tables and T5's bias are part of the format, so Legendre positions and
    `position_encoding="bias"` are exported too.
    `translate_batch` searches as `Translator.translate` does with the arguments in `translate_batch.json`.

    Args:
        translator: a `Translator` on a `TransformerBackbone` that reads text; rotary positions and
            positions in the heads excepted. Its `search` is written.
        folder: folder to write; it appears complete or not at all, and replaces an earlier one.
        precision: of the weights: `"float32"`, `"float16"` or `"int8"`.

    Raises:
        UserError: ctranslate2 is not installed, the format does not support the translator, it is quantized,
            a weight is beyond float16, its length penalty is no power of the length, or the folder has other
            contents.
    """
    check_precision(precision)
    arguments = search_arguments(translator.search)
    try:
        from ctranslate2.specs import TransformerSpec
    except ImportError:
        raise UserError("CTranslate2 is not installed: pip install -e '.[ctranslate2]'") from None

    backbone = translator.backbone
    settings = backbone.get_config()
    for name, refused in REFUSED.items():
        if name in settings and refused(settings[name]):
            raise UserError(f"CTranslate2's Transformer has no place for {name}={settings[name]!r}")
    if "position_encoding" not in settings or settings["image_shape"] is not None:
        raise UserError("CTranslate2's format holds Transformers that read text only")
    for tokenizer in (translator.source_tokenizer, translator.target_tokenizer):
        if type(tokenizer) is not SubwordTokenizer:
            raise UserError(f"CTranslate2 takes plain SentencePiece, not a {type(tokenizer).__name__}")
    if is_quantized(backbone):
        raise UserError(
            "the translator is quantized already: export the one it was made from, with precision='int8'"
        )
    check_replaceable(folder, "model.bin")
    if precision == "float16":
        check_float16(backbone.weights)
    spec = TransformerSpec.from_config(
        settings["num_layers"],
        settings["num_heads"],
        pre_norm=settings["norm"] == "pre",
        relative_attention_bias=settings["position_encoding"] == "bias",
    )
    spec.config.add_source_eos = True
    spec.config.decoder_start_token = "<s>"
    spec.config.layer_norm_epsilon = 1e-5

    sides = (
        (spec.encoder, spec.encoder.embeddings[0], backbone.source_embedding, backbone.source_positions),
        (spec.decoder, spec.decoder.embeddings, backbone.target_embedding, backbone.target_positions),
    )
    for side, embeddings, table, positions in sides:
        embeddings.weight = array(table.embeddings)  # CTranslate2 multiplies by sqrt(D), as kzoo does
        if settings["position_encoding"] != "bias":
            side.position_encodings.encodings = position_table(
                positions, backbone.max_length, settings["width"]
            )
    spec.decoder.projection.weight = array(backbone.target_embedding.embeddings)
    # CTranslate2 by itself would write these too.
    spec.decoder.projection.bias = np.zeros(len(spec.decoder.projection.weight), "float32")
    spec.decoder.projection.bias[NOT_TEXT] = IN_FLOAT16

    for layer, ours in zip(spec.encoder.layer, backbone.encoder_layers, strict=True):
        set_attention(layer.self_attention, ours.attention, ours.attention_residual, backbone.source_bias)
        set_feedforward(layer.ffn, ours.feedforward, ours.feedforward_residual)
    for layer, ours in zip(spec.decoder.layer, backbone.decoder_layers, strict=True):
        set_attention(
            layer.self_attention, ours.self_attention, ours.self_attention_residual, backbone.target_bias
        )
        set_attention(layer.attention, ours.cross_attention, ours.cross_attention_residual)
        set_feedforward(layer.ffn, ours.feedforward, ours.feedforward_residual)
    if settings["norm"] == "pre":
        set_norm(spec.encoder.layer_norm, backbone.encoder_norm)
        set_norm(spec.decoder.layer_norm, backbone.decoder_norm)

    sides = {"source": translator.source_tokenizer, "target": translator.target_tokenizer}
    register = {"source": spec.register_source_vocabulary, "target": spec.register_target_vocabulary}
    for side, tokenizer in sides.items():
        register[side]([tokenizer.id_to_token(i) for i in range(tokenizer.vocabulary_size())])
    spec.validate()
    spec.optimize(quantization=None if precision == "float32" else precision)
    with whole_folder(folder) as unfinished:
        spec.save(str(unfinished))
        for side, tokenizer in sides.items():
            (unfinished / f"{side}.spm").write_bytes(tokenizer.proto)
        write_json(unfinished / "translate_batch.json", arguments)


def search_arguments(search: SearchSettings) -> dict:
    """Return a search as arguments of CTranslate2's `translate_batch`.

    Raises:
        UserError: a length penalty that CTranslate2 does not have.
    """
    if not isinstance(search.length_penalty, Exponent):
        raise UserError(
            f"CTranslate2 divides log P by length^α, it has no {search.length_penalty}: "
            "give α with --length-penalty, or in the translator's search"
        )
    arguments = {"beam_size": search.beam_size, "length_penalty": search.length_penalty.alpha}
    # Lengths are here with the end symbol, there without.
    if search.max_length is not None:
        arguments["max_decoding_length"] = max(search.max_length - 1, 1)
    if search.no_repeat_ngram:
        arguments["no_repeat_ngram_size"] = search.no_repeat_ngram
    return {**arguments, "min_decoding_length": max(search.min_length - 1, 0)}  # 1 by default


def set_attention(spec, attention, residual, bias=None):
    """Copy an attention: query, key and value in one matrix; in two, the query apart, for cross-attention."""
    if bias is not None:
        spec.relative_attention_bias = array(bias.bias)
        spec.relative_attention_max_distance = np.dtype("int32").type(bias.max_distance)
    *linears, output = spec.linear
    cuts = [attention.num_heads * attention.key_dim] if len(linears) == 2 else []
    kernels = np.split(array(attention.kernel), cuts, axis=1)
    biases = np.split(array(attention.bias), cuts)
    for linear, kernel, bias in zip(linears, kernels, biases, strict=True):
        linear.weight, linear.bias = np.ascontiguousarray(kernel.T), bias
    set_dense(output, attention.output_dense)
    set_norm(spec.layer_norm, residual.layer_norm)


def set_feedforward(spec, feedforward, residual):
    set_dense(spec.linear_0, feedforward.inner)
    set_dense(spec.linear_1, feedforward.outer)
    set_norm(spec.layer_norm, residual.layer_norm)


def set_dense(spec, dense):
    spec.weight, spec.bias = np.ascontiguousarray(array(dense.kernel).T), array(dense.bias)


def set_norm(spec, layer_norm):
    spec.gamma, spec.beta = array(layer_norm.gamma), array(layer_norm.beta)


def position_table(layer, max_length: int, width: int) -> np.ndarray:
    """Return what a position layer adds to the embeddings, `(max_length, D)`; zeros for no layer."""
    nothing = np.zeros((1, max_length, width), "float32")
    return nothing[0] if layer is None else array(layer(nothing))[0]


def array(tensor) -> np.ndarray:
    return np.asarray(ops.convert_to_numpy(tensor), "float32")
