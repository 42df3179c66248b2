"""A classifier's report: three figures and a page of its worst mistakes."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_bert.reports.mistakes import mistakes_page, shown

_WRITTEN_UP_TO = 30  # maximum number of classes with counts in the confusion matrix
_LONGEST = 30  # characters of a label in a figure


class Calibration(NamedTuple):
    """Accuracy by confidence, in bins of equal width.

    Attributes:
        confidence: mean probability of the predicted class in each bin, [bins]; NaN for empty bins.
        accuracy: fraction of correct predictions, [bins]; NaN for empty bins.
        count: number of predictions in each bin, [bins].
        expected_error: mean of |confidence - accuracy| over predictions (Guo et al. 2017, ECE).
    """

    confidence: np.ndarray
    accuracy: np.ndarray
    count: np.ndarray
    expected_error: float


def write_report(
    folder: str | Path,
    texts: Sequence[str] | tuple[Sequence[str], Sequence[str]],
    labels: Sequence[int] | Sequence[str],
    logits: np.ndarray,
    label_names: Sequence[str] | None = None,
    worst: int = 100,
) -> list[Path]:
    """Writes confusion_matrix.png, calibration.png, classes.png and mistakes.html.

    Args:
        folder: the folder to write to, created if missing.
        texts: N texts, or a pair of such columns.
        labels: N true classes, ids or names.
        logits: [N, K], as from `predict`.
        label_names: K names; ids by default.
        worst: maximum number of mistakes on the page, by descending loss.

    Returns:
        The paths of the files.

    Raises:
        ImportError: if matplotlib, from the extra "plots", is not installed.
        ValueError: if columns differ in length, or a label is unknown.
    """
    from scipy.special import softmax
    from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

    logits = np.asarray(logits, "float64")
    if logits.ndim != 2:
        raise ValueError(f"logits have shape {logits.shape}; expected [N, K]")
    names = [str(name) for name in label_names or range(logits.shape[1])]
    columns = texts if isinstance(texts, tuple) else (texts,)
    sizes = [len(column) for column in (*columns, labels)]
    if len(names) != logits.shape[1] or set(sizes) != {len(logits)}:
        raise ValueError(
            f"{len(logits)} rows of {logits.shape[1]} logits, with texts and labels of "
            f"{sizes} and {len(names)} names"
        )
    by_name = any(not isinstance(name, str) for name in label_names or ())
    ids = np.array(
        [
            _class_id(str(label) if by_name else label, names, row)
            for row, label in enumerate(labels)
        ],
        int,
    )
    probabilities = softmax(logits, axis=1)
    found, classes = probabilities.argmax(axis=1), range(len(names))
    matrix = confusion_matrix(ids, found, labels=classes)
    scores = precision_recall_fscore_support(ids, found, labels=classes, zero_division=0)

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    files = [
        folder / name
        for name in ("confusion_matrix.png", "calibration.png", "classes.png", "mistakes.html")
    ]
    for file in files:  # an existing link would be written through
        file.unlink(missing_ok=True)
    # matplotlib reads text between two dollar signs as a formula.
    short = [name if len(name) <= _LONGEST else f"{name[:_LONGEST]}..." for name in names]
    drawn = [shown(name).replace("$", r"\$") for name in short]
    _draw_confusion(files[0], matrix, drawn)
    _draw_calibration(files[1], ids, probabilities)
    _draw_classes(files[2], scores, drawn)
    files[3].write_text(mistakes_page(columns, ids, probabilities, names, worst), "utf-8")
    return files


def calibration(labels: np.ndarray, probabilities: np.ndarray, bins: int = 10) -> Calibration:
    """Groups predictions by the probability of the predicted class.

    Args:
        labels: class ids [N].
        probabilities: [N, K].
        bins: number of bins, of equal width from 0 to 1; a probability of 1 is in the last.
    """
    confidence = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == np.asarray(labels)
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    count = np.bincount(place, minlength=bins)
    sums = [np.bincount(place, weights=v, minlength=bins) for v in (confidence, right)]
    with np.errstate(invalid="ignore"):
        mean_confidence, accuracy = (total / count for total in sums)
    error = np.abs(sums[0] - sums[1]).sum() / max(len(confidence), 1)
    return Calibration(mean_confidence, accuracy, count, float(error))


def _class_id(label, names: list[str], row: int) -> int:
    if isinstance(label, str) and label in names:
        return names.index(label)
    if not isinstance(label, str) and 0 <= label < len(names) and label == int(label):
        return int(label)
    raise ValueError(
        f"label {label!r} in row {row} is unknown; expected {', '.join(map(shown, names))}"
    )


def _figure(width: float, height: float):
    # Not pyplot, which would initialize a window system and keep every figure.
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "write_report needs matplotlib: `pip install 'keras3-bert[plots]'`"
        ) from error

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _draw_confusion(path: Path, matrix: np.ndarray, names: list[str]) -> None:
    size = min(4 + 0.35 * len(names), 20)
    figure = _figure(size + 1, size)
    axes = figure.subplots()
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    figure.colorbar(image, label="share of the right class")
    axes.set(xlabel="predicted", ylabel="right", title="Confusion matrix")
    axes.set_xticks(range(len(names)), names, rotation=90 if len(names) > 4 else 0)
    axes.set_yticks(range(len(names)), names)
    if len(names) <= _WRITTEN_UP_TO:
        for row, column in np.argwhere(matrix):
            color = "white" if shares[row, column] > 0.5 else "black"
            axes.text(column, row, matrix[row, column], ha="center", va="center", color=color)
    figure.savefig(path, dpi=120)


def _draw_calibration(path: Path, labels: np.ndarray, probabilities: np.ndarray) -> None:
    found = calibration(labels, probabilities)
    figure = _figure(5, 6)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    above.plot([0, 1], [0, 1], color="grey", linestyle="--", label="as sure as right")
    there = found.count > 0
    above.plot(found.confidence[there], found.accuracy[there], marker="o", label="this model")
    title = f"Calibration: expected error {found.expected_error:.3f}"
    above.set(ylabel="share that is right", ylim=(0, 1.02), title=title)
    above.legend()
    edges = np.linspace(0, 1, len(found.count) + 1)
    below.bar(edges[:-1], found.count, width=edges[1], align="edge", edgecolor="white")
    below.set(xlabel="probability of the predicted class", ylabel="predictions", xlim=(0, 1))
    figure.savefig(path, dpi=120)


def _draw_classes(path: Path, scores: Sequence[np.ndarray], names: list[str]) -> None:
    figure = _figure(7, min(1.2 + 0.3 * len(names), 40))
    axes = figure.subplots()
    axes.axis("off")
    rows = [
        [f"{p:.3f}", f"{r:.3f}", f"{f:.3f}", f"{n:,}"] for p, r, f, n in zip(*scores, strict=True)
    ]
    mean = [f"{score.mean():.3f}" for score in scores[:3]]
    axes.table(
        [*rows, [*mean, f"{scores[3].sum():,}"]],
        rowLabels=[*names, "mean"],
        colLabels=["precision", "recall", "F1", "examples"],
        loc="center",
    )
    figure.savefig(path, dpi=120)
