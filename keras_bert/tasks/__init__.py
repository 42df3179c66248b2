"""Tasks: a network with its preprocessor, which trains, answers, saves itself and is served."""

from keras_bert.data.examples import Examples
from keras_bert.serving.signatures import Column
from keras_bert.tasks.classifier import BertClassifier
from keras_bert.tasks.distillation import distiller, keep_blocks, soft_labels
from keras_bert.tasks.features import extract_features
from keras_bert.tasks.labelled import Labelled
from keras_bert.tasks.masked_lm import BertMaskedLM
from keras_bert.tasks.multiple_choice import BertMultipleChoice
from keras_bert.tasks.pretrainer import BertPretrainer
from keras_bert.tasks.question_answerer import BertQuestionAnswerer
from keras_bert.tasks.relation_classifier import BertRelationClassifier
from keras_bert.tasks.task import Answer, BertTask, Rows
from keras_bert.tasks.text_embedder import BertTextEmbedder
from keras_bert.tasks.token_classifier import BertTokenClassifier
from keras_bert.tasks.zero_shot import zero_shot

__all__ = [
    "Answer",
    "BertClassifier",
    "BertMaskedLM",
    "BertMultipleChoice",
    "BertPretrainer",
    "BertQuestionAnswerer",
    "BertRelationClassifier",
    "BertTask",
    "BertTextEmbedder",
    "BertTokenClassifier",
    "Column",
    "Examples",
    "Labelled",
    "Rows",
    "distiller",
    "extract_features",
    "keep_blocks",
    "soft_labels",
    "zero_shot",
]
