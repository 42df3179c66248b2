"""Exports answered from C, by TensorFlow's C library without Python, against `predict`."""

import gzip
import re
import struct

import numpy as np
import pytest

from keras_bert import BertClassifier
from tests.serving.made import KINDS, TINY, asked, check, make, said
from tests.serving.made import TEXTS as made_texts
from tests.serving.tensor_files import Refusal, ask, compiled, pack, pack_tensor

WORDS = "rain wind harbour froze boats the a [MASK] é 中文 😀 don't".split()
TEXTS = [
    "",
    " \t\n",
    "rain\0wind",
    "雨と風 中文句子。",
    "😀🇩🇪👩‍👩‍👧",
    "the harbour froze " * 500,
    "x" * 10_000,
    "e\u0301 \ufeff\u200b\u202e ﬁ",
]
TEXTS += [" ".join(WORDS[i * k % len(WORDS)] for k in range(1, i % 9 + 2)) for i in range(42)]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("program"))


@pytest.fixture(scope="module")
def model():
    return BertClassifier.from_preset(TINY, padding="bucket")


def agrees(reply, model, texts):
    """A reply in labels exactly and in numbers within 1e-5 as the model answers."""
    assert not isinstance(reply, Refusal), reply.message
    logits = model.predict(texts, verbose=0)
    labels, probabilities = model.classify(texts, verbose=0)
    assert [label.decode() for label in reply["label"]] == list(labels)
    np.testing.assert_allclose(reply["logits"], logits, rtol=0, atol=1e-5)
    np.testing.assert_allclose(reply["probability"], probabilities, rtol=0, atol=1e-5)
    assert reply["logits"].dtype == reply["probability"].dtype == np.float32


@pytest.mark.thorough
def test_strings_in_answers_out(program, exported, model, tmp_path):
    single = TEXTS[:12]
    requests = [{"text": TEXTS}, *({"text": [text]} for text in single)]
    replies, said = ask(program, exported, "serving_default", requests, tmp_path)
    assert "answer: 13 requests, 0 failed" in said
    agrees(replies[0], model, TEXTS)
    for row, reply in enumerate(replies[1:]):
        assert reply["label"][0] == replies[0]["label"][row]
        np.testing.assert_allclose(reply["logits"][0], replies[0]["logits"][row], atol=1e-5)
    requests = [{"text_pair": TEXTS[::-1], "text": TEXTS}]
    (reply,), _ = ask(program, exported, "pair", requests, tmp_path)
    agrees(reply, model, (TEXTS, TEXTS[::-1]))


@pytest.mark.thorough
def test_without_the_op_library_ids_are_answered_and_strings_refused(
    program, exported, model, tmp_path
):
    rng = np.random.default_rng(0)
    requests = []
    for rows, length in ((1, 1), (3, 5), (2, 13), (1, 14)):
        ids = rng.integers(5, 15, (rows, length)).astype(np.int32)
        requests.append({"token_ids": ids, "segment_ids": ids * 0, "padding_mask": ids * 0 + 1})
    *replies, too_long = ask(program, exported, "tokens", requests, tmp_path, [])[0]
    for request, reply in zip(requests, replies, strict=False):
        logits = model(request, training=False).numpy()
        np.testing.assert_allclose(reply["logits"], logits, rtol=0, atol=1e-5)
    assert "longer than 13, the positions of the model" in too_long.message
    (reply,), _ = ask(program, exported, "serving_default", [{"text": ["a"]}], tmp_path, [])
    assert "Op type not registered 'FastWordpieceTokenizeWithOffsets'" in reply.message
    assert reply.message.endswith("name the library that holds this op after REPLY_FILE")


@pytest.mark.thorough
def test_a_bad_request_gets_an_error_and_the_next_an_answer(program, exported, tmp_path):
    good = {"text": ["rain"]}
    twice = struct.pack("<4sI", b"KBT1", 2) + pack_tensor("text", ["a"]) * 2
    bad = {
        'the input "text" is int32, expected string': pack([{"text": np.zeros(3, np.int32)}]),
        'the input "text" has the shape [1, 2], expected [any]': pack([{"text": [["a", "b"]]}]),
        'the input "text" has the shape [], expected [any]': pack([{"text": "rain"}]),
        'the input "text" is missing': pack([{}]),
        'the signature has no input "words"': pack([{"text": ["a"], "words": ["b"]}]),
        'the input "text" comes twice': twice,
    }
    content = b"".join(pack([good]) + one for one in bad.values()) + pack([good])
    replies, said = ask(program, exported, "serving_default", content, tmp_path)
    assert "answer: 13 requests, 6 failed" in said
    for message, reply in zip(bad, replies[1::2], strict=True):
        assert (reply.message, reply.code) == (message, 3)  # TF_INVALID_ARGUMENT
    for reply in replies[::2]:
        np.testing.assert_array_equal(reply["logits"], replies[0]["logits"])


