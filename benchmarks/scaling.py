"""What a second device adds to training, and what share of it is lost to working together.

    KERAS_BACKEND=jax python benchmarks/scaling.py --rounds 5

The tiny Transformer on random tokens, batches of 2,048 per side, in four ways: one device; one process whose
two devices share every batch (`mirrored` on TensorFlow, `data_parallel` on JAX); two processes that do
(`multi_worker`, `data_parallel`); and two that do not communicate, each with its own batches, which is the
most that two devices can do here. Every device has its own CPU core and thread. The four take turns. Prints
target tokens per second of each round, how much faster than one device two devices and two processes are,
and the share of the two apart that they lose.
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import time

# Of two devices in one process, and of two processes.
STRATEGIES = {"tensorflow": ("mirrored", "multi_worker"), "jax": ("data_parallel", "data_parallel")}
VOCABULARY, LENGTH, ROWS = 4000, 32, 64


def main():
    options = parse_arguments()
    if options.worker:
        strategy, *cores = options.worker
        work(strategy, [int(core) for core in cores], options.steps)
        return
    backend = os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    if backend not in STRATEGIES:
        sys.exit(f"KERAS_BACKEND is {backend}: several devices train on {' and '.join(STRATEGIES)} only")
    from local_cluster import local_cluster

    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        sys.exit("this machine has one processor core: scaling needs two")
    of_devices, of_processes = STRATEGIES[backend]
    ways = {
        "one": [Worker("one", cores[:1], options.steps)],
        "devices": [Worker(of_devices, cores[:2], options.steps)],
        "processes": [
            Worker(of_processes, [core], options.steps, named)
            for core, named in zip(cores, local_cluster(2), strict=False)
        ],
        "apart": [Worker("one", [core], options.steps) for core in cores[:2]],
    }
    try:
        rounds = [
            {name: rate(workers, options.steps, name) for name, workers in ways.items()}
            for _ in range(options.rounds + 1)
        ][1:]  # the first compiles
    finally:
        for worker in [worker for workers in ways.values() for worker in workers]:
            worker.end()
    print(f"{backend}: devices by {of_devices}, processes by {of_processes}\n\n{table(rounds)}")


def parse_arguments() -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=40, help="of each way a round")
    parser.add_argument("--worker", nargs="+", metavar=("STRATEGY", "CORE"), help=argparse.SUPPRESS)
    return parser.parse_args()


class Worker:
    """A process that trains for some steps each time it is asked to.

    Args:
        strategy: its name.
        cores: of the processor; each is one device.
        steps: of a turn.
        environment: further variables.
    """

    def __init__(self, strategy: str, cores: list[int], steps: int, environment: dict | None = None):
        threads = ("TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS")  # what sends gradients has others
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--steps", str(steps), "--worker", strategy, *map(str, cores)],
            env={
                **os.environ,
                "TF_CPP_MIN_LOG_LEVEL": "3",
                **dict.fromkeys(threads, "1"),
                **(environment or {}),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def begin(self):
        self.process.stdin.write("train\n")
        self.process.stdin.flush()

    def wait(self):
        while (line := self.process.stdout.readline()) != "trained\n":
            if not line:
                sys.exit("a process ended; its message is above")

    def end(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def work(strategy_name: str, cores: list[int], steps: int):
    """Train for some steps for each line that is read."""
    make_devices(cores)
    import keras
    import numpy as np

    from kzoo.data import Batches
    from kzoo.presets import pope_tiny
    from kzoo.training.strategies import open_strategy

    words = np.random.default_rng(1).integers(4, VOCABULARY, (2, ROWS * steps, LENGTH - 1)).tolist()
    keras.utils.set_random_seed(1)
    with open_strategy(strategy_name) as strategy:
        with strategy.scope():
            model = pope_tiny(source_vocabulary_size=VOCABULARY)
        batches = strategy.share(Batches(*words, tokens=ROWS * LENGTH, num_shapes=1))
        for _ in sys.stdin:
            model.fit(batches, shuffle=False, verbose=0)
            print("trained", flush=True)


def make_devices(cores: list[int]):
    """Keep this process on some cores, and make each a device of the backend."""
    os.sched_setaffinity(0, cores)
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{flags} --xla_force_host_platform_device_count={len(cores)}"
    if os.environ["KERAS_BACKEND"] == "tensorflow":
        import tensorflow as tf

        cpu, each = tf.config.list_physical_devices("CPU")[0], tf.config.LogicalDeviceConfiguration()
        tf.config.set_logical_device_configuration(cpu, [each] * len(cores))


def rate(workers: list[Worker], steps: int, way: str) -> float:
    """Let processes train one turn, and return the target words a second of all."""
    start = time.perf_counter()
    for worker in workers:
        worker.begin()
    for worker in workers:
        worker.wait()
    batches = steps * (len(workers) if way == "apart" else 1)
    return batches * ROWS * LENGTH / (time.perf_counter() - start)


def table(rounds: list[dict[str, float]]) -> str:
    """Return the rounds and their medians as a Markdown table."""
    lines = [
        "| round | one | two devices | two processes | two apart | devices / one | processes / one "
        "| share lost: devices | processes |",
        "| --- |" + " ---: |" * 8,
    ]
    medians = {name: statistics.median(row[name] for row in rounds) for name in rounds[0]}
    for name, row in [*enumerate(rounds, 1), ("median", medians)]:
        one, apart, together = row["one"], row["apart"], (row["devices"], row["processes"])
        cells = [f"{speed:,.0f}" for speed in (one, *together, apart)]
        cells += [f"{speed / one:.2f}" for speed in together]
        cells += [f"{1 - speed / apart:.0%}" for speed in together]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
