"""Multiple choice: which of some texts goes with a context (Devlin et al. 2019, section 4.4)."""

from collections.abc import Sequence

import keras
import numpy as np
from keras import ops

from keras_bert.arguments import check_batch_size
from keras_bert.data.choices import ChoiceExamples
from keras_bert.data.texts import check_texts
from keras_bert.layers.dropout import Dropout
from keras_bert.layers.heads import dense_head
from keras_bert.models.backbone import BertBackbone
from keras_bert.serving import choices
from keras_bert.tasks.chunks import encode_in_chunks
from keras_bert.tasks.row_task import RowTask
from keras_bert.tasks.several_texts import SeveralTexts
from keras_bert.tasks.targets import classes_in_graph, probabilities
from keras_bert.text.multiple_choice_preprocessor import (
    BertMultipleChoicePreprocessor,
    best_choices,
)
from keras_bert.training.task_metrics import CHOICES

NO_CHOICE = -1e9  # finite, so that its gradient is 0 and no NaN


@keras.saving.register_keras_serializable(package="keras_bert")
class BertMultipleChoice(SeveralTexts, RowTask):
    """A backbone, dropout and one score for each choice, from the pooled output of its row.

    Rule: Devlin et al. 2019, section 4.4; the head is that of transformers'
    `BertForMultipleChoice`, a dense layer with one unit. No weight depends on the number of
    choices, which may differ from example to example. A choice that is empty, or whose ids are
    all padding, is none: its logit is -1e9, and its probability 0.

    Args:
        backbone: a `BertBackbone`.
        preprocessor: a `BertMultipleChoicePreprocessor`, or None to work on ids alone.
        dropout: share of the pooled output dropped in training.
        **kwargs: as `keras.Model`.

    Call arguments:
        inputs: the backbone's, with an axis more: int32 [B, C, T], C choices.

    Returns:
        float32 logits [B, C]; of ids [B, T] the scores [B] of so many rows.

    Raises:
        ValueError: if the preprocessor does not fit the backbone.
    """

    backbone_cls = BertBackbone
    preprocessor_cls = BertMultipleChoicePreprocessor

    head_kind = "choice"  # of `keras_bert.checkpoints.contents.HEADS`
    outputs_by_token = False
    output_kind = CHOICES

    def __init__(
        self,
        backbone: BertBackbone,
        preprocessor: BertMultipleChoicePreprocessor | None = None,
        dropout: float = 0.1,
        **kwargs,
    ):

        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.head_dropout = Dropout(dropout, name="head_dropout")
        self.head = dense_head(1, backbone.initializer_range)

        # === Functional model === of the rows of all choices, R = B * C
        inputs = backbone.input
        pooled = backbone(inputs)["pooled_output"]  # [R, H]
        scores = self.head(self.head_dropout(pooled))[:, 0]  # [R]
        there = ops.any(ops.not_equal(inputs["padding_mask"], 0), axis=-1)
        scores = ops.where(there, scores, NO_CHOICE)
        super().__init__(inputs=inputs, outputs=scores, **kwargs)

        # === Configuration ===
        self.dropout = dropout

    def default_loss(self):
        return keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, reduction="mean_with_sample_weight"
        )

    def default_metrics(self) -> list:
        return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]

    def fit(
        self,
        x=None,
        y=None,
        batch_size: int | None = None,
        epochs: float | None = None,
        sample_weight=None,
        validation_data=None,
        **kwargs,
    ):
        """Trains the model; see `BertTask.fit` for all arguments.

        Args:
            x: a tuple (contexts, choices): N texts, and N lists of two texts or more;
                `ChoiceExamples`, which bring their labels; a dict of int arrays [N, C, T] with
                the backbone's inputs; or a `tf.data.Dataset` of batches (x, y), of strings or
                ids.
            y: numbers of the right choices, from 0; or probabilities [N, C].
            batch_size: examples of a batch, C rows each; 32 by default.
            epochs: passes over the data.
            sample_weight: N weights of the examples' losses.
            validation_data: `ChoiceExamples`, (x, y), (x, y, sample_weight), or a dataset.
            **kwargs: as `BertTask.fit`.

        Raises:
            TypeError: if a text is not a string.
            ValueError: if an example has less than two choices, or its label is no number of one;
                the error names its row, and its line in the file where that is known.
        """
        x, y = _columns(x, y)
        if isinstance(validation_data, ChoiceExamples):
            validation_data = _columns(validation_data)
        return super().fit(
            x, y, batch_size, epochs, sample_weight, validation_data=validation_data, **kwargs
        )

    def evaluate(self, x=None, y=None, batch_size=None, sample_weight=None, **kwargs):
        """Gives loss and metrics on labelled data; takes what `fit` takes."""
        return super().evaluate(*_columns(x, y), batch_size, sample_weight, **kwargs)

    def predict(self, x, batch_size: int | None = None, **kwargs):
        """Gives the logits of each example's choices, float32 [N, C]; takes what `fit` takes.

        C is the greatest number of choices; beyond those of an example logits are -1e9.
        """
        x, _ = _columns(x)
        if isinstance(x, dict) or hasattr(x, "element_spec"):
            return super().predict(x, batch_size, **kwargs)
        self.check_has_preprocessor()
        rows = self.ragged_rows(x)[0]
        if not rows["token_ids"].shape[0]:
            return np.zeros(rows["token_ids"].shape[:2], "float32")
        return self.predict_rows(rows, check_batch_size(batch_size), **kwargs)

    def choose(self, contexts, choices=None, batch_size: int | None = None, **kwargs):
        """Gives the choice that goes best with each context.

        Args:
            contexts: N texts, one text, or `ChoiceExamples` alone.
            choices: N lists of two texts or more; for one text its choices.
            batch_size: examples of a batch, 32 by default.
            **kwargs: as `keras.Model.predict`.

        Returns:
            (choices, probabilities): a list of N numbers from 0, and the softmax over each
            example's choices, float32 [N, C] for the greatest number of choices C, 0 beyond those
            of an example; for one text a number and [C].
        """
        if isinstance(contexts, str | bytes):
            chosen, probabilities = self.choose([contexts], [choices], batch_size, **kwargs)
            return chosen[0], probabilities[0]
        x = contexts if isinstance(contexts, ChoiceExamples) else (contexts, choices)
        logits = self.predict(x, batch_size, **kwargs)
        if not len(logits):
            return [], logits
        found = best_choices(logits)
        return found["choice"].numpy().tolist(), found["probabilities"].numpy()

    def scores(self, x, y=None, **kwargs) -> dict[str, float]:
        """Gives the "accuracy" of choices; takes what `fit` takes."""
        x, y = _columns(x, y)
        right = self.encode_labels(y)
        right = right.argmax(axis=1) if right.ndim == 2 else right
        found = self.predict(x, **{"verbose": 0} | kwargs).argmax(axis=1)
        return {"accuracy": float(np.mean(found == right))}

    def ragged_rows(self, x, y=None, sample_weight=None):
        """Turns examples into rows of ids [N, C, T]; see `RowTask.ragged_rows`."""
        if not isinstance(x, tuple) or len(x) != 2:
            raise ValueError(
                f"expected a tuple (contexts, choices), got {type(x).__name__}"
                + (f" of {len(x)}" if isinstance(x, tuple) else "")
            )
        contexts, choices = check_choices(*x)
        if not contexts:
            empty = np.zeros((0, 0, self.preprocessor.sequence_length), "int32")
            return dict.fromkeys(("token_ids", "segment_ids", "padding_mask"), empty), y, None
        rows = encode_in_chunks(
            lambda columns, _: self.preprocessor.pack(columns), (contexts, choices)
        )
        return rows, y, sample_weight

    def encode_labels(self, y) -> np.ndarray:
        """Checks numbers of right choices, int32 [N], or their probabilities, float32 [N, C].

        How many choices there are is not known.
        """
        numbers = np.asarray(y)
        if numbers.ndim == 2 and numbers.shape[1] > 1 and numbers.dtype.kind == "f":
            return probabilities(numbers, numbers.shape[1])
        if numbers.ndim == 2 and numbers.shape[1] == 1:
            numbers = numbers[:, 0]
        if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
            raise ValueError(
                f"labels have shape {numbers.shape} and type {numbers.dtype}; expected the number "
                "of the right choice of each example, [N]"
            )
        return numbers.astype("int32")

    def encode_class_weight(self, class_weight: dict):
        raise ValueError("class_weight has no meaning: choices have no classes")

    def encode_labels_in_graph(self, y):
        return y if y is None else classes_in_graph(y)

    def _check_ids(self, x) -> None:
        shape = np.shape(x.get("token_ids"))
        if len(shape) != 3:
            raise ValueError(f"token_ids have shape {shape}; expected [examples, choices, tokens]")
        super()._check_ids(x)

    def _source(self, x, y=None, *args, **kwargs):
        if y is not None and not hasattr(x, "element_spec"):
            y = self.encode_labels(y)
            there = _are_choices(x)
            if getattr(self.loss, "label_smoothing", 0) and not np.all(there):
                raise ValueError(
                    "label_smoothing needs as many choices in each example: one that is none would "
                    "get a share"
                )
            if y.ndim == 2 and len(there):
                probabilities(y, len(there[0]))
                if (y[~np.asarray(there)] > 0).any():
                    row = int(np.argmax(((y > 0) & ~np.asarray(there)).any(axis=1)))
                    raise ValueError(f"labels of row {row} give a choice that is none a share")
            elif y.ndim == 1:
                for row, (label, own) in enumerate(zip(y.tolist(), there, strict=False)):
                    if not 0 <= label < len(own) or not own[label]:
                        count = int(np.max(np.flatnonzero(own), initial=0))
                        raise ValueError(
                            f"label {label} in row {row} is no choice; expected 0 to {count}"
                        )
        return super()._source(x, y, *args, **kwargs)

    def answer_signatures(self, run, **options):
        return choices.signatures(self, run, **options)

    def get_config(self):
        return super().get_config() | {"dropout": self.dropout}


