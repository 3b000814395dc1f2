"""The models that are in memory: loaded when they are used, unloaded when idle or to make room for others."""

import contextlib
import ctypes
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from kzoo.errors import UserError


class Loadable(Protocol):
    """A model that can leave the memory; `size` is the bytes of its weights there."""

    size: int
    is_loaded: bool

    def load(self): ...

    def unload(self): ...


@dataclass
class Use:
    """How many calls use a model now, and when the last one ended, in seconds of the monotonic clock."""

    running: int = 0
    ended: float = 0.0


class LoadedModels:
    """Loads models when they are used, within a bound.

    To make room for one, models that are not in use are unloaded, first the one used longest ago. If all are
    in use, it waits for them. Threads may call all methods.

    Args:
        bound: int. Maximum bytes of the weights of all models together; `None`: any number.
    """

    def __init__(self, bound: int | None = None):
        self._bound = bound
        self._uses: weakref.WeakKeyDictionary[Loadable, Use] = weakref.WeakKeyDictionary()  # those in memory
        # Whoever waits for room has the turn, so that meanwhile no further call begins, and the others end.
        self._turn, self._changed = threading.Lock(), threading.Condition()
        self._loading = weakref.WeakKeyDictionary()  # a lock for each model

    @contextlib.contextmanager
    def using(self, model: Loadable) -> Iterator[None]:
        """Load a model if needed, and keep it in memory during the block.

        Raises:
            UserError: it is larger than the bound.
            Exception: it cannot be loaded; the next call tries again.
        """
        if self._bound is not None and model.size > self._bound:
            sizes = (f"{size / 2**20:,.1f} MiB" for size in (self._bound, model.size))
            raise UserError("--memory allows {}, but the model alone takes {}: allow more".format(*sizes))
        with self._turn, self._changed:
            self._changed.wait_for(lambda: self._fits(model))
            use = self._uses.setdefault(model, Use())
            use.running += 1
            loading = self._loading.setdefault(model, threading.Lock())
        try:
            with loading:
                if not model.is_loaded:
                    model.load()
            yield
        finally:
            with self._changed:
                use.running, use.ended = use.running - 1, time.monotonic()
                if not (use.running or model.is_loaded):  # it could not be loaded
                    self._uses.pop(model, None)
                self._changed.notify_all()

    def unload_if_idle(self, model: Loadable, seconds: float):
        """Unload a model that has not been in use for some seconds."""
        with self._changed:
            use = self._uses.get(model)
            if use and not use.running and time.monotonic() - use.ended >= seconds:
                self._unload(model)

    def _fits(self, model: Loadable) -> bool:
        """Return whether there is room for a model, after unloading others."""
        if self._bound is None or model in self._uses:
            return True
        idle = sorted((one for one, use in self._uses.items() if not use.running), key=self._ended)
        while sum(one.size for one in self._uses) + model.size > self._bound:
            if not idle:
                return False
            self._unload(idle.pop(0))
        return True

    def _ended(self, model: Loadable) -> float:
        return self._uses[model].ended

    def _unload(self, model: Loadable):
        """Unload a model that is not in use."""
        model.unload()
        if sys.platform == "linux":
            with contextlib.suppress(AttributeError):  # musl has none
                ctypes.CDLL(None).malloc_trim(0)  # glibc would keep the memory
        del self._uses[model]
        self._changed.notify_all()
