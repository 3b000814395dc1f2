"""Dynamic batching: which rows go together, and that each request gets its own results."""

import asyncio
import threading
from types import SimpleNamespace

import pytest

from kzoo.serve.batching import Batcher, Busy
from kzoo.serve.metrics import Metrics


class Model:
    """Doubles numbers; remembers its batches and threads; stands still while `free` is not set."""

    def __init__(self):
        self.batches, self.threads, self.free = [], set(), threading.Event()
        self.free.set()

    def __call__(self, key, rows):
        self.free.wait(5)
        self.batches.append((key, rows))
        self.threads.add(threading.current_thread().name)
        if "bad" in rows:
            raise ValueError("a bad row")
        return [row * 2 for row in rows]


def batches(sizes, threads=1):
    return SimpleNamespace(sizes=lambda key: sizes, slow=lambda key: key == "slow", threads=threads)


def batched(conversation, sizes=(1, 2, 3, 4), max_wait=0.005, most_waiting=100, threads=1):
    """Run a coroutine function of a batcher and its model."""

    async def main():
        model = Model()
        batcher = Batcher(model, batches(sizes, threads), max_wait, most_waiting, Metrics())
        batcher.start()
        try:
            return await conversation(batcher, model)
        finally:
            model.free.set()
            await batcher.stop()

    return asyncio.run(main())


def keyed(*rows, key="k"):
    return [(key, row) for row in rows]


def test_requests_that_come_together_share_batches_and_get_their_own_results():
    async def conversation(batcher, model):
        requests = [batcher.submit(keyed(n, n + 10)) for n in range(3)]
        return await asyncio.gather(*requests), model

    results, model = batched(conversation)
    assert results == [[0, 20], [2, 22], [4, 24]]
    assert model.batches == [("k", [0, 1, 2, 10]), ("k", [11, 12])]
    assert len(model.threads) == 1


def test_keys_are_not_mixed_and_the_oldest_goes_first():
    async def conversation(batcher, model):
        rows = [("b", 1), ("a", 2), ("b", 3), ("a", 4)]
        return await batcher.submit(rows), model

    results, model = batched(conversation)
    assert results == [2, 4, 6, 8]
    assert model.batches == [("b", [1, 3]), ("a", [2, 4])]


def test_requests_take_turns_and_a_new_one_is_next():
    """The first would fill ten batches; the others come while its first runs, the last while theirs do."""

    async def conversation(batcher, model):
        model.free.clear()
        requests = [asyncio.create_task(batcher.submit(keyed(*range(20))))]
        await asyncio.sleep(0.05)  # its first batch has begun
        requests += [asyncio.create_task(batcher.submit(keyed(100 * n, 100 * n + 1))) for n in (1, 2)]
        requests.append(asyncio.create_task(batcher.submit([("other", 300)])))
        await asyncio.sleep(0)
        model.free.set()
        results = await asyncio.gather(*requests)
        assert results == [[2 * n for n in range(20)], [200, 202], [400, 402], [600]]
        return model.batches

    batches = batched(conversation, sizes=[1, 2], max_wait=0)
    assert batches[:4] == [("k", [0, 1]), ("k", [100, 200]), ("other", [300]), ("k", [2, 101])]
    assert batches[4:] == [("k", [201, 3])] + [("k", [n, n + 1]) for n in range(4, 20, 2)]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_slow_batch_leaves_its_threads_to_the_others(threads):
    """While one runs, as many others run as there are threads; a second slow one and a call wait."""
    go_on, running = threading.Event(), []

    def function(key, rows):
        running.append(key)
        if key == "slow":
            assert go_on.wait(10)
        return rows

    async def conversation(batcher, model):
        batcher._function = function
        slow = [asyncio.create_task(batcher.submit(keyed(n, key="slow"))) for n in (1, 2)]
        call = asyncio.create_task(batcher.run(running.append, "call"))
        while not running:
            await asyncio.sleep(0.01)
        if threads > 1:
            assert await asyncio.wait_for(batcher.submit(keyed(3)), 10) == [3]
            assert sorted(running) == ["k", "slow"]
        go_on.set()
        assert await batcher.submit(keyed(4)) == [4]
        await asyncio.gather(*slow, call)
        return running.count("slow"), running.count("call")

    assert batched(conversation, sizes=[1], max_wait=0, threads=threads) == (2, 1)


def test_one_row_does_not_wait_for_ever():
    async def conversation(batcher, model):
        return await asyncio.wait_for(batcher.submit(keyed(1)), 5)

    assert batched(conversation) == [2]


def test_rows_gather_while_the_model_runs():
    async def conversation(batcher, model):
        model.free.clear()
        first = asyncio.create_task(batcher.submit(keyed(0)))
        await asyncio.sleep(0.05)  # its batch has begun
        waiting = [batcher.waiting]
        others = [asyncio.create_task(batcher.submit(keyed(n))) for n in (1, 2, 3)]
        await asyncio.sleep(0)
        waiting.append(batcher.waiting)
        model.free.set()
        await asyncio.gather(first, *others)
        return waiting, batcher._metrics.batches._sum.get(), [rows for _, rows in model.batches]

    assert batched(conversation, max_wait=0) == ([0, 3], 4, [[0], [1, 2, 3]])


