"""Metrics, losses, weights and optimizers of all tasks, beside Keras's own and scikit-learn's."""

import keras
import numpy as np
import pytest
import sklearn.metrics

from keras_bert import (
    BertBackbone,
    BertClassifier,
    BertMaskedLM,
    BertMultipleChoice,
    BertPretrainer,
    BertQuestionAnswerer,
    BertRelationClassifier,
    BertTextEmbedder,
    BertTokenClassifier,
)

V, T, N = 31, 6, 10
TASKS = {
    "classifier": lambda b: BertClassifier(b, 3),
    "two classes": lambda b: BertClassifier(b, 2),
    "multi-label": lambda b: BertClassifier(b, 3, problem="multi_label"),
    "regression": lambda b: BertClassifier(b, 2, problem="regression"),
    "tagger": lambda b: BertTokenClassifier(b, 3),
    "chain": lambda b: BertTokenClassifier(b, 3, crf=True),
    "relations": lambda b: BertRelationClassifier(b, 3),
    "answers": BertQuestionAnswerer,
    "choices": BertMultipleChoice,
    "pairs": lambda b: BertTextEmbedder(b, loss="cosine"),
    "contrastive": lambda b: BertTextEmbedder(b, loss="contrastive"),
    "masked": BertMaskedLM,
    "pretrainer": BertPretrainer,
}


def make(task, **backbone):
    keras.utils.set_random_seed(3)
    settings = {"hidden_dropout": 0.0, "attention_dropout": 0.0} | backbone
    # A wide range of weights, so that predictions are of several classes.
    encoder = BertBackbone(V, 1, 2, 8, 12, max_sequence_length=T, initializer_range=0.7, **settings)
    model = TASKS[task](encoder)
    for layer in model._flatten_layers():
        if layer.name == "head_dropout":
            layer.rate = 0.0
    return model


def ids(*shape, seed=0):
    rng = np.random.default_rng(seed)
    mask = np.ones((*shape, T), "int32")
    mask[..., 4:] = rng.integers(0, 2, (*shape, 1))
    return {
        "token_ids": rng.integers(0, V, (*shape, T)).astype("int32"),
        "segment_ids": np.zeros((*shape, T), "int32"),
        "padding_mask": mask,
    }


def data(task, seed=0):
    """(x, y) of N rows."""
    rng = np.random.default_rng(seed)
    x = ids(*{"choices": (N, 3), "pairs": (N, 2), "contrastive": (N, 2)}.get(task, (N,)))
    if task in ("classifier", "relations", "choices"):
        y = rng.integers(0, 3, N)
    elif task == "two classes":
        y = rng.integers(0, 2, N)
    elif task == "multi-label":
        y = rng.integers(0, 2, (N, 3))
    elif task == "regression":
        y = rng.normal(size=(N, 2)).astype("float32")
    elif task in ("tagger", "chain"):
        y = np.where(x["padding_mask"] == 1, rng.integers(0, 3, (N, T)), -1).astype("int32")
        y[:, 0] = -1
    elif task == "answers":
        y = np.sort(rng.integers(0, 4, (N, 2)), axis=1).astype("int32")
    elif task == "pairs":
        y = rng.uniform(-1, 1, N).astype("float32")
    else:
        y = None
    if task == "relations":
        x["entity_positions"] = np.tile(np.int32([[1, 2]]), (N, 1))
    if task in ("masked", "pretrainer"):
        import tensorflow as tf

        x |= {
            "mask_positions": np.tile(np.int32([[1, 3]]), (N, 1)),
            "mask_ids": rng.integers(0, V, (N, 2)).astype("int32"),
            "mask_weights": rng.integers(0, 2, (N, 2)).astype("float32"),
        }
        if task == "pretrainer":
            x["next_sentence_labels"] = rng.integers(0, 2, N).astype("int32")
        return tf.data.Dataset.from_tensor_slices(x).batch(4), None
    return x, y


