"""What stands around batches and changes them: as many, in the same order."""

import keras


class AroundBatches(keras.utils.PyDataset):
    """Batches as they are; a subclass gives others in `__getitem__`.

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
        """Put the batches in the order of epoch number `epoch`, counted from 0."""
        self.batches.start_epoch(epoch)

    def on_epoch_begin(self):
        self.batches.on_epoch_begin()

    def on_epoch_end(self):
        self.batches.on_epoch_end()
