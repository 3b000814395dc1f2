"""Translators as TensorFlow SavedModels: text in, text out, the whole search inside.

`translator.export(FOLDER)` calls it. Loading one needs only tensorflow and tensorflow_text.
"""

import os
from collections.abc import Callable

import keras

from kzoo.decoding.batched_search import output_limit
from kzoo.decoding.beam_search import BeamSearch
from kzoo.decoding.search_settings import SearchSettings
from kzoo.errors import UserError
from kzoo.export.graph_images import decode_pictures
from kzoo.export.graph_search import by_group, in_batches, padded_lengths
from kzoo.export.graph_text import graph_languages, graph_tokenizer
from kzoo.export.precision import PRECISIONS, FullWeights, check_precision
from kzoo.files import check_replaceable, whole_folder
from kzoo.models.compiled import uses_xla
from kzoo.text.tokenizers import END, PAD


def export_saved_model(
    translator: keras.Model,
    folder: str | os.PathLike,
    beam_size: int | None = None,
    length_penalty: float | Callable | None = None,
    precision: str = "float32",
):
    """Write a SavedModel.

    Its signatures take texts `(B,)`; B may be 0. Sentences and prefixes longer than the model can read or
    write are cut. All but the prefix is fixed here: beam size, length penalty, and the rest of `search`.

        serving_default   text → translation (B,), score (B,)
        n_best            text → translation (B, K), score (B, K), best first; "" and -1e9 if there are fewer
        prefixed          text, prefix → the same; translations begin with the prefix, or with anything for ""
        embed             text, language → embedding (B, k·D): only with an attention bridge

    A model of several languages also takes `source_language` and `target_language`, strings `(B,)`; one that
    reads pictures takes `image`, strings `(B,)` that hold encoded JPEG or PNG files; one that reads features
    takes `image`, float32 `(B, *image_shape)`.

    Args:
        translator: a `Translator` or a `MultilingualTranslator`.
        folder: folder to write; it appears complete or not at all, and replaces an earlier one.
        beam_size: int. K; by default that of the translator's `search`, which the rest is taken from.
        length_penalty: as in `Translator.translate`, with the same default.
        precision: of the weights in the file: `"float32"`; `"float16"`, computing in float32; `"int8"`.

    Raises:
        UserError: another precision or backend than these, another beam or length penalty than a search
            can have, a tokenizer that cannot run in TensorFlow's graph, a weight beyond float16, or a folder
            with other contents.
    """
    if keras.backend.backend() != "tensorflow":
        raise UserError(
            f"a SavedModel is written by TensorFlow, not by {keras.backend.backend()}: "
            "load the preset with KERAS_BACKEND=tensorflow"
        )
    import tensorflow as tf

    check_precision(precision)
    check_replaceable(folder, "saved_model.pb")
    search = translator.search.changed(beam_size=beam_size, length_penalty=length_penalty)
    make = multilingual_module if translator.multilingual else bilingual_module
    translator.bake()
    weights = PRECISIONS[precision](translator.backbone)
    module, signatures = make(translator, TextSearch(weights, search))
    module.weights = weights.variables
    with whole_folder(folder) as unfinished:
        tf.saved_model.save(module, str(unfinished), signatures)


