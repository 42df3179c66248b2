"""Small files of what a training changed."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from keras_bert import BertBackbone, BertClassifier
from keras_bert.checkpoints import load_tuned_part, save_tuned_part
from keras_bert.models import merge_lora, tune
from keras_bert.models.tuning import KINDS

TINY = Path(__file__).parents[1] / "golden" / "tiny_hf"
HEADER = "keras_bert_part"


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A preset of ours for ids alone, of a size that makes parts look small."""
    folder = tmp_path_factory.mktemp("parts") / "base"
    backbone = BertBackbone(503, 2, 3, 21, 33, 13, initializer_range=0.3)
    BertClassifier(backbone, 2).save_to_preset(folder)
    return folder


def fresh(base, **kwargs):
    return BertClassifier.from_preset(base, num_classes=3, skip_mismatch=True, **kwargs)


def tuned(base, what, **kwargs):
    """A model whose trained weights, and no others, have moved."""
    model, rng = fresh(base, **kwargs), np.random.default_rng(2)
    tune(model, what, lora_rank=2)
    for weight in model.trainable_weights:
        weight.assign(weight + rng.normal(0, 0.3, weight.shape))
    return model


@pytest.fixture
def batch():
    ids = np.random.default_rng(0).integers(0, 503, (3, 11))
    return {"token_ids": ids, "segment_ids": ids % 2, "padding_mask": ids * 0 + 1}


def header(path):
    with safe_open(path, framework="numpy") as file:
        return json.loads(file.metadata()[HEADER])


def rewrite(path, tensors=None, **changes):
    """Writes the file again with other tensors or settings."""
    content = {**header(path), **changes}
    save_file(load_file(path) if tensors is None else tensors, path, {HEADER: json.dumps(content)})


@pytest.mark.one_quick
@pytest.mark.parametrize("what", KINDS)
def test_round_trip_onto_the_base(base, tmp_path, batch, what):
    width = {"adapter_dim": 4} if what == "adapters" else {}
    model = tuned(base, what, **width)
    save_tuned_part(model, tmp_path / "deep" / "part.safetensors")
    again = fresh(base, **width)
    before = np.asarray(again(batch))
    load_tuned_part(again, tmp_path / "deep" / "part.safetensors")
    expected = np.asarray(model(batch))
    assert abs(expected - before).max() > 0.1
    np.testing.assert_array_equal(again(batch), expected)
    trained = [weight.path for weight in model.trainable_weights]
    assert [weight.path for weight in again.trainable_weights] == trained
    assert set(load_file(tmp_path / "deep" / "part.safetensors")) == set(trained)
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["part.safetensors"]


def test_a_part_is_small(base, tmp_path):
    model = tuned(base, "lora")
    save_tuned_part(model, tmp_path / "part")
    assert (tmp_path / "part").stat().st_size < 4 * model.count_params() / 5
    numbers = sum(value.size for value in load_file(tmp_path / "part").values())
    assert numbers == sum(np.prod(weight.shape) for weight in model.trainable_weights)


def test_what_the_base_lacks_is_held_though_frozen(base, tmp_path, batch):
    """New adapters and heads differ from model to model, trained or not."""
    model = tuned(base, "adapters", adapter_dim=4)
    model.backbone.freeze(1)
    model.head.trainable = False
    save_tuned_part(model, tmp_path / "part")
    names = set(load_file(tmp_path / "part"))
    assert {"head/kernel", "block_0/attention_adapter/down/kernel"} <= names
    assert "block_0/attention_norm/gamma" not in names and "block_1/attention_norm/gamma" in names


def test_a_new_pooler_is_held(tmp_path, batch):
    shutil.copytree(TINY, tmp_path / "base")
    file = tmp_path / "base" / "model.safetensors"
    save_file({k: v for k, v in load_file(file).items() if "pooler" not in k}, file)
    model = BertClassifier.from_preset(tmp_path / "base")
    tune(model, "lora", lora_rank=2)
    save_tuned_part(model, tmp_path / "part")
    again = BertClassifier.from_preset(tmp_path / "base")
    load_tuned_part(again, tmp_path / "part")
    ids = {name: value % 11 for name, value in batch.items()}
    np.testing.assert_array_equal(again(ids), model(ids))


