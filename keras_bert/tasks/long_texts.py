"""Classification of texts that are longer than a row."""

from collections.abc import Iterator

import keras
import numpy as np

from keras_bert.arguments import check_batch_size
from keras_bert.data.ragged import joined_rows, without_padding
from keras_bert.data.sources import check_columns
from keras_bert.data.texts import text_columns
from keras_bert.tasks.row_task import predict_rows
from keras_bert.tasks.targets import checked_weights

_CHUNK = 1000  # texts whose rows are in memory at once


def predict_windows(
    classifier, texts, overlap: int, batch_size: int | None = None, **kwargs
) -> np.ndarray:
    """Gives the logits of texts that are read whole, in windows.

    A text's logits are the mean of those of its windows, each weighed by its number of pieces, so
    that a short last window counts for little.

    Args:
        classifier: a `BertClassifier` with a preprocessor.
        texts: N texts, or a tuple of two columns of them; of pairs the second texts are cut.
        overlap: pieces that a window shares with the one before it.
        batch_size: rows of a batch, 32 by default.
        **kwargs: as `keras.Model.predict`.

    Returns:
        float32 [N, K].

    Raises:
        ValueError: if there is no preprocessor, or `overlap` is out of range.
    """
    parts = []
    for _, texts_of_part, rows, windows in _windows(classifier, texts, overlap):
        ids = {name: value.numpy() for name, value in rows.items()}
        logits = predict_rows(classifier, ids, check_batch_size(batch_size), **kwargs)
        weights = np.maximum(windows.length.numpy(), 1)[:, None]
        sums = np.zeros((2, texts_of_part, logits.shape[1]))
        np.add.at(sums[0], windows.text.numpy(), weights * logits)
        np.add.at(sums[1], windows.text.numpy(), np.broadcast_to(weights, logits.shape))
        parts.append((sums[0] / sums[1]).astype("float32"))
    return np.concatenate(parts) if parts else np.zeros((0, classifier.num_classes), "float32")


def window_rows(classifier, texts, overlap: int) -> tuple[dict, np.ndarray, np.ndarray]:
    """Makes rows to train on of texts that are read whole.

    Args:
        classifier: as `predict_windows`.
        texts: as there.
        overlap: as there.

    Returns:
        (ids, text, share): int32 `tf.RaggedTensor` [W, tokens] by name, without padding; the text
        of each window, int32 [W]; and its share of the text's pieces, float32 [W], by which
        answers are pooled.

    Raises:
        ValueError: as `predict_windows`, or if there are no texts.
    """
    parts, texts_of_rows, shares = [], [], []
    for first, count, rows, windows in _windows(classifier, texts, overlap):
        text, length = windows.text.numpy(), np.maximum(windows.length.numpy(), 1)
        mask = rows["padding_mask"]
        parts.append({name: without_padding(value, mask) for name, value in rows.items()})
        texts_of_rows.append(text + first)
        shares.append(length / np.bincount(text, length, count)[text])
    if not parts:
        raise ValueError("there are no texts")
    shares = np.concatenate(shares).astype("float32")
    return joined_rows(parts), np.concatenate(texts_of_rows), shares


def evaluate_windows(
    classifier, x, y, batch_size: int | None, sample_weight, overlap: int, **kwargs
) -> dict[str, float]:
    """Gives loss and metrics of the pooled answers to texts that are read whole.

    Args:
        classifier: a compiled `BertClassifier` with a preprocessor.
        x: N texts, as `predict_windows`.
        y: their labels.
        batch_size: as there.
        sample_weight: N weights, or None.
        overlap: as there.
        **kwargs: as there.

    Returns:
        Values by name.
    """
    y = classifier.encode_labels(y)
    logits = predict_windows(classifier, x, overlap, batch_size, **kwargs)
    weights = np.ones(len(logits)) if sample_weight is None else checked_weights(sample_weight)
    check_columns((logits,), y, weights)
    # Of the mean 1, so that every reduction of a loss divides by their sum.
    weights = (weights * weights.size / weights.sum()).astype("float32")
    classifier.reset_metrics()
    loss = keras.Model.compute_loss(classifier, None, y, logits, weights, training=False)
    found = classifier.compute_metrics(None, y, logits, weights)
    return {name: float(value) for name, value in (found | {"loss": loss}).items()}


class WindowValidation(keras.callbacks.Callback):
    """Puts loss and metrics of pooled answers to validation data into the logs of `fit`.

    Args:
        data: (x, y) or (x, y, sample_weight).
        overlap: as `predict_windows`.
        batch_size: as there.
        every: epochs from one validation to the next.
    """

    def __init__(self, data: tuple, overlap: int, batch_size: int | None, every: int = 1):
        super().__init__()
        self._data, self._options, self._every = data, (batch_size, overlap), every

    def on_epoch_end(self, epoch, logs=None):
        if (epoch + 1) % self._every:
            return
        x, y, *weights = self._data
        batch_size, overlap = self._options
        found = evaluate_windows(
            self.model, x, y, batch_size, weights[0] if weights else None, overlap
        )
        logs.update({f"val_{name}": value for name, value in found.items()})


def _windows(classifier, texts, overlap: int) -> Iterator:
    """Gives (number of the first text, how many, their rows, `Windows`) of some texts at a time."""
    if classifier.preprocessor is None:
        raise ValueError("this classifier has no preprocessor, which windows over texts need")
    classifier.check_preprocessor()
    columns = text_columns(texts)
    for begin in range(0, len(columns[0]), _CHUNK):
        chunk = tuple(np.array(column[begin : begin + _CHUNK], object) for column in columns)
        yield begin, len(chunk[0]), *classifier.preprocessor.pack_windows(chunk, overlap)
