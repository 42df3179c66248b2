"""Attention maps of one or two texts: arrays, views to look around in, and rollout."""

import base64
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from keras_bert.explain.pages import drawn, figure, fragment, shown, write_page, write_png
from keras_bert.explain.reading import read_pair, run_layers

# The views: style, elements and script. ID and DATA are filled in.
_VIEWS = Path(__file__).with_name("attention.html")


@dataclass(frozen=True, eq=False)
class AttentionMaps:
    """Attention of L layers and N heads between T tokens.

    Attributes:
        texts: the texts that were read, one or two.
        tokens: T tokens of the vocabulary, with [CLS] and [SEP].
        sides: int32 [T], the index of each token's text; -1 for special tokens.
        spans: int32 [T, 2], the characters of each token in its text, start and end; -1 for
            special tokens.
        maps: float32 [L, N, T, T]; `maps[l, n, i, j]` is the probability with which token i
            attends to token j. Rows sum to 1.
    """

    texts: tuple[str, ...]
    tokens: tuple[str, ...]
    sides: np.ndarray
    spans: np.ndarray
    maps: np.ndarray

    def rollout(self, layers: int | None = None) -> np.ndarray:
        """Follows attention through the layers (Abnar and Zuidema 2020, arXiv:2005.00928).

        The mean over heads is averaged with the identity, for the residual connection, and
        multiplied from layer to layer.

        Args:
            layers: number of layers from the bottom; None for all.

        Returns:
            float32 [T, T], from a token of the output to tokens of the input; rows sum to 1.
        """
        found = np.eye(len(self.tokens))
        for heads in self.maps[:layers].astype("float64"):
            found = (heads.mean(axis=0) + np.eye(len(found))) / 2 @ found
        return found.astype("float32")

    def _body(self) -> str:
        flow = self.rollout()
        data = {
            "tokens": [shown(token) for token in self.tokens],
            "sides": self.sides.tolist(),
            "layers": self.maps.shape[0],
            "heads": self.maps.shape[1],
            "maps": _encoded(self.maps),
            "rollout": _encoded(flow / max(flow.max(), 1e-12)),
        }
        # "<" would end the script in a token such as "</script>".
        text = json.dumps(data).replace("<", "\\u003c")
        name = "kb" + hashlib.sha256(text.encode()).hexdigest()[:12]
        return _VIEWS.read_text("utf-8").replace('"ID"', f'"{name}"').replace("DATA", text, 1)

    def _repr_html_(self) -> str:
        return fragment(self._body())

    def to_html(self, path: str | Path) -> Path:
        """Writes a page with a head view, a model view (Vig 2019, arXiv:1906.05714) and rollout.

        The page is self-contained; probabilities are rounded to 1/255.

        Args:
            path: the file to create or replace.

        Returns:
            The path.
        """
        return write_page(path, "Attention", f"<h1>Attention</h1>{self._body()}")

    def to_png(self, path: str | Path, layer: int | None = None, head: int | None = None) -> Path:
        """Writes heat maps.

        Args:
            path: the file to create or replace.
            layer: index of a layer; None for the mean over layers.
            head: index of a head; None for the mean over heads.

        Returns:
            The path.

        Raises:
            ImportError: if matplotlib, from the extra "plots", is not installed.
            ValueError: if there is no such layer or head.
        """
        for name, value, count in zip(
            ("layer", "head"), (layer, head), self.maps.shape[:2], strict=True
        ):
            if value is not None and not -count <= value < count:
                raise ValueError(f"{name}={value}: expected 0 to {count - 1}")
        part = self.maps[slice(None) if layer is None else [layer]]
        part = part[:, slice(None) if head is None else [head]].mean(axis=(0, 1))
        size = 2 + 0.22 * len(self.tokens)
        made = figure(size, size)
        axes = made.subplots()
        axes.imshow(part, cmap="Blues", vmin=0)
        tokens = [drawn(token) for token in self.tokens]
        axes.set_xticks(range(len(tokens)), tokens, rotation=90)
        axes.set_yticks(range(len(tokens)), tokens)
        axes.set(xlabel="to", ylabel="from")
        return write_png(path, made)


def attention(task, text: str | tuple[str, str]) -> AttentionMaps:
    """Computes the attention maps of one or two texts.

    Texts are read as [CLS] first [SEP] second [SEP], truncated at `sequence_length`. For a masked
    language model the literal [MASK] in a single text is the special token.

    Args:
        task: a task with a preprocessor.
        text: a text, or a tuple of two.

    Returns:
        The `AttentionMaps`.

    Raises:
        TypeError: if a text is not a string.
        ValueError: if the task has no preprocessor.

    Example:

    >>> attention(classifier, ("The ice broke.", "It was warm.")).to_html("attention.html")
    """
    reading = read_pair(task, text)
    _, maps = run_layers(task, reading)
    return AttentionMaps(reading.texts, reading.tokens, reading.sides, reading.spans, maps)


def _encoded(values: np.ndarray) -> str:
    """Numbers from 0 to 1 as bytes, in base64."""
    return base64.b64encode(np.rint(values * 255).astype("uint8").tobytes()).decode()
