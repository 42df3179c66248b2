"""Texts with [MASK]s: where they are found, and what of a long text is read."""

from collections import namedtuple

import numpy as np
import pytest
import tensorflow as tf

from keras_bert import BertBackbone, BertMaskedLM, BertMaskedLMPreprocessor, BertTokenizer
from keras_bert.text.prompts import candidate_ids, mask_words, prompt_rows

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat ##s sat [ ] mask".split()
PAD, UNK, CLS, SEP, MASK = range(5)


Prompt = namedtuple("Prompt", "text masks places pieces")


def prompts_of(texts, tokenizer, length):
    """The rows of texts, each with its [MASK]s."""
    found = prompt_rows(tf.constant(texts, tf.string), tokenizer, length)
    rows, numbers, places = (v.numpy() for v in (found.row, found.number, found.place))
    return [
        Prompt(int(text), numbers[rows == row], places[rows == row], found.pieces[row].numpy())
        for row, text in enumerate(found.text)
    ]


def model_of(tokenizer):
    backbone = BertBackbone(len(WORDS), 1, 1, 4, 4, 64)
    return BertMaskedLM(backbone, BertMaskedLMPreprocessor(tokenizer, 8))


@pytest.fixture(scope="module")
def tokenizer():
    return BertTokenizer(WORDS)


def test_no_unknown_word_is_masked(tokenizer):
    texts = ["the \u4e2d cat", "\u4e2d dog", "cats sat", "the [MASK]"]
    kept, masked, right = mask_words(texts, tokenizer)
    assert (kept, masked) == ([0, 2], ["the \u4e2d [MASK]", "cats [MASK]"])
    assert right.tolist() == [WORDS.index("cat"), WORDS.index("sat")]


def test_targets_are_read_once_from_any_collection(tokenizer):
    words = ["sat", "the", "Cat"]
    for targets in (words, np.array(words), np.array(words, object), iter(words), {*words}):
        ids, top_k = candidate_ids(tokenizer, targets=targets)
        assert (ids.tolist(), top_k) == ([WORDS.index(w) for w in ("the", "cat", "sat")], 3)
    with pytest.raises(TypeError, match=r"targets\[1\]=5: expected a token, a string"):
        candidate_ids(tokenizer, targets=["the", 5])
    with pytest.raises(TypeError, match="targets='the': expected a list of tokens, not a string"):
        candidate_ids(tokenizer, targets="the")


@pytest.mark.one_quick
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
    (prompt,) = prompts_of([text], tokenizer, 64)
    wanted = np.asarray(BertTokenizer(WORDS, special_tokens_in_text=True)(text))
    np.testing.assert_array_equal(prompt.pieces, wanted)
    np.testing.assert_array_equal(prompt.places, np.flatnonzero(wanted == MASK))
    np.testing.assert_array_equal(prompt.masks, np.arange(text.count("[MASK]")))


def test_other_special_tokens_are_as_the_tokenizer_says(tokenizer):
    text = "the [SEP] [MASK]"
    (plain,) = prompts_of([text], tokenizer, 64)
    np.testing.assert_array_equal(plain.pieces, [*np.asarray(tokenizer("the [SEP]")), MASK])
    assert SEP not in plain.pieces
    (special,) = prompts_of([text], BertTokenizer(WORDS, special_tokens_in_text=True), 64)
    np.testing.assert_array_equal(special.pieces, [5, SEP, MASK])


def test_a_batch_is_by_the_contract(tokenizer):
    texts = tf.constant(["[MASK] cats [MASK] [MASK]", "the [MASK]"])
    model = BertMaskedLM(
        BertBackbone(len(WORDS), 1, 1, 4, 4, 64), BertMaskedLMPreprocessor(tokenizer, 64)
    )
    asked = model.signatures()["serving_default"]
    batch = {name: value.numpy() for name, value in asked.rows(texts).ids.items()}
    ids = np.zeros((2, 16), "int32")
    ids[0, :7] = CLS, MASK, 6, 7, MASK, MASK, SEP
    ids[1, :4] = CLS, 5, MASK, SEP
    np.testing.assert_array_equal(batch["token_ids"], ids)
    np.testing.assert_array_equal(batch["padding_mask"], ids != PAD)
    np.testing.assert_array_equal(batch["segment_ids"], 0 * ids)
    # Unused slots hold no other token, which would change the scale of int8 products.
    np.testing.assert_array_equal(batch["mask_positions"], [[1, 4, 5, 1], [2, 2, 2, 2]])
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
        prompts = prompts_of(["the [MASK]", " ".join(words)], tokenizer, length)
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
        model_of(tokenizer).fill(["[MASK]", "the cat"])
    with pytest.raises(ValueError, match=r"the vocabulary has no \[MASK\] among its 4 tokens"):
        model_of(BertTokenizer(WORDS[:4])).fill(["[MASK]"])
    assert model_of(tokenizer).fill([]) == []
