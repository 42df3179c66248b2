"""Entity-level precision, recall and F1 for named entity recognition.

An entity is correct if its type, first and last token are: Tjong Kim Sang and De Meulder 2003,
cs/0306050, section 2.4. The counts are those of seqeval.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import partial

from keras_bert.arguments import check_choice, needed
from keras_bert.metrics.tag_schemes import entities, split_tags

MODES = ("strict", "conlleval")
_TAG = re.compile(r"([BIESMLU])-.+", re.DOTALL)
_LETTERS = dict(zip("BIESMLU", "BIESIES", strict=True))  # M, L and U are variants of I, E and S


def tagging_scores(
    labels: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]], entities: bool = True
) -> dict[str, float]:
    """Word accuracy, and entity precision, recall and F1 as in conlleval.

    Args:
        labels: the true tags of N sentences.
        predictions: the predicted tags, with the same lengths.
        entities: False for tags that do not mark entities, such as parts of speech. Entities can
            be in IOB1, IOB2, IOBES, BMES or BILOU.

    Returns:
        "accuracy"; with `entities` also "precision", "recall" and "f1". All from 0 to 1.

    Raises:
        ValueError: if sentences differ in length, there is no word, or a tag is not an entity tag.
    """
    pairs = list(zip(labels, predictions, strict=True))
    right = [a == b for row, given in pairs for a, b in zip(row, given, strict=True)]
    if not right:
        raise ValueError("Nothing to score: there is no word")
    scores = {"accuracy": sum(right) / len(right)}
    if entities:
        for tag in {tag for part in (labels, predictions) for row in part for tag in row}:
            if tag != "O" and not _TAG.fullmatch(tag):
                raise ValueError(f"tag {tag!r}: expected an entity tag, or pass entities=False")
        found = _named(*_conlleval(labels, predictions)[1](average="micro"))
        scores |= {name: found[name] for name in ("precision", "recall", "f1")}
    return scores


def entity_scores(
    labels: Sequence[Sequence[str]],
    predictions: Sequence[Sequence[str]],
    scheme: str = "IOB2",
    mode: str = "strict",
) -> dict[str, float | dict[str, dict[str, float]]]:
    """Scores predicted entities.

    The modes differ in invalid predictions, such as I-PER after O. "strict" (seqeval's mode of that
    name, which needs the package) counts only entities that are valid in the scheme: not such an
    I, and in IOBES no B without an E. In "conlleval" (seqeval's default, and the script of
    CoNLL-2000 and 2003) such a tag starts an entity; published results on CoNLL-2003 use this mode.
    On valid predictions both agree.

    Args:
        labels: the true tags of each sentence, one per token.
        predictions: tags of the same lengths, including words that the model did not see.
        scheme: "IOB2" or "IOBES", of both. Convert IOB1 with `to_iob2`.
        mode: "strict" or "conlleval".

    Returns:
        "precision", "recall" and "f1" over all entities (micro average), fractions from 0 to 1,
        "support", the number of true entities, and "types", the same four by type. Precision
        is 0 without predicted entities, and recall is 0 without true ones, as in conlleval.

    Raises:
        ValueError: if the scheme or mode is unknown, there is no sentence, the number or length of
            sentences differs, a tag is invalid, or in strict mode labels are invalid in the scheme;
            messages name sentence and position, counted from 0.
        ImportError: in strict mode, if seqeval is not installed.
    """
    if scheme not in ("IOB2", "IOBES"):
        raise ValueError(f"scheme={scheme!r}: expected 'IOB2' or 'IOBES'; convert with to_iob2")
    check_choice("mode", mode, MODES)
    if len(labels) != len(predictions):
        raise ValueError(f"{len(labels)} sentences, but predictions for {len(predictions)}")
    if not len(labels):
        raise ValueError("Nothing to score: there are no sentences")
    for i, (right, predicted) in enumerate(zip(labels, predictions, strict=True)):
        if mode == "strict":  # an entity of the labels that is not found would be missed silently
            entities(right, scheme, i)
        split_tags(right, scheme, i)
        split_tags(predicted, scheme, i)
        if len(right) != len(predicted):
            raise ValueError(f"Sentence {i} has {len(right)} tags, but {len(predicted)} predicted")
    texts = [[[str(tag) for tag in tags] for tags in part] for part in (labels, predictions)]
    kinds, count = _conlleval(*texts) if mode == "conlleval" else _strict(*texts, scheme)
    by_type = zip(*count(average=None), strict=True)
    return _named(*count(average="micro")) | {
        "types": {kind: _named(*scores) for kind, scores in zip(kinds, by_type, strict=True)}
    }


def _conlleval(labels, predictions):
    """The sorted types that occur, and a function that returns their scores."""
    right, found = (
        {(i, *e) for i, t in enumerate(part) for e in _chunks(t)} for part in (labels, predictions)
    )
    counts = [Counter(kind for _, kind, *_ in part) for part in (right & found, found, right)]
    kinds = sorted({*counts[1], *counts[2]})

    def count(average):
        if average == "micro":
            return _scores(*(part.total() for part in counts))
        rows = [_scores(*(part[kind] for part in counts)) for kind in kinds]
        return zip(*rows, strict=True) if rows else [()] * 4

    return kinds, count


def _scores(right: int, predicted: int, labelled: int) -> tuple[float, float, float, int]:
    """Precision, recall, F1 and support; 0 for 0 / 0."""
    precision, recall = (right / whole if whole else 0.0 for whole in (predicted, labelled))
    return precision, recall, 2 * right / ((predicted + labelled) or 1), labelled


def _chunks(tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """The entities of a sentence, (type, start, end), as in conlleval.

    B and S start an entity, and so does any tag after O, E or S, or after another type.
    """
    found, before, kind, begun = [], "O", "", None
    for i, tag in enumerate([*tags, "O"]):
        letter, _, new = tag.partition("-")
        letter = _LETTERS.get(letter, letter)
        fresh = before in "OES" or letter in "OBS" or new != kind
        if fresh and begun is not None:
            found.append((kind, begun, i))
            begun = None
        if fresh and letter != "O":
            begun = i
        before, kind = letter, new
    return found


def _strict(labels, predictions, scheme):
    """`_conlleval` for mode "strict"."""
    with needed("mode='strict'", "seqeval", "--use-pep517 'keras3-bert[metrics]'"):
        import seqeval.metrics
        import seqeval.scheme
    scheme = getattr(seqeval.scheme, scheme)
    right, found = (seqeval.scheme.Entities(part, scheme) for part in (labels, predictions))
    count = partial(
        seqeval.metrics.v1.precision_recall_fscore_support,
        labels,
        predictions,
        zero_division=0,
        scheme=scheme,
        entities_true=right,
        entities_pred=found,
    )
    return sorted(right.unique_tags | found.unique_tags), count


def _named(precision, recall, f1, support) -> dict[str, float]:
    return {
        "precision": float(precision),
        "recall": float(recall),
        "f1": float(f1),
        "support": int(support),
    }
