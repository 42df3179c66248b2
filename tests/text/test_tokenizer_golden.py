"""Ids of real text against those of google-research/bert's own code: their count and hash.

The text and the hashes lie outside the repository, in a folder beside it or where the environment
variable KERAS_BERT_SHARED says; without them these tests are skipped, and those of
`test_tokenizer_reference.py` stand in.
"""

import gzip
import hashlib
import json
import os
from pathlib import Path

import pytest
import tensorflow as tf

from keras_bert.text.tokenizer import BertTokenizer

SHARED = Path(os.environ.get("KERAS_BERT_SHARED", Path(__file__).parents[2] / "../shared"))
GOLDEN = SHARED / "golden" / "tokenization_reference.json"
RUNS = json.loads(GOLDEN.read_text())["runs"] if GOLDEN.exists() else []


def run_name(run):
    vocabulary = Path(run["vocab"]).name.removesuffix("-vocab.txt")
    return f"{Path(run['file']).name.split('.')[0]}-{vocabulary}"


def digest(lines, tokenizer, batch_size=4096):
    """Counts ids and hashes them: int32 little-endian, -1 after each line."""
    count, sha256 = 0, hashlib.sha256()
    for start in range(0, len(lines), batch_size):
        ids = tokenizer(lines[start : start + batch_size])
        count += int(tf.size(ids.flat_values))
        ended = tf.concat([ids, tf.fill([ids.nrows(), 1], -1)], axis=1)
        sha256.update(ended.flat_values.numpy().astype("<i4").tobytes())
    return count, sha256.hexdigest()


def test_golden_data_is_at_hand():
    if not RUNS:
        pytest.skip(f"no golden ids at {GOLDEN}")
    assert len(RUNS) == 16


@pytest.mark.one_quick
@pytest.mark.parametrize("run", RUNS, ids=run_name)
def test_golden_ids(run):
    lines = gzip.decompress((SHARED / run["file"]).read_bytes()).removesuffix(b"\n").split(b"\n")
    assert len(lines) == run["lines"]
    tokenizer = BertTokenizer(SHARED / run["vocab"], lowercase=run["lowercase"])
    assert digest(lines, tokenizer) == (run["tokens"], run["sha256"])
