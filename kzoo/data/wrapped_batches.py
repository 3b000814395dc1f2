"""Wrappers of batches: each row twice, one worker's rows, targets alone, counted, some of the batches."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random

import keras
import numpy as np

from kzoo.data.batch_shapes import padded_batch
from kzoo.errors import UserError
from kzoo.text.bpe_dropout import BPEDropout
from kzoo.text.vocabulary import END, PAD


class WrappedBatches(keras.utils.PyDataset):
    """Base class of wrappers of batches such as `Batches`; passes them on unchanged."""

    def __init__(self, batches: keras.utils.PyDataset):
        super().__init__(batches.workers, batches.use_multiprocessing, batches.max_queue_size)
        self.batches = batches

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index: int):
        return self.batches[index]

    @property
    def epoch(self) -> int:
        """The epoch in whose order the batches are."""
        return self.batches.epoch

    def start_epoch(self, epoch: int):
        """Put the batches in the order of epoch `epoch`, counted from 0."""
        self.batches.start_epoch(epoch)

    def on_epoch_begin(self):
        self.batches.on_epoch_begin()

    def on_epoch_end(self):
        self.batches.on_epoch_end()


class TwiceEachRow(WrappedBatches):
    """Batches in which a copy follows each row, as `ConsistentCrossEntropy` needs."""

    def __getitem__(self, index: int):
        return keras.tree.map_structure(lambda rows: np.repeat(rows, 2, axis=0), self.batches[index])


class ResegmentedBatches(WrappedBatches):
    """Batches whose text has other subwords in each epoch, in the same shapes.

    Args:
        batches: with the labels and weights of `Batches`; their `growth` leaves room for more subwords.
        source: for each language number, what splits its sentences; one for a model of one direction. `None`
            leaves them as they are.
        target: the same for the targets.
        seed: int. With the epoch and the batch's number, it fixes what is drawn.
    """

    def __init__(
        self,
        batches: keras.utils.PyDataset,
        source: Sequence[BPEDropout | None],
        target: Sequence[BPEDropout | None],
        seed: int,
    ):
        super().__init__(batches)
        self.source, self.target, self.seed = source, target, seed

    @property
    def num_tokens(self) -> int:
        """Number of target tokens per epoch in the usual subwords, end symbols included."""
        return self.batches.num_tokens

    def __getitem__(self, index: int):
        inputs, labels, weights = self.batches[index]
        random, shape, sentences = Random(f"{self.seed} {self.epoch} {index}"), labels.shape, {}
        filled = np.count_nonzero(weights.any(axis=1))  # the last batch of a shape has empty rows
        sides = ("source", self.source, inputs["source"]), ("target", self.target, labels)
        for side, languages, rows in sides:
            subwords = languages[inputs.get(f"{side}_language", [0])[0]]
            usual = [row[: np.argmax(row == END)].tolist() for row in rows[:filled]]
            sentences[side] = [subwords(one, shape[1] - 1, random) for one in usual] if subwords else usual
        arrays, labels, weights = padded_batch(shape, **sentences)
        return inputs | arrays, labels, weights


class WorkerRows(WrappedBatches):
    """One worker's rows of each batch. All workers iterate over the same batches.

    Together the workers have every row once. If the number of rows is not divisible by the number of
    replicas, the batch is padded with empty rows, of zeros and with weight 0.

    Args:
        batches: of `(inputs, labels, weights)`, the same on every worker, such as `Batches`.
        replicas: int. Number of devices that share a batch, over all workers.
        workers: int. Number of workers, each with the same number of replicas.
        worker: int. This worker's number, from 0.
    """

    def __init__(self, batches: keras.utils.PyDataset, replicas: int, workers: int = 1, worker: int = 0):
        super().__init__(batches)
        self.replicas, self.share, self.worker = replicas, replicas // workers, worker

    def __getitem__(self, index: int):
        batch = self.batches[index]
        rows = -(-len(batch[1]) // self.replicas) * self.replicas
        part = rows // self.replicas * self.share

        def own(array: np.ndarray) -> np.ndarray:
            empty = np.zeros((rows - len(array), *array.shape[1:]), array.dtype)
            return np.concatenate([array, empty])[self.worker * part :][:part]

        return keras.tree.map_structure(own, batch)


class TargetOnly(WrappedBatches):
    """Batches without their sources."""

    def __getitem__(self, index: int):
        inputs, labels, weights = self.batches[index]
        return {"target": inputs["target"]}, labels, weights


class CountedBatches(WrappedBatches):
    """Batches that count their contents as they are made.

    Attributes:
        counts: sums over the batches made, by name:
            batches: their number.
            source_tokens, target_tokens: tokens, with end symbols, without padding.
            places: tokens of both sides, with padding.
            seconds: time spent making the batches, including prefetched ones.
    """

    def __init__(self, batches: keras.utils.PyDataset):
        super().__init__(batches)
        self.counts = Counter()

    def __getitem__(self, index: int):
        start = time.perf_counter()
        inputs, labels, weights = self.batches[index]
        seconds, source = time.perf_counter() - start, inputs["source"]
        self.counts.update(
            batches=1,
            source_tokens=int((source != PAD).sum()),
            target_tokens=int((labels != PAD).sum()),
            places=source.size + labels.size,
            seconds=seconds,
        )
        return inputs, labels, weights


class MadeBatches(keras.utils.PyDataset):
    """Batches that are made already."""

    def __init__(self, batches: Iterable):
        super().__init__()
        self._batches = list(batches)

    def __len__(self) -> int:
        return len(self._batches)

    def __getitem__(self, index: int):
        return self._batches[index]


class ResumedBatches(WrappedBatches):
    """Batches of each epoch from number `first` on, so that `fit` can start within an epoch.

    They remember an error in making one, because TensorFlow replaces it with its own.

    Attributes:
        first: int. 0 by default; at least two batches must remain.
        failure: the error, or `None`.
    """

    def __init__(self, batches: keras.utils.PyDataset):
        super().__init__(batches)
        self.first, self.failure, self._begun = 0, None, False

    def __len__(self) -> int:
        return len(self.batches) - self.first

    def on_epoch_begin(self):
        super().on_epoch_begin()
        self._begun = True

    def __getitem__(self, index: int):
        try:
            # Before the epoch begins, Keras infers shapes from two batches: it gets the first two of the
            # whole epoch, which `differing_first_two` has chosen.
            return self.batches[index + self.first if self._begun else index]
        except (UserError, OSError) as error:
            self.failure = error
            raise
