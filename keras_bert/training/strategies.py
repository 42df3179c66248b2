"""Distribution strategies: one device, several, several machines, a TPU."""

import json
import os

import keras

from keras_bert.arguments import check_choice

KINDS = ("auto", "one", "mirrored", "multiworker", "tpu")
SLURM_PORTS = 20_000  # the first of the ports for workers


def strategy(kind: str = "auto", *, devices: list[str] | None = None, tpu: str | None = None):
    """Makes the strategy in whose `scope()` a model is made; `fit` then trains under it.

        with keras_bert.training.strategy("auto").scope():
            classifier = keras_bert.BertClassifier.from_preset(source, num_classes=2)
        classifier.fit(texts, labels, batch_size=256)      # rows over all devices together

    On the JAX backend the result is a `keras.distribution.DataParallel`, which has `scope()` too.
    It is also set for the whole process, since on JAX `fit` uses the distribution that is set, not
    the one under which the model was made.

    Args:
        kind: "one" device; "mirrored" over the GPUs of this machine; "multiworker" over the
            machines that the environment variable TF_CONFIG lists, or without it over the tasks of
            this SLURM step; "tpu"; or "auto": the first available of workers in TF_CONFIG, a TPU,
            several GPUs, one device.
        devices: for "one" and "mirrored": device names, such as ["GPU:0", "GPU:1"]; by default
            the first device, or all GPUs.
        tpu: for "tpu": name or address of the TPU; by default the TPU of this machine.

    Returns:
        A `tf.distribute.Strategy`, or on JAX a `keras.distribution.DataParallel`.

    Raises:
        ValueError: for an unknown kind or argument, a missing TF_CONFIG or unknown devices.
        RuntimeError: if a requested TPU or GPU does not exist, or a strategy of several workers is
            not created at program start, or SLURM's hosts are not in order.
    """
    check_choice("kind", kind, KINDS)
    if devices is not None and kind not in ("one", "mirrored"):
        raise ValueError(f'devices={devices} only fits "one" and "mirrored", not {kind!r}')
    if tpu is not None and kind != "tpu":
        raise ValueError(f'tpu={tpu!r} only fits "tpu", not {kind!r}')
    if keras.config.backend() == "jax":
        return _on_jax(kind, devices)
    if keras.config.backend() != "tensorflow":
        raise ValueError(f"no strategies on the {keras.config.backend()} backend")
    return _on_tensorflow(kind, devices, tpu)


def layout_map(device_mesh, axis: str = "model"):
    """Divides a BERT's weights among devices, on JAX: a layout map for Keras's `ModelParallel`.

        distribution = keras.distribution
        devices = distribution.list_devices()
        mesh = distribution.DeviceMesh((len(devices) // 4, 4), ("batch", "model"), devices)
        layouts = keras_bert.training.layout_map(mesh)
        distribution.set_distribution(
            distribution.ModelParallel(layout_map=layouts, auto_shard_dataset=False)
        )
        classifier = keras_bert.BertClassifier.from_preset(source, num_classes=2)

    Attention is divided by heads, and the feed-forward network by its intermediate units, so that a
    block exchanges activations twice in each pass; the word embeddings by hidden units, because
    vocabularies are rarely divisible. All other weights are on every device; moments of the
    optimizer are laid out as their weights. The numbers are those of one device, up to the order
    of sums.

    Args:
        device_mesh: a `keras.distribution.DeviceMesh` with an axis `axis`, whose size divides the
            number of heads.
        axis: name of the axis that weights are divided along.

    Returns:
        A `keras.distribution.LayoutMap` for all tasks and backbones of this package.

    Raises:
        ValueError: if the mesh has no such axis.

    Reference: Shoeybi et al. 2019, Megatron-LM, arXiv:1909.08053, section 3.
    """
    check_choice("axis", axis, device_mesh.axis_names)
    columns, rows, units = (None, axis), (axis, None), (axis,)
    layouts = keras.distribution.LayoutMap(device_mesh)
    layouts["(.*/)?embeddings/word/embeddings"] = columns
    block = r"(.*/)?block_\d+/"
    layouts[block + "attention/(query|key|value)/kernel"] = columns
    layouts[block + "attention/(query|key|value)/bias"] = units
    layouts[block + "attention/output/kernel"] = rows
    layouts[block + "intermediate/kernel"] = columns
    layouts[block + "intermediate/bias"] = units
    layouts[block + "feedforward_output/kernel"] = rows
    return layouts


