"""Tests that take minutes and the network: `make test-all`."""

import os

import pytest

collect_ignore_glob = [] if "KZOO_SLOW" in os.environ else ["*"]


@pytest.fixture(scope="session")
def python(tmp_path_factory):
    """Function that makes a fresh environment with some packages, and returns its Python."""
    import subprocess
    import sys

    def made(name: str, *packages: str) -> str:
        folder = tmp_path_factory.mktemp(name) / "venv"
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin/python", "-m", "pip", "install", "-q", *packages], check=True)
        return str(folder / "bin/python")

    return made
