"""How a training step grows: time and memory against sentence length and vocabulary, beside the arithmetic.

    python benchmarks/growth.py --steps 3 -o growth.png

A Transformer of the tiny size, 1,024 tokens per side in every step: sentences of 32 to 1,024 tokens with
8,000 subwords, then vocabularies of 8,000 to 64,000 with sentences of 32. Steps of all sizes are timed in
turns; the peak memory of each is that of a process of its own. The yardstick is the step's arithmetic
(`training_flops` in arithmetic.py): a column says how much more the time grew than the arithmetic, relative
to the first row of its table.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

WORDS = 1024
LENGTHS = (32, 64, 128, 256, 512, 1024)
VOCABULARIES = (8_000, 16_000, 32_000, 64_000)


def made(length: int, vocabulary: int) -> tuple:
    """Return a model and a batch for its `train_on_batch`, which has run once, as the first step compiles."""
    import numpy as np

    from kzoo.presets import pope_tiny

    model = pope_tiny(source_vocabulary_size=vocabulary, max_length=max(LENGTHS))
    words = np.random.default_rng(1).integers(4, vocabulary, (3, WORDS // length, length), "int32")
    batch = {"source": words[0], "target": words[1]}, words[2]
    model.train_on_batch(*batch)
    return model, batch


def measure(sizes: list[tuple[int, int]], steps: int) -> list[dict]:
    """Return the median seconds of a step of each length and vocabulary, its arithmetic and its memory."""
    from arithmetic import training_flops

    models, times = [made(*size) for size in sizes], [[] for _ in sizes]
    for _ in range(steps):  # in turns: a machine's speed changes within minutes
        for (model, batch), taken in zip(models, times, strict=True):
            start = time.perf_counter()
            model.train_on_batch(*batch)
            taken.append(time.perf_counter() - start)
    return [
        {
            "seconds": statistics.median(taken),
            "flops": training_flops(model.backbone, WORDS, WORDS, WORDS * length),
            "bytes": memory_in_process(length, vocabulary),
        }
        for (length, vocabulary), (model, _), taken in zip(sizes, models, times, strict=True)
    ]


def memory(length: int, vocabulary: int) -> int:
    """Return the bytes that the process needs, beyond its imports, for some steps."""
    import keras

    from kzoo.training.report import peak_memory

    keras.ops.zeros(())
    before = peak_memory()
    model, batch = made(length, vocabulary)
    model.train_on_batch(*batch)
    return peak_memory() - before


def memory_in_process(length: int, vocabulary: int) -> int:
    """Return what `memory` does, measured in a fresh process."""
    command = [sys.executable, __file__, "--one", str(length), str(vocabulary)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"length {length}, vocabulary {vocabulary}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def table(name: str, sizes: tuple[int, ...], found: list[dict]) -> str:
    """Return the measurements as a Markdown table."""
    lines = [
        f"| {name} | ms per step | GFLOP needed | time / arithmetic, first row = 1 | MiB |",
        "| ---: | ---: | ---: | ---: | ---: |",
    ]
    first = found[0]["seconds"] / found[0]["flops"]
    for size, row in zip(sizes, found, strict=True):
        beyond = row["seconds"] / row["flops"] / first
        lines.append(
            f"| {size:,} | {1e3 * row['seconds']:,.0f} | {row['flops'] / 1e9:,.1f} | {beyond:.2f} "
            f"| {row['bytes'] / 2**20:,.0f} |"
        )
    return "\n".join(lines)


def draw(path: str, measured: dict[str, tuple[tuple[int, ...], list[dict]]]):
    """Draw time and arithmetic against each size, both as multiples of the first."""
    from kzoo.evaluation.figures import look, picture

    with picture(path, size=(8, 3.4)) as figure:
        for place, (name, (sizes, found)) in zip(figure.subplots(1, 2), measured.items(), strict=True):
            drawn = (("seconds", "time", "o"), ("flops", "arithmetic", "s"), ("bytes", "memory", "^"))
            for number, (key, label, marker) in enumerate(drawn):
                times = [row[key] / found[0][key] for row in found]
                place.plot(sizes, times, marker=marker, label=label, **look(number))
            place.set_xscale("log", base=2)
            place.set_yscale("log", base=2)
            place.set_xticks(sizes, [f"{size:,}" for size in sizes])
            place.set_yticks((1, 2, 4), ("1", "2", "4"))
            place.set_xlabel(name)
            place.set_ylabel(f"times that of {sizes[0]:,}")
            place.legend()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=5, help="measured steps; the median counts")
    parser.add_argument("-o", "--output", help="PNG, SVG or PDF file for a plot")
    parser.add_argument("--one", nargs=2, type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(memory(*arguments.one)))
        return
    longer, larger = LENGTHS[1:], VOCABULARIES[1:]
    sizes = [*((length, VOCABULARIES[0]) for length in longer), *((LENGTHS[0], size) for size in larger)]
    first, *others = measure([(LENGTHS[0], VOCABULARIES[0]), *sizes], arguments.steps)
    measured = {
        "tokens per sentence": (LENGTHS, [first, *others[: len(longer)]]),
        "vocabulary": (VOCABULARIES, [first, *others[len(longer) :]]),
    }
    for name, (sizes, found) in measured.items():
        print(table(name, sizes, found), end="\n\n")
    if arguments.output:
        draw(arguments.output, measured)


if __name__ == "__main__":
    main()
