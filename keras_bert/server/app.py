"""The application: routes, limits, metrics."""

import asyncio
import contextlib
import hmac
import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from keras_bert.arguments import check_count, check_number
from keras_bert.server.batching import Job, QueueFullError
from keras_bert.server.rest import (
    DEFAULT,
    LARGE,
    PREDICTION,
    STATUS,
    Limits,
    RequestError,
    not_found,
    parse_object,
    parse_predict,
    reply_of,
    shown,
    signature_of,
    too_large,
    unpacked,
)
from keras_bert.server.served_model import (
    ServedModel,
    Settings,
    attention_of,
    attribution_of,
    default_name,
    find_place,
)
from keras_bert.serving.export_contract import plain_values

Models = str | Path | Sequence[str | Path] | Mapping[str, str | Path]

PAGE = Path(__file__).parent / "page"
_NAME = re.compile(r"[^/:\s]+")
_SECURITY = {
    "X-Content-Type-Options": "nosniff",
    # The page runs its own scripts alone and asks no other host, and no other page frames it.
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",  # browsers ask whether a file is new: an update is seen at once
}
_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_METHODS = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]
_BODY_SECONDS = 60.0  # so that no client can hold up the end of the server
_CLIENT_GONE = 499  # nginx's status, for the metrics alone
_WATCHED = 0.1  # seconds after which the server looks whether the client still waits
log = logging.getLogger("keras_bert.server")


class Metrics:
    """The figures at /metrics."""

    def __init__(self):
        self.registry = CollectorRegistry()

        def new(kind, name, says, labels=("model",), **settings):
            return kind(f"keras_bert_{name}", says, labels, registry=self.registry, **settings)

        by_status, times = ("model", "method", "status"), {"buckets": _SECONDS}
        says = "Time to answer a request for predictions"
        self.requests = new(Counter, "requests", "Requests by status", by_status)
        self.seconds = new(Histogram, "request_seconds", says, **times)
        self.rows = new(Counter, "rows", "Rows answered")
        self.batch_rows = new(Histogram, "batch_rows", "Rows of a batch", buckets=_ROWS)
        self.batch_seconds = new(Histogram, "batch_seconds", "Time to compute a batch", **times)
        self.queue = new(Gauge, "queue_rows", "Rows that wait")
        self.given_up = new(Counter, "given_up", "Requests not computed, as the client was gone")
        says = "Version that answers requests without a version"
        self.version = new(Gauge, "version", says)
        self.in_flight = new(Gauge, "in_flight", "Requests in work", ())

    def ran(self, model: str):
        """Returns a function that counts a batch of a model."""

        def count(rows: int, seconds: float) -> None:
            self.batch_rows.labels(model).observe(rows)
            self.batch_seconds.labels(model).observe(seconds)

        return count


