"""Serving speed: `kzoo serve` under concurrent clients; SavedModel, `translate` and CTranslate2; in one run.

    pip install -e '.[serve]'
    python benchmarks/serving_speed.py --preset pope_small_multi30k_en_de

First two servers of Keras's search, with batching and without, in turns: 1, 8 and 64 clients on loopback,
each requesting one sentence of Multi30k's test_2016_flickr after another; the servers' shapes are compiled
beforehand (serving_engines.py compares with CTranslate2's server). Then whole passes over the first
sentences, from text to text, each system in its own process, in turns: `translate` and the SavedModel,
CTranslate2 with two workers in float32 and int8. Each gets all sentences in one call; the SavedModel again in
two calls at once, and in calls of 64.

Prints both tables and the ratios between the systems.
"""

import argparse
import asyncio
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from decoding_speed import CTranslate2Side, Job, Turn, Worker, keep_to, take_turns

CLIENTS = (1, 8, 64)
BEAM = 5
WARM_UP_SECONDS = 1
# Workers, threads of each, and batches: the fastest that decoding_speed.py found.
CTRANSLATE2 = (2, 1, 32, "examples")
SAVED_MODEL = {  # threads, and sentences of a call
    "one call": (1, None),
    "two calls at once": (2, None),
    "64 at a time, 1 thread": (1, 64),
    "64 at a time, 2 threads": (2, 64),
}


def main():
    options = parse_arguments()
    keep_to(options.cores)
    with tempfile.TemporaryDirectory() as folder:
        job = Job(options.preset, options.sentences, BEAM, None, folder)
        served = loads(
            options.preset, (options.batch, 1), job.texts(), options.rounds, options.seconds / options.rounds
        )
        report_server(served, options.batch)
        report_systems(passes(job, options.rounds, options.cores))


def parse_arguments() -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--preset", default="pope_small_multi30k_en_de", help="name or folder")
    parser.add_argument("--seconds", type=float, default=20, help="of each number of clients, in all rounds")
    parser.add_argument("--batch", type=int, default=16, help="the server's --max-batch")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    return parser.parse_args()


@dataclass
class Load:
    """What some clients saw of a server."""

    seconds: list[float] = field(default_factory=list)  # of each answer
    core_seconds: float = 0.0  # of the server's processor time: on a busy machine the fairer measure

    @property
    def core_milliseconds(self) -> float:
        return 1000 * self.core_seconds / len(self.seconds)


def loads(
    preset: str, batches: tuple[int, ...], texts: list[str], rounds: int, seconds: float
) -> dict[int, dict[int, Load]]:
    """Return what each number of clients saw of a server with each maximum batch."""
    found = {batch: {clients: Load() for clients in CLIENTS} for batch in batches}
    with ExitStack() as servers:
        ports = {
            batch: servers.enter_context(server(preset, batch, "--engine", "keras")) for batch in batches
        }
        for _, clients, (batch, port) in itertools.product(range(rounds), CLIENTS, ports.items()):
            asyncio.run(load(port, texts, clients, WARM_UP_SECONDS))
            before = core_seconds(port)
            found[batch][clients].seconds += asyncio.run(load(port, texts, clients, seconds))
            found[batch][clients].core_seconds += core_seconds(port) - before
    return found


def core_seconds(port: int) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as page:
        lines = page.read().decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("process_cpu_seconds_total"))


@contextmanager
def server(preset: str, batch: int, *options: str):
    """Give the port of a server that is ready."""
    command = [sys.executable, "-m", "kzoo", "serve", preset, "--port", "0", "--name", "model"]
    start = time.perf_counter()
    with subprocess.Popen(
        [*command, "--beam", str(BEAM), "--max-batch", str(batch), *options],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        port = int(process.stdout.readline().rpartition("/,")[0].rpartition(":")[2])
        try:
            while not answers(f"http://127.0.0.1:{port}/readyz"):
                if process.poll() is not None:
                    sys.exit(f"the server ended with status {process.returncode}")
                time.sleep(0.05)
            print(
                f"--max-batch {batch} {' '.join(options)}: ready after {time.perf_counter() - start:.1f} s",
                flush=True,
            )
            yield port
        finally:
            process.terminate()


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address):
            return True
    except OSError:
        return False


async def load(port: int, texts: list[str], clients: int, seconds: float) -> list[float]:
    """Return the seconds of each answer that some clients get in some seconds."""
    end = asyncio.get_running_loop().time() + seconds
    each = (client(port, texts, number, end) for number in range(clients))
    return [one for found in await asyncio.gather(*each) for one in found]


async def client(port: int, texts: list[str], number: int, end: float) -> list[float]:
    """Ask for one sentence after the other, on one connection; no library, whose time would count."""
    now = asyncio.get_running_loop().time
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    found = []
    while (begin := now()) < end:
        body = json.dumps({"instances": [texts[number % len(texts)]]}).encode()
        head = f"Host: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(b"POST /v1/models/model:predict HTTP/1.1\r\n" + head.encode() + body)
        header = (await reader.readuntil(b"\r\n\r\n")).lower()
        answer = await reader.readexactly(int(header.split(b"content-length:")[1].split(b"\r\n")[0]))
        if b" 200 " not in header.split(b"\r\n")[0]:
            raise RuntimeError(answer.decode())
        found.append(now() - begin)
        number += 61  # other sentences than its neighbours
    writer.close()
    return found


