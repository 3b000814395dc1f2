"""A server's Prometheus metrics: requests, sentences, latencies, batches and the queue."""

import time

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    ProcessCollector,
    generate_latest,
)

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.35, 0.5, 0.7, 1, 1.5, 2.5, 5, 10, 20, 30)
SENTENCES = (1, 2, 4, 8, 16, 32, 48, 64)
# Requests are counted by purpose, not by path: clients could invent any number of paths.
PURPOSES = (
    *((start, "model") for start in ("/v1/models", "/translate", "/detect", "/languages")),
    ("/page", "page"),
    *((start, "probe") for start in ("/healthz", "/readyz", "/health")),
)


class Metrics:
    """One server's metrics, in their own registry; of all its models together."""

    def __init__(self, engine: str = "keras"):
        registry = self._registry = CollectorRegistry()
        Info("kzoo_engine", "Translation engine and its compute type.", registry=registry).info(
            {"engine": engine}
        )
        ProcessCollector(registry=registry)  # memory, processor time, open files
        self.requests = Counter(
            "kzoo_requests", "Requests answered.", ("purpose", "status"), registry=registry
        )
        self.seconds = Histogram(
            "kzoo_request_seconds",
            "From a request's first byte to its answer's last, of requests with a status below 400.",
            ("purpose",),
            buckets=SECONDS,
            registry=registry,
        )
        self.sentences = Counter("kzoo_sentences", "Sentences translated or embedded.", registry=registry)
        self.batches = Histogram(
            "kzoo_batch_sentences", "Sentences of a batch.", buckets=SENTENCES, registry=registry
        )
        self.batchers = set()  # of the models that are served; each has a queue
        Gauge(
            "kzoo_queue_sentences", "Sentences that wait, are checked, or are embedded.", registry=registry
        ).set_function(lambda: sum(batcher.waiting for batcher in self.batchers))

    def text(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        return generate_latest(self._registry)


class Counted:
    """ASGI middleware that counts and times requests."""

    def __init__(self, app, metrics: Metrics):
        self.app, self.metrics = app, metrics

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path = scope["path"]
        other = "page" if path == "/" else "other"
        purpose = next((name for start, name in PURPOSES if path.startswith(start)), other)
        begin, status = time.perf_counter(), None

        async def counted_send(message):
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self.app(scope, receive, counted_send)
        except Exception:
            status = status or 500  # Starlette sends it outside this middleware
            raise
        finally:
            if status is not None:  # `None`: the client left before its request was read
                self.metrics.requests.labels(purpose, status).inc()
                if status < 400:  # fast rejections would hide the latency of an overload
                    self.metrics.seconds.labels(purpose).observe(time.perf_counter() - begin)
