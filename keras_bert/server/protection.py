"""What stands before the application: a limit of requests' heads, and the names of its hosts."""

import ipaddress
from collections.abc import Sequence

from starlette.responses import JSONResponse
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_HEAD = 1 << 20  # bytes of the lines before a request's body


class BoundedHead(HttpToolsProtocol):
    """uvicorn's protocol with a limit of the lines before a request's body; it has none itself."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._before_body, self._bytes = True, 0

    def on_message_begin(self) -> None:
        """Called by the parser."""
        super().on_message_begin()
        self._before_body, self._bytes = True, 0

    def on_headers_complete(self) -> None:
        """Called by the parser."""
        self._before_body = False
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Takes what a client sends."""
        super().data_received(data)
        if self._before_body:
            self._bytes += len(data)
            if self._bytes > _HEAD and not self.transport.is_closing():
                self.send_400_response(f"Expected at most {_HEAD:,} bytes before the body.")


class OwnHosts:
    """Middleware of a server for this machine alone: refuses what pages of other sites ask.

    A browser lets the page of another site ask 127.0.0.1 under that site's own name, once the name
    leads there (DNS rebinding), and read the answers.

    `hosts` are names of this server, beside localhost and addresses of this machine.
    """

    def __init__(self, app, hosts: Sequence[str] = ()):
        self._app, self._hosts = app, {host.lower() for host in hosts}

    async def __call__(self, scope, receive, send):
        problem = self._problem(scope) if scope["type"] == "http" else None
        app = self._app if problem is None else JSONResponse({"error": problem}, 403)
        await app(scope, receive, send)

    def _problem(self, scope) -> str | None:
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"localhost").decode("latin-1").lower()
        name = host[1:].partition("]")[0] if host[:1] == "[" else host.partition(":")[0]
        if name not in self._hosts and not is_loopback(name):
            return (
                f"Host: {host[:100]!a}: expected localhost or an address of this machine; behind a "
                "proxy, start the server with the name (allow_hosts)"
            )
        if headers.get(b"sec-fetch-site") == b"cross-site" and scope["method"] != "GET":
            return "Sec-Fetch-Site: expected no page of another site"
        return None


def is_loopback(name: str) -> bool:
    """Whether a name or address always means the machine itself."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
