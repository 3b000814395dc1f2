"""A Transformer's training step in each way of compiling it, in float32 and in bfloat16, in turns in one run.

    KERAS_BACKEND=tensorflow python benchmarks/training_step.py --size base --rounds 5

64 sentences of 32 tokens, a vocabulary of 8,000. A ratio is the median of the rounds', to float32 with XLA in
the same round. `kzoo train` uses XLA or the fused graph: see `kzoo.training.compiling.compile_step`.
"""

import argparse
import statistics
import time

import numpy as np

from kzoo.training.compiling import FUSED, GRAPH, XLA, training_step, tune_process

PRECISIONS = ("float32", "mixed_bfloat16")


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--size", choices=("tiny", "small", "base"), default="tiny")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    tune_process()
    from kzoo.presets import build

    words = np.random.default_rng(1).integers(4, 8000, (3, 64, 32), "int32")
    batch = {"source": words[0], "target": words[1]}, words[2]
    steps, first, rounds = {}, {}, []
    for precision in PRECISIONS:
        model = build(f"pope_{options.size}", source_vocabulary_size=8000, dtype=precision)
        model.optimizer.build(model.trainable_variables)
        for way in (XLA, GRAPH, FUSED):
            case = precision, way
            steps[case] = model, training_step(model, way)
            first[case] = seconds(*steps[case], batch)
            seconds(*steps[case], batch)  # in which some of TensorFlow's operations are still prepared
            print(f"{precision}, {way}: compiled", flush=True)
    for _ in range(options.rounds):
        rounds.append({case: seconds(*step, batch) for case, step in steps.items()})
    print(f"| {options.size} | compiled as | seconds a step | relative to float32 with XLA | first step |")
    print("| --- | --- | ---: | ---: | ---: |")
    for case in steps:
        ratio = statistics.median(found[case] / found["float32", XLA] for found in rounds)
        median = statistics.median(found[case] for found in rounds)
        print(f"| {case[0]} | {case[1]} | {median:.2f} | {ratio:.2f} | {first[case]:.0f} s |")


def seconds(model, step, batch) -> float:
    """Return how long a step takes."""
    model.train_function = step
    start = time.perf_counter()
    float(model.train_on_batch(*batch))
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
