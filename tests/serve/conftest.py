"""Fixtures of the server's tests."""

import contextlib
import functools

import httpx
import pytest
from asking import running

from kzoo.serve import searches

# Each request would read all certificates again, in 35 ms.
httpx._transports.default.create_ssl_context = functools.cache(httpx._transports.default.create_ssl_context)


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Compiling on a busy machine may take longer than users should wait."""
    monkeypatch.setattr("kzoo.serve.page.ATTENTION_SECONDS", 300)


@pytest.fixture
def usual_length(monkeypatch):
    """Function that sets it: a server first translates a sentence of each length up to it."""
    return lambda length: monkeypatch.setattr(searches, "USUAL_LENGTH", length)


@pytest.fixture(scope="module")
def served():
    """Function of one of `tiny_models`: its translator, and the address of a server, begun once."""
    with contextlib.ExitStack() as stack:
        yield functools.cache(lambda model: (model(), stack.enter_context(running(model()))))
