"""The operations of `tf.distribute` that a step needs, for one replica or many."""

import tensorflow as tf


def count() -> int:
    """The number of replicas that run the step together, over all workers."""
    return tf.distribute.get_strategy().num_replicas_in_sync


def add_up(tensors: list) -> list:
    """Sums tensors over all replicas in one collective operation; float32 if there are several."""
    if count() == 1 or not tensors:
        return tensors
    return unpack(add_up_packed(pack(tensors)), [tensor.shape for tensor in tensors])


def pack(tensors: list, bucket_bytes: int | None = None) -> list:
    """Concatenates tensors of known shapes to float32 vectors; on one replica a no-op.

    A vector of `bucket_bytes` is full, so that its exchange can start before the next one is known;
    None for a single vector. They go from the last tensor to the first, as a backward pass does.
    """
    if count() == 1:
        return tensors
    return [
        tf.concat([tf.cast(tf.reshape(tensors[i], [-1]), tf.float32) for i in places], axis=0)
        for places in _buckets([tensor.shape for tensor in tensors], bucket_bytes)
    ]


def add_up_packed(packed: list) -> list:
    """`add_up` for the result of `pack`."""
    if count() == 1:
        return packed
    context = tf.distribute.get_replica_context()
    return [context.all_reduce(tf.distribute.ReduceOp.SUM, vector) for vector in packed]


def xla_adds_up(strategy) -> bool:
    """Whether `add_up_packed` works in a function compiled with XLA: on the GPUs of a process.

    On CPUs XLA lacks the collective operations; between processes they are not known to work.
    """
    devices = strategy.extended.worker_devices
    mirrored = isinstance(strategy, tf.distribute.MirroredStrategy)  # not several workers
    return mirrored and all("GPU" in device.upper() for device in devices)


def unpack(packed: list, shapes: list, bucket_bytes: int | None = None) -> list:
    """The tensors of these shapes, all sizes known, in the result of `pack` or `add_up_packed`."""
    if count() == 1:
        return packed
    found = [None] * len(shapes)
    for vector, places in zip(packed, _buckets(shapes, bucket_bytes), strict=True):
        parts = tf.split(vector, [shapes[i].num_elements() for i in places])
        for i, part in zip(places, parts, strict=True):
            found[i] = tf.reshape(part, shapes[i])
    return found


def _buckets(shapes: list, bucket_bytes: int | None) -> list[list[int]]:
    """Indices of the tensors in each vector of `pack`."""
    buckets, size = [[]], 0
    for i in reversed(range(len(shapes))):
        if buckets[-1] and bucket_bytes is not None and size >= bucket_bytes:
            buckets.append([])
            size = 0
        buckets[-1].append(i)
        size += 4 * shapes[i].num_elements()
    return buckets


def seed_shift():
    """The offset that this replica adds to seeds, for its own dropout masks; or None."""
    if count() == 1:
        return None
    # A constant where it can be, and int64, which TensorFlow keeps on the GPU.
    place = tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.int32)
    static = tf.get_static_value(place)
    place = tf.cast(place, tf.int64) if static is None else tf.constant(static, tf.int64)
    return place * 1_000_003  # far from consecutive seeds that users pick


def shifted(variables: list, values: list, shift, sign: int = 1) -> list:
    """The values of Keras variables, with seeds shifted by `seed_shift()`; sign=-1 reverts that."""
    if shift is None:
        return values
    return [
        value + tf.cast([sign * shift, 0], value.dtype)
        if variable.path.endswith("seed_generator_state")
        else value
        for variable, value in zip(variables, values, strict=True)
    ]


def local_copies(variables: list) -> list:
    """This replica's own copies of Keras variables, each a `tf.Variable`.

    A step that runs identically on every replica may write its copies itself: they stay bitwise
    identical, and no thread has to wait for another, as with `Strategy.extended.update`.
    """
    strategy = tf.distribute.get_strategy()
    values = [variable.value for variable in variables]
    if isinstance(strategy, tf.distribute.TPUStrategy):
        return values  # inside a TPU program a replicated variable is its own copy
    copies = [strategy.experimental_local_results(value) for value in values]
    if all(len(found) == 1 for found in copies):
        return [found[0] for found in copies]
    index = local_index()  # a constant of the graph each time
    return [found[index % len(found)] for found in copies]  # workers hold equal numbers


def local(variable) -> tf.Variable:
    """`local_copies` of one variable."""
    return local_copies([variable])[0]


def remade(thing, what: str, may_remake: bool = True):
    """Returns a Keras "optimizer" or "metric", recreated if it is of another scope than now.

    Without `may_remake` its settings are not known to be complete.

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


def local_index() -> int:
    """Index of this replica, in a replica's context."""
    # Each thread that traces a MirroredStrategy's step knows its replica index as a constant.
    place = tf.distribute.get_replica_context().replica_id_in_sync_group
    return int(tf.get_static_value(place))
