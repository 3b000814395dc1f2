"""The arithmetic of training a model, and the device's fastest matrix product, to compare it with."""

import math
import time

import keras
import numpy as np
from keras import ops

from kzoo.layers import MultiHeadAttention
from kzoo.models import AttentionBridgeBackbone


def training_flops(backbone: keras.Model, source_tokens: int, target_tokens: int, squares: int) -> float:
    """Return the floating-point operations needed to train on sentences.

    Each weight and token takes two operations in each of three passes: forward, backward for the activations,
    backward for the weights (Kaplan et al. 2020, Section 2.1). Each pair of tokens that an attention layer
    compares takes 12·D (Chowdhery et al. 2022, Appendix B). Padding, dropout and normalization do not count.

    Args:
        backbone: the backbone of a Transformer that reads text only, with one vocabulary.
        source_tokens: int. Source tokens, end symbols included.
        target_tokens: int. Target tokens, end symbols included.
        squares: int. Sum of length² over the sentences.
    """
    source, target = kernel_sizes(backbone)
    attentions = [layer for layer in backbone._flatten_layers() if isinstance(layer, MultiHeadAttention)]
    products = source * source_tokens + target * target_tokens
    return 6.0 * products + 12.0 * len(attentions) * backbone.width * squares


def kernel_sizes(backbone: keras.Model) -> tuple[int, int]:
    """Return the number of weights that multiply each source token, and that of each target token.

    Embedding lookups do not count. Of an attention bridge, those of one direction.
    """
    if isinstance(backbone, AttentionBridgeBackbone):
        source = _kernels(backbone, "encoders/encoder_0/", "bridge/")
        return source, _kernels(
            backbone, "decoder_0/cell", "decoder_0/combine", "outputs_by_language/output_0/"
        )
    source, target = (_kernels(backbone, f"{side}_layer") for side in ("encoder", "decoder"))
    table = backbone.target_embedding  # also the output projection
    return source, target + table.input_dim * table.output_dim


def _kernels(backbone: keras.Model, *starts: str) -> int:
    """Return the number of weights in the kernels whose paths start so."""
    weights = [weight for weight in backbone.trainable_weights if weight.path.startswith(starts)]
    return sum(math.prod(weight.shape) for weight in weights if len(weight.shape) > 1)


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
