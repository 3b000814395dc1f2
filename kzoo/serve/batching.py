"""Dynamic batching: rows of many requests run through the model together."""

import asyncio
import contextlib
import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

from kzoo.serve.metrics import Metrics

log = logging.getLogger("kzoo.serve")

FEW = 16  # requests of at most this many rows may use the last quarter of the queue
STOPPING = "the server is stopping: try again later"


class Busy(Exception):
    """Too many rows are waiting, or the server is stopping: try again later."""


@dataclass(frozen=True, eq=False, slots=True)
class Waiting:
    """A row in the queue.

    Args:
        key: rows with the same key may share a batch.
        row: what the model reads.
        slow: bool. Whether it waits for the thread of slow batches.
        result: gets the row's result.
        request: gets the results of all rows of the row's request.
        place: int. The row's number in its request.
        turn: int. Rows with a lower turn go first.
        arrived: float. Arrival, in seconds of the monotonic clock.
    """

    key: Hashable
    row: object
    slow: bool
    result: asyncio.Future
    request: asyncio.Future
    place: int
    turn: int
    arrived: float


@dataclass(frozen=True, eq=False, slots=True)
class Call:
    """The key of a row that is another call of the model, not a search. It is a batch of its own."""

    function: Callable
    arguments: tuple

    def __call__(self):
        return self.function(*self.arguments)


