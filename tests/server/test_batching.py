"""Batches across requests: joined, split again, bounded, given up. Without TensorFlow."""

import asyncio
import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from keras_bert.server.batching import Batcher, QueueFullError


class Model:
    """Answers with the lengths of its texts; waits for a gate; records its batches."""

    def __init__(self):
        self.gate, self.batches, self.entered = threading.Event(), [], threading.Semaphore(0)

    def __call__(self, signature, inputs):
        texts = inputs["text"].tolist()
        self.batches.append((signature, texts))
        self.entered.release()
        self.gate.wait(3600)
        if b"bad" in texts:
            raise ValueError("bad text")
        counts = np.array([text.count(b"a") for text in texts], np.int32)
        found = np.full([len(texts), max(counts, default=0)], -1)
        for row, count in enumerate(counts):
            found[row, :count] = np.arange(count)
        return {"size": np.array([len(t) for t in texts]), "count": counts, "place": found}

    async def was_entered(self):
        await asyncio.get_running_loop().run_in_executor(None, self.entered.acquire)


def batched(test, **settings):
    """Runs a coroutine with a batcher and its model."""
    chosen = {"threads": 1, "max_batch_size": 4, "max_wait": 0.0, "max_queue": 100} | settings
    model = Model()

    async def main():
        with ThreadPoolExecutor(chosen["threads"]) as executor:
            try:
                await test(Batcher(model, executor, **chosen), model)
            finally:
                model.gate.set()

    asyncio.run(main())


def submit(batcher, *texts, signature="default"):
    values = np.array([text.encode() for text in texts], object)
    return batcher.submit(signature, {"text": values}, len(texts), max(map(len, texts), default=0))


def test_waiting_jobs_are_joined_and_each_gets_its_own_rows():
    async def test(batcher, model):
        first = submit(batcher, "x")
        await model.was_entered()
        others = [submit(batcher, "aa", "a"), submit(batcher, "abcd")]
        model.gate.set()
        answers = [await job.answer for job in (first, *others)]
        assert [batch for _, batch in model.batches] == [[b"x"], [b"aa", b"a", b"abcd"]]
        assert [a["size"].tolist() for a in answers] == [[1], [2, 1], [4]]
        # As wide as if each had been asked alone.
        assert [a["place"].tolist() for a in answers] == [[[]], [[0, 1], [0, -1]], [[0]]]

    batched(test)


def test_a_batch_starts_when_it_is_full_or_the_longest_wait_is_over():
    async def test(batcher, model):
        model.gate.set()
        jobs = [submit(batcher, "a") for _ in range(3)]
        await asyncio.sleep(0)
        assert model.batches == [] and batcher.waiting == 3
        jobs.append(submit(batcher, "a"))  # the fourth fills it: no wait of an hour
        await asyncio.wait([job.answer for job in jobs])
        assert len(model.batches) == 1 and batcher.waiting == 0

    batched(test, max_wait=3600.0)

    async def short(batcher, model):
        model.gate.set()
        await submit(batcher, "a").answer
        assert len(model.batches) == 1

    batched(short, max_wait=0.001)


def test_nobody_waits_for_more_clients_than_there_are():
    async def test(batcher, model):
        model.gate.set()
        await submit(batcher, "a", "a", "a", "a").answer  # full
        await submit(batcher, "aa").answer  # the one client: no wait of an hour
        model.gate.clear()
        alone = submit(batcher, "a")
        for _ in range(3):
            await model.was_entered()
        others = [submit(batcher, "aa") for _ in range(2)]  # clients two and three
        model.gate.set()
        await alone.answer
        await asyncio.sleep(0)
        assert len(model.batches) == 3 and batcher.waiting == 2
        again = submit(batcher, "a")
        await asyncio.wait([job.answer for job in (*others, again)])
        assert [len(texts) for _, texts in model.batches] == [4, 1, 1, 3]

    batched(test, max_wait=3600.0)


def test_the_oldest_goes_first_with_those_of_like_length():
    async def test(batcher, model):
        submit(batcher, "first")
        await model.was_entered()
        jobs = [submit(batcher, "x" * length) for length in (20, 3, 21, 4, 60, 19, 22)]
        model.gate.set()
        await asyncio.wait([job.answer for job in jobs])
        sizes = [sorted(map(len, texts)) for _, texts in model.batches[1:]]
        assert sizes == [[19, 20, 21, 22], [3, 4, 60]]

    batched(test)


def test_signatures_and_shapes_are_not_mixed():
    async def test(batcher, model):
        submit(batcher, "first")
        await model.was_entered()
        jobs = [submit(batcher, "a", signature=name) for name in ("one", "two", "one")]
        model.gate.set()
        await asyncio.wait([job.answer for job in jobs])
        assert [(name, len(texts)) for name, texts in model.batches[1:]] == [("one", 2), ("two", 1)]

    batched(test)


def test_large_and_empty_jobs_run_alone():
    async def test(batcher, model):
        model.gate.set()
        found = await asyncio.gather(*(submit(batcher, *["a"] * n).answer for n in (9, 0, 2)))
        assert [len(answer["size"]) for answer in found] == [9, 0, 2]
        assert len(model.batches[0][1]) == 9

    batched(test)