def check_choices(
    contexts: Sequence[str], choices: Sequence[Sequence[str]], lines: Sequence[int] | None = None
) -> tuple[list, list[list]]:
    """Checks contexts and their choices.

    Args:
        contexts: N texts.
        choices: as many lists of texts; empty ones are no choices, and 2 others have to be there.
        lines: N lines of the file that they come from, for errors.

    Returns:
        A list of N texts and a list of N lists of C texts, shorter ones filled up with "".

    Raises:
        TypeError: if a text is not a string.
        ValueError: if an example has less than two choices; the error names its row.
    """
    contexts = check_texts(contexts, "contexts")
    choices = choices.tolist() if hasattr(choices, "tolist") else list(choices)
    if len(contexts) != len(choices):
        raise ValueError(f"{len(contexts)} contexts but {len(choices)} lists of choices")
    checked = []
    for row, texts in enumerate(choices):
        where = f"row {row}" if lines is None else f"row {row} (line {lines[row]})"
        if isinstance(texts, str | bytes):
            raise TypeError(f"the choices of {where} are one string: expected a list of strings")
        texts = check_texts(texts, f"choices of {where}: choices")
        count = sum(len(text) > 0 for text in texts)
        if count < 2:
            raise ValueError(f"{where} has {count} choices that are not empty; expected 2 or more")
        checked.append(texts)
    most = max(map(len, checked), default=0)
    return contexts, [texts + [""] * (most - len(texts)) for texts in checked]


def _columns(x, y=None) -> tuple:
    """Takes `ChoiceExamples` apart; other data stays as it is."""
    if not isinstance(x, ChoiceExamples):
        return x, y
    check_choices(x.contexts, x.choices, x.lines)
    return (x.contexts, x.choices), x.labels if y is None else y


def _are_choices(x) -> Sequence:
    """Which choices of each example are there; nothing where x is wrong, which others find."""
    if isinstance(x, dict):
        mask = np.asarray(x.get("padding_mask"))
        return mask.any(axis=-1) if mask.ndim == 3 else ()
    if not isinstance(x, tuple) or len(x) != 2:
        return ()
    return [[len(text) > 0 for text in texts] for texts in check_choices(*x)[1]]
