"""SIGTERM and Ctrl-C where there is nothing to save, also where what a signal handler raises is lost."""

import gc
import os
import signal

import pytest

from kzoo.training.signals import nothing_to_save


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("number", "error", "code", "printed"),
    [
        (signal.SIGTERM, SystemExit, 0, "SIGTERM: stopped where there is nothing to save"),
        (signal.SIGINT, KeyboardInterrupt, None, ""),
    ],
)
def test_a_signal_that_was_lost_ends_the_process_after_the_block(number, error, code, printed, capsys):
    """Python only reports what is raised in a callback of its garbage collector."""

    def callback(phase, info):
        gc.callbacks.remove(callback)
        os.kill(os.getpid(), number)

    earlier, reached = signal.getsignal(number), False
    with pytest.raises(error) as stopped, nothing_to_save():
        gc.callbacks.append(callback)
        gc.collect()
        reached = True
    assert reached
    assert getattr(stopped.value, "code", None) == code
    assert capsys.readouterr().out.strip().partition(";")[0] == printed
    assert signal.getsignal(number) == earlier
