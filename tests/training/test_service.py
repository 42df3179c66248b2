"""tf.data service: texts become rows on workers, each once, and a task trains on them."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert import BertBackbone, BertClassifier, BertClassifierPreprocessor, BertTokenizer

WORDS = [a + b for a in "bcdfg" for b in "aeiou"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
service = tf.data.experimental.service


@pytest.fixture(scope="module")
def preprocessor():
    return BertClassifierPreprocessor(BertTokenizer(VOCABULARY), 9, padding="full")


@pytest.fixture
def target():
    """A dispatcher and two workers, in this process."""
    dispatcher = service.DispatchServer()
    address = dispatcher.target.split("://")[1]
    workers = [service.WorkerServer(service.WorkerConfig(address)) for _ in range(2)]
    yield dispatcher.target
    del workers


def on_workers(data, target):
    dynamic = service.ShardingPolicy.DYNAMIC
    return data.apply(service.distribute(processing_mode=dynamic, service=target))


def examples(rows):
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, rng.integers(1, 12))) for _ in range(rows)]
    return tf.data.Dataset.from_tensor_slices((texts, rng.integers(0, 3, rows)))


def test_each_row_is_made_once_by_one_of_two_workers(preprocessor, target):
    data = examples(37).batch(5).map(lambda texts, labels: (preprocessor(texts), labels))
    found = []
    for source in (data, on_workers(data, target)):
        batches = [(x["token_ids"].numpy(), y.numpy()) for x, y in source]
        found.append(sorted((*ids, y) for rows in batches for ids, y in zip(*rows, strict=True)))
    assert len(found[0]) == 37 and found[0] == found[1]


@pytest.mark.slow
def test_a_task_trains_on_what_workers_make(preprocessor, target):
    """Batch by batch, since their order depends on the workers."""
    data = examples(37).batch(5).map(lambda texts, labels: (preprocessor(texts), labels))
    evaluated = []
    for source in (data, on_workers(data, target)):
        keras.utils.set_random_seed(3)
        backbone = BertBackbone(len(VOCABULARY), 1, 3, 21, 11, max_sequence_length=9)
        model = BertClassifier(backbone, num_classes=3)
        model.compile(learning_rate=1e-3)
        evaluated.append(model.evaluate(source, verbose=0, return_dict=True)["loss"])
        history = model.fit(source, epochs=2, verbose=0).history["loss"]
        assert np.isfinite(history).all() and len(history) == 2
    np.testing.assert_allclose(*evaluated, rtol=1e-5)
