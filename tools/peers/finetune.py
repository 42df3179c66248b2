"""Fine-tunes transformers' BERT on examples.py's files: the peer of the recipes.

Settings are the recipes': AdamW with a decay of 0.01 that leaves out biases and normalization, a
rate that rises over the first tenth of the steps and falls to 0, gradients clipped at norm 1,
dropout 0.1, bfloat16 autocast on a GPU. Rows are padded to the longest of their batch, as
transformers' own examples do; its models are not compiled.
Run: python tools/peers/finetune.py --weights DIR --train a.jsonl --dev b.jsonl --output out.jsonl
"""

import argparse
import json
import time
from pathlib import Path


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--weights", required=True, help="Hugging Face directory")
    parser.add_argument("--train", required=True)
    parser.add_argument("--dev", required=True)
    parser.add_argument("--output", required=True, help="predictions, JSON lines")
    parser.add_argument("--seed", type=int, nargs="+", default=[0])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--learning_rate", type=float, default=2e-5)
    parser.add_argument("--sequence_length", type=int, default=128)
    parser.add_argument("--stride", type=int, default=128, help="of windows over contexts")
    parser.add_argument("--limit", type=int, help="train on the first so many examples only")
    return parser.parse_args()


if __name__ == "__main__":
    parse()  # wrong flags and --help end here, before the imports that take seconds

import numpy as np
import torch
import transformers

IGNORED = -100


def load(path):
    with open(path, encoding="utf-8") as file:
        header, *rows = map(json.loads, file)
    return header, rows


class Classes:
    """Texts or pairs to one class, or to a number."""

    def __init__(self, args, tokenizer, labels):
        self.args, self.tokenizer, self.labels = args, tokenizer, labels

    def model(self):
        kind = transformers.BertForSequenceClassification
        return kind.from_pretrained(self.args.weights, num_labels=len(self.labels) or 1)

    def encode(self, rows, train):
        columns = list(zip(*(row["texts"] for row in rows), strict=True))
        inputs = self.tokenizer(
            *map(list, columns), truncation=True, max_length=self.args.sequence_length
        )
        targets = [row["label"] for row in rows]
        return [(each(inputs, i), targets[i]) for i in range(len(rows))]

    def batch(self, rows):
        kind = torch.long if self.labels else torch.float32
        return pad([inputs for inputs, _ in rows]), torch.tensor([y for _, y in rows], dtype=kind)

    def loss(self, output, targets):
        logits = output.logits.float()
        if not self.labels:
            return torch.nn.functional.mse_loss(logits[:, 0], targets)
        return torch.nn.functional.cross_entropy(logits, targets)

    def answers(self, rows, features, outputs):
        return [output["logits"].tolist() for output in outputs]


class Tags(Classes):
    """A tag for the first piece of each word."""

    def model(self):
        kind = transformers.BertForTokenClassification
        return kind.from_pretrained(self.args.weights, num_labels=len(self.labels))

    def encode(self, rows, train):
        words = [row["words"] for row in rows]
        length = self.args.sequence_length
        inputs = self.tokenizer(words, is_split_into_words=True, truncation=True, max_length=length)
        found = []
        for i, row in enumerate(rows):
            ids, tagged, before = [], [], None
            for word in inputs.word_ids(i):
                first = word is not None and word != before
                ids.append(self.labels.index(row["tags"][word]) if first else IGNORED)
                tagged += [word] if first else []
                before = word
            found.append((each(inputs, i), (ids, tagged)))
        return found

    def batch(self, rows):
        inputs = pad([inputs for inputs, _ in rows])
        targets = torch.full(inputs["input_ids"].shape, IGNORED)
        for i, (_, (ids, _)) in enumerate(rows):
            targets[i, : len(ids)] = torch.tensor(ids)
        return inputs, targets

    def loss(self, output, targets):
        logits = output.logits.float()
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())

    def answers(self, rows, features, outputs):
        found = []
        for row, (_, (ids, tagged)), output in zip(rows, features, outputs, strict=True):
            best, tags = output["logits"].argmax(-1), ["O"] * len(row["words"])
            places = [i for i, target in enumerate(ids) if target != IGNORED]
            for word, place in zip(tagged, places, strict=True):
                tags[word] = self.labels[best[place]]
            found.append(tags)
        return found


class Choices(Classes):
    """One of several second texts."""

    def model(self):
        return transformers.BertForMultipleChoice.from_pretrained(self.args.weights)

    def encode(self, rows, train):
        found = []
        for row in rows:
            firsts = [row["context"]] * len(row["choices"])
            inputs = self.tokenizer(
                firsts, row["choices"], truncation=True, max_length=self.args.sequence_length
            )
            found.append(([each(inputs, i) for i in range(len(firsts))], row["label"]))
        return found

    def batch(self, rows):
        flat = pad([one for choices, _ in rows for one in choices])
        count = len(rows[0][0])
        inputs = {name: value.unflatten(0, (-1, count)) for name, value in flat.items()}
        return inputs, torch.tensor([y for _, y in rows])

    def loss(self, output, targets):
        return torch.nn.functional.cross_entropy(output.logits.float(), targets)


