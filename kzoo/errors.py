"""Errors in the user's input, which the command line prints as one line without a traceback."""

import contextlib
import errno
import os
import re
import sys
import unicodedata
from collections.abc import Iterator

JOINERS = "\u200c\u200d"  # occur within words of Persian and Hindi


class UserError(ValueError):
    """The user's input cannot be used. The message names the input, its value and what to do.

    The command line prints the message as one line and exits with status 1. In Python it is a `ValueError`.
    """


class WorkerError(UserError):
    """Ends this worker process at once. A normal exit would wait for the other workers."""


@contextlib.contextmanager
def exits_on_errors() -> Iterator[None]:
    """Exit with a one-line message on a user or system error in the block, and silently on Ctrl-C."""
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
    except Exception as error:
        # Out-of-memory errors have a different class in each backend.
        too_large = isinstance(error, MemoryError | OverflowError)
        if not (too_large or re.search("RESOURCE_EXHAUSTED|OOM when allocating", str(error))):
            raise
        sys.exit(f"error: a size is too large for this machine: {printable(first_line(error))}")


def printable(text: str) -> str:
    """Return a text, escaping characters that could control a terminal."""
    return "".join(
        c if c.isprintable() or unicodedata.category(c) == "Zs" or c in JOINERS else repr(c)[1:-1]
        for c in text
    )


def one_line(error: OSError) -> str:
    """Return a system error as one line, with the name of its file."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    what = "no disk space left" if full else error.strerror or str(error)
    return f"{what}: {error.filename}" if error.filename else what


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, or its class name if it has no message."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def unreadable(path: str | os.PathLike, error: Exception) -> UserError:
    """Return the error for a file that cannot be read, or is damaged."""
    if getattr(error, "errno", None) is not None:
        return UserError(f"{path}: cannot be read ({error.strerror})")
    return UserError(f"{path}: is damaged, or not what its name says ({first_line(error)})")


def wrong_value(values: dict, error: Exception) -> str:
    """Return what is wrong with a value of a table, from msgspec's error.

    Such as "epochs is 'x': expected `int`", from "Expected `int`, got `str` - at `$.epochs`".
    """
    reason, _, place = str(error).partition(" - at `$.")
    reason = reason.split(", got ")[0].replace("`object`", "`table`").replace("array", "list")
    reason = reason[0].lower() + reason[1:]
    name = re.split(r"[.`\[]", place)[0]
    return f"{name} is {values[name]!r:.80}: {reason}" if name else reason


def nearest(name: str, known: list[str]) -> str:
    """Return "did you mean …?" with the closest known names, or all known names if none is close."""
    import difflib

    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"known: {', '.join(sorted(known))}"