def test_what_ends_the_program_is_named(program, exported, tmp_path):
    def message(signature="serving_default", requests=(), folder=exported, libraries=None):
        replies, said = ask(program, folder, signature, requests, tmp_path, libraries)
        assert replies is None
        return said

    missing = message("answers")
    assert 'no signature "answers"' in missing and '"serving_default"' in missing
    assert "nowhere.so" in message(libraries=[tmp_path / "nowhere.so"])
    assert str(tmp_path / "none") in message(folder=tmp_path / "none")


@pytest.mark.thorough
def test_malformed_files(program, exported, tmp_path):
    """Files cut anywhere or with a false number end the program, not with a signal."""
    ids = np.ones((1, 2), np.int32)
    request = {"token_ids": ids, "segment_ids": ids, "padding_mask": ids}
    whole = pack([request])

    def tensor(dtype=3, rank=1, dims=(1,), data=b"\0\0\0\0"):
        head = struct.pack("<4sII1sii", b"KBT1", 1, 1, b"x", dtype, rank)
        return head + struct.pack(f"<{len(dims)}q", *dims) + data

    cases = {
        "does not start with KBT1": b"KBT2" + whole[4:],
        "request 1 at byte": whole + b"KB",
        "request 0 at byte 0 is cut off": whole[:6],
        "its name is cut off": whole[:8] + struct.pack("<I", 2**32 - 1) + whole[12:],
        "its dtype is unknown": tensor(dtype=20),
        "its rank is not 0 to 254": tensor(rank=255),
        "its shape is cut off": tensor(rank=254),
        "a dimension is negative": tensor(dims=(-1,)),
        "its shape is too large": tensor(rank=3, dims=(0, 2**31, 2**31)),
        "its values are cut off": tensor(dims=(2,)),
        "its strings are cut off": tensor(dtype=7, dims=(1,), data=b"\xff" * 8),
        "tensor 2: its values": whole[:-1],
    }
    for expected, content in cases.items():
        replies, said = ask(program, exported, "tokens", content, tmp_path, [])
        assert replies is None, expected
        assert re.search(f"request.*{re.escape(expected)}|{re.escape(expected)}", said), said


@pytest.mark.slow
def test_real_and_strange_texts(program, exported, model, shared_dir, tmp_path):
    texts = []
    for path in sorted((shared_dir / "data" / "text").glob("*/*.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            lines = [line for line in (next(file, "").rstrip("\n") for _ in range(400)) if line]
        texts += lines[:125]
    assert len(texts) >= 1000
    torture = shared_dir / "golden" / "torture.txt.gz"
    with gzip.open(torture, "rt", encoding="utf-8", newline="\n") as file:
        texts += [line.rstrip("\n") for line in file]
    batches = [texts[i : i + 256] for i in range(0, len(texts), 256)]
    replies, said = ask(
        program, exported, "serving_default", [{"text": batch} for batch in batches], tmp_path
    )
    assert " 0 failed" in said
    whole = {name: np.concatenate([r[name] for r in replies]) for name in replies[0]}
    agrees(whole, model, texts)
    ones, _ = ask(
        program, exported, "serving_default", [{"text": [t]} for t in texts[:1000]], tmp_path
    )
    agrees({name: np.concatenate([r[name] for r in ones]) for name in ones[0]}, model, texts[:1000])


@pytest.mark.slow
def test_memory_stays_flat(program, exported, tmp_path):
    good = [{"text": TEXTS[i : i + 3]} for i in range(40)]
    bad = [{"text": np.zeros(2, np.float32)}, {"word": ["x" * 1000]}]
    content = pack(good + bad) * 239  # 10,038 requests
    _, said = ask(program, exported, "serving_default", content, tmp_path)
    held = dict(re.findall(r"(\d+) requests, \d+ failed, VmRSS (\d+) kB", said))
    grown = int(held["10000"]) - int(held["1000"])
    # A leak of only the requests' own texts would be 40 MB and more.
    assert grown < 4 * 1024, said


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_task_answers(program, kind, tmp_path):
    model = make(kind)
    model.export(tmp_path / "model")
    for signature, inputs in asked(kind, made_texts).items():
        request = {
            name: np.array(value, "int32") if name in ("count", "spans") else value
            for name, value in inputs.items()
        }
        (reply,), _ = ask(program, tmp_path / "model", signature, [request], tmp_path)
        assert not isinstance(reply, Refusal), reply.message
        plain = {name: _plain(value.tolist()) for name, value in reply.items()}
        check(plain, said(kind, model, signature, inputs), signature)


def _plain(value):
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.decode() if isinstance(value, bytes) else value
