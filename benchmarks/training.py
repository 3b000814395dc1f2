"""Training speed: target tokens per second of kzoo, JoeyNMT 2.3 and Eole 0.6, in turns within one run.

    python benchmarks/training.py --model tiny --rounds 5

All train the same model on the same sentences of Multi30k en-de in the same subwords, in batches of as many
tokens, with Adam and label smoothing 0.1, on the same two cores, each in its own process and environment and
with its own training loop. A token is a target subword or an end symbol; padding does not count. Each system
makes its own batches. `--model`: `tiny` and `base` are pre-norm Transformers with tied embeddings; `lstm` is
the attention bridge's bilingual model, beside the two others' recurrent models of the same sizes, which have
no bridge. `--precision mixed_bfloat16`: kzoo compiles its step in the fastest way, as `kzoo train` does;
JoeyNMT stays in float32, because on a CPU it offers nothing else.

First each system trains alone, from nothing, until its update `--updates`; no compiled program is kept. Then
they take turns. Each keeps training until the end; between its turns its processes are paused, so that a turn
begins warm and takes seconds. A turn runs for at least `--seconds` and four steps, and counts from its second
step. Not counted in turns: kzoo's first epoch or the others' first ten steps, and everything before, such as
compiling. Prints a table of the rounds with medians and ratios, and for each system
the seconds to the update and the largest resident memory of all its processes. If kzoo is the first system,
also the arithmetic of each, beside this machine's fastest matrix product.

JoeyNMT and Eole run in their own environments: `--joeynmt-python` and `--eole-python`, or ones that are
created (once, 1 to 3 GB each) in kzoo's cache folder.
"""

import argparse
import contextlib
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from kzoo.files import write_json

SYSTEMS = Path(__file__).parent / "training_systems"
PACKAGES = {
    "joeynmt": (
        "torch==2.13.0",
        "joeynmt==2.3.0",
        "sentencepiece==0.2.0",
        "setuptools<81",
        "importlib_metadata",
    ),
    "eole": ("torch==2.13.0", "eole==0.6.4", "aiohttp"),  # which one of its commands imports unasked
}
MODELS = {
    "tiny": {"layers": 4, "width": 128, "heads": 4, "feedforward": 256, "dropout": 0.3, "vocabulary": 4000},
    "base": {"layers": 6, "width": 512, "heads": 8, "feedforward": 2048, "dropout": 0.1, "vocabulary": 8000},
    "lstm": {"layers": 2, "width": 512, "dropout": 0.1, "vocabulary": 4000},
}
LEAST_STEPS = 4  # of a turn


def main():
    options = parse_arguments()
    use_cores(options.threads)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # the systems are ended, too
    pythons = {name: python_of(name, options) for name in options.systems.split(",")}
    with tempfile.TemporaryDirectory() as scratch:
        write_corpus(Path(scratch), options)
        systems = []
        try:
            for name, python in pythons.items():
                systems.append(System(name, python, Path(scratch)))
                seconds = systems[-1].start(options.updates)
                print(f"{name}: update {options.updates} and warm after {seconds:.0f} s", flush=True)
            rounds = [measure_round(number, systems, options) for number in range(1, options.rounds + 1)]
            memory = {system.name: system.peak_memory() for system in systems}
        finally:
            for system in systems:
                system.end()
    report(rounds, systems, memory, options)
    if systems[0].operations:
        report_arithmetic(rounds, systems[0].operations, options.precision)


def parse_arguments() -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--model", choices=MODELS, default="tiny")
    parser.add_argument("--systems", default="kzoo,joeynmt,eole", help="with commas")
    parser.add_argument("--sentences", type=int, default=29000, help="training pairs, at most")
    parser.add_argument("--precision", choices=("float32", "mixed_bfloat16"), default="float32")
    parser.add_argument("--updates", type=int, default=300, help="that each system first trains alone")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10, help="of each system's turn, at least")
    parser.add_argument("--tokens", type=int, default=2048, help="words of a batch, padding included")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--joeynmt-python", type=Path, help="python of an environment with JoeyNMT 2.3")
    parser.add_argument("--eole-python", type=Path, help="python of an environment with Eole 0.6")
    parser.add_argument("--json", type=Path, help="file for the figures")
    return parser.parse_args()


