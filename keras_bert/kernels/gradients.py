"""Gradients of our own, which TensorFlow forgets with the graph that they were made for.

`tf.custom_gradient` enters each call within a graph into a registry that lasts as long as the
process. The entry holds the call's tensors, and with them the graph, the model's variables and the
optimizer's: every model that was ever trained.
"""

from collections.abc import Callable

import keras
from keras import ops


def custom_gradient(function: Callable) -> Callable:
    """`keras.ops.custom_gradient` whose gradients live no longer than their graph.

    Args:
        function: as there; it takes tensors, and gives its outputs and their gradient.

    Returns:
        The function from tensors to outputs.
    """
    differentiable = ops.custom_gradient(function)
    if keras.config.backend() != "tensorflow":
        return differentiable

    def call(*inputs):
        outputs = differentiable(*inputs)
        _give_to_graph(keras.tree.flatten(outputs)[0])
        return outputs

    return call


def recomputed(function: Callable) -> Callable:
    """`keras.remat`: only the inputs are kept for the backward pass, which computes the rest again.

    TensorFlow's own enters two gradients into the registry, one of them out of reach.

    Args:
        function: from float tensors to a tuple of float tensors; it reads no variables.

    Returns:
        The same function.
    """
    if keras.config.backend() != "tensorflow":
        return keras.remat(function)
    import tensorflow as tf

    if tf.executing_eagerly():  # where nothing is registered
        return keras.remat(function)

    @custom_gradient
    def call(*inputs):
        def gradient(*upstream):
            # As `tf.recompute_grad`: a zero that depends on `upstream` makes XLA compute again
            # what it would else find computed already.
            first = tf.cast(tf.reduce_max(tf.reshape(upstream[0], [-1])[:1]), tf.bool)
            zero = tf.where(first == first, 0.0, float("nan"))  # noqa: PLR0124
            with tf.GradientTape() as tape:
                again = [x + tf.cast(zero, x.dtype) for x in inputs]
                tape.watch(again)
                outputs = function(*again)
            return tape.gradient(outputs, again, upstream, tf.UnconnectedGradients.ZERO)

        return function(*inputs), gradient

    return call


def _give_to_graph(output) -> None:
    """Leaves in the registry only where a gradient is to be found: at the graph of its call."""
    import tensorflow as tf
    from tensorflow.python.framework.ops import gradient_registry

    if tf.executing_eagerly():
        return
    name = output.op.get_attr("_gradient_op_type").decode()
    entry = gradient_registry._registry[name]
    if not hasattr(output.graph, "_keras_bert_gradients"):
        output.graph._keras_bert_gradients = {}
    output.graph._keras_bert_gradients[name] = entry["type"]
    entry["type"] = lambda op, *upstream: op.graph._keras_bert_gradients[name](op, *upstream)
