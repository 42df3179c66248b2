"""Whether tf.data service can relieve a trainer: its processor time per text, with and without.

    python tools/benchmark_service.py TEXTS.txt --vocabulary vocab.txt

Tokenizes texts and pads them into batches, in this process and in two worker processes of a tf.data
service, whose dispatcher is here. Prints the processor seconds of this process, in turns: with the
service, only those that receiving the batches takes. That is the bound: a trainer gains nothing if
receiving a batch costs it as much as making the batch.
"""

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import time


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("texts", help="one text per line")
    parser.add_argument("--vocabulary", required=True)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch_size", type=int, default=256)
    parser.add_argument("--compression", choices=["AUTO", "none"], default="AUTO")
    parser.add_argument("--sequence_length", type=int, default=128)
    return parser.parse_args()


if __name__ == "__main__":
    parse()  # wrong flags and --help end here, before the imports that take seconds

import tensorflow as tf

import keras_bert

WORKER = """
import sys
import tensorflow as tf
import tensorflow_text
config = tf.data.experimental.service.WorkerConfig(sys.argv[1])
worker = tf.data.experimental.service.WorkerServer(config)
print("ready", flush=True)
sys.stdin.read()
"""


def main() -> None:
    args = parse()
    with open(args.texts, encoding="utf-8") as file:
        texts = [line.strip() for line in itertools.islice(file, args.rows)]
    tokenizer = keras_bert.BertTokenizer(args.vocabulary)
    preprocessor = keras_bert.BertClassifierPreprocessor(tokenizer, args.sequence_length)
    service = tf.data.experimental.service
    dispatcher = service.DispatchServer()
    address = dispatcher.target.split("://")[1]
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    try:
        for worker in workers:
            worker.stdout.readline()
        data = tf.data.Dataset.from_tensor_slices(texts).batch(args.batch_size)
        here = data.map(preprocessor, num_parallel_calls=tf.data.AUTOTUNE).prefetch(2)
        there = data.map(preprocessor).apply(
            service.distribute(
                processing_mode=service.ShardingPolicy.DYNAMIC,
                service=dispatcher.target,
                compression=None if args.compression == "none" else args.compression,
            )
        )
        seconds = {"here": [], "service": []}
        for number in range(args.rounds + 1):
            for name, dataset in (("here", here), ("service", there)):
                begin = time.process_time()
                rows = sum(len(batch["token_ids"]) for batch in dataset)
                spent = time.process_time() - begin
                assert rows == len(texts), f"{name}: {rows} rows: expected {len(texts)}"
                if number:  # the first traces
                    seconds[name].append(spent)
    finally:
        for worker in workers:
            worker.stdin.close()
        for worker in workers:
            worker.wait()
    for name, spent in seconds.items():
        middle = statistics.median(spent)
        print(
            json.dumps(
                {
                    "tokenized": name,
                    "seconds": [round(s, 2) for s in sorted(spent)],
                    "microseconds per text": round(1e6 * middle / len(texts), 1),
                    "texts per processor second": round(len(texts) / middle),
                }
            )
        )


if __name__ == "__main__":
    main()