def test_a_full_queue_refuses_and_takes_again_later():
    async def test(batcher, model):
        running = submit(batcher, "a")
        await model.was_entered()
        waiting = [submit(batcher, "a", "a"), submit(batcher, "a")]
        with pytest.raises(QueueFullError):
            submit(batcher, "a")
        model.gate.set()
        await asyncio.wait([job.answer for job in (running, *waiting)])
        assert (await submit(batcher, "a").answer)["size"].tolist() == [1]
        # Into an empty queue goes a job of more rows than the limit.
        assert len((await submit(batcher, *"abcdefg").answer)["size"]) == 7

    batched(test, max_queue=3)


def test_a_job_that_is_given_up_is_not_computed():
    async def test(batcher, model):
        running = submit(batcher, "running")
        await model.was_entered()
        kept, gone = submit(batcher, "kept"), submit(batcher, "gone")
        assert batcher.give_up(gone) and not batcher.give_up(running)
        assert batcher.waiting == 1
        model.gate.set()
        await kept.answer
        await batcher.drained()
        assert [texts for _, texts in model.batches] == [[b"running"], [b"kept"]]
        assert gone.answer.cancelled()

    batched(test)


def test_an_error_is_that_of_its_own_job():
    async def test(batcher, model):
        submit(batcher, "first")
        await model.was_entered()
        jobs = [submit(batcher, text) for text in ("good", "bad", "fine")]
        model.gate.set()
        found = await asyncio.gather(*(job.answer for job in jobs), return_exceptions=True)
        assert found[0]["size"].tolist() == [4] and found[2]["size"].tolist() == [4]
        assert isinstance(found[1], ValueError)

    batched(test)


def test_several_threads_share_the_rows_and_leave_half_of_them_to_wait():
    async def test(batcher, model):
        lengths = [1, 1, 20, 3, 21, 4, 60, 19, 22, 5, 6, 40, 41, 7, 8, 9]
        jobs = [submit(batcher, "x" * length) for length in lengths]
        await model.was_entered()
        await model.was_entered()
        # Two threads had nothing else to do; the others wait, without a timer.
        assert [len(texts) for _, texts in model.batches] == [1, 1] and batcher.waiting == 14
        model.gate.set()
        await asyncio.wait([job.answer for job in jobs])
        sizes = [sorted(map(len, texts)) for _, texts in model.batches[2:]]
        assert sizes[0] == [19, 20, 21, 22]  # a quarter of 15 rows: the oldest, and its like
        assert max(map(len, sizes)) == 4 and sum(map(len, sizes)) == 14

    batched(test, threads=2, max_batch_size=32, max_wait=3600.0)


def divided(test, **settings):
    batched(test, **{"threads": 2, "divides": lambda signature: signature == "default"} | settings)


def test_a_large_job_is_divided_between_threads():
    async def test(batcher, model):
        job = submit(batcher, *("x" * n for n in range(11)))
        whole = submit(batcher, *"abcdefghi", signature="other")
        model.gate.set()
        assert (await job.answer)["size"].tolist() == list(range(11))
        assert len((await whole.answer)["size"]) == 9
        await batcher.drained()
        found = sorted((name, len(texts)) for name, texts in model.batches)
        assert found == [("default", 5), ("default", 6), ("other", 9)]

    divided(test, max_batch_size=8)


def test_a_divided_job_fails_and_is_given_up_as_a_whole():
    async def test(batcher, model):
        wrong = submit(batcher, *["good"] * 3, "bad", *["good"] * 16)
        await model.was_entered()
        await model.was_entered()
        gone, fine = submit(batcher, *["gone"] * 12), submit(batcher, "fine")
        assert batcher.waiting == 25 and batcher.give_up(gone) and batcher.waiting == 13
        model.gate.set()
        with pytest.raises(ValueError, match="bad text"):
            await wrong.answer
        assert (await fine.answer)["size"].tolist() == [4]
        await batcher.drained()
        assert batcher.waiting == 0 and gone.answer.cancelled()
        assert not any(b"gone" in texts for _, texts in model.batches)
        assert (await submit(batcher, "a").answer)["size"].tolist() == [1]

    divided(test)


@pytest.mark.parametrize("order", [1, -1])
def test_a_job_that_fails_in_several_parts_is_reported_once(order):
    async def test(batcher, model):
        logged = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, said: logged.append(said))
        wrong = submit(batcher, *["bad"] * 8)
        await model.was_entered()
        await model.was_entered()
        for part in wrong.parts[::order]:  # at once, before the loop can tell of the first
            part.answer.set_exception(ValueError("bad text"))
        with pytest.raises(ValueError, match="bad text"):
            await wrong.answer
        model.gate.set()
        await batcher.drained()
        del wrong, part
        gc.collect()  # asyncio logs exceptions that nobody retrieved when their futures go
        assert len(model.batches) == 2 and not logged

    divided(test)


def test_draining_waits_for_all_jobs():
    async def test(batcher, model):
        jobs = [submit(batcher, "a" * n) for n in range(9)]
        draining = asyncio.create_task(batcher.drained())
        await model.was_entered()
        assert not draining.done()
        model.gate.set()
        await draining
        assert all(job.answer.done() for job in jobs)

    batched(test)
