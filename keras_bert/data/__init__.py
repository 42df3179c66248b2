"""Data: readers of public formats, corpora for pre-training, and generated text for demos."""

from keras_bert.data.augmentation import Augmented, augment, label_first
from keras_bert.data.choices import ChoiceExamples, read_choices
from keras_bert.data.corpus import prepare_corpus
from keras_bert.data.domain_words import split_words
from keras_bert.data.pretraining import pretraining_dataset
from keras_bert.data.records import read_index
from keras_bert.data.relations import RelationExamples, read_relation_key, read_relations
from keras_bert.data.squad import (
    SquadExample,
    hold_out_articles,
    read_predictions,
    read_squad,
    write_predictions,
)
from keras_bert.data.table_rows import Table
from keras_bert.data.tables import Examples, read_table
from keras_bert.data.tagged import (
    AnnotatedTexts,
    TaggedSentences,
    read_entities,
    read_tagged,
    tag_names,
)
from keras_bert.data.validation_split import hold_out
from keras_bert.data.vocabulary_training import build_vocabulary

__all__ = [
    "AnnotatedTexts",
    "Augmented",
    "ChoiceExamples",
    "Examples",
    "RelationExamples",
    "SquadExample",
    "Table",
    "TaggedSentences",
    "augment",
    "build_vocabulary",
    "hold_out",
    "hold_out_articles",
    "label_first",
    "prepare_corpus",
    "pretraining_dataset",
    "read_choices",
    "read_entities",
    "read_index",
    "read_predictions",
    "read_relation_key",
    "read_relations",
    "read_squad",
    "read_table",
    "read_tagged",
    "split_words",
    "tag_names",
    "write_predictions",
]
