"""Decoding speed: sentences per second with beam 5, `Translator.translate` against CTranslate2 4.8.

    pip install -e .
    python benchmarks/decoding_speed.py --preset pope_small_multi30k_en_de --rounds 5

Both translate the first sentences of a split of Multi30k with the same weights in float32, from text to text,
including subword tokenization, with length penalty 1, in one run; kzoo in the staged search that jobs of
16,384 sentences get. CTranslate2 gets all sentences at once. Every setting (threads, batches) of each system
is timed once, with at most 1,000 sentences; then each system's fastest setting takes turns with the other's.
Each system runs in its own processes; compilation and first calls are not counted, and the time that kzoo's
took is printed.

Prints the settings tried, the rounds with medians and the median of their ratios, the share of translations
that are the same text, and their mean lengths.
"""

import argparse
import multiprocessing
import os
import statistics
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from kzoo.files import write_json

SPLIT = "test_2016_flickr"
TRIED = 1000  # sentences to choose the settings by
# (workers, threads of each) and (most sentences or words of a batch, which of the two)
CTRANSLATE2_THREADS = ((2, 1), (1, 2), (3, 1))
CTRANSLATE2_BATCHES = (
    (16, "examples"),
    (32, "examples"),
    (64, "examples"),
    (512, "tokens"),
    (1024, "tokens"),
)
# Translator.translate's `threads`. XLA runs on TensorFlow's pool for operations, as large as the cores: with
# a pool of one thread, all of translate's share one core.
KZOO_THREADS = (1, 2, 3)


def main():
    options = parse_arguments()
    keep_to(options.cores)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as processes:
        search = options.beam_size, options.max_length
        job = Job(options.preset, options.sentences, *search, folder, options.split)
        # kzoo first: it writes CTranslate2's model.
        kzoo = processes.enter_context(Worker(KzooSide, job, options.cores, "kzoo"))
        ctranslate2 = processes.enter_context(Worker(CTranslate2Side, job, options.cores, "CTranslate2"))
        for worker in (kzoo, ctranslate2):
            worker.limit_to(TRIED)
        ours = fastest([(kzoo, (threads,)) for threads in KZOO_THREADS])
        theirs = fastest([(ctranslate2, (*t, *b)) for t in CTRANSLATE2_THREADS for b in CTRANSLATE2_BATCHES])
        for worker in (kzoo, ctranslate2):
            worker.limit_to(options.sentences)
        turns = take_turns({"kzoo": ours, "CTranslate2": theirs}, options.rounds)
        rounds = list(zip(turns["kzoo"], turns["CTranslate2"], strict=True))
    report(ours, theirs, rounds, kzoo.warm_up, options)


def keep_to(cores: int):
    """Run this process and those that it starts on so many cores, where the system can say so."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])


def parse_arguments() -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--preset", default="pope_small_multi30k_en_de", help="name or folder")
    parser.add_argument("--split", default=SPLIT, help="of Multi30k, such as train")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--beam-size", type=int, default=5)
    parser.add_argument("--max-length", type=int, help="of a translation, in subwords")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--json", type=Path, help="file for the figures")
    return parser.parse_args()


@dataclass(frozen=True)
class Job:
    """What both sides translate, and where CTranslate2's model stands."""

    preset: str
    sentences: int
    beam_size: int
    max_length: int | None
    folder: str
    split: str = SPLIT

    def texts(self) -> list[str]:
        from kzoo.data import open_corpus

        return open_corpus("multi30k").sentences(self.split, "en")[: self.sentences]


@dataclass(frozen=True)
class Turn:
    """One timed pass over all sentences."""

    seconds: float
    core_seconds: float  # of processor time: on a busy machine the fairer of the two
    texts: list[str] = field(repr=False)

    @property
    def rate(self) -> float:
        return len(self.texts) / self.seconds


class Worker:
    """A process that translates the job's sentences with the settings it is asked for."""

    def __init__(self, side, job: Job, threads: int, name: str):
        self.name = name
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        os.environ |= {"TF_NUM_INTRAOP_THREADS": str(threads), "TF_CPP_MIN_LOG_LEVEL": "3"}
        self._process = context.Process(target=serve, args=(side, job, other), daemon=True)
        self._process.start()
        other.close()
        self.warm_up = self._pipe.recv()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._pipe.send(None)
        self._process.join()

    def translate(self, *settings) -> Turn:
        self._pipe.send(settings)
        return self._pipe.recv()

    def limit_to(self, sentences: int):
        """Translate only so many of the job's sentences from now on."""
        self._pipe.send(sentences)


def serve(side, job: Job, pipe):
    """Be a worker's process: settings get a turn, a number limits the sentences, `None` ends it."""
    start = time.perf_counter()
    side = side(job)
    pipe.send(time.perf_counter() - start)
    while (settings := pipe.recv()) is not None:
        if isinstance(settings, int):
            side.texts = job.texts()[:settings]
            continue
        start, core_start = time.perf_counter(), time.process_time()
        texts = side.translate(*settings)
        pipe.send(Turn(time.perf_counter() - start, time.process_time() - core_start, texts))


