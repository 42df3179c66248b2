"""Measures what a call costs beside its arithmetic: seconds of `predict`, and memory of rows.

`--work calls`: milliseconds a call over numbers of texts, of keras_bert's classifier beside
KerasHub's of the same size. `--work memory`: by how much the process grows while a tagger takes
sentences of six words, over their number and `sequence_length`. Prints one line of JSON.
Run: python tools/benchmark_calls.py --work calls
"""

import argparse
import json
import statistics
import threading
import time
from pathlib import Path

SIZES = (2, 2, 128, 512)  # blocks, heads, units and feed-forward units: what is timed is not these
WORDS = "the cat sat on a mat and looked at another dog in old green houses by night".split()
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--work", choices=("calls", "memory"), required=True)
    parser.add_argument("--rows", type=int, nargs="+", help="numbers of texts or sentences")
    parser.add_argument("--lengths", type=int, nargs="+", default=[64, 128, 512], help="of memory")
    parser.add_argument("--repeats", type=int, default=7, help="of a call, after two")
    return parser.parse_args(argv)


if __name__ == "__main__":
    parse(None)  # wrong flags and --help end here, before TensorFlow is imported

import keras_bert
from keras_bert.serving.export_contract import versions


def classifiers() -> dict:
    """A function from texts to logits, ours and KerasHub's."""
    import keras_hub

    tokenizer = keras_bert.BertTokenizer(VOCABULARY)
    ours = keras_bert.BertClassifier(
        keras_bert.BertBackbone(len(VOCABULARY), *SIZES, 64),
        num_classes=2,
        preprocessor=keras_bert.BertClassifierPreprocessor(tokenizer, 64),
    )
    theirs = keras_hub.models.BertTextClassifier(
        keras_hub.models.BertBackbone(len(VOCABULARY), *SIZES, max_sequence_length=64),
        num_classes=2,
        preprocessor=keras_hub.models.BertTextClassifierPreprocessor(
            keras_hub.models.BertTokenizer(VOCABULARY, lowercase=True), 64
        ),
    )
    return {
        "keras_bert": lambda texts: ours.predict(texts, verbose=0),
        "keras_hub": lambda texts: theirs.predict(texts, verbose=0),
    }


def time_calls(rows: list[int], repeats: int) -> dict:
    """Median, least and greatest milliseconds of a call, by package and number of texts."""
    found = {}
    for name, predict in classifiers().items():
        found[name] = {}
        for count in rows:
            texts = [" ".join(WORDS[: 3 + i % 13]) for i in range(count)]
            times = []
            for _ in range(repeats + 2):
                begin = time.perf_counter()
                predict(texts)
                times.append(1e3 * (time.perf_counter() - begin))
            times = times[2:]
            parts = statistics.median(times), min(times), max(times)
            found[name][count] = [round(value, 1) for value in parts]
    return found


class Peak(threading.Thread):
    """The most memory that the process held while this ran, in MB beyond what it had."""

    def __enter__(self):
        self.start_bytes = self.most = self.held()
        self.done = threading.Event()
        self.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.join()
        self.megabytes = round((self.most - self.start_bytes) / 1e6)

    def run(self):
        while not self.done.wait(0.005):
            self.most = max(self.most, self.held())

    @staticmethod
    def held() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def grow(rows: list[int], lengths: list[int]) -> dict:
    """MB that one step of training takes, by `sequence_length` and number of sentences."""
    found = {}
    for length in lengths:
        text_side = keras_bert.BertTokenClassifierPreprocessor(
            keras_bert.BertTokenizer(VOCABULARY), length
        )
        backbone = keras_bert.BertBackbone(len(VOCABULARY), *SIZES, 512)
        model = keras_bert.BertTokenClassifier(backbone, labels=["O", "X"], preprocessor=text_side)
        model.fit([WORDS[:6]] * 64, [["O"] * 6] * 64, steps=1, verbose=0)  # is traced
        found[length] = {}
        for count in rows:
            sentences, tags = [WORDS[:6]] * count, [["O"] * 6] * count
            with Peak() as peak:
                model.fit(sentences, tags, steps=1, verbose=0)
            found[length][count] = peak.megabytes
    return found


def main(argv: list[str] | None = None) -> dict:
    args = parse(argv)
    if args.work == "calls":
        found = time_calls(args.rows or [1, 8, 32, 33, 64, 100, 200], args.repeats)
    else:
        found = grow(args.rows or [5000, 20000, 40000], args.lengths)
    result = {"work": args.work, "found": found, "versions": versions()}
    print(json.dumps(result))
    return result


if __name__ == "__main__":
    main()
