"""Attributions: how much each token and word of a text adds to an output of a task."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_bert.arguments import check_choice, check_count
from keras_bert.explain.pages import BLUE, ORANGE, Drawn, drawn, figure, html_text
from keras_bert.explain.reading import Reading, TokensRead, columns_of, read_example, run_outputs
from keras_bert.tasks.labelled import Labelled
from keras_bert.tasks.multiple_choice import BertMultipleChoice
from keras_bert.tasks.pretrainer import BertMaskedLM
from keras_bert.tasks.question_answerer import BertQuestionAnswerer
from keras_bert.tasks.run_rows import kept_function
from keras_bert.tasks.text_embedder import BertTextEmbedder
from keras_bert.tasks.token_classifier import BertTokenClassifier
from keras_bert.text.entities import marks_entity
from keras_bert.text.prompts import check_has_mask

METHODS = ("integrated_gradients", "gradient_x_input", "occlusion")
BASELINES = ("[PAD]", "[MASK]")
TOLERANCE = 0.01  # the error of a quadrature that is accepted, as a part of the change
# Steps: first, and where their error is over a part of the change. A sum may be right by chance,
# so that part is smaller: with it, scores differ from those of many steps by less than 0.001.
FEW, MANY, CLOSE = 32, 64, 0.0025
TOKENS_AT_ONCE = 2048  # of all steps that one call computes, which bounds memory


class Words(NamedTuple):
    """The W words of an attribution, in BERT's sense: split at spaces and around punctuation.

    Attributes:
        words: as written in the text.
        sides: int32 [W], the index of each word's text.
        spans: int32 [W, 2], its characters in the text.
        scores: float32 [W], the sums of the scores of its tokens.
    """

    words: list[str]
    sides: np.ndarray
    spans: np.ndarray
    scores: np.ndarray


@dataclass(frozen=True, eq=False)
class Attribution(TokensRead, Drawn):
    """The shares of T tokens in one output.

    Attributes:
        texts: the texts that were read, one or two.
        tokens: T tokens of the vocabulary, with [CLS] and [SEP].
        sides: int32 [T], the index of each token's text; -1 for special tokens.
        spans: int32 [T, 2], the characters of each token in its text, start and end; -1 for
            special tokens.
        scores: float32 [T]; positive for tokens that raise the output.
        target: the output that is explained: a label, (word, tag), (start, end), an index of a
            choice, (number of the [MASK], token), "cosine" or "next sentence".
        meaning: a description of the output in words.
        output: its value.
        baseline_output: its value when all tokens but special ones are the baseline.
        error: |sum of the scores - (output - baseline_output)|; small only for integrated
            gradients, and smaller with more steps.
        method: as `attributions`.
        baseline: as `attributions`.
    """

    scores: np.ndarray
    target: Any
    meaning: str
    output: float
    baseline_output: float
    error: float
    method: str
    baseline: str

    @property
    def words(self) -> Words:
        """The same by word."""
        groups = [group for group in self._groups() if self.sides[group[0]] >= 0]
        sides = np.array([self.sides[group[0]] for group in groups], "int32")
        ends = [(self.spans[group[0], 0], self.spans[group[-1], 1]) for group in groups]
        spans = np.array(ends, "int32").reshape(-1, 2)
        words = [
            self.texts[side][start:end] for side, (start, end) in zip(sides, spans, strict=True)
        ]
        scores = np.array([sum(self.scores[i] for i in group) for group in groups], "float32")
        return Words(words, sides, spans, scores)

    def marked_texts(self) -> str:
        """HTML of the texts, in which words are coloured by their scores."""
        words = self.words
        most = max(np.abs(words.scores).max(initial=0), 1e-12)
        parts = []
        for number, text in enumerate(self.texts):
            place, made = 0, []
            for side, (start, end), score in zip(*words[1:], strict=True):
                if side != number or start < place:
                    continue
                strength = abs(score) / most
                made.append(html_text(text[place:start]))
                made.append(
                    f'<mark class="{"p" if score > 0 else "n"}" style="--s:{strength:.3f}" '
                    f'title="{score:+.4f}">{html_text(text[start:end])}</mark>'
                )
                place = end
            made.append(html_text(text[place:]))
            parts.append(f'<div class="text">{"".join(made)}</div>')
        return "".join(parts)

    def page(self) -> tuple[str, str]:
        """As `Shown.page`: the texts, in which words are coloured by their scores."""
        return "Why?", (
            f"{self.marked_texts()}"
            f'<div class="soft">{html_text(self.meaning)}: {self.output:.3f}, and '
            f"{self.baseline_output:.3f} for {html_text(self.baseline)} in place of the words. "
            '<mark class="p" style="--s:.8">Blue</mark> raises it, '
            '<mark class="n" style="--s:.8">orange</mark> lowers it. '
            f"{self.method.replace('_', ' ').capitalize()}, error {self.error:.2g}.</div>"
        )

    def picture(self, top: int = 20):
        """A chart of the words with the largest scores, in the order of the text.

        Args:
            top: maximum number of words.

        Returns:
            A matplotlib figure.

        Raises:
            ImportError: if matplotlib, from the extra "plots", is not installed.
        """
        words = self.words
        first = np.sort(np.argsort(-np.abs(words.scores), kind="stable")[:top])[::-1]
        made = figure(6, 1.2 + 0.26 * len(first))
        axes = made.subplots()
        scores = words.scores[first]
        colors = [BLUE if score > 0 else ORANGE for score in scores]
        axes.barh(range(len(first)), scores, color=colors)
        axes.set_yticks(range(len(first)), [drawn(words.words[i]) for i in first])
        axes.axvline(0, color="grey", linewidth=0.8)
        axes.set(xlabel=drawn(self.meaning, 60))
        return made


def attributions(
    task,
    texts,
    target=None,
    method: str = "integrated_gradients",
    steps: int | None = None,
    baseline: str = "[PAD]",
) -> list[Attribution]:
    """Explains outputs of a task by the tokens and words of its texts.

    The output is a number: for a class, a tag, a choice, a token at a [MASK] or the next sentence
    the logarithm of its odds, log(p / (1 - p)); for an answer the sum of those of its first and its
    last token; for regression the number; for an embedder the cosine similarity of two texts. The
    probabilities are those after `calibrate`, but for answers. Of a text that is too long, only the
    tokens that the task reads are explained.

    - "integrated_gradients" (Sundararajan et al. 2017, arXiv:1703.01365): the gradient with respect
      to the word embeddings, integrated on the straight line from those of the baseline. Scores sum
      to `output - baseline_output`, up to the `error` of the quadrature: a Gauss-Legendre rule as
      in Captum, or where its error is over 1%, rules on parts that are shorter where the output
      changes faster. [CLS], [SEP], markers
      and [MASK]s to fill in are the same in the baseline and have the score 0.
    - "gradient_x_input": the gradient times the word embedding. One step, and a rough picture.
    - "occlusion": the output minus that with the token replaced by [MASK], one token at a time.

    The similarity of a pair is explained with each text in turn moving from the baseline, while the
    other stays as it is; scores and `baseline_output` are means of both. The choice that is
    explained moves while the other choices stay. With a CRF, a tag's odds are those of the
    emissions.

    Functions are traced once for a task and kept, whatever the lengths of the texts.

    Args:
        task: a task with a preprocessor.
        texts: examples as the task's method that answers takes them: N texts; for pairs, questions,
            choices and relations a tuple of columns; texts with [MASK]s for a masked language
            model. Or a single example.
        target: the output to explain; by default the predicted one. A label or id; of a tagger the
            index of a word, or (index, tag); of a question answerer (start, end), characters of the
            context, either of which may be None; the index of a choice; of a masked language model
            a token for the first [MASK], or (number of the [MASK], token). A list has one for each
            text. By default a tagger explains the first word with a tag other than "O".
        method: one of the three above.
        steps: number of gradients on the line; fewer are faster and less exact. None: 32, and 64
            where the error of 32 is over 0.25% of the change.
        baseline: "[PAD]" or "[MASK]", the token in place of the words in the baseline.

    Returns:
        An `Attribution` for each example.

    Raises:
        TypeError: if a text is not a string.
        ValueError: if there is no such target, method or baseline, an example is wrong, or Keras
            runs on another backend than TensorFlow.

    Example:

    >>> (why,) = attributions(classifier, ["A wonderful film."])
    >>> why.target, why.words.words, why.words.scores
    """
    for name, value, known in (("method", method, METHODS), ("baseline", baseline, BASELINES)):
        check_choice(name, value, known)
    if steps is not None:
        check_count("steps", steps)
    if keras.config.backend() != "tensorflow":
        raise ValueError(f"expected Keras on TensorFlow, not on {keras.config.backend()}")
    columns = columns_of(task, texts)
    if baseline == "[MASK]" or method == "occlusion":
        check_has_mask(task.preprocessor.tokenizer)
    count = len(columns[0])
    targets = target if isinstance(target, list) else [target] * count
    if len(targets) != count:
        raise ValueError(f"target has {len(targets)} items for {count} examples")
    found = []
    for *values, one in zip(*columns, targets, strict=True):
        asked = _asked(task, tuple(values), one)
        parts = [_explained(task, part, method, steps, baseline) for part in asked.parts]
        found.append(_joined(asked, parts, method, baseline))
    return found


class _Part(NamedTuple):
    """A row whose tokens are explained, and the number that is computed from its outputs.

    Attributes:
        reading: the row.
        value: computes float32 [S] from the outputs of S rows, and the selector.
        selector: an array with one axis, which the traced function takes as an argument.
        kind: identifies `value` among those of the task.
        shift: added to the value.
        temperature: divides the outputs, as those of calibrated probabilities.
    """

    reading: Reading
    value: Callable
    selector: np.ndarray
    kind: str
    shift: float = 0.0
    temperature: float = 1.0

    def number(self, outputs, selector):
        """float32 [S] of the outputs of S rows; TensorFlow, in graph."""
        scaled = keras.tree.map_structure(lambda v: v / self.temperature, outputs)
        return self.value(scaled, selector)


class _Asked(NamedTuple):
    parts: list[_Part]
    target: Any
    meaning: str


# === Targets ===


def _asked(task, columns: tuple, target) -> _Asked:
    """Finds the output to explain, and the default one if `target` is None."""
    for kind, asked in (
        (BertTokenClassifier, _asked_tag),
        (BertQuestionAnswerer, _asked_answer),
        (BertMultipleChoice, _asked_choice),
        (BertTextEmbedder, _asked_similarity),
        (BertMaskedLM, _asked_next if len(columns) > 1 else _asked_fill),
    ):
        if isinstance(task, kind):
            return asked(task, columns, target)
    return _asked_class(task, columns, target)


def _asked_class(task, columns, target) -> _Asked:
    (reading,) = read_example(task, columns)
    problem = getattr(task, "problem", "single_label")
    names = task.names if isinstance(task, Labelled) else list(range(task.output.shape[-1]))
    if target is None:
        index = int(np.argmax(run_outputs(task, reading)[0])) if problem != "regression" else 0
    else:
        index = _index(names, target)
    value, meaning = _log_odds_of_class, f"log-odds of {names[index]!r}"
    if problem == "regression":
        value, meaning = _number, "predicted number" + f" {index}" * (len(names) > 1)
    elif problem == "multi_label":
        value = _number  # a sigmoid each: logits are log-odds
    scale = 1.0 if problem == "regression" else getattr(task, "temperature", 1.0)
    selector = np.array([index], "int32")
    part = _Part(reading, value, selector, value.__name__, temperature=scale)
    return _Asked([part], names[index], meaning)


def _asked_tag(task, columns, target) -> _Asked:
    names = task.names
    word, tag = target if isinstance(target, tuple) else (target, None)
    if word is None:
        tags = task.predict_tags([columns[0]])[0]
        others = [i for i, name in enumerate(tags) if name != "O"]
        entities = task.labels is not None and all(map(marks_entity, task.labels))
        word = others[0] if others and entities else 0
    (reading,) = read_example(task, columns, word=int(word))
    place = int(np.argmax(reading.word == word))
    if tag is None:
        tag = names[int(np.argmax(run_outputs(task, reading)[0, place]))]
    index = _index(names, tag)
    start, end = reading.spans[place]
    meaning = f"log-odds of the tag {tag!r} at word {word}, {reading.texts[0][start:end]!r}"
    selector = np.array([place, index], "int32")
    part = _Part(reading, _log_odds_of_tag, selector, "tag", temperature=task.temperature)
    return _Asked([part], (int(word), tag), meaning)


def _asked_answer(task, columns, target) -> _Asked:
    if target is None:
        best = task.answer(*columns)
        target = (best.start, best.end)
    pair = isinstance(target, tuple) and len(target) == 2
    start, end = target if pair else (None, None)
    begin = start if start is not None else (end or 0) - 1
    characters = (begin, begin if end is None else end)
    size = len(columns[1])
    if not 0 <= begin <= size or characters[1] > size:
        raise ValueError(
            f"target={target!r}: expected (start, end), characters 0 to {size} of the context, of "
            "which one may be None"
        )
    none = target == (0, 0)  # no answer, which [CLS] stands for
    (reading,) = read_example(task, columns, characters=characters)
    places = [0, 0]
    if not none:
        context = np.flatnonzero(reading.sides == 1)
        begin, stop = reading.spans[context].T
        touched = context[(begin < max(characters[1], characters[0] + 1)) & (stop > characters[0])]
        if not len(touched):
            raise ValueError(f"target={target}: expected characters with a token of the context")
        places = [touched[0] if start is not None else -1, touched[-1] if end is not None else -1]
    names = {(True, True): "start and end", (True, False): "start", (False, True): "end"}
    side = names[start is not None, end is not None]
    text = "no answer" if none else repr(columns[1][characters[0] : characters[1]])
    meaning = f"log-odds of the {side} of the answer: {text}"
    part = _Part(reading, _log_odds_of_span, np.array(places, "int32"), "span")
    return _Asked([part], target, meaning)


def _asked_choice(task, columns, target) -> _Asked:
    readings = read_example(task, columns)
    scale = task.temperature
    scores = np.array([run_outputs(task, reading)[0] for reading in readings]) / scale
    numbers = [i for i, choice in enumerate(columns[1]) if choice]
    chosen = numbers[int(np.argmax(scores))] if target is None else target
    if chosen not in numbers:
        raise ValueError(f"target={target!r}: expected the index of a choice, {numbers}")
    place = numbers.index(chosen)
    others = np.delete(scores, place)
    shift = -float(np.logaddexp.reduce(others.astype("float64")))
    part = _Part(readings[place], _score, np.zeros(1, "int32"), "choice", shift, scale)
    return _Asked([part], int(chosen), f"log-odds of choice {chosen}")


def _asked_similarity(task, columns, target) -> _Asked:
    if len(columns) != 2 or target not in (None, "cosine"):
        raise ValueError(
            f"target={target!r} and {len(columns)} texts per example: expected a tuple (firsts, "
            "seconds), whose cosine similarity is explained"
        )
    readings = read_example(task, columns)
    vectors = [run_outputs(task, reading)[0] for reading in readings]
    parts = [
        _Part(reading, _cosine, other, "cosine")
        for reading, other in zip(readings, vectors[::-1], strict=True)
    ]
    return _Asked(parts, "cosine", "cosine similarity")


def _asked_fill(task, columns, target) -> _Asked:
    tokenizer = task.preprocessor.tokenizer
    mask, token = target if isinstance(target, tuple) else (0, target)
    (reading,) = read_example(task, columns, mask=int(mask))
    if token is None:
        index = int(np.argmax(run_outputs(task, reading)["mlm"][0, 0]))
    else:
        index = tokenizer.token_to_id(token)
    token = tokenizer.id_to_token(index)
    meaning = f"log-odds of {token!r} at [MASK] {mask}"
    selector, scale = np.array([index], "int32"), task.temperature
    part = _Part(reading, _log_odds_of_token, selector, "token", temperature=scale)
    return _Asked([part], (int(mask), token), meaning)


def _asked_next(task, columns, _) -> _Asked:
    if "nsp" not in task.output:
        raise ValueError("got pairs of texts: expected texts with [MASK]s")
    (reading,) = read_example(task, columns)
    part = _Part(reading, _log_odds_of_next, np.zeros(1, "int32"), "next")
    return _Asked([part], "next sentence", "log-odds of the second text following the first")


def _index(names: list, target) -> int:
    target = target.item() if hasattr(target, "item") else target
    if target not in names:
        known = ", ".join(map(repr, names[:20]))
        raise ValueError(f"target={target!r}: expected one of {known}")
    return names.index(target)


# === Numbers of outputs; TensorFlow, in graph ===


def _log_odds(logits, index):
    """log(p / (1 - p)) of a class under the softmax: logits [S, K], index scalar, to [S]."""
    import tensorflow as tf

    logits = tf.cast(logits, tf.float32)
    chosen = tf.one_hot(index, tf.shape(logits)[1], on_value=True, off_value=False)
    others = tf.reduce_logsumexp(tf.where(chosen, -1e30, logits), axis=1)
    return tf.gather(logits, index, axis=1) - others


def _log_odds_of_class(outputs, selector):
    return _log_odds(outputs, selector[0])


def _number(outputs, selector):
    return outputs[:, selector[0]]


def _log_odds_of_tag(outputs, selector):
    return _log_odds(outputs[:, selector[0]], selector[1])


def _log_odds_of_span(outputs, selector):
    """The sum of both ends; a negative column leaves an end out."""
    import tensorflow as tf

    sides = (outputs["start"], selector[0]), (outputs["end"], selector[1])
    values = [
        _log_odds(logits, tf.maximum(place, 0)) * tf.cast(place >= 0, tf.float32)
        for logits, place in sides
    ]
    return values[0] + values[1]


def _score(outputs, selector):
    return outputs


def _cosine(outputs, selector):
    import tensorflow as tf

    units = tf.math.l2_normalize(tf.cast(outputs, tf.float32), axis=-1, epsilon=1e-24)
    return tf.linalg.matvec(units, tf.math.l2_normalize(selector, epsilon=1e-24))


def _log_odds_of_token(outputs, selector):
    return _log_odds(outputs["mlm"][:, 0], selector[0])


def _log_odds_of_next(outputs, selector):
    return _log_odds(outputs["nsp"], 0)


# === Methods ===


def _explained(task, part: _Part, method: str, steps: int | None, baseline: str) -> tuple:
    """(scores [T], output, baseline output) of a row."""
    tokenizer, ids = task.preprocessor.tokenizer, part.reading.ids["token_ids"]
    special = part.reading.sides < 0
    replaced = {"[PAD]": tokenizer.pad_token_id, "[MASK]": tokenizer.mask_token_id}
    base = np.where(special, ids, replaced[baseline]).astype("int32")
    if method == "occlusion":
        places = np.flatnonzero(~special)
        rows = np.repeat(ids, len(places) + 2, axis=0)
        rows[0] = base
        rows[np.arange(2, len(rows)), places] = tokenizer.mask_token_id
        values = np.concatenate([*_values(task, part, rows)]) + part.shift
        scores = np.zeros(len(special), "float32")
        scores[places] = values[1] - values[2:]
        return scores, float(values[1]), float(values[0])
    along = _Line(task, part, base)
    first, last = (float(v) for v in along.values(np.array([0.0, 1.0])))
    if method == "gradient_x_input":
        scores = along.gradients(np.ones(1), np.ones(1), 0.0)
    else:
        scores = _integrated(along, last - first, steps)
    return scores, last + part.shift, first + part.shift


def _integrated(along: "_Line", change: float, steps: int | None) -> np.ndarray:
    """Integrates gradients, first by one Gauss-Legendre rule, which is best for smooth functions.

    Its scores do not sum to the change if the output jumps somewhere on the line, as it does for
    networks that are sure of themselves. The steps are then spent again, where the output changes.
    """
    rules = ((FEW, CLOSE), (MANY, TOLERANCE)) if steps is None else ((steps, TOLERANCE),)
    for steps, tolerance in rules:
        scores = along.gradients(*_nodes(np.array([0.0, 1.0]), steps), 1.0)
        if abs(scores.sum() - change) <= tolerance * abs(change):
            return scores
    if steps > 1:
        again = along.gradients(*_nodes(_parts(along.values, steps // 2), 2), 1.0)
        if abs(again.sum() - change) < abs(scores.sum() - change):
            return again
    return scores


def _parts(values: Callable, count: int) -> np.ndarray:
    """Divides the line into parts, short ones where the output changes fast; returns their ends.

    A jump may take less than a hundredth of the line, where equal steps would hardly have a point
    (Bhat and Raychowdhury 2023, arXiv:2302.11107). Forward passes alone find it: again and again,
    the parts with the largest change are halved. A tenth of the measure is length, so that no
    stretch is left out where the changes of several tokens cancel.
    """
    points = np.linspace(0, 1, min(count, 8) + 1)
    found = values(points)
    while (made := len(points) - 1) < count:
        change = np.abs(np.diff(found)).astype("float64")
        measure = 0.1 * np.diff(points) + 0.9 * change / max(change.sum(), 1e-30)
        largest = np.argsort(-measure, kind="stable")[: min(max(made // 4, 1), count - made)]
        middle = (points[largest] + points[largest + 1]) / 2
        points, found = np.append(points, middle), np.append(found, values(middle))
        order = np.argsort(points)
        points, found = points[order], found[order]
    return points


def _nodes(cuts: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The points and weights of Gauss-Legendre rules of `count` points on each part."""
    places, weights = np.polynomial.legendre.leggauss(count)
    length = np.diff(cuts)[:, None]
    points = cuts[:-1, None] + (places + 1) / 2 * length
    return points.ravel(), (weights / 2 * length).ravel()


