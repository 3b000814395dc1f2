"""What a run's batches contain and cost: the numbers behind its speed."""

import time
from dataclasses import dataclass

import keras
import numpy as np

from kzoo.data.batch_wrappers import WrappedBatches
from kzoo.text.tokenizers import PAD
from kzoo.training.checkpoints import Checkpoints


@dataclass
class Account:
    """Sums over batches.

    Args:
        batches: int. Number of batches.
        sentences: int. Number of sentences in them.
        source_words, target_words: int. Tokens, end symbols included, padding excluded.
        source_types: int. Distinct source tokens of each batch, summed.
        places: int. Tokens of both sides, padding included.
        squares: int. Sum over the sentences of the longer side's length².
        seconds: float. Time spent making the batches, during the training steps or before them.
    """

    batches: int = 0
    sentences: int = 0
    source_words: int = 0
    target_words: int = 0
    source_types: int = 0
    places: int = 0
    squares: int = 0
    seconds: float = 0.0

    @property
    def padding(self) -> float:
        """The share of padding among all tokens."""
        return 1 - (self.source_words + self.target_words) / max(1, self.places)

    def add(self, inputs: dict, labels, seconds: float):
        """Count a batch."""
        sides = [(words != PAD).sum(axis=1) for words in (inputs["source"], labels)]
        self.batches += 1
        self.sentences += int((sides[0] > 0).sum())
        self.source_words += int(sides[0].sum())
        self.target_words += int(sides[1].sum())
        self.source_types += np.unique(inputs["source"][inputs["source"] != PAD]).size
        self.places += inputs["source"].size + labels.size
        self.squares += int((sides[0].clip(sides[1]) ** 2).sum())
        self.seconds += seconds


class CountedBatches(WrappedBatches):
    """Batches that are counted as they are made.

    Args:
        batches: `Batches`, or others that return `(inputs, labels, weights)`.
        account: where they are counted.
    """

    def __init__(self, batches: keras.utils.PyDataset, account: Account):
        super().__init__(batches)
        self._account = account

    def __getitem__(self, index: int):
        start = time.perf_counter()
        inputs, labels, weights = self.batches[index]
        self._account.add(inputs, labels, time.perf_counter() - start)
        return inputs, labels, weights


class Speed(keras.callbacks.Callback):
    """Logs each epoch's seconds, target tokens per second, and the share of its time spent making batches.

    Args:
        batches: the training batches.
        checkpoints: they keep the time of an epoch over several starts of a run.
        account: of the batches.
    """

    def __init__(self, batches: keras.utils.PyDataset, checkpoints: Checkpoints, account: Account):
        super().__init__()
        self.batches, self.checkpoints, self.account = batches, checkpoints, account

    def on_epoch_begin(self, epoch, logs=None):
        self._earlier, self._made = self.checkpoints.seconds, self.account.seconds

    def on_epoch_end(self, epoch, logs=None):
        logs["seconds"] = self.checkpoints.seconds
        words = self.batches.num_words * self.checkpoints.batch / len(self.batches)
        logs["tokens_per_second"] = words / logs["seconds"]
        here = logs["seconds"] - self._earlier  # 0 if only the score was left
        logs["input_share"] = (self.account.seconds - self._made) / here if here else 0.0
