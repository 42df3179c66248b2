"""Trains a BiLSTM to find names on the features of a BERT that stays as it is.

Source: Devlin et al. 2019, section 5.3, Table 7: the last four layers concatenated, two layers of
768 units. The paper's model is cased and sees the whole document; here a row is one sentence.
--table7 trains on each of the paper's choices of layers. A weighted sum has learned weights.
Data: as recipes/ner.py. All features lie in memory: 4 bytes a number, for the four layers of a BERT
of 384 units 1.2 GB on CoNLL-2003's 204,000 words of training.
Run: python recipes/features.py --preset DIR --data_dir CONLL2003 --scheme iob1 --seed 0
"""

import argparse
import json
from pathlib import Path

from recipe_flags import add_tagged_flags


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--preset", required=True, help="folder, name or address of a BERT")
    add_tagged_flags(parser)
    parser.add_argument("--layers", type=int, nargs="+", default=[-4, -3, -2, -1])
    parser.add_argument(
        "--combine", choices=("concatenate", "sum", "mean", "weighted"), default="concatenate"
    )
    parser.add_argument("--table7", action="store_true", help="the paper's choices, one by one")
    parser.add_argument("--units", type=int, default=768)
    parser.add_argument("--num_layers", type=int, default=2)
    parser.add_argument("--output_dir", default="runs/features")
    parser.add_argument("--seed", type=int, nargs="+", default=[0], help="one run a seed")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--learning_rate", type=float, default=1e-3)
    parser.add_argument("--sequence_length", type=int, default=128)
    parser.add_argument("--dtype", default="float32", help='such as "mixed_bfloat16" on a GPU')
    parser.add_argument("--limit", type=int, help="train on the first so many sentences only")
    parser.add_argument("--resume", action="store_true", help="do not repeat what is done")
    return parser.parse_args(argv)


if __name__ == "__main__":
    parse(None)  # wrong flags and --help end here, before TensorFlow is imported

import keras
import numpy as np
import tensorflow as tf

from keras_bert.checkpoints import open_checkpoint
from keras_bert.data import tag_names
from keras_bert.metrics import tagging_scores
from keras_bert.tasks.features import extract_features

from bilstm import BiLSTMTagger
from experiment import TrainingTimer, read_tagged_parts, summary_of

# Layers by name, the embeddings are 0, and how they are combined: the rows of Table 7.
TABLE_7 = {
    "embeddings": ([0], "concatenate"),
    "second to last": ([-2], "concatenate"),
    "last": ([-1], "concatenate"),
    "weighted last four": ([-4, -3, -2, -1], "weighted"),
    "concatenated last four": ([-4, -3, -2, -1], "concatenate"),
    "weighted all": ("all", "weighted"),
}