class _Line:
    """The embeddings of a row on the line from those of the ids `base`, and the outputs there."""

    def __init__(self, task, part: _Part, base: np.ndarray):
        import tensorflow as tf

        self.task, self.part = task, part
        ids = part.reading.ids
        self.names = [*ids]
        self.fixed = [tf.constant(v) for v in (base, part.selector, *ids.values())]

    def values(self, points: np.ndarray) -> np.ndarray:
        """The outputs at points, float32 [S]."""

        def run(points, *fixed):
            embeddings, *_ = self._embeddings(points, *fixed)
            return self._outputs(embeddings, points, *fixed)

        found = _in_parts(self.task, self.part, "values", run, [points], self.fixed)
        return np.concatenate([*found])

    def gradients(self, points: np.ndarray, weights: np.ndarray, relative: float) -> np.ndarray:
        """Integrates the gradient times the direction, float32 [T], by weighted points.

        The direction is that from the baseline to the tokens if `relative` is 1, and the embeddings
        of the tokens if it is 0.
        """
        import tensorflow as tf

        def run(points, weights, relative, *fixed):
            embeddings, here, there = self._embeddings(points, *fixed)
            with tf.GradientTape() as tape:
                tape.watch(embeddings)
                values = self._outputs(embeddings, points, *fixed)
            gradient = tf.cast(tape.gradient(values, embeddings), tf.float32)
            mean = tf.tensordot(weights, gradient, 1)  # [T, H]
            return tf.reduce_sum(mean * (here - relative[0] * there)[0], axis=1)

        moving = [points, weights, np.full(len(points), relative)]
        found = _in_parts(self.task, self.part, "gradients", run, moving, self.fixed)
        return sum(v.astype("float64") for v in found).astype("float32")

    def _embeddings(self, points, base, selector, *ids):
        import tensorflow as tf

        token_ids = ids[self.names.index("token_ids")]
        table = self.task.backbone.token_embedding
        here, there = (tf.cast(table(x), tf.float32) for x in (token_ids, base))  # [1, T, H]
        return there + points[:, None, None] * (here - there), here, there

    def _outputs(self, embeddings, points, base, selector, *ids):
        import tensorflow as tf

        rows = {
            n: tf.repeat(v, tf.size(points), axis=0) for n, v in zip(self.names, ids, strict=True)
        }
        outputs = self.task(rows | {"token_embeddings": embeddings}, training=False)
        return tf.cast(self.part.number(outputs, selector), tf.float32)


