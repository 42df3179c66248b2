"""The train, test and predict steps on TensorFlow: one form for one device and for many.

Keras's own steps clip gradients on each replica before they are added up, take the mean loss of
each replica's own weights, and lose XLA under any `tf.distribute` strategy. Here

1. the weight sums of the global batch come with it from `tf.data`, or are added up over the
   replicas,
2. forward and backward pass run as one pure function of the variables' values, compiled with XLA
   for each replica, in micro-batches if asked,
3. the gradients are added up over the replicas, which gives the gradient of the global mean,
4. they are clipped and applied on every replica alike, again as one compiled function.

Where XLA knows how to add up over replicas, on one replica and on the GPUs of a machine, 2 to 4 are
one compiled function, which reads and writes the variables itself. The host then never waits for
the devices.
"""

import logging
import types

import keras
import numpy as np
import tensorflow as tf

from keras_bert import kernels
from keras_bert.training import replicas
from keras_bert.training.counters import BatchCounters
from keras_bert.training.device_batches import on_device
from keras_bert.training.iterator_functions import by_shapes, on_data, over_iterator
from keras_bert.training.losses import LossMeans, OutputLosses
from keras_bert.training.replica_seeds import seed_shift, shifted
from keras_bert.training.step_variables import StepVariables, local_copies, read, tensors, write
from keras_bert.training.task_metrics import TaskMetric, make_variables
from keras_bert.training.tensorflow_passes import TensorFlowPasses
from keras_bert.training.tensorflow_update import TensorFlowUpdate

logger = logging.getLogger("keras_bert")