class KzooSide:
    """kzoo's translator, every shape compiled."""

    def __init__(self, job: Job):
        import kzoo.decoding.batched_search
        from kzoo.export import export_ctranslate2
        from kzoo.presets import load

        self.translator, self.job, self.texts = load(job.preset), job, job.texts()
        kzoo.decoding.batched_search.MANY = 1  # as for a large job, whose few sentences these stand for
        if not any(Path(job.folder).iterdir()):
            export_ctranslate2(self.translator, job.folder)
        self.translate(1)

    def translate(self, threads: int) -> list[str]:
        job = self.job
        return self.translator.translate(
            self.texts,
            beam_size=job.beam_size,
            length_penalty=1,
            max_length=job.max_length,
            threads=threads,
        )


class CTranslate2Side:
    """CTranslate2 with the same weights and subwords."""

    precision = "float32"

    def __init__(self, job: Job):
        import sentencepiece

        self.job, self.texts = job, job.texts()
        self.source, self.target = (
            sentencepiece.SentencePieceProcessor(str(Path(job.folder) / f"{side}.spm"))
            for side in ("source", "target")
        )
        self.translators = {}

    def translate(self, workers: int, threads: int, batch_size: int, batch_type: str) -> list[str]:
        translator = self._translator(workers, threads)
        found = translator.translate_batch(
            self.source.encode(self.texts, out_type=str),
            max_batch_size=batch_size,
            batch_type=batch_type,
            beam_size=self.job.beam_size,
            length_penalty=1,
            min_decoding_length=0,  # by default 1: another search than ours
            max_decoding_length=(self.job.max_length or 256) - 1,  # without the end symbol
        )
        return self.target.decode([result.hypotheses[0] for result in found])

    def _translator(self, workers: int, threads: int):
        import ctranslate2

        if (workers, threads) not in self.translators:
            self.translators[workers, threads] = ctranslate2.Translator(
                self.job.folder, compute_type=self.precision, inter_threads=workers, intra_threads=threads
            )
        return self.translators[workers, threads]


def fastest(settings: list[tuple[Worker, tuple]]) -> tuple[Worker, tuple]:
    """Run every setting, once to warm up and once timed, print the rates, and return the fastest."""
    rates = {}
    for worker, values in settings:
        worker.translate(*values)
        rates[worker, values] = worker.translate(*values).rate
        print(f"{rates[worker, values]:8.1f} sentences a second: {describe(worker, values)}", flush=True)
    return max(rates, key=rates.get)


def take_turns(systems: dict[str, tuple[Worker, tuple]], rounds: int) -> dict[str, list[Turn]]:
    """Return each system's passes over all sentences, one a round, in an order that changes with each."""
    turns = {name: [] for name in systems}
    for number in range(rounds):
        for name in list(systems)[:: 1 if number % 2 == 0 else -1]:
            worker, values = systems[name]
            turns[name].append(worker.translate(*values))
    return turns


def describe(worker: Worker, settings: tuple) -> str:
    if len(settings) == 1:
        return f"{worker.name}, threads={settings[0]}"
    return f"{worker.name}, inter {settings[0]}, intra {settings[1]}, batches of {settings[2]} {settings[3]}"


def report(ours, theirs, rounds: list[tuple[Turn, Turn]], warm_up: float, options: argparse.Namespace):
    """Print the table, the ratio and how the translations compare; write the figures if a path is given."""
    from rich.console import Console
    from rich.table import Table

    a, b = (statistics.median(turn.rate for turn in column) for column in zip(*rounds, strict=True))
    ratio = statistics.median(x.rate / y.rate for x, y in rounds)
    core_ratio = statistics.median(y.core_seconds / x.core_seconds for x, y in rounds)
    table = Table(f"sentences a second, beam {options.beam_size}", "kzoo", "CTranslate2", "ratio")
    for number, (x, y) in enumerate(rounds, 1):
        table.add_row(f"round {number}", f"{x.rate:.1f}", f"{y.rate:.1f}", f"{x.rate / y.rate:.2f}")
    table.add_row("median", f"{a:.1f}", f"{b:.1f}")
    Console().print(table)
    busy = [statistics.median(turn.core_seconds for turn in column) for column in zip(*rounds, strict=True)]
    our_texts, their_texts = rounds[-1][0].texts, rounds[-1][1].texts
    same = sum(x == y for x, y in zip(our_texts, their_texts, strict=True)) / len(our_texts)
    lengths = [sum(len(text.split()) for text in texts) / len(texts) for texts in (our_texts, their_texts)]
    print(f"ratio kzoo / CTranslate2: {ratio:.2f}")
    print(f"ratio by processor time: {core_ratio:.2f} ({busy[0]:.2f} s and {busy[1]:.2f} s a round)")
    print(f"fastest settings: {describe(*ours)}; {describe(*theirs)}")
    print(f"same translation: {same:.1%}; mean length {lengths[0]:.2f} and {lengths[1]:.2f} words")
    print(f"kzoo's loading and compilation: {warm_up:.0f} s (not counted)")
    if options.json is not None:
        figures = {
            "sentences": len(our_texts),
            "rounds": [(x.rate, y.rate) for x, y in rounds],
            "kzoo": {"rate": a, "setting": describe(*ours), "mean_length": lengths[0]},
            "ctranslate2": {"rate": b, "setting": describe(*theirs), "mean_length": lengths[1]},
            "ratio": ratio,
            "ratio_of_processor_time": core_ratio,
            "same_translation": same,
            "warm_up": warm_up,
        }
        write_json(options.json, figures)


if __name__ == "__main__":
    main()
