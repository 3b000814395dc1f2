"""What others notice while clients send `kzoo serve` large bodies.

    pip install -e '.[tensorflow,serve]'
    python benchmarks/serving_large_bodies.py --preset pope_small_multi30k_en_de

Clients in a process of their own send bodies of so many bytes, one after another, each on a new connection.
Meanwhile `/healthz` is asked ten times a second, and four honest clients ask for a sentence after another.
The clients' and the honest ones' answers are counted by status, and so are connections that end without one.

Prints a table with a row for each kind of body: what the clients got, and the slowest and median answers of
`/healthz` and of the honest clients.
"""

import argparse
import asyncio
import base64
import collections
import gzip
import json
import multiprocessing
import statistics
import time

from serving_speed import server

HONEST = 4
PREDICT = "/v1/models/model:predict"


def main():
    options = parse_arguments()
    size = options.megabytes * 2**20
    with server(options.preset, 16) as port:
        print("| body | clients got | healthz, ms: median, most | honest clients got | ms: median, most |")
        print("| --- | --- | --- | --- | --- |")
        for name, (body, headers) in bodies(size - 1000).items():
            with multiprocessing.Pool(1) as pool:
                begun = pool.apply_async(flood, (port, body, headers, options.clients, options.seconds))
                health, honest = asyncio.run(watch(port, options.seconds))
                got = begun.get()
            cells = (name, counted(got), spread(health), counted(honest), spread(honest))
            print(f"| {' | '.join(cells)} |", flush=True)


def parse_arguments() -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--preset", default="pope_small_multi30k_en_de", help="name or folder")
    parser.add_argument("--clients", type=int, default=40)
    parser.add_argument("--megabytes", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=15, help="for each kind of body")
    return parser.parse_args()


def bodies(size: int) -> dict[str, tuple[bytes, str]]:
    """Return bodies of at most so many bytes, one larger, and one that unpacks to as much; and headers."""
    long = json.dumps({"instances": ["a dog runs " * (size // 11 // 256)] * 250}).encode()
    image = {"text": "A dog runs.", "image": {"b64": base64.b64encode(bytes(size * 3 // 4 - 200)).decode()}}
    empty = b'{"instances": [' + b",".join([b'""'] * (size // 3)) + b"]}"
    return {
        "texts that are too long": (long, ""),
        "a picture that is none": (json.dumps({"instances": [image]}).encode(), ""),
        "empty texts": (empty, ""),
        "empty texts, gzip": (gzip.compress(empty), "Content-Encoding: gzip\r\n"),
        "twice as large": (b"x" * 2 * size, ""),
    }


def flood(port: int, body: bytes, headers: str, clients: int, seconds: float) -> list[tuple[str, float]]:
    async def client(end: float) -> list:
        found = []
        while time.monotonic() < end:
            found.append(await ask(port, "POST", PREDICT, body, headers))
        return found

    async def all_clients():
        end = time.monotonic() + seconds
        return sum(await asyncio.gather(*(client(end) for _ in range(clients))), [])

    return asyncio.run(all_clients())


async def watch(port: int, seconds: float) -> tuple[list, list]:
    """Return statuses and seconds of `/healthz` and of honest clients."""
    end = time.monotonic() + seconds
    sentence = json.dumps({"instances": ["A dog runs in the snow."]}).encode()

    async def probe() -> list:
        found = []
        while time.monotonic() < end:
            found.append(await ask(port, "GET", "/healthz"))
            await asyncio.sleep(0.1)
        return found

    async def honest() -> list:
        found = []
        while time.monotonic() < end:
            found.append(await ask(port, "POST", PREDICT, sentence))
        return found

    health, *others = await asyncio.gather(probe(), *(honest() for _ in range(HONEST)))
    return health, sum(others, [])


async def ask(port: int, method: str, path: str, body: bytes = b"", headers: str = "") -> tuple[str, float]:
    """Return the status of an answer, or what kept it from coming, and the seconds."""
    begin, status = time.monotonic(), "no answer"
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head.encode() + body)
        await writer.drain()  # as most clients do, the answer is read when the body has been sent
        status = (await reader.readline()).split()[1].decode()
        writer.close()
    except (OSError, IndexError) as error:
        status = type(error).__name__
    return status, time.monotonic() - begin


def counted(answers: list[tuple[str, float]]) -> str:
    counts = collections.Counter(status for status, _ in answers)
    return ", ".join(f"{count} × {status}" for status, count in sorted(counts.items()))


def spread(answers: list[tuple[str, float]]) -> str:
    seconds = [1000 * second for _, second in answers]
    return f"{statistics.median(seconds):.0f}, {max(seconds):.0f}"


if __name__ == "__main__":
    main()
