"""A complete BERT for Keras 3."""

import os

# Enables oneDNN's faster matrix products, which TensorFlow disables on some CPUs. TensorFlow reads
# the variable on its first import; a value set by the user is kept.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")

from keras_bert import compile_cache

compile_cache.enable()  # TensorFlow reads its flags when it first looks for devices

from keras_bert.checkpoints import save_checkpoint
from keras_bert.config import SIZES
from keras_bert.models import BertBackbone
from keras_bert.tasks import (
    BertClassifier,
    BertMaskedLM,
    BertMultipleChoice,
    BertPretrainer,
    BertQuestionAnswerer,
    BertRelationClassifier,
    BertTextEmbedder,
    BertTokenClassifier,
    extract_features,
    zero_shot,
)
from keras_bert.tasks.resizing import resize
from keras_bert.text.classifier_preprocessor import BertClassifierPreprocessor
from keras_bert.text.embedder_preprocessor import BertTextEmbedderPreprocessor
from keras_bert.text.masked_lm_preprocessor import BertMaskedLMPreprocessor
from keras_bert.text.multiple_choice_preprocessor import BertMultipleChoicePreprocessor
from keras_bert.text.question_answering_preprocessor import BertQuestionAnswererPreprocessor
from keras_bert.text.relation_preprocessor import BertRelationPreprocessor
from keras_bert.text.token_classifier_preprocessor import BertTokenClassifierPreprocessor
from keras_bert.text.tokenizer import BertTokenizer
from keras_bert.version import __version__

__all__ = [
    "SIZES",
    "BertBackbone",
    "BertClassifier",
    "BertClassifierPreprocessor",
    "BertMaskedLM",
    "BertMaskedLMPreprocessor",
    "BertMultipleChoice",
    "BertMultipleChoicePreprocessor",
    "BertPretrainer",
    "BertQuestionAnswerer",
    "BertQuestionAnswererPreprocessor",
    "BertRelationClassifier",
    "BertRelationPreprocessor",
    "BertTextEmbedder",
    "BertTextEmbedderPreprocessor",
    "BertTokenClassifier",
    "BertTokenClassifierPreprocessor",
    "BertTokenizer",
    "__version__",
    "extract_features",
    "resize",
    "save_checkpoint",
    "zero_shot",
]
