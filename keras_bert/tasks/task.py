"""The base of all tasks. A task is a declaration of its columns, its rows and its answers."""

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import keras
import keras_hub
import numpy as np
from tqdm import tqdm

from keras_bert.arguments import check_above_zero, check_batch_size, check_count, check_number
from keras_bert.atomic import write_folder
from keras_bert.checkpoints import load_tuned_part, open_checkpoint, save_tuned_part
from keras_bert.checkpoints.preset import FILES
from keras_bert.data.examples import Examples, are_examples, are_ids, is_dataset, part_of
from keras_bert.data.ragged import (
    dense_parts,
    host_only,
    is_ragged,
    joined,
    joined_rows,
    without_padding,
)
from keras_bert.data.sources import check_columns
from keras_bert.data.table_rows import CLASS, Cell, Table, is_file_name, is_table
from keras_bert.data.texts import is_text, text_columns
from keras_bert.data.validation_split import split_rows
from keras_bert.layers.crf import CRFLoss
from keras_bert.models import merge_lora, tune
from keras_bert.models.backbone import OPTIONAL_INPUTS, BertBackbone
from keras_bert.serving.export import export_task
from keras_bert.serving.network import BY_TOKEN
from keras_bert.serving.signatures import EXAMPLES, TEXT, Column
from keras_bert.tasks.batch_sources import (
    check_beside,
    dataset_source,
    holds_texts,
    memory_source,
)
from keras_bert.tasks.fitting import Run, scored
from keras_bert.tasks.from_checkpoint import (
    class_of_saved_task,
    complete,
    kept_settings,
    load_heads,
    saved_task,
    sorted_settings,
)
from keras_bert.tasks.ids import (
    check_axes,
    check_ids,
    check_preprocessor,
    checked_ids,
    fold,
    has_several,
)
from keras_bert.tasks.run_rows import few_rows, kept_function, run_rows
from keras_bert.tasks.table_batches import table_source
from keras_bert.tasks.targets import checked_weights
from keras_bert.text.padding import bucket_length
from keras_bert.training.automatic_optimizer import ADJUSTABLE, automatic_optimizer, restarted
from keras_bert.training.callback_list import callbacks_over
from keras_bert.training.compile_arguments import (
    check_label_smoothing,
    compiled_as,
    has_accelerator,
    joined_metrics,
    task_loss,
)
from keras_bert.training.dataset_sizes import quiet_about_size
from keras_bert.training.losses import TaskLoss
from keras_bert.training.step import Step
from keras_bert.training.task_metrics import CLASSES, task_metrics

CHUNK = 1000  # examples converted to rows at once
MANY = 4 * CHUNK  # examples from which a graph makes rows; tracing it takes half a second
SILENT_SECONDS = 5  # longer tokenization shows a progress bar


class Rows(NamedTuple):
    """Rows of the network for a batch of B examples.

    Attributes:
        ids: the model's inputs by name, int32 [R, T], [B, C, T] or [R, P].
        example: int32 [R], the index of each row's example; None if R = B, in the same order.
        about: anything else that `labels_of_rows` and `answers` need.
    """

    ids: dict[str, Any]
    example: Any = None
    about: Any = None


class Answer(NamedTuple):
    """One kind of question that a task answers, in Python and in an export.

    Attributes:
        asks: the columns of an example by name, in order.
        example: a value of each column, for the contract of an export.
        rows: converts columns, tensors [B, ...], to `Rows`.
        answers: computes a dict of tensors [B, ...] from (outputs, rows, *columns).
        kept: reduces the outputs of some rows to the part to keep; by default all.
        key: identifies it among the task's answers.
    """

    asks: dict[str, Column]
    example: dict[str, list]
    rows: Callable
    answers: Callable
    kept: Callable | None = None
    key: tuple = ()


# Losses whose labels are ids of classes, or 0 and 1.
LABEL_LOSSES = (TaskLoss, keras.losses.BinaryCrossentropy, CRFLoss)


