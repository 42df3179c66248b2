"""Precision, recall and F1 of entities, as named entity recognition is scored.

An entity is right if its type, first and last token are: Tjong Kim Sang and De Meulder 2003,
cs/0306050, section 2.4. The counting is seqeval's.
"""

from collections.abc import Sequence
from functools import partial

from keras_bert.metrics.tag_schemes import entities, split_tags

MODES = ("strict", "conlleval")


def tagging_scores(
    labels: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]], entities: bool = True
) -> dict[str, float]:
    """Accuracy over words, and of entities precision, recall and F1, as conlleval.

    Args:
        labels: the right tags of N sentences.
        predictions: as many tags each.
        entities: False for tags that mark none, such as parts of speech.

    Returns:
        "accuracy"; with `entities` also "precision", "recall" and "f1". All from 0 to 1.

    Raises:
        ValueError: if sentences differ in length, or there is no word.
    """
    pairs = list(zip(labels, predictions, strict=True))
    right = [a == b for row, given in pairs for a, b in zip(row, given, strict=True)]
    if not right:
        raise ValueError("Nothing to score: there is no word.")
    scores = {"accuracy": sum(right) / len(right)}
    if entities:
        found = entity_scores(labels, predictions, mode="conlleval")
        scores |= {name: found[name] for name in ("precision", "recall", "f1")}
    return scores


def entity_scores(
    labels: Sequence[Sequence[str]],
    predictions: Sequence[Sequence[str]],
    scheme: str = "IOB2",
    mode: str = "strict",
) -> dict[str, float | dict[str, dict[str, float]]]:
    """Scores predicted entities against the right ones.

    The modes differ in predictions that the scheme does not allow, such as I-PER after O.
    "strict" (seqeval's mode of that name) finds entities only where the scheme has one: such an I
    is none, and in IOBES a B that no E follows is none. "conlleval" (seqeval's default, and the
    script of CoNLL-2000 and 2003) lets such a tag begin an entity and is never lower in recall;
    published figures of CoNLL-2003 are of this kind. On predictions that the scheme allows both
    agree.

    Args:
        labels: the right tags of each sentence, one a token.
        predictions: tags of the same lengths; words that the model never saw need one too.
        scheme: "IOB2" or "IOBES", of both. IOB1 has to be converted (`to_iob2`).
        mode: "strict" or "conlleval".

    Returns:
        "precision", "recall" and "f1" over all entities (micro average), fractions from 0 to 1,
        "support", the number of right entities, and "types", the same four by type. Where
        nothing is predicted precision is 0, where nothing is right recall is 0, as in conlleval.

    Raises:
        ValueError: for another scheme or mode, no sentence, sentences of different number or
            length, tags that are none, and in strict mode labels that the scheme does not allow;
            messages name sentence and position, counted from 0.
        ImportError: if seqeval is not installed.
    """
    if scheme not in ("IOB2", "IOBES"):
        raise ValueError(f"The scheme is IOB2 or IOBES, got {scheme!r}: convert with to_iob2.")
    if mode not in MODES:
        raise ValueError(f"The mode is one of {list(MODES)}, got {mode!r}.")
    if len(labels) != len(predictions):
        raise ValueError(f"{len(labels)} sentences, but predictions for {len(predictions)}.")
    if not len(labels):
        raise ValueError("Nothing to score: there are no sentences.")
    for i, (right, predicted) in enumerate(zip(labels, predictions, strict=True)):
        if mode == "strict":  # an entity of the labels that is not found would go unseen
            entities(right, scheme, i)
        split_tags(right, scheme, i)
        split_tags(predicted, scheme, i)
        if len(right) != len(predicted):
            raise ValueError(f"Sentence {i} has {len(right)} tags, but {len(predicted)} predicted.")
    texts = [[[str(tag) for tag in tags] for tags in part] for part in (labels, predictions)]
    kinds, count = _conlleval(*texts) if mode == "conlleval" else _strict(*texts, scheme)
    by_type = zip(*count(*texts, average=None, zero_division=0), strict=True)
    return _named(count(*texts, average="micro", zero_division=0)) | {
        "types": dict(zip(kinds, map(_named, by_type), strict=True))
    }


def _conlleval(labels, predictions):
    """The types that occur, in seqeval's order, and its function that counts."""
    metrics = _seqeval().metrics.sequence_labeling
    chunks = [*metrics.get_entities(labels), *metrics.get_entities(predictions)]
    return sorted({kind for kind, _, _ in chunks}), metrics.precision_recall_fscore_support


def _strict(labels, predictions, scheme):
    """As `_conlleval`."""
    seqeval = _seqeval()
    scheme = getattr(seqeval.scheme, scheme)
    right, found = (seqeval.scheme.Entities(part, scheme) for part in (labels, predictions))
    count = partial(
        seqeval.metrics.v1.precision_recall_fscore_support,
        scheme=scheme,
        entities_true=right,
        entities_pred=found,
    )
    return sorted(right.unique_tags | found.unique_tags), count


def _seqeval():
    try:
        import seqeval.metrics
        import seqeval.scheme
    except ImportError as error:
        raise ImportError(
            "entity_scores needs seqeval: `pip install --use-pep517 'keras3-bert[metrics]'`"
        ) from error
    return seqeval


def _named(scores) -> dict[str, float]:
    precision, recall, f1, support = scores
    return {
        "precision": float(precision),
        "recall": float(recall),
        "f1": float(f1),
        "support": int(support),
    }
