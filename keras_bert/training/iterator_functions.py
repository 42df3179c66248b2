"""Functions of a step over batches and over iterators of them, found without a search.

A `tf.function` looks at all that it captured whenever it is called, so here its concrete functions
are kept and called.
"""

import weakref

import keras
import tensorflow as tf


def on_data(step, function):
    """A function from a batch to what a function of a replica's share gives of it.

    Keras's own takes means of logs that all replicas hold alike.

    Args:
        step: a `TensorFlowStep`.
        function: `train_step`, `test_step` or `predict_step` of its model.
    """
    strategy = step.model.distribute_strategy

    def run(data):
        output = strategy.run(function, args=(data,))
        # All replicas hold the same.
        return keras.tree.map_structure(
            lambda value: strategy.experimental_local_results(value)[0], output
        )

    # XLA compiles for each shape anyway, and kernels want to know it.
    return tf.function(run, reduce_retracing=not step.uses_xla, autograph=False)


def over_iterator(step, on_data):
    """A function from an iterator of batches to `on_data` of the next.

    Keras's own hands what it gives through a `tf.experimental.Optional`.

    Args:
        step: a `TensorFlowStep`.
        on_data: from the function of this name.
    """
    on_iterator = tf.function(
        lambda iterator: on_data(iterator.get_next()),
        reduce_retracing=not step.uses_xla,
        autograph=False,
    )

    def found_for(iterator):
        known = isinstance(iterator, tf.data.Iterator | tf.distribute.DistributedIterator)
        if not known or step.uses_kernels and not shapes_known(iterator.element_spec):
            # `train_on_batch` makes a generator.
            return lambda iterator: on_data(next(iterator))
        if not step.on_default_device or tf.config.functions_run_eagerly():
            return on_iterator
        return on_iterator.get_concrete_function(iterator)  # see `by_shapes`

    functions = weakref.WeakKeyDictionary()  # by iterator

    def execution(iterator):
        if iterator not in functions:
            functions[iterator] = found_for(iterator)
        return functions[iterator](iterator)

    return execution


def by_shapes(function):
    """The same `tf.function` of one structure of tensors, found by their shapes alone.

    By itself it looks at each of a thousand variables that it captured, at every call.
    """
    concrete = {}

    def call(data):
        if tf.config.functions_run_eagerly():
            return function(data)
        specs = tf.nest.map_structure(_shape_and_type, data)
        key = repr(specs)
        if key not in concrete:
            concrete[key] = function.get_concrete_function(data)
        return concrete[key](data)

    return call


def shapes_known(specs) -> bool:
    """Whether the specs of a batch say every size."""
    parts = tf.nest.flatten(specs, expand_composites=True)  # of several replicas, each its own
    return all(spec.shape.is_fully_defined() for spec in parts if spec is not None)


def _shape_and_type(value) -> tuple:
    return tuple(getattr(value, "shape", ())), getattr(value, "dtype", type(value))
