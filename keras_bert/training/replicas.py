"""The operations of `tf.distribute` that a step needs, for one replica or many."""

import tensorflow as tf


def count() -> int:
    """The number of replicas that run the step together, over all workers."""
    return tf.distribute.get_strategy().num_replicas_in_sync


def index():
    """Index of this replica, int32 scalar."""
    return tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.int32)


def add_up(tensors: list) -> list:
    """Sums tensors over all replicas; equal on each, float32 if there are several.

    A single collective operation is used: each one waits for the other replicas.
    """
    if count() == 1 or not tensors:
        return tensors
    return unpack(add_up_packed(pack(tensors)), [tensor.shape for tensor in tensors])


def pack(tensors: list) -> list:
    """Concatenates tensors of known shapes to one float32 vector; on one replica a no-op."""
    if count() == 1:
        return tensors
    return [tf.concat([tf.cast(tf.reshape(t, [-1]), tf.float32) for t in tensors], axis=0)]


def add_up_packed(packed: list) -> list:
    """`add_up` for the result of `pack`."""
    if count() == 1:
        return packed
    context = tf.distribute.get_replica_context()
    return [context.all_reduce(tf.distribute.ReduceOp.SUM, packed[0])]


def xla_adds_up(strategy) -> bool:
    """Whether `add_up_packed` works inside a function compiled with XLA.

    TensorFlow's collective operations do on the GPUs of one process; on CPUs XLA lacks them, and
    between processes they are not known to work.
    """
    devices = strategy.extended.worker_devices
    mirrored = isinstance(strategy, tf.distribute.MirroredStrategy)  # not several workers
    return mirrored and all("GPU" in device.upper() for device in devices)


def unpack(packed: list, shapes: list) -> list:
    """The tensors in the result of `pack`.

    Args:
        packed: from `pack` or `add_up_packed`.
        shapes: of the tensors, all sizes known.
    """
    if count() == 1:
        return packed
    parts = tf.split(packed[0], [shape.num_elements() for shape in shapes])
    return [tf.reshape(part, shape) for part, shape in zip(parts, shapes, strict=True)]


def local(variable) -> tf.Variable:
    """This replica's own copy of a Keras variable.

    A step that runs identically on every replica may write its copies itself: they stay bitwise
    identical, and no thread has to wait for another, as with `Strategy.extended.update`.
    """
    value = variable.value
    strategy = tf.distribute.get_strategy()
    if isinstance(strategy, tf.distribute.TPUStrategy):
        return value  # inside a TPU program a replicated variable is its own copy
    copies = strategy.experimental_local_results(value)
    if len(copies) == 1:
        return copies[0]
    return copies[_local_index() % len(copies)]  # workers hold equal numbers


def remade(thing, what: str, may_remake: bool = True):
    """Returns a Keras optimizer or metric, recreated if it does not belong to the strategy.

    Args:
        thing: the optimizer or metric, made in the strategy's scope or elsewhere.
        what: its name in errors.
        may_remake: False for one whose settings are not known to be complete.

    Raises:
        ValueError: if it is already in use, or must not be recreated.
    """
    in_scope = tf.distribute.get_strategy().extended.variable_created_in_scope
    if all(in_scope(variable.value) for variable in thing.variables):
        return thing
    if what == "optimizer" and thing.built and count() == 1:
        return thing
    if not may_remake or (what == "optimizer" and thing.built):
        raise ValueError(
            f"{what} {thing.name} was made outside of the strategy's scope: make it in "
            "strategy.scope()"
        )
    return type(thing).from_config(thing.get_config())


def _local_index() -> int:
    # Each thread that traces a MirroredStrategy's step knows its replica index as a constant.
    place = tf.distribute.get_replica_context().replica_id_in_sync_group
    return int(tf.get_static_value(place))
