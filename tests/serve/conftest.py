"""The servers that the page's tests ask, in threads."""

import contextlib
import functools
import threading
import time

import pytest
import uvicorn
from tiny_models import BEAM

from kzoo.decoding import SearchSettings
from kzoo.serve import Limits, Served, create_app, reserved, searches

LIMITS = Limits(characters=200, sentences=4, body=20_000)


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


@contextlib.contextmanager
def running(translator, **options):
    """Give the address of a server in a thread."""
    translator.search = SearchSettings(BEAM)
    served = Served(translator, "tiny_model", max_batch=1, limits=LIMITS, **options)
    with reserved("127.0.0.1", 0) as bound:
        server = uvicorn.Server(uvicorn.Config(create_app(served), log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield "http://{}:{}".format(*bound.getsockname())
        finally:
            server.should_exit = True
            thread.join()
