"""A server in a thread of the tests, and a gate before its model."""

import contextlib
import http.client
import json
import threading

from keras_bert.server import create_app
from keras_bert.server.running import DrainingServer, configured, listening
from keras_bert.server.served_model import Export

PATIENCE = 120  # seconds, on a busy machine


class Live:
    """A running server.

    Attributes:
        port: of the server.
        server: its `ModelServer`.
        running: its `DrainingServer`.
    """

    def __init__(self, models, **options):
        app = create_app(models, **{"poll": 0.02, "threads": 1} | options)
        self.server, ready = app.state.server, threading.Event()
        self._socket = listening("127.0.0.1", 0)
        self.port = self._socket.getsockname()[1]
        self.running = DrainingServer(configured(app, 0), self.server, ready.set)
        self._thread = threading.Thread(target=self.running.run, args=([self._socket],))
        self._thread.start()
        while not ready.wait(0.01):
            if not self._thread.is_alive():
                raise self.running.failure

    def ask(self, method, path, body=None, headers=None):
        """One request; gives the status and the JSON of the answer."""
        with self.connected() as connection:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

    def predict(self, request, model="model", where="", headers=None):
        """A request for predictions; `request` is the object of the body."""
        path = f"/v1/models/{model}{where}:predict"
        return self.ask("POST", path, json.dumps(request), headers)

    def connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def connected(self):
        return contextlib.closing(self.connection())

    def metric(self, name):
        """The sum of a metric's samples, from the page of metrics."""
        with self.connected() as connection:
            connection.request("GET", "/metrics")
            lines = connection.getresponse().read().decode().splitlines()
        return sum(
            float(line.rpartition(" ")[2])
            for line in lines
            if line.split("{")[0].split(" ")[0] == name
        )

    def end(self):
        """Does what a signal does, and waits for the end."""
        self.running.should_exit = True
        self._thread.join()
        self._socket.close()


@contextlib.contextmanager
def live(models, **options):
    found = Live(models, **options)
    try:
        yield found
    finally:
        found.end()


class Gate:
    """Holds up every call of a model until it is opened; records the calls."""

    def __init__(self, monkeypatch):
        self.open, self.entered = threading.Event(), threading.Semaphore(0)
        self.calls = []
        call = Export.__call__

        def gated(export, signature, inputs):
            self.calls.append((signature, {n: v.tolist() for n, v in inputs.items()}))
            self.entered.release()
            assert self.open.wait(PATIENCE)
            return call(export, signature, inputs)

        monkeypatch.setattr(Export, "__call__", gated)


def in_thread(function, *args):
    """Runs a function in a thread; gives the thread and a list for its result."""
    results = []
    thread = threading.Thread(target=lambda: results.append(function(*args)))
    thread.start()
    return thread, results
