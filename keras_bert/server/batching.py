"""Batches across requests: rows of like length of one signature, within a deadline."""

import asyncio
import math
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

Outputs = dict[str, np.ndarray]
_LEAST = 4  # rows of a part of a job


class QueueFullError(Exception):
    """There is no room in the queue for a request."""


@dataclass(eq=False)
class Job:
    """One request in the queue.

    Attributes:
        signature: the signature to call.
        inputs: arrays by name.
        rows: size of axis 0.
        length: of its longest text, by which jobs are put together.
        answer: a future of the outputs.
        parts: jobs of some of its rows each, which wait in its place; or none.
        since: when it came, by the monotonic clock.
    """

    signature: str
    inputs: dict[str, np.ndarray]
    rows: int
    length: int
    answer: asyncio.Future
    parts: "list[Job]" = field(default_factory=list)
    since: float = field(default_factory=time.monotonic)

    @property
    def key(self) -> tuple:
        """Jobs of one key can be joined along axis 0."""
        return (self.signature, *(value.shape[1:] for value in self.inputs.values()))


class Batcher:
    """A bounded queue before a model, whose jobs are run in batches in threads.

    With one thread, a batch starts when it is free and `max_batch_size` rows of one key wait, or
    `max_wait` seconds after there were both a job and a free thread: the clients of the batch
    before have just been answered then, and their next requests join. It starts at once when the
    number of jobs reaches that of these clients: no more are to be expected.

    Several threads share the rows in work. A batch starts as soon as a thread is free, and takes
    half of that thread's share: the other half waits meanwhile, so that the next batch can start
    when this one ends, and has rows of like length to choose from. A job of many rows is divided
    between the threads where `divides` allows it.

    A batch consists of the oldest job and those whose length is nearest. A job of `max_batch_size`
    rows or more is a batch of its own. All methods are called from the event loop.

    Args:
        call: computes the outputs of a signature, (signature, inputs) -> arrays by name; it is
            called in a thread.
        executor: its threads.
        threads: maximum number of batches run at the same time.
        max_batch_size: maximum number of rows in a batch of several jobs.
        max_wait: seconds.
        max_queue: maximum number of rows that wait, beyond which jobs are refused.
        ran: called with the number of rows and the seconds of each batch.
        divides: whether answers of a signature are the same, in shape too, if the rows of a job are
            run apart.
    """

    def __init__(
        self,
        call: Callable[[str, dict[str, np.ndarray]], Outputs],
        executor: Executor,
        threads: int,
        max_batch_size: int,
        max_wait: float,
        max_queue: int,
        ran: Callable[[int, float], None] = lambda rows, seconds: None,
        divides: Callable[[str], bool] = lambda signature: False,
    ):
        self._call, self._executor, self._divides = call, executor, divides
        self._threads = self._free = threads
        self._max_batch_size, self._max_wait = max_batch_size, max_wait
        self._max_queue, self._ran = max_queue, ran
        self._waiting: dict[tuple, list[Job]] = {}
        self._rows = self._in_work = 0  # those that wait; those and the ones that run
        self._freed = 0.0
        # Jobs: as many as clients, each of which sends its next when it is answered.
        self._expected = math.inf
        self._timer: asyncio.TimerHandle | None = None
        self._running: set[asyncio.Task] = set()

    @property
    def waiting(self) -> int:
        """Number of rows in the queue."""
        return self._rows

    def submit(self, signature: str, inputs: dict[str, np.ndarray], rows: int, length: int) -> Job:
        """Puts a request into the queue; await the `answer` of the job.

        Args:
            signature, inputs, rows, length: as `Job`.

        Raises:
            QueueFullError: if too many rows wait. A request into an empty queue is always taken.
        """
        if self._rows and self._rows + rows > self._max_queue:
            raise QueueFullError(f"{self._rows} rows wait")
        loop = asyncio.get_running_loop()
        job = Job(signature, inputs, rows, length, loop.create_future())
        size = min(max(-(-rows // self._threads), _LEAST), self._max_batch_size)
        if self._threads > 1 and rows > size and self._divides(signature):
            for start in range(0, rows, size):
                some = {name: value[start : start + size] for name, value in inputs.items()}
                count = min(size, rows - start)
                job.parts.append(Job(signature, some, count, length, loop.create_future()))
                job.parts[-1].answer.add_done_callback(partial(self._join, job))
        waiting = self._waiting.setdefault(job.key, [])
        waiting += job.parts or [job]
        self._rows += max(rows, 1)
        self._in_work += max(rows, 1)
        self._start_batches()
        return job

    def give_up(self, job: Job) -> bool:
        """Drops a job whose client is gone; tells whether it waited, so that it is not computed."""
        job.answer.cancel()
        return self._drop(job)

    async def drained(self) -> None:
        """Returns when no job waits or runs."""
        while self._running or self._rows:
            if self._running:
                await asyncio.wait(self._running)
            else:
                await asyncio.sleep(self._max_wait or 0.001)

    def _drop(self, job: Job) -> bool:
        """Takes a job out of the queue; tells whether anything of it waited there."""
        own = job.parts or [job]
        waiting = [one for one in self._waiting.get(job.key, []) if one in own]
        if waiting:
            self._remove(waiting)
            self._in_work -= _rows_in(waiting)
        return bool(waiting)

    def _join(self, job: Job, answer: asyncio.Future) -> None:
        """Answers a job when its parts are answered, or one of them has failed."""
        error = answer.exception()  # retrieved of every part, or asyncio would log it
        if job.answer.done():
            return
        if error is not None:
            self._drop(job)
            job.answer.set_exception(error)
        elif all(part.answer.done() and not part.answer.exception() for part in job.parts):
            found = [part.answer.result() for part in job.parts]
            job.answer.set_result(
                {n: np.concatenate([part[n] for part in found]) for n in found[0]}
            )

    def _remove(self, jobs: list[Job]) -> None:
        key = jobs[0].key
        left = [job for job in self._waiting[key] if job not in jobs]
        if left:
            self._waiting[key] = left
        else:
            del self._waiting[key]
        self._rows -= _rows_in(jobs)

    def _start_batches(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._free and self._waiting:
            now, full = time.monotonic(), self._max_batch_size
            if self._threads > 1:
                full = min(full, -(-self._in_work // (2 * self._threads)))
                due = {key: group[0].since for key, group in self._waiting.items()}
            else:
                every = sum(map(len, self._waiting.values())) >= self._expected
                due = {
                    key: group[0].since
                    if every or sum(job.rows for job in group) >= full
                    else max(group[0].since, self._freed) + self._max_wait
                    for key, group in self._waiting.items()
                }
            ripe = [key for key in due if due[key] <= now]
            if not ripe:
                delay = min(due.values()) - now
                self._timer = asyncio.get_running_loop().call_later(delay, self._start_batches)
                return
            oldest = min(ripe, key=lambda key: self._waiting[key][0].since)
            jobs = self._chosen(self._waiting[oldest], full)
            self._remove(jobs)
            self._free -= 1
            task = asyncio.create_task(self._run(jobs))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    def _chosen(self, group: list[Job], full: int) -> list[Job]:
        first, *others = group
        chosen, rows = [first], first.rows
        others.sort(key=lambda job: abs(job.length - first.length))  # stable: the older first
        for job in others:
            if rows + job.rows <= full:
                chosen.append(job)
                rows += job.rows
        return chosen

    async def _run(self, jobs: list[Job]) -> None:
        loop = asyncio.get_running_loop()
        begun = time.monotonic()
        try:
            answers = await loop.run_in_executor(self._executor, self._answers, jobs)
        finally:
            if not self._free:
                self._freed = time.monotonic()
                self._expected = len(jobs) + sum(map(len, self._waiting.values()))
            self._free += 1
            self._in_work -= _rows_in(jobs)
            self._start_batches()
        self._ran(sum(job.rows for job in jobs), time.monotonic() - begun)
        for job, answer in zip(jobs, answers, strict=True):
            if job.answer.done():  # its client is gone
                continue
            if isinstance(answer, Exception):
                job.answer.set_exception(answer)
            else:
                job.answer.set_result(answer)

    def _answers(self, jobs: list[Job]) -> list[Outputs | Exception]:
        """Runs a batch; if it fails, each job alone, so that one cannot spoil the others."""
        try:
            joined = {
                name: np.concatenate([job.inputs[name] for job in jobs]) for name in jobs[0].inputs
            }
            outputs = self._call(jobs[0].signature, joined)
        except Exception as error:
            if len(jobs) == 1:
                return [error]
            return [answer for job in jobs for answer in self._answers([job])]
        if len(jobs) == 1:
            return [outputs]
        ends = np.cumsum([job.rows for job in jobs])
        return [_rows_of(outputs, end - job.rows, end) for job, end in zip(jobs, ends, strict=True)]


def _rows_in(jobs: list[Job]) -> int:
    """Rows of jobs; one without rows takes a place too."""
    return sum(max(job.rows, 1) for job in jobs)


def _rows_of(outputs: Outputs, start: int, end: int) -> Outputs:
    """Some rows of outputs, without the padding that only others of the batch need.

    Answers of which a row has several are padded to the row with the most; `count` beside them
    holds the numbers.
    """
    found: dict[str, Any] = {name: value[start:end] for name, value in outputs.items()}
    count = found.get("count")
    if count is not None and count.ndim == 1:
        width = int(count.max(initial=0))
        full = int(outputs["count"].max(initial=0))
        for name, value in found.items():
            if value.ndim > 1 and value.shape[1] == full:
                found[name] = value[:, :width]
    return found
