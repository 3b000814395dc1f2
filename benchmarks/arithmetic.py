"""The arithmetic of training a model, and the device's fastest matrix product, to compare it with."""

import math
import time

import keras
import numpy as np
from keras import ops
from keras_hub.layers import PositionEmbedding

from kzoo.layers import ByLanguage, GlyphEmbedding, ImageTextAttention, MultiHeadAttention

# Name prefixes of the layers that process each source token, and of those that process each target token.
SOURCE_SIDE = ("source_", "encoder", "bridge")
TARGET_SIDE = ("decoder", "output")
PLACES = (20 * 20, 8 * 8)  # output positions of a glyph's convolutions


def training_flops(
    backbone: keras.Model,
    sentences: int,
    source_tokens: int,
    target_tokens: int,
    squares: int,
    source_types: int = 0,
) -> float:
    """Return the floating-point operations needed to train on sentences.

    Each weight and token takes two operations in each of three passes: forward, backward for the activations,
    backward for the weights (Kaplan et al. 2020, Section 2.1). Each pair of tokens that an attention layer
    compares takes 12·D (Chowdhery et al. 2022, Appendix B). Padding, dropout and normalization do not count.

    Args:
        backbone: a translator's backbone.
        sentences: int. Number of sentences, each with an image if the model reads images.
        source_tokens: int. Source tokens, end symbols included.
        target_tokens: int. Target tokens, end symbols included.
        squares: int. Sum of length² over the sentences.
        source_types: int. Distinct source tokens of each batch, summed: the glyphs that are encoded.
    """
    source, target = kernel_sizes(backbone)
    attentions = [layer for layer in backbone._flatten_layers() if isinstance(layer, MultiHeadAttention)]
    products = source * source_tokens + target * target_tokens
    products += picture_products(backbone) * sentences + glyph_products(backbone) * source_types
    return 6.0 * products + 12.0 * len(attentions) * backbone.width * squares


def kernel_sizes(backbone: keras.Model) -> tuple[int, int]:
    """Return the number of weights that multiply each source token, and that of each target token.

    Each token uses one of the layers per language. Embedding lookups do not count. Neither do a recurrent
    decoder's initial states, which are computed once per sentence.
    """
    source = sum(_kernels(layer) for layer in backbone.layers if layer.name.startswith(SOURCE_SIDE))
    source -= _region_kernels(backbone)
    target = sum(_kernels(layer) for layer in backbone.layers if layer.name.startswith(TARGET_SIDE))
    logits = getattr(backbone, "target_embedding", None)
    if isinstance(logits, keras.layers.ReversibleEmbedding):  # the table is also the output projection
        target += logits.input_dim * logits.output_dim
    return source, target


def _kernels(layer: keras.layers.Layer) -> int:
    if isinstance(layer, keras.layers.Embedding | PositionEmbedding | GlyphEmbedding):
        return 0
    size = sum(math.prod(weight.shape) for weight in layer.trainable_weights if len(weight.shape) > 1)
    return size // len(layer.layers) if isinstance(layer, ByLanguage) else size


def picture_products(backbone: keras.Model) -> int:
    """Return the number of multiplications by weights for each image.

    Convolutions run at every position, the projections of image attention at every region.
    """
    shape, total = backbone.get_config().get("image_shape") or (), 0
    encoder = getattr(backbone, "picture_encoder", None)
    for convolution in encoder.convolutions if encoder is not None else ():
        _, *shape = convolution.compute_output_shape((None, *shape))
        total += math.prod(convolution.kernel.shape) * math.prod(shape[:-1])
    return total + _region_kernels(backbone) * math.prod(shape[:-1])


def glyph_products(backbone: keras.Model) -> int:
    """Return the number of multiplications by weights for each encoded glyph."""
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
    """Return the number of weights that multiply each image region in the encoder's attention layers."""
    return sum(
        math.prod(dense.kernel.shape)
        for layer in backbone._flatten_layers()
        if isinstance(layer, ImageTextAttention)
        for dense in (layer.query_dense, layer.output_dense)
    )


def measured_peak(dtype: str, seconds: float = 0.5) -> float:
    """Return the floating-point operations per second of the device's fastest matrix product.

    Starts with square matrices of 1,024 rows, and doubles their size until a product takes 5 ms.

    Args:
        dtype: the matrices' dtype, such as `"float32"`.
        seconds: float. Time to measure each size.
    """
    random, best, fastest, rows = np.random.default_rng(0), 0.0, 0.0, 512
    while fastest < 5e-3:
        rows *= 2
        matrix = ops.convert_to_tensor(random.random((rows, rows), "float32"), dtype)
        fastest = min(_product_seconds(matrix, seconds))
        best = max(best, 2.0 * rows**3 / fastest)
    return best


def _product_seconds(matrix, seconds: float) -> list[float]:
    """Time products of a matrix with itself, except the first, which may compile."""
    times, end = [], time.perf_counter() + seconds
    float(ops.matmul(matrix, matrix)[0, 0])
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        float(ops.matmul(matrix, matrix)[0, 0])  # fetching one number waits for the product
        times.append(time.perf_counter() - start)
    return times
