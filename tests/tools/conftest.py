"""An export with its contract, for the tests of the serving tools."""

import json
import os
from pathlib import Path

import pytest

TINY = Path(__file__).parents[1] / "golden" / "tiny_hf"
TEXTS = ["rain wind", "", "The HARBOUR froze boats boats boats boats", "Straße é 中 😀", "[MASK]"]


def contract_of(model, folder):
    """A contract by hand; the answers are the Keras model's, not the SavedModel's."""
    import keras
    import numpy as np
    import tensorflow as tf
    import tensorflow_text

    def described(specs):
        return {
            name: {"dtype": spec.dtype.name, "shape": spec.shape.as_list()}
            for name, spec in specs.items()
        }

    def answers(logits):
        probabilities = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
        return {
            "label": [model.labels[i] for i in logits.argmax(-1)],
            "probability": probabilities.max(-1).tolist(),
            "logits": logits.tolist(),
        }

    def example(signature, inputs, outputs):
        request = {"signature_name": signature, "inputs": inputs}
        return {"request": request, "reply": {"outputs": outputs}}

    ids = {"token_ids": [[2, 5, 3]], "segment_ids": [[0] * 3], "padding_mask": [[1] * 3]}
    arrays = {name: tf.constant(value, tf.int32) for name, value in ids.items()}
    logits = model.predict(TEXTS, verbose=0)
    pairs = model.predict((TEXTS, TEXTS[::-1]), verbose=0)
    signatures = tf.saved_model.load(str(folder)).signatures
    return {
        "format": 1,
        "task": type(model).__name__,
        "versions": {
            "keras": keras.__version__,
            "tensorflow": tf.__version__,
            "tensorflow_text": tensorflow_text.__version__,
        },
        "settings": {"labels": model.labels, "problem": "single_label"},
        "text_ops": ["FastBertNormalize", "FastWordpieceTokenizeWithOffsets"],
        "signatures": {
            name: {
                "inputs": described(function.structured_input_signature[1]),
                "outputs": described(function.structured_outputs),
            }
            for name, function in signatures.items()
        },
        "examples": [
            example("serving_default", {"text": TEXTS}, answers(logits)),
            example("serving_default", {"text": TEXTS[:1]}, answers(logits[:1])),
            example("pair", {"text": TEXTS, "text_pair": TEXTS[::-1]}, answers(pairs)),
            # One output: its value stands alone, as in TensorFlow Serving's replies.
            example("tokens", ids, model.predict(arrays, verbose=0).tolist()),
        ],
    }


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """Folder of a classifier's export; nobody writes to it."""
    from keras_bert import BertClassifier

    folder = tmp_path_factory.mktemp("exported") / "classifier"
    model = BertClassifier.from_preset(TINY)
    model.export(folder)
    contract = folder / "assets.extra" / "contract.json"
    if not contract.exists():
        os.makedirs(contract.parent, exist_ok=True)
        contract.write_text(json.dumps(contract_of(model, folder)), encoding="utf-8")
    return folder
