"""One worker's rows of every batch."""

import keras
import numpy as np

from kzoo.data.around_batches import AroundBatches


class WorkerRows(AroundBatches):
    """One worker's rows of each batch; all workers go through the same batches.

    Together the workers have every row once. If the number of replicas does not divide a batch's rows, the
    batch is filled with empty rows, of zeros and of weight 0.

    Args:
        batches: of `(inputs, labels, weights)`, the same on every worker, such as `Batches`.
        replicas: int. Number of devices that share a batch, over all workers.
        workers: int. Number of workers, each with the same number of replicas.
        worker: int. This worker's number, from 0.
    """

    def __init__(self, batches: keras.utils.PyDataset, replicas: int, workers: int = 1, worker: int = 0):
        super().__init__(batches)
        self.replicas, self.share, self.worker = replicas, replicas // workers, worker
        self._first_rows = 0

    def __getitem__(self, index: int):
        batch = self.batches[index]
        if index == 0:
            self._first_rows = len(batch[1])
        rows = self._rows(len(batch[1]))
        if index == 1 and self._only_filled_alike(len(batch[1])):
            rows += self.replicas
        part = rows // self.replicas * self.share
        return keras.tree.map_structure(
            lambda array: _filled(array, rows)[self.worker * part :][:part], batch
        )

    def _rows(self, rows: int) -> int:
        return -(-rows // self.replicas) * self.replicas

    def _only_filled_alike(self, rows: int) -> bool:
        """Return whether the first two batches have different numbers of rows, but the same when filled.

        Keras on TensorFlow would assume this number of rows for every batch.
        """
        first = self._first_rows or len(self.batches[0][1])  # not made twice: batches may be counted
        return first != rows and self._rows(first) == self._rows(rows)

    @property
    def num_words(self) -> int:
        """Number of target tokens per epoch, over all workers."""
        return self.batches.num_words

    def digest(self) -> str:
        """Return the SHA-256 of all workers' training data."""
        return self.batches.digest()


def _filled(array: np.ndarray, rows: int) -> np.ndarray:
    """Return an array with rows of zeros at its end, `rows` in all."""
    empty = np.zeros((rows - len(array), *array.shape[1:]), array.dtype)
    return np.concatenate([array, empty])
