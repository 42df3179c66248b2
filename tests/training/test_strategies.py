"""Strategies: what is there is taken, what is not there is named before any training."""

import json
import re
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import types_pb2

from keras_bert import BertBackbone, BertClassifier, BertPretrainer, training


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch):
    for name in ("TF_CONFIG", "TPU_NAME", "SLURM_STEP_NUM_TASKS"):
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


SLURM_STEP = {
    "SLURM_JOB_ID": "720034",
    "SLURM_STEP_NUM_TASKS": "5",
    "SLURM_STEP_NODELIST": "gpu[08-09],login1",
    "SLURM_STEP_TASKS_PER_NODE": "2(x2),1",
    "SLURM_PROCID": "3",
    "SLURMD_NODENAME": "gpu09",
}


def in_slurm(monkeypatch, **changed):
    """The strategy in a task of a SLURM step, but for its start: returns the resolver."""
    given = []
    monkeypatch.setattr(tf.distribute, "MultiWorkerMirroredStrategy", given.append)
    for name, value in (SLURM_STEP | changed).items():
        monkeypatch.setenv(name, value)
    training.strategy("multiworker")
    return given[0]


def test_the_tasks_of_a_slurm_step_are_workers(monkeypatch):
    found = in_slurm(monkeypatch)
    hosts = ["gpu08:20034", "gpu08:20035", "gpu09:20034", "gpu09:20035", "login1:20034"]
    assert found.cluster_spec().as_dict() == {"worker": hosts}
    assert (found.task_type, found.task_id, found.rpc_layer) == ("worker", 3, "grpc")
    # Tasks of SLURM may be runs of their own.
    assert isinstance(training.strategy("auto"), tf.distribute.OneDeviceStrategy)