def use_cores(threads: int):
    """Keep this process and those that it starts on `threads` cores, with as many threads."""
    os.environ |= {"TF_NUM_INTRAOP_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def python_of(name: str, options: argparse.Namespace) -> Path:
    """Return the python that a system trains in."""
    if name == "kzoo":
        return Path(sys.executable)
    if name not in PACKAGES:
        sys.exit(f"there is no system {name!r}, only kzoo, {', '.join(PACKAGES)}")
    return getattr(options, f"{name}_python") or make_environment(name)


def make_environment(name: str) -> Path:
    """Return the python of a system's environment in the cache folder, made if it is not there."""
    from kzoo.files import cache_folder

    folder = cache_folder() / f"{name}-benchmark"
    python = folder / "bin" / "python"
    complete = folder / "complete"
    if not complete.exists():
        print(f"installing {name} into {folder}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PACKAGES[name]], check=True)
        complete.touch()
    return python


def run_in(python: Path, script: str, folder: Path):
    """Run a script of `training_systems` with a system's python, in a folder, where it also logs."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [str(python), str(SYSTEMS / script), str(folder.absolute())]
    with open(folder / "log", "wb") as log:
        subprocess.run(command, cwd=folder, env=environment, stdout=log, stderr=log, check=True)


def write_corpus(folder: Path, options: argparse.Namespace):
    """Write a random part of Multi30k's training pairs, subwords learned from all, and the settings."""
    from kzoo.data import open_corpus
    from kzoo.text import SubwordTokenizer, train_subwords

    settings = {**MODELS[options.model], "model": options.model, "tokens": options.tokens}
    settings["precision"] = options.precision
    source, target = open_corpus("multi30k").pairs("train", "en", "de")
    proto = train_subwords(source + target, settings["vocabulary"])
    tokenizer = SubwordTokenizer(proto)
    words = [tokenizer.id_to_token(i) for i in range(settings["vocabulary"])]
    ordinary = [word for word in words if word not in ("<pad>", "<unk>", "<s>", "</s>")]
    chosen = random.Random(0).sample(range(len(source)), min(options.sentences, len(source)))
    (folder / "settings.json").write_text(json.dumps({**settings, "threads": options.threads}))
    (folder / "subwords.model").write_bytes(proto)
    # JoeyNMT and Eole put their own special words first; the rest may stand in any order.
    (folder / "vocabulary.txt").write_text("".join(f"{word}\n" for word in ordinary), "utf-8")
    for code, text in (("en", source), ("de", target)):
        (folder / f"train.{code}").write_text("".join(f"{text[i]}\n" for i in chosen), "utf-8")
        (folder / f"dev.{code}").write_text("".join(f"{text[i]}\n" for i in chosen[:10]), "utf-8")


class System:
    """A system that trains in processes of its own, stopped except in its turns.

    Args:
        name: in `training_systems`, `train_NAME.py` prints `step SECONDS WORDS` after each step, `warm` once;
            kzoo's prints `operations NUMBER` first.
        python: of its environment.
        folder: what `write_corpus` filled.
    """

    def __init__(self, name: str, python: Path, folder: Path):
        self.name, self.steps, self.seconds, self.log = name, [], 0.0, folder / f"{name}.log"
        self.operations = 0.0
        self._warm, self._began = threading.Event(), time.perf_counter()
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        if name != "kzoo":
            environment.pop("PYTHONPATH", None)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [str(python), str(SYSTEMS / f"train_{name}.py"), str(folder)],
                env=environment,
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,  # its data workers stop with it
            )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            kind, *values = line.split() or [""]
            if kind == "step":
                self.steps.append((float(values[0]), int(values[1])))
            elif kind == "operations":
                self.operations = float(values[0])
            elif kind == "warm":
                self._warm.set()

    def start(self, updates: int) -> float:
        """Wait until it is warm and has made so many updates, and stop it; return the seconds."""
        while not self._warm.wait(0.2) or len(self.steps) < updates:
            time.sleep(0.05)
            self._check()
        self._signal(signal.SIGSTOP)
        self.seconds = self.steps[updates - 1][0] - self._began if updates else 0.0
        return time.perf_counter() - self._began

    def peak_memory(self) -> int:
        """Return the largest resident memory of its processes together, in MiB."""
        total = 0
        for status in Path("/proc").glob("[0-9]*/status"):
            with contextlib.suppress(OSError):
                if os.getsid(int(status.parent.name)) == self.process.pid:
                    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
                    total += int(found[1]) // 1024 if found else 0
        return total

    def turn(self, seconds: float) -> tuple[float, float]:
        """Let it train for a while; return its target tokens per second, and its words a step."""
        before = len(self.steps)
        began = time.perf_counter()
        self._signal(signal.SIGCONT)
        while time.perf_counter() - began < seconds or len(self.steps) - before <= LEAST_STEPS:
            time.sleep(0.05)
            self._check()
        self._signal(signal.SIGSTOP)
        (start, _), *steps = self.steps[before:]  # the first was under way when it was stopped
        words = sum(count for _, count in steps)
        return words / (steps[-1][0] - start), words / len(steps)

    def end(self):
        with contextlib.suppress(ProcessLookupError):
            self._signal(signal.SIGKILL)
        self.process.wait()

    def _signal(self, number: int):
        os.killpg(self.process.pid, number)

    def _check(self):
        if self.process.poll() is not None:
            sys.exit(
                f"{self.name} ended with status {self.process.returncode}:\n{self.log.read_text()[-3000:]}"
            )


def measure_round(number: int, systems: list[System], options: argparse.Namespace) -> dict[str, float]:
    """Give each system a turn; return their target tokens per second."""
    turns = {system.name: system.turn(options.seconds) for system in systems}
    shown = ", ".join(f"{name} {speed:,.0f} ({words:,.0f} a step)" for name, (speed, words) in turns.items())
    print(f"round {number}: {shown}; load {os.getloadavg()[0]:.1f}", flush=True)
    return {name: speed for name, (speed, _) in turns.items()}


def report(
    rounds: list[dict[str, float]],
    systems: list[System],
    memory: dict[str, int],
    options: argparse.Namespace,
):
    """Print the tables and the ratios; write the figures if a path is given."""
    first, *others = [system.name for system in systems]
    medians = {name: statistics.median(speeds[name] for speeds in rounds) for name in rounds[0]}
    rows = [(str(number), speeds) for number, speeds in enumerate(rounds, 1)] + [("median", medians)]
    ratios = [f"{first} / {name}" for name in others]
    lines = [f"| round | {' | '.join([first, *others, *ratios])} |"]
    lines += ["| --- |" + " ---: |" * (len(systems) + len(others))]
    for label, speeds in rows:
        cells = [f"{speeds[name]:,.0f}" for name in (first, *others)]
        cells += [f"{speeds[first] / speeds[name]:.2f}" for name in others]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    print(f"\n{options.model}, {options.precision}: target tokens per second\n\n" + "\n".join(lines))
    lines = [f"| | seconds to update {options.updates} | peak memory, MiB |", "| --- | ---: | ---: |"]
    lines += [f"| {s.name} | {s.seconds:.0f} | {memory[s.name]:,} |" for s in systems]
    print("\n" + "\n".join(lines))
    if options.json is not None:
        figures = {"model": options.model, "precision": options.precision, "rounds": rounds}
        figures |= {"medians": medians, "memory": memory, "seconds": {s.name: s.seconds for s in systems}}
        write_json(options.json, figures)


def report_arithmetic(rounds: list[dict[str, float]], operations: float, precision: str):
    """Print each system's arithmetic, and its share of what this machine's fastest matrix product makes.

    Args:
        operations: per target token, in the products of tokens and weights alone, with as many source tokens.
    """
    from arithmetic import measured_peak

    peak = measured_peak("bfloat16" if precision == "mixed_bfloat16" else "float32")
    print(f"\nGFLOP/s; the fastest product of {precision} makes {peak / 1e9:.0f}:")
    for name in rounds[0]:
        made = operations * statistics.median(speeds[name] for speeds in rounds)
        print(f"- {name}: {made / 1e9:.0f}, {made / peak:.0%}")


if __name__ == "__main__":
    main()