class ModelServer:
    """The state and the handlers of one application.

    Attributes:
        models: by name.
        draining: whether the server is about to end; answers then close their connections.
        in_flight: number of requests in work.
    """

    def __init__(
        self, models: dict[str, ServedModel], limits: Limits, metrics: Metrics, keys: list[bytes]
    ):
        self.models, self._limits, self._metrics, self._keys = models, limits, metrics, keys
        self.draining, self.in_flight = False, 0
        self.loading: asyncio.Task | None = None
        self._parser = ThreadPoolExecutor(1, "parse")

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette):
        """Loads the models in the background and watches them until the application ends."""
        self.loading = asyncio.create_task(self._load())
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            for task in (watching, self.loading):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await task
            for model in self.models.values():
                await model.close()
            self._parser.shutdown(wait=True)

    async def _load(self) -> None:
        for model in self.models.values():
            await model.load()

    async def _watch(self) -> None:
        await asyncio.wait([self.loading])
        await asyncio.gather(*(model.watch() for model in self.models.values()))

    def ready(self) -> bool:
        """Whether every model answers."""
        return not self.draining and all(model.available() for model in self.models.values())

    # === Handlers ===

    async def health(self, request: Request) -> Response:
        """GET /healthz: the process answers."""
        return JSONResponse({"status": "ok"})

    async def readiness(self, request: Request) -> Response:
        """GET /readyz: every model answers."""
        if self.ready():
            return JSONResponse({"status": "ok"})
        waiting = [name for name, model in self.models.items() if not model.available()]
        status = "draining" if self.draining else "loading"
        return JSONResponse({"status": status, "models": waiting}, 503)

    async def metrics(self, request: Request) -> Response:
        """GET /metrics."""
        self._authorize(request.scope)
        for name, model in self.models.items():
            found = model.available()
            self._metrics.version.labels(name).set(found[0].number if found else 0)
            self._metrics.queue.labels(name).set(sum(v.batcher.waiting for v in found))
        self._metrics.in_flight.set(self.in_flight)
        return Response(
            generate_latest(self._metrics.registry), headers={"Content-Type": CONTENT_TYPE_LATEST}
        )

    async def listing(self, request: Request) -> Response:
        """GET /v1/keras_bert/models: what the models are, for the page."""
        self._authorize(request.scope)
        return JSONResponse([describe(model) for model in self.models.values()])

    async def explanation(self, request: Request) -> Response:
        """POST /v1/keras_bert/explain/NAME: why a model answers so, for the page.

        The body is that of a request for predictions, of one row. The reply has "meaning", the
        output that is explained, in words; "output" and "baseline_output"; "error" of the method;
        "texts"; and "words" with "text", its index, "start" and "end" in characters, and "score".
        """
        found = await self._looked(request, attribution_of)
        words = found.words
        rows = zip(words.sides.tolist(), words.spans.tolist(), words.scores.tolist(), strict=True)
        return JSONResponse(
            {
                "meaning": found.meaning,
                "output": float(found.output),
                "baseline_output": float(found.baseline_output),
                "error": float(found.error),
                "texts": list(found.texts),
                "words": [
                    {"text": side, "start": start, "end": end, "score": score}
                    for side, (start, end), score in rows
                ],
            }
        )

    async def attention(self, request: Request) -> Response:
        """POST /v1/keras_bert/attention/NAME: attention between the words, for the page.

        The body is that of a request for predictions, of one row. The reply is
        `AttentionMaps.view_data` of `keras_bert.explain`, by word.
        """
        found = await self._looked(request, attention_of)
        return JSONResponse(await asyncio.to_thread(found.view_data))

    async def _looked(self, request: Request, find: Callable[[list[list], Any], Any]):
        """What `find` finds in a model's task for the example of a request."""
        self._authorize(request.scope)
        name = request.path_params["name"]
        self.in_flight += 1
        try:
            model = self._model(name)
            version = model.version(None, None)
            signatures = version.export.contract["signatures"]
            body = await self._body(request.scope, request.receive)
            asked = await self._parsed(parse_predict, body, signatures)
            if asked.rows != 1:
                raise RequestError(400, f"inputs: {asked.rows} rows; expected 1 to explain")
            columns = [plain_values(values) for values in asked.inputs.values()]
            return await model.look(partial(find, columns))
        except ClientDisconnect:
            raise RequestError(_CLIENT_GONE, "the client is gone") from None
        finally:
            self.in_flight -= 1

    async def rest(self, request: Request) -> Response:
        """TensorFlow Serving's paths under /v1/, but for those of predictions; see `predict`."""
        self._authorize(request.scope)
        path = path_of(request.scope)
        if request.method == "GET" and (found := STATUS.fullmatch(path)):
            return self._status(*found.groups())
        raise RequestError(400, f"Malformed request: {request.method} {path:.200}")

    def _model(self, name: str, number: str | None = None) -> ServedModel:
        if name not in self.models:
            raise not_found(shown(name, quote=False), number)
        return self.models[name]

    def _status(self, name, number, label, metadata) -> Response:
        if name is None:
            raise RequestError(400, "Missing model name in request.")
        name, label = unquote(name), None if label is None else unquote(label)
        model = self.models.get(name)
        if metadata:
            model = self._model(name)
            version = model.version(number, label)
            return JSONResponse(
                {
                    "model_spec": {
                        "name": model.name,
                        "signature_name": "",
                        "version": str(version.number),
                    },
                    "metadata": {"signature_def": {"signature_def": version.export.signature_defs}},
                }
            )
        chosen = sorted(model.versions.values() if model else (), key=lambda v: -v.number)
        if chosen and label is not None:
            number = str(model.version(None, label).number)
        which = "any versions"
        if chosen and number is not None:
            chosen = [v for v in chosen if v.number == int(number[:20])]
            which = f"version {number[:20]}"
        if not chosen:
            raise RequestError(404, f"Could not find {which} of model {shown(name, quote=False)}")
        return JSONResponse({"model_version_status": [version.status() for version in chosen]})

    async def predict(self, scope, receive, send, name, number, label, method) -> None:
        """POST /v1/models/...:predict, and the other methods of TensorFlow Serving.

        An ASGI application, not a route: routing and Starlette's objects would cost as much as
        all else that is done for a request here. The further arguments are groups of `PREDICTION`.
        """
        begun, name = time.monotonic(), unquote(name)
        model = self.models.get(name)
        status, method = 500, method.lower()
        self.in_flight += 1
        try:
            self._authorize(scope)
            body = await self._body(scope, receive)
            model = self._model(name, number)
            label = None if label is None else unquote(label)
            if method != "predict":
                signatures = model.version(number, label).export.signature_defs
                await self._parsed(partial(refuse_method, method), body, signatures)
            while True:
                version = model.version(number, label)
                asked = await self._parsed(
                    parse_predict, body, version.export.contract["signatures"]
                )
                # Otherwise another took its place while a large body was parsed.
                if version.state == "AVAILABLE":
                    break
            try:
                job = version.batcher.submit(
                    asked.signature, asked.inputs, asked.rows, asked.length
                )
            except QueueFullError:
                problem = f"model {model.name}: the queue is full; try again later"
                raise RequestError(503, problem, {"Retry-After": "1"}) from None
            try:
                outputs = await answer_of(job, receive)
            except ClientDisconnect:
                if version.batcher.give_up(job):
                    self._metrics.given_up.labels(model.name).inc()
                raise
            content = reply_of(outputs, asked.by_row)
            status = 200
            self._metrics.rows.labels(model.name).inc(asked.rows)
            await respond(send, 200, content)
        except RequestError as error:
            status = error.status_code
            await _answer(error)(scope, receive, send)
        except ClientDisconnect:
            status = _CLIENT_GONE
            await respond(send, _CLIENT_GONE, b"")
        finally:
            self.in_flight -= 1
            known = model.name if model else ""
            self._metrics.requests.labels(known, method, str(status)).inc()
            self._metrics.seconds.labels(known).observe(time.monotonic() - begun)

    async def _parsed(self, parse: Callable, body: bytes, signatures: Mapping[str, dict]):
        """What `parse` makes of a body; of a large one in a thread, one at a time.

        The ids of 8 MB are checked in seconds, during which the event loop answers others. Below
        `LARGE` it takes less than a millisecond or two, and a thread would cost more than that.
        """
        if len(body) <= LARGE:
            return parse(body, signatures, self._limits)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._parser, parse, body, signatures, self._limits)

    async def _body(self, scope, receive) -> bytes:
        limit = self._limits.body
        announced = header_of(scope, b"content-length")
        if announced.isdecimal() and int(announced[:20]) > limit:
            raise RequestError(413, too_large(self._limits))
        parts, size, more = [], 0, True
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnect
                    parts.append(message.get("body", b""))
                    more = message.get("more_body", False)
                    size += len(parts[-1])
                    if size > limit:
                        raise RequestError(413, too_large(self._limits))
        except TimeoutError:
            raise RequestError(
                408,
                f"body: expected it whole within {_BODY_SECONDS:g} seconds",
                {"Connection": "close"},
            ) from None
        encoding = header_of(scope, b"content-encoding").strip().lower()
        return unpacked(b"".join(parts), encoding, self._limits)

    def _authorize(self, scope) -> None:
        if not self._keys:
            return
        scheme, _, given = header_of(scope, b"authorization").partition(" ")
        given = given.strip().encode("latin-1")
        # Compares all, in constant time each.
        right = [hmac.compare_digest(given, key) for key in self._keys]
        if scheme.lower() != "bearer" or not any(right):
            raise RequestError(
                401,
                "Authorization: expected 'Bearer KEY' with a key of this server",
                {"WWW-Authenticate": "Bearer"},
            )