def test_one_base_in_two_forms(tmp_path):
    """A part trained on a Hugging Face directory goes onto our preset of the same weights."""
    BertClassifier.from_preset(TINY).save_to_preset(tmp_path / "ours")
    model = BertClassifier.from_preset(TINY)
    tune(model, "head")
    model.head.bias.assign([1, 2, 3])
    save_tuned_part(model, tmp_path / "part")
    again = BertClassifier.from_preset(tmp_path / "ours")
    load_tuned_part(again, tmp_path / "part")
    np.testing.assert_array_equal(again.head.bias, [1, 2, 3])


def test_numbers_in_the_names_of_models_do_not_matter(base, tmp_path):
    first, later = fresh(base), fresh(base)
    assert first.name != later.name
    save_tuned_part(first, tmp_path / "part")
    load_tuned_part(later, tmp_path / "part")


def test_updates_made_by_keras_hub(base, tmp_path, batch):
    model, rng = fresh(base), np.random.default_rng(3)
    model.backbone.enable_lora(3, ["key", "intermediate"])
    for weight in model.trainable_weights:
        weight.assign(rng.normal(0, 0.3, weight.shape))
    save_tuned_part(model, tmp_path / "part")
    assert header(tmp_path / "part")["lora"] == {"rank": 3, "layers": ["intermediate", "key"]}
    again = fresh(base)
    load_tuned_part(again, tmp_path / "part")
    np.testing.assert_array_equal(again(batch), model(batch))


def test_labels_travel(base, tmp_path):
    model = fresh(base, labels=["calm", "storm", "thaw"])
    save_tuned_part(model, tmp_path / "part")
    again = fresh(base)
    load_tuned_part(again, tmp_path / "part")
    assert again.labels == ["calm", "storm", "thaw"]
    other = fresh(base, labels=["storm", "calm", "thaw"])
    with pytest.raises(ValueError, match="part has the labels .*'calm'.* the model .*'storm'"):
        load_tuned_part(other, tmp_path / "part")


@pytest.mark.thorough
def test_a_predict_of_before_is_forgotten(base, tmp_path, batch):
    model, again = tuned(base, "lora"), fresh(base)
    save_tuned_part(model, tmp_path / "part")
    again.predict(batch, verbose=0)
    load_tuned_part(again, tmp_path / "part")
    np.testing.assert_allclose(again.predict(batch, verbose=0), model(batch), atol=1e-5)


# Refused.


@pytest.fixture
def part(base, tmp_path):
    save_tuned_part(tuned(base, "lora"), tmp_path / "part")
    return tmp_path / "part"


def refuses(model, part, message):
    """The file is refused, and the model stays as it was to the last bit."""
    before = {w.path: np.array(w) for w in model.weights}
    trainable = [w.path for w in model.trainable_weights]
    with pytest.raises(ValueError, match=message):
        load_tuned_part(model, part)
    assert [w.path for w in model.trainable_weights] == trainable
    assert [w.path for w in model.weights] == list(before)
    for weight in model.weights:
        np.testing.assert_array_equal(weight, before[weight.path])


def test_other_weights_under_it(base, part, tmp_path):
    other = fresh(base, load_weights=False)
    other.loading_report = None
    refuses(other, part, "part belongs to another checkpoint.* such as embeddings/position_table")
    trained = fresh(base)
    trained.backbone.blocks[1].intermediate.bias.assign_add(np.ones(33))
    refuses(trained, part, "1 of 39 weights differ, such as block_1/intermediate/bias")


def test_a_merged_model_is_no_part(base, part, tmp_path):
    model = tuned(base, "lora")
    merge_lora(model)
    save_tuned_part(model, tmp_path / "merged")
    refuses(fresh(base), tmp_path / "merged", "4 of 39 weights differ.*query/kernel")


