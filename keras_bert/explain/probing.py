"""Probing: which layer knows something about words."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keras_bert.arguments import check_count, check_number
from keras_bert.explain.pages import Drawn, figure, html_text, table
from keras_bert.tasks.features import extract_features
from keras_bert.tasks.sentences import check_tags


@dataclass(frozen=True, eq=False)
class ProbeScores(Drawn):
    """The scores of a linear probe on each layer.

    Attributes:
        scores: float [L + 1], accuracy on held-out words; the first is that of the embeddings.
        majority: accuracy of the most frequent tag.
        by_word: accuracy of the most frequent tag of each word, without its context.
        names: the K tags.
        words: number of held-out words.
    """

    scores: np.ndarray
    majority: float
    by_word: float
    names: list[str]
    words: int

    @property
    def expected_layer(self) -> float:
        """The mean layer at which the best score so far rises, weighted by how much it rises.

        As the expected layer of Tenney et al. 2019 (arXiv:1905.05950), equation 4, with probes on
        single layers instead of mixtures of all layers so far. NaN if no layer is better than the
        embeddings.
        """
        gains = np.diff(np.maximum.accumulate(self.scores))
        layers = np.arange(1, len(self.scores))
        return float(gains @ layers / gains.sum()) if gains.sum() else float("nan")

    def page(self) -> tuple[str, str]:
        """As `Shown.page`: a curve and a table of the scores by layer."""
        low = min(self.scores.min(), self.majority) - 0.02
        high = max(self.scores.max(), self.by_word) + 0.02
        width, height, left = 560, 240, 46
        last = max(len(self.scores) - 1, 1)

        def place(layer, score):
            x = left + layer / last * (width - left - 12)
            return x, 12 + (high - score) / (high - low) * (height - 44)

        points = [place(*pair) for pair in enumerate(self.scores)]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts = [f'<polyline points="{line}" fill="none" stroke="var(--good)" stroke-width="2"/>']
        for layer, (x, y) in enumerate(points):
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="var(--good)"/>')
            parts.append(f'<text x="{x:.1f}" y="{height - 14}" text-anchor="middle">{layer}</text>')
        for name, score in (("most frequent tag", self.majority), ("by word", self.by_word)):
            y = place(0, score)[1]
            parts.append(
                f'<line x1="{left}" x2="{width - 12}" y1="{y:.1f}" y2="{y:.1f}" '
                'stroke="var(--soft)" stroke-dasharray="4 4"/>'
                f'<text x="{width - 14}" y="{y - 5:.1f}" text-anchor="end">{name}</text>'
            )
        for score in np.linspace(low, high, 4):
            y = place(0, score)[1]
            parts.append(
                f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{score:.2f}</text>'
            )
        picture = (
            f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" '
            f'aria-label="Accuracy by layer">{"".join(parts)}</svg>'
        )
        rows = [
            [str(layer) if layer else "embeddings", f"{score:.4f}", f"{score - before:+.4f}"]
            for layer, (score, before) in enumerate(
                zip(self.scores, [self.scores[0], *self.scores[:-1]], strict=True)
            )
        ]
        names = html_text(", ".join(self.names[:20]))
        return "Which layer knows it", (
            f'{picture}<p class="soft">Accuracy of a linear probe on {self.words:,} held-out words '
            f"({names}). Expected layer: {self.expected_layer:.2f}.</p>"
            f"{table(['layer', 'accuracy', 'change'], rows, {1, 2}, wide=False)}"
        )

    def picture(self):
        """The curve, as a matplotlib figure."""
        made = figure(5, 3.2)
        axes = made.subplots()
        axes.plot(range(len(self.scores)), self.scores, marker="o", color="#0072b2")
        axes.axhline(self.by_word, color="grey", linestyle="--", label="most frequent tag by word")
        axes.axhline(self.majority, color="grey", linestyle=":", label="most frequent tag")
        axes.set(xlabel="layer", ylabel="accuracy")
        axes.legend()
        return made


def probe(
    model,
    words: Sequence[Sequence[str]],
    tags: Sequence[Sequence[str]],
    tokenizer=None,
    held_out: float = 0.2,
    seed: int = 0,
    iterations: int = 200,
) -> ProbeScores:
    """Measures how well a linear classifier reads tags of words from each layer.

    The probe is a logistic regression on the state of a word's first piece, scaled to mean 0 and
    variance 1. A layer knows what the probe finds above `by_word`, which needs no context.
    Reference: Tenney et al. 2019 (arXiv:1905.05950), and Liu et al. 2019 (arXiv:1903.08855).

    Args:
        model: a task, or a `BertBackbone` together with `tokenizer`.
        words: N sentences, lists of words.
        tags: for each a list of tags, one per word.
        tokenizer: by default the task's.
        held_out: fraction of the sentences that probes are scored on.
        seed: seed of the choice of these sentences.
        iterations: maximum number of iterations of the solver.

    Returns:
        The `ProbeScores`.

    Raises:
        ValueError: if the numbers of words and tags differ, or there are fewer than two sentences
            or tags.
    """
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    check_number("held_out", held_out, most=1)
    check_count("iterations", iterations)
    check_tags(words, tags)
    names = sorted({str(tag) for row in tags for tag in row})
    if len(words) < 2 or len(names) < 2:
        raise ValueError(
            f"{len(words)} sentences with {len(names)} tags: expected two or more of each"
        )
    order = np.random.default_rng(seed).permutation(len(words))
    count = min(max(round(held_out * len(words)), 1), len(words) - 1)
    parts = [np.sort(order[count:]), np.sort(order[:count])]  # to train on, and held out
    labels = [np.array([str(tag) for i in part for tag in tags[i]]) for part in parts]
    plain = [[word for i in part for word in words[i]] for part in parts]
    if len({*labels[0]}) < 2:
        raise ValueError("tags: expected two or more in the sentences that are not held out")
    backbone = getattr(model, "backbone", model)
    scores = []
    for layer in range(backbone.num_layers + 1):
        found = extract_features(
            model, [*map(list, words)], layers=[layer], per="word", tokenizer=tokenizer
        )
        train, test = (np.concatenate([found[i] for i in part]) for part in parts)
        classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=iterations))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the score does not hang on it
            classifier.fit(train, labels[0])
        scores.append(float(np.mean(classifier.predict(test) == labels[1])))
    most = Counter(labels[0].tolist()).most_common(1)[0][0]
    counts: dict[str, Counter] = {}
    for word, label in zip(plain[0], labels[0].tolist(), strict=True):
        counts.setdefault(word, Counter())[label] += 1
    guess = [counts[word].most_common(1)[0][0] if word in counts else most for word in plain[1]]
    return ProbeScores(
        np.array(scores),
        float(np.mean(labels[1] == most)),
        float(np.mean(labels[1] == np.array(guess))),
        names,
        len(labels[1]),
    )
