"""What all tasks share: the text pipeline under `fit`, the default optimizer, saving."""

import contextlib
import inspect
import logging
import math
import warnings

import keras
import keras_hub
import numpy as np

from keras_bert.atomic import write_folder
from keras_bert.checkpoints import load_tuned_part, save_tuned_part
from keras_bert.checkpoints.preset import FILES
from keras_bert.data.packing import PackedSource
from keras_bert.data.sources import ArraySource, DatasetSource, RowSource, check_columns
from keras_bert.data.texts import text_columns
from keras_bert.models import merge_lora, tune
from keras_bert.models.backbone import complete_inputs
from keras_bert.serving.export import ServedTask
from keras_bert.tasks.one_batch import OneBatch
from keras_bert.tasks.packing import may_pack, packed_source
from keras_bert.training import AdamW, WarmupDecay, layerwise_rate_scales, total_steps
from keras_bert.training.callback_list import CallbackList
from keras_bert.training.position import Position
from keras_bert.training.resume import Resume
from keras_bert.training.step import Step

logger = logging.getLogger("keras_bert")


class BertTask(ServedTask, Step, keras_hub.models.Task):
    """Base of the tasks: `fit`, `evaluate` and `predict` on texts or on ids.

    It differs from KerasHub's pipeline in five things: texts are shuffled every epoch with a
    seed, wrong input is named row by row, `fit` makes an optimizer whose schedule fits its
    number of steps, the step gives the same numbers on one device and on many (see
    `keras_bert.training.tensorflow_step`), and presets are written whole or not at all.
    """

    packs_texts = True  # whether several texts can share a row of the encoder
    reads_first_tokens = False  # whether the head reads nothing of a text but its first token
    _at_once = None

    def __call__(self, inputs, *args, **kwargs):
        if isinstance(inputs, dict):
            inputs = complete_inputs(inputs)
        return super().__call__(inputs, *args, **kwargs)

    def call(self, inputs, *args, **kwargs):
        if isinstance(inputs, dict):  # Keras's JAX trainer comes here without `__call__`
            inputs = complete_inputs(inputs)
        return super().call(inputs, *args, **kwargs)

    def compile(
        self,
        optimizer="auto",
        loss="auto",
        *,
        loss_weights=None,
        metrics="auto",
        weighted_metrics=None,
        learning_rate: float = 5e-5,
        weight_decay: float = 0.01,
        warmup: float = 0.1,
        decay: str = "linear",
        layer_decay: float | None = None,
        epsilon: float = 1e-6,
        accumulation_steps: int = 1,
        steps_per_execution: int = 1,
        jit_compile="auto",
        packing: bool | str = "auto",
        use_kernels: bool | str = "auto",
        **kwargs,
    ):
        """Sets the model up for training; called on construction with the defaults.

        Args:
            optimizer: "auto" for `keras_bert.training.AdamW`, which `fit` gives a warm-up and
                decay over its own number of steps; each `fit` then starts a new schedule. Or
                any Keras optimizer, used as it is.
            loss: "auto" for the task's own, or a Keras loss on logits. Whatever its reduction
                ("sum" excepted), a batch's loss is sum(weight * loss) / sum(weight) over all
                rows of the batch, on whatever replica or in whatever micro-batch they are.
            loss_weights: factors of the losses of several outputs.
            metrics: "auto" for the task's own, or Keras metrics. They weigh rows as the loss
                does; rows of weight 0 count nowhere.
            weighted_metrics: more of the same; Keras has two lists.
            learning_rate: peak rate of the automatic optimizer.
            weight_decay: decay of the automatic optimizer; biases and LayerNorm are left out.
            warmup: share of the steps in which the rate rises.
            decay: how the rate falls after it: "linear", "polynomial", "cosine" or "constant".
            layer_decay: factor on the rate from each block to the one below it, such as 0.9.
            epsilon: of the automatic optimizer; 1e-6 as in google-research/bert, where PyTorch and
                transformers have 1e-8.
            accumulation_steps: micro-batches that every batch is cut into, so that it needs less
                memory. The result is that of the whole batch, and one update is made for it.
            steps_per_execution: batches run without a return to Python. On several replicas
                Keras cannot do it, and 1 is used.
            jit_compile: "auto" compiles with XLA but for TensorFlow on a CPU, where it is slower.
            packing: whether `fit`, `evaluate` and `predict` put several short texts into one row
                of the encoder; see `keras_bert.layers.packing`. Outputs are those of the texts
                alone. A batch then has about, not exactly, `batch_size` texts, and one of a
                classifier's `predict` no more tokens than without; texts that
                shared a row in the first epoch share one in all; and with `shuffle=False` they
                keep their order to within four batches. "auto" does where XLA compiles for an
                accelerator and it saves a tenth of the cells or more.
            use_kernels: whether attention, GELU and normalization run in `keras_bert.kernels`.
                "auto" does in bfloat16 where XLA compiles for NVIDIA GPUs on which they work; True
                is an error where there are none.
            **kwargs: as `keras.Model.compile`.

        Raises:
            ValueError: if the loss expects probabilities, or a number is out of range.
        """
        if accumulation_steps < 1:
            raise ValueError(f"accumulation_steps={accumulation_steps}: expected 1 or more")
        if packing not in ("auto", True, False):
            raise ValueError(f"packing={packing!r}: expected 'auto', True or False")
        if use_kernels not in ("auto", True, False):
            raise ValueError(f"use_kernels={use_kernels!r}: expected 'auto', True or False")
        self._schedule = None
        self._packing_wanted = packing
        self._kernels_choice = use_kernels
        self._jit_compile_wanted = jit_compile
        self.accumulation_steps = accumulation_steps
        with self.scope():
            if isinstance(optimizer, str) and optimizer == "auto":
                self._schedule = {
                    "learning_rate": learning_rate,
                    "weight_decay": weight_decay,
                    "warmup": warmup,
                    "decay": decay,
                    "layer_decay": layer_decay,
                    "epsilon": epsilon,
                }
                # A schedule from the start, so that optimizers of every `fit` save the same
                # variables.
                optimizer = self._auto_optimizer(None)
            if isinstance(loss, str) and loss == "auto":
                loss = self.default_loss()
            if isinstance(metrics, str) and metrics == "auto":
                metrics = self.default_metrics()
            check_takes_logits(loss)
            accelerated = _has_accelerator()
            if jit_compile == "auto" and not accelerated:
                jit_compile = False
            self.compiles_for_accelerator = accelerated and bool(jit_compile)
            self.compile_step(
                optimizer,
                loss,
                loss_weights=loss_weights,
                weighted_metrics=_joined(metrics, weighted_metrics),
                accumulation_steps=accumulation_steps,
                steps_per_execution=steps_per_execution,
                jit_compile=jit_compile,
                use_kernels=use_kernels,
                **kwargs,
            )
        self._executions_wanted = self.steps_per_execution

    def default_loss(self):
        """The loss of `compile(loss="auto")`."""
        raise NotImplementedError

    def default_metrics(self) -> list:
        """The metrics of `compile(metrics="auto")`."""
        raise NotImplementedError

    def encode_labels(self, y) -> np.ndarray:
        """Checks labels and turns names into ids."""
        raise NotImplementedError

    def encode_class_weight(self, class_weight: dict) -> dict[int, float]:
        """Turns weights by label into weights by id."""
        raise NotImplementedError

    def encode_labels_in_graph(self, y):
        """Does the work of `encode_labels` on a batch inside `tf.data`; None stays None."""
        raise NotImplementedError

    def get_compile_config(self):
        config = super().get_compile_config()
        if config is not None:
            config["jit_compile"] = self._jit_compile_wanted
            config["accumulation_steps"] = self.accumulation_steps
            config["packing"] = self._packing_wanted
            config["use_kernels"] = self._kernels_choice
            if self._schedule is not None:
                config |= {"optimizer": "auto", **self._schedule}
            config["optimizer_built"] = self.optimizer.built
        return config

    def compile_from_config(self, config):
        built = config.pop("optimizer_built", True)
        self.compile(**keras.saving.deserialize_keras_object(config))
        if built:  # else the file has none of its variables
            self.optimizer.build(self.trainable_variables)

    def fit(
        self,
        x=None,
        y=None,
        batch_size: int | None = None,
        epochs: float | None = None,
        sample_weight=None,
        validation_data=None,
        validation_split: float = 0.0,
        shuffle: bool = True,
        seed: int = 0,
        class_weight: dict | None = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        steps: int | None = None,
        examples: int | None = None,
        callbacks=None,
        **kwargs,
    ):
        """Trains the model.

        The order of the rows in epoch e is a function of `seed` and e alone, and with a
        `keras_bert.training.Resume` among the callbacks a run that was stopped goes on where it
        was.

        Args:
            x: a list of N texts; a tuple (firsts, seconds) of two such lists; a dict of int
                arrays [N, T] with the backbone's inputs; or a `tf.data.Dataset` of batches
                (x, y) or (x, y, sample_weight) of texts or ids.
            y: N labels, as ids or as names. Not with a dataset.
            batch_size: rows of a batch over all replicas, 32 by default. Not with a dataset.
            epochs: passes over the data, which may be a fraction; 1 by default.
            sample_weight: N weights of the rows' losses.
            validation_data: (x, y) or (x, y, sample_weight), or a dataset.
            validation_split: share of the rows, from the end, to validate on instead.
            shuffle: whether to draw a new order of the rows every epoch.
            seed: seed of the orders.
            class_weight: weights of the losses by label id or name; 1 where it names none. They
                multiply `sample_weight`, in the losses and metrics of training.
            initial_epoch: epoch to begin with.
            steps_per_epoch: batches in an epoch; by default all.
            steps: updates to make, instead of `epochs`.
            examples: rows to train on, instead of `epochs`; rounded up to whole batches.
            callbacks: as `keras.Model.fit`.
            **kwargs: as `keras.Model.fit`.

        Returns:
            The Keras `History`.

        Raises:
            TypeError: if a text is not a string.
            ValueError: if columns differ in length, a label is unknown, more than one of
                `epochs`, `steps` and `examples` is given, the batch cannot be shared out evenly,
                or a checkpoint to resume from is of another model.
        """
        if y is None and not hasattr(x, "element_spec"):
            raise ValueError("y is missing: fit needs the labels of the texts")
        if validation_split:
            if validation_data is not None:
                raise ValueError("got both validation_data and validation_split")
            if not hasattr(x, "element_spec"):
                y = self.encode_labels(y)  # before the split, which may part the names
            x, y, sample_weight, validation_data = self._split(
                x, y, sample_weight, validation_split
            )
        if epochs is None and steps is None and examples is None:
            epochs = 1
        source = self._source(
            x, y, sample_weight, batch_size, shuffle, seed, class_weight=class_weight
        )
        if validation_data is not None:
            data = (
                validation_data if isinstance(validation_data, tuple | list) else [validation_data]
            )
            in_dataset = hasattr(data[0], "element_spec")
            validation = self._source(*data, batch_size=None if in_dataset else batch_size)
            validation_data = self.ahead(validation.one_pass())
        if isinstance(callbacks, keras.callbacks.CallbackList):
            callbacks = callbacks.callbacks
        callbacks = keras.tree.flatten(callbacks or [])
        resume = next((c for c in callbacks if isinstance(c, Resume)), None)
        self._check_shares(source)
        found = None if resume is None else resume.find()
        if source.steps is None and found:
            source.steps = found["steps_per_epoch"]  # counted in the first epoch
        steps_per_epoch = steps_per_epoch or source.steps
        total = self._total_steps(source, steps_per_epoch, epochs, steps, examples)
        if getattr(source, "endless", False) and steps_per_epoch is None:
            if total is None:
                raise ValueError("the dataset has no end: pass steps_per_epoch, steps or examples")
            steps_per_epoch = total
        if self._schedule is not None:
            # A run that began without knowing its length goes on with the rate it began with.
            known = total if not found or found["total"] is not None else None
            self._start_schedule(known and known - initial_epoch * (steps_per_epoch or 0))
        done = found["done"] if found else initial_epoch * (steps_per_epoch or 0)
        self.position = Position(steps_per_epoch, done, total)
        if self.position.skip and (
            keras.config.backend() != "tensorflow" or self.steps_per_execution > 1
        ):
            raise ValueError(
                "to resume in the first epoch of a dataset of unknown size, pass steps_per_epoch"
            )
        self._share_out_executions(steps_per_epoch, done, total)
        # Without a number of steps, Keras finds the end of an epoch where a pass ends.
        batches = source.stream(done) if steps_per_epoch else source.one_pass()
        self._training_source = source
        # Not by the batches to train on if they are an iterator, which can't be looked into.
        self.build_for(batches if hasattr(batches, "element_spec") else source.one_pass())
        batches = self.with_weight_sums(batches)
        if resume is not None:
            resume.watch(callbacks)
        if found:
            resume.restore(self)
        if steps_per_epoch:
            initial_epoch, epochs = self.position.epoch, math.ceil(total / steps_per_epoch)
        elif total is not None:
            epochs = total  # an epoch has at least one step; the position ends the run
        epochs = math.ceil(epochs)
        callbacks = CallbackList(
            self.position.callbacks(callbacks),
            self,
            kwargs.get("verbose", "auto"),
            epochs,
            steps_per_epoch or _known_size(batches),
            add_history=True,
        )
        with _quiet_about_size():
            return keras.Model.fit(
                self,
                self.ahead(batches),
                epochs=epochs,
                validation_data=validation_data,
                initial_epoch=initial_epoch,
                steps_per_epoch=steps_per_epoch,
                shuffle=False,  # the batches above are shuffled already
                callbacks=callbacks,
                **kwargs,
            )

    def _share_out_executions(self, *steps: int | None) -> None:
        """Lets executions of several steps end with epochs, as the stream of batches has no end.

        Args:
            *steps: numbers of steps that the steps of an execution have to divide.
        """
        wanted = self._executions_wanted
        fits = (n for n in range(wanted, 0, -1) if not any((step or 0) % n for step in steps))
        before, self.steps_per_execution = self.steps_per_execution, next(fits)
        if self.steps_per_execution != before:
            self.train_function = self.test_function = self.predict_function = None
        if self.steps_per_execution != wanted:
            logger.warning(
                "steps_per_execution=%d does not divide the %s steps of an epoch: using %d",
                wanted,
                steps[0],
                self.steps_per_execution,
            )

    def _total_steps(self, source, steps_per_epoch, epochs, steps, examples) -> int | None:
        """Steps from the first epoch to the end of the run; None if that is not known."""
        if epochs is not None and steps is None and examples is None:
            if steps_per_epoch is None:
                return None
            return total_steps(steps_per_epoch, 1, epochs=epochs)
        batch_size = getattr(source, "batch_size", None)
        if examples is not None and batch_size is None:
            raise ValueError("examples= needs rows in memory; for a dataset pass steps=")
        if examples is not None and isinstance(source, PackedSource):
            return math.ceil(examples / source.texts_per_step)
        return total_steps(None, batch_size or 1, steps=steps, epochs=epochs, examples=examples)

    def training_batch(self, step: int):
        """Gives a batch of the `fit` that runs, or ran last, once more.

        Rows in memory and datasets with one order give the very batch. A dataset that shuffles
        draws a new order whenever it is read, with a seed too, so it gives another one.

        Args:
            step: number of the training step, from 0 over all epochs.

        Returns:
            (x, y) or (x, y, sample_weight) as the step got it, NumPy arrays; a GPU gets the
            int32 ones as int64.
        """
        batch = next(iter(self._training_source.stream(step)))
        return keras.tree.map_structure(keras.ops.convert_to_numpy, batch)

    def evaluate(self, x=None, y=None, batch_size=None, sample_weight=None, **kwargs):
        """Gives loss and metrics on labelled data; takes what `fit` takes, every row once."""
        if not kwargs.get("_use_cached_eval_dataset"):  # Keras's `fit` has made it already
            x = self._source(x, y, sample_weight, batch_size).one_pass()
            self.build_for(x)
            kwargs["callbacks"] = self._callbacks_over(x, kwargs)
            x = self.ahead(x)
        with _quiet_about_size():
            return keras.Model.evaluate(self, x, **kwargs)

    def predict(self, x, batch_size: int | None = None, **kwargs):
        """Gives the model's output for each row, in the order of the rows.

        Args:
            x: as in `fit`, without labels; or one string.
            batch_size: rows of a batch, 32 by default.
            **kwargs: as `keras.Model.predict`. Rows that fit into one batch have no progress bar.

        Returns:
            float32 array [N, ...]; for one string without the first axis.

        A dataset gives x alone; pairs as ((firsts, seconds),), since Keras reads a pair as
        (x, y). Labels in a dataset are passed over.
        """
        if isinstance(x, str | bytes):
            return self.predict([x], batch_size, **kwargs)[0]
        if hasattr(x, "element_spec"):
            return self.predict_batches(self._source(x, labelled=False).one_pass(), kwargs)
        texts = not isinstance(x, dict) and self.preprocessor is not None
        columns = text_columns(x) if texts else x
        size = len(columns[0]) if texts else None
        if size == 0:
            return np.zeros((0, *self.output_shape[1:]), "float32")
        found = self._predict_at_once(x, columns, batch_size or 32, kwargs)
        if found is not None:
            return found
        order = None
        if texts and not may_pack(self):
            # Rows of like length share a batch, so that little is spent on padding.
            lengths = [sum(len(text) for text in row) for row in zip(*columns, strict=True)]
            order = np.argsort(lengths, kind="stable")
            columns = tuple([column[i] for i in order] for column in columns)
            x = columns if len(columns) > 1 else columns[0]
        source = self._source(x, batch_size=batch_size, labelled=False)
        outputs = self.predict_batches(source.one_pass(), kwargs)
        if isinstance(source, PackedSource):
            return keras.tree.map_structure(source.in_order, outputs)
        # The last batch may have been filled up.
        outputs = keras.tree.map_structure(lambda v: v[: source.size], outputs)
        if order is None:
            return outputs
        return keras.tree.map_structure(lambda v: v[np.argsort(order)], outputs)

    def predict_batches(self, batches, kwargs: dict):
        """`keras.Model.predict` of batches that are made already.

        Args:
            batches: a `tf.data.Dataset` of the model's inputs.
            kwargs: as `keras.Model.predict`.
        """
        kwargs = kwargs | {"callbacks": self._callbacks_over(batches, kwargs)}
        with _quiet_about_size():
            return keras.Model.predict(self, self.ahead(batches), **kwargs)

    def _callbacks_over(self, batches, kwargs: dict) -> CallbackList:
        given, verbose = kwargs.get("callbacks"), kwargs.get("verbose", "auto")
        if isinstance(given, keras.callbacks.CallbackList):
            return given
        steps = kwargs.get("steps") or _known_size(batches)
        return CallbackList(given or [], self, verbose, steps=steps)

    def _predict_at_once(self, x, columns, batch_size: int, kwargs: dict):
        """Outputs of rows that fit into one batch; None if they do not, or more was asked for."""
        ids = isinstance(x, dict)
        if (
            keras.config.backend() != "tensorflow"
            or not (ids or self.preprocessor)
            or not set(kwargs) <= {"verbose"}
            or self.run_eagerly
            or not self.on_default_device
        ):
            return None
        if ids:
            columns = {name: np.asarray(value) for name, value in x.items() if value is not None}
            if not 0 < len(columns.get("token_ids", ())) <= batch_size:
                return None
            self._check_ids(columns)
            check_columns(columns, None, None)
        elif len(columns[0]) > batch_size:
            return None
        else:
            check_columns(columns, None, None)
        self.make_predict_function()
        if self._at_once is None or self._at_once.made_for is not self.predict_function:
            self._at_once = OneBatch(self, self.predict_function)
        return self._at_once(columns, batch_size)

    def save_to_preset(self, preset_dir: str, max_shard_size: float = 10) -> None:
        """Writes settings, weights and vocabulary into a folder, whole or not at all.

        Args:
            preset_dir: the folder to make, or the preset to replace.
            max_shard_size: weight files larger than so many gigabytes are split.

        Raises:
            FileExistsError: if the folder holds something else.
        """
        save = super().save_to_preset
        write_folder(preset_dir, lambda path: save(path, max_shard_size=max_shard_size), FILES)

    def save_task_weights(self, filepath: str) -> None:
        """Writes what the task has on top of the backbone; no state of the optimizer."""
        keras.saving.save_weights(self, filepath, objects_to_skip=self._not_of_the_task())

    def load_task_weights(self, filepath: str) -> None:
        """Reads what `save_task_weights` wrote."""
        keras.saving.load_weights(self, filepath, objects_to_skip=self._not_of_the_task())

    def _not_of_the_task(self) -> list:
        return [*self.backbone._flatten_layers(), self.optimizer]

    def copy_state(self, other: "BertTask") -> None:
        """Takes over another model's weights and random state, keeping what is compiled.

        Args:
            other: a model of the same shape.

        Raises:
            ValueError: if it has another shape.
        """
        mine, theirs = (
            [variable for layer in model.layers for variable in layer.variables]
            for model in (self, other)
        )
        if [v.shape for v in mine] != [v.shape for v in theirs]:
            raise ValueError(f"{other.name} has weights of other shapes than {self.name}")
        for variable, value in zip(mine, theirs, strict=True):
            variable.assign(value)

    def quantize(self, mode: str, **kwargs) -> None:
        """Quantizes the backbone, such as to "int8"; heads, of few weights, stay as they are.

        Args:
            mode: as `keras.Model.quantize`.
            **kwargs: as there.
        """
        self.backbone.quantize(mode, **kwargs)
        self.train_function = self.test_function = self.predict_function = None

    def tune(self, what: str, lora_rank: int = 8):
        """Chooses which weights are trained; see `keras_bert.models.tune`."""
        return tune(self, what, lora_rank)

    def merge_lora(self) -> int:
        """Folds low-rank updates into their kernels; see `keras_bert.models.merge_lora`."""
        return merge_lora(self)

    def save_tuned_part(self, path: str) -> None:
        """Writes what was tuned alone; see `keras_bert.checkpoints.save_tuned_part`."""
        save_tuned_part(self, path)

    def load_tuned_part(self, path: str) -> None:
        """Reads what `save_tuned_part` wrote; see `keras_bert.checkpoints.load_tuned_part`."""
        load_tuned_part(self, path)

    def _preprocess(self, x, y=None, sample_weight=None):
        return self.preprocessor(x, y=y, sample_weight=sample_weight)

    def _pack_ids(self, x, y=None, sample_weight=None):
        """Makes what the step reads of a batch of rows of ids; inside `tf.data`."""
        return keras.utils.pack_x_y_sample_weight(x, y, sample_weight)

    def _source(
        self,
        x,
        y=None,
        sample_weight=None,
        batch_size=None,
        shuffle=False,
        seed=0,
        class_weight=None,
        labelled=True,
    ):
        """What gives the batches; see `keras_bert.data.sources`."""
        weigh = self._class_weigher(class_weight)
        if hasattr(x, "element_spec"):  # tf.data.Dataset
            if y is not None or sample_weight is not None or batch_size is not None:
                raise ValueError(
                    "a dataset brings its own labels, weights and batches: got y, sample_weight "
                    "or batch_size beside it"
                )
            prepare = self._dataset_preparer(x, labelled)
            multiple = self.replica_count * self.accumulation_steps if labelled else 1
            if labelled and self.needs_whole_batches and x.cardinality() != -1:  # that is endless
                # The last batch of a `pretraining_dataset` of one epoch is filled up too.
                multiple = math.lcm(multiple, getattr(x, "batch_size", 1))
            return DatasetSource(x, lambda *batch: weigh(prepare(*batch)), multiple)
        ids = isinstance(x, dict)
        if not ids and self.preprocessor is None:
            raise ValueError(
                f"this {type(self).__name__} has no preprocessor: expected a dict of ids "
                f"(token_ids, segment_ids, padding_mask), got {type(x).__name__}"
            )
        columns = None if ids else text_columns(x)
        labels = None if y is None else self.encode_labels(y)
        weights = None if sample_weight is None else np.asarray(sample_weight, "float32")
        batch_size = batch_size or 32
        if ids:
            columns = {name: np.asarray(value) for name, value in x.items() if value is not None}
            self._check_ids(columns)
            if keras.config.backend() != "tensorflow":
                if class_weight is not None:
                    by_id = self.encode_class_weight(class_weight)
                    table = np.array([by_id[i] for i in range(len(by_id))], "float32")
                    weights = table[labels] * (1 if weights is None else weights)
                return ArraySource(columns, labels, weights, batch_size, shuffle, seed)

        def preprocess(x, y=None, sample_weight=None):
            if ids:
                return weigh(self._pack_ids(x, y, sample_weight))
            return weigh(self._preprocess(x, y, sample_weight))

        parts = (columns, labels, weights, batch_size, preprocess, shuffle, seed)
        return packed_source(self, *parts) or RowSource(*parts, self.needs_whole_batches)

    def _class_weigher(self, class_weight):
        """Multiplies the weights of batches by those of their classes, inside `tf.data`."""
        if class_weight is None:
            return lambda batch: batch
        import tensorflow as tf

        by_id = self.encode_class_weight(class_weight)
        table = tf.constant([by_id[i] for i in range(len(by_id))], "float32")

        def weigh(batch):
            x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(batch)
            weights = tf.gather(table, y)
            if sample_weight is not None:
                weights *= tf.cast(sample_weight, "float32")
            return x, y, weights

        return weigh

    def _dataset_preparer(self, dataset, labelled):
        first = keras.tree.flatten(dataset.element_spec)[0]
        texts = first.dtype.name == "string"
        if texts and first.shape.rank == 0:
            raise ValueError("the dataset gives single texts: expected batches; add .batch(32)")

        def preprocess(x, y=None, sample_weight=None):
            if not labelled and y is not None and y.dtype.name == "string":
                raise ValueError(
                    "the dataset gives (x, y) with strings as y: to predict on pairs it has to "
                    "give ((firsts, seconds),)"
                )
            y = self.encode_labels_in_graph(y) if labelled else None
            if texts:
                return self._preprocess(x, y, sample_weight if labelled else None)
            return keras.utils.pack_x_y_sample_weight(x, y, sample_weight if labelled else None)

        return preprocess

    def _check_shares(self, source) -> None:
        """Refuses a batch that replicas and micro-batches cannot share evenly.

        A user's dataset is filled up instead, as its batches may differ.
        """
        shares = self.replica_count * self.accumulation_steps
        size = getattr(source, "batch_size", shares)
        if size % shares:
            raise ValueError(
                f"batch_size={size} cannot be shared by {self.replica_count} replicas x "
                f"{self.accumulation_steps} micro-batches: expected a multiple of {shares}"
            )

    def _check_ids(self, x: dict[str, np.ndarray]) -> None:
        missing = {"token_ids", "segment_ids", "padding_mask"} - set(x)
        if missing:
            raise ValueError(f"ids lack {', '.join(sorted(missing))}; got {', '.join(x) or 'none'}")
        wrong = [name for name, value in x.items() if value.dtype.kind not in "iub"]
        if wrong:
            raise ValueError(f"{wrong[0]} are {x[wrong[0]].dtype}; expected integers")
        complete_inputs(x)
        limits = {
            "token_ids": self.backbone.vocabulary_size,
            "segment_ids": self.backbone.num_segments,
            "position_ids": self.backbone.max_sequence_length,
        }
        for name, limit in limits.items():
            if name in x and x[name].size and not 0 <= x[name].min() <= x[name].max() < limit:
                raise ValueError(
                    f"{name} run from {x[name].min()} to {x[name].max()}; expected 0 to {limit - 1}"
                )
        length, most = x["token_ids"].shape[1], self.backbone.max_sequence_length
        if "position_ids" not in x and length > most:
            raise ValueError(
                f"token_ids are {length} long, but the model has {most} positions: truncate them "
                f"to {most}"
            )

    def _split(self, x, y, sample_weight, share):
        if hasattr(x, "element_spec"):
            raise ValueError("validation_split needs lists or arrays, not a dataset")
        columns = x if isinstance(x, dict | tuple) else (x,)
        parts = list(columns.values()) if isinstance(columns, dict) else list(columns)
        cut = math.floor(len(parts[0]) * (1 - share))
        if not 0 < cut < len(parts[0]):
            raise ValueError(
                f"validation_split={share} of {len(parts[0])} rows leaves one side empty"
            )

        def take(side):
            cuts = [part[side] for part in parts]
            if isinstance(x, dict):
                new_x = dict(zip(x, cuts, strict=True))
            else:
                new_x = tuple(cuts) if isinstance(x, tuple) else cuts[0]
            extra = [None if v is None else v[side] for v in (y, sample_weight)]
            return new_x, *extra

        return *take(slice(None, cut)), take(slice(cut, None))

    def _start_schedule(self, steps: int | None) -> None:
        """Puts an optimizer in place whose schedule covers this `fit`."""
        if steps is None:
            logger.warning(
                "the dataset does not say its size, so the learning rate stays at %g: pass "
                "steps_per_epoch or steps for warm-up and decay",
                self._schedule["learning_rate"],
            )
        with self.scope():
            optimizer = self._auto_optimizer(steps)
            if self._made_by(self.optimizer, optimizer):
                # The same again: from zero, but with the function that is traced already.
                for variable in self.optimizer.variables:
                    variable.assign(keras.ops.zeros(variable.shape, variable.dtype))
                return
            if self.dtype_policy.name == "mixed_float16":
                optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
            self.optimizer = optimizer
        self.train_function = None  # Keras traces it again with the new optimizer

    def _auto_optimizer(self, steps: int | None) -> AdamW:
        settings = self._schedule
        # At least one step is left for the decay.
        warmup_steps = 0 if steps is None else min(int(settings["warmup"] * steps), steps - 1)
        rate = WarmupDecay(settings["learning_rate"], steps, warmup_steps, settings["decay"])
        scales = None
        if settings["layer_decay"] is not None:
            scales = layerwise_rate_scales(self, settings["layer_decay"])
        return AdamW(
            rate, settings["weight_decay"], epsilon=settings["epsilon"], rate_scales=scales
        )

    def _made_by(self, old, new) -> bool:
        """Whether the optimizer in use is what `new` would be once built."""

        def settings(optimizer):
            config = optimizer.get_config() | {"name": None}
            return config | {"learning_rate": config["learning_rate"]["config"]}

        def paths(variables):
            return [variable.path for variable in variables]

        trained = getattr(old, "_trainable_variables", [])
        return (
            type(old) is type(new)
            and settings(old) == settings(new)
            and self.train_function is not None
            and paths(trained) == paths(self.trainable_variables)
        )


