"""A corpus larger than memory: the cost of preparing shards and of reading them.

    python benchmarks/streamed_corpus.py --pairs 1000000 2000000
    python benchmarks/streamed_corpus.py --pairs 50000000    # about 17 GB on disk, removed afterwards

Writes text of made-up words (with frequencies by Zipf's law, 13 per sentence), then runs `kzoo prepare` on it
and reads an epoch of `ShardedBatches` of 2,048 tokens, each in its own process. MB is the peak resident
memory of that process, or of one of those that it started, if that is larger; `imported` is the part of it
that Keras and its backend take. A third process trains pope_tiny on some of these batches: the share of
reading is the time to read a batch relative to the time to train on it. Prints a table with one line for each
number of pairs.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

TOKENS, VOCABULARY_SIZE, SEED = 2048, 8000, 1
RECIPE = """preset = "pope_tiny"
corpus = "files"
source = "en"
target = "de"
train = ["{0}/train.en", "{0}/train.de"]
vocabulary_size = {1}
tokens = {2}
"""
COLUMNS = (
    "pairs",
    "text",
    "shards",
    "preparing",
    "processor time",
    "pairs/s",
    "MB, preparing",
    "opening",
    "batches",
    "batches/s",
    "MB, reading",
    "imported",
    "step",
    "share",
)


def main():
    options = parse_arguments()
    if options.child:
        print(json.dumps({"read": read, "train": train}[options.child](options.folder)))
        return
    print(row(COLUMNS), row(["---:"] * len(COLUMNS)), sep="\n", flush=True)
    for pairs in options.pairs:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            print(row(line(Path(folder), pairs, options)), flush=True)


def row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="of kzoo prepare")
    parser.add_argument("--step", type=float, help="seconds of a training step, if known")
    parser.add_argument("--folder", type=Path, help="where text and shards may stand meanwhile")
    parser.add_argument("--child", choices=("read", "train"), help=argparse.SUPPRESS)
    return parser.parse_args()


def line(folder: Path, pairs: int, options: argparse.Namespace) -> list[str]:
    """Measure one corpus; return its line of the table."""
    size = write_text(folder, pairs)
    (folder / "recipe.toml").write_text(RECIPE.format(folder, VOCABULARY_SIZE, TOKENS))
    shards = folder / "shards"
    preparing = [sys.executable, "-m", "kzoo", "prepare", str(folder / "recipe.toml"), "-o", str(shards)]
    start = time.perf_counter()
    _, prepared, processor = run([*preparing, "--processes", str(options.processes)])
    seconds = time.perf_counter() - start
    written = sum(path.stat().st_size for path in shards.iterdir())
    this = [sys.executable, __file__, "--folder", str(shards), "--child"]
    reading, memory, _ = run([*this, "read"])
    step = options.step or run([*this, "train"])[0]["seconds"]
    batch = reading["seconds"] / reading["batches"]
    return [
        f"{pairs:,}",
        f"{size / 1e6:,.0f} MB",
        f"{written / 1e6:,.0f} MB",
        f"{seconds:,.0f} s",
        f"{processor:,.0f} s",
        f"{pairs / seconds:,.0f}",
        f"{prepared:,.0f}",
        f"{reading['opening']:.1f} s",
        f"{reading['batches']:,}",
        f"{1 / batch:,.0f}",
        f"{memory:,.0f}",
        f"{reading['imported']:,.0f}",
        f"{step * 1e3:,.0f} ms",
        f"{batch / step:.1%}",
    ]


def run(command: list[str]) -> tuple[dict | None, float, float]:
    """Run a process; return the JSON that it prints last, the MB resident at most, and its processor time.

    Both are those of the processes that it starts, too: the largest, and the sum.
    """
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    printed = process.stdout.read().splitlines()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)}: exit status {os.waitstatus_to_exitcode(status)}")
    result = json.loads(printed[-1]) if printed[-1].startswith("{") else None
    return result, usage.ru_maxrss * 1024 / 1e6, usage.ru_utime + usage.ru_stime


def write_text(folder: Path, pairs: int) -> int:
    """Write `train.en` and `train.de`; return their bytes."""
    random = np.random.default_rng(SEED)
    size = 0
    for language, letters in (("en", "etaoinshrdlu"), ("de", "enisratdhulc")):
        words = made_up_words(random, list(letters))
        with open(folder / f"train.{language}", "w", encoding="utf-8") as file:
            for first in range(0, pairs, 10_000):
                lengths = np.clip(random.poisson(10, min(10_000, pairs - first)) + 3, 3, 40)
                # Zipf's law: the n-th word comes as often as 1 / n
                drawn = words[(len(words) ** random.random(lengths.sum())).astype(int) - 1]
                ends = np.cumsum(lengths)
                file.writelines(" ".join(drawn[b - n : b]) + "\n" for n, b in zip(lengths, ends, strict=True))
        size += (folder / f"train.{language}").stat().st_size
    return size


def made_up_words(random: np.random.Generator, letters: list[str], count: int = 50_000) -> np.ndarray:
    lengths = random.integers(2, 11, count)
    return np.array(["".join(random.choice(letters, length)) for length in lengths], object)


def read(folder: Path) -> dict:
    """Go through an epoch's batches."""
    import keras

    from kzoo.data import ShardedBatches, Shards

    keras.ops.zeros(())  # starts the backend
    imported = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    batches = ShardedBatches(Shards(folder), TOKENS, seed=SEED)
    opened = time.perf_counter()
    for number in range(len(batches)):
        batches[number]
    seconds = time.perf_counter() - opened
    return {
        "imported": imported * 1024 / 1e6,
        "opening": opened - start,
        "batches": len(batches),
        "seconds": seconds,
    }


def train(folder: Path, steps: int = 20) -> dict:
    """Return the seconds of a training step, the median over batches of one shape."""
    from kzoo.data import ShardedBatches, Shards
    from kzoo.presets import build
    from kzoo.text import SubwordTokenizer

    tokenizer = SubwordTokenizer(str(folder / "subwords.joint.model"))
    translator = build("pope_tiny", tokenizer)
    batches = ShardedBatches(Shards(folder), TOKENS, 1, SEED)
    times = []
    for number in range(steps):
        start = time.perf_counter()
        translator.train_on_batch(*batches[number])
        times.append(time.perf_counter() - start)
    return {"seconds": float(np.median(times[2:]))}


if __name__ == "__main__":
    main()
