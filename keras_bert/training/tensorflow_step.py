"""The train, test and predict steps on TensorFlow, the same for one device and for many.

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

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.framework.config import is_op_determinism_enabled

from keras_bert import compile_cache, kernels
from keras_bert.training import replicas
from keras_bert.training.counters import BatchCounters
from keras_bert.training.device_batches import on_device, on_replicas, widened
from keras_bert.training.iterator_functions import (
    over_batches,
    over_iterator,
    train_over_iterator,
)
from keras_bert.training.losses import LossMeans, OutputLosses
from keras_bert.training.optimizers import inner_optimizer
from keras_bert.training.pace import workers
from keras_bert.training.task_metrics import TaskMetric, has_variables, make_variables
from keras_bert.training.tensorflow_update import (
    StepVariables,
    adapt_scale,
    applies_itself,
    apply_through_keras,
    loss_scale,
    optimizer_state,
    read,
    schedule_variables,
    tensors,
    updated,
    write,
    write_updated,
)

# Above 30 MiB, up to which XLA combines exchanges (xla_gpu_all_reduce_combine_threshold_bytes).
BUCKET_BYTES = 32 * 2**20

logger = logging.getLogger("keras_bert")


class TensorFlowStep:
    """The steps described above, of a functional model, which passes Keras's calls on to them.

    They are made of the model's `train_step`, `test_step` and `predict_step`, which a subclass may
    override.

    Attributes:
        accumulation_steps: micro-batches that a replica's part of a batch is split into.
        executions_wanted: `steps_per_execution` as compiled; `fit` lowers the model's where it
            does not divide the steps of an epoch.
        kernels_wanted: `use_kernels` as passed.
        uses_xla: whether the functions inside the steps are compiled with XLA one by one.
        uses_kernels: whether layers use `keras_bert.kernels` in the functions made last.
        counters: counts of the train step, a `BatchCounters`; None before `compile`.
    """

    def __init__(self, model):
        self.model = model
        self.accumulation_steps = 1
        self.executions_wanted = 1
        self.kernels_wanted = "auto"
        self.uses_xla = self.uses_kernels = False
        self.counters = None
        self._losses = self._loss_means = None
        self._on_tpu = False
        self._one_piece = True
        self._compiled = {}  # by the method that was compiled

    def compile(
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
        """Compiles the model inside of `scope()`; most arguments are of `keras.Model.compile`.

        `loss` and `loss_weights` are those of `OutputLosses`; `accumulation_steps`, `jit_compile`
        and `use_kernels` those of `prepare`. With `counted_classes` outputs are logits of K
        classes, counted for `warn_of_one_class`.

        Raises:
            ValueError: if the optimizer accumulates gradients or averages weights itself on several
                replicas, or `use_kernels` is True where kernels are not supported.
        """
        replicas_in_sync = self.replica_count
        self.prepare(accumulation_steps, jit_compile, use_kernels)
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
            self.model,
            optimizer,
            loss,
            loss_weights=loss_weights,
            weighted_metrics=weighted_metrics,
            steps_per_execution=steps_per_execution,
            jit_compile=False,
            **kwargs,
        )
        self.executions_wanted = self.model.steps_per_execution
        ours = inner_optimizer(self.model.optimizer)
        for name, instead in (
            ("gradient_accumulation_steps", "use compile(accumulation_steps=...)"),
            ("ema_overwrite_frequency", "if None, the averages are written when training ends"),
        ):
            if replicas_in_sync > 1 and getattr(ours, name):
                raise ValueError(
                    f"the optimizer's {name} does not work on several replicas: {instead}"
                )
        if use_kernels is True:
            kernels.chosen(True, self._on_gpus())  # raises if they are not supported
        self._losses = OutputLosses(loss, loss_weights, self.model.output)
        self._loss_means = LossMeans(self._losses, counted_classes)
        # Bypasses Keras's tracking, which would list the tracker among the metrics twice.
        object.__setattr__(self.model, "_loss_tracker", self._loss_means)
        self.counters = BatchCounters()

    def prepare(self, accumulation_steps: int = 1, jit_compile="auto", use_kernels="auto") -> None:
        """Sets how the functions inside the steps are made; prediction does not need `compile`.

        Args:
            accumulation_steps: micro-batches that a replica's part of a batch is split into.
            jit_compile: whether they are compiled with XLA; "auto" for yes.
            use_kernels: whether layers use `keras_bert.kernels`; "auto" if XLA compiles for GPUs
                that support them.
        """
        strategy = self.model.distribute_strategy
        self._on_tpu = isinstance(strategy, tf.distribute.TPUStrategy)
        # The steps compile their own parts: Keras's compilation fails on several replicas, and
        # a TPUStrategy compiles the whole step itself.
        self.uses_xla = bool(jit_compile) and not self._on_tpu
        self.kernels_wanted = use_kernels
        self.accumulation_steps = accumulation_steps
        self._one_piece = self.replica_count == 1 or (
            self.uses_xla and replicas.xla_adds_up(strategy)
        )
        self._compiled = {}

    def scope(self):
        """The scope in which the model's variables must be created: that of its strategy."""
        return self.model.distribute_strategy.scope()

    @property
    def replica_count(self) -> int:
        """Number of replicas that a batch is divided among, over all workers."""
        return self.model.distribute_strategy.num_replicas_in_sync

    @property
    def replicas_run_ahead(self) -> bool:
        """Whether several replicas run steps that are one compiled function each."""
        return self.replica_count > 1 and self._one_piece and not self.model.run_eagerly

    @property
    def _bucket_bytes(self) -> int | None:
        """Size of the pieces in which gradients go, if a backward pass runs meanwhile."""
        return BUCKET_BYTES if self._one_piece else None

    @property
    def on_default_device(self) -> bool:
        """Whether the model was made without a strategy, and none is entered."""
        return self.model.distribute_strategy is tf.distribute.get_strategy() and not (
            tf.distribute.has_strategy()
        )

    @property
    def _gradients(self):
        return self._of_batch if self.accumulation_steps == 1 else self._of_parts

    @property
    def needs_whole_batches(self) -> bool:
        """Whether all batches should have one shape: XLA compiles for each anew, and no replica
        or micro-batch may be left without rows."""
        pieces = self.replica_count * self.accumulation_steps
        return self.uses_xla or self._on_tpu or pieces > 1

    def build_for(self, batches) -> None:
        """Makes the variables of metrics and optimizer for a `tf.data.Dataset` of batches."""
        self.build(batches.element_spec)

    def warn_of_one_class(self) -> None:
        """Warns if the last evaluation predicted a single class, and its labels have several."""
        counts = self._loss_means.classes
        if counts is None:
            return
        right, found = np.asarray(keras.ops.convert_to_numpy(counts))
        if np.count_nonzero(found) == 1 < np.count_nonzero(right):
            only = int(np.argmax(found))
            labels = getattr(self.model, "labels", None)
            logger.warning(
                "all %d predictions of the evaluation are class %s, and the labels are of %d "
                "classes",
                found.sum(),
                f"{only} ({labels[only]!r})" if labels and only < len(labels) else only,
                np.count_nonzero(right),
            )

    def divided(self, batches, source, first: int):
        """The batches of `fit`, for one worker or several.

        Args:
            batches: all batches from `first` on, a `tf.data.Dataset`.
            source: where they come from. If it has `reads_apart`, workers that train together
                each make their own part of every batch.
            first: index of the first batch.
        """
        number = workers(self.model)
        if number == 1 or not hasattr(source, "reads_apart"):
            return self.with_weight_sums(batches)
        if not source.reads_apart(number):
            logger.warning(
                "each of the %d workers reads the whole table, since batches have %d lanes: "
                "expected a multiple of the workers, as from a batch size with such a divisor",
                number,
                source.lanes,
            )

        def own(context):
            part = (context.input_pipeline_id, context.num_input_pipelines)
            return source.stream(first, (*part, self.replica_count // number))

        return self.model.distribute_strategy.distribute_datasets_from_function(own)

    def with_weight_sums(self, batches):
        """Adds the weight sums of their losses to global batches, if several replicas share them.

        Without them the replicas sum the weights, and wait for each other, before a step can start.
        There is one more part in a batch: for each output float32 [B], the sum in every row.
        """
        if self.replica_count == 1:
            return batches

        @tf.autograph.experimental.do_not_convert
        def with_sums(*batch):
            x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(batch)
            weights = self._losses.weights(y, sample_weight)
            sums = tuple(tf.fill(tf.shape(w)[:1], tf.reduce_sum(w)) for w in weights)
            if sample_weight is None:  # a distributed dataset cannot hold None
                names = self._losses.names
                sample_weight = (
                    weights[0] if names == [None] else dict(zip(names, weights, strict=True))
                )
            return x, y, sample_weight, sums

        return batches.map(with_sums, num_parallel_calls=tf.data.AUTOTUNE)

    def ahead(self, batches, training: bool = False):
        """Prefetches batches to the GPUs of this machine, if they run the steps.

        `training` says whether `make_train_function` reads them; see `on_device`, `on_replicas`.
        """
        if self.replicas_run_ahead and not self._keras_runs_steps():
            if training:
                return on_replicas(batches, self.model.distribute_strategy)
            return widened(batches)  # `tf.distribute` prefetches them
        if not self.on_default_device or self._keras_runs_steps():
            return batches
        device = self.model.variables[0].value.device
        return on_device(batches, device) if "GPU" in device else batches

    # === Functions that Keras asks for; None stands for "trace it again" ===

    def make_train_function(self, force=False):
        """As `keras.Model.make_train_function`."""
        parts = (self._backward, self._updates, self._whole)
        return self._made("train", force, parts, train_over_iterator)

    def make_test_function(self, force=False):
        """As `keras.Model.make_test_function`."""
        return self._made("test", force, [self._forward_for_test], over_iterator)

    def make_predict_function(self, force=False):
        """As `keras.Model.make_predict_function`."""
        return self._made("predict", force, [self._infer], over_batches)

    def _made(self, kind: str, force: bool, parts, make):
        """The model's function "train", "test" or "predict"; `parts` are those to compile."""
        name, model = f"{kind}_function", self.model
        if force or getattr(model, name) is None:
            self._compile_functions(*parts)
            if self._keras_runs_steps() or (kind == "predict" and self.replica_count > 1):
                return getattr(keras.Model, f"make_{name}")(model, force)
            setattr(model, name, make(self, getattr(model, f"{kind}_step")))
        return getattr(model, name)

    def _compile_functions(self, *functions) -> None:
        if self.uses_xla:
            compile_cache.wait()
        self.uses_kernels = kernels.chosen(self.kernels_wanted, self._on_gpus())
        for function in functions:
            compiled = function
            if not self.model.run_eagerly and not self._on_tpu:
                compiled = tf.function(
                    _named(function), jit_compile=self.uses_xla or None, autograph=False
                )
            self._compiled[function] = compiled

    def _keras_runs_steps(self) -> bool:
        return self.model.run_eagerly or self._on_tpu or self.model.steps_per_execution > 1

    def _on_gpus(self) -> bool:
        """Whether XLA compiles the functions inside the steps, and for GPUs."""
        if not self.uses_xla or self.model.run_eagerly:
            return False
        if self.on_default_device:
            return bool(tf.config.list_logical_devices("GPU"))
        devices = self.model.distribute_strategy.extended.worker_devices
        return all("GPU" in device.upper() for device in devices)

    # === Steps, in a replica's context ===

    def train_step(self, data):
        """Runs a train step on a replica's part of a batch; returns logs, scalar tensors by name.

        `data` is (x, y) or (x, y, sample_weight), or of a batch of `with_weight_sums`.
        """
        with_sums = isinstance(data, tuple) and len(data) == 4
        data, sums = (data[:3], data[3]) if with_sums else (data, None)
        data = keras.utils.unpack_x_y_sample_weight(data)
        self.build(data)
        optimizer = self.model.optimizer
        ours = applies_itself(optimizer, self.model.trainable_variables)
        if ours and self._one_piece:
            logs, finite = self._compiled[self._whole](
                self._step_variables(), data, sums, replicas.seed_shift(), loss_scale(optimizer)
            )
            adapt_scale(optimizer, finite)
            return logs
        weights, divisors = self._weights_and_divisors(data, sums)
        # Keras detects the end of a dataset of unknown cardinality by a step that fails without a
        # batch. Nothing may be written before the batch is available, not even a count.
        with tf.control_dependencies([*divisors, *tensors(data)]):
            variables = self._step_variables()
            state = self._read_state(variables, replicas.seed_shift())
            scale = loss_scale(optimizer)
            shared, untrained, others, metrics, counts = self._compiled[self._backward](
                *state, data, weights, divisors, scale
            )
            shared = replicas.add_up_packed(shared)
            if ours:
                *new, finite, sums, totals = self._compiled[self._updates](
                    shared, untrained, state[0], *optimizer_state(optimizer, variables), scale
                )
                write_updated(optimizer, variables, *new, finite)
                adapt_scale(optimizer, finite)
            else:
                gradients, sums, totals = self._unpack(shared)
                apply_through_keras(optimizer, gradients, self.model.trainable_variables)
            self._write_rest(variables, others, metrics, replicas.seed_shift())
            self.counters.add(variables.counters, self._losses.total(sums, divisors), counts)
            return self._logs(totals)

    def test_step(self, data):
        """Evaluates a batch; as `train_step`, without weight sums."""
        data = keras.utils.unpack_x_y_sample_weight(data)
        self.build(data)
        metrics = self._compiled[self._forward_for_test](
            replicas.local_copies(self.model.trainable_variables),
            replicas.local_copies(self.model.non_trainable_variables),
            replicas.local_copies(self.model.metrics_variables),
            data,
        )
        return self._logs(replicas.add_up(metrics))

    def predict_step(self, data):
        """The model's outputs for a batch: x, or as `train_step` takes it."""
        x, _, _ = keras.utils.unpack_x_y_sample_weight(data)
        trained, others = self.model.trainable_variables, self.model.non_trainable_variables
        return self._compiled[self._infer](
            replicas.local_copies(trained), replicas.local_copies(others), x
        )

    def build(self, batch) -> None:
        """Creates the variables of metrics and optimizer, once, outside of any graph.

        `batch` is (x, y) or (x, y, sample_weight) as the steps get them, or their specs.
        """
        optimizer = self.model.optimizer
        if optimizer.built and has_variables(self.model):
            return
        with tf.init_scope(), self.scope():
            if not has_variables(self.model):
                make_variables(self.model, batch)
            if not optimizer.built:
                optimizer.build(self.model.trainable_variables)

    # === Compiled: what one replica does ===

    def _backward(self, *arguments):
        """The gradients of this replica's part of the global loss, packed to be added up."""
        (gradients, sums, counts), untrained, others, metrics = self._gradients(*arguments)
        shared = replicas.pack([*gradients, *sums, *metrics], self._bucket_bytes)
        return shared, untrained, others, metrics, counts

    def _of_parts(self, trainable, others, metrics, batch, weights, divisors, scale):
        """`_of_batch` in micro-batches."""
        steps = self.accumulation_steps
        untrained = {}
        parts = keras.tree.map_structure(lambda v: _in_parts(v, steps), (batch, weights))

        def body(i, so_far, others, metrics):
            batch, weights = keras.tree.map_structure(lambda v: None if v is None else v[i], parts)
            found, missing, others, metrics = self._of_batch(
                trainable, others, metrics, batch, weights, divisors, scale
            )
            untrained.update(missing)  # the same in every part
            added = keras.tree.map_structure(tf.add, so_far, found)
            return i + 1, added, others, metrics

        zeros = (
            [tf.zeros_like(v) for v in trainable],
            [tf.zeros((), tf.float32) for _ in [*weights, "regularization"]],
            tf.zeros_like(BatchCounters.count(batch[0], weights)),
        )
        _, found, others, metrics = tf.while_loop(
            lambda i, *_: i < steps, body, (0, zeros, others, metrics), maximum_iterations=steps
        )
        return found, untrained, others, metrics

    def _of_batch(self, trainable, others, metrics, batch, weights, divisors, scale):
        """Gradients of a batch's part of the global loss, and the state after it.

        Returns ((gradients, loss sums and regularization, counts); a dict whose keys are the places
        of weights that the loss does not reach, its values None, since a compiled function gives
        tensors and None alone; other variables; metric variables), all as values.
        """
        x, y, sample_weight = batch
        with tf.GradientTape() as tape:
            tape.watch(trainable)
            y_pred, others, extra = self._call_with(trainable, others, x, training=True)
            with self._values(trainable, others):  # a loss may read weights, like that of a CRF
                sums = self._losses.sums(y, y_pred, weights)
            # Regularization losses are the same in every part.
            parts = self.accumulation_steps * replicas.count()
            sums = [*sums, sum((tf.cast(v, tf.float32) for v in extra), tf.constant(0.0)) / parts]
            loss = self._losses.total(sums, divisors) * scale
        found = tape.gradient(loss, trainable)
        untrained = {place: None for place, gradient in enumerate(found) if gradient is None}
        # The gradient of a gather is sparse; sums over replicas and XLA need it dense.
        gradients = [
            tf.zeros_like(value) if gradient is None else tf.convert_to_tensor(gradient)
            for gradient, value in zip(found, trainable, strict=True)
        ]
        # The batches of several workers have unknown sizes, from which TensorFlow infers a
        # product's gradient of unknown size.
        for gradient, value in zip(gradients, trainable, strict=True):
            gradient.set_shape(value.shape)
        metrics = self._updated_metrics(metrics, batch, y_pred, sums, weights, extra)
        return (gradients, sums, BatchCounters.count(x, weights)), untrained, others, metrics

    def _forward_for_test(self, trainable, others, metrics, batch):
        x, y, sample_weight = batch
        trainable, others = read(trainable), read(others)
        y_pred, _, extra = self._call_with(trainable, others, x, training=False)
        weights = self._losses.weights(y, sample_weight)
        with self._values(trainable, others):
            sums = self._losses.sums(y, y_pred, weights)
        values = self._updated_metrics(read(metrics), batch, y_pred, sums, weights, extra)
        with tf.control_dependencies(tensors(batch)):  # see `train_step`
            write(metrics, values)
        return values

    def _infer(self, trainable, others, x):
        return self._call_with(read(trainable), read(others), x, training=False)[0]

    def _call_with(self, trainable, others, x, training):
        """Calls the model on values of its variables.

        Keras's `stateless_call` would skip a model's own `__call__`. Returns (output, values of the
        other variables after it, losses of regularization).
        """
        values = self._values(trainable, others, collect_losses=True)
        with kernels.scope(self.uses_kernels), values as scope:
            y_pred = self.model(x, training=training)
            losses = self.model.losses
        others = [scope.get_current_value(v) for v in self.model.non_trainable_variables]
        return y_pred, others, losses

    def _values(self, trainable, others, **kwargs):
        """A scope in which the variables have these values."""
        variables = [*self.model.trainable_variables, *self.model.non_trainable_variables]
        mapping = list(zip(variables, [*trainable, *others], strict=True))
        return keras.StatelessScope(state_mapping=mapping, **kwargs)

    def _updated_metrics(self, values, batch, y_pred, sums, weights, extra):
        x, y, sample_weight = batch
        mapping = list(zip(self.model.metrics_variables, values, strict=True))
        with keras.StatelessScope(state_mapping=mapping) as scope:
            rows = BatchCounters.count(x, weights)[0]
            totals = [tf.reduce_sum(weight) for weight in weights]
            self._loss_means.update_state(sums[: len(totals)], totals, extra, rows)
            self._loss_means.count_classes(y, y_pred, weights[0])
            self.model.compute_metrics(x, y, y_pred, sample_weight)
        values = [scope.get_current_value(v) for v in self.model.metrics_variables]
        return [tf.convert_to_tensor(value) for value in values]

    def _updates(self, shared, untrained, values, slots, step, rate, scale):
        """`updated` on the result of `_backward`, summed over the replicas.

        Returns what `updated` does, and the loss sums and metric variables of all replicas
        together.
        """
        gradients, sums, metrics = self._unpack(shared)
        optimizer = self.model.optimizer
        new = updated(optimizer, gradients, untrained, values, slots, step, rate, scale)
        return *new, sums, metrics

    def _unpack(self, shared):
        """(gradients, loss sums, metric variables) from what `_backward` packed."""
        variables, metrics = self.model.trainable_variables, self.model.metrics_variables
        losses = [tf.TensorShape([])] * (len(self._losses.names) + 1)  # and regularization
        found = replicas.unpack(
            shared,
            [v.shape for v in variables] + losses + [v.shape for v in metrics],
            self._bucket_bytes,
        )
        first, last = len(variables), len(variables) + len(losses)
        return found[:first], found[first:last], found[last:]

    # === Compiled: a step that is one function ===

    def _whole(self, variables, data, sums, shift, scale):
        """A whole step, from reading to writing; returns (logs, whether the gradients were finite).

        The variables are arguments, which XLA updates in place, so that the host runs no operations
        that read or write single variables.
        """
        weights, divisors = self._weights_and_divisors(data, sums)
        with tf.control_dependencies([*divisors, *tensors(data)]):  # see `train_step`
            state = self._read_state(variables, shift)
            (gradients, sums, counts), untrained, others, metrics = self._gradients(
                *state, data, weights, divisors, scale
            )
            shared = replicas.pack([*gradients, *sums, *metrics], self._bucket_bytes)
            optimizer = self.model.optimizer
            slots_step_rate = optimizer_state(optimizer, variables)
            shared = replicas.add_up_packed(shared)
            *new, finite, sums, totals = self._updates(
                shared, untrained, state[0], *slots_step_rate, scale
            )
            write_updated(optimizer, variables, *new, finite)
            self._write_rest(variables, others, metrics, shift)
            self.counters.add(variables.counters, self._losses.total(sums, divisors), counts)
            return self._logs(totals), finite

    # === Variables ===

    def _step_variables(self) -> StepVariables:
        """This replica's copies of the variables that a step reads and writes."""
        model, optimizer = self.model, self.model.optimizer
        itself = applies_itself(optimizer, model.trainable_variables)
        ours = inner_optimizer(optimizer) if itself else None
        groups = (
            model.trainable_variables,
            model.non_trainable_variables,
            model.metrics_variables,
            [v for pair in ours.slot_variables() for v in pair] if ours else [],
            ours.other_variables() if ours else [],
            schedule_variables(ours) if ours else [],
            self.counters.variables,
        )
        return StepVariables(*(replicas.local_copies(group) for group in groups))

    def _weights_and_divisors(self, data, sums) -> tuple[list, list]:
        weights = self._losses.weights(*data[1:])
        if sums:
            return weights, [column[0] for column in sums]
        return weights, replicas.add_up([tf.reduce_sum(weight) for weight in weights])

    def _read_state(self, variables, shift) -> tuple[list, list, list]:
        others = replicas.shifted(self.model.non_trainable_variables, read(variables.others), shift)
        return read(variables.trainable), others, read(variables.metrics)

    def _write_rest(self, variables, others, metrics, shift) -> None:
        write(
            variables.others,
            replicas.shifted(self.model.non_trainable_variables, others, shift, -1),
        )
        write(variables.metrics, metrics)

    def _logs(self, metrics) -> dict:
        mapping = list(zip(self.model.metrics_variables, metrics, strict=True))
        with keras.StatelessScope(state_mapping=mapping):
            logs = self.model.get_metrics_result()
        several_workers = tf.distribute.MultiWorkerMirroredStrategy
        if self._keras_runs_steps() and isinstance(self.model.distribute_strategy, several_workers):
            # Keras takes the mean of the workers' logs along an axis that scalars lack.
            logs = {name: value[None] for name, value in logs.items()}
        return logs


def _on_replicas(metric: keras.metrics.Metric) -> keras.metrics.Metric:
    """A metric with a copy on each replica; a user's own metric must already have them."""
    if not isinstance(metric, TaskMetric):
        return replicas.remade(metric, "metric", may_remake=False)
    return TaskMetric(replicas.remade(metric.metric, "metric"), metric.kind, metric.name)


def _named(function):
    """A function under the name by which TensorFlow finds its kept program.

    Deterministic programs have a name of their own: nothing else in them differs at first.
    """

    def named(*arguments):
        compile_cache.renumber()
        return function(*arguments)

    named.__name__ = function.__name__
    if is_op_determinism_enabled():
        named.__name__ += "_deterministic"
    return named


def _in_parts(value, parts):
    if value is None:
        return None
    return tf.reshape(value, tf.concat([[parts, -1], tf.shape(value)[1:]], 0))
