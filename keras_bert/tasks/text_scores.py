"""Log-likelihoods of texts, token by token.

A model that reads in both directions gives pseudo-log-likelihoods (Salazar et al. 2020, "Masked
Language Model Scoring", equation 1): each token is replaced by [MASK] in turn, and scored given all
others. A causal model gives log-likelihoods: each token is scored given those before it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax

from keras_bert.text.tokenizer import BertTokenizer


@dataclass(frozen=True)
class TextScore:
    """The log-likelihood of a text by its tokens.

    Args:
        tokens: its N tokens as the vocabulary spells them, without [CLS] and [SEP].
        log_probs: float32 [N], the natural logarithm of each token's probability.
    """

    tokens: list[str]
    log_probs: np.ndarray

    @property
    def total(self) -> float:
        """The sum of `log_probs`, 0 for a text without tokens."""
        return float(np.sum(self.log_probs, dtype="float64"))


class _Row(NamedTuple):
    """A row of the network, which scores some tokens of a text."""

    ids: list[int]  # with [CLS] and [SEP]
    columns: list[int]  # of the outputs that score tokens
    text: int
    tokens: list[int]  # their indices in the text


def score_rows(
    texts: Sequence[list[int]], tokenizer: BertTokenizer, sequence_length: int, causal: bool
) -> list[_Row]:
    """Rows that together score each token of the texts, ids without special tokens, once.

    A text that is too long for a row is scored in windows. For a masked token the window is centred
    on it. A causal model gets windows that overlap by half, so that each token has at least that
    many before it.
    """
    room = sequence_length - 2
    cls, sep = [tokenizer.cls_token_id], [tokenizer.sep_token_id]
    rows = []
    for text, ids in enumerate(texts):
        if causal:
            for start, begin, end in _overlapping(len(ids), room):
                scored = list(range(begin, end))
                row = cls + ids[start:end] + sep
                rows.append(_Row(row, [i - start for i in scored], text, scored))
            continue
        for place in range(len(ids)):
            start = min(max(place - room // 2, 0), max(len(ids) - room, 0))
            row = cls + ids[start : start + room] + sep
            column = place - start + 1
            row[column] = tokenizer.mask_token_id
            rows.append(_Row(row, [column], text, [place]))
    return rows


def _overlapping(length: int, room: int) -> Iterator[tuple[int, int, int]]:
    """Windows over `length` tokens: (its first token, the first that it scores, its end)."""
    done, start = 0, 0
    while done < length:
        end = min(start + room, length)
        yield start, done, end
        done, start = end, max(end - room // 2, start + 1)


def row_chunks(rows: list[_Row], numbers: int, pad_id: int) -> Iterator[tuple[list[_Row], dict]]:
    """Inputs of a `BertMaskedLM` by name, int32, and their rows, a chunk of similar ones at a time.

    A chunk has at most `numbers` outputs [rows, P], which bounds the memory for logits. P is a
    power of two, since XLA compiles once per shape.
    """
    by_slots: dict[int, list[_Row]] = {}
    for row in sorted(rows, key=lambda row: len(row.ids)):
        by_slots.setdefault(1 << (len(row.columns) - 1).bit_length(), []).append(row)
    for slots, group in by_slots.items():
        count = max(1, numbers // slots)
        for part in (group[i : i + count] for i in range(0, len(group), count)):
            length = len(part[-1].ids)
            ids = np.full((len(part), length), pad_id, "int32")
            mask = np.zeros_like(ids)
            positions = np.zeros((len(part), slots), "int32")
            for i, row in enumerate(part):
                ids[i, : len(row.ids)] = row.ids
                mask[i, : len(row.ids)] = 1
                positions[i, : len(row.columns)] = row.columns
            inputs = {"token_ids": ids, "segment_ids": np.zeros_like(ids), "padding_mask": mask}
            yield part, inputs | {"mask_positions": positions}


def fill_scores(found: list[np.ndarray], texts: Sequence[list[int]], part: list[_Row], logits):
    """Fills float32 [N] of each text with the scores of some rows, by logits [rows, P, V]."""
    for row, of_row in zip(part, logits, strict=True):
        for slot, token in enumerate(row.tokens):
            values = log_softmax(of_row[slot].astype("float64"))
            found[row.text][token] = values[texts[row.text][token]]
