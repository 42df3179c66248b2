"""What a network has made of texts: hidden states, and maps of many texts."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import softmax

from keras_bert.arguments import check_choice, check_count, needed
from keras_bert.atomic import write_folder
from keras_bert.data.texts import as_strings, check_texts
from keras_bert.explain.pages import VIEWS, Drawn, drawn, figure, html_text, run_in
from keras_bert.explain.reading import TokensRead, read_pair, run_layers
from keras_bert.tasks.features import extract_features
from keras_bert.tasks.pretrainer import BertMaskedLM
from keras_bert.tasks.text_embedder import BertTextEmbedder

METHODS = ("pca", "umap")
# Colours of labels (Okabe and Ito 2008), told apart with every kind of colour vision.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a8f98", "#b8a800")
# "tensor_path" and "metadata_path" are relative to the folder, as TensorBoard reads them.
_CONFIG = """embeddings {
  tensor_name: "embeddings"
  tensor_path: "vectors.tsv"
  metadata_path: "metadata.tsv"
}
"""
FILES = ("vectors.tsv", "metadata.tsv", "projector_config.pbtxt")


@dataclass(frozen=True, eq=False)
class HiddenStates(TokensRead):
    """The hidden states of a row.

    Attributes:
        texts, tokens, sides, spans: as `Attribution`.
        states: float32 [L + 1, T, H]; the first are the embeddings, the last the encoder's output.
    """

    states: np.ndarray


def hidden_states(task, text: str | tuple[str, str]) -> HiddenStates:
    """Computes the hidden states of one or two texts, read as by `attention`.

    For many texts, `keras_bert.extract_features` is faster.

    Args:
        task: a task with a preprocessor.
        text: a text, or a tuple of two.

    Returns:
        The `HiddenStates`.

    Raises:
        TypeError: if a text is not a string.
        ValueError: if the task has no preprocessor.
    """
    reading = read_pair(task, text)
    states, _ = run_layers(task, reading)
    return HiddenStates(reading.texts, reading.tokens, reading.sides, reading.spans, states)


def nearest_words(task, states, top_k: int = 5, by: str = "embedding") -> list[list[tuple]]:
    """Finds the words of the vocabulary nearest to hidden states.

    Args:
        task: the task that the states are of.
        states: float [M, H], or [H] for one.
        top_k: number of words for each state.
        by: "embedding" for the cosine similarity to the word embeddings; "head" for the
            probability that the head of a masked language model gives the word, whatever the layer
            of the state (the "logit lens", nostalgebraist 2020).

    Returns:
        For each state a list of `top_k` pairs (token, score), the nearest first; for one state one
        list. Special tokens and unused ones are left out.

    Raises:
        ValueError: if states have another width, `by` is unknown, or there is no such head.
    """
    tokenizer, states = task.preprocessor.tokenizer, np.asarray(states, "float32")
    if states.ndim not in (1, 2) or states.shape[-1] != task.backbone.hidden_dim:
        raise ValueError(
            f"states of shape {states.shape}: expected [M, {task.backbone.hidden_dim}]"
        )
    if states.ndim == 1:
        return nearest_words(task, states[None], top_k, by)[0]
    vocabulary = tokenizer.get_vocabulary()
    top_k = min(check_count("top_k", top_k), len(vocabulary))
    ids = np.arange(task.backbone.vocabulary_size)
    if by == "head" and isinstance(task, BertMaskedLM):
        positions = np.arange(len(states), dtype="int32")[None]
        logits = np.asarray(task.masked_lm_head(states[None], positions), "float32")[0]
        scores = softmax(logits, axis=1)
    elif by == "embedding":
        table = np.asarray(task.backbone.token_embedding(ids), "float32")
        units = [
            v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-12) for v in (states, table)
        ]
        scores = units[0] @ units[1].T
    else:
        raise ValueError(f"by={by!r}: expected 'embedding', or 'head' for a masked language model")
    hidden = [
        i >= len(vocabulary) or (vocabulary[i].startswith("[") and vocabulary[i].endswith("]"))
        for i in ids
    ]
    scores[:, hidden] = -np.inf
    best = np.argsort(-scores, axis=1, kind="stable")[:, :top_k]
    return [
        [(vocabulary[i], float(row[i])) for i in found if np.isfinite(row[i])]
        for row, found in zip(scores, best, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class Projection(Drawn):
    """N texts as points of a plane.

    Attributes:
        texts: N texts.
        labels: N labels as text, or None.
        vectors: float32 [N, H], the embeddings.
        points: float32 [N, 2].
        method: "pca" or "umap".
    """

    texts: list[str]
    labels: list[str] | None
    vectors: np.ndarray
    points: np.ndarray
    method: str

    def _colors(self) -> tuple[list[str], dict[str, str]]:
        """The colour of each point, and of each label."""
        names = sorted({*(self.labels or [""])})
        of_label = {name: COLORS[i % len(COLORS)] for i, name in enumerate(names)}
        return [of_label[label] for label in self.labels or [""] * len(self.texts)], of_label

    def page(self) -> tuple[str, str]:
        """As `Shown.page`: a scatter plot, which shows the text of the point pointed at."""
        width, height, edge = 860, 560, 16
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        places = (self.points - low) / np.maximum(high - low, 1e-12)
        colors, of_label = self._colors()
        dots = []
        for number, (x, y) in enumerate(places.tolist()):
            label = "" if self.labels is None else f"{self.labels[number]}: "
            dots.append(
                f'<circle cx="{edge + x * (width - 2 * edge):.1f}" '
                f'cy="{edge + (1 - y) * (height - 2 * edge):.1f}" r="5" '
                f'fill="{colors[number]}" fill-opacity=".7">'
                f"<title>{html_text(label + self.texts[number])}</title></circle>"
            )
        legend = " ".join(
            f'<span class="dot" style="background:{color}"></span> {html_text(name)}&ensp;'
            for name, color in of_label.items()
            if name
        )
        about = (
            f"{len(self.texts):,} texts, {self.method.upper()} of {self.vectors.shape[1]} numbers "
            "each. Point at a dot for its text."
        )
        body = (
            f'<p>{legend}</p><p role="status">{about}</p><svg viewBox="0 0 {width} {height}" '
            f'width="100%" role="group" aria-label="Map of the texts">{"".join(dots)}</svg>'
        )
        script = (VIEWS / "map.js").read_text("utf-8")
        return "Map of the texts", run_in(body, f"{script}\nmapView(box);")

    def picture(self):
        """A scatter plot, as a matplotlib figure."""
        made = figure(6, 4.5)
        axes = made.subplots()
        colors, of_label = self._colors()
        for name, color in of_label.items():
            inside = [found == name for found in self.labels or [""] * len(colors)]
            axes.scatter(*self.points[inside].T, s=14, alpha=0.7, color=color, label=drawn(name))
        if self.labels is not None:
            axes.legend()
        axes.set_axis_off()
        return made

    def write_projector(self, folder: str | Path) -> None:
        """Writes the files that TensorBoard's projector reads: `tensorboard --logdir FOLDER`.

        Args:
            folder: the folder to make, or one of these to replace.

        Raises:
            FileExistsError: if the folder holds something else.
        """

        def write(path):
            place = Path(path)
            lines = ["\t".join(f"{v:.7g}" for v in row) for row in self.vectors]
            (place / "vectors.tsv").write_text("\n".join(lines) + "\n", "utf-8")
            # Tabs and line ends would begin another cell or row.
            rows = [json.dumps(text, ensure_ascii=False)[1:-1] for text in self.texts]
            if self.labels is not None:
                labels = [json.dumps(label, ensure_ascii=False)[1:-1] for label in self.labels]
                rows = ["text\tlabel", *map("\t".join, zip(rows, labels, strict=True))]
            (place / "metadata.tsv").write_text("\n".join(rows) + "\n", "utf-8")
            (place / "projector_config.pbtxt").write_text(_CONFIG, "utf-8")

        write_folder(folder, write, FILES)


def project(
    embedder,
    texts: Sequence[str],
    labels: Sequence | None = None,
    method: str = "pca",
    seed: int = 0,
) -> Projection:
    """Projects the embeddings of texts to a plane.

    Args:
        embedder: a `BertTextEmbedder`; or another task, whose last hidden states are averaged over
            the pieces of a text.
        texts: N texts, at least two.
        labels: N labels, which colour the points; or None.
        method: "pca", principal components; or "umap" (McInnes et al. 2018, arXiv:1802.03426), if
            the package umap-learn is installed.
        seed: seed of UMAP.

    Returns:
        The `Projection`.

    Raises:
        ImportError: if umap-learn, from the extra "umap", is missing.
        TypeError: if a text is not a string.
        ValueError: if `method` is unknown, there are fewer than two texts, or labels differ in
            number.
    """
    check_choice("method", method, METHODS)
    texts = as_strings(check_texts(texts))
    if len(texts) < 2 or (labels is not None and len(labels) != len(texts)):
        raise ValueError(
            f"{len(texts)} texts and {'no' if labels is None else len(labels)} labels: expected "
            "two or more texts, with a label each"
        )
    if isinstance(embedder, BertTextEmbedder):
        vectors = embedder.embed(texts)
    else:
        vectors = extract_features(embedder, texts, per="text")
    if method == "umap":
        with needed("method='umap'", "umap-learn", "'keras3-bert[umap]'"):
            from umap import UMAP
        points = UMAP(random_state=seed, n_jobs=1).fit_transform(vectors)
    else:
        centred = vectors - vectors.mean(axis=0, dtype="float64")
        left, lengths, _ = np.linalg.svd(centred, full_matrices=False)
        points = left[:, :2] * lengths[:2]
    names = None if labels is None else [str(label) for label in labels]
    return Projection(texts, names, vectors, np.asarray(points, "float32"), method)
