"""The bound of training speed on this machine: a step's matrix products alone, each of its own shape.

    KERAS_BACKEND=tensorflow python benchmarks/products.py --filled 1764

Times each product of a training step of the models of `training.py` on all cores, one after the other: the
forward ones, and two in the backward pass for each. A program that did nothing else would train on as many
target tokens per second as the table says. Softmax, normalization, dropout, gates, lookups and the optimizer
come on top. A recurrent layer multiplies its state once a step, for all sentences of a batch. The words, the
encoder's inputs and the weights' gradients it multiplies for all steps at once.

`--filled` is the number of target tokens in a batch of 2,048 places, and of source tokens.
"""

import argparse
import os
import time
from collections import Counter

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import numpy as np
from keras import ops

from training import MODELS

LENGTH = 14  # tokens of a sentence of Multi30k, end symbol included


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default=",".join(MODELS), help="with commas")
    parser.add_argument("--filled", type=int, default=2048)
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    options = parser.parse_args()
    print("| model | precision | operations per token | seconds of products | tokens per second at most |")
    print("| --- | --- | ---: | ---: | ---: |")
    for name in options.models.split(","):
        products = Counter()
        for product, count in forward(name, options.filled).items():
            products += with_backward(*product, count, options.filled // LENGTH)
        seconds = sum(count * seconds_of(*product, options.precision) for product, count in products.items())
        operations = sum(2 * b * m * k * n * count for (b, m, k, n), count in products.items())
        row = name, options.precision, f"{operations / options.filled / 1e6:.0f} million", f"{seconds:.3f}"
        print(f"| {' | '.join(row)} | {options.filled / seconds:,.0f} |", flush=True)


def forward(name: str, tokens: int) -> Counter:
    """Return how often a forward pass multiplies `(b, m, k)` by `(b, k, n)`, by `(b, m, k, n)`."""
    size, found = MODELS[name], Counter()
    width, vocabulary = size["width"], size["vocabulary"]
    found[1, tokens, width, vocabulary] += 1
    if name == "lstm":
        half, steps, rows = width // 2, LENGTH, tokens // LENGTH
        for inputs in (width, width):  # two layers of an encoder of two directions
            found[1, tokens, inputs, 4 * half] += 2
            found[1, rows, half, 4 * half] += 2 * steps
        found[1, tokens, width, 4 * width] += 1  # the decoder's words
        found[1, rows, 2 * width, 4 * width] += 2 * steps  # each layer's other input, and its state
        found[1, rows, width, width] += steps  # attention's query
        found[rows, 1, width, LENGTH] += steps
        found[rows, 1, LENGTH, width] += steps
        found[1, rows, 2 * width, width] += steps
        return found
    heads, inner, layers = size["heads"], size["feedforward"], size["layers"]
    sentences = tokens // LENGTH
    for attentions in (1, 2):  # of an encoder's and a decoder's layer
        found[1, tokens, width, 3 * width] += layers
        if attentions == 2:
            found[1, tokens, width, width] += layers
            found[1, tokens, width, 2 * width] += layers
        found[sentences * heads, LENGTH, width // heads, LENGTH] += attentions * layers
        found[sentences * heads, LENGTH, LENGTH, width // heads] += attentions * layers
        found[1, tokens, width, width] += attentions * layers
        found[1, tokens, width, inner] += layers
        found[1, tokens, inner, width] += layers
    return found


def with_backward(b: int, m: int, k: int, n: int, count: int, sentences: int) -> Counter:
    """Return a product, those of its two gradients, and how often each is made; of steps, as above."""
    products = Counter({(b, m, k, n): count})
    products[b, m, n, k] += count
    if b == 1 and m == sentences:  # the steps' weights' gradients, at once
        products[1, k, m * count, n] += 1
    else:
        products[b, k, m, n] += count
    return products


def seconds_of(b: int, m: int, k: int, n: int, dtype: str) -> float:
    """Return the least seconds of a product, once the library is warm."""
    random = np.random.default_rng(0)
    left, right = (ops.cast(random.random(s, "float32"), dtype) for s in ((b, m, k), (b, k, n)))
    if b == 1:
        left, right = left[0], right[0]
    calls = max(1, int(2e8 / (2 * b * m * k * n)))

    def run() -> float:
        began = time.perf_counter()
        for _ in range(calls):
            made = ops.matmul(left, right)
        float(made[(0,) * made.ndim])  # waits for the last
        return (time.perf_counter() - began) / calls

    run()
    return min(run() for _ in range(15))


if __name__ == "__main__":
    main()
