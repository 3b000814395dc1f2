"""SIGTERM where there is nothing to save, also where what a signal handler raises is lost."""

import gc
import os
import signal

import pytest

from kzoo.training.nothing_to_save import nothing_to_save


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_that_was_lost_ends_the_process_after_the_block(capsys):
    """Python only reports what is raised in a callback of its garbage collector."""

    def callback(phase, info):
        gc.callbacks.remove(callback)
        os.kill(os.getpid(), signal.SIGTERM)

    reached = False
    with pytest.raises(SystemExit) as stopped, nothing_to_save():
        gc.callbacks.append(callback)
        gc.collect()
        reached = True
    assert reached
    assert stopped.value.code == 0
    assert "SIGTERM: stopped where there is nothing to save" in capsys.readouterr().out
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
