"""Functions of a step over batches and iterators, called with little overhead.

A `tf.function` inspects all captured tensors at every call, so its concrete functions are kept and
called here.
"""

import weakref

import keras
import tensorflow as tf

from keras_bert.training import replicas
from keras_bert.training.device_batches import PartsAhead


def on_data(step, function):
    """A function from a batch to the results of `function`, a step, on each replica's part of it.

    Keras's own averages logs that are equal on all replicas.
    """
    strategy = step.model.distribute_strategy

    def run(data):
        output = strategy.run(function, args=(data,))
        # Equal on all replicas.
        return keras.tree.map_structure(
            lambda value: strategy.experimental_local_results(value)[0], output
        )

    # XLA compiles once per shape anyway, and kernels need static shapes.
    return tf.function(run, reduce_retracing=not step.uses_xla, autograph=False)


def over_batches(step, function):
    """A function from a list of one batch to `on_data` of it, for `predict_step`."""
    predict = on_data(step, function)
    if step.uses_xla and step.on_default_device:
        predict = by_shapes(predict)
    return lambda data: predict(data[0])


def over_iterator(step, function):
    """A function from an iterator of batches to `on_data` of the next batch.

    Keras's own passes its result through a `tf.experimental.Optional`.
    """
    returning = on_data(step, function)
    # Without a function in between, which would have a placeholder for each variable.
    on_iterator = tf.function(
        lambda iterator: returning.python_function(iterator.get_next()),
        reduce_retracing=not step.uses_xla,
        autograph=False,
    )

    functions = weakref.WeakKeyDictionary()  # by iterator

    def execution(iterator):
        if iterator not in functions:
            found = on_iterator
            known = isinstance(iterator, tf.data.Iterator | tf.distribute.DistributedIterator)
            if not known or step.uses_kernels and not shapes_known(iterator.element_spec):
                # `train_on_batch` passes a generator.
                def found(iterator):
                    return returning(next(iterator))

            elif not tf.config.functions_run_eagerly() and step.on_default_device:
                found = on_iterator.get_concrete_function(iterator)  # see `by_shapes`
            functions[iterator] = found
        return functions[iterator](iterator)

    return execution


def train_over_iterator(step, function):
    """`over_iterator` for `train_step`, whose replicas do not make the host wait.

    TensorFlow gives out a function's results after everything that the function does: a result of
    the first GPU has to wait for the last one, and the host with it. The host would then prepare
    each step, 12 ms for BERT-Base on two H200s, while no GPU works. So the function has no
    results; the logs are in a variable of the first GPU.
    """
    if not step.replicas_run_ahead:
        return over_iterator(step, function)
    returning = on_data(step, function)
    strategy, names = step.model.distribute_strategy, []
    with tf.init_scope(), strategy.scope():
        logs = tf.Variable(tf.zeros([0]), trainable=False, shape=[None], name="logs")
    (logs, *_) = strategy.experimental_local_results(logs)

    def replica(data):
        found = function(data)
        if replicas.local_index() == 0:
            names[:] = found
            logs.assign(tf.stack([tf.cast(value, tf.float32) for value in found.values()]))

    def on_parts(parts):
        strategy.run(replica, args=(parts,))

    on_parts = by_shapes(tf.function(on_parts, autograph=False))

    ahead = weakref.WeakKeyDictionary()  # by iterator

    def execution(iterator):
        if not isinstance(iterator, tf.distribute.DistributedIterator):
            return returning(next(iterator))  # `train_on_batch` passes a generator
        if iterator not in ahead:
            ahead[iterator] = PartsAhead(iterator, strategy)
        on_parts(ahead[iterator].next())
        return dict(zip(names, tf.unstack(logs.read_value(), len(names)), strict=True))

    return execution


def by_shapes(function):
    """Wraps a `tf.function` of a fixed structure of tensors; looks it up by their shapes alone.

    Otherwise it inspects each of a thousand captured variables at every call.
    """
    concrete = {}

    def call(data):
        if tf.config.functions_run_eagerly():
            return function(data)
        # Parts of several replicas are composite tensors.
        parts = tf.nest.flatten(data, expand_composites=True)
        key = repr([(tuple(getattr(v, "shape", ())), getattr(v, "dtype", type(v))) for v in parts])
        if key not in concrete:
            concrete[key] = function.get_concrete_function(data)
        return concrete[key](data)

    return call


def shapes_known(specs) -> bool:
    """Whether the specs of a batch are fully defined."""
    parts = tf.nest.flatten(specs, expand_composites=True)  # with several replicas, one per replica
    return all(spec.shape.is_fully_defined() for spec in parts if spec is not None)
