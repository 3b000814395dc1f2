"""The server process: its port, reserved before the model loads; signals; the number of open files."""

import contextlib
import importlib.util
import signal
import socket
import sys
from collections.abc import Iterator

from kzoo.errors import UserError

MOST_FILES = 2**16


@contextlib.contextmanager
def reserved(host: str, port: int) -> Iterator[socket.socket]:
    """Yield a socket that is bound but not listening yet, so that a port in use is reported at once.

    Until it listens, clients are refused, and so are other servers that would take the port.

    Args:
        host: address of this machine, `0.0.0.0` for all.
        port: int. 0: any free port.

    Raises:
        UserError: the address or port is not available, or a package that serving needs is missing.
    """
    needed = ("starlette", "uvicorn", "prometheus_client")
    missing = [name for name in needed if not importlib.util.find_spec(name)]
    if missing:
        raise UserError(f"kzoo serve needs {', '.join(missing)}: pip install 'kzoo[serve]'")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns off Nagle's algorithm, which delays answers by 40 ms, only on sockets that say TCP.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as bound:
        try:
            _bind(bound, (host, port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UserError(f"cannot listen on {host}, port {port}: {reason}") from None
        yield bound


def _bind(bound: socket.socket, address: tuple[str, int]):
    # With SO_REUSEADDR, two servers that load their models can bind the same port, and the slower one fails
    # when it listens; without, a server cannot start again for a minute after connections on its port.
    try:
        bound.bind(address)
    except OSError:
        allow_reuse(bound)
        bound.bind(address)


def allow_reuse(bound: socket.socket):
    """Let a later server take the port while this one's connections are still timing out."""
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)


def end_on_sigterm():
    """Let SIGTERM end this process with status 0, even as the first of a container, which would ignore it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))


def most_files() -> int:
    """Return how many files this process may open, after raising the number where that is allowed."""
    try:
        import resource
    except ImportError:  # Windows
        return MOST_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return wanted
    return MOST_FILES if soft == resource.RLIM_INFINITY else soft
