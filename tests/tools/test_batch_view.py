from html.parser import HTMLParser

import numpy as np
import pytest

from keras_bert.text.tokenizer import BertTokenizer
from tools.batch_view import LEGEND, Piece, read_rows, rows_to_html

VOCABULARY = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat it slept ##s <b> & \x1b[2J ש".split(" ")
NAMES = ("next", "random")


@pytest.fixture(scope="module")
def tokenizer():
    return BertTokenizer(VOCABULARY)


def batch(token_ids, segment_ids=None, masks=(), slots=3, **more):
    """One row; `masks` are (position, id that was there)."""
    token_ids = np.array([token_ids], "int32")
    segment_ids = np.zeros_like(token_ids) if segment_ids is None else [segment_ids]
    positions, ids = np.zeros([1, slots], "int32"), np.zeros([1, slots], "int32")
    for slot, mask in enumerate(masks):
        positions[0, slot], ids[0, slot] = mask
    return {
        "token_ids": token_ids,
        "segment_ids": np.array(segment_ids, "int32"),
        "padding_mask": (token_ids != 0).astype("int32"),
        "mask_positions": positions,
        "mask_ids": ids,
        "mask_weights": (np.arange(slots) < len(masks))[None].astype("float32"),
    } | {name: np.array([value], "int32") for name, value in more.items()}


def shown(row):
    return {
        segment.name: "".join((" ", "")[p.joined] + p.text for p in segment.pieces).strip()
        for segment in row.segments
    }


def test_a_pair_with_all_kinds_of_masks(tokenizer):
    ids = [2, 5, 4, 10, 9, 3, 8, 9, 10, 3, 0, 0]
    segments = [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0]
    masks = [(2, 6), (4, 7), (8, 10)]  # cat -> [MASK], sat -> slept, ##s kept
    (row,) = read_rows(batch(ids, segments, masks, next_sentence_labels=1), tokenizer)
    assert shown(row) == {
        "A": "[CLS] the [cat]s {slept|sat} [SEP]",
        "B": "it slept(##s) [SEP]",
    }
    kinds = [piece.kind for segment in row.segments for piece in segment.pieces]
    assert kinds[:6] == ["special", "plain", "mask", "plain", "random", "special"]
    assert kinds[6:] == ["plain", "plain", "same", "special"]
    assert row.segments[0].pieces[2] == Piece("mask", "[MASK]", "cat")
    assert row.title(NAMES) == "1: random, 10 tokens, 3 to predict"


def test_batches_without_masks_and_labels(tokenizer):
    given = batch([2, 5, 6, 1, 3, 0])
    given = {name: given[name] for name in ("token_ids", "segment_ids", "padding_mask")}
    (row,) = read_rows(given, tokenizer)
    assert shown(row) == {"A": "[CLS] the cat [UNK] [SEP]"}
    assert row.title(NAMES) == "5 tokens, 0 to predict"


def test_a_suffix_that_comes_first_is_shown_as_one(tokenizer):
    (row,) = read_rows(batch([2, 10, 10, 3, 10, 3], [0, 0, 0, 0, 1, 1]), tokenizer)
    assert shown(row) == {"A": "[CLS] ##ss [SEP]", "B": "##s [SEP]"}


def test_texts_that_share_a_row_are_apart(tokenizer):
    ids, texts = [2, 5, 3, 2, 6, 3, 8, 3], [1, 1, 1, 2, 2, 2, 2, 2]
    given = batch(ids, [0, 0, 0, 0, 0, 0, 1, 1], sequence_ids=texts)
    (row,) = read_rows(given, tokenizer)
    assert shown(row) == {
        "1A": "[CLS] the [SEP]",
        "2A": "[CLS] cat [SEP]",
        "2B": "it [SEP]",
    }


def test_a_page_escapes_what_comes_from_the_text(tokenizer):
    ids, masks = [2, 11, 12, 11, 14, 3], [(2, 12), (3, 12), (4, 5)]
    rows = read_rows(batch(ids, masks=masks, next_sentence_labels=0), tokenizer)
    page = rows_to_html(rows, "rows of <folder>", ("<next>", "random"))

    class Reader(HTMLParser):
        opened, found = [], []

        def handle_starttag(self, tag, attributes):
            self.opened.append(tag)
            assert not {name for name, _ in attributes} & {"src", "href"}  # self-contained

        def handle_data(self, data):
            self.found.append(data)

    reader = Reader()
    reader.feed(page)
    reader.close()
    text = " ".join("".join(reader.found).split())
    assert "[CLS] <b> (&) {<b>|&} {ש|the} [SEP]" in text
    assert text.count("rows of <folder>") == 2 and "0. 0: <next>, 6 tokens" in text
    assert all(meaning in text for meaning in LEGEND.values())
    assert reader.opened.count("b") == 1  # the name of the segment
    known = "html meta title style h1 h2 p b span bdi"
    assert set(reader.opened) == set(known.split())


def test_tokens_can_not_steer_a_terminal(tokenizer):
    (row,) = read_rows(batch([2, 13, 3]), tokenizer)
    assert row.segments[0].pieces[1].text == r"\x1b[2J"


def test_errors_say_what_is_wrong(tokenizer):
    with pytest.raises(ValueError, match="id=15: expected 0 to 14"):
        read_rows(batch([2, 15, 3]), tokenizer)
    given = batch([2, 5, 3])
    del given["mask_weights"]
    with pytest.raises(ValueError, match="missing.*mask_weights"):
        read_rows(given, tokenizer)
