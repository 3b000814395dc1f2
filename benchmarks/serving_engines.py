"""`kzoo serve` with CTranslate2 and with Keras's search, and CTranslate2's own whole-file speed, in one run.

    pip install -e '.[serve]'
    python benchmarks/serving_engines.py --preset pope_small_multi30k_en_de

Both servers run beside each other and are asked in turns, by 1, 8 and 64 clients on the same machine, each
with one sentence of Multi30k's test_2016_flickr after another; between them CTranslate2 translates the whole
file, from text to text. Prints throughput, p50 and p99, the processor time of the server and of the clients
per sentence, and the ratios that are the goals.

Of the processor time of all cores, what the clients take is not the server's to use: the server's speed is
set against CTranslate2's in sentences per second of the time that the clients leave.
"""

import argparse
import asyncio
import os
import statistics
import time
from contextlib import ExitStack
from dataclasses import dataclass, field

from decoding_speed import keep_to
from serving_speed import BEAM, CLIENTS, WARM_UP_SECONDS, core_seconds, load, percentile, server

ENGINES = ("keras", "ctranslate2")


@dataclass
class Load:
    """What some clients saw of a server, in all rounds."""

    answers: list[float] = field(default_factory=list)  # seconds of each
    seconds: float = 0.0
    server: float = 0.0  # seconds of processor time
    clients: float = 0.0

    @property
    def rate(self) -> float:
        return len(self.answers) / self.seconds

    def milliseconds(self, part: float) -> float:
        return 1000 * percentile(self.answers, part)


@dataclass
class Whole:
    """CTranslate2's passes over the whole file."""

    rates: list[float] = field(default_factory=list)  # sentences per second
    core_rates: list[float] = field(default_factory=list)  # sentences per second of processor time


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--preset", default="pope_small_multi30k_en_de", help="name or folder")
    parser.add_argument("--compute-type", default="float32")
    parser.add_argument("--seconds", type=float, default=20, help="of each number of clients, in all rounds")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=16, help="the servers' --max-batch")
    parser.add_argument("--cores", type=int, default=2)
    options = parser.parse_args()
    keep_to(options.cores)
    report(*measured(options), options)


def measured(options) -> tuple[dict[tuple[str, int], Load], Whole]:
    """Return what each number of clients saw of each engine's server, and CTranslate2's whole-file speed."""
    from kzoo.data import open_corpus
    from kzoo.engine.translator import CTranslate2Translator
    from kzoo.presets import locate

    texts = open_corpus("multi30k").sentences("test_2016_flickr", "en")
    engine = CTranslate2Translator(locate(options.preset), options.compute_type)
    engine.translate(texts[:100])  # whatever is slow once
    loads, whole = {(name, clients): Load() for name in ENGINES for clients in CLIENTS}, Whole()
    each = options.seconds / options.rounds
    with ExitStack() as servers:
        types = {"keras": (), "ctranslate2": ("--compute-type", options.compute_type)}
        ports = {
            name: servers.enter_context(server(options.preset, options.batch, "--engine", name, *types[name]))
            for name in ENGINES
        }
        for _ in range(options.rounds):
            for (name, clients), found in loads.items():
                ask(found, ports[name], texts, clients, each)
            began, before = time.perf_counter(), time.process_time()
            engine.translate(texts, beam_size=BEAM)
            whole.rates.append(len(texts) / (time.perf_counter() - began))
            whole.core_rates.append(len(texts) / (time.process_time() - before))
    return loads, whole


def ask(found: Load, port: int, texts: list[str], clients: int, seconds: float):
    """Add what clients see in some seconds."""
    asyncio.run(load(port, texts, clients, WARM_UP_SECONDS))
    server_before, before, began = core_seconds(port), time.process_time(), time.perf_counter()
    found.answers += asyncio.run(load(port, texts, clients, seconds))
    found.seconds += time.perf_counter() - began
    found.clients += time.process_time() - before
    found.server += core_seconds(port) - server_before


def report(loads: dict[tuple[str, int], Load], whole: Whole, options):
    from rich.console import Console
    from rich.table import Table

    columns = ("clients", "engine", "sentences/s", "p50, ms", "p99, ms", "server, CPU ms", "clients, CPU ms")
    table = Table(*columns)
    for (name, clients), found in loads.items():
        count = len(found.answers)
        times = (1000 * part / count for part in (found.server, found.clients))
        figures = (f"{one:.1f}" for one in (found.milliseconds(0.5), found.milliseconds(0.99), *times))
        table.add_row(str(clients), name, f"{found.rate:.0f}", *figures)
    Console(width=110).print(table)
    rate, core_rate = statistics.median(whole.rates), statistics.median(whole.core_rates)
    print(
        f"CTranslate2 {options.compute_type}, whole file: {rate:.0f} sentences/s, {core_rate:.0f} per CPU s"
    )
    many = loads["ctranslate2", 64]
    print(f"64 clients, CTranslate2 / Keras (goal: 3 or more): {many.rate / loads['keras', 64].rate:.1f}")
    cores = min(options.cores, os.cpu_count() or 1)
    left = cores * many.seconds - many.clients
    print(
        f"64 clients, sentences per CPU second that the clients leave / whole file "
        f"(goal: 0.6 or more): {len(many.answers) / left / (rate / cores):.2f}; "
        f"per CPU second that the server takes: {len(many.answers) / many.server / core_rate:.2f}"
    )
    slow = loads["ctranslate2", 8].milliseconds(0.99) / loads["ctranslate2", 1].milliseconds(0.5)
    print(f"p99 at 8 clients / median of one (goal: 5 or less): {slow:.1f}")


if __name__ == "__main__":
    main()
