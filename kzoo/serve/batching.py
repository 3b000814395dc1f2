"""Dynamic batching: rows of many requests go through the model together, and results back to each."""

import asyncio
import contextlib
import functools
import logging
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from kzoo.serve.metrics import Metrics

log = logging.getLogger("kzoo.serve")

LANES = (False, True)  # the usual batches and checks, and the slow ones
FEW = 16  # rows of a request, for which the last quarter of the queue is kept
STOPPING = "the server is stopping: try again later"


class Busy(Exception):
    """Too many rows are waiting, or the server is stopping: try again later."""


@dataclass(frozen=True)
class Waiting:
    """A waiting row: which batches it may join, which request it is from, and where its result goes.

    Args:
        place: int. Its number among the request's rows.
        turn: int. Rows with a lower one go first.
    """

    key: Hashable
    row: object
    request: object
    place: int
    turn: int
    arrived: float
    result: asyncio.Future = field(default_factory=asyncio.Future)


@dataclass(frozen=True, eq=False)
class Call:
    """The key of a row that is any other call of the model; a batch by itself."""

    function: Callable
    args: tuple

    def __call__(self, rows: list) -> list:
        """Return the call's result as the one row's."""
        return [self.function(*self.args)]


class Batcher:
    """A queue of rows, and the threads that the model runs in.

    Rows of one key go into batches. Requests take turns: a batch takes the first waiting row of each before
    the second of any, so that a request with many rows does not hold up the others. While the model runs,
    rows gather; when a thread is free, a batch starts as soon as one is full or the oldest row has waited
    long enough. The function pads batches to a few sizes: a batch takes as many rows as fill one of them, or
    nearly. Slow batches, and other calls, run one at a time: in a thread of their own, which no other batch
    waits for, if there are several.

    Args:
        function: called in a thread with a key and a list of rows; returns a result for each row.
        sizes: function from a key to the sizes that its batches are padded to, ascending; the first is 1, the
            last the maximum.
        max_wait: float. Maximum seconds that a row waits for others while a thread is free.
        most_waiting: int. Maximum number of waiting rows; a request with more than there is room for is
            `Busy`. The last quarter is for requests of at most `FEW` rows, which large ones would crowd out.
        metrics: records each batch and the queue.
        threads: int. Number of batches run at a time, without slow ones.
        slow: function from a key to whether its batches are slow.
    """

    def __init__(
        self,
        function: Callable,
        sizes: Callable[[Hashable], Sequence[int]],
        max_wait: float,
        most_waiting: int,
        metrics: Metrics,
        threads: int = 1,
        slow: Callable[[Hashable], bool] = lambda key: False,
    ):
        self._function, self._sizes, self._max_wait = function, sizes, max_wait
        self._most_waiting, self._metrics, self.threads = most_waiting, metrics, threads
        self._slow = slow
        self._queue: list[Waiting] = []
        self._turns = dict.fromkeys(LANES, 0)  # of the last row that went into a batch
        self._elsewhere = 0  # rows that wait outside the queue
        self._working = set()

    def start(self):
        """Begin to form batches, in the running event loop."""
        self._stopping = False
        self._arrivals = {slow: asyncio.Event() for slow in LANES}
        self._free = {slow: asyncio.Semaphore(1 if slow else self.threads) for slow in LANES}
        usual = ThreadPoolExecutor(self.threads, "model")
        alone = ThreadPoolExecutor(1, "model") if self.threads > 1 else usual
        self._model_threads = {False: usual, True: alone}
        self._check_threads = {large: ThreadPoolExecutor(1, "checks") for large in LANES}
        self._forming = [asyncio.create_task(self._form_batches(slow)) for slow in LANES]

    def give_up(self):
        """Refuse the rows that wait, and all that come, with `Busy`; running batches are finished."""
        self._stopping = True
        self._refuse(self._queue)
        self._queue.clear()
        self._count_waiting()

    async def stop(self):
        """Wait for the running batches; rows still waiting are `Busy`."""
        self.give_up()
        for forming in self._forming:
            forming.cancel()
        await asyncio.gather(*self._forming, return_exceptions=True)
        await asyncio.gather(*self._working)
        for threads in (*self._model_threads.values(), *self._check_threads.values()):
            await asyncio.to_thread(threads.shutdown, cancel_futures=True)

    @contextlib.contextmanager
    def room(self, count: int) -> Iterator[None]:
        """Count rows that are being prepared among those that wait.

        Raises:
            Busy: there is no room for them, or the server is stopping.
        """
        self._check_room(count)
        self._elsewhere += count
        self._count_waiting()
        try:
            yield
        finally:
            self._elsewhere -= count
            self._count_waiting()

    async def submit(self, rows: list[tuple[Hashable, object]]) -> list:
        """Return the result of each of a request's rows, given as keys and rows.

        When one fails, or the caller is cancelled, the others leave the queue.

        Raises:
            Busy: there is no room for them, or the server is stopping.
        """
        self._check_room(len(rows))
        return await self._results(rows)

    async def _results(self, rows: list[tuple[Hashable, object]]) -> list:
        request, now = object(), asyncio.get_running_loop().time()
        waiting = [
            Waiting(key, row, request, place, self._turns[self._is_slow(key)] + place, now)
            for place, (key, row) in enumerate(rows, 1)
        ]
        self._queue.extend(waiting)
        self._queue.sort(key=lambda one: (one.turn, one.place))
        self._count_waiting()
        for arrival in self._arrivals.values():
            arrival.set()
        try:
            return await asyncio.gather(*(one.result for one in waiting))
        except BaseException:
            for one in waiting:
                one.result.cancel()
            self._queue = [one for one in self._queue if one.request is not request]
            self._count_waiting()
            raise

    async def run(self, function: Callable, *args, rows: int = 1):
        """Return `function(*args)`, which takes `rows` rows, called in a model's thread as a slow batch.

        Raises:
            Busy: there is no room for them, or the server is stopping.
        """
        with self.room(rows):
            (result,) = await self._results([(Call(function, args), None)])
            return result

    async def in_model_thread(self, function: Callable, *args):
        """Return `function(*args)`, called in a model's thread, however full the queue is: for the server."""
        return await asyncio.get_running_loop().run_in_executor(self._model_threads[False], function, *args)

    async def beside(self, function: Callable, *args, large: bool = False):
        """Return `function(*args)`, called in a thread other than the model's: for checking requests.

        What is large is done one at a time, in a thread of its own: small requests do not wait for it.
        """
        return await asyncio.get_running_loop().run_in_executor(self._check_threads[large], function, *args)

    def _check_room(self, count: int):
        if self._stopping:
            raise Busy(STOPPING)
        most = self._most_waiting if count <= FEW else self._most_waiting * 3 // 4
        if self._waiting() + count > most:
            raise Busy(f"the queue has no room for {count:,} more now: try again later")

    def _waiting(self) -> int:
        # The rows of calls are counted elsewhere, until the calls are done.
        return sum(not isinstance(one.key, Call) for one in self._queue) + self._elsewhere

    def _count_waiting(self):
        self._metrics.queue.set(self._waiting())

    def _sizes_of(self, key: Hashable) -> Sequence[int]:
        return (1,) if isinstance(key, Call) else self._sizes(key)

    def _is_slow(self, key: Hashable) -> bool:
        return isinstance(key, Call) or self._slow(key)

    async def _form_batches(self, slow: bool):
        while True:
            await self._free[slow].acquire()
            batch = self._take(await self._next_key(slow), slow)
            work = asyncio.create_task(self._work(batch, slow))
            self._working.add(work)
            work.add_done_callback(self._working.discard)

    async def _next_key(self, slow: bool) -> Hashable:
        """Wait until the first row has waited long enough, or a key's rows fill a batch; return the key."""
        loop = asyncio.get_running_loop()
        while True:
            self._arrivals[slow].clear()  # before counting, so that later arrivals are noticed
            left = None  # without rows, however long it takes
            mine = [waiting for waiting in self._queue if self._is_slow(waiting.key) == slow]
            if mine:
                left = min(waiting.arrived for waiting in mine) + self._max_wait - loop.time()
                if left <= 0:
                    return mine[0].key
                counts = Counter(waiting.key for waiting in mine)
                full = [key for key, count in counts.items() if count >= self._sizes_of(key)[-1]]
                if full:
                    return full[0]
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._arrivals[slow].wait()

    def _take(self, key: Hashable, slow: bool) -> list[Waiting]:
        """Remove a key's first rows from the queue."""
        size = self._size(sum(waiting.key == key for waiting in self._queue), self._sizes_of(key))
        batch, others = [], []
        for waiting in self._queue:
            mine = waiting.key == key and len(batch) < size
            (batch if mine else others).append(waiting)
        self._queue = others
        self._turns[slow] = max(self._turns[slow], batch[-1].turn)
        self._count_waiting()
        return batch

    def _size(self, count: int, sizes: Sequence[int]) -> int:
        """Return how many of `count` rows make a batch."""
        # On a CPU a padding row costs as much as any other, and a row in a large batch a third of what it
        # costs alone: a size is worth padding to if three quarters of its rows are there.
        nearly = [size for size in sizes if count < size <= count * 4 / 3]
        return count if nearly else max(size for size in sizes if size <= count)

    async def _work(self, batch: list[Waiting], slow: bool):
        if not isinstance(batch[0].key, Call):
            self._metrics.batches.observe(len(batch))
        try:
            await self._answer(batch, self._model_threads[slow])
        finally:
            self._free[slow].release()
            self._refuse(batch)

    async def _answer(self, batch: list[Waiting], threads: ThreadPoolExecutor):
        """Give each row of a batch its result. If the batch fails, each request is tried alone."""
        key, rows = batch[0].key, [waiting.row for waiting in batch]
        function = key if isinstance(key, Call) else functools.partial(self._function, key)
        try:
            results = await asyncio.get_running_loop().run_in_executor(threads, function, rows)
        except Exception as error:
            requests = {waiting.request: [] for waiting in batch}
            if len(requests) > 1:
                for waiting in batch:
                    requests[waiting.request].append(waiting)
                for alone in requests.values():
                    await self._answer(alone, threads)
                return
            log.warning("a batch of %d failed", len(batch), exc_info=error)
            results = [error] * len(batch)
        for waiting, result in zip(batch, results, strict=True):
            if waiting.result.done():  # cancelled: its client has gone
                continue
            if isinstance(result, Exception):
                waiting.result.set_exception(result)
            else:
                waiting.result.set_result(result)

    def _refuse(self, rows):
        """Tell the clients whose rows got no result that the server is stopping."""
        for waiting in rows:
            if not waiting.result.done():
                waiting.result.set_exception(Busy(STOPPING))
