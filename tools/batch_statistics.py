"""What a stream of batches is made of: lengths, padding, masks and labels, counted."""

import importlib.util
import io
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert.atomic import write_file
from keras_bert.data.contract import check_batch
from keras_bert.text.tokenizer import BertTokenizer

logger = logging.getLogger("keras_bert")

PERCENTAGES = (1, 5, 10, 25, 50, 75, 90, 95, 99)
MASK_KEYS = ("mask_positions", "mask_ids", "mask_weights")
LABELS = "next_sentence_labels"


def unmasked(batch: Mapping[str, np.ndarray]) -> np.ndarray:
    """Puts back what was masked.

    Args:
        batch: NumPy arrays by the batch contract; without masks nothing was masked.

    Returns:
        The ids as they were before masking, [B, T].
    """
    token_ids = batch["token_ids"].copy()
    if "mask_positions" in batch:
        rows, slots = np.nonzero(batch["mask_weights"])
        token_ids[rows, batch["mask_positions"][rows, slots]] = batch["mask_ids"][rows, slots]
    return token_ids


class BatchStatistics:
    """Counts over batches by the contract, with or without segments, masks and labels.

    Args:
        tokenizer: says which ids are [CLS], [SEP] and [MASK].
    """

    def __init__(self, tokenizer: BertTokenizer):
        self._mask_id = tokenizer.mask_token_id
        self._specials = [tokenizer.cls_token_id, tokenizer.sep_token_id]
        self._rows: dict[str, list[np.ndarray]] = {}  # a number for each row
        self._masked_as = np.zeros(3, np.int64)
        self._places = self._slots = 0

    def add(self, batch: Mapping[str, Any]) -> None:
        """Counts a batch.

        Args:
            batch: arrays or tensors by the batch contract.

        Raises:
            TypeError, ValueError: it breaks the contract, or has not the keys of the batches
                before.
        """
        batch = {name: np.asarray(value) for name, value in batch.items()}
        masked = any(name in batch for name in MASK_KEYS)
        check_batch(batch, require=MASK_KEYS if masked else ())
        real = batch["padding_mask"] != 0
        words = real & ~np.isin(unmasked(batch), self._specials)
        rows = {
            "length_a": (words & (batch["segment_ids"] == 0)).sum(axis=1),
            "length_b": (words & (batch["segment_ids"] != 0)).sum(axis=1),
            "length_total": real.sum(axis=1),
        }
        if masked:
            weighed = batch["mask_weights"] != 0
            rows["masked_per_row"] = weighed.sum(axis=1)
        if LABELS in batch:
            rows[LABELS] = batch[LABELS]
        if self._rows and set(rows) != set(self._rows):
            raise ValueError(
                f"a batch has the keys {sorted(batch)}, others of the stream had more or fewer of "
                f"{[*MASK_KEYS, LABELS]}"
            )
        for name, values in rows.items():
            self._rows.setdefault(name, []).append(values)
        self._places += real.size
        if masked:
            now = np.take_along_axis(batch["token_ids"], batch["mask_positions"], 1)[weighed]
            same, mask = now == batch["mask_ids"][weighed], now == self._mask_id
            self._masked_as += [mask.sum(), (same & ~mask).sum(), (~same & ~mask).sum()]
            self._slots += weighed.size

    @property
    def sequence_length(self) -> int:
        """T, places in a row; of batches of several lengths the mean, rounded down."""
        return self._places // max(1, sum(map(len, self._rows.get("length_total", ()))))

    def lengths(self, name: str) -> np.ndarray:
        """The lengths of all rows, [rows]: `name` is "length_a", "length_b" or "length_total"."""
        return np.concatenate(self._rows[name])

    def report(self) -> dict[str, Any]:
        """Sums up.

        Returns:
            By name: `rows`, `sequence_length`, `padding_share` of all places; `length_a`,
            `length_b` and `length_total`, each with `mean` and `quantiles` by percentage, A and B
            in pieces without [CLS] and [SEP], the total with them and with `share_full`;
            `masked_per_row` alike, `masked_share` of all tokens, `free_slot_share`, `masked_as`
            with the shares `mask`, `same` and `other` (a random token that is another one); and
            `label_1_share`. What the batches do not have is left out.

        Raises:
            ValueError: there were no rows.
        """
        rows = {name: np.concatenate(values) for name, values in self._rows.items()}
        if not rows or not len(rows["length_total"]):
            raise ValueError("there is nothing to report: no batch had a row")
        count, total, length = len(rows["length_total"]), rows["length_total"], self.sequence_length
        report = {
            "rows": count,
            "sequence_length": length,
            "padding_share": 1 - float(total.sum()) / self._places,
            "length_a": _summary(rows["length_a"]),
        }
        if rows["length_b"].any():
            report["length_b"] = _summary(rows["length_b"])
        report["length_total"] = _summary(total) | {"share_full": float((total == length).mean())}
        if "masked_per_row" in rows:
            masked = int(rows["masked_per_row"].sum())
            report["masked_per_row"] = _summary(rows["masked_per_row"])
            report["masked_share"] = masked / max(1, int(total.sum()))
            report["free_slot_share"] = 1 - masked / max(1, self._slots)
            shares = (self._masked_as / max(1, masked)).tolist()
            report["masked_as"] = dict(zip(("mask", "same", "other"), shares, strict=True))
        if LABELS in rows:
            report["label_1_share"] = float(rows[LABELS].mean())
        return report


def draw_lengths(statistics: BatchStatistics, picture: str | Path) -> bool:
    """Draws how often each length comes, of the first and second segments and of whole rows.

    Args:
        statistics: with at least one row.
        picture: PNG to write.

    Returns:
        Whether it was drawn: not without the `matplotlib` package, which a warning says.
    """
    if importlib.util.find_spec("matplotlib") is None:
        logger.warning("no picture of the lengths: the matplotlib package is not installed")
        return False
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    length = statistics.sequence_length
    parts = {"length_a": "A", "length_b": "B", "length_total": "whole row, with special tokens"}
    edges = np.linspace(0, length, min(length, 64) + 1).round() + 0.5
    figure = Figure(figsize=(7, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for name, label in parts.items():
        values = statistics.lengths(name)
        if values.any():
            weights = np.full(len(values), 1 / len(values))
            axes.hist(values, edges, weights=weights, histtype="step", label=label, linewidth=1.5)
    axes.set_yscale("log")
    axes.set_xlim(0, length + 1)
    axes.set_xlabel("tokens")
    axes.set_ylabel("share of rows")
    axes.set_title(f"lengths in {len(statistics.lengths('length_total')):,} rows of {length}")
    axes.grid(alpha=0.3)
    axes.legend()
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=100)
    write_file(picture, content.getvalue())
    return True


def _summary(values: np.ndarray) -> dict[str, Any]:
    quantiles = np.percentile(values, PERCENTAGES).tolist()
    return {
        "mean": float(values.mean()),
        "quantiles": {str(p): q for p, q in zip(PERCENTAGES, quantiles, strict=True)},
    }