class TranslateSide:
    """`Translator.translate`."""

    def __init__(self, job: Job):
        from kzoo.export import export_ctranslate2, export_saved_model
        from kzoo.presets import load as load_preset

        self.translator, self.texts = load_preset(job.preset), job.texts()
        if not any(Path(job.folder).iterdir()):
            export_ctranslate2(self.translator, job.folder)
            search = {"beam_size": BEAM, "length_penalty": 1.0}
            export_saved_model(self.translator, Path(job.folder) / "saved_model", **search)

    def translate(self, threads: int) -> list[str]:
        return self.translator.translate(self.texts, beam_size=BEAM, length_penalty=1.0, threads=threads)


class SavedModelSide:
    """The SavedModel, called by some threads at once, with all sentences or some at a time."""

    def __init__(self, job: Job):
        import tensorflow as tf
        import tensorflow_text  # noqa: F401, whose operations the model has

        self.constant = tf.constant
        self.model = tf.saved_model.load(str(Path(job.folder) / "saved_model"))
        # By length, so that those of a call are padded little and threads that share them have like work.
        self.texts = job.texts()
        self.order = sorted(range(len(self.texts)), key=lambda i: -len(self.texts[i]))

    def translate(self, threads: int, at_a_time: int | None) -> list[str]:
        found, signature = [None] * len(self.texts), self.model.signatures["serving_default"]

        def translate_some(numbers: list[int]):
            answer = signature(text=self.constant([self.texts[i] for i in numbers]))
            for number, text in zip(numbers, answer["translation"].numpy(), strict=True):
                found[number] = text.decode()

        if at_a_time is None:
            calls = [self.order[i::threads] for i in range(threads)]
        else:
            calls = [self.order[i : i + at_a_time] for i in range(0, len(self.order), at_a_time)]
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(translate_some, calls))
        return found


class Int8Side(CTranslate2Side):
    """CTranslate2, its weights made int8."""

    precision = "int8"


def passes(job: Job, rounds: int, cores: int) -> dict[str, list[Turn]]:
    """Return each system's passes over all sentences, after one that compiles."""
    sides = {  # `translate` first: it writes the others' models
        "translate": (TranslateSide, {"1 thread": (1,), "2 threads": (2,)}),
        "SavedModel": (SavedModelSide, SAVED_MODEL),
        "CTranslate2 float32": (CTranslate2Side, {"2 workers": CTRANSLATE2}),
        "CTranslate2 int8": (Int8Side, {"2 workers": CTRANSLATE2}),
    }
    with ExitStack() as processes:
        systems = {}
        for name, (side, settings) in sides.items():
            worker = processes.enter_context(Worker(side, job, cores, name))
            systems |= {f"{name}, {how}": (worker, values) for how, values in settings.items()}
        for worker, values in systems.values():
            worker.translate(*values)
        return take_turns(systems, rounds)


def percentile(values: list[float], part: float) -> float:
    return sorted(values)[min(int(part * len(values)), len(values) - 1)]


def report_server(served: dict[int, dict[int, Load]], batch: int):
    from rich.console import Console
    from rich.table import Table

    columns = ("clients", "batching", "sentences per second", "p50, ms", "p99, ms", "CPU ms per sentence")
    table = Table(*columns)
    for clients in CLIENTS:
        for size, found in served.items():
            seconds = found[clients].seconds
            rate = clients / statistics.mean(seconds)  # each client waits for one answer at any time
            p50, p99 = (1000 * percentile(seconds, part) for part in (0.5, 0.99))
            how, core = f"up to {size}" if size > 1 else "off", found[clients].core_milliseconds
            table.add_row(str(clients), how, f"{rate:.0f}", f"{p50:.0f}", f"{p99:.0f}", f"{core:.1f}")
    Console().print(table)
    on, off = served[batch], served[1]
    gain = statistics.mean(off[64].seconds) / statistics.mean(on[64].seconds)
    core_gain = off[64].core_milliseconds / on[64].core_milliseconds
    print(f"throughput at 64 clients, batching on / off (goal: 4 or more): {gain:.1f}")
    print(f"the same by processor time: {core_gain:.1f}")
    slow = percentile(on[8].seconds, 0.99) / percentile(on[1].seconds, 0.5)
    print(f"p99 at 8 clients / median of one (goal: under 5): {slow:.1f}")


def report_systems(turns: dict[str, list[Turn]]):
    from rich.console import Console
    from rich.table import Table

    rates = {name: statistics.median(turn.rate for turn in found) for name, found in turns.items()}
    core = {
        name: statistics.median(1000 * turn.core_seconds / len(turn.texts) for turn in found)
        for name, found in turns.items()
    }
    reference = turns["translate, 2 threads"][0].texts
    columns = ("sentences per second", "of translate", "CPU ms per sentence", "same translation")
    table = Table(f"beam {BEAM}", *columns)
    for name, rate in rates.items():
        texts = turns[name][0].texts
        same = sum(x == y for x, y in zip(texts, reference, strict=True)) / len(texts)
        of_translate = rate / rates["translate, 2 threads"]
        table.add_row(name, f"{rate:.0f}", f"{of_translate:.2f}", f"{core[name]:.2f}", f"{same:.1%}")
    Console(width=110).print(table)
    # TensorFlow runs batches of one call side by side, as `translate` does with two threads.
    ours, theirs = "SavedModel, one call", "translate, 2 threads"
    print(f"SavedModel / translate (goal: 0.90 or more): {rates[ours] / rates[theirs]:.2f}")
    print(f"the same by processor time: {core[theirs] / core[ours]:.2f}")


if __name__ == "__main__":
    main()
