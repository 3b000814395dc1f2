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

    def __getitem__(self, index: int):
        batch = self.batches[index]
        rows = -(-len(batch[1]) // self.replicas) * self.replicas
        part = rows // self.replicas * self.share
        return keras.tree.map_structure(
            lambda array: _filled(array, rows)[self.worker * part :][:part], batch
        )

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
