"""Times the steps of `fit` on any backend of Keras, of keras_bert's classifier or KerasHub's.

Full random rows of ids, AdamW at one rate. The time of a step is the difference between a long fit
and a short one by the difference of their steps, so that what every fit begins and ends with does
not count. Prints one line of JSON; peak memory where JAX knows it.
Run: KERAS_BACKEND=jax python tools/benchmark_fit.py --model keras_hub
"""

import argparse
import json
import sys
import time
from pathlib import Path


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    sizes = ("tiny", "mini", "small", "medium", "base", "large")
    parser.add_argument("--model", choices=("keras_bert", "keras_hub"), default="keras_bert")
    parser.add_argument("--size", choices=sizes, default="base")
    parser.add_argument("--sequence_length", type=int, default=128)
    parser.add_argument("--batch_size", type=int, default=256)
    parser.add_argument("--dtype", default="mixed_bfloat16")
    parser.add_argument("--few", type=int, default=30, help="steps of the short fit")
    parser.add_argument("--many", type=int, default=90, help="steps of the long one")
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args(argv)
    if not 0 < args.few < args.many:
        parser.error(f"--few {args.few} --many {args.many}: expected 0 < few < many")
    return args


if __name__ == "__main__":
    parse(None)  # wrong flags and --help end here, before the imports that take seconds

import keras
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from keras_bert import BertBackbone, BertClassifier, training  # noqa: E402
from keras_bert.config import SIZES  # noqa: E402

VOCABULARY, RATE = 30522, 2e-5


def ours(size: str, dtype: str):
    """keras_bert's classifier, compiled."""
    model = BertClassifier(BertBackbone.from_size(size, VOCABULARY, dtype=dtype), num_classes=2)
    model.compile(training.AdamW(RATE))
    return model


def keras_hubs(size: str, dtype: str):
    """KerasHub's classifier of the same size, compiled."""
    import keras_hub

    sizes = SIZES[size]
    keras.mixed_precision.set_global_policy(dtype)
    backbone = keras_hub.models.BertBackbone(
        VOCABULARY,
        sizes["num_layers"],
        sizes["num_heads"],
        sizes["hidden_dim"],
        sizes["intermediate_dim"],
    )
    task = keras_hub.models.BertTextClassifier(backbone, num_classes=2, preprocessor=None)
    model = keras.Model(task.input, task.output)  # Keras's own fit, without KerasHub's pipeline
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.AdamW(RATE), loss, jit_compile=True)
    return model


def main(argv: list[str] | None = None) -> dict:
    args = parse(argv)
    rng = np.random.default_rng(0)
    shape = (args.batch_size * args.many, args.sequence_length)
    x = {
        "token_ids": rng.integers(1, VOCABULARY, shape, "int32"),
        "segment_ids": np.zeros(shape, "int32"),
        "padding_mask": np.ones(shape, "int32"),
    }
    y = rng.integers(0, 2, len(x["token_ids"]))
    model = (ours if args.model == "keras_bert" else keras_hubs)(args.size, args.dtype)

    def seconds(steps: int) -> float:
        rows = steps * args.batch_size
        start = time.perf_counter()
        part = {name: value[:rows] for name, value in x.items()}
        history = model.fit(part, y[:rows], batch_size=args.batch_size, shuffle=False, verbose=0)
        result["last_loss"] = history.history["loss"][-1]
        return time.perf_counter() - start

    result = {"model": args.model, "backend": keras.config.backend()}
    result["first_fit_seconds"] = round(seconds(args.few), 1)
    seconds(args.few)
    steps = [
        (-seconds(args.few) + seconds(args.many)) / (args.many - args.few)
        for _ in range(args.rounds)
    ]
    result["ms_per_step"] = [round(1e3 * value, 2) for value in steps]
    result["rows_per_second"] = [round(args.batch_size / value, 1) for value in steps]
    if keras.config.backend() == "jax":
        import jax

        memory = jax.devices()[0].memory_stats() or {}
        result["peak_bytes"] = memory.get("peak_bytes_in_use")
    print(json.dumps(result))
    return result


if __name__ == "__main__":
    main()
