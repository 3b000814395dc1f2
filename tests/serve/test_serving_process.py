"""`kzoo serve` as a process on a real socket: clients that are slow, large, gone, or late."""

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import keras
import pytest

from kzoo.errors import UserError
from kzoo.presets import load, pope_tiny
from kzoo.serve.startup import reserved
from kzoo.text import SubwordTokenizer, train_subwords

TEXTS = ["a man walks.", "two dogs run in the snow.", "", "the man sees a dog.", "dogs."]
PREDICT = "/v1/models/tiny:predict"


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    keras.utils.set_random_seed(1)
    tokenizer = SubwordTokenizer(train_subwords([text for text in TEXTS if text] * 5, 40))
    sizes = {"num_layers": 1, "width": 32, "num_heads": 2, "feedforward_dim": 32, "max_length": 16}
    folder = tmp_path_factory.mktemp("presets") / "tiny"
    pope_tiny(tokenizer, **sizes).save_to_preset(folder)
    return folder


@contextmanager
def serving(preset, *options):
    """Give a process that serves the preset, and its port."""
    command = [sys.executable, "-m", "kzoo", "serve", str(preset), "--port", "0", "--beam", "2", *options]
    with subprocess.Popen([*command, "--max-batch", "4"], stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            assert line.startswith("tiny: http://127.0.0.1:"), line
            port = int(re.search(r":(\d+)/", line)[1])
            socket.create_connection(("127.0.0.1", port)).close()  # at once
            wait_until(lambda: ask(port, "GET", "/readyz")[0] == 200)
            yield process, port
        finally:
            process.kill()


def wait_until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def ask(port: int, method: str, path: str, body=None, **options):
    """Return status and content; `None` where nobody listens, or the server ends before it has read."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body, **options)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except ConnectionError:
        return None, None
    finally:
        connection.close()


def predict(port: int) -> list[str]:
    status, content = ask(port, "POST", PREDICT, json.dumps({"inputs": TEXTS}))
    assert status == 200, content
    return json.loads(content)["outputs"]["translation"]


def begun(port: int, length: int, body: bytes = b"") -> socket.socket:
    """Return a connection on which a request has begun: the server waits for its body."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    asked = f"Host: localhost\r\nContent-Length: {length}\r\nExpect: 100-continue"
    head = f"POST {PREDICT} HTTP/1.1\r\n{asked}\r\n\r\n"
    connection.sendall(head.encode())
    assert connection.recv(1000).startswith(b"HTTP/1.1 100")
    connection.sendall(body)
    return connection


def whole(connection: socket.socket) -> bytes:
    """Return what comes until the server closes the connection."""
    with connection, connection.makefile("rb") as file:
        return file.read()


def test_a_server_from_its_start_to_its_end(preset):
    expected = load(preset).translate(TEXTS, beam_size=2)
    body = json.dumps({"instances": TEXTS}).encode()
    with serving(preset, "--engine", "keras") as (process, port):
        slow = begun(port, 100, b"{")
        assert predict(port) == expected

        begun(port, 100, b"{").close()  # a client that goes while it sends
        gone = begun(port, len(body), body)  # and one that does not wait for its answer
        gone.close()
        assert predict(port) == expected

        status, content = ask(port, "GET", "/", headers={"Host": "rebound.example"})
        assert (status, "rebound.example" in content) == (403, True)

        status, content = ask(port, "POST", PREDICT, b"x" * 10_000_000)
        assert status == 413
        assert "8,388,608 bytes" in content

        answer = whole(slow)
        assert answer.startswith(b"HTTP/1.1 408")
        assert b"10 s behind 100 kB/s" in answer
        metrics = ask(port, "GET", "/metrics")[1]
        assert 'kzoo_requests_total{purpose="model",status="408"} 1.0' in metrics
        assert 'kzoo_requests_total{purpose="model",status="413"} 1.0' in metrics
        assert "kzoo_queue_sentences 0.0" in metrics

        late = begun(port, len(body))
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: ask(port, "GET", "/healthz")[0] is None, 10)  # new ones are refused
        late.sendall(body)  # what had begun is answered
        content = whole(late)
        assert content.startswith(b"HTTP/1.1 200")
        found = json.loads(content.partition(b"\r\n\r\n")[2])["predictions"]
        assert [row["translation"] for row in found] == expected
        assert process.wait(30) == 0


def test_a_port_is_free_after_the_end():
    with reserved("127.0.0.1", 0) as loading:
        port = loading.getsockname()[1]
        loading.listen()
        with socket.create_connection(("127.0.0.1", port)):
            loading.accept()[0].close()  # the end that closes first keeps the port for a minute
    with reserved("127.0.0.1", port):
        pass


def test_an_empty_host_is_not_every_address():
    with pytest.raises(UserError, match="--host "), reserved("", 0):
        pass


def test_a_port_in_use_is_said_before_the_model_loads(preset):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "kzoo", "serve", str(preset), "--port", port]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: cannot listen on 127.0.0.1, port {port}: Address already in use")
