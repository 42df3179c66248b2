"""The main job from end to end on a small built-in data set: fill in, train, predict, serve.

usage: python tools/demo.py [--output_dir runs/demo] [--epochs 3] [--rows 2000] [--seed 0]

The sentences come from a small grammar (keras_bert/data/demo_text.py): they praise or complain,
which word order decides ("not good", "good, but"). The BERT that ships with the package learns it.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

PRESET = "bert_mini_en_public_domain"
PROMPTS = ["she opened the [MASK] and walked out .", "the ship sailed across the [MASK] ."]
QUESTIONS = [
    "the soup was not good",
    "the plot was dull , but the ending was wonderful",
    "the battery is great , but the screen is awful",
]
# A process that knows nothing of keras_bert: what a server would do.
SERVER = """
import json, sys
import tensorflow as tf, tensorflow_text
answer = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
output = answer(text=tf.constant(json.loads(sys.argv[2])))
print(json.dumps({
    "labels": [label.decode() for label in output["label"].numpy()],
    "probabilities": output["probability"].numpy().tolist(),
}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--output_dir", default="runs/demo")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    start = time.time()

    print("[1/6] loading TensorFlow and Keras ...", flush=True)
    import keras

    import keras_bert
    from keras_bert.data import demo_text

    print(f"[2/6] {PRESET} fills in what is masked ...", flush=True)
    fills = keras_bert.BertMaskedLM.from_preset(PRESET).fill(PROMPTS, top_k=3)
    for (candidates,), prompt in zip(fills, PROMPTS, strict=True):
        words = ", ".join(f"{c.token} {c.score:.2f}" for c in candidates)
        print(f"  {prompt:45} {words}")

    train = demo_text.generate(args.rows, seed=args.seed)
    validation = demo_text.generate(500, seed=args.seed, split="validation")
    keras.utils.set_random_seed(args.seed)
    model = keras_bert.BertClassifier.from_preset(
        PRESET, labels=list(demo_text.LABEL_NAMES), sequence_length=64
    )
    model.compile(learning_rate=5e-4)

    print(f"[3/6] training on {args.rows} sentences ...", flush=True)
    history = model.fit(
        train.texts,
        train.labels,
        epochs=args.epochs,
        validation_data=(validation.texts, validation.labels),
        seed=args.seed,
    )
    print(f"validation accuracy: {history.history['val_accuracy'][-1]:.3f}")

    print("[4/6] predicting three sentences ...", flush=True)
    labels, probabilities = model.classify(QUESTIONS, verbose=0)
    for text, label, probability in zip(QUESTIONS, labels, probabilities, strict=True):
        print(f"  {label:8} {probability:.3f}  {text}")

    folder = Path(args.output_dir) / "saved_model"
    print(f"[5/6] exporting to {folder} ...", flush=True)
    model.save_to_preset(str(Path(args.output_dir) / "preset"))
    model.export(folder)
    print("  asking it from a fresh process ...", flush=True)
    command = [sys.executable, "-c", SERVER, str(folder.resolve()), json.dumps(QUESTIONS)]
    served = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    gap = max(abs(probabilities - served["probabilities"]))
    if served["labels"] != labels or gap > 1e-5:
        sys.exit(f"the served answers differ: {served}")
    print(f"served answers agree: labels equal, probabilities within {gap:.1e}")

    print("[6/6] serving it, and asking over HTTP ...", flush=True)
    found = ask_server(folder)
    if [answer["label"] for answer in found] != labels:
        sys.exit(f"the server's answers differ: {found}")
    print(f"  {QUESTIONS[0]!r} is answered with {json.dumps(found[0])}")
    print(f"done in {time.time() - start:.0f} s")
    print("To try it in a browser, run this and open http://127.0.0.1:8501:")
    command = os.path.relpath(Path(sys.executable).parent / "keras-bert")
    print(f"  {command} serve demo={folder}")


def ask_server(folder: Path) -> list[dict]:
    """Starts a server of an export, asks it once, and ends it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]  # free a moment ago, and so most likely now
    command = [sys.executable, "-m", "keras_bert_cli", "serve", f"demo={folder}"]
    server = subprocess.Popen([*command, "--port", str(port)], stderr=subprocess.PIPE, text=True)
    try:
        for line in server.stderr:
            if " serving " in line:
                break
        else:
            sys.exit("the server ended before it answered")
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/v1/models/demo:predict",
            json.dumps({"instances": QUESTIONS}).encode(),
        )
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)["predictions"]
    finally:
        server.terminate()
        server.wait(timeout=60)
        server.stderr.close()


if __name__ == "__main__":
    main()
