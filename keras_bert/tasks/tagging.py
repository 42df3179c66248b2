"""How a token classifier reads and answers: sentences to rows, logits to tags and entities."""

from collections.abc import Iterator

import keras
import numpy as np

from keras_bert.arguments import check_batch_size
from keras_bert.data.ragged import joined, joined_rows, without_padding
from keras_bert.data.tagged import AnnotatedTexts
from keras_bert.tasks.sentences import check_sentences, check_tags, to_tensor, token_weights
from keras_bert.tasks.targets import check_names
from keras_bert.text.entities import (
    TaggedEntity,
    character_offsets,
    find_entities,
    join_words,
    tags_of_spans,
)
from keras_bert.text.tag_paths import best_tags, scores_of_words
from keras_bert.text.token_classifier_preprocessor import labels_of_rows

CHUNK = 2000  # sentences that are turned into rows, or decoded, at a time


def rows_of(model, sentences: list) -> Iterator:
    """Gives (number of the first sentence, `TokenRows` of full length) piece by piece.

    Args:
        model: a `BertTokenClassifier`.
        sentences: from `check_sentences`.
    """
    for first in range(0, len(sentences), CHUNK):
        batch = to_tensor(sentences[first : first + CHUNK], "string")
        yield first, model.preprocessor.rows(batch, padding="full")


def labelled_rows(model, x, y=None, sample_weight=None) -> tuple[dict, object, object]:
    """Does the work of `BertTokenClassifier.ragged_rows` for sentences and labels apart."""
    sentences = check_sentences(x)
    if y is not None:
        y = model.encode_labels(y)
        if len(y) != len(sentences) or not isinstance(sentences[0], str):
            check_tags(sentences, y)
    by_word = False
    if sample_weight is not None:
        by_word = np.ndim(sample_weight[0]) == 1
        if len(sample_weight) != len(sentences):
            raise ValueError(f"{len(sentences)} sentences but {len(sample_weight)} weights")
        if by_word and model.crf:
            raise ValueError("sample_weight of words: with crf=True the loss is a sentence's")
    ids, labels, weights = [], [], []
    for first, rows in rows_of(model, sentences):
        mask = rows.ids["padding_mask"]
        ids.append({name: without_padding(value, mask) for name, value in rows.ids.items()})
        if y is None:
            continue
        some = y[first : first + CHUNK]
        check_tags([range(n) for n in rows.counts.numpy()], some, first=first)
        found, given = labels_of_rows(rows, to_tensor(some, "int32")), None
        labels.append(without_padding(found, mask))
        if by_word:
            given = sample_weight[first : first + CHUNK]
            for number, (own, tags) in enumerate(zip(given, some, strict=True)):
                if len(own) != len(tags):
                    raise ValueError(
                        f"sentence {first + number}: {len(tags)} words, {len(own)} weights"
                    )
            given = labels_of_rows(rows, to_tensor(given, "float32"), 0.0).numpy()
        elif sample_weight is not None:
            given = sample_weight[rows.sentence.numpy() + first]
        weights.append(without_padding(token_weights(found.numpy(), given), mask))
    if y is None:
        return joined_rows(ids), None, None
    return joined_rows(ids), joined(labels), joined(weights)


def tags_of_texts(model, given: AnnotatedTexts) -> list[list[str]]:
    """The tags of the words of texts with character spans.

    A model without labels gets O, B-TYPE and I-TYPE of all types.
    """
    model.check_has_preprocessor()
    if model.labels is None:
        types = sorted({kind for spans in given.entities for *_, kind in spans})
        names = ["O"] + [f"{letter}-{kind}" for letter in "BI" for kind in types]
        model.labels = check_names(names, model.num_classes)
    tags = []
    for _, rows in rows_of(model, check_sentences(given.texts)):
        for words in zip(rows.starts.to_list(), rows.ends.to_list(), strict=True):
            row = len(tags)
            spans = given.entities[row]
            tags.append(tags_of_spans(spans, *words, model.labels, given.name(row)))
    return tags


def words_of_texts(model, texts) -> list[list[str]]:
    """The words of plain texts, as they stand there."""
    model.check_has_preprocessor()
    if len(texts) == 0:
        return []
    texts = check_sentences(texts)
    found = []
    for first, rows in rows_of(model, texts):
        offsets = zip(rows.starts.to_list(), rows.ends.to_list(), strict=True)
        for text, (starts, ends) in zip(texts[first:], offsets, strict=False):
            found.append([text[a:b] for a, b in zip(starts, ends, strict=True)])
    return found


def word_scores(model, x, batch_size: int | None, kwargs: dict) -> Iterator:
    """Gives (sentences, `TokenRows`, logits of their words [B, None, K]) piece by piece."""
    model.check_has_preprocessor()
    if len(x) == 0:
        return
    sentences = check_sentences(x)
    for first, rows in rows_of(model, sentences):
        ids = {name: value.numpy() for name, value in rows.ids.items()}
        logits = model.predict_rows(ids, check_batch_size(batch_size), **kwargs)
        yield sentences[first : first + CHUNK], rows, scores_of_words(logits, rows)


def best_ids(model, x, batch_size: int | None, kwargs: dict) -> list[list[int]]:
    """The id of each word's label."""
    found = []
    for _, _, scores in word_scores(model, x, batch_size, kwargs):
        found += best_tags(scores, _chain(model))[0].to_list()
    return found


def entities_of(model, x, batch_size: int | None, kwargs: dict) -> list[list[TaggedEntity]]:
    """The entities of each sentence."""
    found = []
    for sentences, rows, scores in word_scores(model, x, batch_size, kwargs):
        entities = find_entities(*best_tags(scores, _chain(model)), model.labels)
        starts, ends = entities.start, entities.end
        if rows.starts is not None:
            starts, ends = character_offsets(entities, rows.starts, rows.ends)
        parts = (entities.sentence, entities.label, starts, ends, entities.score)
        here = [[] for _ in sentences]
        for number, label, start, end, score in zip(
            *(part.numpy().tolist() for part in parts), strict=True
        ):
            text = sentences[number][start:end]
            text = text if isinstance(text, str) else join_words(text)
            here[number].append(TaggedEntity(text, label.decode(), start, end, score))
        found += here
    return found


def _chain(model) -> list | None:
    """What `best_tags` takes for a chain."""
    if model.chain is None:
        return None
    return [keras.ops.convert_to_numpy(part) for part in model.chain.scores]
