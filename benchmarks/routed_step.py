"""The cost of routing: training steps of a many-to-many bridge model against those of a single-language one.

    python benchmarks/routed_step.py --size tiny --languages 4 --rounds 5

Both models have the same sizes and the same loss, and take the same random sentences. The single model has
one encoder and one decoder, so it chooses nothing; the routed one has one of each per language, and the pair
changes with every batch. The two take turns in one process. Prints target tokens per second of both, the
ratio of their times, and how long the routed model took from nothing to its first step.
"""

import argparse
import os
import statistics
import time

import numpy as np

SIZES = {
    "tiny": {"embedding_dim": 128, "width": 256, "num_decoder_layers": 1, "hidden_dim": 256},
    "base": {"embedding_dim": 512, "width": 512, "num_decoder_layers": 2, "hidden_dim": 1024},
}


def main():
    options = parse_arguments()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    start = time.perf_counter()
    import keras

    routed = Model(options.languages, options)
    routed.step(0)
    first = time.perf_counter() - start
    single = Model(1, options)
    for model in (single, routed):
        model.train()  # the second shape, and every branch
    rounds = []
    for number in range(1, options.rounds + 1):
        order = (single, routed) if number % 2 else (routed, single)
        seconds = {model: model.train() for model in order}
        rounds.append((seconds[single], seconds[routed]))
        rates = [single.words / s for s in rounds[-1]]
        print(f"round {number}: single {rates[0]:,.0f}, routed {rates[1]:,.0f} tokens per second")
    ratios = [b / a for a, b in rounds]
    print(f"backend {keras.backend.backend()}, {options.size}, {options.languages} languages")
    ratio = statistics.median(ratios)
    print(f"a routed step costs {ratio:.2f} of a single one (median of {len(ratios)} rounds)")
    print(f"from nothing to the first routed step: {first:.0f} s")


def parse_arguments() -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--languages", type=int, default=4)
    parser.add_argument("--vocabulary", type=int, default=4000)
    parser.add_argument("--steps", type=int, default=16, help="of each model a round")
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


class Model:
    """A bridge model with some languages, and the batches that it takes in turn."""

    def __init__(self, languages: int, options: argparse.Namespace):
        from kzoo.models import Adam, AttentionBridgeBackbone, SentenceCrossEntropy
        from kzoo.models.backbones import uses_xla

        self.backbone = AttentionBridgeBackbone([options.vocabulary] * languages, **SIZES[options.size])
        self.backbone.compile(
            optimizer=Adam(1e-3, global_clipnorm=5.0),
            loss=SentenceCrossEntropy(),
            jit_compile=uses_xla(self.backbone),
        )
        random = np.random.default_rng(0)
        pairs = [(s, t) for s in range(languages) for t in range(languages)]
        self.batches = []
        for number in range(options.steps):
            rows, length = ((128, 16), (64, 32))[number % 2]
            source, target, labels = random.integers(4, options.vocabulary, (3, rows, length)).astype("int32")
            codes = pairs[number % len(pairs)]
            inputs = {
                "source": source,
                "target": target,
                "source_language": np.full(rows, codes[0], "int32"),
                "target_language": np.full(rows, codes[1], "int32"),
            }
            self.batches.append((inputs, labels, np.ones((rows, length), "float32")))
        self.words = sum(labels.size for _, labels, _ in self.batches)

    def step(self, number: int):
        """Train on one batch."""
        self.backbone.train_on_batch(*self.batches[number])

    def train(self) -> float:
        """Train on every batch; return the seconds."""
        start = time.perf_counter()
        for batch in range(len(self.batches)):
            self.step(batch)
        return time.perf_counter() - start


if __name__ == "__main__":
    main()
