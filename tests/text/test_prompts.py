"""Texts with [MASK]s: where they are found, and what of a long text is read."""

import numpy as np
import pytest

from keras_bert import BertTokenizer
from keras_bert.text.prompts import pack_prompts, read_prompts

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat ##s sat [ ] mask".split()
PAD, UNK, CLS, SEP, MASK = range(5)


@pytest.fixture(scope="module")
def tokenizer():
    return BertTokenizer(WORDS)


@pytest.mark.parametrize(
    "text",
    [
        "[MASK]",
        "The [MASK] sat",
        "[MASK][MASK]cats[MASK]",
        "the[MASK]cat, [[MASK]] [mask] [MASK",
        "  [MASK]\n\u00e9 \u4e2d[MASK]\u4e2d \u200b[MASK] ",
    ],
)
def test_the_pieces_are_the_tokenizers(tokenizer, text):
    (prompt,) = read_prompts([text], tokenizer, 64)
    wanted = np.asarray(BertTokenizer(WORDS, special_tokens_in_text=True)(text))
    np.testing.assert_array_equal(prompt.pieces, wanted)
    np.testing.assert_array_equal(prompt.places, np.flatnonzero(wanted == MASK))
    np.testing.assert_array_equal(prompt.masks, np.arange(text.count("[MASK]")))


def test_other_special_tokens_are_as_the_tokenizer_says(tokenizer):
    text = "the [SEP] [MASK]"
    (plain,) = read_prompts([text], tokenizer, 64)
    np.testing.assert_array_equal(plain.pieces, [*np.asarray(tokenizer("the [SEP]")), MASK])
    assert SEP not in plain.pieces
    (special,) = read_prompts([text], BertTokenizer(WORDS, special_tokens_in_text=True), 64)
    np.testing.assert_array_equal(special.pieces, [5, SEP, MASK])


def test_a_batch_is_by_the_contract(tokenizer):
    texts = ["[MASK] cats [MASK] [MASK]", "the [MASK]"]
    prompts = read_prompts(texts, tokenizer, 64)
    batch = pack_prompts(prompts, tokenizer, 64)
    ids = np.zeros((2, 16), "int32")
    ids[0, :7] = CLS, MASK, 6, 7, MASK, MASK, SEP
    ids[1, :4] = CLS, 5, MASK, SEP
    np.testing.assert_array_equal(batch["token_ids"], ids)
    np.testing.assert_array_equal(batch["padding_mask"], ids != PAD)
    np.testing.assert_array_equal(batch["segment_ids"], 0 * ids)
    np.testing.assert_array_equal(batch["mask_positions"], [[1, 4, 5, 0], [2, 0, 0, 0]])
    assert all(value.dtype == np.int32 for value in batch.values())


@pytest.mark.parametrize("length", [4, 5, 8, 13])
def test_no_mask_of_a_long_text_is_lost(tokenizer, length):
    rng = np.random.default_rng(length)
    for pieces in (length - 2, length - 1, 30):
        masks = np.sort(rng.permutation(pieces)[: min(pieces, 6)])
        words = np.array(WORDS[5:])[rng.integers(0, 7, pieces)].astype(object)
        words[words == "##s"] = "the"
        words[masks] = "[MASK]"
        whole = np.array([WORDS.index(word) for word in words])
        prompts = read_prompts(["the [MASK]", " ".join(words)], tokenizer, length)
        assert [prompt.text for prompt in prompts] == [0] + [1] * (len(prompts) - 1)
        found = {}
        for prompt in prompts[1:]:
            assert len(prompt.pieces) == min(pieces, length - 2)
            for mask, place in zip(prompt.masks, prompt.places, strict=True):
                assert prompt.pieces[place] == MASK and int(mask) not in found
                start = masks[mask] - place
                window = whole[start : start + length - 2]
                np.testing.assert_array_equal(prompt.pieces, window)
                found[int(mask)] = (place, len(window) - 1 - place, start, pieces)
        assert sorted(found) == list(range(len(masks)))
        for before, after, start, size in found.values():
            # In the middle, but where the text ends.
            at_an_end = start == 0 or start + length - 2 == size
            assert at_an_end or before - after in (0, 1)
        if pieces <= length - 2:
            assert len(prompts) == 2


def test_what_cannot_be_filled_is_named(tokenizer):
    with pytest.raises(ValueError, match=r"texts\[1\] has no \[MASK\] to fill in: 'the cat'"):
        read_prompts(["[MASK]", "the cat"], tokenizer, 8)
    with pytest.raises(ValueError, match=r"the vocabulary has no \[MASK\] among its 4 tokens"):
        read_prompts(["[MASK]"], BertTokenizer(WORDS[:4]), 8)
    assert read_prompts([], tokenizer, 8) == []
