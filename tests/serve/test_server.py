"""A server whose model answers when it is told to: clients that leave, and the server's end."""

import asyncio
import http.client
import json
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from kzoo.decoding import SearchSettings, TextTranslator
from kzoo.models import Hypothesis
from kzoo.serve import Served, reserved
from kzoo.serve.server import GracefulServer

PREDICT = "/v1/models/m:predict", {"instances": ["slow"]}
PAGE = "/page/translate", {"text": "slow"}
SLOW = 6  # its token


class Model(TextTranslator):
    """Answers at once, but to "slow" only when `free` is set."""

    engine, runs_on_keras = "keras", True
    source_language, target_language, target_tokenizer = "en", "de", None
    search, max_length = SearchSettings(), 16
    backbone = SimpleNamespace(bridge=None)

    def __init__(self):
        self.running, self.free = 0, threading.Event()

    def source_tokenizer(self, texts):
        return [[SLOW if text == "slow" else 5] for text in texts]

    def n_best_of_rows(self, rows, *_, **__):
        if [SLOW] in rows.tokens:
            self.running += 1
            assert self.free.wait(60)
        return [[Hypothesis(str(sentence), -1.0)] for sentence in rows.tokens]


@pytest.fixture
def limits(monkeypatch):
    """Function that sets the server's limits by their names."""

    def chosen(**values):
        for name, value in values.items():
            monkeypatch.setattr(f"kzoo.serve.server.{name}", value)

    return chosen


@pytest.fixture(autouse=True)
def quick_end(limits):
    """The server soon refuses what waits when it is told to stop, and waits for what runs."""
    limits(GIVE_UP_SECONDS=0.5, END_SECONDS=60)


@contextmanager
def running(model: Model):
    """Give a server, and its port; at the end it is told to stop, and must leave no thread of the model's."""
    served = Served(model, "m", max_batch=1)
    with reserved("127.0.0.1", 0) as listening:
        server = GracefulServer(served)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            wait_until(lambda: not served.readiness)
            yield server, listening.getsockname()[1]
        finally:
            model.free.set()
            server.should_exit = True
            thread.join()
    assert not any(thread.name.startswith(("model_", "checks_")) for thread in threading.enumerate())