@pytest.mark.parametrize(
    ("rows", "batches"),
    [(5, [1, 1, 1, 1, 1]), (6, [6]), (9, [8, 1]), (11, [8, 1, 1, 1]), (12, [12]), (20, [16, 1, 1, 1, 1])],
)
def test_a_batch_is_full_or_nearly(rows, batches):
    async def conversation(batcher, model):
        await batcher.submit(keyed(*range(rows)))
        return [len(batch) for _, batch in model.batches]

    assert batched(conversation, sizes=[1, 8, 16], max_wait=0) == batches


def test_batches_run_in_as_many_threads_as_asked_for():
    async def conversation(batcher, model):
        model.free.clear()
        requests = [asyncio.create_task(batcher.submit(keyed(n))) for n in range(5)]
        await asyncio.sleep(0.05)  # both threads have a batch
        model.free.set()
        return await asyncio.gather(*requests), model

    results, model = batched(conversation, sizes=[1], threads=2)
    assert results == [[0], [2], [4], [6], [8]]
    assert sorted(model.batches) == [("k", [n]) for n in range(5)]
    assert len(model.threads) == 2


def test_several_threads_share_the_waiting_rows():
    """Of eight rows, each of two threads takes three."""

    async def conversation(batcher, model):
        model.free.clear()
        results = asyncio.create_task(batcher.submit(keyed(*range(8))))
        async with asyncio.timeout(5):
            while batcher.waiting != 2:  # until both threads have begun
                await asyncio.sleep(0.001)
        model.free.set()
        return await results, model

    results, model = batched(conversation, sizes=range(1, 17), max_wait=0, threads=2)
    assert results == [0, 2, 4, 6, 8, 10, 12, 14]
    assert sorted(rows for _, rows in model.batches)[:2] == [[0, 1, 2], [3, 4, 5]]


def test_a_bad_row_fails_its_own_request_alone():
    async def conversation(batcher, model):
        requests = [batcher.submit(keyed(1)), batcher.submit(keyed("bad", 5)), batcher.submit(keyed(3))]
        return await asyncio.gather(*requests, return_exceptions=True)

    first, bad, third = batched(conversation)
    assert (first, third) == ([2], [6])
    assert isinstance(bad, ValueError)


def test_a_model_that_forgets_a_row_leaves_nobody_waiting():
    async def conversation(batcher, model):
        batcher._function = lambda key, rows: [0][: len(rows) - 1]
        requests = [asyncio.create_task(batcher.submit(keyed(n))) for n in range(2)]
        return await asyncio.wait_for(asyncio.gather(*requests, return_exceptions=True), 5)

    assert [type(error) for error in batched(conversation)] == [ValueError] * 2


def test_a_client_that_has_gone_is_left_out():
    async def conversation(batcher, model):
        model.free.clear()
        running = asyncio.create_task(batcher.submit(keyed(0)))
        await asyncio.sleep(0.05)
        gone, stays = (asyncio.create_task(batcher.submit(keyed(n))) for n in (1, 2))
        await asyncio.sleep(0)
        gone.cancel()
        running.cancel()  # while its batch runs
        await asyncio.sleep(0)
        model.free.set()
        return await stays, [rows for _, rows in model.batches]

    assert batched(conversation) == ([4], [[0], [2]])


def test_clients_that_have_gone_leave_room_for_others():
    async def conversation(batcher, model):
        model.free.clear()
        running = asyncio.create_task(batcher.submit(keyed(0)))
        await asyncio.sleep(0.05)
        gone = asyncio.create_task(batcher.submit(keyed(1, 2, 3)))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait([gone])
        assert batcher.waiting == 0
        stays = asyncio.create_task(batcher.submit(keyed(4, 5, 6)))
        await asyncio.sleep(0)
        model.free.set()
        return await running, await stays

    assert batched(conversation, most_waiting=3) == ([0], [8, 10, 12])


def test_a_failed_request_takes_its_other_rows_along():
    async def conversation(batcher, model):
        requests = batcher.submit(keyed("bad", 1, 2, 3)), batcher.submit(keyed(4))
        bad, good = await asyncio.gather(*requests, return_exceptions=True)
        return type(bad), good, [rows for _, rows in model.batches]

    bad, good, batches = batched(conversation, sizes=[1])
    assert (bad, good, batches[0]) == (ValueError, [8], ["bad"])
    assert [3] not in batches


