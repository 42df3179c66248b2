"""What all tasks share: the text pipeline under `fit`, the default optimizer, saving."""

import inspect
import logging
import math
from typing import Any

import keras
import keras_hub
import numpy as np

from keras_bert.atomic import write_folder
from keras_bert.checkpoints.preset import FILES
from keras_bert.data.pipeline import ArrayBatches, map_batches, text_columns, text_dataset
from keras_bert.models.backbone import complete_inputs
from keras_bert.training import AdamW, WarmupLinear

logger = logging.getLogger("keras_bert")


class BertTask(keras_hub.models.Task):
    """Base of the tasks: `fit`, `evaluate` and `predict` on texts or on ids.

    It differs from KerasHub's pipeline in four things: texts are shuffled every epoch with a
    seed, wrong input is named row by row, `fit` makes an optimizer whose schedule fits its
    number of steps, and presets are written whole or not at all.
    """

    def __call__(self, inputs, *args, **kwargs):
        if isinstance(inputs, dict):
            inputs = complete_inputs(inputs)
        return super().__call__(inputs, *args, **kwargs)

    def compile(
        self,
        optimizer="auto",
        loss="auto",
        *,
        metrics="auto",
        learning_rate: float = 5e-5,
        weight_decay: float = 0.01,
        warmup: float = 0.1,
        jit_compile="auto",
        **kwargs,
    ):
        """Sets the model up for training; called on construction with the defaults.

        Args:
            optimizer: "auto" for `keras_bert.training.AdamW`, which `fit` gives a linear warm-up
                and decay over its own number of steps; each `fit` then starts a new schedule. Or
                any Keras optimizer, used as it is.
            loss: "auto" for the task's own, or a Keras loss on logits.
            metrics: "auto" for the task's own, or Keras metrics.
            learning_rate: peak rate of the automatic optimizer.
            weight_decay: decay of the automatic optimizer; biases and LayerNorm are left out.
            warmup: share of the steps in which the rate rises.
            jit_compile: "auto" compiles with XLA but for TensorFlow on a CPU, where it is slower.
            **kwargs: as `keras.Model.compile`.

        Raises:
            ValueError: if the loss expects probabilities.
        """
        self._schedule = None
        if isinstance(optimizer, str) and optimizer == "auto":
            self._schedule = {
                "learning_rate": learning_rate,
                "weight_decay": weight_decay,
                "warmup": warmup,
            }
            # A schedule from the start, so that optimizers of every `fit` save the same variables.
            optimizer = AdamW(WarmupLinear(learning_rate, None), weight_decay)
        if isinstance(loss, str) and loss == "auto":
            loss = self.default_loss()
        if isinstance(metrics, str) and metrics == "auto":
            metrics = self.default_metrics()
        check_takes_logits(loss)
        if jit_compile == "auto":
            jit_compile = "auto" if _has_accelerator() else False
        # Past KerasHub's compile, whose defaults are others.
        keras.Model.compile(
            self, optimizer, loss, metrics=metrics, jit_compile=jit_compile, **kwargs
        )

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
        if config is not None and self._schedule is not None:
            config |= {"optimizer": "auto", **self._schedule}
        return config

    def compile_from_config(self, config):
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    def fit(
        self,
        x=None,
        y=None,
        batch_size: int | None = None,
        epochs: int = 1,
        sample_weight=None,
        validation_data=None,
        validation_split: float = 0.0,
        shuffle: bool = True,
        seed: int = 0,
        class_weight: dict | None = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        **kwargs,
    ):
        """Trains the model.

        Args:
            x: a list of N texts; a tuple (firsts, seconds) of two such lists; a dict of int
                arrays [N, T] with the backbone's inputs; or a `tf.data.Dataset` of batches
                (x, y) or (x, y, sample_weight) of texts or ids.
            y: N labels, as ids or as names. Not with a dataset.
            batch_size: rows of a batch, 32 by default. Not with a dataset.
            epochs: passes over the data.
            sample_weight: N weights of the rows' losses.
            validation_data: (x, y) or (x, y, sample_weight), or a dataset.
            validation_split: share of the rows, from the end, to validate on instead.
            shuffle: whether to draw a new order of the rows every epoch.
            seed: seed of the orders.
            class_weight: weights of the losses by label id or name; 1 where it names none. Not
                together with `sample_weight`.
            initial_epoch: epoch to begin with.
            steps_per_epoch: batches in an epoch; by default all.
            **kwargs: as `keras.Model.fit`.

        Returns:
            The Keras `History`.

        Raises:
            TypeError: if a text is not a string.
            ValueError: if columns differ in length, or a label is unknown.
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
        train = self._batches(x, y, sample_weight, batch_size, shuffle=shuffle, seed=seed)
        if validation_data is not None:
            if isinstance(validation_data, tuple | list):
                validation_data = self._batches(*validation_data, batch_size=batch_size)
            else:
                validation_data = self._batches(validation_data)
        if class_weight is not None:
            class_weight = self.encode_class_weight(class_weight)
        if self._schedule is not None:
            steps = steps_per_epoch or _cardinality(train)
            self._start_schedule(steps and steps * max(1, epochs - initial_epoch))
        return keras.Model.fit(
            self,
            train,
            epochs=epochs,
            validation_data=validation_data,
            class_weight=class_weight,
            initial_epoch=initial_epoch,
            steps_per_epoch=steps_per_epoch,
            shuffle=False,  # the batches above are shuffled already
            **kwargs,
        )

    def evaluate(self, x=None, y=None, batch_size=None, sample_weight=None, **kwargs):
        """Gives loss and metrics on labelled data; takes what `fit` takes, every row once."""
        batches = self._batches(x, y, sample_weight, batch_size)
        return keras.Model.evaluate(self, batches, **kwargs)

    def predict(self, x, batch_size: int | None = None, **kwargs):
        """Gives the model's output for each row, in the order of the rows.

        Args:
            x: as in `fit`, without labels; or one string.
            batch_size: rows of a batch, 32 by default.
            **kwargs: as `keras.Model.predict`.

        Returns:
            float32 array [N, ...]; for one string without the first axis.

        A dataset gives x alone; pairs as ((firsts, seconds),), since Keras reads a pair as
        (x, y). Labels in a dataset are passed over.
        """
        if isinstance(x, str | bytes):
            return self.predict([x], batch_size, **kwargs)[0]
        if isinstance(x, dict) or hasattr(x, "element_spec") or self.preprocessor is None:
            batches = self._batches(x, batch_size=batch_size, labelled=False)
            return keras.Model.predict(self, batches, **kwargs)
        columns = text_columns(x)
        if not columns[0]:
            return np.zeros((0, *self.output_shape[1:]), "float32")
        # Rows of like length share a batch, so that little is spent on padding.
        lengths = [sum(len(text) for text in row) for row in zip(*columns, strict=True)]
        order = np.argsort(lengths, kind="stable")
        sorted_columns = tuple([column[i] for i in order] for column in columns)
        batches = text_dataset(sorted_columns, None, None, batch_size or 32, self._preprocess)
        outputs = keras.Model.predict(self, batches, **kwargs)
        restored = np.empty_like(outputs)
        restored[order] = outputs
        return restored

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

    def _preprocess(self, x, y=None, sample_weight=None):
        return self.preprocessor(x, y=y, sample_weight=sample_weight)

    def _batches(
        self,
        x,
        y=None,
        sample_weight=None,
        batch_size=None,
        shuffle=False,
        seed=0,
        labelled=True,
    ) -> Any:
        """A `tf.data.Dataset` or Keras's own adapter over what the user gave."""
        if hasattr(x, "element_spec"):  # tf.data.Dataset
            if y is not None or sample_weight is not None or batch_size is not None:
                raise ValueError(
                    "a dataset brings its own labels, weights and batches: got y, sample_weight "
                    "or batch_size beside it"
                )
            return self._map_dataset(x, labelled)
        columns = None if isinstance(x, dict) or self.preprocessor is None else text_columns(x)
        labels = None if y is None else self.encode_labels(y)
        weights = None if sample_weight is None else np.asarray(sample_weight, "float32")
        if isinstance(x, dict):
            return self._id_batches(x, labels, weights, batch_size or 32, shuffle, seed)
        if self.preprocessor is None:
            raise ValueError(
                f"this {type(self).__name__} has no preprocessor: expected a dict of ids "
                f"(token_ids, segment_ids, padding_mask), got {type(x).__name__}"
            )
        return text_dataset(
            columns, labels, weights, batch_size or 32, self._preprocess, shuffle, seed
        )

    def _map_dataset(self, dataset, labelled):
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
                return self._preprocess(x, y, sample_weight)
            return keras.utils.pack_x_y_sample_weight(x, y, sample_weight)

        return map_batches(dataset, preprocess)

    def _id_batches(self, x, labels, weights, batch_size, shuffle, seed):
        x = {name: np.asarray(value) for name, value in x.items() if value is not None}
        self._check_ids(x)
        return ArrayBatches(x, labels, weights, batch_size, shuffle, seed)

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
        rate, share = self._schedule["learning_rate"], self._schedule["warmup"]
        if steps is None:
            logger.warning(
                "the dataset does not say its size, so the learning rate stays at %g: pass "
                "steps_per_epoch for warm-up and decay",
                rate,
            )
        # At least one step is left for the decay.
        warmup_steps = 0 if steps is None else min(int(share * steps), steps - 1)
        optimizer = AdamW(WarmupLinear(rate, steps, warmup_steps), self._schedule["weight_decay"])
        if self._made_by(self.optimizer, optimizer):
            # The same again: from zero, but with the function that is traced already.
            for variable in self.optimizer.variables:
                variable.assign(keras.ops.zeros_like(variable))
            return
        if self.dtype_policy.name == "mixed_float16":
            optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
        self.optimizer = optimizer
        self.train_function = None  # Keras traces it again with the new optimizer

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


def _cardinality(batches) -> int | None:
    """Batches in one pass, or None where that is unknown or endless."""
    if hasattr(batches, "cardinality"):
        size = int(batches.cardinality())
        return size if size >= 0 else None
    return len(batches)


def _has_accelerator() -> bool:
    if keras.config.backend() != "tensorflow":
        return True
    import tensorflow as tf

    return bool(tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("TPU"))
