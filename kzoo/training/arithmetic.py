"""How much arithmetic training takes, and how much the device can do: the two sides of its utilization."""

import math
import time

import keras
import numpy as np
from keras import ops

from kzoo.layers import ByLanguage, GlyphEmbedding, ImageTextAttention, MultiHeadAttention

# Layers by the beginnings of their names: whose kernels each source word meets, and each target word.
SOURCE_SIDE = ("source_", "encoder", "bridge")
TARGET_SIDE = ("decoder", "output")
PLACES = (20 * 20, 8 * 8)  # that the convolutions of a glyph meet


def kernel_sizes(backbone: keras.Model) -> tuple[int, int]:
    """Return how many weights of matrix products each source word meets, and each target word.

    Of layers for several languages a word meets one. Tables that are only looked up do not count, nor do a
    recurrent decoder's initial states, one for a sentence.
    """
    source = sum(_kernels(layer) for layer in backbone.layers if layer.name.startswith(SOURCE_SIDE))
    source -= _region_kernels(backbone)
    target = sum(_kernels(layer) for layer in backbone.layers if layer.name.startswith(TARGET_SIDE))
    logits = getattr(backbone, "target_embedding", None)
    if isinstance(logits, keras.layers.ReversibleEmbedding):  # the table is the output's matrix, too
        target += logits.input_dim * logits.output_dim
    return source, target


def _kernels(layer: keras.layers.Layer) -> int:
    if isinstance(layer, keras.layers.Embedding | GlyphEmbedding):
        return 0
    size = sum(math.prod(weight.shape) for weight in layer.trainable_weights if len(weight.shape) > 1)
    return size // len(layer.layers) if isinstance(layer, ByLanguage) else size


def picture_products(backbone: keras.Model) -> int:
    """Return how many products with a weight each image takes.

    A convolution meets every place, the maps of an image's queries and of what they find every region.
    """
    shape, encoder = backbone.get_config().get("image_shape"), getattr(backbone, "picture_encoder", None)
    if shape is None:
        return 0
    if encoder is None:
        return _region_kernels(backbone) * (shape[0] if len(shape) == 2 else 1)
    (height, width, _), total = shape, 0
    for convolution in encoder.convolutions:
        height, width = height // 2, width // 2
        total += math.prod(convolution.kernel.shape) * height * width
    return total + _region_kernels(backbone) * height * width


def glyph_products(backbone: keras.Model) -> int:
    """Return how many products with a weight each glyph takes that is encoded."""
    embedding = getattr(backbone, "source_embedding", None)
    if not isinstance(embedding, GlyphEmbedding):
        return 0
    encoder = embedding.encoder
    maps = [dense for dense in (encoder.features_map, encoder.output_map) if dense is not None]
    total = sum(math.prod(dense.kernel.shape) for dense in maps)
    if encoder.convolutions is not None:
        kernels = zip(encoder.convolutions.kernels, PLACES, strict=True)
        total += sum(math.prod(kernel.shape) * places for kernel, places in kernels)
    return total


def _region_kernels(backbone: keras.Model) -> int:
    """Return how many weights each region of an image meets in the encoder's attentions."""
    return sum(
        math.prod(dense.kernel.shape)
        for layer in backbone._flatten_layers()
        if isinstance(layer, ImageTextAttention)
        for dense in (layer.query_dense, layer.output_dense)
    )


def training_flops(
    backbone: keras.Model,
    sentences: int,
    source_words: int,
    target_words: int,
    squares: int,
    source_types: int = 0,
) -> float:
    """Return the floating-point operations that training on some sentences needs.

    Two for each weight and word, three times: forwards, and backwards for the activations and the weights
    (Kaplan et al. 2020, Section 2.1); and 12·D for each pair of words that an attention layer compares
    (Chowdhery et al. 2022, Appendix B). What padding, dropout and normalization cost is not needed.

    Args:
        backbone: a translator's backbone.
        sentences: int. How many, each with its picture where the model reads one.
        source_words: int. Words read, end symbols included.
        target_words: int. Words written, end symbols included.
        squares: int. Sum over the sentences of length².
        source_types: int. Distinct source words of each batch, summed: the glyphs that are encoded.
    """
    source, target = kernel_sizes(backbone)
    attentions = [layer for layer in backbone._flatten_layers() if isinstance(layer, MultiHeadAttention)]
    products = source * source_words + target * target_words
    products += picture_products(backbone) * sentences + glyph_products(backbone) * source_types
    return 6.0 * products + 12.0 * len(attentions) * backbone.width * squares


def measured_peak(dtype: str, seconds: float = 0.5) -> float:
    """Return the floating-point operations a second of the device's fastest product of two matrices.

    Square ones of 1,024 rows, and doubled while a product takes less than 5 ms.

    Args:
        dtype: of the matrices, such as `"float32"`.
        seconds: float. How long each size is tried.
    """
    random, best, fastest, rows = np.random.default_rng(0), 0.0, 0.0, 512
    while fastest < 5e-3:
        rows *= 2
        # Not of keras.random, whose seed all workers would have to make together: the chief alone measures.
        matrix = ops.convert_to_tensor(random.random((rows, rows), "float32"), dtype)
        fastest = min(_product_seconds(matrix, seconds))
        best = max(best, 2.0 * rows**3 / fastest)
    return best


def _product_seconds(matrix, seconds: float) -> list[float]:
    """Return the times of products of a matrix with itself; the first, which may compile, is left out."""
    times, end = [], time.perf_counter() + seconds
    float(ops.matmul(matrix, matrix)[0, 0])
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        float(ops.matmul(matrix, matrix)[0, 0])  # one number is fetched, so that the product is done
        times.append(time.perf_counter() - start)
    return times
