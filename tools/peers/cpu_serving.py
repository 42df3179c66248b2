"""Strings in, answers out on one core: exports of keras_bert beside ONNX Runtime by itself.

The peer is what one would build without an export: the model that `to_onnx` writes, in float32 and
after `quantize_dynamic`, the Rust tokenizer in front of it, rows padded to the longest of their
batch. All run in one process, in turn, so that other work on the machine disturbs all alike; the
processor time of a call is what differs least from run to run.

Run: taskset -c 0 python tools/peers/cpu_serving.py EXPORT ... --onnx model.onnx --texts prose.txt
     with EXPORT from `task.export(...)`, and model.onnx from `to_onnx` of the same task
"""

import argparse
import gzip
import json
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("exports", nargs="+", help="folders that `export` wrote, of either format")
    parser.add_argument("--onnx", help="a model from `to_onnx`; by default no peer runs")
    parser.add_argument("--vocabulary", help="of the peer's tokenizer: a vocab.txt, lower-casing")
    parser.add_argument("--texts", required=True, help="prose, plain or gzipped")
    parser.add_argument("--words", type=int, default=16, help="of a single text")
    parser.add_argument("--singles", type=int, default=100, help="single texts of a round")
    parser.add_argument("--batches", type=int, default=20, help="batches of 32 of a round")
    parser.add_argument("--rounds", type=int, default=4)
    args = parser.parse_args()
    if args.onnx and not args.vocabulary:
        parser.error("--onnx needs --vocabulary")
    return args


if __name__ == "__main__":
    parse()  # wrong flags and --help end here, before the imports that take seconds

import numpy as np

COLUMNS = {"token_ids": "ids", "segment_ids": "type_ids", "padding_mask": "attention_mask"}


def draw(args) -> tuple[list[str], list[list[str]]]:
    """Single texts, and batches of 32 texts of 4 to 40 words."""
    opened = gzip.open if args.texts.endswith(".gz") else open
    with opened(args.texts, "rt", encoding="utf-8") as file:
        words = file.read().split()
    rng = np.random.default_rng(0)
    sizes = [args.words] * args.singles + rng.integers(4, 41, 32 * args.batches).tolist()
    ends = np.cumsum(sizes)
    if ends[-1] > len(words):
        sys.exit(f"{args.texts} has {len(words):,} words; expected {ends[-1]:,} or more")
    texts = [" ".join(words[end - size : end]) for end, size in zip(ends, sizes, strict=True)]
    mixed = texts[args.singles :]
    return texts[: args.singles], [mixed[i : i + 32] for i in range(0, len(mixed), 32)]


def peer(model: str, vocabulary: str):
    import onnxruntime
    import tokenizers

    tokenizer = tokenizers.BertWordPieceTokenizer(vocabulary, lowercase=True)
    tokenizer.enable_truncation(128)
    tokenizer.enable_padding()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]

    def run(batch):
        found = tokenizer.encode_batch(batch)
        inputs = {n: np.array([getattr(f, COLUMNS[n]) for f in found], "int32") for n in names}
        return session.run(None, inputs)

    return run


def export(folder: str):
    from keras_bert.serving.bulk_model import ExportedModel

    model = ExportedModel(folder, "serving_default")
    model.load()
    (name,) = model.inputs
    return lambda batch: model({name: batch})


def main() -> None:
    args = parse()
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    singles, batches = draw(args)
    runs = {folder: export(folder) for folder in args.exports}
    with tempfile.TemporaryDirectory() as scratch:
        if args.onnx:
            from onnxruntime.quantization import QuantType, quantize_dynamic

            int8 = f"{scratch}/int8.onnx"
            quantize_dynamic(args.onnx, int8, weight_type=QuantType.QInt8)
            runs |= {
                "ONNX Runtime float32": peer(args.onnx, args.vocabulary),
                "ONNX Runtime int8": peer(int8, args.vocabulary),
            }
    found: dict[str, dict[str, list]] = {
        name: {"wall": [], "cpu": [], "rows": [], "row_cpu": []} for name in runs
    }
    for number in range(-1, args.rounds):  # the first round warms up
        for name, run in runs.items():
            times = found[name]
            for text in singles:
                wall, cpu = time.perf_counter(), time.process_time()
                run([text])
                times["cpu"].append(1e3 * (time.process_time() - cpu))
                times["wall"].append(1e3 * (time.perf_counter() - wall))
            wall, cpu, rows = time.perf_counter(), time.process_time(), 32 * len(batches)
            for batch in batches:
                run(batch)
            times["row_cpu"].append(1e3 * (time.process_time() - cpu) / rows)
            times["rows"].append(rows / (time.perf_counter() - wall))
        if number < 0:
            for times in found.values():
                for values in times.values():
                    values.clear()
    for name, times in found.items():
        p50, p99 = np.percentile(times["wall"], [50, 99])
        said = {
            "p50_ms": p50,
            "p99_ms": p99,
            "p50_cpu_ms": np.percentile(times["cpu"], 50),
            "rows_per_second": np.median(times["rows"]),
            "rows_per_second_range": [min(times["rows"]), max(times["rows"])],
            "cpu_ms_per_row": np.median(times["row_cpu"]),
        }
        print(json.dumps({"model": name} | {n: np.round(v, 2).tolist() for n, v in said.items()}))


if __name__ == "__main__":
    main()