def run(model, task, weights=None, verb="evaluate", **kwargs):
    x, y = data(task)
    if task not in ("masked", "pretrainer"):
        kwargs |= {"batch_size": 4, "sample_weight": weights}
    if verb == "evaluate":
        return model.evaluate(x, y, verbose=0, return_dict=True, **kwargs)
    found = model.fit(x, y, verbose=0, shuffle=False, **kwargs).history
    return {name: values[-1] for name, values in found.items()}


# === Metrics ===

M = keras.metrics
EVERY = {
    cls.__name__: cls
    for cls in (getattr(M, name) for name in dir(M))
    if isinstance(cls, type) and issubclass(cls, M.Metric)
}
del EVERY["Metric"], EVERY["MeanMetricWrapper"]  # are made of others
ARGUMENTS = {
    "IoU": {"num_classes": 3, "target_class_ids": [0, 1]},
    "OneHotIoU": {"num_classes": 3, "target_class_ids": [0, 1]},
    "MeanIoU": {"num_classes": 3},
    "OneHotMeanIoU": {"num_classes": 3},
    "BinaryIoU": {"target_class_ids": [0, 1]},
    "SensitivityAtSpecificity": {"specificity": 0.4},
    "SpecificityAtSensitivity": {"sensitivity": 0.4},
    "PrecisionAtRecall": {"recall": 0.4},
    "RecallAtPrecision": {"precision": 0.4},
}
# How many of them have a meaning for an output; the others are refused.
COUNTS = {"classifier": 40, "two classes": 40, "tagger": 40, "chain": 40, "relations": 40}
COUNTS |= {"multi-label": 30, "regression": 9, "pairs": 9, "contrastive": 0}
COUNTS |= {"answers": 9, "choices": 9, "masked": 9, "pretrainer": 40}


def metric(name):
    return EVERY[name](name=name, **ARGUMENTS.get(name, {}))


def by_output(task, metrics):
    name = {"answers": "start", "masked": "mlm", "pretrainer": "nsp"}.get(task)
    return {name: metrics} if name else metrics


@pytest.fixture(scope="module")
def with_all_metrics():
    """A function from a task to (a model compiled with every metric that it takes, their names)."""
    made = {}

    def get(task):
        if task not in made:
            model, taken = make(task), []
            for name in EVERY:
                try:
                    model.compile(metrics=by_output(task, [metric(name)]))
                    taken.append(name)
                except ValueError as error:
                    assert f"metrics: {name} " in str(error)
            model.compile(metrics=by_output(task, [metric(name) for name in taken]))
            made[task] = model, taken
        return made[task]

    return get


@pytest.mark.one_quick
@pytest.mark.parametrize("task", TASKS)
def test_every_metric_of_keras_works_or_is_refused_by_name(task, with_all_metrics):
    model, taken = with_all_metrics(task)
    assert len(taken) == COUNTS[task], taken
    found = run(model, task)
    prefix = {"answers": "start_", "pretrainer": "nsp_"}.get(task, "")
    assert {prefix + name for name in taken} <= found.keys()
    numbers = {name: value for name, value in found.items() if not name.endswith("Poisson")}
    assert all(np.isfinite(value).all() for value in numbers.values()), numbers


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_every_metric_trains_in_micro_batches_and_on_xla(task, with_all_metrics):
    model, taken = with_all_metrics(task)
    metrics = by_output(task, [metric(name) for name in taken])
    evaluated = run(model, task)
    for settings in ({"accumulation_steps": 2}, {"jit_compile": True}, {"run_eagerly": True}):
        model.compile(keras.optimizers.SGD(0.0), metrics=metrics, **settings)
        trained = run(model, task, verb="fit")
        for name, value in evaluated.items():
            if task != "contrastive":  # whose loss depends on what shares a micro-batch
                np.testing.assert_allclose(trained[name], value, rtol=1e-4, err_msg=name)


def softmax(logits):
    exponents = np.exp(logits - logits.max(-1, keepdims=True))
    return exponents / exponents.sum(-1, keepdims=True)


