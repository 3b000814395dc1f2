"""A local server, in place of those that corpora are downloaded from."""

import http.server
import threading

import pytest


class Server(http.server.ThreadingHTTPServer):
    """Serves `files` (path → bytes); half of those in `cut`, and of those in `cut_once` the first time."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.cut, self.cut_once, self.asked = {}, set(), set(), []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        if self.path not in self.server.files:
            self.send_error(404)
            return
        data = self.server.files[self.path]
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        cut = self.path in self.server.cut | self.server.cut_once
        self.server.cut_once.discard(self.path)
        self.wfile.write(data[: len(data) // 2] if cut else data)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)  # before another try
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()
