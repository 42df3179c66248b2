"""What a step needs from `tf.distribute`, for one replica as for many."""

import tensorflow as tf


def count() -> int:
    """How many replicas run the step together, over all workers."""
    return tf.distribute.get_strategy().num_replicas_in_sync


def index():
    """Number of this replica among all, int32 scalar."""
    return tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.int32)


def add_up(tensors: list) -> list:
    """The sums of tensors over all replicas, the same on each, float32 where there are several.

    One collective operation carries them all: each costs its own wait for the other replicas.
    """
    if count() == 1 or not tensors:
        return tensors
    return unpack(add_up_packed(pack(tensors)), [tensor.shape for tensor in tensors])


def pack(tensors: list) -> list:
    """Lays tensors of known shapes end to end, as one float32 vector; on one replica a no-op."""
    if count() == 1:
        return tensors
    return [tf.concat([tf.cast(tf.reshape(t, [-1]), tf.float32) for t in tensors], axis=0)]


def add_up_packed(packed: list) -> list:
    """`add_up` for what `pack` gave."""
    if count() == 1:
        return packed
    context = tf.distribute.get_replica_context()
    return [context.all_reduce(tf.distribute.ReduceOp.SUM, packed[0])]


def xla_adds_up(strategy) -> bool:
    """Whether `add_up_packed` works inside of a function that XLA compiles.

    TensorFlow's collective operations do on the GPUs of one process; on CPUs XLA lacks them, and
    between processes they have not been seen to.
    """
    devices = strategy.extended.worker_devices
    mirrored = isinstance(strategy, tf.distribute.MirroredStrategy)  # not that of several workers
    return mirrored and all("GPU" in device.upper() for device in devices)


def unpack(packed: list, shapes: list) -> list:
    """The tensors in what `pack` gave.

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

    A step that runs alike on every replica may write its copies itself: all hold the same bits
    after it, and no thread has to wait for another as `Strategy.extended.update` makes it.
    """
    value = variable.value
    strategy = tf.distribute.get_strategy()
    if isinstance(strategy, tf.distribute.TPUStrategy):
        return value  # inside a TPU program a replicated variable is its own copy
    copies = strategy.experimental_local_results(value)
    if len(copies) == 1:
        return copies[0]
    return copies[_local_index() % len(copies)]  # workers hold equally many


def remade(thing, what: str, may_remake: bool = True):
    """An optimizer or metric of Keras as it is, or where it is not the strategy's own, anew.

    Args:
        thing: the optimizer or metric, made in the strategy's scope or elsewhere.
        what: what to call it in an error.
        may_remake: False for one whose settings are not known to be whole.

    Raises:
        ValueError: if it is in use already, or may not be made anew.
    """
    values = [variable.value for variable in thing.variables]
    if all(isinstance(value, tf.distribute.DistributedValues) for value in values):
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
    # The threads that trace a MirroredStrategy's step each know their place as a constant.
    place = tf.distribute.get_replica_context().replica_id_in_sync_group
    return int(tf.get_static_value(place))
