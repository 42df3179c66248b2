"""The steps of the backend in use: this package's on TensorFlow, otherwise Keras's own."""

import contextlib

import keras

from keras_bert import kernels
from keras_bert.training.task_metrics import has_variables, make_variables


class KerasStep:
    """Keras's own steps, for backends where one program sees the whole batch.

    With these steps a loss is reduced over the global batch and global gradients are clipped. A
    loss that is not the task's own should have the reduction "mean_with_sample_weight": the last
    batch of an epoch is filled up with rows of weight 0, and Keras's default counts them in its
    divisor. There are no micro-batches, and nothing is counted; attributes as `TensorFlowStep`. The
    `stateless_call` of the model, by which Keras's steps call it, enters `kernel_scope`.
    """

    def __init__(self, model):
        self.model, self.counters, self.kernels_wanted = model, None, "auto"
        self.accumulation_steps = self.executions_wanted = 1
        self.uses_kernels = False

    def compile(
        self,
        optimizer,
        loss,
        *,
        accumulation_steps: int = 1,
        use_kernels="auto",
        counted_classes: int | None = None,
        **kwargs,
    ) -> None:
        """Compiles the model; arguments as `TensorFlowStep.compile`. Nothing is counted.

        Raises:
            ValueError: for micro-batches, which these steps do not support.
        """
        if accumulation_steps != 1:
            raise ValueError(
                f"accumulation_steps={accumulation_steps} needs the TensorFlow backend; on "
                f"{keras.config.backend()} give the optimizer gradient_accumulation_steps"
            )
        self.prepare(use_kernels=use_kernels)
        keras.Model.compile(self.model, optimizer, loss, **kwargs)
        self.executions_wanted = self.model.steps_per_execution

    def prepare(self, accumulation_steps: int = 1, jit_compile="auto", use_kernels="auto"):
        """Sets whether layers use kernels; arguments as `TensorFlowStep.prepare`."""
        self.kernels_wanted = use_kernels
        self.uses_kernels = kernels.chosen(use_kernels, _on_one_gpu())

    def kernel_scope(self):
        """A scope in which layers use the kernels, if they are supported here and enabled."""
        return kernels.scope(self.uses_kernels)

    def scope(self):
        """Where variables of the model must be made."""
        return contextlib.nullcontext()

    def build_for(self, batches) -> None:
        """Makes the variables of metrics and optimizer for a dataset or an iterable of batches."""
        model = self.model
        if not has_variables(model):
            make_variables(model, getattr(batches, "element_spec", None) or next(iter(batches)))
        if not model.optimizer.built:
            model.optimizer.build(model.trainable_variables)

    def warn_of_one_class(self) -> None:
        """Does nothing: these steps do not count the predicted classes."""

    def divided(self, batches, source, first: int):
        """The batches unchanged: the step sees them whole."""
        return batches

    def ahead(self, batches, training: bool = False):
        """The batches unchanged: steps do not wait for their copy."""
        return batches

    @property
    def replica_count(self) -> int:
        """Number of devices that a batch is divided among."""
        distribution = keras.distribution.distribution()
        if distribution is None:
            return 1
        axis = distribution.batch_dim_name
        mesh = distribution.device_mesh
        return mesh.shape[mesh.axis_names.index(axis)] if axis in mesh.axis_names else 1

    @property
    def needs_whole_batches(self) -> bool:
        """Whether all batches should have one shape."""
        return True


def _on_one_gpu() -> bool:
    """Whether there is one GPU: a kernel cannot divide its work among several."""
    if keras.config.backend() != "jax" or keras.distribution.distribution() is not None:
        return False
    devices = keras.distribution.list_devices()  # of "gpu" it would raise where there is none
    return len(devices) == 1 and devices[0].startswith("gpu")


if keras.config.backend() == "tensorflow":
    from keras_bert.training.tensorflow_step import TensorFlowStep as Step
else:
    Step = KerasStep
