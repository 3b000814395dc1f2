"""The server process: its port, its signals, the number of files that it may open."""

import contextlib
import importlib.util
import os
import signal
import socket
import sys
from collections.abc import Iterator

from kzoo.errors import UserError

MOST_FILES = 2**16


@contextlib.contextmanager
def reserved(host: str, port: int) -> Iterator[socket.socket]:
    """Yield a socket that is bound but does not listen yet, to find a port in use before the model loads.

    Args:
        host: address of this machine; `0.0.0.0` for all of them.
        port: int. 0 for any free port.

    Raises:
        UserError: the address or port is not available, or a required package is missing.
    """
    needed = ("starlette", "uvicorn", "prometheus_client")
    missing = [name for name in needed if not importlib.util.find_spec(name)]
    if missing:
        raise UserError(f"kzoo serve needs {', '.join(missing)}: pip install {' '.join(missing)}")
    if not host:
        raise UserError("--host is empty: give an address, such as 127.0.0.1, or 0.0.0.0 for all")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Nagle's algorithm delays answers by 40 ms. asyncio turns it off only for sockets that name TCP.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as bound:
        if os.name == "posix":  # otherwise, the port is blocked until old connections time out
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((host, port))
        except OSError as error:
            raise UserError(f"cannot listen on {host}, port {port}: {error.strerror}") from None
        yield bound


def check_model_name(name: str):
    """Raise `UserError` for a model's name that cannot be part of a URL."""
    if not name or set(name) & set("/:?#{}"):
        raise UserError(
            f"a model's name (--name) must not be empty or contain one of / : ? # {{ }}, not {name!r}"
        )


def end_on_sigterm():
    """Let SIGTERM end this process with status 0. By default, a container's first process ignores it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))


def most_files() -> int:
    """Raise the number of files that this process may open, if possible, and return it."""
    try:
        import resource
    except ImportError:  # Windows
        return MOST_FILES
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    with contextlib.suppress(OSError, ValueError):  # on macOS, fewer than `hard` are possible
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
