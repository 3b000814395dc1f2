"""Other programs that the tests ask."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

# Argos splits texts into sentences with a model from another site than PyPI: here, each text is a sentence.
UNSPLIT = """
from argostranslate.sbd import MiniSBDSentencizer
MiniSBDSentencizer.split_sentences = lambda self, text: [text]
"""


def skip_unless_had(package: str, folder: Path):
    """Skip the test if a package cannot be downloaded from PyPI, to a folder."""
    download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, package]
    if subprocess.run(download).returncode:
        pytest.skip(f"{package} cannot be downloaded from PyPI")


def with_empty_home(folder: Path) -> dict:
    """Return options of `subprocess.run` for a program that has a folder as its home and nothing of ours."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "XDG_"))}
    return {"cwd": folder, "env": kept | {"HOME": str(folder)}}


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