@pytest.mark.thorough
def test_metrics_of_a_yes_or_no_read_class_1_as_scikit_learn():
    model = make("two classes")
    x, y = data("two classes")
    chance = softmax(model.predict(x, verbose=0).astype("float64"))[:, 1]
    chosen = chance > 0.5
    assert 0 < chosen.sum() < N
    metrics = [M.Precision(), M.Recall(), M.BinaryAccuracy(), M.AUC(num_thresholds=4001)]
    metrics += [M.AUC(num_thresholds=4001, from_logits=True, name="of_logits"), M.F1Score()]
    metrics += [M.BinaryCrossentropy(), M.BinaryCrossentropy(from_logits=True, name="same")]
    metrics += [M.TruePositives(), M.Precision(class_id=0, name="of_class_0"), "accuracy"]
    metrics += [M.AUC(num_thresholds=4001, multi_label=True, name="of_both")]
    model.compile(metrics=metrics)
    weights = np.array([1, 2, 0, 1, 0.5, 1, 3, 1, 1, 1])
    found = run(model, "two classes", weights)
    scores, given = sklearn.metrics, {"sample_weight": weights}
    loss = scores.log_loss(y, chance, **given)
    expected = {
        "precision": scores.precision_score(y, chosen, **given),
        "recall": scores.recall_score(y, chosen, **given),
        "binary_accuracy": scores.accuracy_score(y, chosen, **given),
        "accuracy": scores.accuracy_score(y, chosen, **given),
        "auc": scores.roc_auc_score(y, chance, **given),
        "of_logits": scores.roc_auc_score(y, chance, **given),
        "of_both": scores.roc_auc_score(y, chance, **given),
        "f1_score": scores.f1_score(y, chosen, average=None, **given),
        "binary_crossentropy": loss,
        "same": loss,
        "loss": loss,
        "true_positives": (weights * (y * chosen)).sum(),
        "of_class_0": scores.precision_score(1 - y, ~chosen, **given),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=2e-4, atol=1e-5, err_msg=name)


@pytest.mark.one_quick
@pytest.mark.parametrize("task", ["classifier", "relations", "tagger", "multi-label"])
def test_metrics_are_those_of_a_plain_model_with_probabilities_and_one_hot_labels(
    task, with_all_metrics
):
    model, taken = with_all_metrics(task)
    x, y = data(task)
    weights = np.random.default_rng(1).integers(0, 3, N) / 2
    found = run(model, task, weights)
    logits = model.predict(x, verbose=0).reshape(-1, 3)
    per_label = np.ones_like(y) if task == "tagger" else np.ones(N)
    weights = (per_label.T * weights).T.reshape(-1)
    chance = softmax(logits)
    if task == "multi-label":
        chance, one_hot = 1 / (1 + np.exp(-logits)), y.astype("float32")
    else:
        y = y.reshape(-1)
        real = y >= 0
        logits, chance, weights, y = logits[real], chance[real], weights[real], y[real]
        one_hot = np.eye(3, dtype="float32")[y]
    for name in taken:
        labels, outputs = one_hot, chance
        if name.startswith("Sparse"):
            labels = y
        elif name in ("Accuracy", "IoU", "MeanIoU"):
            several = task == "multi-label"
            labels, outputs = (y, chance > 0.5) if several else (y, chance.argmax(-1))
        elif "Hinge" in name:
            outputs = logits
        kept = weights
        by_element = ("AUC", "True", "False", "Precision", "Recall", "Sensi", "Speci", "BinaryIoU")
        if name.startswith(by_element) or (task == "multi-label" and "IoU" in name):
            kept = np.repeat(weights, 3)
            labels, outputs = labels.reshape(-1), outputs.reshape(-1)
        elif name == "Accuracy" and task == "multi-label":
            kept = np.repeat(weights, 3)
            labels, outputs = labels.reshape(-1), outputs.reshape(-1)
        peer = metric(name)
        if "IoU" in name:
            peer = EVERY[name](dtype="float32", **ARGUMENTS[name])
        peer.update_state(labels, outputs, sample_weight=kept)
        expected = np.asarray(peer.result())
        np.testing.assert_allclose(found[name], expected, rtol=1e-4, atol=1e-6, err_msg=name)


