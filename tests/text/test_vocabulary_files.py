"""A vocabulary that is accepted gives the same ids after it was written and read."""

import pytest

from keras_bert import BertTokenizer

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([*SPECIALS, " cat", "cat"], "token 5: expected .* spaces or tabs around it, got ' cat'"),
        ([*SPECIALS, "cat\t"], "token 5: expected .* spaces or tabs around it, got"),
        ([*SPECIALS, "cat\r"], "token 5: expected a string without a line end"),
        ([*SPECIALS, "c\nat"], "token 5: expected a string without a line end"),
        ([*SPECIALS, "c\0at"], "token 5: expected .* NUL"),
        ([*SPECIALS, "\ud800"], "token 5: expected .* unpaired surrogate"),
        (["\ufeff[PAD]", *SPECIALS], "token 0: expected .* byte order mark"),
        ([*SPECIALS, "cat", ""], "expected a token in the last place"),
        ([*SPECIALS, 5], "token 5: expected a string"),
    ],
)
def test_refused(tokens, message):
    with pytest.raises(ValueError, match=message):
        BertTokenizer(tokens)


@pytest.mark.one_quick
@pytest.mark.parametrize(
    "middle",
    [
        ["", "cat"],
        ["cat", "dog", "cat"],
        ["\u00a0cat", "cat\u00a0", "\u3000"],
        ["\rcat", "c\rat", "\u2028", "\x0b", "\x85"],
        ["\ufeff", "\ufeffcat", "c at", "c\tat"],
        ["#", "##", "##s"],
    ],
    ids=repr,
)
def test_the_same_ids_after_save_and_load(middle, tmp_path):
    tokenizer = BertTokenizer([*SPECIALS, *middle, "last"])
    tokenizer.save_assets(tmp_path)
    back = BertTokenizer(tmp_path / "vocab.txt")
    assert back.get_vocabulary() == tokenizer.get_vocabulary()
    lines = ["the cat", "dog \u00a0cat", "last cats c at ##s #"]
    assert back(lines).to_list() == tokenizer(lines).to_list()
