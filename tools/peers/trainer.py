"""Times a whole run of transformers' Trainer: the peer of tools/benchmark_run.py.

Rows are padded to the longest of their batch and the model is not compiled, which are the Trainer's
defaults; bfloat16 on a GPU. Flags, files and output are those of tools/benchmark_run.py.
Run: python tools/peers/trainer.py --train train.jsonl --dev dev.jsonl --vocabulary vocab.txt
"""

import time

start = time.perf_counter()

import argparse  # noqa: E402
import json  # noqa: E402
import tempfile  # noqa: E402

SIZES = {"tiny": (2, 128, 2), "mini": (4, 256, 4), "base": (12, 768, 12), "large": (24, 1024, 16)}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--train", required=True, help="file of tools/peers/examples.py")
    parser.add_argument("--dev", required=True, help="file of tools/peers/examples.py")
    parser.add_argument("--vocabulary", required=True, help="a vocab.txt, lower-casing")
    parser.add_argument("--size", choices=SIZES, default="base")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--sequence_length", type=int, default=128)
    return parser.parse_args()


if __name__ == "__main__":
    parse()  # wrong flags and --help end here, before the imports that take seconds

import torch  # noqa: E402
import transformers  # noqa: E402


class FirstStep(transformers.TrainerCallback):
    """The time at which the first step has been made."""

    made = None

    def on_step_end(self, args, state, control, **kwargs):
        self.made = self.made or time.perf_counter()


def main() -> None:
    args, imported = parse(), time.perf_counter()
    tokenizer = transformers.BertTokenizerFast(args.vocabulary)

    def examples(path):
        with open(path, encoding="utf-8") as file:
            _, *rows = map(json.loads, file)
        columns = zip(*(row["texts"] for row in rows), strict=True)
        ids = tokenizer(*map(list, columns), truncation=True, max_length=args.sequence_length)
        labels = [row["label"] for row in rows]
        return [
            {**{name: ids[name][i] for name in ids}, "labels": label}
            for i, label in enumerate(labels)
        ], labels

    (train, labels), (dev, wanted) = examples(args.train), examples(args.dev)
    layers, hidden, heads = SIZES[args.size]
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        num_labels=len(set(labels)),
        num_hidden_layers=layers,
        hidden_size=hidden,
        num_attention_heads=heads,
        intermediate_size=4 * hidden,
    )
    model = transformers.BertForSequenceClassification(config)
    first, folder = FirstStep(), tempfile.TemporaryDirectory()

    def trainer(epochs):
        settings = transformers.TrainingArguments(
            folder.name,
            per_device_train_batch_size=args.batch_size,
            per_device_eval_batch_size=2 * args.batch_size,
            num_train_epochs=epochs,
            learning_rate=2e-5,
            bf16=torch.cuda.is_available(),
            report_to=[],
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
        )
        collate = transformers.DataCollatorWithPadding(tokenizer)
        return transformers.Trainer(
            model, settings, collate, train_dataset=train, callbacks=[first]
        )

    def fit(epochs):
        trainer(epochs).train()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return time.perf_counter()

    built = time.perf_counter()
    trained = fit(args.epochs)
    logits = trainer(1).predict(dev).predictions
    predicted = time.perf_counter()
    seconds = {
        "imports": imported - start,
        "building": built - imported,
        "to_first_step": first.made - built,
        "training_after_it": trained - first.made,
        "prediction": predicted - trained,
        "whole": predicted - start,
        "second_fit": fit(args.epochs + 1) - predicted,
    }
    found = vars(args) | {"examples": len(labels)}
    found |= {"seconds": {name: round(value, 2) for name, value in seconds.items()}}
    found |= {"accuracy": round(float((logits.argmax(-1) == wanted).mean()), 4)}
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
