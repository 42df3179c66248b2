"""Classification of texts that are longer than a row."""

import numpy as np

from keras_bert.arguments import check_batch_size
from keras_bert.data.texts import text_columns
from keras_bert.tasks.row_task import predict_rows

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
    if classifier.preprocessor is None:
        raise ValueError("this classifier has no preprocessor, which windows over texts need")
    classifier.check_preprocessor()
    columns, parts = text_columns(texts), []
    for begin in range(0, len(columns[0]), _CHUNK):
        chunk = tuple(np.array(column[begin : begin + _CHUNK], object) for column in columns)
        rows, windows = classifier.preprocessor.pack_windows(chunk, overlap)
        ids = {name: value.numpy() for name, value in rows.items()}
        logits = predict_rows(classifier, ids, check_batch_size(batch_size), **kwargs)
        weights = np.maximum(windows.length.numpy(), 1)[:, None]
        sums = np.zeros((2, len(chunk[0]), logits.shape[1]))
        np.add.at(sums[0], windows.text.numpy(), weights * logits)
        np.add.at(sums[1], windows.text.numpy(), np.broadcast_to(weights, logits.shape))
        parts.append((sums[0] / sums[1]).astype("float32"))
    return np.concatenate(parts) if parts else np.zeros((0, classifier.num_classes), "float32")