def _on_tensorflow(kind, devices, tpu):
    import tensorflow as tf

    if kind == "auto" and _workers():
        kind = "multiworker"
    if kind == "multiworker":
        return _over_workers()  # before anything that makes TensorFlow initialize its devices
    gpus = [device.name for device in tf.config.list_logical_devices("GPU")]
    if kind == "auto":
        kind = "tpu" if _has_tpu() else "mirrored" if len(gpus) > 1 else "one"
    if kind == "tpu":
        return _on_tpu(tpu)
    if devices is not None:
        known = {_short(d.name) for d in tf.config.list_logical_devices()}
        unknown = [d for d in devices if _short(d) not in known]
        if unknown or not devices:
            raise ValueError(f"devices={devices}: expected some of {', '.join(sorted(known))}")
    if kind == "one":
        if devices is not None and len(devices) != 1:
            raise ValueError(f'devices={devices}: "one" takes one device')
        return tf.distribute.OneDeviceStrategy((devices or gpus or ["CPU:0"])[0])
    if devices is None and not gpus:
        raise RuntimeError(
            'there is no GPU for "mirrored"; name other devices, or take "one" or "auto"'
        )
    return tf.distribute.MirroredStrategy(devices or gpus)


def _over_workers():
    import tensorflow as tf

    resolver = None  # TensorFlow's, which reads TF_CONFIG
    if not _workers():
        resolver = _slurm_tasks()
    try:
        return tf.distribute.MultiWorkerMirroredStrategy(resolver)
    except RuntimeError as error:
        if "program startup" not in str(error):
            raise
        raise RuntimeError(
            "the strategy of several workers has to be made first in a program, before models, "
            "tensors and random seeds"
        ) from error


def _slurm_tasks():
    """The tasks of this SLURM step as workers.

    TensorFlow's SlurmClusterResolver finds their addresses. Devices are left to SLURM and
    TensorFlow: the resolver fails without GPUs, and sets CUDA_VISIBLE_DEVICES although SLURM may
    have limited it to the task's own.
    """
    import tensorflow as tf

    if "SLURM_STEP_NUM_TASKS" not in os.environ:
        raise ValueError(
            "TF_CONFIG lists no workers, and this is not a step of SLURM: set it on each machine, "
            'such as {"cluster": {"worker": ["host1:port", "host2:port"]}, '
            '"task": {"type": "worker", "index": 0}}'
        )
    # Of the job, so that two jobs on a machine do not meet at one port.
    port = SLURM_PORTS + int(os.environ.get("SLURM_JOB_ID", 0)) % 10_000
    tasks = int(os.environ["SLURM_STEP_NUM_TASKS"])
    found = tf.distribute.cluster_resolver.SlurmClusterResolver(
        port_base=port, gpus_per_node=tasks, gpus_per_task=1, auto_set_gpu=False
    )
    cluster = found.cluster_spec()
    kind, index = found.get_task_info()
    host = cluster.task_address(kind, index).rpartition(":")[0]
    here = os.environ.get("SLURMD_NODENAME", host)
    if host != here:
        raise RuntimeError(
            f"SLURMD_NODENAME={here}: expected {host} for task {index}. TensorFlow's "
            "SlurmClusterResolver sorts host names as text and counts the tasks of a host "
            "together: use --distribution=block and hosts with numbers of equal length, or set "
            "TF_CONFIG"
        )
    return tf.distribute.cluster_resolver.SimpleClusterResolver(
        cluster, task_type=kind, task_id=index, rpc_layer="grpc"
    )


def _on_tpu(tpu):
    import tensorflow as tf

    where = f"at {tpu!r}" if tpu else "on this machine"
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu or "local")
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except Exception as error:  # TensorFlow raises many kinds here
        raise RuntimeError(
            f"there is no TPU {where} that TensorFlow {tf.__version__} can use "
            f"({type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}). It "
            "takes the tensorflow-tpu build of TensorFlow 2.20 on a TPU machine (on Colab: "
            "Runtime, Change runtime type, TPU); or train on JAX with KERAS_BACKEND=jax"
        ) from error
    return tf.distribute.TPUStrategy(resolver)


def _on_jax(kind, devices):
    if kind == "multiworker":
        raise ValueError("on JAX, call keras.distribution.initialize() on every machine instead")
    if kind == "tpu" and not keras.distribution.list_devices("tpu"):
        raise RuntimeError("there is no TPU that JAX can use")
    found = devices or keras.distribution.list_devices()
    if kind == "one":
        found = found[:1]
    distribution = keras.distribution.DataParallel(devices=found, auto_shard_dataset=False)
    keras.distribution.set_distribution(distribution)
    return distribution


def _workers() -> list[str]:
    try:
        config = json.loads(os.environ.get("TF_CONFIG") or "{}")
    except json.JSONDecodeError as error:
        raise ValueError(f"TF_CONFIG is not JSON: {error}") from error
    cluster = config.get("cluster", {})
    return [*cluster.get("chief", []), *cluster.get("worker", [])]


def _has_tpu() -> bool:
    import tensorflow as tf

    return bool(os.environ.get("TPU_NAME") or tf.config.list_physical_devices("TPU"))


def _short(device: str) -> str:
    return ":".join(device.upper().split("/")[-1].removeprefix("DEVICE:").split(":")[-2:])
