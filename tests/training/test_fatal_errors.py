"""What is passed on of a process's errors, and what JAX's last words become."""

import io
import subprocess
import sys

from kzoo.training import fatal_errors
from kzoo.training.fatal_errors import LOST_A_WORKER, pass_on

JAX = b"F1122 client.h:80] Terminating process because the JAX distributed service detected fatal errors. \n"


def passed_on(lines: list[bytes]) -> str:
    written = io.BytesIO()
    pass_on(lines, written)
    return written.getvalue().decode()


def test_other_errors_are_passed_on_as_they_are():
    lines = [b"W1122 a warning\n", b"  \xff no text\n", b"no end"]
    written = io.BytesIO()
    pass_on(lines, written)
    assert written.getvalue() == b"".join(lines)


def test_jax_s_last_words_and_its_stack_become_one_line():
    stack = [b"*** Check failure stack trace: ***\n", b"    @     0x7f85a4c40634  absl::\n"]
    assert passed_on([b"before\n", JAX, *stack]) == f"before\nerror: {LOST_A_WORKER}\n"


def test_python_s_own_errors_pass_nobody_and_the_rest_the_reader():
    script = (
        "import os, sys\n"
        "from kzoo.training.fatal_errors import reworded_fatal_errors\n"
        "with reworded_fatal_errors():\n"
        f"    os.write(2, {JAX!r})\n"
        "    os.write(2, b'a stack')\n"
        "    print('said at once', file=sys.stderr)\n"
        "    os.abort()\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert ended.returncode != 0
    assert sorted(ended.stderr.splitlines()) == [f"error: {LOST_A_WORKER}", "said at once"]


def test_after_the_run_errors_are_written_as_before():
    script = (
        "import os, sys\n"
        "from kzoo.training.fatal_errors import reworded_fatal_errors\n"
        "before = sys.stderr\n"
        "with reworded_fatal_errors():\n"
        "    os.write(2, b'inside\\n')\n"
        "assert sys.stderr is before\n"
        f"os.write(2, {JAX!r})\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, b"inside\n" + JAX)


def test_the_reader_needs_nothing_but_python():
    ended = subprocess.run(
        [sys.executable, "-I", "-S", fatal_errors.__file__], input=JAX, capture_output=True, timeout=60
    )
    assert ended.stderr.decode() == f"error: {LOST_A_WORKER}\n"
