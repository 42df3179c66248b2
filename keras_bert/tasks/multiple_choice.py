"""Multiple choice (Devlin et al. 2019, section 4.4)."""

from collections.abc import Sequence

import keras
import numpy as np
from keras import ops

from keras_bert.data.choices import ChoiceExamples
from keras_bert.data.examples import Examples, place_of, two_columns
from keras_bert.data.table_rows import LIST, NUMERIC, Cell
from keras_bert.data.texts import check_texts, is_text
from keras_bert.layers.dropout import Dropout
from keras_bert.layers.heads import dense_head
from keras_bert.metrics import best_temperature
from keras_bert.models.backbone import BertBackbone
from keras_bert.serving.signatures import EXAMPLES, TEXT, Column
from keras_bert.tasks.calibrated import Calibrated
from keras_bert.tasks.targets import classes_in_graph, probabilities
from keras_bert.text.multiple_choice_preprocessor import (
    BertMultipleChoicePreprocessor,
    best_choices,
)
from keras_bert.training.task_metrics import CHOICES

NO_CHOICE = -1e9  # finite, so that its gradient is 0, not NaN


@keras.saving.register_keras_serializable(package="keras_bert")
class BertMultipleChoice(Calibrated):
    """A backbone, dropout and one score for each choice, from the pooled output of its row.

    Reference: Devlin et al. 2019, section 4.4; the head is that of transformers'
    `BertForMultipleChoice`, a dense layer with one unit. No weight depends on the number of
    choices, which may differ from example to example. A choice that is empty, or whose ids are all
    padding, is ignored: its logit is -1e9 and its probability 0.

    Args:
        backbone: a `BertBackbone`.
        preprocessor: a `BertMultipleChoicePreprocessor`, or None to work on ids alone.
        dropout: dropout rate of the pooled output.
        temperature: divides the logits before probabilities are computed; see `calibrate`.
        **kwargs: as `keras.Model`.

    `fit` takes a tuple (contexts, choices): N texts, and N lists of two or more texts; or
    `ChoiceExamples`, which include labels. A label is the index of the right choice, from 0, or
    probabilities [N, C]; a batch is of examples, C rows each.

    Call arguments:
        inputs: the backbone's, with an additional axis: int32 [B, C, T] for C choices.

    Returns:
        float32 logits [B, C]; for ids [B, T], the scores [B] of the rows.

    Raises:
        ValueError: if the preprocessor does not fit the backbone.
    """

    preprocessor_cls = BertMultipleChoicePreprocessor

    asks = {"context": TEXT, "choices": Column(shape=(None, None))}
    example = {"context": EXAMPLES[:1], "choices": [["Ships lay still.", "It was hot."]]}
    head_kind = "choice"
    output_kind = CHOICES
    answers_read_rows = False
    reads_several = True
    column_names = ("context", "choices", "label", "weight")
    _most_choices = 0  # of an example in a table

    def __init__(
        self,
        backbone: BertBackbone,
        preprocessor: BertMultipleChoicePreprocessor | None = None,
        dropout: float = 0.1,
        temperature: float = 1.0,
        **kwargs,
    ):

        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.head_dropout = Dropout(dropout, name="head_dropout")
        self.head = dense_head(1, backbone.initializer_range)

        # === Functional model === of the rows of all choices, R = B * C
        inputs = backbone.input
        pooled = self.encode(inputs)["pooled_output"]  # [R, H]
        scores = self.head(self.head_dropout(pooled))[:, 0]  # [R]
        there = ops.any(ops.not_equal(inputs["padding_mask"], 0), axis=-1)
        scores = ops.where(there, scores, NO_CHOICE)
        super().__init__(inputs=inputs, outputs=scores, **kwargs)

        # === Configuration ===
        self.dropout = dropout
        self.temperature = temperature

    def examples(self, x, y=None) -> Examples:
        if isinstance(x, Examples):
            return x
        lines = None
        if isinstance(x, ChoiceExamples):
            lines, y = x.lines, x.labels if y is None else y
            x = (x.contexts, x.choices)
        contexts, choices = check_choices(*two_columns(x, "contexts, choices"), lines)
        there = [[len(text) > 0 for text in texts] for texts in choices]
        return Examples((contexts, choices), self._encoded(y, there), lines)

    def brings_labels(self, x) -> bool:
        return isinstance(x, ChoiceExamples)

    def table_cells(self, given, labelled):
        cells = {"context": Cell(), "choices": Cell(LIST)}
        return cells | ({"label": Cell(NUMERIC)} if labelled else {})

    def examples_of_table(self, columns):
        # All pieces get the number of choices that the pass before training found.
        choices = [row if isinstance(row, list) else [row] for row in columns["choices"]]
        self._most_choices = most = max([self._most_choices, *map(len, choices)])
        choices = [row + [""] * (most - len(row)) for row in choices]
        return (columns["context"], choices), columns.get("label")

    def _checked_rows(self, x, y, sample_weight):
        x, _, sample_weight = super()._checked_rows(x, None, sample_weight)
        return x, self._encoded(y, np.asarray(x["padding_mask"]).any(axis=-1)), sample_weight

    def _encoded(self, y, there=()):
        """Encodes labels, each of which must be an existing choice; `there` is bool [N, C]."""
        if y is None:
            return None
        y, there = self.encode_labels(y), list(there)
        if getattr(self.loss, "label_smoothing", 0) and not np.all(there):
            raise ValueError(
                "label_smoothing needs as many choices in each example: one that is none would "
                "get a share"
            )
        if y.ndim == 2 and len(there):
            wrong = ((probabilities(y, len(there[0])) > 0) & ~np.asarray(there)).any(axis=1)
            if wrong.any():
                row = int(np.argmax(wrong))
                raise ValueError(f"labels of row {row} give a choice that is none a share")
        elif y.ndim == 1:
            for row, (label, own) in enumerate(zip(y.tolist(), there, strict=False)):
                if not 0 <= label < len(own) or not own[label]:
                    count = int(np.max(np.flatnonzero(own), initial=0))
                    raise ValueError(
                        f"label {label} in row {row} is no choice; expected 0 to {count}"
                    )
        return y

    def encode_labels(self, y) -> np.ndarray:
        """Checks indices of right choices, int32 [N], or their probabilities, float32 [N, C].

        The number of choices is not known here.
        """
        numbers = np.asarray(y)
        if numbers.ndim == 2 and numbers.shape[1] > 1 and numbers.dtype.kind == "f":
            return probabilities(numbers, numbers.shape[1])
        numbers = numbers[:, 0] if numbers.shape[1:] == (1,) else numbers
        if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
            raise ValueError(
                f"labels of shape {numbers.shape}, {numbers.dtype}: expected the number "
                "of the right choice of each example, [N]"
            )
        return numbers.astype("int32")

    def encode_labels_in_graph(self, y):
        return y if y is None else classes_in_graph(y)

    def no_outputs(self):
        return np.zeros((0, 0), "float32")  # as many choices as the examples have

    def answers(self, outputs, rows, context, choices):
        """`choice`, int32 [B], its `text`, string [B], `probabilities` and `logits`, [B, C]."""
        import tensorflow as tf

        counts = tf.reduce_sum(tf.cast(choices != "", tf.int32), axis=1)
        message = "input 'choices' has less than two for a context:"
        with tf.control_dependencies([tf.Assert(tf.reduce_all(counts > 1), [message, counts])]):
            found = best_choices(outputs / self.temperature)
        return {
            "choice": found["choice"],
            "text": tf.gather(choices, found["choice"], batch_dims=1),
            "probabilities": found["probabilities"],
            "logits": outputs,
        }

    def choose(self, contexts, choices=None, batch_size: int | None = None, **kwargs):
        """Predicts the best choice for each context.

        Args:
            contexts: N texts, one text, or `ChoiceExamples` alone.
            choices: N lists of two or more texts; for one text, a list of its choices.
            batch_size: examples of a batch, 32 by default.
            **kwargs: as `keras.Model.predict`.

        Returns:
            (choices, probabilities): a list of N indices from 0, and the softmax over each
            example's choices, float32 [N, C] with C the maximum number of choices, 0 for missing
            ones; for one text, an index and [C].
        """
        if is_text(contexts):
            chosen, probabilities = self.choose([contexts], [choices], batch_size, **kwargs)
            return chosen[0], probabilities[0]
        x = contexts if isinstance(contexts, ChoiceExamples) else (contexts, choices)
        data = self.examples(x)
        if not len(data):
            return [], np.zeros((0, 0), "float32")
        found = self.answers_to(data, batch_size, kwargs)
        return found["choice"].tolist(), found["probabilities"]

    def best_temperature(self, x, y, batch_size, **kwargs):
        x, right = self._scored(x, y)
        return best_temperature(self.predict(x, batch_size, **{"verbose": 0} | kwargs), right)

    def scores(self, x, y=None, **kwargs) -> dict[str, float]:
        """Computes the "accuracy" of choices; accepts the same data as `fit`."""
        x, right = self._scored(x, y)
        right = right.argmax(axis=1) if right.ndim == 2 else right
        found = self.predict(x, **{"verbose": 0} | kwargs).argmax(axis=1)
        return {"accuracy": float(np.mean(found == right))}

    def check_ids(self, x) -> None:
        shape = np.shape(x.get("token_ids"))
        if len(shape) != 3:
            raise ValueError(f"token_ids of shape {shape}: expected [examples, choices, tokens]")
        super().check_ids(x)


def check_choices(
    contexts: Sequence[str], choices: Sequence[Sequence[str]], lines: Sequence[int] | None = None
) -> tuple[list, list[list]]:
    """Checks N contexts and N lists of two or more texts that are not empty; errors name the row.

    Returns the texts, and lists of C texts, padded with "". `lines` are line numbers in a file.
    """
    contexts = check_texts(contexts, "contexts")
    choices = choices.tolist() if hasattr(choices, "tolist") else list(choices)
    if len(contexts) != len(choices):
        raise ValueError(f"{len(contexts)} contexts but {len(choices)} lists of choices")
    checked = []
    for row, texts in enumerate(choices):
        where = place_of(row, lines)
        if is_text(texts):
            raise TypeError(f"the choices of {where} are one string: expected a list of strings")
        texts = check_texts(texts, f"choices of {where}: choices")
        count = sum(len(text) > 0 for text in texts)
        if count < 2:
            raise ValueError(f"{where} has {count} choices that are not empty; expected 2 or more")
        checked.append(texts)
    most = max(map(len, checked), default=0)
    return contexts, [texts + [""] * (most - len(texts)) for texts in checked]
