"""What a config may not do: name files that lie outside of the saved model."""

import json
import zipfile

import keras
import pytest

from keras_bert import (
    BertBackbone,
    BertClassifier,
    BertClassifierPreprocessor,
    BertMultipleChoice,
    BertMultipleChoicePreprocessor,
    BertTokenizer,
)

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s"]
OTHERS = [*WORDS[:5], "some", "other", "file"]
KINDS = {
    BertClassifier: (BertClassifierPreprocessor, {"num_classes": 2}),
    BertMultipleChoice: (BertMultipleChoicePreprocessor, {}),
}


def make(kind):
    preprocessor, settings = KINDS[kind]
    backbone = BertBackbone(8, 1, 2, 8, 16, max_sequence_length=16)
    return kind(backbone, preprocessor=preprocessor(BertTokenizer(WORDS), 16), **settings)


def name_vocabulary(value, path):
    """Puts a vocabulary's path into every tokenizer's config."""
    if isinstance(value, list):
        return [name_vocabulary(item, path) for item in value]
    if not isinstance(value, dict):
        return value
    value = {key: name_vocabulary(item, path) for key, item in value.items()}
    if value.get("class_name") == "BertTokenizer":
        value["config"]["vocabulary"] = path
    return value


@pytest.fixture
def outside(tmp_path):
    (tmp_path / "secret.txt").write_text("\n".join(OTHERS))
    return str(tmp_path / "secret.txt")


@pytest.mark.parametrize("kind", KINDS)
def test_a_keras_file_reads_no_file_outside_of_it(kind, outside, tmp_path):
    make(kind).save(tmp_path / "good.keras")
    with zipfile.ZipFile(tmp_path / "good.keras") as good:
        with zipfile.ZipFile(tmp_path / "bad.keras", "w") as bad:
            for name in good.namelist():
                data = good.read(name)
                if name == "config.json":
                    data = json.dumps(name_vocabulary(json.loads(data), outside))
                bad.writestr(name, data)
    with pytest.raises(ValueError, match="secret.txt.*expected no file outside"):
        keras.saving.load_model(tmp_path / "bad.keras")
    keras.saving.load_model(tmp_path / "bad.keras", safe_mode=False)


def test_nor_does_the_config_of_a_tokenizer_or_a_preprocessor(outside):
    for layer in (BertTokenizer(WORDS), BertClassifierPreprocessor(BertTokenizer(WORDS), 16)):
        config = name_vocabulary(keras.saving.serialize_keras_object(layer), outside)
        with pytest.raises(ValueError, match="expected no file outside"):
            keras.saving.deserialize_keras_object(config)
    assert BertTokenizer.from_config({"vocabulary": outside}).get_vocabulary() == OTHERS


@pytest.mark.parametrize("kind", KINDS)
def test_a_preset_reads_its_own_vocabulary(kind, outside, tmp_path):
    make(kind).save_to_preset(tmp_path / "p")
    for path in (tmp_path / "p").glob("*.json"):
        path.write_text(json.dumps(name_vocabulary(json.loads(path.read_text()), outside)))
    loaded = kind.from_preset(tmp_path / "p")
    assert loaded.preprocessor.tokenizer.get_vocabulary() == WORDS