class Spans(Classes):
    """The answer's ends in windows over the context, by the rules of run_squad.py."""

    def model(self):
        return transformers.BertForQuestionAnswering.from_pretrained(self.args.weights)

    def encode(self, rows, train):
        overlap = self.args.sequence_length - self.args.stride
        found = []
        for number, row in enumerate(rows):
            question = self.tokenizer.tokenize(row["question"])[:64]
            room = self.args.sequence_length - len(question) - 3
            inputs = self.tokenizer(
                self.tokenizer.convert_tokens_to_string(question),
                row["context"],
                truncation="only_second",
                max_length=self.args.sequence_length,
                stride=max(room - self.args.stride, 0) if overlap > 0 else 0,
                return_overflowing_tokens=True,
                return_offsets_mapping=True,
            )
            for i in range(len(inputs["input_ids"])):
                kinds, offsets = inputs.sequence_ids(i), inputs["offset_mapping"][i]
                place = [j for j, kind in enumerate(kinds) if kind == 1]
                ends = (0, 0)
                if row["answers"]:
                    answer = row["answers"][0]
                    low, high = answer["start"], answer["start"] + len(answer["text"])
                    covered = [j for j in place if offsets[j][1] > low and offsets[j][0] < high]
                    whole = place and offsets[place[0]][0] <= low and offsets[place[-1]][1] >= high
                    ends = (covered[0], covered[-1]) if covered and whole else ends
                found.append((each(inputs, i), (number, ends, place, offsets)))
        return found

    def batch(self, rows):
        ends = torch.tensor([ends for _, (_, ends, _, _) in rows])
        return pad([inputs for inputs, _ in rows]), ends

    def loss(self, output, targets):
        losses = [
            torch.nn.functional.cross_entropy(logits.float(), targets[:, i])
            for i, logits in enumerate((output.start_logits, output.end_logits))
        ]
        return sum(losses) / 2

    def answers(self, rows, features, outputs):
        best = [(-np.inf, "")] * len(rows)
        for (_, (number, _, place, offsets)), output in zip(features, outputs, strict=True):
            starts, ends = output["start_logits"], output["end_logits"]
            tops = [sorted(place, key=lambda j: -logits[j])[:20] for logits in (starts, ends)]
            for low in tops[0]:
                for high in tops[1]:
                    if low <= high < low + 30 and starts[low] + ends[high] > best[number][0]:
                        text = rows[number]["context"][offsets[low][0] : offsets[high][1]]
                        best[number] = (starts[low] + ends[high], text)
        return [{"id": row["id"], "text": text} for row, (_, text) in zip(rows, best, strict=True)]


KINDS = {"classes": Classes, "tags": Tags, "choices": Choices, "spans": Spans}


def each(inputs, i):
    return {name: inputs[name][i] for name in ("input_ids", "token_type_ids", "attention_mask")}


def pad(rows):
    longest = max(len(row["input_ids"]) for row in rows)
    return {
        name: torch.tensor([row[name] + [0] * (longest - len(row[name])) for row in rows])
        for name in rows[0]
    }


def train(args, task, model, rows, seed, device):
    """Gives seconds of each epoch."""
    weights = [[], []]
    for name, value in model.named_parameters():
        weights["bias" in name or "LayerNorm" in name].append(value)
    groups = [{"params": weights[0], "weight_decay": 0.01}]
    groups += [{"params": weights[1], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=args.learning_rate)
    total = args.epochs * -(-len(rows) // args.batch_size)
    warm = max(1, total // 10)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: min((s + 1) / warm, max(0.0, (total - s) / max(1, total - warm)))
    )
    order, seconds = np.random.default_rng(seed), []
    model.train()
    for _ in range(args.epochs):
        begin, places = time.perf_counter(), order.permutation(len(rows))
        for at in range(0, len(rows), args.batch_size):
            inputs, targets = task.batch([rows[i] for i in places[at : at + args.batch_size]])
            with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
                output = model(**{name: value.to(device) for name, value in inputs.items()})
            task.loss(output, targets.to(device)).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad(set_to_none=True)
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    return seconds


@torch.inference_mode()
def predict(args, task, model, rows, device):
    model.eval()
    found = []
    for at in range(0, len(rows), args.batch_size):
        inputs, _ = task.batch(rows[at : at + args.batch_size])
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            output = model(**{name: value.to(device) for name, value in inputs.items()})
        names = [name for name in ("logits", "start_logits", "end_logits") if name in output]
        arrays = {name: output[name].float().cpu().numpy() for name in names}
        found += [{n: v[i] for n, v in arrays.items()} for i in range(len(arrays[names[0]]))]
    return found


def main():
    args = parse()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    (header, rows), (_, dev) = load(args.train), load(args.dev)
    rows = rows[: args.limit]
    tokenizer = transformers.BertTokenizerFast.from_pretrained(args.weights)
    task = KINDS[header["kind"]](args, tokenizer, header.get("labels") or [])
    features, dev_features = task.encode(rows, True), task.encode(dev, False)
    with Path(args.output).open("w", encoding="utf-8") as file:
        for seed in args.seed:
            torch.manual_seed(seed)
            model = task.model().to(device)
            seconds = train(args, task, model, features, seed, device)
            outputs = predict(args, task, model, dev_features, device)
            said = {
                "seed": seed,
                "train_rows": len(features),
                "train_seconds_by_epoch": seconds,
                "train_rows_per_second": len(features) / min(seconds),
            }
            print(json.dumps(said), flush=True)
            answers = task.answers(dev, dev_features, outputs)
            file.write(json.dumps(said | {"answers": answers}, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