class TextSearch:
    """A model's beam search on ragged token ids in the graph."""

    def __init__(self, weights: FullWeights, settings: SearchSettings):
        self.backbone, self.weights, self.settings = weights.backbone, weights, settings
        self.beam_size, self.most = settings.beam_size, self.backbone.max_length
        self.limits = {n: output_limit(settings, n, self.most) for n in padded_lengths(self.most)}

    def __call__(self, tokens, others: dict, prefix):
        """Return the hypotheses of ragged token ids: their ids, ragged `(B·K, None)`, and scores `(B, K)`.

        Args:
            tokens: ragged int32 `(B, None)`, the sentences.
            others: the other inputs of `encode`.
            prefix: ragged int32 `(B, None)`, what the hypotheses begin with.
        """
        import tensorflow as tf

        longest = min(self.settings.max_length or self.most, self.most) - 1  # before the end symbol
        prefix = tf.cast(prefix[:, :longest], tf.int32).to_tensor(PAD, shape=(None, self.most))
        others = {**others, "prefix": prefix}
        B, K, T = tokens.nrows(tf.int32), self.beam_size, self.limits[self.most]
        empty = {"tokens": tf.fill([B, K, T], PAD), "scores": tf.fill([B, K], -1e9)}
        found = in_batches(tokens, others, empty, self.most, self._compiled)
        # An empty text translates to an empty text, with certainty.
        nothing = tf.equal(tokens.row_lengths(), 0)[:, None]
        scores = tf.where(nothing, tf.constant([0.0] + [-1e9] * (K - 1)), found["scores"])
        output = tf.reshape(found["tokens"], (B * K, T))
        ends = tf.reduce_min(tf.where(tf.equal(output, END), tf.range(T), T), axis=1)
        lengths = tf.where(tf.reshape(scores, (-1,)) > -1e8, ends, 0)
        return tf.RaggedTensor.from_tensor(output, lengths=tf.where(lengths < T, lengths, 0)), scores

    def _compiled(self, length: int):
        import tensorflow as tf

        search = BeamSearch(self.backbone, **vars(self.settings.changed(max_length=self.limits[length])))
        compile = {"jit_compile": uses_xla(self.backbone), "autograph": False}
        return tf.function(self.weights.reading(search), **compile)


def bilingual_module(translator, search: TextSearch):
    """Return the module and the signatures of a translator of one direction."""
    import tensorflow as tf

    module, shape = tf.Module(), translator.image_shape
    module.source = graph_tokenizer(translator.source_tokenizer)
    module.target = graph_tokenizer(translator.target_tokenizer)
    signature = [tf.TensorSpec([None], tf.string, "text")]
    pictures = shape is not None and len(shape) == 3
    if pictures:
        signature.append(tf.TensorSpec([None], tf.string, "image"))
    elif shape is not None:
        signature.append(tf.TensorSpec([None, *shape], tf.float32, "image"))

    def hypotheses(text, *others):
        *image, prefix = others
        tokens = module.source.tokenize(text)[:, : search.most - 1]
        if pictures:
            image = [decode_pictures(image[0], shape[:2])]
        begun = module.target.tokenize(prefix)
        found, scores = search(tokens, {"image": image[0]} if image else {}, begun)
        texts = tf.reshape(module.target.detokenize(found), (-1, search.beam_size))
        return {"translation": texts, "score": scores}

    return module, _translation_signatures(hypotheses, signature)


def multilingual_module(translator, search: TextSearch):
    """Return the module and the signatures of a translator among several languages."""
    import tensorflow as tf

    module, K = tf.Module(), search.beam_size
    module.languages = graph_languages(translator.languages)
    module.tokenizers = [graph_tokenizer(tokenizer) for tokenizer in translator.tokenizers.values()]
    signature = [
        tf.TensorSpec([None], tf.string, name) for name in ("text", "source_language", "target_language")
    ]

    def hypotheses(text, source_language, target_language, prefix):
        codes = [module.languages.numbers(names) for names in (source_language, target_language)]

        def translate(text, source, target, prefix):
            """Translate texts of one source and one target language."""
            tokens = _tokenized(module, text, source, search.most)
            begun = _tokenized(module, prefix, target, search.most)
            found, scores = search(tokens, {"source_language": source, "target_language": target}, begun)
            written = [lambda t=tokenizer: t.detokenize(found) for tokenizer in module.tokenizers]
            return {"translation": tf.reshape(tf.switch_case(target[0], written), (-1, K)), "score": scores}

        B = tf.shape(text)[0]
        empty = {"translation": tf.fill([B, K], ""), "score": tf.fill([B, K], -1e9)}
        group = codes[0] * len(module.tokenizers) + codes[1]
        return by_group(group, (text, *codes, prefix), empty, translate)

    return module, {
        **_translation_signatures(hypotheses, signature),
        **_embedding_signature(module, search),
    }


