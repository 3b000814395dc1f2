"""Keeps pages of other sites, open in the browser of somebody who can reach the server, from using it."""

import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

from kzoo.serve.refusal import refuse


class RefuseOtherPages:
    """ASGI middleware that answers 403 to what browsers send for a page of another site.

    Browsers send simple requests without asking the server first, even to servers on the user's own machine,
    and say so, to HTTPS and the machine itself, in a header that pages cannot change. Links are followed:
    answers to GET change nothing. A page whose own name is made to lead to this server (DNS rebinding) sends
    that name as Host: it is refused where the names are known.

    Args:
        app: the application.
        hosts: names by which clients may call the server, beside those of the machine itself (`localhost`,
            127.0.0.1, `[::1]`); another site's Origin is then refused, too. `None`: any.
    """

    def __init__(self, app, hosts: Collection[str] | None = None):
        self.app = app
        self._hosts = None if hosts is None else {host_name(host) for host in hosts}

    async def __call__(self, scope, receive, send):
        reason = self._reason(scope["method"], dict(scope["headers"])) if scope["type"] == "http" else None
        if reason is None:
            await self.app(scope, receive, send)
        else:
            await refuse(reason, 403, scope, receive, send)

    def _reason(self, method: str, headers: dict[bytes, bytes]) -> str | None:
        """Return why a request is refused."""
        host, origin = (headers.get(key, b"").decode("latin-1") for key in (b"host", b"origin"))
        if self._hosts is not None:
            if host and not is_loopback(name := host_name(host)) and name not in self._hosts:
                return f"Host {host[:80]!r} is not this server's: --allow-host NAME lets a proxy's name in"
            site = origin.partition("://")[2]
            if origin and site != host and host_name(site) not in self._hosts:
                return f"a page of another site asks: Origin {origin[:80]!r}, Host {host[:80]!r}"
        if method not in ("GET", "HEAD") and headers.get(b"sec-fetch-site") == b"cross-site":
            return "a page of another site asks: only this server's own page may"
        return None


def host_name(host: str) -> str:
    """Return the name in a Host header, without port; `""` where there is none."""
    try:
        return (urlsplit(f"//{host}").hostname or "").removesuffix(".")
    except ValueError:
        return ""


def is_loopback(name: str) -> bool:
    """Return whether a host's name or address is of the machine itself."""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")
