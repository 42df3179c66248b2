"""What transformers makes of a directory. A program of its own: no TensorFlow in this process.

usage: python tests/checkpoints/transformers_outputs.py DIR CLASS IDS.npz OUT.npz [DIR ...]
       python tests/checkpoints/transformers_outputs.py --golden tests/golden/hf_heads.npz

The first reads DIR with transformers' CLASS, which must find each of its tensors and no other, and
runs it in float32 on token_ids, segment_ids and padding_mask, [N, T] each; four more arguments do
so again. With BertTokenizerFast for a CLASS it tokenizes `texts` instead: ids [N, L], filled up
with -1. The second makes the golden file: outputs of models whose weights are `golden_tensor` of
their names, so that both sides can draw them.
"""

import sys
import zlib
from pathlib import Path

import numpy as np

GOLDEN_CONFIG = {
    "vocab_size": 31,
    "hidden_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 5,
    "intermediate_size": 28,
    "max_position_embeddings": 13,
    "type_vocab_size": 3,
}
GOLDEN_CLASSES = {  # number of classes, or None
    "BertModel": None,
    "BertForPreTraining": None,
    "BertForMaskedLM": None,
    "BertForNextSentencePrediction": None,
    "BertForSequenceClassification": 3,
    "BertForTokenClassification": 7,
    "BertForQuestionAnswering": 2,
    "BertForMultipleChoice": None,
}
GOLDEN_ACTIVATIONS = ("gelu", "gelu_new")


def golden_tensor(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Draws a tensor by its name in `BertModel`: wide, so that an error shows."""
    values = np.random.default_rng(zlib.crc32(name.encode())).normal(0, 0.3, shape)
    return (values + name.endswith("LayerNorm.weight")).astype("float32")


def golden_ids(vocabulary: int = 31, segments: int = 3, length: int = 11) -> dict[str, np.ndarray]:
    """Five rows with padding, two of them all but full, and segments in no order."""
    rng = np.random.default_rng(0)
    mask = (np.arange(length) < np.array([[length], [2], [5], [length - 1], [1]])).astype("int32")
    token_ids = rng.integers(1, vocabulary, mask.shape).astype("int32") * mask
    segment_ids = rng.integers(0, segments, mask.shape).astype("int32") * mask
    return {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": mask}


def outputs(model, ids) -> dict[str, np.ndarray]:
    """Runs a model of any class; the choices of one question are the rows."""
    import torch

    kind = type(model).__name__
    names = {"token_ids": "input_ids", "segment_ids": "token_type_ids"}
    names["padding_mask"] = "attention_mask"
    batch = {theirs: torch.tensor(ids[ours]).long() for ours, theirs in names.items()}
    if kind == "BertForMultipleChoice":
        batch = {name: value[None] for name, value in batch.items()}
    with torch.inference_mode():
        found = model.eval()(**batch)
    if kind == "BertModel":
        result = {"sequence_output": found.last_hidden_state, "pooled_output": found.pooler_output}
    elif kind == "BertForPreTraining":
        result = {
            "masked_lm": found.prediction_logits,
            "next_sentence": found.seq_relationship_logits,
        }
    elif kind == "BertForQuestionAnswering":
        result = {"head": torch.stack([found.start_logits, found.end_logits], -1)}
    elif kind == "BertForMultipleChoice":
        result = {"head": found.logits.T}
    else:
        heads = {"BertForMaskedLM": "masked_lm", "BertForNextSentencePrediction": "next_sentence"}
        result = {heads.get(kind, "head"): found.logits}
    return {name: value.numpy() for name, value in result.items() if value is not None}


def run(folder: str, kind: str, ids_file: str, out_file: str) -> None:
    """Reads a directory and writes what its model gives."""
    import torch
    import transformers

    ids = np.load(ids_file)
    if kind == "BertTokenizerFast":
        tokenizer = transformers.BertTokenizerFast.from_pretrained(folder)
        rows = tokenizer([str(text) for text in ids["texts"]])["input_ids"]
        found = np.full((len(rows), max(map(len, rows))), -1)
        for target, row in zip(found, rows, strict=True):
            target[: len(row)] = row
        np.savez(out_file, ids=found)
        return
    model, info = getattr(transformers, kind).from_pretrained(
        folder, output_loading_info=True, dtype=torch.float32
    )
    problems = {key: value for key, value in info.items() if value}
    if problems:
        raise ValueError(f"{folder} as a {kind}: {problems}")
    np.savez(out_file, **outputs(model, ids))


def golden(path: str) -> None:
    """Makes the golden file."""
    import torch
    import transformers

    ids = golden_ids()
    result = dict(ids)
    for kind, num_labels in GOLDEN_CLASSES.items():
        for activation in GOLDEN_ACTIVATIONS:
            more = {} if num_labels is None else {"num_labels": num_labels}
            config = transformers.BertConfig(**GOLDEN_CONFIG, hidden_act=activation, **more)
            model = getattr(transformers, kind)(config)
            with torch.no_grad():
                for name, parameter in model.named_parameters():  # tied ones once
                    value = golden_tensor(name.removeprefix("bert."), tuple(parameter.shape))
                    parameter.copy_(torch.tensor(value))
            for name, value in outputs(model, ids).items():
                result[f"{kind}/{activation}/{name}"] = value
    np.savez_compressed(path, **result)
    print(f"{path}: transformers {transformers.__version__}, torch {torch.__version__}")


if __name__ == "__main__":
    if sys.argv[1] == "--golden":
        golden(sys.argv[2])
    else:
        for at in range(1, len(sys.argv), 4):
            run(*sys.argv[at : at + 4])
            print(Path(sys.argv[at]).name, "done")