def path_of(scope) -> str:
    """The path before %XX is replaced: a name may contain an encoded slash."""
    return (scope.get("raw_path") or scope["path"].encode()).decode("latin-1")


def header_of(scope, name: bytes) -> str:
    """A header of a request, or ""."""
    for key, value in scope["headers"]:
        if key == name:
            return value.decode("latin-1")
    return ""


async def respond(send, status: int, content: bytes) -> None:
    """Sends an answer of JSON."""
    length = str(len(content)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", length)]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


async def answer_of(job: Job, receive) -> dict[str, np.ndarray]:
    """Waits for the answer to a job; raises `ClientDisconnect` if the client has left before.

    Most answers come sooner than it is worth to watch the connection.
    """
    loop, watching = asyncio.get_running_loop(), []

    def left(task):
        if not task.cancelled() and task.exception() is None and not job.answer.done():
            job.answer.set_exception(ClientDisconnect())

    def watch():
        watching.append(loop.create_task(receive()))
        watching[0].add_done_callback(left)

    timer = loop.call_later(_WATCHED, watch)
    try:
        return await job.answer
    finally:
        timer.cancel()
        for task in watching:
            task.cancel()


def refuse_method(
    method: str, body: bytes, signature_defs: Mapping[str, dict], limits: Limits
) -> None:
    """Refuses `:classify` and `:regress`, as TensorFlow Serving does for these signatures.

    They take `tf.Example`s; exports have signatures of the method predict alone.
    """
    request = parse_object(body, limits)
    name = signature_of(request, signature_defs)
    examples = request.get("examples")
    if not isinstance(examples, list) or not examples:
        problem = f"examples: expected a list with one or more objects for the method {method}"
    else:
        problem = f"Expected {method} signature method_name to be tensorflow/serving/{method}. "
        problem += f"Was: {signature_defs[name]['method_name']}; use :predict"
    raise RequestError(400, problem)


def describe(model: ServedModel) -> dict[str, Any]:
    """What a model is, without a path of this machine.

    "name"; "state", "ready" or "loading"; "versions" and "version_labels"; "scores" of the run, or
    None; "explains", whether `explanation` answers; and of the newest version that answers, from
    its contract: "task", the class; "signatures" with inputs and outputs; "labels" of its classes
    or None; "settings", "weights", "packages", and "example", a request.
    """
    found = model.available()
    said: dict[str, Any] = {
        "name": model.name,
        "state": "ready" if found else "loading",
        "versions": [version.number for version in found],
        "version_labels": model.labels,
        "scores": model.place.metrics,
        "explains": model.explains,
    }
    if not found:
        return said
    contract = found[0].export.contract
    settings = contract.get("settings", {})
    return said | {
        "task": contract["task"],
        "labels": settings.get("labels"),
        "settings": settings,
        "signatures": contract["signatures"],
        "default_signature": DEFAULT,
        "weights": contract.get("weights"),
        "packages": contract.get("versions"),
        "example": next((e["request"] for e in contract.get("examples", [])), None),
    }


async def index(request: Request) -> Response:
    """GET /: the page."""
    return FileResponse(PAGE / "index.html", headers=_SECURITY)


class PageFiles(StaticFiles):
    """The files of the page."""

    async def get_response(self, path: str, scope) -> Response:
        """A file; scripts have their type on Windows too, where the registry may name another."""
        response = await super().get_response(path, scope)
        response.headers.update(_SECURITY)
        if path.endswith(".js"):
            response.headers["Content-Type"] = "text/javascript; charset=utf-8"
        return response


class Front:
    """Middleware: security headers, closed connections while draining, and predictions."""

    def __init__(self, app, server: ModelServer):
        self._app, self._server = app, server

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def finished(message):
            if message["type"] == "http.response.start":
                names = {name.lower() for name, _ in message["headers"]}
                further = [(b"x-content-type-options", b"nosniff")]
                if self._server.draining:
                    further.append((b"connection", b"close"))
                message["headers"] += [pair for pair in further if pair[0] not in names]
            await send(message)

        found = PREDICTION.fullmatch(path_of(scope)) if scope["method"] == "POST" else None
        if found:
            await self._server.predict(scope, receive, finished, *found.groups())
        else:
            await self._app(scope, receive, finished)


def _answer(error: HTTPException) -> Response:
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


async def _error(request: Request, error: HTTPException) -> Response:
    return _answer(error)


async def _crash(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": "internal error; see the server's log"}, 500)


def named_models(models: Models) -> dict[str, str | Path]:
    """The models to serve, as for `create_app`, by name.

    Raises:
        ValueError: if there is none, a name is invalid or given twice.
    """
    if isinstance(models, str | Path):
        models = [models]
    named = isinstance(models, Mapping)
    pairs = [*models.items()] if named else [(default_name(source), source) for source in models]
    if not pairs or len(dict(pairs)) != len(pairs):
        problem = "two of one name; pass {name: source}" if pairs else "expected one or more"
        raise ValueError(f"models={', '.join(name for name, _ in pairs) or '{}'}: {problem}")
    for name, _ in pairs:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(f"models: name {name!r}: expected no space, slash or colon")
    return dict(pairs)


def read_keys(path: str | Path) -> list[bytes]:
    """Reads the keys that clients may use.

    Args:
        path: a text file with one key per line; blank lines and lines with # are skipped.

    Raises:
        FileNotFoundError: if there is no file.
        ValueError: if it holds no key, or one that no header can hold.
    """
    keys = []
    for number, line in enumerate(Path(path).read_bytes().splitlines(), 1):
        key = line.strip()
        if not key or key.startswith(b"#"):
            continue
        if not re.fullmatch(rb"[!-~]+", key):
            raise ValueError(f"{path}, line {number}: expected a key of ASCII without spaces")
        keys.append(key)
    if not keys:
        raise ValueError(f"api_key_file={str(path)!r}: expected one key per line, found none")
    return keys


def create_app(
    models: Models,
    *,
    max_batch_size: int = 32,
    max_wait: float = 0.002,
    max_queue: int = 1024,
    threads: int | None = None,
    max_body: int = 8 << 20,
    max_rows: int = 1024,
    max_text_length: int = 100_000,
    poll: float = 1.0,
    api_key_file: str | Path | None = None,
) -> Starlette:
    """Builds the ASGI application that serves models over TensorFlow Serving's REST API.

    Models are loaded when the application starts, in the background; `/readyz` tells when they
    answer. The application's `state.server` is its `ModelServer`.

    Args:
        models: what to serve: one or several sources, named after their folders, or a dict of
            sources by name. A source is an export; a base folder with an export in each numeric
            subfolder, which is watched for new versions; a run folder (`preset/`, `export/`,
            `metrics.json`); or a preset, by folder, name or address.
        max_batch_size: maximum number of rows that are run together for several requests; a
            request of more rows is run alone.
        max_wait: seconds that the first request of a batch waits for others, with one thread;
            with several, a batch starts as soon as one is free.
        max_queue: maximum number of rows that wait before a model; beyond that, requests are
            answered with 503 and `Retry-After`.
        threads: batches run at the same time, of each model. By default 1 with a GPU and for an
            export with format="onnx", which divides a batch between the cores itself; otherwise one
            for each core, up to 4. If it is the number of cores, TensorFlow computes each batch on
            one core, unless its intra-op threads are set or it already runs.
        max_body: maximum number of bytes of a request's body.
        max_rows: maximum number of rows of a request.
        max_text_length: maximum number of characters of a text.
        poll: seconds between two looks for new versions.
        api_key_file: a file with one key per line, one of which clients send as
            `Authorization: Bearer KEY`; by default no key is needed.

    Returns:
        The application.

    Raises:
        FileNotFoundError: if a source or the file of keys does not exist.
        ValueError: if an argument is out of range, a name is invalid, or a contract is damaged.
    """
    batching = Settings(
        max_batch_size=check_count("max_batch_size", max_batch_size),
        max_wait=max_wait,
        max_queue=check_count("max_queue", max_queue),
        threads=threads if threads is None else check_count("threads", threads),
        poll=poll,
    )
    check_number("max_wait", max_wait)
    check_number("poll", poll, least=0.01)
    limits = Limits(
        body=check_count("max_body", max_body),
        rows=check_count("max_rows", max_rows),
        text=check_count("max_text_length", max_text_length),
    )
    keys = [] if api_key_file is None else read_keys(api_key_file)
    metrics = Metrics()
    served = {
        name: ServedModel(name, find_place(source), batching, metrics.ran(name))
        for name, source in named_models(models).items()
    }
    server = ModelServer(served, limits, metrics, keys)
    routes = [
        Route("/v1/keras_bert/models", server.listing),
        Route("/v1/keras_bert/explain/{name:path}", server.explanation, methods=["POST"]),
        Route("/v1/keras_bert/attention/{name:path}", server.attention, methods=["POST"]),
        # In TensorFlow Serving the letters' case does not count here.
        *(Route(f"/{v}1/{{rest:path}}", server.rest, methods=_METHODS) for v in "vV"),
        Route("/healthz", server.health),
        Route("/readyz", server.readiness),
        Route("/metrics", server.metrics),
    ]
    files = PageFiles(directory=PAGE, packages=[("keras_bert.explain", "views")])
    routes += [Route("/", index), Mount("/page", files)]
    app = Starlette(
        routes=routes,
        lifespan=server.lifespan,
        exception_handlers={HTTPException: _error, 500: _crash},
    )
    app.add_middleware(Front, server=server)
    app.state.server = server
    return app
