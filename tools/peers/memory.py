"""Measures the memory of a tagger's rows in transformers; `benchmark_calls.py` has those here.

Its fast tokenizer turns sentences of six words into ids, as its documentation does before training
a tagger: rows of their own lengths, which a collator pads by batch, or rows padded to `max_length`.
Prints one line of JSON: MB by kind of row, length and number of sentences.
Run: python tools/peers/memory.py --rows 5000 20000 40000
"""

import argparse
import gc
import json
import tempfile
from pathlib import Path

WORDS = "the cat sat on a mat and looked at another dog in old green houses by night".split()
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--rows", type=int, nargs="+", default=[5000, 20000, 40000])
    parser.add_argument("--lengths", type=int, nargs="+", default=[64, 128, 512])
    return parser.parse_args()


if __name__ == "__main__":
    parse()  # wrong flags and --help end here, before the imports that take seconds

import transformers


def held() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def main():
    args = parse()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "vocab.txt").write_text("\n".join(VOCABULARY))
        tokenizer = transformers.BertTokenizerFast(f"{folder}/vocab.txt")
    found = {}
    for kind, padding in (("own lengths", False), ("max_length", "max_length")):
        found[kind] = {}
        for length in args.lengths:
            found[kind][length] = {}
            for count in args.rows:
                sentences = [WORDS[:6]] * count
                gc.collect()
                before = held()
                rows = tokenizer(
                    sentences,
                    is_split_into_words=True,
                    truncation=True,
                    max_length=length,
                    padding=padding,
                )
                labels = [[0] * len(row) for row in rows["input_ids"]]
                found[kind][length][count] = round((held() - before) / 1e6)
                del rows, labels
    versions = {"transformers": transformers.__version__}
    print(json.dumps({"work": "memory", "found": found, "versions": versions}))


if __name__ == "__main__":
    main()
