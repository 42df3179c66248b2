"""Answers of every task: those of a batch of several requests are those of each request alone."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from keras_bert.server.batching import Batcher
from keras_bert.server.rest import Limits, array_of
from keras_bert.server.served_model import Export
from tests.serving.made import KINDS, TEXTS, asked, make


def jobs_of(export, kind):
    """Requests of one, two and three rows: (signature, inputs) each."""
    for signature, columns in asked(kind, TEXTS).items():
        specs = export.contract["signatures"][signature]["inputs"]
        for rows in (slice(0, 1), slice(1, 3), slice(3, 6)):
            yield (
                signature,
                {n: array_of(columns[n][rows], specs[n], n, Limits()) for n in specs},
            )


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_batches_give_each_request_its_own_answer(kind, tmp_path):
    make(kind).export(tmp_path / "1", verbose=0)
    export = Export(tmp_path / "1")
    jobs = list(jobs_of(export, kind))

    async def together():
        with ThreadPoolExecutor(1) as executor:
            batcher = Batcher(export, executor, 1, 32, 0.01, 1000)
            waiting = [
                batcher.submit(signature, inputs, len(next(iter(inputs.values()))), 1)
                for signature, inputs in jobs
            ]
            return await asyncio.gather(*(job.answer for job in waiting))

    for (signature, inputs), found in zip(jobs, asyncio.run(together()), strict=True):
        alone = export(signature, inputs)
        assert found.keys() == alone.keys()
        for name, value in alone.items():
            if "count" in alone and value.ndim > 1:
                # Beyond `count` there is padding, as wide as the graph likes.
                assert found[name].shape[1] >= alone["count"].max(initial=0)
                value = value[:, : found[name].shape[1]]
            assert found[name].shape == value.shape, (signature, name)
            if value.dtype.kind == "f":
                np.testing.assert_allclose(found[name], value, atol=1e-5)
            else:
                assert found[name].tolist() == value.tolist(), (signature, name)