class BertTask(keras_hub.models.Task):
    """Base of the tasks: `fit`, `evaluate` and `predict` on examples or on ids.

    A task declares the columns of an example (`asks`), how they become rows of the network
    (`rows`), and how outputs become answers (`answers`), both as TensorFlow operations: the method
    that answers and a server run the same code. `examples` parses users' data.

    It differs from KerasHub's pipeline in five ways: rows are shuffled every epoch with a seed,
    errors name the row of invalid input, `fit` makes an optimizer whose schedule fits its number of
    steps, the step computes the same numbers on one device and on many (see
    `keras_bert.training.tensorflow_step`), and presets are written atomically.

    Args:
        *args: as `keras.Model`.
        **kwargs: as `keras.Model`: `inputs`, `outputs`, `name`, `trainable` and `compile`.

    Attributes:
        asks: the columns of an example by name, in order.
        example: values of each column, for the contract of an export.
        head_kind: one of `keras_bert.checkpoints.contents.HEADS`, or None.
        output_kind: one of `keras_bert.training.task_metrics`, or a dict of them by output.
        outputs_by_token: whether an output's axis 1 of the row's length is one of tokens.
        fill_value: padding of such an output for truncated rows.
        labels_by_token: whether the last axis of labels and weights is T too.
        reads_several: whether ids [B, C, T], C texts per example, give outputs [B, C, ...]. They
            are not packed.
        most_texts: maximum number of texts in an example of texts alone; None for any.
        reads_first_tokens: whether the head reads only the first token of a text.
        needs_labels: whether rows in memory need labels, in training and evaluation.
        at_once: number of examples answered at once, which bounds memory.
        answers_read_rows: whether `answers` reads its argument `rows`, if rows are examples.
        column_names: arguments of `fit`, `evaluate` and `predict` that name columns of a table.

    Raises:
        TypeError: if an argument is unknown.
    """

    asks: dict[str, Column] = {"text": TEXT}
    example: dict[str, list] = {"text": EXAMPLES}
    backbone_cls = BertBackbone
    head_kind: str | None = None
    output_kind: str | dict[str, str] = CLASSES
    outputs_by_token = False
    fill_value = 0.0
    labels_by_token = False
    reads_several = False
    most_texts = 2
    reads_first_tokens = False
    needs_labels = True
    at_once = CHUNK
    answers_read_rows = True
    functions = None  # of `keras_bert.tasks.run_rows`, created on first use
    column_names: tuple[str, ...] = ("text", "text_pair", "label", "weight")

    def __init__(self, *args, **kwargs):
        # Keras would ignore a misspelt argument of a task.
        known = {"inputs", "outputs", "name", "trainable", "dtype", "compile"}
        if unknown := sorted(kwargs.keys() - known):
            raise TypeError(
                f"unknown argument {', '.join(unknown)}: {type(self).__name__} has none so named"
            )
        self.step = Step(self)
        self.run = None  # the `Run` of the last `fit`
        self._compiled_as = None
        super().__init__(*args, **kwargs)
        if not self.compiled:
            jit_compile = self._prepare(jit_compile="auto", packing="auto")
            self.step.prepare(jit_compile=jit_compile)

    @classmethod
    def from_preset(
        cls,
        preset: str | Path,
        *,
        load_weights: bool = True,
        skip_mismatch: bool = False,
        **settings,
    ):
        """Makes the task from a checkpoint.

        The weights of its heads are loaded if the checkpoint has them. The task's `loading_report`
        lists the weights that were loaded and those that are new; new ones are logged as a warning.
        `BertTask.from_preset` itself makes the task that the preset was saved from.

        Args:
            preset: a folder saved by `save_to_preset`, or the name of a preset in the package; a
                Hugging Face directory or hf:// address; a KerasHub BERT preset's name, address
                or folder; or google-research/bert's files, by folder, prefix or .index file.
            load_weights: False for new weights of the same shapes.
            skip_mismatch: whether to make a new head if the checkpoint's is for other classes or
                another problem.
            **settings: arguments of the task, such as `labels`; of its preprocessor, such as
                `sequence_length`, at most the number of positions; and of `BertBackbone`, such as
                `dtype` or `hidden_dropout`. One that is None or left out comes from the checkpoint.

        Returns:
            The task, with its preprocessor if the checkpoint has a vocabulary.

        Raises:
            FileNotFoundError: if there is nothing at `preset`, or a file is missing.
            TypeError: if none of the three takes an argument.
            ValueError: if a file is damaged, weights do not fit, or settings contradict the
                checkpoint or each other.
        """
        checkpoint = open_checkpoint(preset, load_weights)
        task = class_of_saved_task(checkpoint, BertTask) if cls is BertTask else cls
        return task._from_checkpoint(checkpoint, load_weights, skip_mismatch, settings)

    @classmethod
    def _from_checkpoint(cls, checkpoint, load_weights, skip_mismatch, settings):
        own, text, network = sorted_settings(cls, settings)
        fitting = cls.complete_settings(own, network, checkpoint, skip_mismatch)
        backbone = checkpoint.backbone(load_weights, **network)
        preprocessor = checkpoint.preprocessor(
            cls.preprocessor_cls, backbone.max_sequence_length, **text
        )
        task = cls(backbone, preprocessor=preprocessor, **own)
        load_heads(task, checkpoint, load_weights, fitting)
        return task

    @classmethod
    def complete_settings(cls, own: dict, network: dict, checkpoint, skip_mismatch: bool):
        """Completes arguments of the task and the backbone in place, as `from_preset` passes them.

        Returns `fitting` of `keras_bert.tasks.from_checkpoint.load_heads`.

        Raises:
            ValueError: if they contradict the checkpoint, and `skip_mismatch` is False.
        """
        saved = saved_task(checkpoint, cls)
        complete(own, cls, saved)
        return bool(saved)

    @property
    def preprocessor(self):
        """Converts texts to the backbone's inputs; None for a task on ids alone."""
        return getattr(self, "_preprocessor", None)

    @preprocessor.setter
    def preprocessor(self, value):
        check_preprocessor(value, self.backbone)
        self._preprocessor = value

    def check_preprocessor(self) -> None:
        """Raises a ValueError if the preprocessor, whose settings may change, does not fit."""
        check_preprocessor(self.preprocessor, self.backbone)

    def check_has_preprocessor(self) -> None:
        """Checks that there is a preprocessor, and that it fits the backbone.

        Raises:
            ValueError: if there is none, or it does not fit.
        """
        if self.preprocessor is None:
            name = type(self).__name__
            raise ValueError(
                f"this {name} has no preprocessor, whose tokenizer texts need: make it with "
                f"preprocessor={self.preprocessor_cls.__name__}(tokenizer), or pass a dict of ids "
                "(token_ids, segment_ids, padding_mask)"
            )
        self.check_preprocessor()

    # === The declaration ===

    def examples(self, x, y=None) -> Examples:
        """Parses and checks a user's data.

        Args:
            x: examples in memory, as `fit` takes them, or `Examples`, which stay.
            y: their labels, or None.

        Returns:
            The examples.

        Raises:
            TypeError: if a text is not a string.
            ValueError: if columns differ in length, or a label is unknown.
        """
        if isinstance(x, Examples):
            return x
        columns = text_columns(x, self.most_texts)
        self.check_number_of_columns(columns)
        return Examples(columns, self._encoded(y))

    def brings_labels(self, x) -> bool:
        """Whether a single object includes labels, as `fit` takes it from a reader."""
        return False

    def _encoded(self, y):
        return None if y is None else self.encode_labels(y)

    def table_cells(self, given: Sequence[str], labelled: bool) -> dict[str, Cell]:
        """Lists the columns that the task reads of a table, see `keras_bert.data.Table`.

        Args:
            given: the columns that the user named.
            labelled: whether labels are needed.

        Returns:
            The kind of each column by its name, one of `column_names`.
        """
        cells = {"text": Cell(), "text_pair": Cell(required=False)}
        if labelled:
            cells["label"] = Cell(self.label_kind, required=self.needs_labels)
        return cells

    @property
    def label_kind(self) -> str:
        """The kind of `keras_bert.data.table_rows` of the column `label`."""
        return CLASS

    def examples_of_table(self, columns: dict[str, list]) -> tuple:
        """Converts rows of a table to data as `fit` takes them.

        Args:
            columns: values of some rows, by the names of `table_cells`.

        Returns:
            (x, y); y is None without labels.
        """
        texts = [columns[name] for name in ("text", "text_pair") if name in columns]
        return texts[0] if len(texts) == 1 else tuple(texts), columns.get("label")

    def with_targets(self, data: Examples) -> Examples:
        """Completes labels that are found in the texts, as `labels_of_rows` takes them."""
        return data

    def rows_of_table(
        self, columns: dict[str, list], labelled: bool = True
    ) -> tuple[dict, Any, Any]:
        """Converts rows of a table to rows of the network, as `ragged_rows` does with examples.

        `columns` are those of `examples_of_table`, and `weight`.
        """
        data, weights = self.check_table(columns, labelled)
        return self._without_padding(self.rows, (), self.with_targets(data), weights, True)

    def check_table(self, columns: dict[str, list], labelled: bool = True) -> tuple[Examples, Any]:
        """Parses and checks rows of a table, as `rows_of_table`: (examples, weights or None)."""
        x, y = self.examples_of_table(columns)
        data = self._labelled(x, y, "fit")[0] if labelled else self.examples(x)
        return data, checked_weights(columns.get("weight"), "weight")

    @classmethod
    def _checks_rows(cls) -> bool:
        """Whether some examples may have no valid rows."""
        return cls.check_rows is not BertTask.check_rows

    def makes_rows_to_check(self, data: Examples) -> bool:
        """Whether an example can have several rows or none, as `rows` makes them."""
        sample = self._tensors(data.part(slice(0, 1)))
        return self._checks_rows() or self.rows(*sample).example is not None

    def as_table(self, x, options: dict, y=None):
        """Makes a `Table` of what is read in pieces, as `fit` takes it; returns anything else.

        Arguments that describe a table are removed from `options`.

        Raises:
            TypeError: if columns are named for anything but a table.
        """
        names = (*self.column_names, "skip_bad_rows", "delimiter", "label_separator")
        named = {name: options.pop(name) for name in names if name in options}
        if isinstance(x, Table):
            other = "a Table, which has its columns"
        elif y is not None:
            other = "labels beside it"
        elif not are_examples(x):
            other = type(x).__name__
        else:
            return Table(x, **named) if named or is_table(x) else x
        if named:
            name, value = next(iter(named.items()))
            raise TypeError(f"{name}={value!r}: expected files or a table, not {other}")
        return x

    def rows(self, *columns, **options) -> Rows:
        """Converts a batch of examples to rows; TensorFlow, eagerly or in a graph.

        Args:
            *columns: tensors [B, ...], as `asks` orders them.
            **options: options of the method that answers.

        Returns:
            The rows.
        """
        return Rows(self.preprocessor.pack(columns))

    def rows_of_dataset(self, *columns) -> dict[str, Any]:
        """Makes rows of a batch of a dataset in its graph, as `rows`, and gives their ids.

        Raises:
            ValueError: if an example has several rows, which need lists.
        """
        rows = self.rows(*columns)
        if rows.example is not None or self.outputs_by_token:
            raise ValueError(
                f"the dataset gives texts, and {type(self).__name__} makes several rows of one: "
                "expected lists, or datasets of ids"
            )
        return rows.ids

    def check_number_of_columns(self, columns: tuple) -> None:
        """Checks the number of columns, as `examples`.

        Raises:
            ValueError: if it is none that the task takes.
        """
        most = self.most_texts and max(len(self.asks), self.most_texts)
        if len(columns) < len(self.asks) or (most and len(columns) > most):
            names = ", ".join(self.asks)
            raise ValueError(f"got {len(columns)} columns: expected {len(self.asks)}, ({names})")

    def check_rows(self, rows: Rows, first: int, lines: Sequence[int] | None) -> None:
        """Rejects examples that have no valid rows, as `rows` made them.

        `first` is the index of the first of them, `lines` the line numbers of all in a file, or
        None.

        Raises:
            ValueError: if there is one; the error names its row and line.
        """

    def labels_of_rows(self, rows: Rows, labels, weights, first: int) -> tuple:
        """Converts labels and weights of examples to those of rows.

        Args:
            rows: rows of some examples.
            labels: labels of these examples, or None.
            weights: their weights, or None.
            first: index of the first example.

        Returns:
            (labels, weights) of the rows; None stays None.

        Raises:
            ValueError: if labels or weights do not fit their example.
        """
        if rows.example is None:
            return labels, weights
        example = np.asarray(rows.example)
        return part_of(labels, example), part_of(weights, example)

    def answers(self, outputs, rows: Rows, *columns, **options) -> dict[str, Any]:
        """Converts outputs of the network to answers; TensorFlow, eagerly or in a graph.

        Args:
            outputs: the model's output for `rows.ids`.
            rows: rows of B examples.
            *columns: the examples, tensors [B, ...].
            **options: options of the method that answers.

        Returns:
            Tensors [B, ...] by name; unused places of further axes hold "", -1 and 0.0.

        Raises:
            NotImplementedError: if the task does not declare it.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say how it answers")

    def signatures(self, **options) -> dict[str, Answer]:
        """Lists the signatures of an export that take strings.

        Args:
            **options: options of `export`.

        Returns:
            An `Answer` by signature name, including `serving_default`.

        Raises:
            TypeError: if an option is unknown.
            ValueError: if one is out of range.
        """
        rows, answers = partial(self.rows, **options), partial(self.answers, **options)
        key = tuple(sorted(options.items()))
        return {"serving_default": Answer(self.asks, self.example, rows, answers, None, key)}

    def encode(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Computes the states that the heads read; called once, by the constructor.

        A class of your own can put layers between backbone and heads: Keras layers on symbolic
        tensors. They are trained, saved and exported with the heads.

        Args:
            inputs: the backbone's symbolic inputs.

        Returns:
            The backbone's outputs: `sequence_output` [B, T, D], `pooled_output` [B, D] and those
            that were asked for.
        """
        return self.backbone(inputs)

    # === From and to checkpoints ===

    @property
    def input_spec(self):
        """None for a task that takes ids with two or three axes, else Keras's input spec."""
        return None if self.reads_several else super().input_spec

    def call(self, inputs, training=None, mask=None):
        """As a functional model; inputs may include the optional inputs of the backbone's call.

        A task that `reads_several` folds ids [B, C, T] into rows, and returns outputs [B, C, ...].
        """
        if self.reads_several and has_several(inputs):
            output = self.call(fold(inputs), training=training)
            texts = keras.ops.shape(inputs["token_ids"])[1]
            return keras.ops.reshape(output, (-1, texts, *output.shape[1:]))
        options = {
            n: keras.ops.convert_to_tensor(inputs[n])
            for n in OPTIONAL_INPUTS
            if inputs.get(n) is not None
        }
        inputs = {n: value for n, value in inputs.items() if n not in OPTIONAL_INPUTS}
        if not options:
            return super().call(inputs, training=training, mask=mask)

        # The functional graph has no tensors for them: they are passed to the backbone directly.
        def with_options(operation):
            def run(*args, **kwargs):
                if isinstance(operation, keras.layers.Layer) and training is not None:
                    kwargs["training"] = training
                if operation is self.backbone:
                    args = ({**args[0], **options}, *args[1:])
                return operation(*args, **kwargs)

            return run

        return self._run_through_graph(self._standardize_inputs(inputs), with_options)

    def compute_output_spec(self, inputs, training=None, mask=None):
        if self.reads_several and has_several(inputs):
            check_axes(inputs)
            batch, texts, length = inputs["token_ids"].shape
            row = {n: keras.KerasTensor((None, length), x.dtype) for n, x in inputs.items()}
            output = self.compute_output_spec(row)
            return keras.KerasTensor((batch, texts, *output.shape[1:]), output.dtype)
        return super().compute_output_spec(
            {n: value for n, value in inputs.items() if n not in OPTIONAL_INPUTS}
        )

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
        label_smoothing: float = 0.0,
        accumulation_steps: int = 1,
        steps_per_execution: int = 1,
        jit_compile="auto",
        packing: bool | str = "auto",
        use_kernels: bool | str = "auto",
        **kwargs,
    ):
        """Sets the model up for training; called on construction with the defaults.

        The automatic optimizer starts from zero. If nothing but `learning_rate` and `warmup`
        differs from the last call, the compiled functions stay in use.

        Args:
            optimizer: "auto" for `keras_bert.training.AdamW`, which `fit` gives a warm-up and
                decay over its own number of steps; each `fit` then starts a new schedule. Or
                any Keras optimizer, used as it is.
            loss: "auto" for the task's own, or a Keras loss on logits; labels are passed as ids or
                one-hot, as the loss expects. Whatever its reduction ("sum" excepted), a batch's
                loss is sum(weight * loss) / sum(weight) over all its rows, regardless of replicas
                and micro-batches. Regularization losses are added.
            loss_weights: factors of the losses of several outputs; by default 1, or with
                loss="auto" the task's own.
            metrics: "auto" for the task's own, or Keras metrics; None or [] for none. They weight
                rows as the loss does. Keras metrics receive what they expect: probabilities; with
                `from_logits=True`, and for hinge metrics, logits; labels as ids or one-hot. With
                two classes, binary metrics (`Precision`, `AUC`) read class 1; with more, all
                classes one-hot, unless they select a class. Custom metrics and functions receive
                labels and outputs unchanged: ids and logits.
            weighted_metrics: more of the same; Keras has two lists.
            learning_rate: peak rate of the automatic optimizer.
            weight_decay: its weight decay; biases and LayerNorm are excluded.
            warmup: fraction of the steps with a rising rate.
            decay: decay of the rate after warm-up: "linear", "polynomial", "cosine" or "constant".
            layer_decay: factor on the rate from each block to the one below it, such as 0.9.
            epsilon: epsilon of the automatic optimizer; 1e-6 as in google-research/bert (PyTorch
                and transformers use 1e-8).
            label_smoothing: with loss="auto", the fraction of each label that is spread evenly over
                all classes (Szegedy et al. 2016, section 7); for multi-label, over positive and
                negative.
            accumulation_steps: number of micro-batches that every batch is split into, to save
                memory. The result is that of the whole batch, with a single update.
            steps_per_execution: batches run without returning to Python. On several replicas Keras
                does not support it, and 1 is used.
            jit_compile: "auto" compiles with XLA except for TensorFlow on a CPU, where it is
                slower.
            packing: sequence packing: whether `fit`, `evaluate` and `predict` pack short texts into
                rows of the encoder; see `keras_bert.layers.packing`. Outputs are those of unpacked
                texts. A batch then has approximately `batch_size` texts, and a batch of a
                classifier's `predict` no more tokens than without packing. Texts packed into a row
                in the first epoch stay together in all epochs; with `shuffle=False` texts keep
                their order to within four batches. "auto" packs if XLA compiles for an accelerator
                and at least a tenth of the cells is saved. Masked language modelling packs texts in
                shuffled training only.
            use_kernels: whether attention, GELU and normalization run in `keras_bert.kernels`.
                "auto" enables them in bfloat16 if XLA compiles for NVIDIA GPUs that support them;
                True raises an error without such GPUs.
            **kwargs: as `keras.Model.compile`.

        Raises:
            ValueError: if the loss expects probabilities, a metric is not supported by the task, or
                a number is out of range.
        """
        accumulation_steps = check_count("accumulation_steps", accumulation_steps)
        steps_per_execution = check_count("steps_per_execution", steps_per_execution)
        check_number("learning_rate", learning_rate)
        check_number("weight_decay", weight_decay)
        check_number("warmup", warmup, most=1)
        check_number("epsilon", epsilon)
        check_number("layer_decay", 1 if layer_decay is None else layer_decay)
        for name, choice in {"packing": packing, "use_kernels": use_kernels}.items():
            if choice != "auto" and not isinstance(choice, bool):
                raise ValueError(f"{name}={choice!r}: expected 'auto', True or False")
        check_label_smoothing(label_smoothing, loss)
        automatic = isinstance(optimizer, str) and optimizer == "auto"
        schedule = None
        if automatic:
            schedule = {
                "learning_rate": learning_rate,
                "weight_decay": weight_decay,
                "warmup": warmup,
                "decay": decay,
                "layer_decay": layer_decay,
                "epsilon": epsilon,
            }
        # In a plain object: Keras would list metrics in a dict twice.
        given = SimpleNamespace(
            loss=loss,
            metrics=metrics,
            weighted_metrics=weighted_metrics,
            label_smoothing=label_smoothing,
            accumulation_steps=accumulation_steps,
            jit_compile=jit_compile,
            packing=packing,
            use_kernels=use_kernels,
        )
        fixed = {name: value for name, value in (schedule or {}).items() if name not in ADJUSTABLE}
        fixed |= {"optimizer": optimizer, "loss_weights": loss_weights}
        fixed |= {"steps_per_execution": steps_per_execution}
        compiled = compiled_as(self, kwargs | fixed | vars(given))
        keeps = automatic and compiled is not None and compiled == self._compiled_as
        if keeps and self.train_function is not None and restarted(self, schedule, None):
            self.schedule = schedule
            self.reset_metrics()
            return
        self._compiled_as = compiled
        self.schedule, self._given = schedule, given
        jit_compile = self._prepare(jit_compile, packing)
        with self.step.scope():
            if automatic:
                # A schedule from the start, so that the optimizers of every `fit` save the same
                # variables.
                optimizer = automatic_optimizer(self, schedule, None)
            if isinstance(loss, str) and loss == "auto":
                loss = self.default_loss()
                loss_weights = loss_weights or self.default_loss_weights
            if isinstance(metrics, str) and metrics == "auto":
                metrics = self.default_metrics()
            metrics = joined_metrics(metrics, weighted_metrics)
            loss = task_loss(loss, self.output_kind, label_smoothing)
            losses = map(keras.losses.get, keras.tree.flatten(loss))
            self.reads_label_ids = all(isinstance(found, LABEL_LOSSES) for found in losses)
            self.step.compile(
                optimizer,
                loss,
                loss_weights=loss_weights,
                weighted_metrics=task_metrics(metrics, self.output_kind),
                accumulation_steps=accumulation_steps,
                steps_per_execution=steps_per_execution,
                jit_compile=jit_compile,
                use_kernels=use_kernels,
                counted_classes=self.output.shape[-1] if self.output_kind == CLASSES else None,
                **kwargs,
            )

    def _prepare(self, jit_compile, packing):
        """Sets up predictions, compiled or not; returns the resolved `jit_compile`."""
        accelerated = has_accelerator()
        if jit_compile == "auto" and not accelerated:
            jit_compile = False
        self.compiles_for_accelerator = accelerated and bool(jit_compile)
        self.packing = packing
        return jit_compile

    # === The step, where Keras calls a model's own ===

    @property
    def accumulation_steps(self) -> int:
        """Number of micro-batches that a batch is split into."""
        return self.step.accumulation_steps

    @property
    def counters(self):
        """Counts of the train step, a `BatchCounters`; None on backends other than TensorFlow."""
        return self.step.counters

    if keras.config.backend() == "tensorflow":

        def train_step(self, data):
            """As `keras.Model.train_step`; a subclass may override it."""
            return self.step.train_step(data)

        def test_step(self, data):
            """As `keras.Model.test_step`; a subclass may override it."""
            return self.step.test_step(data)

        def predict_step(self, data):
            """As `keras.Model.predict_step`; a subclass may override it."""
            return self.step.predict_step(data)

        def make_train_function(self, force=False):
            """As `keras.Model.make_train_function`."""
            return self.step.make_train_function(force)

        def make_test_function(self, force=False):
            """As `keras.Model.make_test_function`."""
            return self.step.make_test_function(force)

        def make_predict_function(self, force=False):
            """As `keras.Model.make_predict_function`."""
            return self.step.make_predict_function(force)

        def _maybe_symbolic_build(self, iterator=None, data_batch=None):
            # Keras's implementation reads a batch ahead and fails with several workers.
            if data_batch is not None:
                self.step.build(data_batch)

    else:

        def stateless_call(self, *args, **kwargs):
            """As `keras.Model.stateless_call`; Keras's steps call the model through it."""
            with self.step.kernel_scope():
                return super().stateless_call(*args, **kwargs)

    def default_loss(self):
        """Returns the loss of `compile(loss="auto")`, as `keras.Model.compile` takes it.

        Raises:
            NotImplementedError: if the task does not declare it.
        """
        raise NotImplementedError

    @property
    def default_loss_weights(self) -> dict[str, float] | None:
        """Factors of the losses of several outputs with `compile(loss="auto")`; None adds them."""
        return None

    def default_metrics(self) -> list:
        """Returns the metrics of `compile(metrics="auto")`, as `keras.Model.compile` takes them.

        Raises:
            NotImplementedError: if the task does not declare them.
        """
        raise NotImplementedError

    def encode_labels(self, y) -> np.ndarray:
        """Checks labels and turns names into ids.

        Args:
            y: labels as `fit` takes them.

        Returns:
            Labels as the loss reads them.

        Raises:
            NotImplementedError: if the task does not declare it.
            ValueError: if a label is unknown.
        """
        raise NotImplementedError

    def encode_class_weight(self, class_weight: dict) -> dict[int, float]:
        """Converts weights by label name or id to weights by id, as `class_weight` of `fit`.

        Raises:
            ValueError: if a label is unknown, or the task has no classes.
        """
        name = type(self).__name__
        raise ValueError(f"class_weight is not supported by {name}, which has no classes")

    def encode_labels_in_graph(self, y):
        """Encodes a batch of labels in a dataset's graph, as `encode_labels`; None stays None.

        Raises:
            ValueError: if they are of a type that datasets cannot hold.
        """
        return y

    def get_compile_config(self):
        config = super().get_compile_config()
        if config:
            automatic = {} if self.schedule is None else {"optimizer": "auto", **self.schedule}
            settings = keras.saving.serialize_keras_object(vars(self._given) | automatic)
            settings["optimizer_built"] = self.optimizer.built
            # In a key that Keras ignores: `clone_model` passes the rest to a plain functional
            # model, which has no such arguments.
            config["optimizer"] = config["optimizer"] | {"task_settings": settings}
        return config

    def compile_from_config(self, config):
        optimizer = config.get("optimizer")
        if isinstance(optimizer, dict):
            config = config | optimizer.pop("task_settings", {})  # version 0.1.0 stored them here
        built = config.pop("optimizer_built", True)
        if config.get("use_kernels") is True:
            config["use_kernels"] = "auto"  # this machine may not have a GPU
        self.compile(**keras.saving.deserialize_keras_object(config))
        if built:  # otherwise the file has no optimizer variables
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
        class_weight: dict | Sequence[float] | str | None = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        steps: int | None = None,
        examples: int | None = None,
        callbacks=None,
        **kwargs,
    ):
        """Trains the model.

        The order of the rows in epoch e is a function of `seed` and e alone, and with a
        `keras_bert.training.Resume` among the callbacks an interrupted run resumes where it
        stopped.

        Args:
            x: a list of N texts; a tuple (firsts, seconds) of two such lists; a dict of int
                arrays [N, T] with the backbone's inputs; or a `tf.data.Dataset` of batches
                (x, y) or (x, y, sample_weight) of texts or ids. Or a table that is read in pieces:
                a `keras_bert.data.Table` or anything that it takes, such as "data/*.jsonl.gz" or a
                `DataFrame`; its columns are named by further arguments, such as text="review" and
                label="stars".
            y: N labels, as ids or as names. Not with a dataset or a table.
            batch_size: rows of a batch over all replicas, 32 by default. Not with a dataset.
            epochs: passes over the data, possibly fractional; 1 by default.
            sample_weight: N weights of the rows' losses, finite and 0 or more. Those of a table are
                its column `weight`.
            validation_data: (x, y) or (x, y, sample_weight), or a dataset; or a table, by default
                with the columns of that in x.
            validation_split: fraction of the rows, from the end, to validate on instead.
            shuffle: whether to draw a new order of the rows every epoch.
            seed: seed of the orders.
            class_weight: weights of the losses by label id or name, 1 by default; K numbers; or
                "balanced", N / (K * rows of the class), as in scikit-learn. They multiply
                `sample_weight` in the losses and metrics of training.
            initial_epoch: epoch to start at.
            steps_per_epoch: batches in an epoch; by default all.
            steps: number of updates, instead of `epochs`.
            examples: number of rows to train on, instead of `epochs`; rounded up to whole batches.
            callbacks: as `keras.Model.fit`.
            **kwargs: as `keras.Model.fit`; for a table the names of its columns, and
                `skip_bad_rows`, `delimiter` and `label_separator` as `keras_bert.data.Table`.

        Returns:
            The Keras `History`.

        Raises:
            TypeError: if a text is not a string.
            ValueError: if columns differ in length, a label is unknown, a weight is negative or not
                finite, more than one of `epochs`, `steps` and `examples` is given, the batch cannot
                be divided evenly, or a checkpoint to resume from belongs to another model.
        """
        self._assert_compile_called("fit")
        counts = {"batch_size": batch_size, "steps_per_epoch": steps_per_epoch, "steps": steps}
        counts |= {"examples": examples, "validation_steps": kwargs.get("validation_steps")}
        for name, value in counts.items():
            check_count(name, 1 if value is None else value)
        check_count("initial_epoch", initial_epoch, 0)
        check_count("seed", seed, -(2**63))
        check_above_zero("epochs", 1 if epochs is None else epochs)
        x, y, sample_weight, validation_data = self._read_fit_data(
            self.as_table(x, kwargs, y), y, sample_weight, validation_data, validation_split
        )
        if epochs is None and steps is None and examples is None:
            epochs = 1
        options = {"shuffle": shuffle, "seed": seed, "class_weight": class_weight}
        source = self.source(x, y, sample_weight, batch_size, **options)
        if validation_data is not None:  # after the source, which may find names of labels
            validation_data = self._check_validation(validation_data, x)
        callbacks = scored(self, callbacks, validation_data)
        if validation_data is not None:
            x, *rest = validation_data
            size = None if is_dataset(x) else batch_size
            with _named("validation_data"):
                batches = self.source(x, *rest, batch_size=size).one_pass()
            _check_ends(batches, kwargs.get("validation_steps"), "validation_steps")
            validation_data = self.step.ahead(batches)
        self.run = Run(
            self,
            source,
            epochs=epochs,
            steps=steps,
            examples=examples,
            initial_epoch=initial_epoch,
            steps_per_epoch=steps_per_epoch,
            class_weight=class_weight,
            callbacks=callbacks,
        )
        return self.run.fit(validation_data=validation_data, **kwargs)

    def training_batch(self, step: int):
        """Returns a batch of the running or the last `fit` again, as the step received it.

        For rows in memory and datasets with a fixed order it is the same batch. A dataset that
        shuffles, even with a seed, draws a new order whenever it is read, so the batch differs.

        Args:
            step: index of the training step, from 0 over all epochs.

        Returns:
            (x, y) or (x, y, sample_weight), NumPy arrays; a GPU receives int32 as int64.
        """
        batch = next(iter(self.run.source.stream(step)))
        return keras.tree.map_structure(keras.ops.convert_to_numpy, batch)

    def evaluate(self, x=None, y=None, batch_size=None, sample_weight=None, **kwargs):
        """Computes loss and metrics on labelled data, each row once; takes data as `fit` does.

        Args:
            x: as in `fit`.
            y: as in `fit`.
            batch_size: rows of a batch, 32 by default.
            sample_weight: N weights of the rows.
            **kwargs: as `keras.Model.evaluate`, and as `fit` for a table.

        Returns:
            As `keras.Model.evaluate`.
        """
        self._assert_compile_called("evaluate")
        if not kwargs.get("_use_cached_eval_dataset"):  # already made by Keras's `fit`
            x = self.as_table(x, kwargs, y)
            x, y = self._labelled(x, y, "evaluate")
            x = self.source(x, y, checked_weights(sample_weight), batch_size).one_pass()
            _check_ends(x, kwargs.get("steps"), "steps")
            self.step.build_for(x)
            kwargs["callbacks"] = callbacks_over(self, x, kwargs)
            x = self.step.ahead(x)
        with quiet_about_size():
            found = keras.Model.evaluate(self, x, **kwargs)
        self.step.warn_of_one_class()
        return found

    def scores(self, x, y=None, **kwargs) -> dict[str, float]:
        """Scores answers as the task's benchmarks do; `evaluate` computes loss and metrics.

        Args:
            x: examples in memory, as `fit` takes them.
            y: their labels.
            **kwargs: passed to the method that answers, such as `batch_size`.

        Returns:
            Scores by name. `keras_bert.training.ValidationScores` adds them to the logs of `fit`.

        Raises:
            ValueError: if the task has no scores, labels are wrong, or there is nothing to score.
        """
        raise ValueError(f"{type(self).__name__} has no scores but the metrics of `compile`")

    @property
    def scores_by_default(self) -> bool:
        """Whether `fit` scores the answers to its validation data by default."""
        return False

    def predict(self, x, batch_size: int | None = None, **kwargs):
        """Computes the model's output for each row, in the order of the rows.

        A dataset yields x alone; pairs as ((firsts, seconds),), since Keras reads a pair as (x, y).
        Labels in a dataset are ignored.

        Args:
            x: as in `fit`, without labels; or one string.
            batch_size: rows of a batch, 32 by default.
            **kwargs: as `keras.Model.predict`, and as `fit` for a table. A single batch has no
                progress bar.

        Returns:
            float32 array [N, ...]; for one string without the first axis.

        Raises:
            TypeError: if a text is not a string; or for a table, if an example can have several
                rows.
            ValueError: if the one string looks like the name of a file.
        """
        if not isinstance(x, str) or kwargs.keys() & {*self.column_names}:
            x = self.as_table(x, kwargs)
        elif is_file_name(x):
            raise ValueError(
                f"x={x!r}: expected a text; pass Path({x!r}) for the file, [{x!r}] for the text"
            )
        if is_text(x):
            one = self.predict([x], batch_size, **kwargs)
            return keras.tree.map_structure(lambda v: v[0], one)
        if isinstance(x, Table) and self.outputs_by_token:
            raise TypeError(
                f"predict of a Table: a {type(self).__name__} makes several rows of an example; "
                "keras_bert.serving.bulk.answer_file answers files"
            )
        if isinstance(x, Table) or is_dataset(x):
            size = None if is_dataset(x) else batch_size
            source = self.source(x, batch_size=size, labelled=False)
            batches = source.one_pass()
            _check_ends(batches, kwargs.get("steps"), "steps")
            outputs = self.predict_batches(batches, kwargs)
            # The last batch of a table may be filled up.
            return keras.tree.map_structure(lambda v: v[: getattr(source, "size", None)], outputs)
        batch_size = check_batch_size(batch_size)
        if are_ids(x):
            ids = checked_ids(self, x)
            check_columns(ids, None, None)
            return run_rows(self, ids, batch_size, kwargs)
        self.check_has_preprocessor()
        data = self.examples(x)
        if not self.outputs_by_token and not self._checks_rows():  # in Python
            if not len(data):
                return self.no_outputs()
            answer = Answer(self.asks, self.example, self.rows, _outputs, None, ("outputs",))
            found = few_rows(self, answer, self._tensors(data), batch_size, kwargs)
            if found is not None:
                return keras.tree.map_structure(np.asarray, found["outputs"])
        return run_rows(self, self.ragged_rows(replace(data, labels=None))[0], batch_size, kwargs)

    def no_outputs(self):
        """Returns the output for zero rows, float32 [0, ...], structured as the model's output."""
        return keras.tree.map_structure(
            lambda v: np.zeros((0, *(size or 0 for size in v.shape[1:])), "float32"), self.output
        )

    def predict_batches(self, batches, kwargs: dict):
        """Runs a dataset of the model's inputs, as `keras.Model.predict`."""
        kwargs = kwargs | {"callbacks": callbacks_over(self, batches, kwargs)}
        with quiet_about_size():
            return keras.Model.predict(self, self.step.ahead(batches), **kwargs)

    def respond(
        self,
        answer: Answer,
        data: Examples,
        batch_size: int | None = None,
        kwargs: dict | None = None,
    ) -> Iterator[tuple[tuple, dict[str, np.ndarray]]]:
        """Answers checked examples in chunks, as `answers_to`.

        A few are answered by a single function, from strings to answers, as in an export. For more,
        rows of similar length share a batch. Yields (columns of some examples, arrays of their
        answers by name).
        """
        self.check_has_preprocessor()
        batch_size, kwargs = check_batch_size(batch_size), {"verbose": 0} | (kwargs or {})
        outputs = None
        if len(data) > self.at_once and not self.answers_read_rows:
            sample = answer.rows(*self._tensors(data.part(slice(0, 1))))
            if sample.example is None:  # all go through the network in one run
                ids = self._without_padding(answer.rows, answer.key, replace(data, labels=None))[0]
                outputs = run_rows(self, ids, batch_size, kwargs)
        for first in range(0, max(len(data), 1), self.at_once):
            chosen = slice(first, first + self.at_once)
            part = data.part(chosen)
            tensors = self._tensors(part)
            if outputs is not None:
                found = answer.answers(outputs[chosen], Rows({}), *tensors)
            else:
                found = few_rows(self, answer, tensors, batch_size, kwargs)
            if found is None:
                rows = answer.rows(*tensors)
                self.check_rows(rows, first, data.lines)
                values = run_rows(self, rows.ids, batch_size, kwargs, answer.kept)
                found = answer.answers(values, rows, *tensors)
            yield part.columns, {name: np.asarray(value) for name, value in found.items()}

    def _tensors(self, data: Examples) -> list:
        kinds = [*self.asks.items()]
        kinds += [("text_pair", TEXT)] * (len(data.columns) - len(kinds))
        pairs = zip(kinds, data.columns, strict=False)
        return [kind.tensor(column, name) for (name, kind), column in pairs]

    def answers_to(
        self, x, batch_size: int | None = None, kwargs: dict | None = None, **options
    ) -> dict[str, np.ndarray]:
        """Answers examples, or rows of ids, as the export's `serving_default` does.

        Args:
            x: examples in memory, as `fit` takes them, without labels.
            batch_size: rows of a batch, 32 by default.
            kwargs: as `keras.Model.predict`, without a progress bar by default.
            **options: of `signatures`.

        Returns:
            Arrays [N, ...] by name; unused places hold "", -1 and 0.0.

        Raises:
            TypeError: if a text is not a string.
            ValueError: if there is no preprocessor, or an example is wrong.
        """
        kwargs = {"verbose": 0} | (kwargs or {})
        answer = self.signatures(**options)["serving_default"]
        if are_ids(x):
            ids = checked_ids(self, x)
            outputs = run_rows(self, ids, check_batch_size(batch_size), kwargs)
            found = answer.answers(outputs, Rows(ids))
            return {name: np.asarray(value) for name, value in found.items()}
        data = self.examples(x)
        parts = [found for _, found in self.respond(answer, data, batch_size, kwargs)]
        found = {name: _padded([part[name] for part in parts]) for name in parts[0]}
        for name, value in found.items():
            if len(value) != len(data):
                raise ValueError(
                    f"{name!r} has {len(value)} rows for {len(data)} examples: `answers` has to "
                    "pool the rows of an example, see Rows.example"
                )
        return found

    def ragged_rows(self, x, y=None, sample_weight=None, **options) -> tuple[dict, Any, Any]:
        """Converts examples to rows without padding, with a progress bar if it takes long.

        Args:
            x: examples, as `fit` takes them.
            y: their labels, or None.
            sample_weight: N weights of the examples, or None.
            **options: of `rows`.

        Returns:
            (ids, labels, weights): int32 `tf.RaggedTensor` of R rows by name; labels [R, ...] or
            None; float32 weights [R, ...] or None. Labels and weights by token are ragged too.

        Raises:
            ValueError: if there is no preprocessor, or an example is wrong.
        """
        self.check_has_preprocessor()
        rows, key = partial(self.rows, **options), tuple(sorted(options.items()))
        data = self.with_targets(self.examples(x, y))
        return self._without_padding(rows, key, data, checked_weights(sample_weight))

    def _without_padding(
        self, rows: Callable, key: tuple, data: Examples, weights=None, piece: bool = False
    ) -> tuple:
        """`ragged_rows`, with a function that makes rows, and its key.

        `piece` is for a piece of many: always by a graph, and without a progress bar.
        """
        count = check_columns(data.columns, data.labels, weights)

        def make(*columns):
            made = rows(*columns)
            mask = made.ids["padding_mask"]
            return made, {
                n: without_padding(v, mask) if n in BY_TOKEN else v for n, v in made.ids.items()
            }

        sample = self._tensors(data.part(slice(0, 1)))
        on_tensorflow = keras.config.backend() == "tensorflow"
        if (piece or count >= MANY) and on_tensorflow and not any(map(is_ragged, sample)):
            make = kept_function(self, ("rows", key), make, sample)

        @host_only()
        def encode(first):
            part = slice(first, first + CHUNK)
            rows, ids = make(*self._tensors(data.part(part)))
            self.check_rows(rows, first, data.lines)
            labels = self.labels_of_rows(
                rows, *(part_of(v, part) for v in (data.labels, weights)), first
            )
            if self.labels_by_token:
                mask = rows.ids["padding_mask"]
                labels = tuple(v if v is None else without_padding(v, mask) for v in labels)
            return ids, *labels

        with ThreadPoolExecutor(8) as pool:  # TensorFlow operations run in parallel
            # The first alone: threads that call a new function at once would each prepare it.
            first = encode(0)
            parts = chain([first], pool.map(encode, range(CHUNK, count, CHUNK)))
            parts = parts if piece else _counted(parts, count)
            ids, *labels = zip(*parts, strict=True)
        return joined_rows(ids), *map(_joined, labels)

    def make_rows(self, x, y=None, sample_weight=None) -> tuple[dict, Any, Any]:
        """Converts examples to rows of one length, as `ragged_rows` but in arrays padded to T.

        T is the preprocessor's `sequence_length`; labels of padding are -1, weights 0.
        """
        parts = self.ragged_rows(x, y, sample_weight)
        every = np.arange(parts[0]["token_ids"].shape[0])
        parts = dense_parts(parts, every, self.preprocessor.sequence_length)
        return tuple(v if v is None else keras.tree.map_structure(np.asarray, v) for v in parts)

    def _labelled(self, x, y, method: str) -> tuple:
        """(x, y) of `fit`, with examples in memory parsed; rows in memory need labels."""
        if isinstance(x, Table):
            self.check_has_preprocessor()
            return x, None
        if are_examples(x):
            self.check_has_preprocessor()
            x = self.examples(x, y)
            y = x.labels
        if self.needs_labels and y is None and not is_dataset(x):
            raise ValueError(f"y is missing: {method} needs the labels of the texts")
        return x, y

    def _scored(self, x, y) -> tuple:
        """(x, labels as the loss reads them) of `scores`."""
        if isinstance(x, Table):
            raise TypeError("expected examples in memory, not a Table, which evaluate takes")
        x, y = self._labelled(x, y, "scores")
        return x, self._encoded(y) if are_ids(x) else y

    def _read_fit_data(self, x, y, sample_weight, validation_data, share: float) -> tuple:
        """(x, y, sample_weight, validation_data) of `fit`, parsed; the last one if split off."""
        check_number("validation_split", share, 0, 1)
        if share and validation_data is not None:
            raise ValueError("got both validation_data and validation_split")
        given = (*self._labelled(x, y, "fit"), checked_weights(sample_weight))
        return split_rows(*given, share) if share else (*given, validation_data)

    def _check_validation(self, data, x=None) -> tuple:
        """Parses `validation_data` with its labels; a table has by default the columns of `x`."""
        if is_dataset(data):
            return (data,)
        if is_table(data):
            return (x.with_defaults(data) if isinstance(x, Table) else self.as_table(data, {}),)
        if self.brings_labels(data):
            data = (data,)
        if not isinstance(data, tuple | list) or not 1 <= len(data) <= 3 or is_text(data[0]):
            raise ValueError(
                f"validation_data={data!r:.80}: expected (x, y), (x, y, sample_weight) or a "
                "tf.data.Dataset"
            )
        x, y, weights = keras.utils.unpack_x_y_sample_weight(tuple(data))
        with _named("validation_data"):
            return *self._labelled(x, y, "fit"), checked_weights(weights)

    def preprocess_samples(self, x, y=None, sample_weight=None):
        """Converts a batch of texts, not of ids, as `keras_hub.models.Task`."""
        if are_ids(x):
            return keras.utils.pack_x_y_sample_weight(x, y, sample_weight)
        return super().preprocess_samples(x, y, sample_weight)

    def step_inputs(self, x, y=None, sample_weight=None):
        """Converts a batch of rows in memory to x, y and weights, as `keras.Model` packs them.

        It runs inside `tf.data`. With the padding "bucket" the batch is truncated to the smallest
        of 16, 32, 64, ... tokens that holds it.
        """
        bucket = getattr(self.preprocessor, "padding", "full") == "bucket"
        if bucket and "packed_from" not in x:  # whose indices refer to the full width
            import tensorflow as tf

            mask = x["padding_mask"]
            place = tf.range(1, tf.shape(mask)[-1] + 1)
            used = tf.reduce_max(tf.where(tf.cast(mask, tf.bool), place, 0))
            width = bucket_length(used, mask.shape[-1] or self.preprocessor.sequence_length)
            x = {n: v[..., :width] if n in BY_TOKEN else v for n, v in x.items()}
            if self.labels_by_token:
                y, sample_weight = (v if v is None else v[..., :width] for v in (y, sample_weight))
        return keras.utils.pack_x_y_sample_weight(x, y, sample_weight)

    def source(self, x, y=None, sample_weight=None, batch_size=None, labelled=True, **options):
        """Makes the source of batches of data, as `fit` takes it.

        `labelled` says whether labels of a dataset or a table are read; `options` are `shuffle`,
        `seed` and `class_weight` of `fit`. See `keras_bert.data.sources`.
        """
        check_beside(x, y, sample_weight, batch_size)
        if isinstance(x, Table):
            return table_source(self, x, batch_size, labelled=labelled, **options)
        if is_dataset(x):
            return dataset_source(self, x, options.get("class_weight"), labelled)
        if not are_ids(x):
            x, y, sample_weight = self.ragged_rows(x, y, sample_weight)
        elif not is_ragged(x.get("token_ids")):  # such rows come from this package
            x, y, sample_weight = self._checked_rows(x, y, sample_weight)
        return memory_source(self, x, y, sample_weight, batch_size, **options)

    def _checked_rows(self, x: dict, y, sample_weight) -> tuple:
        return checked_ids(self, x), self._encoded(y), checked_weights(sample_weight)

    def dataset_preparer(self, dataset, labelled):
        """Makes the function, used inside a dataset's map, as `source` needs it: batch to inputs.

        If not `labelled`, it returns x alone.

        Raises:
            ValueError: if the dataset yields texts that are unbatched or become several rows.
        """
        texts = holds_texts(dataset)
        if texts:
            self.check_has_preprocessor()

        def prepare(x, y=None, sample_weight=None):
            if not labelled and y is not None and y.dtype.name == "string":
                raise ValueError(
                    "the dataset gives (x, y) with strings as y: to predict on pairs it has to "
                    "give ((firsts, seconds),)"
                )
            y = self.encode_labels_in_graph(y) if labelled else None
            sample_weight = sample_weight if labelled else None
            if texts:
                columns = x if isinstance(x, tuple) else (x,)
                self.check_number_of_columns(columns)
                x = self.rows_of_dataset(*columns)
            return keras.utils.pack_x_y_sample_weight(x, y, sample_weight)

        return prepare

    def check_ids(self, x: dict[str, np.ndarray]) -> None:
        """Checks a user's rows of ids by name, as `fit` takes them.

        Raises:
            ValueError: if one is missing, has another shape, or holds ids out of range.
        """
        if self.reads_several and np.ndim(x.get("token_ids")) == 3:
            check_axes(x)
            x = {name: value.reshape(-1, value.shape[-1]) for name, value in x.items()}
        check_ids(x, self.backbone)

    # === Weights, presets, exports ===

    def save_to_preset(self, preset_dir: str, max_shard_size: float = 10) -> None:
        """Writes settings, weights and vocabulary to a folder, atomically.

        Args:
            preset_dir: the folder to make, or the preset to replace.
            max_shard_size: maximum size of the weights file in gigabytes.

        Raises:
            FileExistsError: if the folder holds something else.
            ValueError: if the weights are larger: `from_preset` reads them from one file.
        """
        save = super().save_to_preset

        def write(path):
            save(path, max_shard_size=max_shard_size)
            if shards := sorted(Path(path).glob("*.weights.json")):
                raise ValueError(
                    f"the weights take more than max_shard_size={max_shard_size} GB and would be "
                    f"split ({shards[0].name}), but from_preset reads one file: pass a larger one"
                )

        write_folder(preset_dir, write, FILES)

    def get_config(self) -> dict:
        """Arguments of the constructor that are attributes of the same name, and frozen weights.

        A task whose attributes have other names adds those arguments.
        """
        known = {id(weight) for weight in self.backbone.weights}
        own = [weight for weight in self.weights if id(weight) not in known]
        trained = {id(weight) for weight in self.trainable_weights}
        frozen = [weight.path for weight in own if id(weight) not in trained]
        config = super().get_config() | kept_settings(self)
        if not self.compiled:  # or the file's task would have an optimizer that is not in it
            config["compile"] = False
        return config | ({"frozen": frozen} if frozen else {})

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        frozen = config.pop("frozen", ())
        task = super().from_config(config)
        task.freeze_own(frozen)
        return task

    def freeze_own(self, paths) -> None:
        """Freezes weights, by path, that the task adds to its backbone, as `from_preset` does."""
        for weight in self.weights if paths else ():
            if weight.path in paths:
                weight.trainable = False

    def load_weights(self, filepath, skip_mismatch: bool = False, **kwargs) -> None:
        """Reads the result of `save_weights`, as `keras.Model.load_weights`, optimizer included."""
        if self.compiled and not self.optimizer.built:
            with self.step.scope():
                self.optimizer.build(self.trainable_variables)
        super().load_weights(filepath, skip_mismatch=skip_mismatch, **kwargs)

    def save_task_weights(self, filepath: str) -> None:
        """Writes the weights beside the backbone's, as `save_weights`, without the optimizer's."""
        keras.saving.save_weights(self, filepath, objects_to_skip=self._not_of_the_task())

    def load_task_weights(self, filepath: str, objects_to_skip=()) -> None:
        """Reads what was written, as `save_task_weights` does, but for the layers to skip."""
        skipped = [*self._not_of_the_task(), *objects_to_skip]
        keras.saving.load_weights(self, filepath, objects_to_skip=skipped)

    def _not_of_the_task(self) -> list:
        layers = self.backbone._flatten_layers()
        return [*layers, self.optimizer] if self.compiled else list(layers)

    def copy_state(self, other: keras.Model) -> None:
        """Copies another model's weights and random state, keeping the compiled settings.

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
        """Quantizes the backbone, as `keras.Model.quantize`, but not the heads, which are small."""
        self.backbone.quantize(mode, **kwargs)
        self.train_function = self.test_function = self.predict_function = None

    def tune(self, what: str, lora_rank: int = 8):
        """Chooses which weights are trained, as `keras_bert.models.tune`."""
        return tune(self, what, lora_rank)

    def merge_lora(self) -> int:
        """Merges low-rank updates into their kernels, as `keras_bert.models.merge_lora`."""
        return merge_lora(self)

    def save_tuned_part(self, path: str) -> None:
        """Writes the tuned weights only, as `keras_bert.checkpoints.save_tuned_part`."""
        save_tuned_part(self, path)

    def load_tuned_part(self, path: str) -> None:
        """Reads what `save_tuned_part` wrote, as `keras_bert.checkpoints.load_tuned_part`."""
        load_tuned_part(self, path)

    def export(
        self,
        path: str | Path,
        text: bool = True,
        weights: str = "float32",
        rows: int | None = None,
        examples: dict[str, Any] | None = None,
        reference: keras.Model | None = None,
        verbose: int = 1,
        format: str = "savedmodel",
        **options,
    ) -> list[str]:
        """Writes a SavedModel that takes strings and returns the task's answers.

        Signatures, all for any number of rows: those that `signatures` lists; `tokenize`, `text` to
        pieces (`token_ids`, `start`, `end`, int32 [B, L], characters; `count`, int32 [B]);
        `tokens`, the model's inputs to its output; and `metadata`, which gives the settings as
        JSON, whatever string it is passed. The method that answers and the signature run the same
        functions. All inputs and outputs have one row per example, so that a server may batch
        requests. `assets.extra/contract.json` describes all this in a file; see
        `keras_bert.serving.export_contract`.

        The vocabulary is included. The string signatures run TensorFlow Text ops: TensorFlow
        Serving has them built in, a Python process must import tensorflow_text. With `text=False`,
        `tokens` is also `serving_default`, `metadata` is the only other signature, and plain
        TensorFlow loads the export.

        Args:
            path: the folder to make, or the export to replace.
            text: whether to add the signatures that take strings.
            weights: "float16" to store weights in half the bytes; each call casts them back. With
                format="onnx", "int8" for int8 arithmetic.
            rows: how many rows of an answer are run through the network at once, by default 8; use
                more for a server with a GPU. `tokens` runs all rows of a request together. With
                "int8" the default is 1: the scale of a product's inputs is that of all rows run
                together, so that an answer would depend on the texts beside it; 8 is faster.
            examples: inputs of `serving_default` by name; the contract includes their answers.
            reference: a model that `examples` are compared with, such as the one before
                quantization; by default the same weights in float32, if the dtype policy or
                `weights` is another type, unless they are quantized or have low-rank updates.
            verbose: 0 for silent.
            format: "savedmodel", or "onnx" for a network that runs in ONNX Runtime on a CPU:
                `network.onnx` beside a SavedModel from strings to ids and from outputs to answers.
                `keras-bert serve` and `answer_file` take both, with the same signatures and
                answers; TensorFlow Serving takes only the first. It needs the extra `runtimes`.
            **options: of the task's `serving_default`: `overlap` of a classifier; `n_best`,
                `max_answer_length` and `top_k` of a question answerer; `top_k` and `targets` of a
                masked language model.

        Returns:
            Names of the TensorFlow Text ops that the server needs.

        Raises:
            FileExistsError: if the folder holds something else.
            ImportError: if format="onnx" and a package of the extra `runtimes` is missing.
            OSError: if the folder can't be made.
            ValueError: if `text` is set for a task without preprocessor, an option is unknown or
                out of range, an answer to the examples is not finite, Keras runs on another
                backend than TensorFlow, or the network has ops that ONNX lacks.
        """
        return export_task(
            self, path, text, weights, rows, examples, reference, verbose, format, options
        )


def _outputs(outputs, rows, *columns) -> dict:
    return {"outputs": outputs}


def _joined(parts: Sequence):
    if parts[0] is None:
        return None
    return joined_rows(parts) if isinstance(parts[0], dict) else joined(parts)


def _padded(parts: list[np.ndarray]) -> np.ndarray:
    """Concatenates answers, whose further axes may differ from part to part."""
    shape = np.max([part.shape[1:] for part in parts], axis=0).astype(int)
    fill = {"O": b"", "S": b"", "i": -1}.get(parts[0].dtype.kind, 0)
    padded = []
    for part in parts:
        room = [(0, 0), *zip(0 * shape, shape - part.shape[1:], strict=True)]
        padded.append(np.pad(part, room, constant_values=fill) if np.any(room) else part)
    return np.concatenate(padded)


def _counted(parts: Iterator, count: int) -> Iterator:
    """Shows the progress of tokenization if it takes longer than `SILENT_SECONDS`."""
    options = {"desc": "tokenizing", "unit": " examples", "delay": SILENT_SECONDS}
    with tqdm(total=count, file=sys.stderr, **options) as bar:
        for part in parts:
            yield part
            bar.update(min(CHUNK, count - bar.n))


@contextmanager
def _named(name: str):
    """Names the argument that an error is about."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name}: {error}") from error


def _check_ends(batches, steps: int | None, name: str) -> None:
    """Raises a ValueError for an infinite dataset without a number of steps."""
    cardinality = getattr(batches, "cardinality", None)
    if steps is None and cardinality is not None and int(cardinality()) == -1:
        raise ValueError(f"the dataset has no end: pass {name}")
