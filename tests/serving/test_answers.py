"""Every task's export says in a fresh process what the task says."""

import gzip
import json

import numpy as np
import pytest

from keras_bert.serving.export_contract import read_contract
from tests.serving.asked import serve
from tests.serving.made import KINDS, TEXTS, TINY, asked, check, make, said

pytestmark = pytest.mark.optimized

slow = pytest.mark.slow


@pytest.fixture(scope="module")
def answerer(tmp_path_factory):
    """(a question answerer, the folder of its export)."""
    model, folder = make("answerer"), tmp_path_factory.mktemp("answerer") / "model"
    model.export(folder)
    return model, folder


@slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "answerer"])
def test_strings_in_answers_out(kind, tmp_path):
    model = make(kind)
    model.export(tmp_path / "model")
    check_strings_in_answers_out(kind, model, tmp_path / "model")


@pytest.mark.thorough
def test_questions_in_answers_out(answerer):
    check_strings_in_answers_out("answerer", *answerer)


def check_strings_in_answers_out(kind, model, folder):
    requests = asked(kind, TEXTS)
    singles = [
        (signature, {name: value[row : row + 1] for name, value in inputs.items()})
        for signature, inputs in requests.items()
        for row in range(len(TEXTS))
    ]
    empty = [(signature, {name: [] for name in inputs}) for signature, inputs in requests.items()]
    contract = read_contract(folder)
    shown = [one["request"] for one in contract["examples"]]
    shown = [(one["signature_name"], one["inputs"]) for one in shown]
    replies = iter(serve(folder, [*requests.items(), *singles, *empty, *shown]))
    expected = {name: said(kind, model, name, inputs) for name, inputs in requests.items()}
    for signature in requests:
        check(next(replies), expected[signature], signature)
    for number, (signature, _) in enumerate(singles):
        row = number % len(TEXTS)
        one = {name: value[row : row + 1] for name, value in expected[signature].items()}
        check(next(replies), one, f"{signature}, row {row} alone")
    for signature, _ in empty:
        assert all(value == [] for value in next(replies).values()), signature
    for one, reply in zip(contract["examples"], replies, strict=True):
        outputs = one["reply"]["outputs"]
        named = outputs if isinstance(outputs, dict) else {next(iter(reply)): outputs}
        assert set(reply) == set(named)
        check(reply, named, one["request"]["signature_name"])
    assert contract["task"] == type(model).__name__
    assert {"serving_default", "tokens", "tokenize"} <= set(contract["signatures"])
    for name, signature in contract["signatures"].items():
        assert all(signature.values()), name


@pytest.mark.thorough
def test_wrong_requests_are_refused_by_name(answerer):
    import tensorflow as tf

    loaded = tf.saved_model.load(answerer[1]).signatures
    ask, tokens = loaded["serving_default"], loaded["tokens"]
    right = tf.constant(["a", "b"])
    wrong = tf.constant([b"a", b"\xff"])
    with pytest.raises(tf.errors.InvalidArgumentError, match="context.*is no valid UTF-8"):
        ask(question=right, context=wrong)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="question.*context.*different numbers"
    ):
        ask(question=right, context=right[:1])
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"(?s)node input_context.*\[2,1\] is not compatible"
    ):
        ask(question=right, context=right[:, None])
    row = tf.constant([[2, 3]])
    ids = {"token_ids": row, "segment_ids": row * 0, "padding_mask": row * 0 + 1}
    assert tokens(**ids)["start"].shape == (1, 2)
    for name, value, match in (
        ("token_ids", row + 99, "token_ids lie outside of 0 to "),
        ("segment_ids", row, "segment_ids lie outside of 0 to 1"),
        ("padding_mask", row[:, :1] * 0, "padding_mask have another shape than token_ids"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=match):
            tokens(**(ids | {name: value}))
    metadata = json.loads(loaded["metadata"](ask=right)["metadata"].numpy()[1])
    assert metadata["settings"]["null_threshold"] == 0.0


@slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_real_texts_and_the_torture_file(kind, shared_dir, tmp_path):
    novels = shared_dir / "data" / "text" / "en" / "gutenberg_novels.txt.gz"
    with gzip.open(novels, "rt", encoding="utf-8") as file:
        texts = [line.strip() for line in file if line.strip()][:1000]
    with gzip.open(shared_dir / "golden" / "torture.txt.gz", "rb") as file:
        torture = [line.decode("utf-8", "ignore") for line in file.read().split(b"\n")]
    texts += [line for line in torture if line][:500]
    # The tiny checkpoint knows 14 pieces. Most spans of a novel would be equal to it, and rounding
    # would choose among equal answers.
    model = make(kind, "bert_mini_en_public_domain" if kind == "answerer" else TINY)
    model.export(tmp_path / "model")
    requests = asked(kind, texts)
    replies = serve(tmp_path / "model", list(requests.items()))
    for (signature, inputs), reply in zip(requests.items(), replies, strict=True):
        check(reply, said(kind, model, signature, inputs), signature)


@slow
@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize` method")
def test_quantized_and_tuned_models_serve_alike(tmp_path):
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
