"""KerasHub's own checks of backbones, tasks, preprocessors and tokenizers, on our classes.

What we do otherwise, and why, stands in `docs/guides/keras.md`.
"""

import keras
import pytest

import keras_bert
from tests.tasks.tiny import TASKS, TEXTS, WORDS, backbone_settings, ids, inputs_of, made, tokenizer

try:
    from keras_hub.src.tests import test_case
except ImportError as error:
    pytest.skip(f"KerasHub's test case cannot be imported: {error}", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings(
    "ignore:The `check_types` argument is deprecated:DeprecationWarning"  # KerasHub passes it
)


# Of two entities in each of the texts.
SPANS = [[[4, 7], [19, 22]], [[0, 1], [2, 5]]]


class Case(test_case.TestCase):
    __test__ = False

    def runTest(self):
        """None of its own: the checks are called one by one."""


@pytest.fixture
def case():
    case = Case()
    case.setUp()
    yield case
    case.tearDown()


@pytest.mark.thorough
def test_backbone(case):
    inputs = ids()
    shapes = {"sequence_output": (3, 7, 8), "pooled_output": (3, 8)}
    case.run_backbone_test(keras_bert.BertBackbone, backbone_settings(), inputs, shapes)
    case.run_model_saving_test(keras_bert.BertBackbone, backbone_settings(), inputs)


def test_tokenizer(case):
    settings = {"vocabulary": WORDS.split()}
    case.run_preprocessing_layer_test(keras_bert.BertTokenizer, settings, TEXTS)


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("cls", "data"),
    [
        (keras_bert.BertClassifierPreprocessor, TEXTS),
        (keras_bert.BertClassifierPreprocessor, (TEXTS, [1, 0], [1.0, 0.5])),
        (keras_bert.BertMaskedLMPreprocessor, TEXTS),
        (keras_bert.BertTextEmbedderPreprocessor, TEXTS),
    ],
)
def test_preprocessors(case, cls, data):
    settings = {"tokenizer": tokenizer(), "sequence_length": 12, "padding": "full"}
    case.init_kwargs = settings
    case.run_preprocessor_test(cls, settings, data)


@pytest.mark.one_quick
@pytest.mark.parametrize("cls", TASKS)
def test_tasks_are_serialized_and_saved(case, cls):
    settings = made(cls)
    task = cls(**settings)
    inputs = inputs_of(task)
    case.run_serialization_test(task)
    case.run_model_saving_test(cls, settings, inputs)


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("cls", "data"),
    [
        (keras_bert.BertClassifier, (TEXTS, [1, 0])),
        (keras_bert.BertMultipleChoice, ((TEXTS, [["it ran", "who ?"], ["a mat", "it"]]), [0, 1])),
        (keras_bert.BertRelationClassifier, ((TEXTS, SPANS), [0, 1])),
    ],
)
def test_tasks(case, cls, data):
    case.run_task_test(cls, made(cls), data, expected_output_shape=(2, 2))


@pytest.mark.one_quick
@pytest.mark.parametrize(
    "cls",
    [
        keras_bert.BertBackbone,
        keras_bert.BertTokenizer,
        keras_bert.BertClassifierPreprocessor,
        keras_bert.BertClassifier,
    ],
)
def test_presets(case, cls):
    more = {"num_classes": 2} if cls is keras_bert.BertClassifier else {}
    network = issubclass(cls, keras.Model)
    data = ids() if network else TEXTS
    case.run_preset_test(cls, "bert_mini_en_public_domain", data, init_kwargs=more)
