"""Every task's export says in a fresh process what the task says (cases B80, B81)."""

import gzip
import json

import numpy as np
import pytest

from keras_bert.serving.contract import read_contract
from tests.serving.asked import serve
from tests.serving.made import TEXTS, asked, check, make, said

slow = pytest.mark.slow
KINDS = "answerer classifier tagger chain chooser relator embedder pretrainer".split()


@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_real_texts_and_the_torture_file(kind, shared_dir, tmp_path):
    novels = shared_dir / "data" / "text" / "en" / "gutenberg_novels.txt.gz"
    with gzip.open(novels, "rt", encoding="utf-8") as file:
        texts = [line.strip() for line in file if line.strip()][:1000]
    with gzip.open(shared_dir / "golden" / "torture.txt.gz", "rb") as file:
        torture = [line.decode("utf-8", "ignore") for line in file.read().split(b"\n")]
    texts += [line for line in torture if line][:500]
    model = make(kind)
    model.export(tmp_path / "model")
    requests = asked(kind, texts)
    replies = serve(tmp_path / "model", list(requests.items()))
    for (signature, inputs), reply in zip(requests.items(), replies, strict=True):
        check(reply, said(kind, model, signature, inputs), signature)


@slow
def test_quantized_and_tuned_models_serve_alike(tmp_path):  # B87, B89
    model = make("classifier")
    exact = make("classifier")
    model.quantize("int8")
    model.export(tmp_path / "int8", reference=exact, examples={"text": TEXTS})
    weights = read_contract(tmp_path / "int8")["weights"]
    assert weights["stored"] == "int8" and weights["difference"]["rows"] == len(TEXTS)
    (reply,) = serve(tmp_path / "int8", [("serving_default", {"text": TEXTS})])
    logits = model.predict(TEXTS, verbose=0)
    np.testing.assert_allclose(reply["logits"], logits, atol=1e-5)
    shift = np.abs(logits - exact.predict(TEXTS, verbose=0)).max()
    assert 0 < weights["difference"]["largest"] < shift + 1e-4

    exact.tune("lora", lora_rank=2)
    rng = np.random.default_rng(0)
    for weight in exact.trainable_variables:
        weight.assign_add(rng.normal(0, 0.05, weight.shape))
    expected = exact.predict(TEXTS, verbose=0)
    exact.export(tmp_path / "lora")
    exact.merge_lora()
    exact.export(tmp_path / "merged")
    exact.export(tmp_path / "half", weights="float16")
    for folder, tolerance in (("lora", 1e-5), ("merged", 1e-5), ("half", 2e-2)):
        (reply,) = serve(tmp_path / folder, [("serving_default", {"text": TEXTS})])
        np.testing.assert_allclose(reply["logits"], expected, atol=tolerance)
    sizes = [read_contract(tmp_path / name)["weights"]["bytes"] for name in ("merged", "half")]
    assert sizes[1] < 0.7 * sizes[0]
