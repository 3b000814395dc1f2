"""The process that serves: a socket, uvicorn, and an end that leaves nobody without an answer."""

import contextlib
import importlib.util
import signal
import socket
import sys
from collections.abc import Iterator

from kzoo.errors import UserError

# Longer than the slowest request, shorter than the 30 s after which Kubernetes kills.
GRACE_SECONDS = 25


@contextlib.contextmanager
def reserved(host: str, port: int) -> Iterator[socket.socket]:
    """Give a socket that is bound but does not listen yet, so that a port in use is said at once.

    Args:
        host: address of this machine, `0.0.0.0` for all.
        port: int. 0: any that is free.

    Raises:
        UserError: it cannot be had.
    """
    check_installed()
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Only on sockets that say TCP does asyncio turn Nagle's algorithm off, which delays answers by 40 ms.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((host, port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UserError(f"cannot listen at {host}, port {port}: {reason}") from None
        yield bound


def serve(served, listening: socket.socket):
    """Serve until SIGTERM or Ctrl-C; what was asked before that is answered.

    Args:
        served: a `Served`.
        listening: what `reserved` gave.
    """
    import uvicorn

    from kzoo.serve.app import create_app

    # uvicorn, once it has ended well, raises the signal that ended it again.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    config = uvicorn.Config(
        create_app(served), log_level="warning", access_log=False, timeout_graceful_shutdown=GRACE_SECONDS
    )
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[listening])


def check_installed():
    """Refuse to go on without the packages that serving needs.

    Raises:
        UserError: one is missing.
    """
    missing = [
        name for name in ("fastapi", "uvicorn", "prometheus_client") if not importlib.util.find_spec(name)
    ]
    if missing:
        raise UserError(f"serving needs {', '.join(missing)}: pip install -e '.[serve]'")
