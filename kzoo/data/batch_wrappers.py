"""Wrappers of batches: each row twice, one worker's rows, the rest of an epoch."""

import keras
import numpy as np


class WrappedBatches(keras.utils.PyDataset):
    """Base class of wrappers of batches such as `Batches`: it passes them on."""

    def __init__(self, batches: keras.utils.PyDataset):
        super().__init__(batches.workers, batches.use_multiprocessing, batches.max_queue_size)
        self.batches = batches

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index: int):
        return self.batches[index]

    def start_epoch(self, epoch: int):
        """Put the batches in the order of epoch `epoch`, counted from 0."""
        self.batches.start_epoch(epoch)

    def on_epoch_begin(self):
        self.batches.on_epoch_begin()

    def on_epoch_end(self):
        self.batches.on_epoch_end()


class TwiceEachRow(WrappedBatches):
    """Batches with a copy of each row after it, as `ConsistentCrossEntropy` needs."""

    def __getitem__(self, index: int):
        return keras.tree.map_structure(lambda rows: np.repeat(rows, 2, axis=0), self.batches[index])


class WorkerRows(WrappedBatches):
    """One worker's rows of each batch. All workers iterate over the same batches.

    Together the workers have every row once. If the number of rows is not divisible by the number of
    replicas, the batch is filled with empty rows, of zeros and of weight 0.

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


class RestOfEpoch(keras.utils.PyDataset):
    """The batches of an epoch from a given one on, so that `fit` can start within an epoch.

    Args:
        batches: `Batches` or `PairBatches`, in the order of the epoch.
        first: int. Number of the first batch, from 0; at least two batches must remain.
    """

    def __init__(self, batches: keras.utils.PyDataset, first: int):
        super().__init__()
        self.batches, self.first, self._begun = batches, first, False

    def __len__(self) -> int:
        return len(self.batches) - self.first

    def on_epoch_begin(self):
        self._begun = True

    def __getitem__(self, index: int):
        # Before the epoch begins, Keras infers shapes from two batches: it gets the first two of the whole
        # epoch, which `differing_first_two` has chosen.
        return self.batches[index + self.first if self._begun else index]
