"""Asks `keras_bert.server` as many clients would: answers, latency, throughput, losses.

usage: python tools/serve_load.py EXPORT                      # 16 clients for ten minutes
       python tools/serve_load.py EXPORT --mode odd           # 10,000 requests to refuse
       python tools/serve_load.py EXPORT --mode swap          # 20 new versions under load
       python tools/serve_load.py EXPORT --mode term          # SIGTERM under load

The server runs in a process of its own on this machine. This process loads the export too: every
answer of the server is compared with that of the export called here, and the throughput of the
server with that of the export called here in batches of 32, alternately. The exit status is 1
if a request was lost or an answer was wrong.
"""

import argparse
import base64
import collections
import http.client
import json
import os
import random
import re
import selectors
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import orjson
from tqdm import tqdm

from tools.serving.odd_requests import odd_requests

NAME = "model"
TOLERANCE = 1e-4  # of floats: other batches are summed in another order
KEPT = 2000  # texts
PATIENCE = 120  # seconds
_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.I)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("export", help="a folder that `export` wrote")
    parser.add_argument("--mode", choices=("steady", "odd", "swap", "term"), default="steady")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--minutes", type=float, default=10.0, help="of the mode steady")
    parser.add_argument("--seconds_alone", type=float, default=20.0, help="of the export alone")
    parser.add_argument("--rounds", type=int, default=5, help="alternations of server and export")
    parser.add_argument("--words", type=int, nargs=2, default=(4, 40), metavar=("LEAST", "MOST"))
    parser.add_argument("--rows", type=int, default=1, help="texts per request")
    parser.add_argument("--odd", type=int, default=10_000, help="requests of the mode odd")
    parser.add_argument("--swaps", type=int, default=20, help="new versions of the mode swap")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--port", type=int, default=18_501)
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="of keras_bert.server.serve, such as max_batch_size=16",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON line")
    args = parser.parse_args(arguments)
    if (
        min(args.clients, args.rows, args.odd, args.swaps, args.rounds, *args.words) < 1
        or args.minutes <= 0
    ):
        parser.error("all numbers must be above 0")
    return args


def random_texts(words: tuple[int, int], count: int, seed: int) -> list[str]:
    """Draws texts of whole words from the vocabulary of the preset in the package."""
    import keras_bert

    file = next(Path(keras_bert.__file__).parent.glob("presets/*/assets/tokenizer/vocab.txt"))
    known = [w for w in file.read_text(encoding="utf-8").split("\n") if w.isalpha() and len(w) > 2]
    draw = random.Random(seed)
    return [" ".join(draw.choices(known, k=draw.randint(*words))) for _ in range(count)]


class Alone:
    """The export in this process.

    Args:
        export: the folder.
        texts: values of its inputs of strings.
    """

    def __init__(self, export: Path, texts: list[str]):
        from keras_bert.serving.bulk_model import ExportedModel
        from keras_bert.serving.export_contract import read_contract

        self.contract = read_contract(export)
        self._call = ExportedModel(export, "serving_default")
        self._call.load()
        specs = self.contract["signatures"]["serving_default"]["inputs"]
        if any(spec["dtype"] != "string" for spec in specs.values()):
            sys.exit("serving_default has inputs other than strings, which this tool cannot draw")
        self.columns = {}
        for shift, (name, spec) in enumerate(specs.items()):
            column: list = texts[shift:] + texts[:shift]
            if len(spec["shape"]) == 2:
                column = [[text, text[::-1], text.upper()] for text in column]
            self.columns[name] = column

    def answers(self, batch: int = 32) -> list[dict[str, Any]]:
        """The answer of each row."""
        count, rows = len(next(iter(self.columns.values()))), []
        for start in range(0, count, batch):
            outputs = self._call({n: v[start : start + batch] for n, v in self.columns.items()})
            size = len(next(iter(outputs.values())))
            rows += [{n: v[i] for n, v in outputs.items()} for i in range(size)]
        return rows

    def rows_per_second(self, seconds: float, batch: int = 32) -> float:
        """The throughput of calls of `batch` rows, one after another."""
        count, rows, number = len(next(iter(self.columns.values()))), 0, 0
        begun = time.perf_counter()
        while time.perf_counter() - begun < seconds:
            at = [(number * batch + i) % count for i in range(batch)]
            self._call({n: [v[i] for i in at] for n, v in self.columns.items()})
            rows, number = rows + batch, number + 1
        return rows / (time.perf_counter() - begun)


