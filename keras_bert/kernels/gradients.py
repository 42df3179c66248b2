"""Custom gradients that are freed with their graph.

`tf.custom_gradient` registers each call within a graph in a registry that lives as long as the
process. The entry references the call's tensors, and through them the graph and the variables of
model and optimizer, so no model that was trained would ever be freed.
"""

from collections.abc import Callable

import keras
from keras import ops


def custom_gradient(function: Callable) -> Callable:
    """`keras.ops.custom_gradient` whose gradients are freed with their graph.

    Args:
        function: takes tensors, and returns its outputs and their gradient function.

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
    """`keras.remat`: only the inputs are kept for the backward pass, which recomputes the rest.

    TensorFlow's version registers two gradients, one of which cannot be reached.

    Args:
        function: from float tensors to a tuple of float tensors; it reads no variables.

    Returns:
        The same function.
    """
    if keras.config.backend() != "tensorflow":
        return keras.remat(function)
    import tensorflow as tf

    if tf.executing_eagerly():  # nothing is registered
        return keras.remat(function)

    @custom_gradient
    def call(*inputs):
        def gradient(*upstream):
            # As in `tf.recompute_grad`: a zero that depends on `upstream` makes XLA recompute
            # instead of reusing the forward pass's values.
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
    """Moves a gradient from the registry to its graph; the registry keeps only a lookup."""
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
