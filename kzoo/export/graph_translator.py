"""A translator inside a TensorFlow graph, from texts to texts, and the signatures of its SavedModel."""

import os

import keras
import tensorflow as tf

from kzoo.decoding.beam_search import BeamSearch
from kzoo.decoding.search_settings import SearchSettings, output_limit
from kzoo.errors import UserError
from kzoo.export.graph_inputs import GraphLanguages, decode_pictures, graph_tokenizer
from kzoo.export.graph_search import by_group, in_batches, padded_lengths
from kzoo.files import atomic_folder
from kzoo.models.backbones import is_quantized, uses_xla
from kzoo.models.preset_checks import check_finite, check_float16
from kzoo.text.vocabulary import END, PAD, UNKNOWN


def save_graph(translator: keras.Model, folder: str | os.PathLike, search: SearchSettings, precision: str):
    """Write a translator as a SavedModel. Takes the arguments of `export_saved_model`, already checked.

    Raises:
        UserError: a weight is not finite, or too large for float16; or the disk is full.
    """
    check_finite(translator.backbone.weights)
    translator.bake()
    weights = GraphWeights(translator.backbone, precision)
    make = multilingual_module if translator.multilingual else bilingual_module
    make = named_module if translator.source_languages else make
    module, signatures = make(translator, TextSearch(weights, search))
    module.weights = weights.variables
    with atomic_folder(folder) as unfinished:
        try:
            tf.saved_model.save(module, str(unfinished), signatures)
        except tf.errors.OpError as error:  # as "…FILE; No space left on device [Op:SaveV2]"
            if str(unfinished) not in error.message:
                raise
            reason = error.message.rpartition("; ")[2].partition(" [Op:")[0]
            raise OSError(None, reason) from None


class GraphWeights:
    """A backbone's weights as the SavedModel stores them.

    Args:
        backbone: a model on TensorFlow.
        precision: `"float32"`; `"float16"` for storage, with float32 computations; or `"int8"`.

    Attributes:
        backbone: the model to run.
        variables: the variables that a SavedModel stores.

    Raises:
        UserError: a weight too large for float16; a backbone that is quantized already.
    """

    def __init__(self, backbone: keras.Model, precision: str = "float32"):
        self.backbone = quantized(backbone) if precision == "int8" else backbone
        self._halves, kept = [], self.backbone.variables
        if precision == "float16":
            check_float16(kept)
            self._halves = [
                (weight, tf.Variable(tf.cast(weight.value, tf.float16), trainable=False))
                for weight in kept
                if weight.dtype == "float32"
            ]
            kept = [weight for weight in kept if weight.dtype != "float32"]
        self.variables = [half for _, half in self._halves] + [weight.value for weight in kept]

    def reading(self, function):
        """Return a function of tensors that runs the model with these weights."""

        def read(*inputs):
            weights = [(weight, tf.cast(half, tf.float32)) for weight, half in self._halves]
            with keras.StatelessScope(weights):
                return function(*inputs)

        return read if self._halves else function


def quantized(backbone: keras.Model) -> keras.Model:
    """Return a copy of a backbone, with int8 weights in dense and embedding layers.

    This is Keras's quantization: weights have one scale per channel, and activations are quantized
    dynamically. Attention's joint kernels and recurrent cells stay in float32.

    Raises:
        UserError: the backbone is quantized already, or has LoRA weights.
    """
    if is_quantized(backbone):
        raise UserError("the translator is already quantized: leave precision out")
    copy = type(backbone).from_config(backbone.get_config())
    if len(copy.weights) != len(backbone.weights):
        raise UserError("the translator has LoRA weights: call backbone.merge_lora() before")
    copy.set_weights(backbone.get_weights())
    kinds = (keras.layers.Dense, keras.layers.Embedding)
    copy.quantize("int8", filters=lambda layer: isinstance(layer, kinds))
    return copy


class TextSearch:
    """A model's beam search in the graph, on ragged token ids."""

    def __init__(self, weights: GraphWeights, settings: SearchSettings):
        self.backbone, self.weights, self.settings = weights.backbone, weights, settings
        self.beam_size, self.most = settings.beam_size, self.backbone.max_length
        self.lengths = padded_lengths(self.most, uses_xla(self.backbone))
        self.limits = {length: output_limit(settings, length, self.most) for length in self.lengths}

    def __call__(self, tokens, others: dict, prefix):
        """Return the token ids of hypotheses, ragged `(B·K, None)`, and their scores `(B, K)`.

        Args:
            tokens: ragged int32 `(B, None)`, the sentences.
            others: the other inputs of `encode`.
            prefix: ragged int32 `(B, None)`, the beginnings of the hypotheses; with an unknown token, which
                no hypothesis contains, it is an error.
        """
        known = tf.debugging.assert_none_equal(
            prefix.values, UNKNOWN, message="the prefix has a character that the vocabulary lacks"
        )
        with tf.control_dependencies([known]):
            prefix = tf.identity(prefix)
        longest = min(self.settings.max_length or self.most, self.most) - 1  # before the end symbol
        prefix = tf.cast(prefix[:, :longest], tf.int32).to_tensor(PAD, shape=(None, self.most))
        others = {**others, "prefix": prefix}
        B, K, T = tokens.nrows(tf.int32), self.beam_size, self.limits[self.most]
        empty = {"tokens": tf.fill([B, K, T], PAD), "scores": tf.fill([B, K], -1e9)}
        found = in_batches(tokens, others, empty, self.lengths, self._compiled)
        # An empty text translates to an empty text with score 0.
        nothing = tf.equal(tokens.row_lengths(), 0)[:, None]
        scores = tf.where(nothing, tf.constant([0.0] + [-1e9] * (K - 1)), found["scores"])
        output = tf.reshape(found["tokens"], (B * K, T))
        ends = tf.reduce_min(tf.where(tf.equal(output, END), tf.range(T), T), axis=1)
        lengths = tf.where(tf.reshape(scores, (-1,)) > -1e8, ends, 0)
        return tf.RaggedTensor.from_tensor(output, lengths=tf.where(lengths < T, lengths, 0)), scores

    def _compiled(self, length: int):
        search = BeamSearch(self.backbone, **vars(self.settings.changed(max_length=self.limits[length])))
        reading = self.weights.reading(lambda inputs: search(inputs))
        return tf.function(reading, jit_compile=uses_xla(self.backbone), autograph=False)


