"""Runs the application until a signal ends it."""

import asyncio
import contextlib
import logging
import signal
import socket
import time
from collections.abc import Callable, Sequence

import uvicorn

from keras_bert.server.app import PAGE, Models, ModelServer, create_app
from keras_bert.server.protection import BoundedHead, OwnHosts, is_loopback

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_IDLE = 1.0  # seconds for requests that are on their way when the signal comes
log = logging.getLogger("keras_bert.server")


class OneWrite:
    """A transport that writes what is given to it in one pass of the event loop at once.

    uvicorn writes head and body of an answer one after the other: two calls of the system, and two
    for a client to wake up from. All but writing is left to the transport.
    """

    def __init__(self, transport: asyncio.Transport):
        self._transport, self._held = transport, []
        self._soon = asyncio.get_running_loop().call_soon

    def __getattr__(self, name: str):
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Writes with what else comes in this pass."""
        if not self._held:
            self._soon(self._flush)
        self._held.append(data)

    def _flush(self) -> None:
        if self._held:
            data = self._held[0] if len(self._held) == 1 else b"".join(self._held)
            self._held = []
            self._transport.write(data)

    def close(self) -> None:
        """Closes after all is written."""
        self._flush()
        self._transport.close()


class Protocol(BoundedHead):
    """uvicorn's HTTP on `OneWrite`."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Takes a connection."""
        super().connection_made(OneWrite(transport))


class DrainingServer(uvicorn.Server):
    """A uvicorn server that answers all that it has accepted before it ends.

    At a signal it stops listening, answers requests on open connections and closes these with the
    answer. A connection that stays idle is closed after a second. A second signal ends it at once.

    `ready` is called when the models are loaded; `failure` is why they could not be, or None.
    """

    def __init__(self, config: uvicorn.Config, server: ModelServer, ready: Callable[[], None]):
        super().__init__(config)
        self._server, self._ready = server, ready
        self._waiting: asyncio.Task | None = None
        self.failure: BaseException | None = None

    @contextlib.contextmanager
    def capture_signals(self):
        """Handles signals without raising them again, so that a drained server ends with 0."""
        try:
            before = {number: signal.signal(number, self.handle_exit) for number in _SIGNALS}
        except ValueError:  # signals are for the main thread
            before = {}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def startup(self, sockets=None) -> None:
        """Listens, and ends the server if a model cannot be loaded."""
        await super().startup(sockets)
        self._waiting = asyncio.create_task(self._wait_for_models())

    async def _wait_for_models(self) -> None:
        try:
            await asyncio.shield(self._server.loading)
        except Exception as error:
            self.failure, self.should_exit = error, True
        else:
            self._ready()

    async def shutdown(self, sockets=None) -> None:
        """Drains, then does what uvicorn does."""
        # uvloop and asyncio take all connections that wait when they look at the listener.
        await asyncio.sleep(0)
        for listener in self.servers:
            listener.close()
        for listener in sockets or []:
            listener.close()
        self._server.draining = True
        self._waiting.cancel()
        log.info("draining %d requests", self._server.in_flight)
        idle = time.monotonic() + _IDLE
        while self.server_state.connections and not self.force_exit:
            if time.monotonic() > idle and not self._server.in_flight:
                break
            await asyncio.sleep(0.02)
        await super().shutdown(sockets)


def serve(
    models: Models,
    host: str = "127.0.0.1",
    port: int = 8501,
    *,
    allow_hosts: Sequence[str] = (),
    verbose: int = 1,
    **options,
) -> None:
    """Serves models over HTTP until SIGINT or SIGTERM, then answers what was accepted and returns.

    Args:
        models: as `create_app`.
        host: address to listen on; by default this machine alone can ask.
        port: its port; 0 for any that is free.
        allow_hosts: names by which clients ask, as in the header Host, beside localhost and
            addresses of this machine. A server for this machine alone and without keys refuses
            others, so that no web site that its user opens can ask it.
        verbose: 0 for silent, 1 for lines about models, 2 for a line per request too.
        **options: as `create_app`: batching, limits and keys.

    Raises:
        FileNotFoundError: as `create_app`.
        OSError: if the address cannot be used.
        RuntimeError: if a model cannot be loaded.
        ValueError: as `create_app`.
    """
    app = create_app(models, **options)
    server = app.state.server
    if verbose:
        show_log()
    with listening(host, port) as listener:
        address, port = listener.getsockname()[:2]
        if is_loopback(address) and options.get("api_key_file") is None:
            app = OwnHosts(app, allow_hosts)
        config = configured(app, verbose)
        url = f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"
        said = f"serving {', '.join(server.models)} at {url}"
        said += f", with a page at {url}/" if PAGE.is_dir() else ""
        running = DrainingServer(config, server, lambda: log.info("%s", said))
        running.run(sockets=[listener])
    if running.failure is not None:
        raise running.failure


def configured(app, verbose: int) -> uvicorn.Config:
    """uvicorn's settings for the application of `create_app`, perhaps wrapped."""
    return uvicorn.Config(
        app,
        http=Protocol,
        log_level="info" if verbose > 1 else "warning",
        access_log=verbose > 1,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=75,
    )


def listening(host: str, port: int) -> socket.socket:
    """Opens the socket to listen on; port 0 for any that is free.

    Raises:
        OSError: if the address cannot be used, with the address.
    """
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=2048)
    except OSError as error:
        raise OSError(error.errno, f"cannot listen on {host}:{port}: {error.strerror}") from error


def show_log() -> None:
    """Shows the server's log on the standard error, unless the program has its own logging."""
    if not logging.root.handlers and not log.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        log.propagate = False
