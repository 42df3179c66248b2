"""Batches made readable: the tokens of each row, and what was masked in it and how."""

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keras_bert.data.contract import check_batch
from keras_bert.text.tokenizer import BertTokenizer
from tools.batch_statistics import LABELS, MASK_KEYS, unmasked

# What may have become of a token; those from "mask" on are to be predicted.
KINDS = ("plain", "special", "mask", "random", "same")


@dataclass(frozen=True)
class Piece:
    """A token of a row.

    Attributes:
        kind: one of `KINDS`.
        token: what the model reads.
        original: what was there before masking; otherwise the same.
        joined: whether it goes on with the word before it.
    """

    kind: str
    token: str
    original: str
    joined: bool = False

    @property
    def text(self) -> str:
        """As it is shown where colours are not enough, what was there behind a bar."""
        if self.kind == "mask":
            return f"[{self.original}]"
        if self.kind == "random":
            return f"{{{self.token}|{self.original}}}"
        if self.kind == "same":
            return f"({self.original})"
        return self.token.removeprefix("##") if self.joined else self.token


LEGEND = {
    "mask": "[was there] now [MASK]",
    "random": "{now a random token|was there}",
    "same": "(was there, and is)",
}


@dataclass(frozen=True)
class Segment:
    """Neighbouring tokens of one segment of one text.

    Attributes:
        name: "A" for the first segment, "B" for the second; texts that share a row are numbered.
        pieces: its tokens.
    """

    name: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Row:
    """A row of a batch.

    Attributes:
        segments: its tokens without padding.
        length: number of them.
        masked: number of those that are to be predicted.
        label: its next sentence label, or None.
    """

    segments: tuple[Segment, ...]
    length: int
    masked: int
    label: int | None

    def title(self, label_names: Sequence[str]) -> str:
        """A line about the row; `label_names` say what the labels 0 and 1 mean."""
        parts = [f"{self.length} tokens", f"{self.masked} to predict"]
        if self.label is not None:
            parts.insert(0, f"{self.label}: {label_names[self.label]}")
        return ", ".join(parts)


def read_rows(batch: Mapping[str, Any], tokenizer: BertTokenizer) -> list[Row]:
    """Turns a batch into readable rows.

    Args:
        batch: arrays or tensors by the batch contract, with or without masks and labels.
        tokenizer: of the ids.

    Returns:
        Its rows, in order.

    Raises:
        TypeError, ValueError: it breaks the contract, or an id is not of the vocabulary.
    """
    batch = {name: np.asarray(value) for name, value in batch.items()}
    masked = any(name in batch for name in MASK_KEYS)
    check_batch(batch, require=MASK_KEYS if masked else ())
    originals = unmasked(batch)
    predicted = np.zeros(originals.shape, bool)
    if masked:
        rows, slots = np.nonzero(batch["mask_weights"])
        predicted[rows, batch["mask_positions"][rows, slots]] = True
    specials = set(tokenizer.special_token_ids) - {tokenizer.unk_token_id}

    def piece(token: int, original: int, predict: bool, before: list[Piece]) -> Piece:
        if not predict:
            kind = "special" if token in specials else "plain"
        elif token == tokenizer.mask_token_id:
            kind = "mask"
        else:
            kind = "same" if token == original else "random"
        now, was = (_printable(tokenizer.id_to_token(i)) for i in (token, original))
        # Where a pair was cut in front, a `##` piece comes first.
        joined = was.startswith("##") and bool(before) and before[-1].kind != "special"
        return Piece(kind, now, was, joined)

    found = []
    texts = batch.get("sequence_ids", np.zeros_like(originals))
    for row in range(len(originals)):
        places = np.nonzero(batch["padding_mask"][row])[0]
        segments: dict[tuple[int, int], list[Piece]] = {}
        for place in places:
            key = int(texts[row, place]), int(batch["segment_ids"][row, place])
            ids = (int(ids[row, place]) for ids in (batch["token_ids"], originals))
            pieces = segments.setdefault(key, [])
            pieces.append(piece(*ids, predicted[row, place], pieces))
        several = len({text for text, _ in segments}) > 1
        named = [
            Segment(f"{text if several else ''}{'AB'[min(segment, 1)]}", tuple(pieces))
            for (text, segment), pieces in segments.items()
        ]
        label = int(batch[LABELS][row]) if LABELS in batch else None
        found.append(Row(tuple(named), len(places), int(predicted[row].sum()), label))
    return found


def rows_to_html(rows: Iterable[Row], title: str, label_names: Sequence[str]) -> str:
    """Makes a page of HTML that needs no other file.

    Args:
        rows: to show.
        title: of the page.
        label_names: what the labels 0 and 1 mean.

    Returns:
        The page. Whatever comes from the text is escaped.
    """
    legend = " ".join(
        f'<span class="{kind}">{html.escape(name)}</span>' for kind, name in LEGEND.items()
    )
    parts = [
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_STYLE}</style>\n"
        f"<h1>{html.escape(title)}</h1>\n<p>{legend}</p>"
    ]
    for number, row in enumerate(rows):
        parts.append(f"<h2>{number}. {html.escape(row.title(label_names))}</h2>")
        for segment in row.segments:
            pieces = "".join(map(_piece_to_html, segment.pieces))
            parts.append(f'<p dir="auto"><b>{segment.name}</b>{pieces}</p>')
    return "\n".join(parts) + "\n</html>\n"


def _piece_to_html(piece: Piece) -> str:
    space, text = "" if piece.joined else " ", html.escape(piece.text)
    if piece.kind == "plain":
        return space + text
    if piece.kind == "random":  # one may be written from the right, the other from the left
        now, was = html.escape(piece.token), html.escape(piece.original)
        text = f"{{<bdi>{now}</bdi>|<bdi>{was}</bdi>}}"
    return f'{space}<span class="{piece.kind}">{text}</span>'


def _printable(token: str) -> str:
    """A token without characters that could steer a terminal."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in token)


_STYLE = """
body { font: 16px/1.6 sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color: #222; }
h1 { font-size: 1.3em; }
h2 { font-size: 1em; margin: 1.5em 0 0; color: #555; border-top: 1px solid #ccc; }
p { margin: 0.3em 0; overflow-wrap: anywhere; }
b { color: #06c; }
.special { color: #999; }
.mask, .random, .same { border-radius: 3px; padding: 0 2px; }
.mask { background: #ffe08a; }
.random { background: #f9b4ab; }
.same { background: #b5e6b5; }
"""
