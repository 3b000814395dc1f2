"""Which models are in memory: within the bound, loaded once, and never unloaded while they are in use."""

import gc
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from message_of import message_of

from kzoo.engine.loaded_models import LoadedModels


class Model:
    """Counts its loads; says whether it is unloaded while it is used."""

    def __init__(self, size=1, failures=0):
        self.size, self.failures, self.loads, self.is_loaded, self.users = size, failures, 0, False, 0

    def load(self):
        assert not self.is_loaded
        time.sleep(0.001)  # another thread may come meanwhile
        if self.failures:
            self.failures -= 1
            raise RuntimeError("no memory")
        self.loads, self.is_loaded = self.loads + 1, True

    def unload(self):
        assert not self.users
        self.is_loaded = False


def use(loaded, *models):
    for model in models:
        with loaded.using(model):
            assert model.is_loaded


def test_the_one_used_longest_ago_makes_room():
    loaded, (a, b, c) = LoadedModels(2), (Model() for _ in range(3))
    use(loaded, a, b, a, c)
    assert [one.is_loaded for one in (a, b, c)] == [True, False, True]
    large = Model(2)
    use(loaded, large)
    assert [one.is_loaded for one in (a, b, c, large)] == [False, False, False, True]


def test_models_are_loaded_once_and_stay_without_a_bound():
    loaded, models = LoadedModels(), [Model(10**12) for _ in range(5)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: use(loaded, *models), range(16)))
    assert [one.loads for one in models] == [1] * 5
    loaded.unload_if_idle(models[0], 60)
    assert models[0].is_loaded
    loaded.unload_if_idle(models[0], 0)
    loaded.unload_if_idle(models[0], 0)
    assert [one.is_loaded for one in models] == [False, *[True] * 4]


def test_a_model_in_use_stays_and_others_wait_for_it():
    loaded, used, other = LoadedModels(1), Model(), Model()
    with ThreadPoolExecutor(2) as threads:
        with loaded.using(used):
            waiting = threads.submit(use, loaded, other)
            loaded.unload_if_idle(used, 0)
            assert used.is_loaded and not other.is_loaded
        waiting.result(60)
    assert other.is_loaded and not used.is_loaded


def test_a_model_that_cannot_be_loaded_takes_no_room_and_is_tried_again():
    loaded, broken, other = LoadedModels(1), Model(failures=2), Model()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no memory"):
            use(loaded, broken)
        use(loaded, other)
    assert other.is_loaded and not broken.is_loaded
    use(loaded, broken)
    assert broken.is_loaded and not other.is_loaded


def test_a_model_that_nobody_has_any_longer_takes_no_room():
    loaded = LoadedModels(1)
    use(loaded, Model())
    gc.collect()
    kept = Model()
    use(loaded, kept)
    assert kept.is_loaded


def test_a_model_larger_than_the_bound_is_refused():
    assert "--memory" in message_of(use, LoadedModels(1), Model(2))


def test_many_threads_and_models():
    bound, models = 5, [Model(size) for size in (1, 1, 2, 3, 4, 5)]
    loaded, lock, ended = LoadedModels(bound), threading.Lock(), threading.Event()

    def work(seed):
        draw = random.Random(seed)
        for _ in range(50):
            model = draw.choice(models)
            with loaded.using(model):
                with lock:
                    model.users += 1
                    assert sum(one.size for one in models if one.is_loaded) <= bound
                assert model.is_loaded
                with lock:
                    model.users -= 1

    def idle():
        while not ended.is_set():
            for model in models:
                loaded.unload_if_idle(model, 0)

    watching = threading.Thread(target=idle)
    watching.start()
    with ThreadPoolExecutor(6) as threads:
        list(threads.map(work, range(6)))
    ended.set()
    watching.join()