@pytest.mark.thorough
def test_another_backbone(base, part, tmp_path):
    backbone = BertBackbone(503, 2, 7, 21, 33, max_sequence_length=13, activation="gelu_tanh")
    message = "num_heads is 3, not 7, activation is 'gelu_exact', not 'gelu_tanh'"
    refuses(BertClassifier(backbone, 3), part, message)
    refuses(fresh(base, adapter_dim=4), part, "whose adapter_dim is None, not 4")
    # The same weights, and another meaning of them.
    refuses(fresh(base, causal=True), part, "whose causal is None, not True")
    save_tuned_part(tuned(base, "bitfit", causal=True), tmp_path / "causal")
    refuses(fresh(base), tmp_path / "causal", "whose causal is True, not None")


def test_another_class(base, part):
    rewrite(part, **{"class": "BertTagger"})
    refuses(fresh(base), part, "part is of a BertTagger, the model a BertClassifier")


def test_another_number_of_classes(base, part):
    refuses(BertClassifier.from_preset(base), part, r"head/kernel is .*\(21, 3\).*\(21, 2\)")


def test_missing_unexpected_and_misshapen_weights_are_all_named(base, part):
    tensors = load_file(part)
    lost = tensors.pop("block_1/attention/query/lora_kernel_a")
    tensors["block_2/attention/query/lora_kernel_a"] = lost
    tensors["head/bias"] = np.ones(5, "float32")
    rewrite(part, tensors)
    refuses(
        fresh(base),
        part,
        "block_1/attention/query/lora_kernel_a is missing; .*block_2/attention/query/lora_kernel_a "
        r"is unexpected; .*head/bias is float32 of shape \(5,\), the model's float32 of shape",
    )


@pytest.mark.thorough
def test_other_updates_on_the_model(base, part):
    model = fresh(base)
    tune(model, "lora", lora_rank=5)
    refuses(model, part, r"lora_kernel_a is float32 of shape \(21, 2\), .* of shape \(21, 5\)")


@pytest.mark.one_quick
@pytest.mark.parametrize("share", [0, 0.001, 0.5, 0.999])
def test_a_truncated_file(base, part, share):
    whole = part.read_bytes()
    part.write_bytes(whole[: int(len(whole) * share)])
    refuses(fresh(base), part, "part is not a whole safetensors file")


def test_no_file_and_no_part(base, part):
    with pytest.raises(FileNotFoundError):
        load_tuned_part(fresh(base), part.parent / "nowhere")
    save_file(load_file(part), part)
    refuses(fresh(base), part, "part is no tuned part: its header has no keras_bert_part")


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, "part has version 2 of the format; expected 1"),
        ({"lora": {"rank": "2", "layers": ["query"]}}, "lacks settings, or has wrong ones"),
        ({"lora": None}, "lacks settings, or has wrong ones"),
        ({"tuning": "os.system"}, "lacks settings, or has wrong ones"),
        ({"digests": []}, "lacks settings, or has wrong ones"),
        ({"lora": {"rank": 10**12, "layers": ["query", "value"]}}, "does not fit the model"),
        ({"lora": {"rank": 2, "layers": ["attention"]}}, "lora_kernel_a is unexpected"),
    ],
)
def test_a_damaged_header(base, part, changes, message):
    rewrite(part, **changes)
    refuses(fresh(base), part, message)


def test_a_header_that_is_no_json(base, part):
    save_file(load_file(part), part, {HEADER: "{"})
    refuses(fresh(base), part, "keras_bert_part in its header is not valid JSON")


def test_scaled_updates_are_not_written(base, part):
    model = fresh(base)
    model.backbone.blocks[0].attention.query_dense.enable_lora(2, lora_alpha=6)
    with pytest.raises(ValueError, match=r"\(rank, alpha\) \[\(2, 6\)\]; expected one rank"):
        save_tuned_part(model, part)


def test_a_failed_write_leaves_the_old_file(base, part, monkeypatch):
    before = part.read_bytes()

    def fail(descriptor):
        raise OSError("no space")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="no space"):
        save_tuned_part(fresh(base), part)
    assert part.read_bytes() == before and [p.name for p in part.parent.iterdir()] == ["part"]
