"""Attention maps of one or two texts: arrays, views to look around in, and rollout."""

import base64
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from keras_bert.explain.pages import VIEWS, Drawn, drawn, figure, run_in, shown
from keras_bert.explain.reading import TokensRead, read_any, run_layers


@dataclass(frozen=True, eq=False)
class AttentionMaps(TokensRead, Drawn):
    """Attention of L layers and N heads between T tokens.

    Attributes:
        texts, tokens, sides, spans: as `Attribution`.
        maps: float32 [L, N, T, T]; `maps[l, n, i, j]` is the probability with which token i
            attends to token j. Rows sum to 1.
    """

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

    def by_word(self) -> "AttentionMaps":
        """The same between words, of which pieces like "##ing" are parts.

        Attention to a word is the sum over its pieces, attention from it the mean (Clark et al.
        2019, arXiv:1906.04341, section 4.1), so that rows still sum to 1.

        Returns:
            The maps, whose `tokens` are words as in the texts, and special tokens.
        """
        groups = self._groups()
        first, last = (np.array([group[place] for group in groups]) for place in (0, -1))
        sides = self.sides[first]
        spans = np.stack([self.spans[first, 0], self.spans[last, 1]], axis=1)
        words = [
            self.texts[side][begin:end] if side >= 0 else self.tokens[number]
            for side, (begin, end), number in zip(
                sides.tolist(), spans.tolist(), first.tolist(), strict=True
            )
        ]
        counts = (last - first + 1)[:, None].astype("float32")
        maps = np.add.reduceat(np.add.reduceat(self.maps, first, axis=3), first, axis=2) / counts
        return AttentionMaps(self.texts, tuple(words), sides, spans, maps)

    def view_data(self) -> dict[str, Any]:
        """What the views draw, for JSON; probabilities are rounded to 1/255.

        Returns:
            "tokens", "sides", "layers" and "heads"; "maps", uint8 [L, N, T, T] in base64, 255 for
            1; "rollout", the same of [T, T], 255 for the number "rollout_most".
        """
        flow = self.rollout()
        most = max(float(flow.max()), 1e-12)
        return {
            "tokens": [shown(token) for token in self.tokens],
            "sides": self.sides.tolist(),
            "layers": self.maps.shape[0],
            "heads": self.maps.shape[1],
            "maps": _encoded(self.maps),
            "rollout": _encoded(flow / most),
            "rollout_most": most,
        }

    def page(self) -> tuple[str, str]:
        """As `Shown.page`: maps of all heads, lines (Vig 2019, arXiv:1906.05714) and rollout."""
        # "<" would end the script in a token such as "</script>".
        data = json.dumps(self.view_data()).replace("<", "\\u003c")
        style = (VIEWS / "attention.css").read_text("utf-8")
        # A notebook runs no modules.
        script = (VIEWS / "attention.js").read_text("utf-8").replace("export function", "function")
        script += f"const data = {data};\nattentionView(box, data);"
        return "Attention", run_in(f"<style>{style}</style>", script)

    def picture(self, layer: int | None = None, head: int | None = None):
        """A heat map.

        Args:
            layer: index of a layer; None for the mean over layers.
            head: index of a head; None for the mean over heads.

        Returns:
            A matplotlib figure.

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
        return made


def attention(task, text) -> AttentionMaps:
    """Computes the attention maps of one or two texts.

    Texts are read as [CLS] first [SEP] second [SEP], truncated at `sequence_length`. For a masked
    language model the literal [MASK] in a single text is the special token.

    Args:
        task: a task with a preprocessor.
        text: a text, or a tuple of two. Of a question and its context, the window that holds the
            answer is read. For relations also a tuple (text, spans), for multiple choice (context,
            choices), of which the best choice is read.

    Returns:
        The `AttentionMaps`.

    Raises:
        TypeError: if a text is not a string.
        ValueError: if the task has no preprocessor, or the example is wrong.

    Example:

    >>> attention(classifier, ("The ice broke.", "It was warm.")).to_html("attention.html")
    """
    reading = read_any(task, text)
    _, maps = run_layers(task, reading)
    return AttentionMaps(reading.texts, reading.tokens, reading.sides, reading.spans, maps)


def _encoded(values: np.ndarray) -> str:
    """Numbers from 0 to 1 as bytes, in base64."""
    return base64.b64encode(np.rint(values * 255).astype("uint8").tobytes()).decode()