def test_metrics_of_pairs_read_cosines():
    model = make("pairs")
    x, y = data("pairs")
    model.compile(metrics=["mae", M.R2Score()])
    found = run(model, "pairs")
    vectors = model.predict(x, verbose=0).astype("float64")
    vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
    cosine = (vectors[:, 0] * vectors[:, 1]).sum(-1)
    np.testing.assert_allclose(found["mae"], np.abs(cosine - y).mean(), rtol=1e-5)
    r2 = sklearn.metrics.r2_score(y, cosine)
    np.testing.assert_allclose(found["r2_score"], r2, rtol=1e-4)


class Mine(M.Metric):
    """Makes its variable at the first batch, and sees what it is given."""

    total = None

    def update_state(self, y_true, y_pred, sample_weight=None):
        if self.total is None:
            self.total = self.add_variable((y_pred.shape[-1],), "zeros", name="total")
        self.total.assign(self.total + keras.ops.sum(y_pred, axis=0))

    def result(self):
        return self.total


@pytest.mark.thorough
def test_metrics_of_ones_own_get_labels_and_outputs_as_they_are():
    def rows(y_true, y_pred):
        assert len(y_true.shape) == 1
        return keras.ops.mean(y_pred, axis=-1)

    model = make("classifier")
    x, _ = data("classifier")
    model.compile(keras.optimizers.SGD(0.0), metrics=[Mine(), rows])
    logits = model.predict(x, verbose=0)
    trained = run(model, "classifier", verb="fit")
    for found in (run(model, "classifier"), trained):
        np.testing.assert_allclose(found["mine"], logits.sum(axis=0), rtol=1e-4)
        np.testing.assert_allclose(found["rows"], logits.mean(), rtol=1e-4)


@pytest.mark.one_quick
@pytest.mark.parametrize("none", [None, []])
def test_no_metrics_are_none(none):
    model = make("classifier")
    model.compile(metrics=none)
    assert run(model, "classifier").keys() == {"loss"}
    model = make("answers")
    model.compile(metrics=none)
    assert run(model, "answers").keys() == {"loss", "start_loss", "end_loss"}


@pytest.mark.thorough
def test_metrics_and_losses_come_back_from_a_keras_file(tmp_path):
    model = make("classifier")
    own = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1)
    model.compile(loss=own, metrics=["accuracy", M.F1Score(average="macro"), M.AUC()])
    run(model, "classifier", verb="fit")
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert run(loaded, "classifier") == pytest.approx(run(model, "classifier"))
    model.compile(label_smoothing=0.2)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert run(loaded, "classifier") == pytest.approx(run(model, "classifier"))


# === Losses ===


def one_hot(y, count=3):
    return np.eye(count, dtype="float32")[y]


def smoothed(logits, y, share, weights=1.0):
    chance = np.log(softmax(logits.astype("float64")))
    target = (1 - share) * y + share / y.shape[-1]
    losses = -(target * chance).sum(-1)
    weights = np.broadcast_to(weights, losses.shape)
    return (losses * weights).sum() / weights.sum()


@pytest.mark.one_quick
@pytest.mark.parametrize("task", ["classifier", "relations", "choices", "tagger", "masked"])
def test_label_smoothing_is_that_of_one_hot_labels(task):
    model = make(task)
    x, y = data(task)
    if task == "masked":
        logits = model.predict(x, verbose=0)["mlm"]
        batches = list(x.as_numpy_iterator())
        y, weights = (np.concatenate([b[k] for b in batches]) for k in ("mask_ids", "mask_weights"))
    else:
        logits, weights = model.predict(x, verbose=0), y >= 0
    expected = smoothed(logits, one_hot(y, logits.shape[-1]), 0.1, weights)
    model.compile(label_smoothing=0.1)
    assert run(model, task)["loss"] == pytest.approx(expected, rel=1e-5)
    own = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1)
    model.compile(loss={"mlm": own} if task == "masked" else own)
    assert run(model, task)["loss"] == pytest.approx(expected, rel=1e-5)


