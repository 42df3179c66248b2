"""Relations between times that hold on any machine; slow, since they need it to themselves."""

import time

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert import BertBackbone, BertClassifier, BertClassifierPreprocessor, BertTokenizer

pytestmark = pytest.mark.slow
LETTERS = "abcdefghijklmnopqrstuvwxyz"
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *(f"##{c}" for c in LETTERS)]


def classifier(sequence_length, size="L4_H256"):
    preprocessor = BertClassifierPreprocessor(
        BertTokenizer(VOCABULARY), sequence_length=sequence_length, padding="full"
    )
    backbone = BertBackbone.from_size(size, len(VOCABULARY))
    return BertClassifier(backbone, num_classes=2, preprocessor=preprocessor)


def texts(count):
    rng = np.random.default_rng(3)
    return [
        " ".join("".join(rng.choice(list(LETTERS), rng.integers(2, 7))) for _ in range(40))
        for _ in range(count)
    ]


class Steps(keras.callbacks.Callback):
    """Keeps the times at which steps are done."""

    def on_train_begin(self, logs=None):
        self.times = []

    def after_step(self, logs):
        self.model.counters.read()  # waits for the device
        self.times.append(time.perf_counter())

    def median(self):
        return np.median(np.diff(self.times)[3:])


def test_strings_keep_the_step_no_longer_than_ids():
    rows = texts(32 * 10)
    labels = np.arange(len(rows)) % 2
    model = classifier(128)
    model.compile(learning_rate=1e-4, packing=False)
    strings = tf.data.Dataset.from_tensor_slices((rows, labels)).batch(32)
    ids = strings.map(lambda x, y: (model.preprocessor(x), y)).cache()
    list(ids)
    clock, medians = Steps(), {}
    for name, dataset in (("ids", ids), ("strings", strings)) * 2:
        model.fit(dataset, epochs=1, callbacks=[clock], verbose=0)
        medians[name] = min(clock.median(), medians.get(name, np.inf))
    assert medians["strings"] <= 1.2 * medians["ids"], medians


def test_short_sequences_are_short_in_the_model_too():
    rows, best = texts(96), {}  # so many that the start of the pipeline counts for little
    for length in (128, 512):
        model = classifier(length)
        states = model.backbone(model.preprocessor(rows[:3]))["sequence_output"]
        assert states.shape == (3, length, 256)
        seconds = []
        for _ in range(3):
            start = time.perf_counter()
            model.predict(rows, batch_size=12, verbose=0)
            seconds.append(time.perf_counter() - start)
        best[length] = min(seconds[1:])
    assert best[512] >= 2.5 * best[128], best
