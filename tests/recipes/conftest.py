"""A prepared corpus for the recipes that pre-train."""

import numpy as np
import pytest

import keras_bert

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat on a mat dog ran home and slept . it was late"


@pytest.fixture(scope="package")
def corpus(tmp_path_factory):
    """24 documents of 6 sentences each, as records."""
    folder = tmp_path_factory.mktemp("corpus")
    rng = np.random.default_rng(0)
    words = WORDS.split()[5:]
    documents = (
        "\n".join(" ".join(rng.choice(words, rng.integers(3, 9))) for _ in range(6))
        for _ in range(24)
    )
    text = folder / "text.txt"
    text.write_text("\n\n".join(documents) + "\n")
    tokenizer = keras_bert.BertTokenizer(WORDS.split(), lowercase=True)
    pytest.importorskip("apache_beam")
    keras_bert.data.prepare_corpus([str(text)], str(folder / "records"), tokenizer, shards=2)
    return str(folder / "records")
