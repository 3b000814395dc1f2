"""Training `pope_base` in bfloat16 with `fit`: tokens a second, and the share of the device's matrix product.

    KERAS_BACKEND=jax python benchmarks/utilization.py --rows 1024

Batches of ROWS sentences of 32 tokens, a vocabulary of 8,000; the median of three epochs. For a GPU.
"""

import argparse
import statistics
import time

import keras
import numpy as np
from arithmetic import measured_peak, training_flops

from kzoo.presets import build

LENGTH, VOCABULARY, SENTENCES = 32, 8000, 20480


class EpochTimes(keras.callbacks.Callback):
    """Collects the seconds of each epoch; reading the loss waits for the device."""

    def on_train_begin(self, logs=None):
        self.seconds = []

    def on_epoch_begin(self, epoch, logs=None):
        self._start = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        float(logs["loss"])
        self.seconds.append(time.perf_counter() - self._start)


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--rows", type=int, default=512)
    rows = parser.parse_args().rows
    sentences = max(SENTENCES // rows, 10) * rows
    model = build("pope_base", source_vocabulary_size=VOCABULARY, dtype="mixed_bfloat16")
    words = np.random.default_rng(1).integers(4, VOCABULARY, (3, sentences, LENGTH), "int32")
    batches = {"source": words[0], "target": words[1]}, words[2]
    times = EpochTimes()
    model.fit(*batches, batch_size=rows, shuffle=False, epochs=4, verbose=0, callbacks=[times])
    seconds = statistics.median(times.seconds[1:])  # the first epoch compiles
    tokens = sentences * LENGTH
    speed = training_flops(model.backbone, tokens, tokens, tokens * LENGTH) / seconds
    peak = measured_peak("bfloat16")
    step = 1000 * seconds * rows / sentences
    print(f"{rows} rows: {step:.1f} ms a step, {tokens / seconds:,.0f} target tokens/s")
    print(f"{speed / 1e12:.0f} TFLOP/s, {speed / peak:.1%} of the matrix product ({peak / 1e12:.0f} TFLOP/s)")


if __name__ == "__main__":
    main()
