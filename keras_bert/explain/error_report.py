"""A task's errors: figures, calibration, slices, mistakes with attributions, doubtful labels."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
from scipy.special import expit, log_softmax, softmax

from keras_bert.arguments import check_count
from keras_bert.explain.attribution import attributions
from keras_bert.explain.pages import (
    BLUE,
    ORANGE,
    Shown,
    cards,
    drawn,
    figure,
    html_text,
    table,
    write_png,
)
from keras_bert.explain.reading import columns_of
from keras_bert.metrics import (
    Calibration,
    best_answer_temperature,
    best_temperature,
    calibration,
    predicted_labels,
)
from keras_bert.tasks.labelled import Labelled
from keras_bert.tasks.multiple_choice import BertMultipleChoice
from keras_bert.tasks.pretrainer import BertMaskedLM
from keras_bert.tasks.question_answerer import N_BEST, BertQuestionAnswerer
from keras_bert.tasks.spans import as_examples, graded, question_columns
from keras_bert.tasks.text_embedder import BertTextEmbedder
from keras_bert.tasks.token_classifier import BertTokenClassifier
from keras_bert.text.entities import join_words

MOST_CLASSES = 30  # in a matrix; of more, the most frequent confusions are listed
LEAST = 5  # items with a word, and without it, for its slice


class Slice(NamedTuple):
    """Some of the answers.

    Attributes:
        name: what they have in common.
        count: their number.
        score: their mean score.
    """

    name: str
    count: int
    score: float


@dataclass(eq=False)
class Answers:
    """What a task answered to M items: examples, or the words of sentences, in N examples.

    Attributes:
        columns: of the N examples, as the task takes them.
        texts: the texts of each example.
        example: int [M], the example of each item.
        right: M right answers, as text.
        found: M answers of the task, as text.
        score: float [M], 1 for a right answer and 0 for a wrong one; F1 for spans of a context. For
            numbers the negative absolute error.
        loss: float [M]; the worst answer has the largest.
        target: M targets for `attributions`.
        confidence: float [M], the probability of the answer; None for numbers.
        names: K classes, or None.
        labels: int [M], ids of the right classes, or [M, K] for multi-label; None without classes.
        logits: float [M, K] for a softmax, or a sigmoid for multi-label; None without classes.
        measure: the name of the mean score.
        predicted: int [M], ids of the predicted classes, or 0 and 1, [M, K], for multi-label.
        candidates: float [M, C], logits of the candidates of a softmax where they are no classes;
            -inf for those that are none.
        chosen: int [M], the candidate that is the answer.
        wanted: int [M], the candidate that is right; None where none need be.
    """

    columns: tuple
    texts: list[tuple[str, ...]]
    example: np.ndarray
    right: list[str]
    found: list[str]
    score: np.ndarray
    loss: np.ndarray
    target: list
    confidence: np.ndarray | None = None
    names: list | None = None
    labels: np.ndarray | None = None
    logits: np.ndarray | None = None
    measure: str = "accuracy"
    predicted: np.ndarray | None = None
    candidates: np.ndarray | None = None
    chosen: np.ndarray | None = None
    wanted: np.ndarray | None = None


@dataclass(eq=False)
class ErrorReport(Shown):
    """The errors of a task on labelled data; see `errors`.

    Attributes:
        answers: the `Answers` of the task.
        calibration: a `Calibration` of its probabilities, or None for numbers.
        calibrated: the same after temperature scaling, or None for numbers.
        temperature: that of `calibrated`.
        slices: lists of `Slice` by "length", "label", "script" and "word"; only words whose score
            differs from that of the other texts by more than chance (p < 0.01).
        mistakes: int, indices of wrong answers, the worst first.
        explained: an `Attribution` by index, of the worst mistakes.
        doubtful: int, indices of labels that may be wrong, the most doubtful first.
        others: the `Answers` of another task, or None.
        disagreements: int, indices at which both answer differently.
    """

    answers: Answers
    calibration: Calibration | None
    calibrated: Calibration | None
    temperature: float | None
    slices: dict[str, list[Slice]]
    mistakes: np.ndarray
    explained: dict[int, Any]
    doubtful: np.ndarray
    others: Answers | None = None
    disagreements: np.ndarray = field(default_factory=lambda: np.zeros(0, int))

    @property
    def score(self) -> float:
        """The mean score of all answers."""
        return float(self.answers.score.mean())

    def class_scores(self) -> dict[str, np.ndarray] | None:
        """Precision, recall, F1 and number of items of each class, [K] each; None without classes.

        A class without predictions or items has 0.
        """
        from sklearn.metrics import precision_recall_fscore_support

        a = self.answers
        if a.labels is None:
            return None
        values = precision_recall_fscore_support(
            a.labels, a.predicted, labels=range(len(a.names)), zero_division=0
        )
        return dict(zip(("precision", "recall", "f1", "count"), values, strict=True))

    def confusion(self) -> np.ndarray | None:
        """Counts of items by right and predicted class, int [K, K]; None without single classes."""
        from sklearn.metrics import confusion_matrix

        a = self.answers
        if a.labels is None or a.labels.ndim == 2:
            return None
        return confusion_matrix(a.labels, a.predicted, labels=range(len(a.names)))

    def page(self, worst: int = 20) -> tuple[str, str]:
        """As `Shown.page`.

        Args:
            worst: maximum number of rows of each list.
        """
        return "Errors", _body(self, worst)

    def write(self, folder: str | Path, worst: int = 100) -> list[Path]:
        """Writes errors.html, and for papers calibration.png, confusion_matrix.png and classes.png.

        Args:
            folder: the folder to write to, created if missing.
            worst: as `page`.

        Returns:
            The paths of the files; without classes or probabilities some are left out.

        Raises:
            ImportError: if matplotlib, from the extra "plots", is not installed.
        """
        folder, paths = Path(folder), []
        if self.calibration is not None:
            paths.append(_draw_calibration(folder / "calibration.png", self))
        names = [drawn(name) for name in self.answers.names or ()]
        if (matrix := self.confusion()) is not None:
            paths.append(_draw_confusion(folder / "confusion_matrix.png", matrix, names))
        if (scores := self.class_scores()) is not None:
            paths.append(_draw_classes(folder / "classes.png", scores, names))
        return [*paths, self.to_html(folder / "errors.html", worst=worst)]


def errors(
    task,
    x,
    y=None,
    other=None,
    explained: int = 10,
    batch_size: int = 32,
) -> ErrorReport:
    """Finds out where a task is wrong.

    - Calibration, before and after temperature scaling. "After" is with the task's own
      `temperature` if it has one; otherwise each half of the data is scaled with the temperature of
      the other half, so that no answer is judged with a temperature that has seen it.
    - Slices of the data with their scores: by length, label, script and word.
    - The worst mistakes, with attributions of the answer.
    - Doubtful labels, by confident learning (Northcutt et al. 2021, arXiv:1911.00068): items to
      which another class is given with at least the mean probability of the items labelled so. It
      needs data that the task was not trained on.
    - Where two tasks disagree, with McNemar's test.

    Args:
        task: a task with a preprocessor.
        x: held-out data in memory, as `fit` takes it. For a masked language model N texts: in each,
            one word is masked, the middle one of those with a single token.
        y: their labels; None if the data includes them, and for a masked language model.
        other: another task for the same data, such as the one in production; or None.
        explained: number of mistakes that get attributions; none on backends other than
            TensorFlow.
        batch_size: rows of a batch.

    Returns:
        The `ErrorReport`.

    Raises:
        TypeError: if a text is not a string.
        ValueError: if labels are missing or unknown, or there is no data.
    """
    check_count("explained", explained, 0)
    if keras.config.backend() != "tensorflow":
        explained = 0
    answers = _answers(task, x, y, batch_size)
    if not len(answers.score):
        raise ValueError("x: expected at least one example")
    before = after = temperature = None
    if answers.confidence is not None:
        before = calibration(*_confidence(answers, 1.0))
        after, temperature = _after_scaling(answers, getattr(task, "temperature", 1.0))
    wrong = np.flatnonzero(answers.score < (0 if answers.confidence is None else 1))
    mistakes = wrong[np.argsort(-answers.loss[wrong], kind="stable")]
    found = ErrorReport(
        answers, before, after, temperature, _slices(answers), mistakes, {}, _doubtful(answers)
    )
    for item in mistakes[:explained].tolist():
        values = tuple([column[answers.example[item]]] for column in answers.columns)
        values = values if len(values) > 1 else values[0]
        (found.explained[item],) = attributions(task, values, [answers.target[item]])
    if other is not None:
        found.others = _answers(other, x, y, batch_size)
        if found.others.right != answers.right:
            raise ValueError("other: expected a task with the same labels and words")
        differ = [a != b for a, b in zip(answers.found, found.others.found, strict=True)]
        found.disagreements = np.flatnonzero(differ)
    return found


# === Answers of the tasks ===


def _answers(task, x, y, batch_size: int) -> Answers:
    task.check_has_preprocessor()
    if isinstance(task, BertMaskedLM):
        return _filled(task, x, batch_size)
    if isinstance(task, BertQuestionAnswerer):
        return _answered(task, x, y, batch_size)
    data = task.examples(x, y)
    if data.labels is None:
        raise ValueError("y is missing: errors needs the labels of the texts")
    texts = [_texts(task, values) for values in zip(*data.columns, strict=True)]
    if isinstance(task, BertTokenClassifier):
        return _tagged(task, data, texts, batch_size)
    every = np.arange(len(data))
    outputs = task.predict(data, batch_size=batch_size, verbose=0)
    if isinstance(task, BertTextEmbedder):
        norms = np.linalg.norm(outputs, axis=-1)
        outputs = np.sum(outputs[:, 0] * outputs[:, 1], axis=-1) / np.prod(norms[:, :2], axis=1)
    problem = getattr(task, "problem", "single_label")
    labels = np.asarray(data.labels)
    if isinstance(task, BertTextEmbedder) or problem == "regression":
        found, right = outputs.reshape(len(every), -1), labels.reshape(len(every), -1)
        error = np.abs(found - right).mean(axis=1)
        shown = [[" ".join(f"{v:.3g}" for v in row) for row in side] for side in (right, found)]
        target = [None] * len(every)
        return Answers(
            data.columns, texts, every, *shown, -error, error, target, measure="-|error|"
        )
    if problem == "multi_label":
        return _given(task, data, texts, outputs)
    labels = labels.argmax(axis=1) if labels.ndim == 2 else labels
    logits = outputs.astype("float64")
    chosen, fields = _by_softmax(task, logits, labels)
    if isinstance(task, BertMultipleChoice):
        choices = data.columns[1]
        right, found = ([choices[i][c] for i, c in enumerate(ids)] for ids in (labels, chosen))
        fields |= {"target": chosen.tolist(), "candidates": logits}
        fields |= {"chosen": chosen, "wanted": labels}
    else:
        names = task.names if isinstance(task, Labelled) else list(range(outputs.shape[1]))
        right, found = ([str(names[i]) for i in ids] for ids in (labels, chosen))
        fields |= {"target": [names[i] for i in chosen], "names": names}
        fields |= {"labels": labels, "logits": logits}
    return Answers(data.columns, texts, every, right, found, predicted=chosen, **fields)


def _by_softmax(task, logits, labels, chosen=None) -> tuple[np.ndarray, dict]:
    """The ids chosen, and the fields of `Answers` that follow from a softmax."""
    logs = log_softmax(logits.astype("float64") / getattr(task, "temperature", 1.0), axis=-1)
    chosen = logits.argmax(axis=1) if chosen is None else chosen
    items = np.arange(len(labels))
    return chosen, {
        "score": (labels == chosen).astype(float),
        "loss": -logs[items, labels],
        "confidence": np.exp(logs[items, chosen]),
    }


def _tagged(task, data, texts, batch_size) -> Answers:
    """Items are words with a tag."""
    found = task.predict(data, batch_size, verbose=0)
    if task.crf:
        best = task.predict_tags(data, batch_size)
    example = np.repeat(np.arange(len(data)), [len(tags) for tags in data.labels])
    word = np.concatenate([np.arange(len(tags)) for tags in data.labels])
    labels, logits = np.concatenate(data.labels), np.concatenate(found).astype("float64")
    known = np.flatnonzero(labels >= 0)
    example, word, labels, logits = (v[known] for v in (example, word, labels, logits))
    names, chosen = task.names, None
    if task.crf:
        place = {name: i for i, name in enumerate(names)}
        chosen = np.concatenate([[place[tag] for tag in tags] for tags in best])[known]
    chosen, fields = _by_softmax(task, logits, labels, chosen)
    return Answers(
        data.columns,
        texts,
        example,
        *([str(names[i]) for i in ids] for ids in (labels, chosen)),
        target=[(int(w), names[i]) for w, i in zip(word, chosen, strict=True)],
        names=names,
        labels=labels,
        logits=logits,
        predicted=chosen,
        **fields,
    )


def _given(task, data, texts, logits) -> Answers:
    """Items are texts with any number of labels."""
    labels = np.asarray(data.labels).astype(int)
    probabilities = expit(logits.astype("float64") / task.temperature)
    given = predicted_labels(probabilities, task.thresholds)
    shown = [
        [", ".join(str(task.names[i]) for i in np.flatnonzero(row)) or "-" for row in side]
        for side in (labels, given)
    ]
    chance = np.where(labels, probabilities, 1 - probabilities)
    return Answers(
        data.columns,
        texts,
        np.arange(len(data)),
        *shown,
        (given == labels).all(axis=1).astype(float),
        -np.log(np.maximum(chance, 1e-12)).mean(axis=1),
        [None] * len(data),
        np.where(given, probabilities, 1 - probabilities).min(axis=1),
        task.names,
        labels,
        logits.astype("float64"),
        "all labels right",
        given.astype(int),
    )


def _answered(task, x, y, batch_size) -> Answers:
    """Items are questions; the score is F1, of words shared with the nearest right answer."""
    examples = x if task.brings_labels(x) else as_examples(question_columns(x), y)
    questions, contexts = [e.question for e in examples], [e.context for e in examples]
    found = task.answer(questions, contexts, top_k=N_BEST, batch_size=batch_size)
    rights = [[answer.text for answer in example.answers] for example in examples]
    candidates, chosen, scores = graded(found, rights)
    right = [texts[0] if texts else "no answer" for texts in rights]
    sure = np.array([answer.score for answer in found])
    return Answers(
        (questions, contexts),
        [(question, context) for question, context in zip(questions, contexts, strict=True)],
        np.arange(len(examples)),
        right,
        [answer.text or "no answer" for answer in found],
        scores,
        (1 - scores) * (1 + sure),  # among equals, those it was sure of come first
        [(answer.start, answer.end) for answer in found],
        np.clip(sure, 0, 1),
        measure="F1",
        candidates=candidates,
        chosen=chosen,
    )


def _filled(task, x, batch_size) -> Answers:
    """Items are texts with one word masked."""
    (texts,) = columns_of(task, x)
    token = task.preprocessor.tokenizer.id_to_token
    _, masked, logits, right = task.masked_word_logits(texts, batch_size)
    found, fields = _by_softmax(task, logits, right)
    words = [[token(int(i)) for i in ids] for ids in (right, found)]
    return Answers(
        (masked,),
        [(text,) for text in masked],
        np.arange(len(masked)),
        *words,
        target=[(0, word) for word in words[1]],
        candidates=logits,
        chosen=found,
        wanted=right,
        **fields,
    )


def _texts(task, values: tuple) -> tuple[str, ...]:
    if isinstance(task, BertTokenClassifier):
        (sentence,) = values
        return (sentence if isinstance(sentence, str) else join_words(sentence),)
    return tuple(
        v.decode("utf-8", "replace") if isinstance(v, bytes) else v
        for v in values
        if isinstance(v, str | bytes)
    )


# === Analyses ===


def _confidence(a: Answers, temperature, part=slice(None)) -> tuple[np.ndarray, np.ndarray]:
    """(confidence, correct) of the items, or for multi-label of each decision."""
    if a.candidates is not None:
        logs = log_softmax(a.candidates[part].astype("float64") / temperature, axis=-1)
        return np.exp(logs[np.arange(len(logs)), a.chosen[part]]), a.score[part]
    logits = a.logits[part] / temperature
    if a.labels.ndim == 2:
        chance = expit(logits)
        return np.maximum(chance, 1 - chance).ravel(), ((chance > 0.5) == a.labels[part]).ravel()
    chance = softmax(logits, axis=-1)
    return chance.max(axis=1), chance.argmax(axis=1) == a.labels[part]


def _after_scaling(a: Answers, temperature: float) -> tuple[Calibration | None, float | None]:
    if temperature != 1:
        return calibration(*_confidence(a, temperature)), temperature
    halves = [slice(0, None, 2), slice(1, None, 2)]
    if len(a.score) < 4:
        return None, None
    found = [_temperature(a, half) for half in halves]
    parts = [_confidence(a, t, half) for t, half in zip(found[::-1], halves, strict=True)]
    columns = (np.concatenate(column) for column in zip(*parts, strict=True))
    return calibration(*columns), _temperature(a)


def _temperature(a: Answers, part=slice(None)) -> float:
    if a.candidates is None:
        return best_temperature(a.logits[part], a.labels[part])
    if a.wanted is None:
        return best_answer_temperature(a.candidates[part], a.chosen[part], a.score[part])
    return best_temperature(a.candidates[part], a.wanted[part])


def _slices(a: Answers) -> dict[str, list[Slice]]:
    words = [Counter(re.findall(r"\w+", " ".join(texts).lower())) for texts in a.texts]
    lengths = np.array([sum(found.values()) for found in words])[a.example]
    found = {"length": [], "label": [], "script": [], "word": []}
    edges = np.unique(np.quantile(lengths, [0, 0.25, 0.5, 0.75, 1]).astype(int))
    first = edges[0]
    for last in edges[1:] if len(edges) > 1 else edges:
        name = f"{first} to {last} words" if first < last else f"{first} words"
        found["length"].append(_slice(a, name, (lengths >= first) & (lengths <= last)))
        first = last + 1
    for label, name in enumerate(a.names or ()):
        inside = a.labels == label if a.labels.ndim == 1 else a.labels[:, label] == 1
        found["label"].append(_slice(a, str(name), inside))
    scripts = np.array([script_of(" ".join(texts)) for texts in a.texts])[a.example]
    for script in np.unique(scripts).tolist():
        found["script"].append(_slice(a, script, scripts == script))
    found["word"] = _words(a, words)
    return {name: [one for one in part if one.count] for name, part in found.items()}


def _slice(a: Answers, name: str, inside: np.ndarray) -> Slice:
    count = int(inside.sum())
    return Slice(name, count, float(a.score[inside].mean()) if count else 0.0)


def _words(a: Answers, words: list[Counter], most: int = 20) -> list[Slice]:
    """Words whose texts have another score than the rest: a z-test with the variance of all."""
    from scipy.stats import norm

    total, count, variance = a.score.sum(), len(a.score), a.score.var()
    by_word: dict[str, list] = {}
    for score, example in zip(a.score, a.example, strict=True):
        for word in words[example]:
            known = by_word.setdefault(word, [0, 0.0])
            known[0], known[1] = known[0] + 1, known[1] + score
    found = []
    for word, (n, added) in by_word.items():
        rest = count - n
        if n < LEAST or rest < LEAST or not variance:
            continue
        gap = added / n - (total - added) / rest
        chance = 2 * norm.sf(abs(gap) / np.sqrt(variance * (1 / n + 1 / rest)))
        if chance < 0.01:
            found.append((chance, Slice(word, n, float(added / n))))
    found = [one for _, one in sorted(found, key=lambda pair: pair[0])[:most]]
    return sorted(found, key=lambda one: one.score)


def script_of(text: str) -> str:
    """The most frequent script of a text's letters, such as "Latin"; "none" without letters.

    By the first word of their Unicode names, which for Chinese characters is "Cjk".
    """
    letters = Counter(
        unicodedata.name(c, "unknown").split(" ")[0].split("-")[0].capitalize()
        for c in text
        if c.isalpha()
    )
    return letters.most_common(1)[0][0] if letters else "none"


def _doubtful(a: Answers) -> np.ndarray:
    """Indices of labels to look at again; only for single classes."""
    if a.logits is None or a.labels.ndim == 2:
        return np.zeros(0, int)
    chance = softmax(a.logits, axis=-1)
    own = chance[np.arange(len(chance)), a.labels]
    count = np.bincount(a.labels, minlength=len(a.names))
    mean = np.bincount(a.labels, own, minlength=len(a.names)) / np.maximum(count, 1)
    sure = np.where((chance >= mean) & (count > 0), chance, 0)
    other = sure.argmax(axis=1)
    doubtful = np.flatnonzero((sure.max(axis=1) > 0) & (other != a.labels))
    margin = chance.max(axis=1) - own
    return doubtful[np.argsort(-margin[doubtful], kind="stable")]


# === The page ===


def _body(report: ErrorReport, worst: int) -> str:
    a = report.answers
    number = a.confidence is None
    title = "Largest errors" if number else "Worst mistakes"
    figures = {"examples": f"{len(a.texts):,}"}
    if len(a.score) != len(a.texts):
        figures["words with a tag"] = f"{len(a.score):,}"
    if number:
        figures["mean absolute error"] = f"{-report.score:.3f}"
    else:
        figures[a.measure] = f"{report.score:.3f}"
        figures["mistakes"] = f"{len(report.mistakes):,}"
    scores = report.class_scores()
    if scores is not None:
        figures["macro F1"] = f"{scores['f1'].mean():.3f}"
    if report.calibration is not None:
        figures["calibration error"] = f"{report.calibration.expected_error:.3f}"
    if report.calibrated is not None:
        after = f"after temperature {report.temperature:.2f}"
        figures[after] = f"{report.calibrated.expected_error:.3f}"
    parts = [cards(figures)]
    if scores is not None:
        parts += ["<h2>Classes</h2>", _class_table(a.names, scores)]
    if (matrix := report.confusion()) is not None:
        parts += ["<h2>Confusion</h2>", _confusion_table(matrix, a.names)]
    if report.calibration is not None:
        parts += ["<h2>Calibration</h2>", _calibration_picture(report)]
    parts += ["<h2>Slices</h2>", _slice_tables(report), f"<h2>{title}</h2>"]
    if len(report.mistakes):
        text = (
            "The worst first. Where words are coloured, "
            '<mark class="p" style="--s:.8">blue</mark> ones raise the answer that was given, '
            '<mark class="n" style="--s:.8">orange</mark> ones lower it.'
        )
        parts += [f'<p class="soft">{text}</p>', _item_table(report, report.mistakes[:worst])]
    else:
        parts.append("<p>There are none.</p>")
    if report.others is not None:
        parts += ["<h2>Two models</h2>", _comparison(report, worst)]
    if len(report.doubtful):
        text = (
            f"{len(report.doubtful):,} labels to look at again: the model is surer of another "
            "class than it is on average of that class's own items."
        )
        parts += ["<h2>Doubtful labels</h2>", f"<p>{text}</p>"]
        parts.append(_item_table(report, report.doubtful[:worst]))
    return "\n".join(parts)


def _bar(share: float, bad: bool = False, width: float = 7) -> str:
    share = min(max(share, 0), 1)
    return f'<span class="bar{" bad" if bad else ""}" style="width:{share * width:.2f}rem"></span>'


def _class_table(names: Sequence, scores: dict) -> str:
    rows = [
        [html_text(name), f"{n:,}", f"{p:.3f}", f"{r:.3f}", f"{f:.3f}", _bar(f)]
        for name, p, r, f, n in zip(names, *scores.values(), strict=True)
    ]
    titles = ["class", "items", "precision", "recall", "F1", ""]
    return table(titles, rows, {1, 2, 3, 4})


def _confusion_table(matrix: np.ndarray, names: Sequence) -> str:
    if len(names) <= MOST_CLASSES:
        shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
        rows = []
        for row, name in enumerate(names):
            cells = [html_text(name)]
            for column in range(len(names)):
                count, kind = matrix[row, column], "p" if row == column else "n"
                shade = f'<mark class="{kind}" style="--s:{shares[row, column]:.3f}">'
                cells.append(f"{shade}&nbsp;{count:,}&nbsp;</mark>" if count else "")
            rows.append(cells)
        note = '<p class="soft">Rows: right class. Columns: predicted class.</p>'
        titles = ["", *map(str, names)]
        return note + table(titles, rows, set(range(1, len(names) + 1)), wide=False)
    pairs = [(n, r, c) for (r, c), n in np.ndenumerate(matrix) if n and r != c]
    rows = [
        [html_text(names[r]), html_text(names[c]), f"{n:,}"]
        for n, r, c in sorted(pairs, key=lambda pair: -pair[0])[:MOST_CLASSES]
    ]
    return table(["right", "predicted", "items"], rows, {2}, wide=False)


def _calibration_picture(report: ErrorReport) -> str:
    """A reliability diagram as SVG."""
    size, left, top = 260, 40, 10

    def place(x, y):
        return f"{left + x * size:.1f},{top + (1 - y) * size:.1f}"

    lines = [
        f'<polyline points="{place(0, 0)} {place(1, 1)}" stroke="var(--soft)" fill="none" '
        'stroke-dasharray="4 4"/>'
    ]
    for tick in (0, 0.5, 1):
        lines.append(
            f'<text x="{left - 6}" y="{top + (1 - tick) * size + 4:.0f}" '
            f'text-anchor="end">{tick:g}</text>'
            f'<text x="{left + tick * size:.0f}" y="{top + size + 16}" '
            f'text-anchor="middle">{tick:g}</text>'
        )
    lines.append(
        f'<rect x="{left}" y="{top}" width="{size}" height="{size}" fill="none" '
        'stroke="var(--line)"/>'
    )
    legend = []
    for label, color, found in _curves(report):
        color = {ORANGE: "var(--bad)", BLUE: "var(--good)"}[color]  # which a dark page changes
        points = [place(x, y) for x, y in found]
        lines.append(
            f'<polyline points="{" ".join(points)}" stroke="{color}" fill="none" stroke-width="2"/>'
        )
        for point in points:
            x, y = point.split(",")
            lines.append(f'<circle cx="{x}" cy="{y}" r="3.5" fill="{color}"/>')
        legend.append(f'<span class="dot" style="background:{color}"></span> {label}')
    width, height = left + size + 20, top + size + 40
    lines.append(
        f'<text x="{left + size / 2:.0f}" y="{height - 6}" text-anchor="middle">'
        "confidence; the height is the share of right answers</text>"
    )
    picture = (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" '
        f'aria-label="Reliability diagram">{"".join(lines)}</svg>'
    )
    return f'{picture}<p class="soft">{"<br>".join(legend)}</p>'


def _curves(report: ErrorReport) -> list[tuple[str, str, np.ndarray]]:
    """The label, the colour and the points of each reliability curve, [bins, 2]."""
    found = []
    for name, color, one in (
        ("before", ORANGE, report.calibration),
        ("after temperature scaling", BLUE, report.calibrated),
    ):
        if one is not None:
            points = np.stack([one.confidence, one.accuracy], axis=1)[one.count > 0]
            found.append((f"{name}: expected error {one.expected_error:.3f}", color, points))
    return found


def _slice_tables(report: ErrorReport) -> str:
    titles = {
        "length": "By length",
        "script": "By script",
        "label": "By label",
        "word": "Words whose texts stand out",
    }
    number = report.answers.confidence is None
    parts = []
    for kind, title in titles.items():
        slices = report.slices[kind]
        if not slices or (kind == "script" and len(slices) < 2):
            continue
        most = max(abs(one.score) for one in slices) or 1
        rows = []
        for one in slices:
            shown, share = (-one.score, -one.score / most) if number else (one.score, one.score)
            bad = one.score < report.score
            rows.append([html_text(one.name), f"{one.count:,}", f"{shown:.3f}", _bar(share, bad)])
        measure = "mean absolute error" if number else report.answers.measure
        parts.append(f"<h3>{title}</h3>{table([kind, 'items', measure, ''], rows, {1, 2})}")
    return (
        '<p class="soft">Orange bars are below the mean of all.</p>' + "".join(parts)
        if parts
        else "<p>There are none.</p>"
    )


def _item_table(report: ErrorReport, items: np.ndarray) -> str:
    a, rows = report.answers, []
    last, numbers = "confidence", a.confidence
    if numbers is None:
        last, numbers = "error", a.loss
    for item in items.tolist():
        why = report.explained.get(item)
        if why is not None:
            text = why.marked_texts()
        else:
            text = "".join(f"<div>{html_text(t)}</div>" for t in a.texts[a.example[item]])
        if isinstance(a.target[item], tuple) and a.names is not None:
            text = f'<div class="soft">word {a.target[item][0]}</div>{text}'
        cells = [f"{a.example[item]}", text, html_text(a.right[item]), html_text(a.found[item])]
        rows.append([*cells, f"{numbers[item]:.3f}"])
    return table(["example", "text", "right", "answer", last], rows, {4}, long=1)


def _comparison(report: ErrorReport, worst: int) -> str:
    a, b = report.answers, report.others
    if a.confidence is None:
        better = int((a.score > b.score).sum())
        return f"<p>The first is nearer {better:,} times of {len(a.score):,}.</p>"
    right, theirs = a.score == 1, b.score == 1
    first, second = int((right & ~theirs).sum()), int((theirs & ~right).sum())
    figures = {
        "both right": f"{int((right & theirs).sum()):,}",
        "only this one": f"{first:,}",
        "only the other": f"{second:,}",
        "McNemar's p": f"{mcnemar(first, second):.3g}",
    }
    rows = []
    for item in report.disagreements[:worst].tolist():
        text = "".join(f"<div>{html_text(t)}</div>" for t in a.texts[a.example[item]])
        answers = [html_text(side[item]) for side in (a.right, a.found, b.found)]
        rows.append([f"{a.example[item]}", text, *answers])
    titles = ["example", "text", "right", "this one", "the other"]
    return cards(figures) + table(titles, rows, set(), long=1)


def mcnemar(first: int, second: int) -> float:
    """The exact two-sided p-value of McNemar's test.

    Of the numbers of items that only the first model, and only the second, answers right.
    """
    from scipy.stats import binomtest

    return float(binomtest(first, first + second).pvalue) if first + second else 1.0


# === Pictures ===


def _draw_confusion(path: Path, matrix: np.ndarray, names: list[str]) -> Path:
    size = min(4 + 0.35 * len(names), 20)
    made = figure(size + 1, size)
    axes = made.subplots()
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    made.colorbar(image, label="fraction of the right class")
    axes.set(xlabel="predicted", ylabel="right")
    axes.set_xticks(range(len(names)), names, rotation=90 if len(names) > 4 else 0)
    axes.set_yticks(range(len(names)), names)
    if len(names) <= MOST_CLASSES:
        for row, column in np.argwhere(matrix):
            color = "white" if shares[row, column] > 0.5 else "black"
            axes.text(column, row, matrix[row, column], ha="center", va="center", color=color)
    return write_png(path, made)


def _draw_calibration(path: Path, report: ErrorReport) -> Path:
    made = figure(5, 6)
    above, below = made.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    above.plot([0, 1], [0, 1], color="grey", linestyle="--")
    for label, color, points in _curves(report):
        above.plot(*points.T, marker="o", color=color, label=label)
    above.set(ylabel="fraction of right answers", ylim=(0, 1.02))
    above.legend()
    count = report.calibration.count
    edges = np.linspace(0, 1, len(count) + 1)
    below.bar(edges[:-1], count, width=edges[1], align="edge", edgecolor="white", color="grey")
    below.set(xlabel="confidence", ylabel="answers", xlim=(0, 1))
    return write_png(path, made)


def _draw_classes(path: Path, scores: dict[str, np.ndarray], names: list[str]) -> Path:
    made = figure(7, min(1.2 + 0.3 * len(names), 40))
    axes = made.subplots()
    axes.axis("off")
    values = (scores[name] for name in ("precision", "recall", "f1", "count"))
    rows = [
        [f"{p:.3f}", f"{r:.3f}", f"{f:.3f}", f"{n:,}"] for p, r, f, n in zip(*values, strict=True)
    ]
    means = [f"{scores[name].mean():.3f}" for name in ("precision", "recall", "f1")]
    axes.table(
        [*rows, [*means, f"{scores['count'].sum():,}"]],
        rowLabels=[*names, "mean"],
        colLabels=["precision", "recall", "F1", "items"],
        loc="center",
    )
    return write_png(path, made)
