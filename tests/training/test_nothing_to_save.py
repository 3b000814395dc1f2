"""SIGTERM where there is nothing to save, also where what a signal handler raises is lost."""

import gc
import os
import signal
import time

import pytest

from kzoo.training import nothing_to_save


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_that_was_lost_comes_again(monkeypatch, capsys):
    """Python only reports what is raised in a callback of its garbage collector."""

    def callback(phase, info):
        gc.callbacks.remove(callback)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(nothing_to_save, "AGAIN", 0.05)
    with pytest.raises(SystemExit) as stopped, nothing_to_save.nothing_to_save():
        gc.callbacks.append(callback)
        gc.collect()
        time.sleep(30)
    assert stopped.value.code == 0
    assert "SIGTERM: stopped where there is nothing to save" in capsys.readouterr().out
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGALRM)] == [signal.SIG_DFL] * 2
