"""Keys that clients must send: read from a file of their SHA-256, compared in constant time."""

import hashlib
import hmac
import os
import re
from collections.abc import Sequence
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException

from kzoo.errors import UserError
from kzoo.serve.bodies import CHALLENGE, refuse

LINE = re.compile(r"([0-9a-f]{64})(\s.*)?", re.I)
# Without a key: what probes and Prometheus ask, and what LibreTranslate answers anyone.
OPEN = ("/healthz", "/readyz", "/health", "/metrics", "/languages", "/frontend/settings")
# These may have the key in their body, which is not read yet.
IN_BODY = ("/translate", "/translate_file", "/detect")
DOWNLOADS = "/download_file/"  # nobody can guess the rest of such an address


class Keys:
    """The keys that a server accepts.

    Args:
        hashes: the SHA-256 of each key, 32 bytes.
    """

    def __init__(self, hashes: Sequence[bytes]):
        self._hashes = list(hashes)

    @classmethod
    def read(cls, path: str | os.PathLike) -> "Keys":
        """Return the keys of a file.

        A line has the SHA-256 of a key in hexadecimal, as `printf %s KEY | sha256sum` writes it, then perhaps
        a space and a note. Empty lines, and those that begin with `#`, are left out.

        Raises:
            UserError: the file cannot be read, has another line, or no key.
        """
        try:
            with open(path, encoding="utf-8") as file:
                lines = [line.strip() for line in file]
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{path} cannot be read: {getattr(error, 'strerror', 'not UTF-8')}") from None
        hashes = []
        for number, line in enumerate(lines, 1):
            if not line or line.startswith("#"):
                continue
            if not (found := LINE.fullmatch(line)):  # the line may be a key: it is not shown
                raise UserError(
                    f"{path}, line {number}: not the SHA-256 of a key, 64 hexadecimal digits: "
                    "printf %s KEY | sha256sum writes it"
                )
            hashes.append(bytes.fromhex(found[1]))
        if not hashes:
            raise UserError(f"{path} has no key")
        return cls(hashes)

    def check(self, key: str | None):
        """Raise `HTTPException` (401) for a missing or a wrong key."""
        if not key:
            raise HTTPException(401, "a key is needed: Authorization: Bearer KEY, or api_key", CHALLENGE)
        given = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
        # All are compared, so that the time does not tell which one is near.
        if not sum(hmac.compare_digest(given, known) for known in self._hashes):
            raise HTTPException(401, "Invalid API key", CHALLENGE)


def sent_key(scope) -> str | None:
    """Return the key in a request's Authorization header or in its address."""
    header = dict(scope["headers"]).get(b"authorization", b"")
    scheme, _, key = header.decode("utf-8", "replace").partition(" ")
    if scheme.lower() == "bearer" and key.strip():
        return key.strip()
    return parse_qs(scope["query_string"].decode("latin-1")).get("api_key", [None])[0]


class RequireKey:
    """ASGI middleware that refuses requests without a valid key; those in `IN_BODY` are left to the route.

    Args:
        app: the application.
        keys: the valid ones.
    """

    def __init__(self, app, keys: Keys):
        self.app, self._keys = app, keys

    async def __call__(self, scope, receive, send):
        path = scope.get("path", "")
        if scope["type"] == "http" and path not in OPEN + IN_BODY and not path.startswith(DOWNLOADS):
            try:
                self._keys.check(sent_key(scope))
            except HTTPException as refused:
                await refuse(refused.detail, refused.status_code, scope, receive, send)
                return
        await self.app(scope, receive, send)
