"""Trains a tiny classifier on several worker processes, of which some are killed on the way.

Run by test_workers.py. This process is the supervisor, as SLURM, Kubernetes or a shell's loop is: a
worker that ends with an error is started again, with the same command. The workers of an unbroken
run find each other by the variables of SLURM, those of the run with deaths by TF_CONFIG. Each
writes OUT/whole-N.npz or OUT/broken-N.npz at its end. Prints how often each was started again, as
JSON.

Workers are forked after the imports, which take most of the time; TensorFlow has not started then.
"""

import argparse
import json
import multiprocessing
import multiprocessing.connection
import os
import signal
import socket

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

parser = argparse.ArgumentParser(allow_abbrev=False)
parser.add_argument("out")
parser.add_argument("--workers", type=int, default=2)
parser.add_argument("--deaths", nargs="*", default=[], help="WORKER:STEP, one after another")
args = parser.parse_args()

import keras  # noqa: E402
import numpy as np  # noqa: E402

from keras_bert import BertBackbone, BertClassifier, training  # noqa: E402

ROWS, BATCH, T, V = 23, 6, 7, 31  # the last batch has 5 rows
RESTARTS = 10


def life(name: str, index: int, port: int, kill_at: int | None) -> None:
    """A worker, from its start to the end of the run or its death."""
    if name == "whole":
        os.environ |= {
            "SLURM_JOB_ID": str(port - training.strategies.SLURM_PORTS),
            "SLURM_STEP_NUM_TASKS": str(args.workers),
            "SLURM_STEP_NODELIST": "localhost",
            "SLURM_STEP_TASKS_PER_NODE": str(args.workers),
            "SLURM_PROCID": str(index),
        }
    else:
        cluster = {"worker": [f"localhost:{port + i}" for i in range(args.workers)]}
        config = {"cluster": cluster, "task": {"type": "worker", "index": index}}
        os.environ["TF_CONFIG"] = json.dumps(config)
    with training.strategy("multiworker").scope():
        keras.utils.set_random_seed(5)
        model = BertClassifier(BertBackbone(V, 1, 3, 21, 11, max_sequence_length=13), 3)
    model.compile(learning_rate=2e-3)
    rng = np.random.default_rng(3)
    x = {
        "token_ids": rng.integers(1, V, (ROWS, T)).astype("int32"),
        "segment_ids": rng.integers(0, 2, (ROWS, T)).astype("int32"),
        "padding_mask": np.ones((ROWS, T), "int32"),
    }

    class Death(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if self.model.run.done == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

    resume = training.Resume(os.path.join(args.out, name), every_steps=3, keep=2)
    settings = {"batch_size": BATCH, "epochs": 3, "verbose": 0, "callbacks": [resume, Death()]}
    history = model.fit(x, rng.integers(0, 3, ROWS), **settings)
    np.savez(
        os.path.join(args.out, f"{name}-{index}.npz"),
        losses=np.array(history.history["loss"], "float64"),
        updates=np.array(model.optimizer.iterations),
        **{f"weight{i:03d}": w for i, w in enumerate(model.get_weights())},
    )


def free_port() -> int:
    """The first of as many free ports in a row as there are workers."""
    for port in range(training.strategies.SLURM_PORTS + os.getpid() % 9000, 30_000):
        try:
            for i in range(args.workers):
                with socket.socket() as found:
                    found.bind(("localhost", port + i))
            return port
        except OSError:
            pass
    raise SystemExit("no free ports")


def run(name: str, deaths: list[tuple[int, int]]) -> list[int]:
    """Runs all workers to the end; returns how often each was started again."""
    port, fork = free_port(), multiprocessing.get_context("fork")
    restarts = [-1] * args.workers
    alive: dict[int, multiprocessing.Process] = {}
    ended: set[int] = set()
    while len(ended) < args.workers:
        for index in set(range(args.workers)) - alive.keys() - ended:
            kill_at = deaths[0][1] if deaths and deaths[0][0] == index else None
            alive[index] = fork.Process(target=life, args=(name, index, port, kill_at))
            alive[index].start()
            restarts[index] += 1
        multiprocessing.connection.wait([worker.sentinel for worker in alive.values()])
        for index, worker in list(alive.items()):
            if worker.exitcode is None:
                continue
            print(f"{name} {index} ended: {worker.exitcode}", flush=True)
            del alive[index]
            if worker.exitcode == 0:
                ended.add(index)
            elif worker.exitcode == -signal.SIGKILL:
                deaths.pop(0)
            elif restarts[index] == RESTARTS:
                for other in alive.values():
                    other.kill()
                raise SystemExit(f"worker {index} was started {RESTARTS} times")
    return restarts


if __name__ == "__main__":
    pairs = [tuple(map(int, death.split(":"))) for death in args.deaths]
    run("whole", [])
    print("RESTARTS" + json.dumps(run("broken", pairs)))
