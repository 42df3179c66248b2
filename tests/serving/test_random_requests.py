"""Requests of random shape, right and wrong: an export lives, and names what it refuses.

`KERAS_BERT_REQUESTS=100000 pytest -m slow tests/serving/test_random_requests.py -s` for more.
"""

import os
import random
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the ops of the graph

from tests.serving.made import make

WORDS = "rain wind harbour froze boats the a [MASK] é 中文 😀 don't \x00 ##s".split(" ")
COUNT = int(os.environ.get("KERAS_BERT_REQUESTS", 2000))
BY_NUMBER = "(zero-based) was expected to be a"
KNOWN_ERRORS = (tf.errors.OpError, TypeError, ValueError)


def resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class Requests:
    """Draws requests for the signatures of a loaded export."""

    def __init__(self, functions: dict, seed: int):
        self.functions = functions
        self.rng = random.Random(seed)

    def draw(self) -> tuple[str, dict]:
        rng = self.rng
        name = rng.choice(sorted(self.functions))
        specs = self.functions[name].structured_input_signature[1]
        inputs = {key: self.value(spec) for key, spec in specs.items()}
        sizes = {int(value.shape[0]) for value in inputs.values() if value.shape.rank}
        if len(sizes) > 1 and rng.random() < 0.9:  # mostly as many rows of each
            rows = min(sizes)
            inputs = {key: v[:rows] if v.shape.rank else v for key, v in inputs.items()}
        if rng.random() < 0.02:
            inputs.pop(rng.choice(sorted(inputs)))
        return name, inputs

    def value(self, spec):
        rng = self.rng
        shape = [rng.choice([0, 1, 2, 4, 7, 13, 14]) if n is None else n for n in spec.shape]
        if spec.shape[0] is None:
            shape[0] = rng.choice([0, 1, 1, 1, 2, 3, 5, 9])
        kind = rng.random()
        shape = shape[:-1] if kind < 0.03 else [*shape, 2] if kind < 0.06 else shape
        dtype = spec.dtype
        if rng.random() < 0.04:
            dtype = rng.choice([tf.int32, tf.string, tf.float32, tf.int64])
        size = int(np.prod(shape, dtype=int))
        if dtype == tf.string:
            return tf.reshape(tf.constant([self.text() for _ in range(size)], tf.string), shape)
        numbers = [rng.choice([0, 1, 1, 2, 5, 9, -1, 99999]) for _ in range(size)]
        return tf.cast(tf.constant(np.array(numbers, "int32").reshape(shape)), dtype)

    def text(self) -> bytes:
        rng = self.rng
        kind = rng.random()
        if kind < 0.05:
            return b""
        if kind < 0.1:
            return bytes(rng.randrange(256) for _ in range(rng.randint(1, 30)))
        if kind < 0.10005:
            return b"word " * 200_000
        if kind < 0.2:
            points = [rng.choice([rng.randrange(32, 0xD800), rng.randrange(0xE000, 0x20000)])
                      for _ in range(rng.randint(1, 40))]  # fmt: skip
            return "".join(map(chr, points)).encode()
        return " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 40))).encode()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["answerer", "tagger"])
def test_requests_of_random_shape(kind, tmp_path):
    make(kind).export(tmp_path / "model")
    functions = dict(tf.saved_model.load(tmp_path / "model").signatures.items())
    requests = Requests(functions, seed=11)
    answered, refused, unnamed, early = 0, 0, [], 0.0
    for number in range(COUNT):
        name, inputs = requests.draw()
        try:
            functions[name](**inputs)
            answered += 1
        except KNOWN_ERRORS as error:
            refused += 1
            names = functions[name].structured_input_signature[1]
            # TensorFlow refuses another dtype before the graph begins, by the input's number.
            if BY_NUMBER not in str(error) and not any(key in str(error) for key in names):
                unnamed.append(str(error)[-300:])
        if number == COUNT // 2:
            early = resident_megabytes()
        if number % 10_000 == 9_999:
            print(number + 1, answered, refused, f"{resident_megabytes():.0f} MB", flush=True)
    assert not unnamed
    assert min(answered, refused) > COUNT / 10
    # A text of 1 MB leaves freed memory behind; a leak of 100 kB a request would show.
    assert resident_megabytes() < early + 200