def test_a_full_queue_is_busy_and_empties_again():
    async def conversation(batcher, model):
        with pytest.raises(Busy, match="4 more"):
            await batcher.submit(keyed(1, 2, 3, 4))
        calls = [batcher.run(model, "k", [n]) for n in range(4)]
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert results[:3] == [[0], [2], [4]]
        assert isinstance(results[3], Busy)
        return await batcher.submit(keyed(1, 2, 3))

    assert batched(conversation, most_waiting=3) == [2, 4, 6]


def test_large_requests_leave_room_for_small_ones():
    async def conversation(batcher, model):
        model.free.clear()
        large = [asyncio.create_task(batcher.submit(keyed(*range(30)))) for _ in range(3)]
        await asyncio.sleep(0.05)
        small = asyncio.create_task(batcher.submit(keyed(*range(10))))
        await asyncio.sleep(0)
        model.free.set()
        return await asyncio.gather(*large, small, return_exceptions=True)

    first, second, refused, small = batched(conversation, sizes=[1, 30], most_waiting=80)
    assert first == second == [2 * n for n in range(30)]
    assert isinstance(refused, Busy)
    assert small == first[:10]


def test_a_batch_that_fills_up_does_not_wait_longer():
    async def conversation(batcher, model):
        requests = [asyncio.create_task(batcher.submit(keyed(0)))]
        for steps in range(1, 4):  # others come after so many turns of the loop
            for _ in range(steps):
                await asyncio.sleep(0)
            requests.append(asyncio.create_task(batcher.submit(keyed(steps))))
        return await asyncio.wait_for(asyncio.gather(*requests), 20)

    assert batched(conversation, max_wait=60) == [[0], [2], [4], [6]]


def test_a_full_batch_does_not_wait_for_the_oldest_row():
    async def conversation(batcher, model):
        oldest = asyncio.create_task(batcher.submit(keyed(0, key="a")))
        await asyncio.sleep(0)
        results = await asyncio.wait_for(batcher.submit(keyed(1, 2, 3, 4, key="b")), 20)
        oldest.cancel()
        return results

    assert batched(conversation, max_wait=60) == [2, 4, 6, 8]


def test_a_call_takes_room_for_its_rows():
    async def conversation(batcher, model):
        calls = [batcher.run(model, "k", [n] * 3, rows=3) for n in range(2)]
        return await asyncio.gather(*calls, return_exceptions=True)

    done, refused = batched(conversation, most_waiting=5)
    assert done == [0, 0, 0]
    assert isinstance(refused, Busy)


def test_calls_run_one_at_a_time_when_clients_go():
    """The first is left while it runs, the second before: the third waits for the first."""
    begun, go_on = [], threading.Event()

    def call(number):
        begun.append(number)
        assert go_on.wait(5)

    async def conversation(batcher, model):
        calls = []
        for number in range(3):
            calls.append(asyncio.create_task(batcher.run(call, number)))
            await asyncio.sleep(0.05)
        for number in (0, 1):
            calls[number].cancel()
        await asyncio.sleep(0.05)
        assert (begun, batcher.waiting) == ([0], 1)
        go_on.set()
        await calls[2]
        assert calls[0].cancelled()
        assert batcher.waiting == 0

    batched(conversation, threads=3)
    assert begun == [0, 2]


def test_what_still_waits_at_the_end_is_told():
    async def main():
        model = Model()
        batcher = Batcher(model, batches([1]), 0, 10, Metrics())
        batcher.start()
        model.free.clear()
        requests = [asyncio.create_task(batcher.submit(keyed(n))) for n in range(2)]
        await asyncio.sleep(0.05)
        stopping = asyncio.create_task(batcher.stop())
        await asyncio.sleep(0)
        model.free.set()
        await stopping
        return await asyncio.gather(*requests, return_exceptions=True)

    running, waiting = asyncio.run(main())
    assert running == [0]
    assert isinstance(waiting, Busy)


def test_giving_up_refuses_what_waits_and_what_comes_but_finishes_what_runs():
    async def conversation(batcher, model):
        model.free.clear()
        requests = [
            asyncio.create_task(coming)
            for coming in (
                batcher.submit(keyed(0)),
                batcher.submit(keyed(1)),
                batcher.run(model, "k", [2]),
            )
        ]
        await asyncio.sleep(0.05)
        batcher.give_up()
        assert batcher.waiting == 1  # the call, which is told at the loop's next turn
        requests.append(asyncio.create_task(batcher.submit(keyed(4))))
        await asyncio.sleep(0)
        model.free.set()
        return await asyncio.gather(*requests, return_exceptions=True)

    running, *others = batched(conversation, sizes=[1])
    assert running == [0]
    for refused in others:
        assert isinstance(refused, Busy)
        assert "stopping" in str(refused)


def test_other_calls_run_in_the_models_thread():
    async def conversation(batcher, model):
        names = [await batcher.run(lambda: threading.current_thread().name) for _ in range(2)]
        await batcher.submit(keyed(1))
        return {*names, *model.threads}

    assert len(batched(conversation)) == 1
