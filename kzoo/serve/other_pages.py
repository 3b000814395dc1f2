"""Keeps pages of other sites, open in the browser of somebody who can reach the server, from using it."""

from starlette.responses import JSONResponse

REFUSAL = JSONResponse(
    {"error": "a page of another site asks: only this server's own page may"},
    403,
    {"Connection": "close"},  # the body is not read
)


class RefuseOtherPages:
    """ASGI middleware that answers 403 to what browsers send for a page of another site.

    Browsers send simple requests without asking the server first, even to servers on the user's own machine,
    and say so, to HTTPS and the machine itself, in a header that pages cannot change. Links are followed:
    answers to GET change nothing. A page whose own name is made to lead to this server is not recognized.

    Args:
        app: the application.
    """

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        changes = scope["type"] == "http" and scope["method"] not in ("GET", "HEAD")
        refused = changes and dict(scope["headers"]).get(b"sec-fetch-site") == b"cross-site"
        await (REFUSAL if refused else self.app)(scope, receive, send)
