"""Strategies: what is there is taken, what is not there is named before any training."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert import BertBackbone, BertClassifier, BertPretrainer, training


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch):
    for name in ("TF_CONFIG", "TPU_NAME"):
        monkeypatch.delenv(name, raising=False)


def test_auto_takes_one_device_where_there_is_one():
    strategy = training.strategy("auto")
    assert isinstance(strategy, tf.distribute.OneDeviceStrategy)
    assert strategy.num_replicas_in_sync == 1


@pytest.mark.parametrize(
    ("kind", "settings", "error", "message"),
    [
        ("many", {}, ValueError, "kind='many': expected one of auto, one, mirrored"),
        # TensorFlow asks the network for one, some 10 s.
        pytest.param(
            "tpu",
            {},
            RuntimeError,
            "no TPU on this machine.*KERAS_BACKEND=jax",
            marks=pytest.mark.slow,
        ),
        ("multiworker", {}, ValueError, "TF_CONFIG lists no workers"),
        ("mirrored", {}, RuntimeError, "no GPU"),
        ("mirrored", {"devices": ["GPU:7"]}, ValueError, "GPU:7.*expected some of CPU:0"),
        ("mirrored", {"devices": []}, ValueError, "expected some of"),
        ("one", {"devices": ["CPU:0", "CPU:0"]}, ValueError, "takes one device"),
        ("auto", {"devices": ["CPU:0"]}, ValueError, "only fits"),
        ("one", {"tpu": "local"}, ValueError, "only fits"),
    ],
)
def test_what_is_not_there_is_named(kind, settings, error, message):
    with pytest.raises(error, match=message):
        training.strategy(kind, **settings)


def test_bad_cluster(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", "{workers: 2}")
    with pytest.raises(ValueError, match="TF_CONFIG is not JSON"):
        training.strategy("auto")


def test_workers_must_be_made_first(monkeypatch):
    tf.constant(1)  # TensorFlow has started
    cluster = {"worker": ["localhost:1", "localhost:2"]}
    config = {"cluster": cluster, "task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    with pytest.raises(RuntimeError, match="has to be made first"):
        training.strategy("auto")


def tiny():
    return BertBackbone(31, 1, 3, 21, 11, max_sequence_length=13)


def operations(graph) -> set[str]:
    """The kinds of all operations of a graph and of the functions that it calls."""
    found = {node.op for node in graph.as_graph_def().node}
    for function in graph.as_graph_def().library.function:
        found |= {node.op for node in function.node_def}
    return found


@pytest.mark.parametrize("task", [pytest.param("classifier", marks=pytest.mark.slow), "pretrainer"])
def test_the_whole_step_compiles_with_static_shapes_and_no_host_ops(task):
    """Stands in for a TPU, which this has not run on: a TPU compiles the whole step with XLA."""
    if task == "classifier":
        model = BertClassifier(tiny(), num_classes=3)
    else:
        model = BertPretrainer(tiny())
    model.compile(training.AdamW(1e-3), jit_compile=False)
    ids = {name: tf.ones((4, 5), tf.int32) for name in ("token_ids", "segment_ids", "padding_mask")}
    if task == "classifier":
        batch = (ids, tf.constant([0, 1, 2, 0]), tf.ones(4))
    else:
        ids["mask_positions"] = tf.ones((4, 2), tf.int32)
        y = {"mlm": tf.ones((4, 2), tf.int32), "nsp": tf.constant([0, 1, 1, 0])}
        batch = (ids, y, {"mlm": tf.ones((4, 2)), "nsp": tf.ones(4)})
    model.step.build(batch[1])
    model.make_train_function()
    step = tf.function(lambda data: model.train_step(data), jit_compile=True, autograph=False)
    before = [np.asarray(w) for w in model.trainable_weights]
    logs = step(batch)
    assert np.isfinite(float(logs["loss"]))
    pairs = zip(model.trainable_weights, before, strict=True)
    moved = [(np.asarray(w) != b).any() for w, b in pairs]
    assert sum(moved) > len(moved) * 0.8
    graph = step.get_concrete_function(batch).graph
    kinds = operations(graph)
    host = ("PyFunc", "EagerPyFunc", "Print", "PrintV2", "StringFormat", "LookupTableFindV2")
    assert not kinds & set(host), kinds & set(host)
    strings = [op.name for op in graph.get_operations() for t in op.outputs if t.dtype == tf.string]
    assert strings == []
    dynamic = [
        t.name
        for op in graph.get_operations()
        if op.type != "Placeholder"
        for t in op.outputs
        if t.dtype.is_floating and t.shape.rank is not None and None in t.shape.as_list()
    ]
    assert dynamic == []


def test_keras_does_not_compile_the_step_itself():
    """Keras would switch XLA off, or fail, under a strategy; the step compiles its own parts."""
    model = BertClassifier(tiny(), num_classes=3)
    model.compile(jit_compile=True)
    assert model.jit_compile is False and model.step.uses_xla
    config = model.get_compile_config()
    assert config["optimizer"]["task_settings"]["jit_compile"] is True


def test_only_numbers_leave_the_pipeline(tmp_path):
    model = BertClassifier.from_preset(
        "tests/golden/tiny_one_block", num_classes=2, skip_mismatch=True
    )
    source = model.source(["one text", "and another"], [0, 1], batch_size=2, shuffle=True)
    for spec in keras.tree.flatten(source.stream().element_spec):
        assert spec.dtype.is_floating or spec.dtype.is_integer