class TensorFlowStep(TensorFlowPasses, TensorFlowUpdate):
    """Mixin of a functional Keras model, with the steps described above."""

    def compile_step(
        self,
        optimizer,
        loss,
        *,
        loss_weights=None,
        weighted_metrics=None,
        accumulation_steps: int = 1,
        steps_per_execution: int = 1,
        jit_compile="auto",
        use_kernels="auto",
        counted_classes: int | None = None,
        **kwargs,
    ) -> None:
        """Compiles the model; call it inside of `scope()`.

        Args:
            optimizer: a Keras optimizer; ours (`keras_bert.training`) are the fastest here.
            loss: as `OutputLosses`.
            loss_weights: as `OutputLosses`.
            weighted_metrics: as `keras.Model.compile`.
            accumulation_steps: micro-batches that a replica's share of a batch is cut into.
            steps_per_execution: batches run without a return to Python, on one replica.
            jit_compile: whether the functions inside the steps are compiled with XLA; "auto"
                for yes.
            use_kernels: whether layers use `keras_bert.kernels`; "auto" for where XLA compiles
                for GPUs on which they work. True elsewhere is an error.
            counted_classes: K where outputs are logits of K classes, to be counted for
                `warn_of_one_class`.
            **kwargs: as `keras.Model.compile`.

        Raises:
            ValueError: if the optimizer accumulates gradients itself on several replicas.
        """
        replicas_in_sync = self.replica_count
        self.prepare_step(accumulation_steps, jit_compile, use_kernels)
        if replicas_in_sync > 1 and not self._on_tpu and steps_per_execution > 1:
            logger.warning(
                "steps_per_execution=%d does not work in Keras on %d replicas: using 1",
                steps_per_execution,
                replicas_in_sync,
            )
            steps_per_execution = 1
        if tf.distribute.has_strategy():
            optimizer = replicas.remade(keras.optimizers.get(optimizer), "optimizer")
        if replicas_in_sync > 1:
            weighted_metrics = keras.tree.map_structure(_on_replicas, weighted_metrics)
        keras.Model.compile(
            self,
            optimizer,
            loss,
            loss_weights=loss_weights,
            weighted_metrics=weighted_metrics,
            steps_per_execution=steps_per_execution,
            jit_compile=False,
            **kwargs,
        )
        if replicas_in_sync > 1 and self._inner_optimizer().gradient_accumulation_steps:
            raise ValueError(
                "the optimizer's gradient_accumulation_steps does not work on several replicas: "
                "use compile(accumulation_steps=...)"
            )
        if replicas_in_sync > 1 and self._inner_optimizer().ema_overwrite_frequency:
            raise ValueError(
                "the optimizer's ema_overwrite_frequency does not work on several replicas: leave "
                "it None, for the averages to be written when training ends"
            )
        if use_kernels is True:
            kernels.chosen(True, self._on_gpus())  # an error where they can't be used
        self._step_losses = OutputLosses(loss, loss_weights, self.output)
        # Past Keras's tracking, which would list the tracker among the metrics a second time.
        object.__setattr__(self, "_loss_tracker", LossMeans(self._step_losses, counted_classes))
        self._counters = BatchCounters()

    def prepare_step(
        self, accumulation_steps: int = 1, jit_compile="auto", use_kernels="auto"
    ) -> None:
        """Says how the functions inside the steps are made; a model predicts without `compile`.

        Args:
            accumulation_steps: as `compile_step`.
            jit_compile: as there.
            use_kernels: as there.
        """
        strategy = self.distribute_strategy
        self._on_tpu = isinstance(strategy, tf.distribute.TPUStrategy)
        # The steps compile their own parts: Keras's compilation fails on several replicas, and
        # a TPUStrategy compiles the whole step itself.
        self._xla = bool(jit_compile) and not self._on_tpu
        self._kernels_wanted = use_kernels
        self._accumulation_steps = accumulation_steps
        self._one_piece = self.replica_count == 1 or (self._xla and replicas.xla_adds_up(strategy))
        # In a plain object: functions that are attributes become part of every SavedModel.
        self._compiled = types.SimpleNamespace()

    def scope(self):
        """Where variables of the model must be made: its strategy's scope."""
        return self.distribute_strategy.scope()

    @property
    def replica_count(self) -> int:
        """Replicas that a batch is shared among, over all workers."""
        return self.distribute_strategy.num_replicas_in_sync

    @property
    def on_default_device(self) -> bool:
        """Whether the model was made without a strategy, and none is entered."""
        return self.distribute_strategy is tf.distribute.get_strategy() and not (
            tf.distribute.has_strategy()
        )

    @property
    def needs_whole_batches(self) -> bool:
        """Whether all batches should have one shape: XLA compiles for each anew, and no replica
        or micro-batch may be left without rows."""
        pieces = self.replica_count * self._accumulation_steps
        return self._xla or self._on_tpu or pieces > 1

    def build_for(self, batches) -> None:
        """Makes the variables of metrics and optimizer.

        Args:
            batches: a `tf.data.Dataset` of batches like those to train on.
        """
        self.build_step_state(batches.element_spec)

    def warn_of_one_class(self) -> None:
        """Says so if the last evaluation's predictions are all of one class, and labels are not."""
        counts = self._loss_tracker.classes
        if counts is None:
            return
        right, found = np.asarray(keras.ops.convert_to_numpy(counts))
        if np.count_nonzero(found) == 1 < np.count_nonzero(right):
            logger.warning(
                "all %d predictions of the evaluation are class %d, and the labels are of %d "
                "classes",
                found.sum(),
                int(np.argmax(found)),
                np.count_nonzero(right),
            )

    def with_weight_sums(self, batches):
        """Has batches bring the weight sums of their losses, if several replicas share them.

        Without it the replicas add them up, and wait for each other, before they can begin a step.

        Args:
            batches: a `tf.data.Dataset` of global batches (x, y) or (x, y, sample_weight).

        Returns:
            A dataset of (x, y, sample_weight, one [B] float32 tensor an output: the sum, in
            every row); on one replica `batches` as they are.
        """
        if self.replica_count == 1:
            return batches

        def with_sums(*batch):
            x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(batch)
            weights = self._step_losses.weights(y, sample_weight)
            sums = tuple(tf.fill(tf.shape(w)[:1], tf.reduce_sum(w)) for w in weights)
            if sample_weight is None:  # a dataset that is shared out can't hold None
                names = self._step_losses.names
                sample_weight = (
                    weights[0] if names == [None] else dict(zip(names, weights, strict=True))
                )
            return x, y, sample_weight, sums

        return batches.map(with_sums, num_parallel_calls=tf.data.AUTOTUNE)

    def ahead(self, batches):
        """Has batches come to the GPU before a step asks for them, if one GPU runs the steps.

        Args:
            batches: a `tf.data.Dataset`, with nothing left to be done to it.

        Returns:
            A dataset of the same batches; see `on_device`.
        """
        if not self.on_default_device or self._keras_runs_steps():
            return batches
        device = self.variables[0].value.device
        return on_device(batches, device) if "GPU" in device else batches

    @property
    def counters(self) -> BatchCounters:
        """What went through the train step; see `BatchCounters`."""
        return self._counters

    def _maybe_symbolic_build(self, iterator=None, data_batch=None) -> None:
        """Instead of Keras's way, which reads a batch ahead and fails with several workers."""
        if data_batch is not None:
            self.build_step_state(data_batch)

    # === Functions that Keras asks for; None stands for "trace it again" ===

    def make_train_function(self, force=False):
        if self.train_function is not None and not force:
            return self.train_function
        self._compile_functions(self._backward, self._updates, self._whole)
        if self._keras_runs_steps():
            return super().make_train_function(force)
        self.train_function = over_iterator(self, on_data(self, self.train_step))
        return self.train_function

    def make_test_function(self, force=False):
        if self.test_function is not None and not force:
            return self.test_function
        self._compile_functions(self._forward_for_test)
        if self._keras_runs_steps():
            return super().make_test_function(force)
        self.test_function = over_iterator(self, on_data(self, self.test_step))
        return self.test_function

    def make_predict_function(self, force=False):
        if self.predict_function is not None and not force:
            return self.predict_function
        self._compile_functions(self._infer)
        if self._keras_runs_steps() or self.replica_count > 1:
            return super().make_predict_function(force)
        predict = on_data(self, self.predict_step)
        if self._xla and self.on_default_device:
            predict = by_shapes(predict)
        self.predict_function = lambda data: predict(data[0])
        return self.predict_function

    def _compile_functions(self, *functions) -> None:
        self._uses_kernels = kernels.chosen(self._kernels_wanted, self._on_gpus())
        for function in functions:
            compiled = function
            if not self.run_eagerly and not self._on_tpu:
                compiled = tf.function(function, jit_compile=self._xla or None, autograph=False)
            setattr(self._compiled, function.__name__, compiled)

    def _keras_runs_steps(self) -> bool:
        return self.run_eagerly or self._on_tpu or self.steps_per_execution > 1

    def _on_gpus(self) -> bool:
        """Whether XLA compiles the functions inside the steps, and for GPUs."""
        if not self._xla or self.run_eagerly:
            return False
        if self.on_default_device:
            return bool(tf.config.list_logical_devices("GPU"))
        devices = self.distribute_strategy.extended.worker_devices
        return all("GPU" in device.upper() for device in devices)

    # === Steps, in a replica's context ===

    def train_step(self, data):
        data, sums = (data[:3], data[3]) if _has_sums(data) else (data, None)
        data = keras.utils.unpack_x_y_sample_weight(data)
        self.build_step_state(data)
        if self._applies_itself() and self._one_piece:
            logs, finite = self._compiled._whole(
                self._step_variables(), data, sums, seed_shift(), self._loss_scale()
            )
            self._adapt_scale(finite)
            return logs
        weights, divisors = self._weights_and_divisors(data, sums)
        # Keras finds the end of a dataset of unknown size by a step that fails for lack of a batch.
        # Nothing may be written before the batch is there, not even a count.
        with tf.control_dependencies([*divisors, *tensors(data)]):
            variables = self._step_variables()
            state = self._read_state(variables, seed_shift())
            batch = (data, weights, divisors, self._loss_scale())
            shared, others, metrics, counts = self._compiled._backward(*state, *batch)
            shared = replicas.add_up_packed(shared)
            if self._applies_itself():
                optimizer_state = self._read_optimizer(variables)
                updated = self._compiled._updates(shared, state[0], *optimizer_state, batch[-1])
                *new, finite, sums, totals = updated
                self._write_updated(variables, *new, finite)
                self._adapt_scale(finite)
            else:
                gradients, sums, totals = self._unpack(shared)
                self._apply_through_keras(gradients)
            self._write_rest(variables, others, metrics, seed_shift())
            self._counters.add(variables.counters, self._step_losses.total(sums, divisors), counts)
            return self._logs(totals)

    def test_step(self, data):
        data = keras.utils.unpack_x_y_sample_weight(data)
        self.build_step_state(data)
        metrics = self._compiled._forward_for_test(
            local_copies(self.trainable_variables),
            local_copies(self.non_trainable_variables),
            local_copies(self.metrics_variables),
            data,
        )
        return self._logs(replicas.add_up(metrics))

    def predict_step(self, data):
        x, _, _ = keras.utils.unpack_x_y_sample_weight(data)
        return self._compiled._infer(
            local_copies(self.trainable_variables), local_copies(self.non_trainable_variables), x
        )

    def build_step_state(self, batch) -> None:
        """Makes the variables of metrics and optimizer, once, outside of any graph.

        Args:
            batch: (x, y) or (x, y, sample_weight) as the steps get them, or their specs.
        """
        missing = not self.optimizer.built
        metrics = self._compile_metrics
        if metrics is not None and not metrics.built:
            missing = True
        if not missing:
            return
        with tf.init_scope(), self.distribute_strategy.scope():
            if metrics is not None and not metrics.built:
                make_variables(self, batch)
            if not self.optimizer.built:
                self.optimizer.build(self.trainable_variables)

    # === Compiled: a step that is one function ===

    def _whole(self, variables, data, sums, shift, scale):
        """A whole step, from reading to writing.

        The variables come as arguments, which XLA updates in place, so that the host has no
        operations to run that read or write one variable each.

        Returns:
            (logs, whether the gradients were finite).
        """
        weights, divisors = self._weights_and_divisors(data, sums)
        with tf.control_dependencies([*divisors, *tensors(data)]):  # see `train_step`
            state = self._read_state(variables, shift)
            shared, others, metrics, counts = self._backward(*state, data, weights, divisors, scale)
            optimizer_state = self._read_optimizer(variables)
            shared = replicas.add_up_packed(shared)
            *new, finite, sums, totals = self._updates(shared, state[0], *optimizer_state, scale)
            self._write_updated(variables, *new, finite)
            self._write_rest(variables, others, metrics, shift)
            self._counters.add(variables.counters, self._step_losses.total(sums, divisors), counts)
            return self._logs(totals), finite

    # === Variables ===

    def _step_variables(self) -> StepVariables:
        """This replica's copies of what a step reads and writes."""
        ours = self._inner_optimizer() if self._applies_itself() else None
        groups = (
            self.trainable_variables,
            self.non_trainable_variables,
            self.metrics_variables,
            [v for pair in ours.slot_variables() for v in pair] if ours else [],
            ours.other_variables() if ours else [],
            self._counters.variables,
        )
        return StepVariables(*(local_copies(group) for group in groups))

    def _weights_and_divisors(self, data, sums) -> tuple[list, list]:
        weights = self._step_losses.weights(*data[1:])
        if sums:
            return weights, [column[0] for column in sums]
        return weights, replicas.add_up([tf.reduce_sum(weight) for weight in weights])

    def _read_state(self, variables, shift) -> tuple[list, list, list]:
        others = shifted(self.non_trainable_variables, read(variables.others), shift)
        return read(variables.trainable), others, read(variables.metrics)

    def _write_rest(self, variables, others, metrics, shift) -> None:
        write(variables.others, shifted(self.non_trainable_variables, others, shift, -1))
        write(variables.metrics, metrics)

    def _logs(self, metrics) -> dict:
        mapping = list(zip(self.metrics_variables, metrics, strict=True))
        with keras.StatelessScope(state_mapping=mapping):
            logs = self.get_metrics_result()
        several_workers = tf.distribute.MultiWorkerMirroredStrategy
        if self._keras_runs_steps() and isinstance(self.distribute_strategy, several_workers):
            # Keras takes the mean of the workers' logs along an axis that scalars lack.
            logs = {name: value[None] for name, value in logs.items()}
        return logs


def _on_replicas(metric: keras.metrics.Metric) -> keras.metrics.Metric:
    """A metric with a copy on each replica; one of a user's own has to have it already."""
    if not isinstance(metric, TaskMetric):
        return replicas.remade(metric, "metric", may_remake=False)
    return TaskMetric(replicas.remade(metric.metric, "metric"), metric.kind, metric.name)


def _has_sums(data) -> bool:
    """Whether a batch was made by `with_weight_sums`."""
    return isinstance(data, tuple) and len(data) == 4
