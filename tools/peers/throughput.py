"""Times transformers' BERT with two classes, for what tools/benchmark.py says of keras_bert.

Rows are full of random ids, or texts of a file, tokenized before the clock starts and padded to
--sequence_length or to the longest of their batch. AdamW with a rate of 2e-5; on a GPU bfloat16
autocast and, with --compile, torch.compile. Started by torchrun it trains on several devices by
DistributedDataParallel, with --batch_size on each. Prints one JSON line.
Run: python tools/peers/throughput.py --compile
     torchrun --nproc_per_node 2 tools/peers/throughput.py --compile
     python tools/peers/throughput.py --texts lines.txt --vocabulary vocab.txt --padding longest
"""

import argparse
import json
import os
import time


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--work", choices=("train", "predict"), default="train")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--hidden", type=int, default=768)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--sequence_length", type=int, default=128)
    parser.add_argument("--batch_size", type=int, default=256)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--warmup_steps", type=int, default=15, help="steps that are not timed")
    parser.add_argument("--texts", help="lines of this file, a tab within a pair")
    parser.add_argument("--vocabulary", help="of --texts: a vocab.txt, lower-casing")
    parser.add_argument("--padding", choices=("full", "longest"), default="full")
    parser.add_argument("--compile", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    parse()  # wrong flags and --help end here, before the imports that take seconds

import numpy as np
import torch
import transformers

VOCABULARY_SIZE = 30522


def rows_of(args) -> list[tuple[list[int], list[int]]]:
    """(ids, segments) of each row, without padding."""
    if not args.texts:
        rng = np.random.default_rng(0)
        shape = (4 * args.batch_size, args.sequence_length)
        return [(row, [0] * len(row)) for row in rng.integers(1, VOCABULARY_SIZE, shape).tolist()]
    tokenizer = transformers.BertTokenizerFast(args.vocabulary)
    with open(args.texts, encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file]
    columns = map(list, zip(*lines, strict=True))
    found = tokenizer(*columns, truncation=True, max_length=args.sequence_length)
    return list(zip(found["input_ids"], found["token_type_ids"], strict=True))


def batches_of(args, rows, device):
    """Passes over the rows without end, each in an order of its own; of `predict` by length."""
    rng, size = np.random.default_rng(1), args.batch_size
    while True:
        if args.work == "predict":
            order = np.argsort([len(ids) for ids, _ in rows], kind="stable")
        else:
            order = rng.permutation(len(rows))
        last = len(rows) if args.work == "predict" else len(rows) // size * size
        for start in range(0, last, size):
            part = [rows[i] for i in order[start : start + size]]
            width = args.sequence_length
            if args.padding == "longest":
                width = max(len(ids) for ids, _ in part)
            batch = np.zeros((3, len(part), width), "int64")
            for row, (ids, segments) in enumerate(part):
                batch[:, row, : len(ids)] = ids, segments, [1] * len(ids)
            batch = torch.tensor(batch)
            if device == "cuda":
                batch = batch.pin_memory().to(device, non_blocking=True)
            names = ("input_ids", "token_type_ids", "attention_mask")
            yield dict(zip(names, batch, strict=True))


def main() -> None:
    args = parse()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    processes, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("LOCAL_RANK", 0))
    if device == "cuda":
        torch.cuda.set_device(rank)
    if processes > 1:
        torch.distributed.init_process_group("nccl" if device == "cuda" else "gloo")
    config = transformers.BertConfig(
        vocab_size=VOCABULARY_SIZE,
        num_hidden_layers=args.layers,
        hidden_size=args.hidden,
        num_attention_heads=args.heads,
        intermediate_size=4 * args.hidden,
    )
    model = transformers.BertForSequenceClassification(config).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, fused=device == "cuda")
    run = model
    if processes > 1:
        places = [rank] if device == "cuda" else None
        run = torch.nn.parallel.DistributedDataParallel(
            model, device_ids=places, gradient_as_bucket_view=True
        )
    if args.compile:
        run = torch.compile(run, dynamic=args.padding == "longest")
    rows = rows_of(args)
    batches = batches_of(args, rows, device)
    cast = torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda")

    def train(batch):
        labels = batch["input_ids"][:, 1] % 2
        with cast:
            loss = run(**batch, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    def predict(batch):
        with torch.inference_mode(), cast:
            return run(**batch).logits

    work = {"train": train, "predict": predict}[args.work]
    model.train(args.work == "train")
    if args.work == "predict":
        args.warmup_steps = args.steps = -(-len(rows) // args.batch_size)
        args.steps *= 2
    seen = 0
    for step in range(args.steps):
        if step == args.warmup_steps:
            _wait(device)
            start = time.perf_counter()
        batch = next(batches)
        if step >= args.warmup_steps:
            seen += len(batch["input_ids"])
        output = work(batch)
    del output
    _wait(device)
    seconds = time.perf_counter() - start
    versions = {"transformers": transformers.__version__, "torch": torch.__version__}
    result = {**vars(args), "device": device, "versions": versions}
    timed = args.steps - args.warmup_steps
    result |= {"devices": processes, "ms_per_step": round(1000 * seconds / timed, 2)}
    if rank == 0:
        rate = round(processes * seen / seconds, 1)
        print(json.dumps(result | {"rows_per_second": rate}), flush=True)
    if processes > 1:
        torch.distributed.destroy_process_group()


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