def batches(
    features, labels, batch_size: int, seed: int | None = None, columns=slice(None)
) -> tf.data.Dataset:
    """Padded batches: some columns of features, labels that are -1 in padding, and weights.

    With a seed every pass has an order of its own.
    """
    dim = features[0][:1, columns].shape[1]
    random = None if seed is None else np.random.default_rng(seed)

    def one_pass():
        order = np.arange(len(labels)) if random is None else random.permutation(len(labels))
        for begin in range(0, len(order), batch_size):
            rows = order[begin : begin + batch_size]
            longest = max(len(labels[i]) for i in rows)
            x = np.zeros((len(rows), -(-longest // 16) * 16, dim), "float32")
            y = np.full(x.shape[:2], -1, "int32")
            for row, i in enumerate(rows):
                x[row, : len(labels[i])] = features[i][:, columns]
                y[row, : len(labels[i])] = labels[i]
            yield x, y, (y >= 0).astype("float32")

    spec = tf.TensorSpec
    signature = (
        spec([None, None, dim], tf.float32),
        spec([None, None], tf.int32),
        spec([None, None], tf.float32),
    )
    dataset = tf.data.Dataset.from_generator(one_pass, output_signature=signature)
    count = -(-len(labels) // batch_size)
    return dataset.apply(tf.data.experimental.assert_cardinality(count)).prefetch(2)


def choices(args: argparse.Namespace, num_layers: int, dim: int) -> tuple:
    """The layers to read, how they are combined, and what is trained on.

    Args:
        args: the flags.
        num_layers: of the BERT.
        dim: of its states.

    Returns:
        (layers, combine, choices): of each choice by its name its columns of the features, and how
        many states there are to be weighed.
    """
    if not args.table7:
        weighted = args.combine == "weighted"
        choice = slice(None), len(args.layers) if weighted else 1
        return args.layers, "concatenate" if weighted else args.combine, {"": choice}
    found = {}
    for name, (layers, how) in TABLE_7.items():
        if layers == "all":
            layers = range(1, num_layers + 1)
        if -min(layers) > num_layers:
            print(f"{name}: left out, the BERT has {num_layers} layers", flush=True)
            continue
        first, last = (layer % (num_layers + 1) for layer in (layers[0], layers[-1]))
        columns = slice(first * dim, (last + 1) * dim)
        found[name] = columns, len(layers) if how == "weighted" else 1
    return [*range(num_layers + 1)], "concatenate", found


def main(argv: list[str] | None = None) -> dict:
    args = parse(argv)
    data = read_tagged_parts(args)
    data["train"] = data["train"].head(args.limit)
    labels = tag_names(*(part.tags for part in data.values()))
    checkpoint = open_checkpoint(args.preset)
    backbone = checkpoint.backbone(dtype=args.dtype)
    read, combine, plan = choices(args, backbone.num_layers, backbone.hidden_dim)
    todo = [(name, seed) for seed in args.seed for name in plan]
    found = {job: done(args, *job) for job in todo}
    if None in found.values():
        ids = {name: i for i, name in enumerate(labels)}
        options = {
            "tokenizer": checkpoint.tokenizer(),
            "sequence_length": args.sequence_length,
            "verbose": 2,
        }
        features = {
            part: extract_features(backbone, rows.words, read, combine, "word", **options)
            for part, rows in data.items()
        }
        tags = {p: [[ids[tag] for tag in row] for row in rows.tags] for p, rows in data.items()}
        for name, seed in todo:
            if found[name, seed] is None:
                found[name, seed] = run(args, name, seed, *plan[name], features, tags, labels, data)
    tables = {}
    for name in plan:
        runs = [found[name, seed] for seed in args.seed]
        tables[name] = {"task": name, **summary_of(runs)}
        print(json.dumps(tables[name]), flush=True)
        tables[name]["by_seed"] = runs
    return {"by_layers": tables} if args.table7 else tables[""]


def folder_of(args: argparse.Namespace, name: str, seed: int) -> Path:
    """The folder of a run."""
    return Path(args.output_dir) / "-".join([*name.split(), f"seed{seed}"])


def done(args: argparse.Namespace, name: str, seed: int) -> dict | None:
    """The metrics of a run that was finished before, with --resume."""
    path = folder_of(args, name, seed) / "metrics.json"
    return json.loads(path.read_text()) if args.resume and path.exists() else None


def run(args, name, seed, columns, num_states, features, tags, labels, data) -> dict:
    """Trains and scores a tagger; writes it and its metrics."""
    keras.utils.set_random_seed(seed)
    dim = features["train"][0][:1, columns].shape[1]
    model = BiLSTMTagger(dim, len(labels), args.units, args.num_layers, num_states=num_states)
    model.compile(
        keras.optimizers.Adam(args.learning_rate),
        keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, ignore_class=-1, reduction="mean_with_sample_weight"
        ),
        # cuDNN's LSTM is out of XLA's reach, and XLA takes minutes for each length of a batch.
        jit_compile=False,
    )
    timer = TrainingTimer()
    train = batches(features["train"], tags["train"], args.batch_size, seed, columns)
    model.fit(train, epochs=args.epochs, callbacks=[timer], shuffle=False, verbose=2)
    metrics = {"seed": seed, "train_seconds_by_epoch": timer.seconds}
    if num_states > 1:
        share = keras.ops.softmax(model.get_layer("layer_weights").w)
        metrics["shares"] = np.asarray(share).round(4).tolist()
    for part in [part for part in data if part != "train"]:
        found = []
        for x, *_ in batches(features[part], tags[part], args.batch_size, columns=columns):
            for best in model.predict_on_batch(x).argmax(-1):
                found.append([labels[i] for i in best[: len(tags[part][len(found)])]])
        one = tagging_scores(data[part].tags, found, entities=args.scheme != "none")
        metrics |= {f"{part}_{key}": value for key, value in one.items()}
    output = folder_of(args, name, seed)
    output.mkdir(parents=True, exist_ok=True)
    model.save(output / "tagger.keras")
    (output / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n")
    print(json.dumps({"layers": name, **metrics} if name else metrics), flush=True)
    return metrics


if __name__ == "__main__":
    main()