def same(expected: Any, found: Any) -> bool:
    """Whether an answer is right; a row may be padded to others of its request."""
    if isinstance(expected, np.ndarray | np.floating) and expected.dtype.kind == "f":
        found = np.asarray(found, expected.dtype)
        expected = expected[: len(found)] if expected.ndim else expected
        return expected.shape == found.shape and np.allclose(
            found, expected, TOLERANCE, TOLERANCE, equal_nan=True
        )
    if isinstance(expected, np.ndarray):
        expected = expected.tolist()
    if isinstance(expected, list):
        return (
            isinstance(found, list)
            and len(expected) >= len(found)
            and all(same(*pair) for pair in zip(expected, found, strict=False))
        )
    if isinstance(expected, bytes):
        if isinstance(found, dict):
            found = base64.b64decode(found["b64"])
        return expected == (found.encode() if isinstance(found, str) else found)
    return expected == found


class Server:
    """A server in a process of its own."""

    def __init__(self, source: Path, port: int, options: list[str]):
        self.port = port
        chosen = dict(option.split("=", 1) for option in options)
        chosen = {name: float(v) if "." in v else int(v) for name, v in chosen.items()}
        code = (
            "from keras_bert.server import serve\n"
            f"serve({{{NAME!r}: {str(source)!r}}}, port={port}, **{chosen!r})"
        )
        self.log = tempfile.TemporaryFile()
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self.process = subprocess.Popen(
            [sys.executable, "-c", code], stdout=self.log, stderr=self.log, env=environment
        )
        while not self._ready():
            if self.process.poll() is not None:
                self.log.seek(0)
                sys.exit("the server ended:\n" + self.log.read().decode(errors="replace"))
            time.sleep(0.2)

    def _ready(self) -> bool:
        try:
            return self.ask("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def ask(self, method: str, path: str, body: bytes | None = None, headers=None):
        """Sends one request on a connection of its own; gives status and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def memory(self) -> float:
        """MB of memory in use, or NaN where /proc does not tell."""
        try:
            said = Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return float("nan")
        return int(said.split("VmRSS:")[1].split()[0]) / 1024

    def cpu_seconds(self) -> float:
        """Processor time so far, or NaN where /proc does not tell."""
        try:
            said = Path(f"/proc/{self.process.pid}/stat").read_text()
        except OSError:
            return float("nan")
        return sum(map(int, said.rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait()


@dataclass
class Client:
    """One connection, on which one request follows another.

    Attributes:
        draw: of the rows that it asks for.
        connection: None before the first request and after a break.
        at: indices of the rows that it waits for, or None.
        begun: when it asked for them.
        content: so much of the answer as is there.
    """

    draw: random.Random
    connection: socket.socket | None = None
    at: list[int] | None = None
    begun: float = 0.0
    content: bytes = b""


class Clients:
    """Asks one request after another on each of some connections.

    One thread holds all connections, requests are encoded before, and answers are only stored while
    the server runs: clients that share its processors should cost next to nothing. `end` compares
    the answers.

    Args:
        port: of the server.
        alone: the export, whose columns are asked.
        expected: the answer of each row.
        count: number of connections.
        rows: number of rows in a request.
        seed: of the order.

    Attributes:
        stopping: whether the server may close and refuse connections.
        refused: number of clients that were refused then.
        seconds: of each request that was answered with status 200.
        problems: their numbers.
        cpu_seconds: processor time of the clients, without the comparison.
    """

    def __init__(self, port: int, alone: Alone, expected: list, count: int, rows: int, seed: int):
        self._port, self._expected, self._rows = port, expected, rows
        columns = alone.columns
        self._encoded = [
            orjson.dumps(dict(zip(columns, values, strict=True)))
            for values in zip(*columns.values(), strict=True)
        ]
        self._head = f"POST /v1/models/{NAME}:predict HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        self._selector = selectors.DefaultSelector()
        self._ending, self.stopping = threading.Event(), threading.Event()
        self.seconds: list[float] = []
        self.problems: collections.Counter = collections.Counter()
        self.refused, self.cpu_seconds = 0, 0.0
        self._answers = tempfile.TemporaryFile()
        self._asked: list[tuple[list[int], int]] = []  # rows, and bytes of their answer
        self._open = [Client(random.Random(f"{seed} {number}")) for number in range(count)]
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        begun = time.thread_time()
        for client in list(self._open):
            self._ask(client)
        looked = time.perf_counter()
        while self._open:
            for key, _ in self._selector.select(1.0):
                self._receive(key.data)
            now = time.perf_counter()
            if now - looked > 1:  # those that wait too long, and those that found no server
                looked = now
                for client in list(self._open):
                    if client.at is None:
                        self._ask(client)
                    elif now - client.begun > PATIENCE:
                        self._lost(client, TimeoutError())
        self.cpu_seconds = time.thread_time() - begun

    def _ask(self, client: Client) -> None:
        """Sends the next request, or ends the client."""
        if self._ending.is_set():
            self._leave(client)
            return
        at = [client.draw.randrange(len(self._encoded)) for _ in range(self._rows)]
        body = b'{"instances":[' + b",".join(self._encoded[i] for i in at) + b"]}"
        if client.connection is None:
            try:
                client.connection = socket.create_connection(("127.0.0.1", self._port), PATIENCE)
            except OSError:
                if self.stopping.is_set():
                    self.refused += 1
                    self._leave(client)
                else:
                    self.problems["connection refused"] += 1
                return
            client.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(client.connection, selectors.EVENT_READ, client)
        client.at, client.content, client.begun = at, b"", time.perf_counter()
        try:
            client.connection.sendall(
                f"{self._head}Content-Length: {len(body)}\r\n\r\n".encode() + body
            )
        except OSError as error:
            self._lost(client, error)

    def _receive(self, client: Client) -> None:
        try:
            part = client.connection.recv(1 << 18)
        except OSError as error:
            self._lost(client, error)
            return
        if not part:
            self._lost(client, ConnectionResetError())
            return
        client.content += part
        head, end, content = client.content.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not end or (length and len(content) < int(length[1])):
            return
        if client.at is None or length is None or len(content) > int(length[1]):
            self._lost(client, ValueError())
            return
        if head[9:12] == b"200":
            self.seconds.append(time.perf_counter() - client.begun)
            self._answers.write(content)
            self._asked.append((client.at, len(content)))
        else:
            self.problems[f"status {head[9:12].decode()}: {content[:100]!r}"] += 1
        client.at = None
        if b"connection: close" in head.lower():
            self._disconnect(client)
        self._ask(client)

    def _lost(self, client: Client, error: Exception) -> None:
        if client.at is not None:
            self.problems[f"no answer: {type(error).__name__}"] += 1
            client.at = None
        self._disconnect(client)
        self._ask(client)

    def _disconnect(self, client: Client) -> None:
        if client.connection is not None:
            self._selector.unregister(client.connection)
            client.connection.close()
            client.connection = None

    def _leave(self, client: Client) -> None:
        self._disconnect(client)
        self._open.remove(client)

    def wait(self) -> None:
        """Waits for the answers to all requests that were sent."""
        self._ending.set()
        self._thread.join()
        self._selector.close()

    def check(self) -> None:
        """Compares the answers."""
        self._answers.seek(0)
        right = set()
        for at, size in tqdm(self._asked, "comparing", leave=False):
            content = self._answers.read(size)
            if (*at, content) in right:
                continue
            if self._is_right(at, content):
                right.add((*at, content))
            else:
                self.problems["wrong answer"] += 1
        self._answers.close()

    def _is_right(self, at: list[int], content: bytes) -> bool:
        found = orjson.loads(content)["predictions"]
        for i, row in zip(at, found, strict=False):
            expected = self._expected[i]
            row = row if len(expected) > 1 else {next(iter(expected)): row}
            if expected.keys() != row.keys():
                return False
            if not all(same(expected[n], row[n]) for n in expected):
                return False
        return len(found) == len(at)

    def report(self) -> dict[str, Any]:
        times = sorted(self.seconds) or [float("nan")]
        return {
            "requests": len(self.seconds),
            "p50_ms": 1e3 * times[len(times) // 2],
            "p99_ms": 1e3 * times[int(len(times) * 0.99)],
            "problems": dict(self.problems),
        }


def steady(args, alone: Alone, expected: list) -> dict[str, Any]:
    server = Server(Path(args.export), args.port, args.option)
    by_itself, served, total, memory = [], [], None, []
    cpu = {"alone": 0.0, "server": 0.0, "clients": 0.0}
    try:
        for number in tqdm(range(args.rounds), "rounds"):
            before = time.process_time()
            by_itself.append(alone.rows_per_second(args.seconds_alone / args.rounds))
            cpu["alone"] += (time.process_time() - before) / by_itself[-1] / args.seconds_alone
            before = server.cpu_seconds()
            clients = Clients(server.port, alone, expected, args.clients, args.rows, number)
            begun = time.perf_counter()
            time.sleep(60 * args.minutes / args.rounds)
            clients.wait()
            rows = args.rows * len(clients.seconds)
            served.append(rows / (time.perf_counter() - begun))
            cpu["server"] += (server.cpu_seconds() - before) / rows / args.rounds
            cpu["clients"] += clients.cpu_seconds / rows / args.rounds
            memory.append(server.memory())
            clients.check()
            if total is not None:
                clients.seconds += total.seconds
                clients.problems += total.problems
            total = clients
    finally:
        server.stop()
    return total.report() | {
        "rows_per_second": statistics.mean(served),
        "alone_rows_per_second": statistics.mean(by_itself),
        "share": statistics.mean(served) / statistics.mean(by_itself),
        "shares": [a / b for a, b in zip(served, by_itself, strict=True)],
        "cpu_ms_per_row": {name: 1e3 * seconds for name, seconds in cpu.items()},
        "memory_mb": memory,
    }


def odd(args, alone: Alone) -> dict[str, Any]:
    server = Server(Path(args.export), args.port, args.option)
    found: collections.Counter = collections.Counter()
    statuses: collections.Counter = collections.Counter()
    memory = []
    try:
        drawn = odd_requests(NAME, alone.contract, args.odd, args.seed)
        for number, request in enumerate(tqdm(drawn, "odd requests", args.odd)):
            if number % max(1, args.odd // 10) == 0:
                memory.append(server.memory())
            status, content = server.ask(request[1], request[2], request.body, request.headers)
            statuses[status] += 1
            try:
                error = json.loads(content)["error"]
            except (ValueError, KeyError, TypeError):
                found[f"{request.kind}: no error in JSON"] += 1
                continue
            if not 400 <= status < 500:
                found[f"{request.kind}: status {status}"] += 1
            if request.named not in error:
                found[f"{request.kind}: {request.named} is not named in {error!r:.200}"] += 1
            if str(Path(args.export).resolve()) in error or str(Path.home()) in error:
                found[f"{request.kind}: a path in {error!r:.200}"] += 1
        memory.append(server.memory())
    finally:
        server.stop()
    return {
        "requests": args.odd,
        "statuses": {str(status): count for status, count in sorted(statuses.items())},
        "memory_mb": memory,
        "problems": dict(found),
    }


def swap(args, alone: Alone, expected: list) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder, "base")
        base.mkdir()

        def place(number: int) -> None:
            shutil.copytree(args.export, Path(folder, "new"), copy_function=os.link)
            os.rename(Path(folder, "new"), base / str(number))

        place(1)
        server = Server(base, args.port, args.option)
        memory, seconds = [], []
        try:
            clients = Clients(server.port, alone, expected, args.clients, args.rows, args.seed)
            for number in tqdm(range(2, args.swaps + 2), "swaps"):
                time.sleep(1)
                begun = time.perf_counter()
                place(number)
                while serving(server) != [number]:
                    time.sleep(0.1)
                seconds.append(time.perf_counter() - begun)
                memory.append(server.memory())
                shutil.rmtree(base / str(number - 1))
            clients.wait()
        finally:
            server.stop()
    clients.check()
    return clients.report() | {
        "swaps": args.swaps,
        "seconds_per_swap": sum(seconds) / len(seconds),
        "memory_mb": memory,
    }


def serving(server: Server) -> list[int]:
    """The versions that are loaded, in work or not."""
    status = json.loads(server.ask("GET", f"/v1/models/{NAME}")[1])["model_version_status"]
    return [int(v["version"]) for v in status if v["state"] in ("AVAILABLE", "UNLOADING")]


def term(args, alone: Alone, expected: list) -> dict[str, Any]:
    server = Server(Path(args.export), args.port, args.option)
    clients = Clients(server.port, alone, expected, args.clients, args.rows, args.seed)
    try:
        time.sleep(5)
        clients.stopping.set()
        begun = time.perf_counter()
        code = server.stop()
        seconds = time.perf_counter() - begun
    finally:
        server.process.kill()
    clients.wait()
    clients.check()
    if code:
        clients.problems[f"exit status {code}"] += 1
    if clients.refused != args.clients:
        clients.problems["clients that were not refused at last"] = args.clients - clients.refused
    return clients.report() | {"seconds_to_end": seconds, "exit_status": code}


def main(arguments: list[str] | None = None) -> int:
    args = parse(arguments)
    export = Path(args.export)
    alone = Alone(export, random_texts(tuple(args.words), KEPT, args.seed))
    if args.mode == "odd":
        report = odd(args, alone)
    else:
        alone.rows_per_second(2)
        modes = {"steady": steady, "swap": swap, "term": term}
        report = modes[args.mode](args, alone, alone.answers())
    if args.json:
        print(json.dumps(report))
    else:
        for name, value in report.items():
            print(f"{name:24} {value}")
    return 1 if report["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
