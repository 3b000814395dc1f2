"""The end of a server: what runs is answered, what waits too long is told to try again."""

import http.client
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

pytest.importorskip("uvicorn", reason="serving is an optional extra: pip install -e '.[serve]'")
from kzoo.models import Hypothesis
from kzoo.serve import Served, reserved
from kzoo.serve.graceful import GracefulServer


class Model:
    """Answers at once, but to "slow" only when `free` is set."""

    image_shape, source_language, target_language = None, "en", "de"
    backbone = SimpleNamespace(max_length=16, bridge=None)

    def __init__(self):
        self.running, self.free = 0, threading.Event()

    def source_tokenizer(self, texts):
        return [[5] for _ in texts]

    def n_best(self, texts, **_):
        if "slow" in texts:
            self.running += 1
            assert self.free.wait(60)
        return [[Hypothesis(text, -1.0)] for text in texts]


def ask(port: int) -> tuple[int, str | None, dict]:
    """Return status, Retry-After and content of the answer to a slow request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", "/v1/models/m:predict", json.dumps({"instances": ["slow"]}))
    answer = connection.getresponse()
    return answer.status, answer.getheader("Retry-After"), json.load(answer)


def wait_until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_at_the_end_running_batches_are_answered_and_waiting_sentences_refused():
    model = Model()
    served = Served(model, "m", max_batch=1)
    with reserved("127.0.0.1", 0) as listening, ThreadPoolExecutor() as clients:
        server = GracefulServer(served, give_up_seconds=0.5, end_seconds=60)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            wait_until(lambda: served.ready)
            port, threads = listening.getsockname()[1], served._batcher.threads
            answers = [clients.submit(ask, port) for _ in range(threads + 2)]
            wait_until(lambda: model.running == threads and len(served._batcher._queue) == 2)
            server.should_exit = True
            wait_until(lambda: sum(answer.done() for answer in answers) == 2)
        finally:
            model.free.set()
            server.should_exit = True
            thread.join()
        found = sorted((answer.result() for answer in answers), key=lambda answer: answer[0])
    for status, _, content in found[:-2]:
        assert (status, content["predictions"][0]["translation"]) == (200, "slow")
    for status, retry, content in found[-2:]:
        assert (status, retry) == (503, "1")
        assert content == {"error": "the server is stopping: try again later"}