def _values(task, part: _Part, rows: np.ndarray):
    """The values of rows of token ids that differ from the part's, [S, T], in chunks."""
    import tensorflow as tf

    names = [name for name in part.reading.ids if name != "token_ids"]

    def run(rows, selector, *ids):
        count = tf.shape(rows)[0]
        ids = {n: tf.repeat(v, count, axis=0) for n, v in zip(names, ids, strict=True)}
        return part.number(task(ids | {"token_ids": rows}, training=False), selector)

    fixed = [tf.constant(v) for v in (part.selector, *(part.reading.ids[n] for n in names))]
    return _in_parts(task, part, "occlusion", run, [rows], fixed)


def _in_parts(task, part: _Part, name: str, run: Callable, moving: list, fixed: list):
    """The results of a function for some points or rows after the other, which bounds memory."""
    import tensorflow as tf

    ids = part.reading.ids
    at_once = max(TOKENS_AT_ONCE // ids["token_ids"].shape[1], 1)
    for first in range(0, len(moving[0]), at_once):
        some = (v[first : first + at_once] for v in moving)
        some = [tf.constant(v, tf.float32 if v.dtype.kind == "f" else None) for v in some]
        columns = [*some, *fixed]
        yield kept_function(task, (name, part.kind, *ids), run, columns)(*columns).numpy()


def _joined(asked: _Asked, parts: Sequence[tuple], method: str, baseline: str) -> Attribution:
    """The attribution of a row, or the mean of those of several."""
    readings = [part.reading for part in asked.parts]
    share = 1 / len(parts)
    scores = np.concatenate([share * scores for scores, *_ in parts]).astype("float32")
    output = share * sum(output for _, output, _ in parts)
    baseline_output = share * sum(value for *_, value in parts)
    sides = [np.where(r.sides < 0, -1, r.sides + i) for i, r in enumerate(readings)]
    return Attribution(
        texts=tuple(text for reading in readings for text in reading.texts),
        tokens=tuple(token for reading in readings for token in reading.tokens),
        sides=np.concatenate(sides).astype("int32"),
        spans=np.concatenate([reading.spans for reading in readings]),
        scores=scores,
        target=asked.target,
        meaning=asked.meaning,
        output=output,
        baseline_output=baseline_output,
        error=abs(float(scores.sum(dtype="float64")) - (output - baseline_output)),
        method=method,
        baseline=baseline,
    )
