"""Errors in the user's input: one clear line, without a traceback on the command line."""

import contextlib
import errno
import os
import sys
import unicodedata
from collections.abc import Callable, Iterator

JOINERS = "\u200c\u200d"  # within words of Persian and Hindi


class UserError(ValueError):
    """The user's input cannot be used; the message names the input, the value found and what to do.

    The command line prints it as one line and exits with status 1; in Python it is a `ValueError`.
    """


class WorkerError(UserError):
    """Ends one of several worker processes, immediately: a normal exit would wait for the others."""


@contextlib.contextmanager
def exits_on_errors() -> Iterator[None]:
    """End the process at the block's error, a user's or the system's, with one line; at Ctrl-C without."""
    try:
        yield
    except WorkerError as error:
        sys.stdout.flush()
        print(f"error: {printable(str(error))}", file=sys.stderr, flush=True)
        os._exit(1)
    except UserError as error:
        sys.exit(f"error: {printable(str(error))}")
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        sys.exit(f"error: {printable(one_line(error))}")
    except (MemoryError, OverflowError) as error:
        sys.exit(f"error: a size is too large for this machine: {printable(first_line(error))}")


def printable(text: str) -> str:
    """Return a text in which characters that could steer a terminal are escaped, not spaces or joiners."""
    return "".join(
        one if one.isprintable() or unicodedata.category(one) == "Zs" or one in JOINERS else repr(one)[1:-1]
        for one in text
    )


def one_line(error: OSError) -> str:
    """Return a system error as one line, with the file's name if there is one."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    what = "no disk space left" if full else error.strerror or str(error)
    return f"{what}: {error.filename}" if error.filename else what


def first_line(error: Exception) -> str:
    """Return the first line of an error's message; without one, the name of its class."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def nearest(name: str, known: list[str]) -> str:
    """Return "did you mean …?" with the known names nearest to `name`, or all of them if none is near.

    Args:
        name: what the user typed.
        known: the names that exist.
    """
    import difflib

    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"known: {', '.join(sorted(known))}"


def with_nearest(package: str, attribute: Callable, known: list[str]) -> Callable:
    """Return a package's `__getattr__` that answers an unknown name with the nearest known ones.

    Args:
        package: its name.
        attribute: its `__getattr__` for the known names.
        known: the names.
    """

    def __getattr__(name: str):
        if name not in known:
            raise AttributeError(f"{package} has no {name!r}; {nearest(name, known)}")
        return attribute(name)

    return __getattr__