def check_takes_logits(loss) -> None:
    """Refuses a loss that would read the tasks' logits as probabilities.

    Raises:
        ValueError: if it would.
    """
    found = keras.losses.get(loss) if isinstance(loss, str) else loss
    reads_logits = getattr(found, "from_logits", None)
    if reads_logits is None and inspect.isfunction(found):
        parameter = inspect.signature(found).parameters.get("from_logits")
        reads_logits = parameter and parameter.default
    if reads_logits is False:
        raise ValueError(
            f"loss={loss!r} expects probabilities, but the model gives logits: pass the loss "
            "object with from_logits=True"
        )


def _joined(metrics, weighted_metrics):
    """Two lists of metrics, or dicts of lists by output, as one."""
    if not metrics or not weighted_metrics:
        return metrics or weighted_metrics
    if isinstance(metrics, dict) and isinstance(weighted_metrics, dict):
        names = [*metrics, *(name for name in weighted_metrics if name not in metrics)]
        return {n: [*_listed(metrics.get(n)), *_listed(weighted_metrics.get(n))] for n in names}
    return [*_listed(metrics), *_listed(weighted_metrics)]


def _listed(value) -> list:
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]


@contextlib.contextmanager
def _quiet_about_size():
    """Keeps Keras from warning that a dataset of unknown size has an end.

    Training with a number of steps reads an endless stream, so that nothing real is kept quiet.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Your input ran out of data")
        yield


def _known_size(batches) -> int | None:
    """How many batches a dataset says it has."""
    if not hasattr(batches, "cardinality"):
        return len(batches) if hasattr(batches, "__len__") else None
    size = int(batches.cardinality())
    return size if size >= 0 else None


def _has_accelerator() -> bool:
    if keras.config.backend() != "tensorflow":
        return True
    import tensorflow as tf

    return bool(tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("TPU"))
