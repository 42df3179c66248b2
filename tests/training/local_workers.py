"""Worker processes of one machine that find each other by TF_CONFIG."""

import json
import socket


def configurations(count: int) -> list[str]:
    """TF_CONFIG of each of so many workers, at ports that were free a moment ago."""
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("localhost", 0))
    cluster = {"worker": [f"localhost:{s.getsockname()[1]}" for s in sockets]}
    for s in sockets:
        s.close()
    tasks = ({"type": "worker", "index": index} for index in range(count))
    return [json.dumps({"cluster": cluster, "task": task}) for task in tasks]
