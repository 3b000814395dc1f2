"""What goes wrong because of what the user gave: one clear line, no traceback on the command line."""

import errno


class UserError(ValueError):
    """The user's input cannot be used; the message names the thing, the value seen and what to do.

    The command line prints it as one line and exits with status 1; in Python it is a `ValueError`.
    """


class WorkerError(UserError):
    """What ends one of several processes: it is left at once, for at its end it would wait for the others."""


def one_line(error: OSError) -> str:
    """Return what the system could not do, and with which file."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    what = "no disk space left" if full else error.strerror or str(error)
    return f"{what}{f': {error.filename}' if error.filename else ''}"


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