def bilingual_module(translator, search: TextSearch):
    """Return the module and the signatures of a translator of one direction."""
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
        prefix_tokens = module.target.tokenize(prefix)
        found, scores = search(tokens, {"image": image[0]} if image else {}, prefix_tokens)
        texts = tf.reshape(module.target.detokenize(found), (-1, search.beam_size))
        return {"translation": texts, "score": scores}

    return module, _translation_signatures(hypotheses, signature)


def named_module(translator, search: TextSearch):
    """Return the module and the signatures of a translator whose vocabulary names its languages."""
    module, codes = tf.Module(), translator.target_languages
    module.languages = GraphLanguages(codes)
    tokenizers = translator.source_tokenizer, translator.target_tokenizer
    module.source, module.target = map(graph_tokenizer, tokenizers)
    firsts = {one.names: [one.ids[one.tokens[code]] for code in codes] for one in tokenizers if one.names}
    sides = [side for side in ("source", "target") if side in firsts]
    inputs = "text", *(f"{side}_language" for side in sides)
    signature = [tf.TensorSpec([None], tf.string, name) for name in inputs]

    def hypotheses(text, *others):
        *languages, prefix = others
        first = {
            side: tf.gather(firsts[side], module.languages.numbers(names))
            for side, names in zip(sides, languages, strict=True)
        }
        begins = [first.get(tokenizer.names) for tokenizer in tokenizers]
        tokens = _after_first(module.source.tokenize(text), begins[0])[:, : search.most - 1]
        prefix_tokens = _after_first(module.target.tokenize(prefix), begins[1])
        found, scores = search(
            tokens, {} if begins[1] is None else {"language_token": begins[1]}, prefix_tokens
        )
        texts = tf.reshape(module.target.detokenize(found), (-1, search.beam_size))
        return {"translation": texts, "score": scores}

    return module, _translation_signatures(hypotheses, signature)


def _after_first(tokens, first):
    """Return ragged token ids after a first one `(B,)`, unless they are empty, or `first` is `None`."""
    if first is None:
        return tokens
    firsts = tf.ragged.boolean_mask(first[:, None], (tokens.row_lengths() > 0)[:, None])
    return tf.concat([firsts, tokens], axis=1)


def multilingual_module(translator, search: TextSearch):
    """Return the module and the signatures of a multilingual translator."""
    module, K = tf.Module(), search.beam_size
    module.languages = GraphLanguages(translator.languages)
    module.tokenizers = [graph_tokenizer(tokenizer) for tokenizer in translator.tokenizers.values()]
    signature = [
        tf.TensorSpec([None], tf.string, name) for name in ("text", "source_language", "target_language")
    ]

    def hypotheses(text, source_language, target_language, prefix):
        codes = [module.languages.numbers(names) for names in (source_language, target_language)]

        def translate(text, source, target, prefix):
            """Translate texts of one source and one target language."""
            tokens = _tokenized(module, text, source, search.most)
            prefix_tokens = _tokenized(module, prefix, target, search.most)
            found, scores = search(
                tokens, {"source_language": source, "target_language": target}, prefix_tokens
            )
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
    """Return the signatures of a function that returns the texts and scores of K hypotheses."""
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
    """Return `(B, K)` hypotheses with each text once; "" and -1e9 fill the last places."""
    K = translation.shape[1]
    earlier = tf.range(K)[None, :] < tf.range(K)[:, None]
    again = tf.reduce_any(tf.equal(translation[:, :, None], translation[:, None, :]) & earlier, axis=2)
    order = tf.argsort(tf.cast(again, tf.int32), axis=1, stable=True)
    distinct = {"translation": tf.where(again, "", translation), "score": tf.where(again, -1e9, score)}
    return {name: tf.gather(values, order, batch_dims=1) for name, values in distinct.items()}


def _embedding_signature(module, search: TextSearch) -> dict:
    """Return the signature of the bridge's M, flattened; none for a model without a bridge."""
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
        return in_batches(tokens, {"source_language": source}, nothing(text), search.lengths, matrices)

    @tf.function(input_signature=signature, autograph=False)
    def embed(text, language):
        text, language = of_one_length(signature, (text, language))
        numbers = module.languages.numbers(language)
        return by_group(numbers, (text, numbers), nothing(text), embedded)

    return {"embed": embed}


def _tokenized(module, text, language, most: int):
    """Return the token ids of texts in one language, ragged, at most `most` with the end symbol."""
    return tf.switch_case(
        language[0],
        [lambda t=tokenizer: t.tokenize(text)[:, : most - 1] for tokenizer in module.tokenizers],
    )


def of_one_length(signature: list, inputs: tuple) -> tuple:
    """Return the inputs; the graph checks that they have one row per text."""
    rows = tf.shape(inputs[0])[0]
    checks = [
        tf.debugging.assert_equal(
            tf.shape(values)[0], rows, message=f"{spec.name} must have a row for each text"
        )
        for spec, values in zip(signature[1:], inputs[1:], strict=True)
    ]
    with tf.control_dependencies(checks):
        return tuple(tf.identity(values) for values in inputs)