def test_label_smoothing_of_several_labels_is_keras_own():
    model = make("multi-label")
    x, y = data("multi-label")
    model.compile(label_smoothing=0.2)
    peer = keras.losses.BinaryCrossentropy(from_logits=True, label_smoothing=0.2)
    expected = float(peer(y.astype("float32"), model.predict(x, verbose=0)))
    assert run(model, "multi-label")["loss"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.one_quick
@pytest.mark.parametrize("task", ["regression", "chain", "answers", "pairs", "contrastive"])
def test_label_smoothing_without_classes_is_refused(task):
    with pytest.raises(ValueError, match="label_smoothing"):
        make(task).compile(label_smoothing=0.1)
    with pytest.raises(ValueError, match="label_smoothing=1.5"):
        make(task).compile(label_smoothing=1.5)


@pytest.mark.one_quick
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("task", ["classifier", "relations", "choices"])
def test_labels_may_be_probabilities(task):
    import tensorflow as tf

    model = make(task)
    x, _ = data(task)
    y = np.random.default_rng(4).dirichlet(np.ones(3), N)
    model.compile(keras.optimizers.SGD(0.0))
    expected = smoothed(model.predict(x, verbose=0), y, 0.0)
    right = model.predict(x, verbose=0).argmax(-1) == y.argmax(-1)
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(4)
    for given in ((x, y), (x, y.tolist()), (dataset, None)):
        size = None if given[1] is None else 4
        found = model.evaluate(*given, batch_size=size, verbose=0, return_dict=True)
        assert found["loss"] == pytest.approx(expected, rel=1e-5)
        assert found["accuracy"] == pytest.approx(right.mean(), rel=1e-5)
    assert model.fit(x, y, batch_size=4, verbose=0).history["loss"] == pytest.approx(
        [expected], rel=1e-5
    )
    wrong = y.copy()
    wrong[3] *= 2
    with pytest.raises(ValueError, match="in row 3: expected probabilities that sum to 1"):
        model.fit(x, wrong, verbose=0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="sum to 1"):
        model.evaluate(tf.data.Dataset.from_tensor_slices((x, wrong)).batch(4), verbose=0)


@pytest.mark.parametrize("loss", [keras.losses.KLDivergence(), "kl_divergence", "bce"])
@pytest.mark.parametrize("task", ["classifier", "answers"])
def test_losses_of_probabilities_are_refused(task, loss):
    losses = {"start": loss, "end": loss} if task == "answers" else loss
    with pytest.raises(ValueError, match="expects probabilities"):
        make(task).compile(loss=losses)


class Plain(keras.Model):
    """Keras's own step around a task's network."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def call(self, x, training=None):
        return self.inner(x, training=training)


def regularized():
    model = make("classifier")
    model.head.kernel.regularizer = keras.regularizers.L2(50.0)
    return model


@pytest.mark.one_quick
@pytest.mark.parametrize("settings", [{}, {"accumulation_steps": 2}, {"jit_compile": True}])
def test_the_reported_loss_has_regularization_as_keras_reports_it(settings):
    x, y = data("classifier")
    ours, peer = regularized(), Plain(regularized())
    ours.compile(keras.optimizers.SGD(1e-3), **settings)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    peer.compile(keras.optimizers.SGD(1e-3), loss, metrics=["accuracy"], jit_compile=False)
    expected = peer.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0).history
    found = ours.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0).history
    assert expected["loss"][0] > 10
    np.testing.assert_allclose(found["loss"], expected["loss"], rtol=1e-5)
    expected = peer.evaluate(x, y, batch_size=4, verbose=0)
    np.testing.assert_allclose(ours.evaluate(x, y, batch_size=4, verbose=0), expected, rtol=1e-5)


# === Weights ===


def several_losses(model, x, y):
    logits = model.predict(x, verbose=0).astype("float64")
    return np.logaddexp(0, np.where(y > 0, -logits, logits))


def softmax_losses(model, x, y):
    chance = softmax(model.predict(x, verbose=0).astype("float64"))
    return -np.log(np.take_along_axis(chance, np.maximum(y, 0)[..., None], -1))[..., 0]


@pytest.mark.one_quick
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"accumulation_steps": 2},
        pytest.param({"jit_compile": True}, marks=pytest.mark.slow),
    ],
)
def test_weights_of_labels_and_of_a_labels_yes(settings):
    model = make("multi-label")
    x, y = data("multi-label")
    metrics = ["accuracy", M.Precision(), M.AUC(num_thresholds=4001, multi_label=True)]
    metrics += [M.Recall(class_id=2, name="of_class_2"), M.F1Score("macro", 0.5, name="f1")]
    model.compile(keras.optimizers.SGD(0.0), metrics=metrics, **settings)
    losses = several_losses(model, x, y)
    logits = model.predict(x, verbose=0)
    chosen = logits > 0
    weights = np.random.default_rng(2).uniform(0, 2, y.shape)
    expected = {
        "loss": (losses * weights).sum() / weights.sum(),
        "accuracy": ((chosen == y) * weights).sum() / weights.sum(),
        "precision": sklearn.metrics.precision_score(
            y.ravel(), chosen.ravel(), sample_weight=weights.ravel()
        ),
        "auc": np.mean(
            [
                sklearn.metrics.roc_auc_score(y[:, k], logits[:, k], sample_weight=weights[:, k])
                for k in range(3)
            ]
        ),
        "of_class_2": sklearn.metrics.recall_score(
            y[:, 2], chosen[:, 2], sample_weight=weights[:, 2]
        ),
        "f1": np.mean(
            [
                sklearn.metrics.f1_score(y[:, k], chosen[:, k], sample_weight=weights[:, k])
                for k in range(3)
            ]
        ),
    }
    for verb in ("evaluate", "fit"):
        found = run(model, "multi-label", weights, verb)
        assert found == pytest.approx(expected, rel=1e-3)
        assert found["loss"] == pytest.approx(expected["loss"], rel=1e-5)
    model.compile(keras.optimizers.SGD(0.0), metrics=[M.F1Score()], **settings)
    with pytest.raises(ValueError, match="F1Score has one weight a row"):
        run(model, "multi-label", weights)
    model.compile(keras.optimizers.SGD(0.0), **settings)
    weights = np.where(y > 0, [1.0, 3.0, 0.5], 1.0)
    for given in ({1: 3.0, 2: 0.5}, [1.0, 3.0, 0.5]):
        found = run(model, "multi-label", verb="fit", class_weight=given)
        assert found["loss"] == pytest.approx((losses * weights).sum() / weights.sum(), rel=1e-5)
    rows = np.random.default_rng(3).uniform(0, 2, N)
    weights = weights * rows[:, None]
    found = run(model, "multi-label", rows, "fit", class_weight={1: 3.0, 2: 0.5})
    assert found["loss"] == pytest.approx((losses * weights).sum() / weights.sum(), rel=1e-5)


@pytest.mark.thorough
def test_weights_of_numbers():
    model = make("regression")
    x, y = data("regression")
    losses = (model.predict(x, verbose=0).astype("float64") - y) ** 2
    weights = np.random.default_rng(2).uniform(0, 2, y.shape)
    found = run(model, "regression", weights)
    expected = (losses * weights).sum() / weights.sum()
    assert found["loss"] == pytest.approx(expected, rel=1e-5)
    assert found["mean_squared_error"] == pytest.approx(expected, rel=1e-5)


def tagger_of_words():
    from keras_bert import BertTokenClassifierPreprocessor, BertTokenizer

    words = [f"w{i}" for i in range(V - 5)]
    tokenizer = BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])
    model = make("tagger")
    model.preprocessor = BertTokenClassifierPreprocessor(tokenizer, T, "full")
    return model, [["w1"], ["w2", "w3", "w4"], ["w5", "w6"]], [[0], [1, 2, -1], [2, 0]]


@pytest.mark.thorough
@pytest.mark.usefixtures("eager")
def test_weights_of_words():
    model, sentences, tags = tagger_of_words()
    weights = [[0.5], [2.0, 0.0, 1.0], [3.0, 1.0]]
    model.compile(keras.optimizers.SGD(0.0))
    logits = np.concatenate(model.predict(sentences, verbose=0)).astype("float64")
    flat, kept = np.concatenate(tags), np.concatenate(weights)
    kept = kept * (flat >= 0)
    losses = -np.log(softmax(logits))[np.arange(len(flat)), np.maximum(flat, 0)]
    expected = (losses * kept).sum() / kept.sum()
    right = ((logits.argmax(-1) == flat) * kept).sum() / kept.sum()
    given = {"x": sentences, "y": tags, "sample_weight": weights, "verbose": 0}
    assert model.evaluate(**given) == pytest.approx([expected, right], rel=1e-5)
    history = model.fit(**given, validation_data=(sentences, tags, weights)).history
    assert history["loss"] == pytest.approx([expected], rel=1e-5)
    assert history["val_loss"] == pytest.approx([expected], rel=1e-5)
    given["sample_weight"] = [[0.5], [2.0, 0.0], [3.0, 1.0]]
    with pytest.raises(ValueError, match="sentence 1: 3 words, 2 weights"):
        model.fit(**given)
    given["sample_weight"] = [[0.5], [2.0, 0.0, float("nan")], [3.0, 1.0]]
    with pytest.raises(ValueError, match=r"sample_weight\[1\]\[2\] is nan"):
        model.fit(**given)
    chain = make("chain")
    chain.preprocessor = model.preprocessor
    with pytest.raises(ValueError, match="a sentence's"):
        chain.fit(sentences, tags, sample_weight=weights, verbose=0)


@pytest.mark.one_quick
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("task", ["classifier", "two classes", "relations", "tagger"])
def test_balanced_class_weights_are_those_of_scikit_learn(task):
    from sklearn.utils.class_weight import compute_class_weight

    model = make(task)
    x, y = data(task)
    model.compile(keras.optimizers.SGD(0.0))
    ids = y[y >= 0]
    table = compute_class_weight("balanced", classes=np.unique(ids), y=ids)
    losses = softmax_losses(model, x, y)
    weights = np.where(y >= 0, table[np.maximum(y, 0)], 0.0)
    expected = (losses * weights).sum() / weights.sum()
    for given in ("balanced", table.tolist(), table, dict(enumerate(table))):
        found = run(model, task, verb="fit", class_weight=given)
        assert found["loss"] == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match="class_weight=.*numbers, or weights by label"):
        model.fit(x, y, class_weight=[1.0], verbose=0)
    with pytest.raises(ValueError, match="class_weight='equal'"):
        model.fit(x, y, class_weight="equal", verbose=0)


@pytest.mark.one_quick
@pytest.mark.parametrize("task", ["regression", "chain", "answers", "choices", "pairs"])
def test_class_weights_without_classes_are_refused(task):
    x, y = data(task)
    for given in ("balanced", [1.0, 2.0, 3.0], {0: 2.0}):
        with pytest.raises(ValueError, match="class_weight"):
            make(task).fit(x, y, class_weight=given, verbose=0)


@pytest.mark.one_quick
@pytest.mark.parametrize(
    "wrong", [float("nan"), pytest.param(float("inf"), marks=pytest.mark.slow), -1.0]
)
@pytest.mark.parametrize("task", [t for t in TASKS if t not in ("masked", "pretrainer")])
def test_weights_that_are_no_weights_are_refused_with_their_row(task, wrong):
    import tensorflow as tf

    model = make(task)
    x, y = data(task)
    weights = np.ones(N, "float32")
    weights[7] = wrong
    before = model.get_weights()
    given = {"sample_weight": weights, "verbose": 0}
    message = rf"sample_weight\[7\] is {wrong:g}: expected a finite number of 0 or more"
    for call in (
        lambda: model.fit(x, y, **given),
        lambda: model.fit(x, y, sample_weight=weights.tolist(), verbose=0),
        lambda: model.evaluate(x, y, **given),
        lambda: model.fit(x, y, validation_data=(x, y, weights), verbose=0),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    if task == "contrastive":
        y = np.zeros(N, "int32")
    dataset = tf.data.Dataset.from_tensor_slices((x, y, weights)).batch(4)
    with pytest.raises(tf.errors.InvalidArgumentError, match="sample_weight: expected finite"):
        model.evaluate(dataset, verbose=0)
    if task in ("classifier", "two classes", "multi-label", "tagger", "relations"):
        with pytest.raises(ValueError, match=r"class_weight\[1\]=.*: expected a number"):
            model.fit(x, y, class_weight={1: wrong}, verbose=0)
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("wrong", [dict.fromkeys(range(N), 1.0), "1" * N, 1.0, np.float32(2)])
def test_weights_that_are_no_list_are_refused(wrong):
    model = make("classifier")
    x, y = data("classifier")
    with pytest.raises(ValueError, match="sample_weight=.*: expected a list or an array of num"):
        model.fit(x, y, sample_weight=wrong, verbose=0)


@pytest.mark.thorough
def test_mask_weights_that_are_no_weights_are_refused():
    import tensorflow as tf

    dataset, _ = data("masked")
    broken = dataset.map(lambda b: b | {"mask_weights": b["mask_weights"] - 1.5})
    with pytest.raises(tf.errors.InvalidArgumentError, match="mask_weights: expected finite"):
        make("masked").fit(broken, verbose=0)


@pytest.mark.one_quick
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("task", ["classifier", "relations", "tagger"])
def test_a_validation_whose_predictions_are_all_of_one_class_is_named(task, caplog):
    model = make(task)
    x, y = data(task)
    several = len(np.unique(model.predict(x, verbose=0)[y >= 0].argmax(-1))) > 1
    model.evaluate(x, y, verbose=0)
    assert ("predictions" in caplog.text) != several
    model.head.bias.assign([0.0, 0.0, 100.0])
    model.compile(keras.optimizers.SGD(0.0))
    model.fit(x, y, batch_size=4, validation_data=(x, y), verbose=0)
    count = int((y >= 0).sum())
    assert f"all {count} predictions of the evaluation are class 2" in caplog.text


@pytest.mark.slow
def test_metrics_losses_and_weights_on_jax(tmp_path):
    import os
    import subprocess
    import sys
    from pathlib import Path

    pytest.importorskip("jax")
    root = Path(__file__).resolve().parents[2]
    script = Path(__file__).with_name("metrics_on_jax.py")
    subprocess.run(
        [sys.executable, script, tmp_path / "found.npz"],
        check=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    with np.load(tmp_path / "found.npz") as arrays:
        found = dict(arrays)
    y, logits = found["y"], found["logits"]
    chance = softmax(logits.astype("float64"))
    chosen = chance.argmax(-1)
    counts = np.bincount(y, minlength=2)
    weights = (N / (2 * counts))[y]
    labels = one_hot(y, 2)
    expected = {
        "loss": smoothed(logits, labels, 0.0),
        "precision": sklearn.metrics.precision_score(y, chosen),
        "auc": sklearn.metrics.roc_auc_score(y, chance[:, 1]),
        "f1": sklearn.metrics.f1_score(y, chosen, average="macro"),
        "r2": sklearn.metrics.r2_score(labels, chance),
        "smoothed": smoothed(logits, labels, 0.1),
        "own": smoothed(logits, labels, 0.1),
        "of_soft": smoothed(logits, found["soft"], 0.0),
        "balanced": smoothed(logits, labels, 0.0, weights),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=5e-3, err_msg=name)
    assert "sample_weight[7] is nan" in str(found["nan"])
    assert "need the TensorFlow backend" in str(found["by_label"])
