"""The server process: its options' checks, its port, its signals, the number of files that it may open."""

import contextlib
import importlib.util
import os
import re
import signal
import socket
import sys
from collections.abc import Iterator, Sequence

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


def model_names(given: Sequence[str] | None, own: Sequence[str]) -> Sequence[str]:
    """Return the models' names for clients: those given, by default their presets' own.

    Raises:
        UserError: there are more or fewer names than presets, one occurs twice or cannot be part of a URL.
    """
    names = given or own
    if len(names) != len(own):
        raise UserError(f"{len(own)} presets have {len(names)} names: give --name once for each")
    if repeated := next((name for number, name in enumerate(names) if name in names[:number]), None):
        raise UserError(f"two models are named {repeated!r}: give --name once for each preset")
    for name in names:
        check_model_name(name)
    return names


def check_hosts(names: Sequence[str]):
    """Raise `UserError` for a host name that no browser sends."""
    for name in names:
        if not re.fullmatch(r"[\w.-]+", name, re.ASCII):  # browsers send other letters as xn--…
            raise UserError(
                "--allow-host takes a host's name in ASCII, such as translate.example or "
                f"xn--bcher-kva.example, not {name!r}"
            )


def check_origins(origins: Sequence[str]):
    """Raise `UserError` for an origin that no browser sends."""
    for origin in origins:
        if not re.fullmatch(r"https?://[a-z0-9.-]+(:\d+)?|https?://\[[0-9a-f:]+\](:\d+)?", origin):
            raise UserError(
                "--allow-origin takes a site's scheme, name and port, as a browser sends them: "
                f"https://site.example or http://localhost:3000, not {origin!r}"
            )
        if re.fullmatch("https:.*:443|http:.*:80", origin):
            raise UserError(
                f"--allow-origin {origin}: browsers leave the usual port out: {origin.rpartition(':')[0]}"
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
