"""Base class of wrappers that change each batch but not their number or order."""

import keras
import numpy as np


class AroundBatches(keras.utils.PyDataset):
    """Base class of batch wrappers: passes batches on unchanged; subclasses override `__getitem__`.

    Args:
        batches: `(inputs, labels, weights)` each, such as `Batches`.
    """

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


class TwiceEachRow(AroundBatches):
    """Batches in which each row is followed by a copy of itself, as `ConsistentCrossEntropy` needs."""

    def __getitem__(self, index: int):
        inputs, labels, weights = self.batches[index]
        inputs = {name: np.repeat(rows, 2, axis=0) for name, rows in inputs.items()}
        return inputs, np.repeat(labels, 2, axis=0), np.repeat(weights, 2, axis=0)
