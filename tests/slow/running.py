"""Servers that the tests ask."""

import contextlib
import socket
import subprocess
import time

import httpx


@contextlib.contextmanager
def serving(command, **options):
    """Run a server on a free port; yield its address once it answers."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    address, end = f"http://127.0.0.1:{port}", time.monotonic() + 300
    with subprocess.Popen([*command, "--host", "127.0.0.1", "--port", port], **options) as process:
        try:
            while not answers(address):
                assert process.poll() is None and time.monotonic() < end
                time.sleep(0.5)
            yield address
        finally:
            process.terminate()


def answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/health").status_code == 200
    except httpx.TransportError:
        return False