def test_slurm_hosts_that_tensorflow_would_confuse_are_refused(monkeypatch):
    changed = {"SLURM_STEP_NODELIST": "gpu[9-10]", "SLURM_STEP_TASKS_PER_NODE": "1(x2)"}
    changed |= {"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "0", "SLURMD_NODENAME": "gpu9"}
    with pytest.raises(RuntimeError, match="SLURMD_NODENAME=gpu9: expected gpu10 for task 0"):
        in_slurm(monkeypatch, **changed)


def test_tf_config_comes_before_slurm(monkeypatch):
    config = {"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}}
    assert in_slurm(monkeypatch, TF_CONFIG=json.dumps(config)) is None


def tiny():
    return BertBackbone(31, 1, 3, 21, 11, max_sequence_length=13)


def functions(graph) -> list:
    """The nodes of a graph and those of the functions that it calls, as lists."""
    found = graph.as_graph_def()
    return [found.node, *(function.node_def for function in found.library.function)]


def xla_kernels() -> set[str]:
    """The operations that XLA compiles on every kind of device, by TensorFlow's own registry.

    A TPU's own entries are registered on a TPU host alone. These are the ones that it shares with
    CPUs and GPUs, as in https://cloud.google.com/tpu/docs/tensorflow-ops; TensorFlow fills the
    registry when it compiles first.
    """
    from tensorflow.python.framework import kernels

    found = kernels.get_all_registered_kernels().kernel
    cpu, gpu = ({k.op for k in found if k.device_type == f"XLA_{d}_JIT"} for d in ("CPU", "GPU"))
    assert len(cpu & gpu) > 400
    return cpu & gpu


def tpu_types() -> set[str]:
    """The element types of a TPU, from TensorFlow's header files."""
    header = Path(tf.sysconfig.get_include(), "tensorflow", "core", "tpu", "tpu_defs.h")
    listed = header.read_text("utf-8").partition("kTpuAllTypes")[2].partition(";")[0]
    found = set(re.findall(r"DT_\w+", listed))
    assert {"DT_FLOAT", "DT_BFLOAT16", "DT_INT32"} <= found and "DT_STRING" not in found
    return found


# Graph structure, which is inlined before XLA's operations are chosen.
STRUCTURE = {"NoOp", "PartitionedCall", "StatefulPartitionedCall", "_Arg", "_Retval", "Placeholder"}
STRUCTURE |= {"If", "While", "StatelessIf", "StatelessWhile", "Const", "Identity", "IdentityN"}
TYPES = ("T", "dtype", "DstT", "SrcT", "Tidx", "Tindices", "out_type", "output_type")


def batch_of(task):
    ids = {name: tf.ones((4, 5), tf.int32) for name in ("token_ids", "segment_ids", "padding_mask")}
    if task == "classifier":
        return ids, tf.constant([0, 1, 2, 0]), tf.ones(4)
    ids["mask_positions"] = tf.ones((4, 2), tf.int32)
    y = {"mlm": tf.ones((4, 2), tf.int32), "nsp": tf.constant([0, 1, 1, 0])}
    return ids, y, {"mlm": tf.ones((4, 2)), "nsp": tf.ones(4)}


def compiled(task, dtype="float32"):
    """A model, ready to train; a TPU compiles the whole step with XLA."""
    backbone = BertBackbone(31, 1, 3, 21, 11, max_sequence_length=13, dtype=dtype)
    pretrainer = task == "pretrainer"
    model = BertPretrainer(backbone) if pretrainer else BertClassifier(backbone, num_classes=3)
    model.compile(training.AdamW(1e-3), jit_compile=False)
    model.step.build(batch_of(task)[1])
    model.make_train_function()
    return model


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("task", "dtype"),
    [
        pytest.param("classifier", "float32", marks=pytest.mark.slow),
        ("pretrainer", "mixed_bfloat16"),
    ],
)
def test_the_whole_step_holds_what_a_tpu_can_run(task, dtype):
    """Stands in for a TPU, which this has not run on: reasons for which a step fails there."""
    model, batch = compiled(task, dtype), batch_of(task)
    step = tf.function(lambda data: model.train_step(data), jit_compile=True, autograph=False)
    before = [np.asarray(w) for w in model.trainable_weights]
    logs = step(batch)
    assert np.isfinite(float(logs["loss"]))
    pairs = zip(model.trainable_weights, before, strict=True)
    moved = [(np.asarray(w) != b).any() for w, b in pairs]
    assert sum(moved) > len(moved) * 0.8
    graph = step.get_concrete_function(batch).graph
    nodes = [node for function in functions(graph) for node in function]
    kinds = {node.op for node in nodes}
    assert "StringFormat" not in xla_kernels() and "MatMul" in xla_kernels()
    assert kinds - STRUCTURE - xla_kernels() == set()
    types = {node.attr[name].type for node in nodes for name in TYPES if name in node.attr}
    named = {types_pb2.DataType.Name(t) for t in types} - {"DT_INVALID", "DT_RESOURCE"}
    assert {"DT_FLOAT", "DT_INT32"} < named <= tpu_types()
    dynamic = [
        t.name
        for op in graph.get_operations()
        if op.type != "Placeholder"
        for t in op.outputs
        if t.dtype != tf.resource and not t.shape.is_fully_defined()
    ]
    assert dynamic == []
    products = [node.attr["T"].type for node in nodes if node.op in ("MatMul", "BatchMatMulV2")]
    half = products.count(tf.bfloat16.as_datatype_enum)
    assert (half > 0.8 * len(products)) == (dtype == "mixed_bfloat16")


@pytest.mark.slow
def test_several_steps_in_one_execution_are_a_loop_that_xla_compiles():
    """`steps_per_execution` on a TPU: a step whose variables keep their shapes in a loop."""
    weights = []
    for steps in (1, 3):
        keras.utils.set_random_seed(7)
        model = compiled("classifier", "mixed_bfloat16")
        batch = batch_of("classifier")

        def body(i, loss, model=model, batch=batch):
            return i + 1, model.train_step(batch)["loss"]

        def loop(n, body=body):
            return tf.while_loop(lambda i, _: i < n, body, (0, 0.0))[1]

        execution = tf.function(loop, jit_compile=True, autograph=False)
        losses = [float(execution(tf.constant(steps))) for _ in range(3 // steps)]
        assert np.isfinite(losses).all() and model.counters.read()["steps"] == 3
        weights.append([np.asarray(w) for w in model.trainable_weights])
    for one, other in zip(*weights, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_keras_does_not_compile_the_step_itself():
    """Keras would switch XLA off, or fail, under a strategy; the step compiles its own parts."""
    model = BertClassifier(tiny(), num_classes=3)
    model.compile(jit_compile=True)
    assert model.jit_compile is False and model.step.uses_xla
    config = model.get_compile_config()
    assert config["optimizer"]["task_settings"]["jit_compile"] is True


def test_only_numbers_of_static_shapes_leave_the_pipeline():
    """Of what a TPU gets: it takes no strings, and compiles for each shape."""
    model = BertClassifier.from_preset(
        "tests/golden/tiny_one_block",
        num_classes=2,
        skip_mismatch=True,
        padding="full",
        sequence_length=12,
    )
    model.compile(jit_compile=True)
    # The last batch of an epoch is not full.
    source = model.source(["one text", "and another", "x"], [0, 1, 1], batch_size=2, shuffle=True)
    for spec in keras.tree.flatten(source.stream().element_spec):
        assert spec.dtype.is_floating or spec.dtype.is_integer
        assert spec.shape.is_fully_defined() and spec.shape[0] == 2
