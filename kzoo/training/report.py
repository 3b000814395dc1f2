"""A run's history, TensorBoard's curves, and the table of its speed.

The table compares the arithmetic that training needs with the device's peak; the ratio is its utilization.
"""

import csv
import importlib.util
import math
import re
import sys
import time
from collections import Counter
from pathlib import Path

import keras
import numpy as np
from keras import ops
from keras_hub.layers import PositionEmbedding

from kzoo.data.batches import WrappedBatches
from kzoo.files import whole_file
from kzoo.layers import ByLanguage, GlyphEmbedding, ImageTextAttention, MultiHeadAttention
from kzoo.text.vocabulary import PAD
from kzoo.training.checkpoints import Checkpoints

# Name prefixes of the layers that process each source token, and of those that process each target token.
SOURCE_SIDE = ("source_", "encoder", "bridge")
TARGET_SIDE = ("decoder", "output")
PLACES = (20 * 20, 8 * 8)  # output positions of a glyph's convolutions


class History(keras.callbacks.Callback):
    """Writes the history as CSV after each epoch, and stops training when patience runs out.

    Args:
        path: the file.
        checkpoints: callback with the history; place it before this callback.
        patience: int. Stop after this many epochs without a better validation BLEU; 0: never.
    """

    def __init__(self, path: Path, checkpoints: Checkpoints, patience: int):
        super().__init__()
        self.path, self.checkpoints, self.patience = path, checkpoints, patience

    @property
    def out_of_patience(self) -> bool:
        """Whether validation BLEU has not improved in the last `patience` epochs."""
        scores = [row["val_bleu"] for row in self.checkpoints.history]
        since_best = len(scores) - 1 - scores.index(max(scores)) if scores else 0
        return 0 < self.patience <= since_best

    def on_epoch_end(self, epoch, logs=None):
        self.write()
        if self.out_of_patience:
            self.model.stop_training = True

    def write(self):
        """Write the file, on the chief only."""
        if not self.checkpoints.strategy.is_chief:
            return
        history = self.checkpoints.history
        names = dict.fromkeys(name for row in history for name in row)
        with whole_file(self.path) as path, open(path, "w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(names))
            writer.writeheader()
            writer.writerows(history)


def curves(folder: Path) -> list[keras.callbacks.Callback]:
    """Return the callback that writes TensorBoard's log; none if TensorFlow or TensorBoard is missing."""
    # keras-hub installs TensorFlow without TensorBoard.
    missing = [name for name in ("tensorflow", "tensorboard") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"{' and '.join(missing)}: not installed; this run has no TensorBoard log, only history.csv")
        return []
    return [keras.callbacks.TensorBoard(folder)]


class CountedBatches(WrappedBatches):
    """Batches that count their contents as they are made.

    Attributes:
        counts: sums over the batches made, by name:
            batches: their number.
            sentences: number of their sentences.
            source_tokens, target_tokens: tokens, with end symbols, without padding.
            source_types: distinct source tokens of each batch.
            places: tokens of both sides, with padding.
            squares: length² of each sentence pair's longer side.
            seconds: time spent making the batches, including prefetched ones.
    """

    def __init__(self, batches: keras.utils.PyDataset):
        super().__init__(batches)
        self.counts = Counter()

    def __getitem__(self, index: int):
        start = time.perf_counter()
        inputs, labels, weights = self.batches[index]
        seconds, source = time.perf_counter() - start, inputs["source"]
        sides = [(tokens != PAD).sum(axis=1) for tokens in (source, labels)]
        self.counts.update(
            batches=1,
            sentences=int((sides[0] > 0).sum()),
            source_tokens=int(sides[0].sum()),
            target_tokens=int(sides[1].sum()),
            source_types=np.unique(source[source != PAD]).size,
            places=source.size + labels.size,
            squares=int((sides[0].clip(sides[1]) ** 2).sum()),
            seconds=seconds,
        )
        return inputs, labels, weights


class RunReport(keras.callbacks.Callback):
    """Logs each epoch's speed, and reports the run's speed at its end.

    It logs an epoch's seconds, target tokens per second, and the share of its time spent making batches.
    Place it before the callbacks that read these logs or log other times.

    Args:
        batches: the training batches, of all workers.
        checkpoints: callback with an epoch's time, summed over restarts.
        began: `time.perf_counter()` at the start of the run.
        devices: int. Number of devices that train together.
        passes: int. Number of times that the model computes each row of a batch: 2 with a consistency loss.

    Attributes:
        compiled: what `kzoo.training.compiling.compile_step` returned.
    """

    def __init__(
        self,
        batches: CountedBatches,
        checkpoints: Checkpoints,
        began: float,
        devices: int = 1,
        passes: int = 1,
    ):
        super().__init__()
        self.passes = passes
        self.batches, self.counts, self.checkpoints = batches.batches, batches.counts, checkpoints
        self.devices, self.epochs, self.compiled = devices, [], {}
        self._began, self._training, self._first_step, self._steps = began, None, None, 0
        self._earlier = 0.0  # seconds before a restart, when batches were not counted
        self._peak = 0

    def on_train_begin(self, logs=None):
        self._training = self._training or time.perf_counter()

    def on_epoch_begin(self, epoch, logs=None):
        self._before, self._made = self.checkpoints.seconds, self.counts["seconds"]
        self._earlier += self._before

    def on_train_batch_end(self, batch, logs=None):
        self._steps += 1
        if self._first_step is None:
            self._first_step = time.perf_counter() - self._training

    def on_epoch_end(self, epoch, logs=None):
        seconds = self.checkpoints.seconds
        tokens = self.batches.num_tokens * self.checkpoints.batch / len(self.batches)
        here = seconds - self._before  # 0 if the epoch only had to be scored
        share = (self.counts["seconds"] - self._made) / here if here else 0.0
        logs |= {"seconds": seconds, "tokens_per_second": tokens / seconds, "input_share": share}
        self.epochs.append(logs)  # no copy: later callbacks add to it

    def on_train_end(self, logs=None):
        self._peak = peak_memory()  # before the report and a copy of the model take memory

    def rows(self) -> list[tuple[str, str]]:
        """Return the measurements as names and values; none if no epoch was trained."""
        if not self.epochs or not self.counts["batches"]:
            return []
        counts, now = self.counts, time.perf_counter()
        whole, before = now - self._began, self._training - self._began
        # Batches are prefetched, so a short run does not train on all that were counted.
        trained = self._steps / counts["batches"]
        training = sum(epoch["seconds"] for epoch in self.epochs) - self._earlier
        validation = sum(epoch.get("val_seconds", 0.0) for epoch in self.epochs)
        rest = max(0.0, whole - before - training - validation)
        rows = [
            self.passes * counts[key] for key in ("sentences", "source_tokens", "target_tokens", "squares")
        ]
        needed = trained * training_flops(self.model.backbone, *rows, counts["source_types"])
        padding = 1 - (counts["source_tokens"] + counts["target_tokens"]) / counts["places"]
        precision = self.model.dtype_policy.compute_dtype
        peak = self.devices * measured_peak(precision)
        timed = self.compiled.get("seconds", {}).items()
        return [
            ("target tokens per second", f"{trained * counts['target_tokens'] / training:,.0f}"),
            ("arithmetic needed for them", f"{needed / training / 1e9:,.1f} GFLOP/s"),
            ("  share of a matrix product", f"{needed / training / peak:.1%}"),
            (f"    which reaches, in {precision}", f"{peak / 1e9:,.0f} GFLOP/s"),
            ("padding among the tokens", f"{padding:.1%}"),
            ("making batches, of training", f"{counts['seconds'] / training:.1%}"),
            ("peak memory", f"{self._peak / 2**20:,.0f} MiB"),
            ("time", f"{whole:,.0f} s"),
            ("  before training", f"{before:,.0f} s"),
            ("  training", f"{training:,.0f} s"),
            ("  validation", f"{validation:,.0f} s"),
            ("  checkpoints and everything else", f"{rest:,.0f} s"),
            ("first step finished after", f"{self._first_step:,.0f} s"),
            *([("steps compiled as", self.compiled["way"])] if self.compiled else []),
            *((f"  a step as {way}", f"{seconds:.2f} s") for way, seconds in timed),
        ]


def print_report(report: RunReport):
    """Print a run's report as a table."""
    from rich.console import Console
    from rich.table import Column, Table

    table = Table("", Column(justify="right"), show_header=False)
    for row in report.rows():
        table.add_row(*row)
    if table.row_count:
        Console().print(table)


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
        # Only the chief measures, and the seed of keras.random would need all workers.
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


def peak_memory() -> int:
    """Return the peak memory in bytes: on the accelerator if there is one, else the process's main memory."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        if tf.config.list_logical_devices("GPU"):
            return tf.config.experimental.get_memory_info("GPU:0")["peak"]
    if keras.backend.backend() == "jax":
        import jax

        statistics = jax.local_devices()[0].memory_stats()
        if statistics:
            return statistics["peak_bytes_in_use"]
    status = Path("/proc/self/status")
    # Linux's `ru_maxrss` includes the peak of the process that started this one.
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status.read_text(), re.M) if status.is_file() else None
    if found:
        return int(found[1]) * 1024
    if sys.platform == "win32":
        return 0
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024