class Batcher:
    """A queue of rows, and the threads that run the model.

    All rows of a batch have the same key. Requests take turns: a batch takes each request's first row before
    any second one, so that a large request does not block small ones. A batch starts when a thread is free
    and either the batch is full or its oldest row has waited long enough. The function pads batches to a few
    sizes, so a batch takes enough rows to fill, or nearly fill, one of them. Unless `max_wait` is set, each
    thread takes only its share of the waiting rows, so that no thread is idle. Slow batches and other calls
    run one at a time; with several threads, in an additional thread.

    Args:
        function: called in a thread with a key and a list of rows; returns a result for each row.
        batches: describes batches, like `KerasSearch`. `sizes(key)` are the sizes that they are padded to, in
            ascending order from 1; `slow(key)` is whether they are slow; `threads` is how many run at a time,
            besides slow ones.
        max_wait: float. Maximum seconds that a row waits for others while a thread is free.
        most_waiting: int. Maximum number of waiting rows. The last quarter is reserved for requests of at
            most `FEW` rows.
        metrics: records each batch and the queue.
    """

    def __init__(self, function: Callable, batches, max_wait: float, most_waiting: int, metrics: Metrics):
        self._function, self._batches, self._max_wait = function, batches, max_wait
        self._most_waiting, self._metrics, self.threads = most_waiting, metrics, batches.threads
        self._queue: list[Waiting] = []
        self._preparing = 0  # rows being checked, and rows of other calls
        self._running = 0  # rows in batches
        # Both the event loop and the model's threads change the queue. A thread waits for rows of its lanes:
        # usual (False), slow (True) or both.
        lock = threading.Lock()
        usual = threading.Condition(lock)
        self._arrivals = {False: usual, True: threading.Condition(lock) if self.threads > 1 else usual}
        self._turns = dict.fromkeys(self._arrivals, 0)  # turn of the last row taken from each lane

    def start(self):
        """Start the threads; results go to the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._stopping = self._stopped = False
        self._metrics.batchers.add(self)
        lanes = [(False,)] * self.threads + [(True,)] if self.threads > 1 else [(False, True)]
        self._threads = [
            threading.Thread(target=self._work, args=(lane,), name=f"model_{number}", daemon=True)
            for number, lane in enumerate(lanes)
        ]
        for thread in self._threads:
            thread.start()

    def give_up(self):
        """Reject all waiting and new rows with `Busy`; running batches continue."""
        self._stopping = True
        with self._arrivals[False]:
            refused, self._queue = self._queue, []
        _deliver([(waiting, Busy(STOPPING)) for waiting in refused])

    async def stop(self):
        """Reject waiting rows with `Busy`, and wait for the running batches."""
        self.give_up()
        self._stopped = True
        for arrival in self._arrivals.values():
            with arrival:
                arrival.notify_all()
        for thread in self._threads:
            await asyncio.to_thread(thread.join)
        self._metrics.batchers.discard(self)  # it holds the model

    @property
    def waiting(self) -> int:
        """The number of rows that are waiting, being checked, or in unfinished calls."""
        return sum(not isinstance(one.key, Call) for one in self._queue) + self._preparing

    @contextlib.contextmanager
    def reserved(self, count: int) -> Iterator[None]:
        """Count rows as waiting while the block prepares them.

        Raises:
            Busy: there is no room for them, or the server is stopping.
        """
        self._check_queue(count)
        self._preparing += count
        try:
            yield
        finally:
            self._preparing -= count

    async def submit(self, rows: list[tuple[Hashable, object]]) -> list:
        """Return the results of a request's rows, given as pairs of key and row.

        If a row fails or the caller is cancelled, the remaining rows leave the queue.

        Raises:
            Busy: there is no room for them, or the server is stopping.
        """
        self._check_queue(len(rows))
        return await self._results([(key, row, self._batches.slow(key)) for key, row in rows])

    async def run(self, function: Callable, *args, rows: int = 1, slow: bool = True):
        """Return `function(*args)`, called in a model's thread; it counts as `rows` rows in the queue.

        Raises:
            Busy: there is no room for them, or the server is stopping.
        """
        with self.reserved(rows):
            return (await self._results([(Call(function, args), None, slow)]))[0]

    def _check_queue(self, count: int):
        if self._stopping:
            raise Busy(STOPPING)
        most = self._most_waiting if count <= FEW else self._most_waiting * 3 // 4
        if self.waiting + count > most:
            raise Busy(f"the queue has no room for {count:,} more now: try again later")

    async def _results(self, rows: list[tuple[Hashable, object, bool]]) -> list:
        """Return the results of rows, given with their keys and whether they are slow."""
        now, results = time.monotonic(), [self._loop.create_future() for _ in rows]
        request = asyncio.gather(*results)
        with self._arrivals[False]:
            self._queue += [
                Waiting(key, row, slow, result, request, place, self._turns[slow] + 1 + place, now)
                for place, ((key, row, slow), result) in enumerate(zip(rows, results, strict=True))
            ]
            self._queue.sort(key=lambda one: (one.turn, one.place))
            for slow, count in Counter(slow for _, _, slow in rows).items():
                self._arrivals[slow].notify(count)
        try:
            return await request
        except BaseException:  # a row failed, or the client left
            self._leave(request)
            raise

    def _work(self, lanes: tuple[bool, ...]):
        """Run the lanes' batches until the batcher stops."""
        while batch := self._next_batch(lanes):
            if not isinstance(batch[0].key, Call):
                self._metrics.batches.observe(len(batch))
            results = self._computed(batch)
            with self._arrivals[False]:
                self._running -= len(batch)
            self._loop.call_soon_threadsafe(_deliver, results)

    def _next_batch(self, lanes: tuple[bool, ...]) -> list[Waiting]:
        """Return the lanes' next batch, once it may start; an empty one when the batcher stops."""
        arrival = self._arrivals[lanes[0]]
        with arrival:
            while not self._stopped:
                left = None  # seconds to wait; `None`: until a row arrives
                mine = [waiting for waiting in self._queue if waiting.slow in lanes]
                if mine:
                    left = min(waiting.arrived for waiting in mine) + self._max_wait - time.monotonic()
                    counts = Counter(waiting.key for waiting in mine)
                    full = (key for key, count in counts.items() if count >= self._sizes_of(key)[-1])
                    key = mine[0].key if left <= 0 else next(full, None)
                    if key is not None:
                        return self._take(key, counts[key], lanes)
                arrival.wait(left)
        return []

    def _take(self, key: Hashable, count: int, lanes: tuple[bool, ...]) -> list[Waiting]:
        """Remove a batch from the queue: the first of a key's `count` waiting rows."""
        size = self._size(self._share(count, lanes), self._sizes_of(key))
        batch, others = [], []
        for waiting in self._queue:
            mine = waiting.key == key and len(batch) < size
            (batch if mine else others).append(waiting)
        self._queue = others
        for lane in lanes:
            self._turns[lane] = max(self._turns[lane], batch[-1].turn)
        self._running += len(batch)
        return batch

    def _share(self, count: int, lanes: tuple[bool, ...]) -> int:
        """Return how many of a key's `count` waiting rows a thread may take."""
        if True in lanes or self._max_wait:  # the only thread of a lane, or the user wants large batches
            return count
        # With CTranslate2 and 8 clients, one share more than threads gave the lowest p99 latency.
        return min(count, math.ceil((count + self._running) / (self.threads + 1)))

    def _sizes_of(self, key: Hashable) -> Sequence[int]:
        return (1,) if isinstance(key, Call) else self._batches.sizes(key)

    def _size(self, count: int, sizes: Sequence[int]) -> int:
        """Return how many of `count` waiting rows go into a batch."""
        # On a CPU, a padding row costs as much as any other, but a row in a large batch costs a third of
        # a row alone. So a batch is padded if it is at least three quarters full.
        nearly = [size for size in sizes if count < size <= count * 4 / 3]
        return count if nearly else max(size for size in sizes if size <= count)

    def _computed(self, batch: list[Waiting]) -> list[tuple[Waiting, object]]:
        """Return the rows with their results. If the batch fails, try each request alone."""
        key = batch[0].key
        try:
            if isinstance(key, Call):
                return [(batch[0], key())]
            results = self._function(key, [waiting.row for waiting in batch])
            return list(zip(batch, results, strict=True))
        except Exception as error:
            requests = {}
            for waiting in batch:
                requests.setdefault(waiting.request, []).append(waiting)
            if len(requests) > 1:
                return [pair for single in requests.values() for pair in self._computed(single)]
            log.warning("a batch of %d failed", len(batch), exc_info=error)
            self._leave(batch[0].request)
            return [(waiting, error) for waiting in batch]

    def _leave(self, request: asyncio.Future):
        """Remove a request's rows from the queue."""
        with self._arrivals[False]:
            self._queue = [waiting for waiting in self._queue if waiting.request is not request]


def _deliver(results: list[tuple[Waiting, object]]):
    for waiting, result in results:
        if waiting.result.done():  # cancelled, because the client left
            continue
        if isinstance(result, Exception):
            waiting.result.set_exception(result)
        else:
            waiting.result.set_result(result)
