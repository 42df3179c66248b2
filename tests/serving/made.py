"""A small model of each task, what to ask it, and what its verb says, in the export's form."""

from pathlib import Path

import keras
import numpy as np

import keras_bert

TINY = Path(__file__).parents[1] / "golden" / "tiny_one_block"
KINDS = "answerer classifier tagger chain chooser relator embedder pretrainer".split()
NAMES = ["O", "B-A", "I-A", "B-B"]
TEXTS = [
    "rain wind",
    "",
    "The HARBOUR  froze boats boats, boats boats",
    "Straße é 中中 😀",
    # Long, and nowhere the same twice: of equal windows rounding would choose.
    "a boat, the ice! Wind froze a rain boat. The harbour, ice and boats: rain wind the a froze",
    "wind\x00rain",
]


def make(kind: str, preset=TINY):
    """A task with new heads of fixed seeds, on the tiny checkpoint or another."""
    keras.utils.set_random_seed(7)
    new = {"skip_mismatch": True}
    if kind == "classifier":
        return keras_bert.BertClassifier.from_preset(preset)
    if kind in ("tagger", "chain"):
        crf = kind == "chain"
        model = keras_bert.BertTokenClassifier.from_preset(preset, labels=NAMES, crf=crf, **new)
        return model
    if kind == "answerer":
        model = keras_bert.BertQuestionAnswerer.from_preset(preset)
        model.null_threshold = 0.0
        return model
    if kind == "chooser":
        return keras_bert.BertMultipleChoice.from_preset(preset)
    if kind == "relator":
        markers = ["the", "a", "red", "[MASK]"]
        return keras_bert.BertRelationClassifier.from_preset(
            preset, labels=["x", "y"], markers=markers, **new
        )
    if kind == "embedder":
        return keras_bert.BertTextEmbedder.from_preset(preset)
    return keras_bert.BertPretrainer.from_preset(preset)


def asked(kind: str, texts: list[str]) -> dict[str, dict]:
    """Inputs by signature."""
    turned = texts[1:] + texts[:1]
    pairs = {"text": texts, "text_pair": turned}
    if kind == "classifier":
        return {"serving_default": {"text": texts}, "pair": pairs}
    if kind in ("tagger", "chain"):
        words = [text.replace("\x00", " ").split() for text in texts]
        width = max(map(len, words))
        padded = [row + [""] * (width - len(row)) for row in words]
        return {
            "serving_default": {"text": texts},
            "tags": {"text": texts},
            "words": {"words": padded, "count": list(map(len, words))},
        }
    if kind == "answerer":
        pair = {"question": turned, "context": texts}
        return {"serving_default": pair, "candidates": pair}
    if kind == "chooser":
        # No choice twice: of equal ones rounding would choose.
        thirds = [f"ice {text}" for text in turned[::-1]]
        choices = [list(three) for three in zip(texts, turned, thirds, strict=True)]
        return {"serving_default": {"context": turned, "choices": choices}}
    if kind == "relator":
        texts = [f"rain {text[:20]} wind" for text in texts]
        spans = [[[len(text) - 4, len(text)], [0, 4]] for text in texts]
        return {"serving_default": {"text": texts, "spans": spans}}
    if kind == "embedder":
        return {"serving_default": {"text": texts}, "similarity": pairs}
    masked = [text.replace("boat", "[MASK]") + " [MASK]" for text in texts]
    return {"serving_default": {"text": masked}, "next_sentence": pairs}


def said(kind: str, model, signature: str, inputs: dict) -> dict:
    """What the task says to that by its verbs, by output; some outputs may be left out."""
    quiet = {"verbose": 0}
    texts = inputs.get("text")
    if kind == "classifier":
        x = texts if signature == "serving_default" else (texts, inputs["text_pair"])
        labels, probabilities = model.classify(x, **quiet)
        logits = model.predict(x, **quiet)
        return {"label": labels, "probability": probabilities, "logits": logits}
    if signature == "tags":
        return {"word": model.words(texts), "tag": model.predict_tags(texts)}
    if signature == "words":
        rows = [row[:n] for row, n in zip(inputs["words"], inputs["count"], strict=True)]
        return {"tag": model.predict_tags(rows)}
    if kind in ("tagger", "chain"):
        rows = model.tag(texts)
        return {
            "count": list(map(len, rows)),
            **{
                name: [[getattr(entity, name) for entity in row] for row in rows]
                for name in ("label", "start", "end", "score")
            },
            "entity": [[entity.text for entity in row] for row in rows],
        }
    if kind == "answerer":
        found = model.answer(inputs["question"], inputs["context"], top_k=5)
        names = {"start": "start", "end": "end", "score": "score", "answer": "text"}
        if signature == "candidates":
            return {
                key: [[getattr(one, name) for one in row.candidates] for row in found]
                for key, name in names.items()
            }
        names["null_score"] = "null_score"
        return {key: [getattr(row, name) for row in found] for key, name in names.items()}
    if kind == "chooser":
        choice, probabilities = model.choose(inputs["context"], inputs["choices"])
        text = [row[i] for row, i in zip(inputs["choices"], choice, strict=True)]
        return {"choice": choice, "probabilities": probabilities, "text": text}
    if kind == "relator":
        labels, probabilities = model.relate(texts, inputs["spans"])
        return {"label": labels, "probability": probabilities}
    if kind == "embedder":
        if signature == "similarity":
            return {"cosine": model.similarity(texts, inputs["text_pair"], **quiet)}
        return {"embedding": model.embed(texts, **quiet)}
    if signature == "next_sentence":
        return {"probability": model.next_sentence(texts, inputs["text_pair"])}
    rows = model.fill(texts)
    return {
        name: [[[getattr(one, name) for one in mask] for mask in row] for row in rows]
        for name in ("token", "id", "score")
    }


def check(reply: dict, expected: dict, where: str) -> None:
    """Words and whole numbers are equal, other numbers within 1e-5; rows by their own length.

    Raises:
        AssertionError: if not.
    """
    for name, rows in expected.items():
        got = reply[name]
        assert len(got) == len(rows), (where, name)
        for number, (one, wanted) in enumerate(zip(got, rows, strict=True)):
            wanted = wanted.tolist() if isinstance(wanted, np.ndarray | np.generic) else wanted
            if isinstance(wanted, list):
                rest = one[len(wanted) :]
                assert all(_is_filling(value) for value in rest), (where, name, number, rest)
                one = one[: len(wanted)]
            message = f"{where}: {name} of row {number}"
            if _first(wanted) is None or not isinstance(_first(wanted), float):
                assert one == wanted, message
            else:
                np.testing.assert_allclose(one, wanted, atol=1e-5, err_msg=message)


def _is_filling(value) -> bool:
    if isinstance(value, list):
        return all(map(_is_filling, value))
    return value in ("", -1, 0, 0.0)


def _first(value):
    while isinstance(value, list):
        if not value:
            return None
        value = value[0]
    return value
