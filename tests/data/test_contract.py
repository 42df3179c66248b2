import re

import numpy as np
import pytest

from keras_bert.data import contract
from keras_bert.data.contract import KEYS, check_batch

SIZES = {"B": 3, "T": 7, "P": 5}


def batch(**changes):
    """A batch of zeros with every key."""
    zeros = {
        name: np.zeros([SIZES[axis] for axis in key.axes], key.dtype) for name, key in KEYS.items()
    }
    return zeros | changes


def example():
    """The batch written out in the module's docstring."""
    rows = re.findall(r"^    (\w+) +(\[[-\[\]\d., ]+\])$", contract.__doc__, re.MULTILINE)
    return {name: np.array(eval(value), KEYS[name].dtype) for name, value in rows}


def test_the_worked_example_keeps_the_contract():
    given = example()
    assert set(KEYS) - set(given) == {"position_ids", "sequence_ids"}
    check_batch(given, require=["mask_positions", "mask_ids", "mask_weights"])
    words = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat it slept".split()
    line = re.search(r"^    tokens +(.*)$", contract.__doc__, re.MULTILINE)[1]
    assert [words[i] for i in given["token_ids"][0]] == line.split()
    np.testing.assert_array_equal(given["padding_mask"] == 0, given["token_ids"] == 0)
    (slots,) = np.nonzero(given["mask_weights"][0])
    np.testing.assert_array_equal(given["token_ids"][0, given["mask_positions"][0, slots]], 4)
    assert [words[i] for i in given["mask_ids"][0, slots]] == ["cat"]


def test_optional_keys_may_be_absent():
    full = batch()
    check_batch(full)
    check_batch({name: full[name] for name in contract.REQUIRED_INPUTS})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"token_ids": np.zeros((3, 7), "int64")}, "token_ids of dtype int64: expected int32"),
        ({"mask_weights": np.zeros((3, 5))}, "mask_weights of dtype float64: expected float32"),
        ({"mask_ids": np.zeros((3, 4), "int32")}, r"mask_ids of shape \(3, 4\): .* P = 5, as in"),
        ({"padding_mask": np.zeros((3, 5), "int32")}, "padding_mask .* T = 7, as in token_ids"),
        ({"next_sentence_labels": np.zeros((3, 1), "int32")}, r"\(3, 1\): expected \[B\]"),
        ({"input_ids": np.zeros((3, 7), "int32")}, r"unknown \['input_ids'\]; known are"),
        ({"mask_positions": np.full((3, 5), 7, "int32")}, "from 7 to 7: expected 0 to 6"),
        ({"mask_positions": np.full((3, 5), -1, "int32")}, "from -1 to -1: expected 0 to 6"),
    ],
)
def test_what_is_wrong_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        check_batch(batch(**changes))


def test_what_is_missing_is_named():
    given = batch()
    del given["segment_ids"], given["mask_ids"]
    with pytest.raises(ValueError, match=r"missing \['segment_ids', 'mask_ids'\]"):
        check_batch(given, require=["mask_ids"])
    with pytest.raises(TypeError, match="batch of type tuple: expected a dict of arrays"):
        check_batch((given,))
    with pytest.raises(TypeError, match="token_ids of type list"):
        check_batch(batch(token_ids=[[0]]))


def test_tensors_of_unknown_size_are_checked_as_far_as_known():
    import tensorflow as tf

    def checked(changes):
        specs = {
            name: tf.TensorSpec([None] * len(key.axes), key.dtype) for name, key in KEYS.items()
        }

        @tf.function(input_signature=[specs | changes])
        def graph(given):
            check_batch(given)
            return tf.constant(0)

        graph.get_concrete_function()

    checked({})
    checked({"mask_ids": tf.TensorSpec(None, tf.int32)})
    checked({"mask_ids": tf.TensorSpec([None, 5], tf.int32)})
    with pytest.raises(ValueError, match="mask_weights of dtype float16"):
        checked({"mask_weights": tf.TensorSpec([None, None], tf.float16)})
    with pytest.raises(ValueError, match=r"mask_ids of shape \(None,\): expected \[B, P\]"):
        checked({"mask_ids": tf.TensorSpec([None], tf.int32)})
    with pytest.raises(ValueError, match="mask_ids of shape .* P = 5, as in mask_positions"):
        checked(
            {
                "mask_positions": tf.TensorSpec([None, 5], tf.int32),
                "mask_ids": tf.TensorSpec([None, 4], tf.int32),
            }
        )


def test_every_key_says_what_it_is():
    assert all(key.meaning and set(key.axes) <= set("BTP") for key in KEYS.values())