def asked(port: int, path: str, content: dict) -> http.client.HTTPConnection:
    """Return a connection on which a question has been sent."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", path, json.dumps(content), {"Content-Type": "application/json"})
    return connection


def ask(port: int) -> tuple[int, str | None, dict]:
    """Return status, Retry-After and content of the answer to a slow request."""
    return read(asked(port, *PREDICT))


def read(connection: http.client.HTTPConnection) -> tuple[int, str | None, dict]:
    answer = connection.getresponse()
    return answer.status, answer.getheader("Retry-After"), json.load(answer)


def wait_until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def value(served: Served, name: str) -> float:
    lines = served.metrics.text().decode().splitlines()
    return next((float(line.split()[-1]) for line in lines if line.startswith(f"{name} ")), 0.0)


@pytest.mark.parametrize(("purpose", "question"), [("model", PREDICT), ("page", PAGE)])
def test_a_client_that_leaves_is_counted_and_its_sentence_is_not_translated(purpose, question):
    model = Model()
    with ThreadPoolExecutor() as clients, running(model) as (server, port):
        served = server.models[0]
        threads = served.batcher.threads
        answers = [clients.submit(ask, port) for _ in range(threads)]
        wait_until(lambda: model.running == threads)
        gone = asked(port, *question)
        wait_until(lambda: value(served, "kzoo_queue_sentences") == 1)
        gone.close()
        left = f'kzoo_requests_total{{purpose="{purpose}",status="499"}}'
        wait_until(lambda: value(served, left) == 1 and value(served, "kzoo_queue_sentences") == 0)
        model.free.set()
        assert [answer.result()[0] for answer in answers] == [200] * threads
        wait_until(lambda: value(served, 'kzoo_requests_total{purpose="model",status="200"}') == threads)
        assert value(served, "kzoo_batch_sentences_count") == threads
        assert value(served, 'kzoo_request_seconds_sum{purpose="model"}') > 0


def test_at_the_end_running_batches_are_answered_and_waiting_sentences_refused():
    model = Model()
    with ThreadPoolExecutor() as clients, running(model) as (server, port):
        threads = server.models[0].batcher.threads
        answers = [clients.submit(ask, port) for _ in range(threads + 2)]
        waiting = "kzoo_queue_sentences"
        wait_until(lambda: model.running == threads and value(server.models[0], waiting) == 2)
        server.should_exit = True
        wait_until(lambda: sum(answer.done() for answer in answers) == 2)
        model.free.set()
        found = sorted((answer.result() for answer in answers), key=lambda answer: answer[0])
    for status, _, content in found[:-2]:
        assert (status, content["predictions"][0]["translation"]) == (200, "[6]")
    for status, retry, content in found[-2:]:
        assert (status, retry) == (503, "1")
        assert "stopping" in content["error"]


def test_answers_after_the_end_has_begun_say_that_their_connections_close():
    model = Model()
    with running(model) as (server, port):
        before, late = asked(port, PREDICT[0], {"instances": ["quick"]}), asked(port, *PREDICT)
        assert before.getresponse().getheader("Connection") is None
        wait_until(lambda: model.running == 1)
        server.should_exit = True
        wait_until(lambda: not server.servers[0].is_serving())
        model.free.set()
        assert late.getresponse().getheader("Connection") == "close"


def test_requests_that_the_end_cuts_off_are_told_to_try_again(limits):
    limits(END_SECONDS=1)
    model = Model()
    with ThreadPoolExecutor() as clients, running(model) as (server, port):
        answer = clients.submit(ask, port)
        page = asked(port, *PAGE)
        wait_until(lambda: model.running + value(server.models[0], "kzoo_queue_sentences") == 2)
        server.should_exit = True
        for status, retry, content in (answer.result(), read(page)):
            assert (status, retry) == (503, "1")
            assert "stopping" in content["error"]
        refused = 'kzoo_requests_total{{purpose="{}",status="503"}}'.format
        wait_until(lambda: [value(server.models[0], refused(name)) for name in ("model", "page")] == [1, 1])


def test_an_upload_that_the_end_cuts_off_is_told_to_try_again(limits):
    limits(END_SECONDS=1)
    with running(Model()) as (server, port):
        slow = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        slow.putrequest("POST", PREDICT[0])
        slow.putheader("Content-Length", "1000")
        slow.endheaders(b"{")
        wait_until(lambda: server.server_state.tasks)
        server.should_exit = True
        status, retry, content = read(slow)
    assert (status, retry) == (503, "1")
    assert "stopping" in content["error"]


@pytest.mark.parametrize("size", [0, 8_000_000])
def test_as_many_clients_are_connected_as_there_may_be(limits, size):
    """Others are told so, even one that first sends a large body."""
    limits(most_files=lambda: 8)
    with running(Model()) as (server, port):
        four = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(4)]
        wait_until(lambda: len(server.server_state.connections) == 4)
        status, retry, content = read(asked(port, PREDICT[0], {"instances": ["a" * size]}))
        assert (status, retry) == (503, "1")
        assert "clients" in content["error"]
        wait_until(lambda: value(server.models[0], 'kzoo_requests_total{purpose="model",status="503"}') == 1)
        four.pop().close()
        wait_until(lambda: len(server.server_state.connections) == 3)
        assert read(asked(port, PREDICT[0], {"instances": ["quick"]}))[0] == 200


def test_a_request_for_a_websocket_is_answered_like_any_other():
    """uvicorn would give it a connection that the server's end cannot handle."""
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    with running(Model()) as (_, port):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/healthz", headers={**upgrade, "Sec-WebSocket-Key": "a" * 22 + "=="})
        assert read(connection)[::2] == (200, {"status": "alive"})


def test_a_client_that_sends_no_request_is_let_go(limits):
    limits(HEAD_SECONDS=1)
    model = Model()
    with running(model) as (server, port):
        slow = asked(port, *PREDICT)
        silent = socket.create_connection(("127.0.0.1", port), timeout=60)
        assert silent.recv(1) == b""
        model.free.set()
        assert read(slow)[0] == 200
        kept = socket.create_connection(("127.0.0.1", port), timeout=60)
        kept.sendall(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert kept.recv(2**20).startswith(b"HTTP/1.1 ")
        kept.sendall(b"G")
        while kept.recv(2**20):
            pass


@pytest.mark.parametrize("limit", [{"SLOWEST": 1e9}, {"MOST_UNREAD": 0, "SLOWEST": 1}])
def test_a_client_that_does_not_read_is_let_go(limit, limits):
    limits(**limit)
    with running(Model()) as (server, port):
        deaf = socket.create_connection(("127.0.0.1", port), timeout=60)
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert deaf.recv(1) == b"H"
        limits(HEAD_SECONDS=0.05)
        deaf.settimeout(0.2)
        try:
            for _ in range(10_000):  # answers larger than what the system keeps
                deaf.sendall(b"GET /page/page.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)
        except OSError:  # full, or let go
            pass
        wait_until(lambda: not server.server_state.connections)


def test_files_are_raised_to_what_is_allowed():
    code = (
        "import resource as r; from kzoo.serve.startup import most_files; "
        "r.setrlimit(r.RLIMIT_NOFILE, (64, 300)); print(most_files(), r.getrlimit(r.RLIMIT_NOFILE))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "300 (300, 300)\n"


def test_a_sentence_waits_for_others_as_many_milliseconds_as_asked_for():
    async def seconds():
        served = Served(Model(), "m", max_wait=500)
        await served.start()
        begin = time.monotonic()
        await served.search(await served.prepared(["dogs."], [served.translator.direction()]), 1)
        await served.stop()
        return time.monotonic() - begin

    assert 0.4 < asyncio.run(seconds()) < 4
