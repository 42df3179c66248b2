"""Trains tiny models for ten updates in several ways; run by test_replicas.py.

Writes DIR/CASE.npz with weights, losses and rows seen. A case is TASK-DEVICES-MICROBATCHES, with
-xla behind it where it is compiled, or the name of an optimizer of Keras, which comes with metrics
of Keras and with regularization; "workers" instead of devices trains as TF_CONFIG says.
"""

import functools
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

out, *cases = sys.argv[1:]
cpu = tf.config.list_physical_devices("CPU")[0]
if "TF_CONFIG" not in os.environ:
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 3)

from keras_bert import BertBackbone, BertClassifier, BertPretrainer, training  # noqa: E402

# 29 rows in batches of 12: the last has 5, which neither 2, 3 nor 6 divides.
ROWS, BATCH, T, P, V = 29, 12, 7, 3, 31
rng = np.random.default_rng(3)
lengths = rng.integers(2, T + 1, ROWS)
x = {
    "token_ids": rng.integers(1, V, (ROWS, T)).astype("int32"),
    "segment_ids": rng.integers(0, 2, (ROWS, T)).astype("int32"),
    "padding_mask": (np.arange(T) < lengths[:, None]).astype("int32"),
}
classes = rng.integers(0, 3, ROWS)
weights = rng.choice([0.0, 0.3, 1.0, 2.5], ROWS).astype("float32")
mask_weights = (np.arange(P) < rng.integers(1, P + 1, ROWS)[:, None]).astype("float32")
mask_weights[:4] = 0.0  # whole rows without a target
pretraining_rows = {
    **x,
    "mask_positions": np.sort(rng.integers(0, 2, (ROWS, P)).astype("int32"), axis=1),
    "mask_ids": rng.integers(0, V, (ROWS, P)).astype("int32"),
    "mask_weights": mask_weights,
    "next_sentence_labels": rng.integers(0, 2, ROWS).astype("int32"),
}


class Losses(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.values, self.step_losses = [], []

    def on_train_batch_end(self, batch, logs=None):
        self.values.append(logs["loss"])
        self.step_losses.append(self.model.counters.read()["loss"])


@functools.cache  # collective ops of two strategies in one process would get in each other's way
def make_strategy(devices):
    if devices == "workers":
        strategy = training.strategy("auto")
        assert strategy.num_replicas_in_sync == 2
        return strategy
    if devices == "1":
        return training.strategy("one")
    kind = os.environ.get("KERAS_BERT_TEST_DEVICE", "CPU")
    return training.strategy("mirrored", devices=[f"{kind}:{i}" for i in range(int(devices))])


def train(task, devices, parts, xla=None):
    optimizer = None if xla in (None, "xla") else getattr(keras.optimizers, xla)
    strategy = make_strategy(devices)
    keras.utils.set_random_seed(5)
    with strategy.scope():
        backbone = BertBackbone(
            V, 1, 3, 21, 11, max_sequence_length=13, hidden_dropout=0.0, attention_dropout=0.0
        )
        if task == "classifier":
            model = BertClassifier(backbone, num_classes=3, dropout=0.0)
        else:
            model = BertPretrainer(backbone)
    settings = {"learning_rate": 2e-3, "accumulation_steps": int(parts)}
    settings["jit_compile"] = True if xla == "xla" else "auto"
    if optimizer is not None:  # made outside of the strategy's scope, as users do
        clip = {} if optimizer is keras.optimizers.Muon else {"global_clipnorm": 0.5}
        # Adadelta begins with tiny steps; those of RMSprop and Nadam would make rounding grow.
        rate = {"Adadelta": 1.0, "Nadam": 2e-3, "RMSprop": 2e-3}.get(xla, 2e-2)
        settings["optimizer"] = optimizer(rate, **clip)
        metrics = [keras.metrics.F1Score("macro"), keras.metrics.AUC(), keras.metrics.R2Score()]
        settings["metrics"] = [*metrics, keras.metrics.Precision(class_id=1), "accuracy"]
        model.head.kernel.regularizer = keras.regularizers.L2(0.1)
    model.compile(**settings)
    start = model.get_weights()
    losses = Losses()
    seen = []
    if task == "classifier":
        data = {"x": x, "y": classes, "sample_weight": weights, "batch_size": BATCH}
        model.fit(**data, steps=10, callbacks=[losses], verbose=0)
        evaluated = model.evaluate(**data, verbose=0)  # each row once, whatever divides
        predicted = model.predict(x, batch_size=BATCH, verbose=0)
        source = model.source(x, classes, None, BATCH, shuffle=True)
        place = {tuple(row): i for i, row in enumerate(x["token_ids"])}
        for batch in strategy.experimental_distribute_dataset(source.one_pass()):
            ids = strategy.experimental_local_results(batch[0]["token_ids"])
            real = strategy.experimental_local_results(batch[2]) if len(batch) > 2 else ids
            for rows, kept in zip(ids, real, strict=True):
                kept = np.asarray(kept).reshape(len(kept), -1).any(axis=1)
                seen += [place[tuple(row)] for row in np.asarray(rows)[kept]]
    else:
        dataset = tf.data.Dataset.from_tensor_slices(pretraining_rows).batch(BATCH)
        model.fit(dataset, steps=10, callbacks=[losses], verbose=0)
        evaluated = model.evaluate(dataset, verbose=0)
        predicted = model.predict(dataset, verbose=0)["nsp"]
    counts = model.counters.read()
    return {
        "losses": np.array(losses.values, "float64"),
        "step_losses": np.array(losses.step_losses, "float64"),
        "evaluated": np.array(evaluated, "float64"),
        "predicted": predicted,
        "counts": np.array([counts[name] for name in ("rows", "tokens", "steps")]),
        "seen": np.array(seen),
        **{f"weight{i:03d}": w for i, w in enumerate(model.get_weights())},
        **{f"start.weight{i:03d}": w for i, w in enumerate(start)},
    }


for case in cases:
    arrays = train(*case.split("-"))
    np.savez(os.path.join(out, f"{case}.npz"), **arrays)
    print(case, "done", flush=True)
