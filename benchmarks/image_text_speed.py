"""The cost of reading images: training an image-text Transformer against the same one without images.

    python benchmarks/image_text_speed.py --size base --rounds 3

Both train on the same random sentences; the image-text model also gets extracted features: a vector of 4,096
numbers, VGG-19's FC7, or 49 regions of 512. They take turns in one process. Prints target tokens per second
and the ratio.
"""

import argparse
import os
import statistics
import time

import numpy as np

FEATURES = {"fc7": (4096,), "regions": (49, 512)}


def main():
    options = parse_arguments()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import keras

    shape = FEATURES[options.features]
    models = {"text": Model(None, options), "image and text": Model(shape, options)}
    print(f"backend {keras.backend.backend()}, {options.size}, {options.features}, {options.tokens} tokens")
    for model in models.values():
        model.train()  # compiles
    ratios = []
    for number in range(options.rounds):
        seconds = {name: models[name].train() for name in sorted(models, reverse=bool(number % 2))}
        ratios.append(seconds["text"] / seconds["image and text"])
        rates = " and ".join(f"{model.words / seconds[name]:,.0f} ({name})" for name, model in models.items())
        print(f"round {number + 1}: {rates} tokens per second")
    print(f"image-text has {statistics.median(ratios):.2f} of the speed (median of {len(ratios)} rounds)")


def parse_arguments() -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--size", choices=("tiny", "base"), default="tiny")
    parser.add_argument("--features", choices=FEATURES, default="fc7")
    parser.add_argument("--tokens", type=int, default=2048, help="of a batch, each side")
    parser.add_argument("--length", type=int, default=16, help="words of a sentence")
    parser.add_argument("--steps", type=int, default=4, help="of each model a round")
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


class Model:
    """A translator, and the batches that it takes."""

    def __init__(self, image_shape, options: argparse.Namespace):
        from kzoo.presets import build

        name = "text_only" if image_shape is None else "image_text"
        shape = {} if image_shape is None else {"image_shape": image_shape}
        self.translator = build(f"{name}_{options.size}", source_vocabulary_size=8000, **shape)
        random, rows = np.random.default_rng(0), options.tokens // options.length
        self.batches = []
        for _ in range(options.steps):
            source, target, labels = random.integers(4, 8000, (3, rows, options.length)).astype("int32")
            inputs = {"source": source, "target": target}
            if image_shape is not None:
                inputs["image"] = random.normal(size=(rows, *image_shape)).astype("float32")
            self.batches.append((inputs, labels, np.ones(labels.shape, "float32")))
        self.words = options.steps * rows * options.length

    def train(self) -> float:
        """Train on every batch; return the seconds."""
        start = time.perf_counter()
        for batch in self.batches:
            self.translator.train_on_batch(*batch)
        return time.perf_counter() - start


if __name__ == "__main__":
    main()
