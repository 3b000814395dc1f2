"""How much arithmetic training needs and how much the device can do: their ratio is its utilization."""

import math
import time

import keras
import numpy as np
from keras import ops
from keras_hub.layers import PositionEmbedding

from kzoo.layers import ByLanguage, GlyphEmbedding, ImageTextAttention, MultiHeadAttention

# Name prefixes of the layers that multiply each source token by their kernels, and each target token.
SOURCE_SIDE = ("source_", "encoder", "bridge")
TARGET_SIDE = ("decoder", "output")
PLACES = (20 * 20, 8 * 8)  # positions at which a glyph's convolutions are computed


def kernel_sizes(backbone: keras.Model) -> tuple[int, int]:
    """Return how many weights each source token is multiplied by, and each target token.

    Of a layer per language, each token meets one. Embeddings that are only looked up do not count, nor do a
    recurrent decoder's initial states, which are computed once per sentence.
    """
    source = sum(_kernels(layer) for layer in backbone.layers if layer.name.startswith(SOURCE_SIDE))
    source -= _region_kernels(backbone)
    target = sum(_kernels(layer) for layer in backbone.layers if layer.name.startswith(TARGET_SIDE))
    logits = getattr(backbone, "target_embedding", None)
    if isinstance(logits, keras.layers.ReversibleEmbedding):  # the table is also the output's matrix
        target += logits.input_dim * logits.output_dim
    return source, target


def _kernels(layer: keras.layers.Layer) -> int:
    if isinstance(layer, keras.layers.Embedding | PositionEmbedding | GlyphEmbedding):
        return 0
    size = sum(math.prod(weight.shape) for weight in layer.trainable_weights if len(weight.shape) > 1)
    return size // len(layer.layers) if isinstance(layer, ByLanguage) else size


def picture_products(backbone: keras.Model) -> int:
    """Return how many multiplications by a weight each image takes.

    Convolutions are computed at every position, the projections of an image's attention at every region.
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
    """Return how many multiplications by a weight each encoded glyph takes."""
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
    """Return how many weights each region of an image is multiplied by in the encoder's attentions."""
    return sum(
        math.prod(dense.kernel.shape)
        for layer in backbone._flatten_layers()
        if isinstance(layer, ImageTextAttention)
        for dense in (layer.query_dense, layer.output_dense)
    )


def training_flops(
    backbone: keras.Model,
    sentences: int,
    source_tokens: int,
    target_tokens: int,
    squares: int,
    source_types: int = 0,
) -> float:
    """Return the floating-point operations that training on sentences needs.

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


def measured_peak(dtype: str, seconds: float = 0.5) -> float:
    """Return the floating-point operations per second of the device's fastest matrix product.

    The matrices are square, with 1,024 rows at first, and twice as many until a product takes 5 ms.

    Args:
        dtype: the matrices' dtype, such as `"float32"`.
        seconds: float. Time to measure each size.
    """
    random, best, fastest, rows = np.random.default_rng(0), 0.0, 0.0, 512
    while fastest < 5e-3:
        rows *= 2
        # Not keras.random, whose seed needs all workers: only the chief measures.
        matrix = ops.convert_to_tensor(random.random((rows, rows), "float32"), dtype)
        fastest = min(_product_seconds(matrix, seconds))
        best = max(best, 2.0 * rows**3 / fastest)
    return best


def _product_seconds(matrix, seconds: float) -> list[float]:
    """Return the times of products of a matrix with itself, without the first, which may compile."""
    times, end = [], time.perf_counter() + seconds
    float(ops.matmul(matrix, matrix)[0, 0])
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        float(ops.matmul(matrix, matrix)[0, 0])  # fetching one number waits for the product
        times.append(time.perf_counter() - start)
    return times
