"""BERT, whole, in Keras 3."""

from keras_bert.checkpoints import save_checkpoint
from keras_bert.config import SIZES
from keras_bert.models import BertBackbone
from keras_bert.tasks import (
    BertClassifier,
    BertMaskedLM,
    BertPretrainer,
    BertQuestionAnswerer,
)
from keras_bert.tasks.resizing import resize
from keras_bert.text.classifier_preprocessor import BertClassifierPreprocessor
from keras_bert.text.masked_lm_preprocessor import BertMaskedLMPreprocessor
from keras_bert.text.question_answering_preprocessor import BertQuestionAnswererPreprocessor
from keras_bert.text.tokenizer import BertTokenizer

__version__ = "0.1.0"

__all__ = [
    "SIZES",
    "BertBackbone",
    "BertClassifier",
    "BertClassifierPreprocessor",
    "BertMaskedLM",
    "BertMaskedLMPreprocessor",
    "BertPretrainer",
    "BertQuestionAnswerer",
    "BertQuestionAnswererPreprocessor",
    "BertTokenizer",
    "__version__",
    "resize",
    "save_checkpoint",
]