def _translation_signatures(hypotheses, signature: list) -> dict:
    """Return signatures for the best hypothesis and for all K, given a function to their texts and scores."""
    import tensorflow as tf

    with_prefix = [*signature, tf.TensorSpec([None], tf.string, "prefix")]

    @tf.function(input_signature=with_prefix, autograph=False)
    def prefixed(*inputs):
        return _distinct(**hypotheses(*of_one_length(with_prefix, inputs)))

    @tf.function(input_signature=signature, autograph=False)
    def n_best(*inputs):
        return prefixed(*inputs, tf.fill(tf.shape(inputs[0]), ""))

    @tf.function(input_signature=signature, autograph=False)
    def translate(*inputs):
        return {name: values[:, 0] for name, values in n_best(*inputs).items()}

    return {"serving_default": translate, "n_best": n_best, "prefixed": prefixed}


def _distinct(translation, score) -> dict:
    """Return `(B, K)` hypotheses with each text once; "" and -1e9 stand in the last places instead."""
    import tensorflow as tf

    K = translation.shape[1]
    earlier = tf.range(K)[None, :] < tf.range(K)[:, None]
    again = tf.reduce_any(tf.equal(translation[:, :, None], translation[:, None, :]) & earlier, axis=2)
    order = tf.argsort(tf.cast(again, tf.int32), axis=1, stable=True)
    distinct = {"translation": tf.where(again, "", translation), "score": tf.where(again, -1e9, score)}
    return {name: tf.gather(values, order, batch_dims=1) for name, values in distinct.items()}


def _embedding_signature(module, search: TextSearch) -> dict:
    """Return the signature of M, flattened; none for a model without a bridge."""
    import tensorflow as tf

    backbone, most = search.backbone, search.most
    if backbone.bridge is None:
        return {}
    k, D = backbone.matrix_shape
    signature = [tf.TensorSpec([None], tf.string, name) for name in ("text", "language")]

    def flat(inputs):
        return {"embedding": tf.cast(tf.reshape(backbone.matrix(inputs)[0], (-1, k * D)), tf.float32)}

    def matrices(length: int):
        return tf.function(search.weights.reading(flat), autograph=False)

    def nothing(text):
        return {"embedding": tf.zeros((tf.shape(text)[0], k * D))}

    def embedded(text, source):
        tokens = _tokenized(module, text, source, most)
        return in_batches(tokens, {"source_language": source}, nothing(text), most, matrices)

    @tf.function(input_signature=signature, autograph=False)
    def embed(text, language):
        text, language = of_one_length(signature, (text, language))
        numbers = module.languages.numbers(language)
        return by_group(numbers, (text, numbers), nothing(text), embedded)

    return {"embed": embed}


def _tokenized(module, text, language, most: int):
    """Return the token ids, ragged and at most `most` with the end symbol, of texts in one language."""
    import tensorflow as tf

    return tf.switch_case(
        language[0],
        [lambda t=tokenizer: t.tokenize(text)[:, : most - 1] for tokenizer in module.tokenizers],
    )


def of_one_length(signature: list, inputs: tuple) -> tuple:
    """Return the inputs, checked in the graph to have one row per text."""
    import tensorflow as tf

    rows = tf.shape(inputs[0])[0]
    checks = [
        tf.debugging.assert_equal(
            tf.shape(values)[0], rows, message=f"{spec.name} must have a row for each text"
        )
        for spec, values in zip(signature[1:], inputs[1:], strict=True)
    ]
    with tf.control_dependencies(checks):
        return tuple(tf.identity(values) for values in inputs)
