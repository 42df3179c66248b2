"""Zero-shot classification by natural language inference."""

from collections.abc import Sequence

import numpy as np

from keras_bert.data.texts import check_texts, is_text
from keras_bert.tasks.classifier import BertClassifier


def zero_shot(
    classifier: BertClassifier,
    texts,
    candidates: Sequence[str],
    template: str = "This example is {}.",
    several: bool = False,
    batch_size: int | None = None,
    **kwargs,
):
    """Classifies texts by candidate labels that were not trained.

    Every text is a premise, and every candidate, inserted into the template, a hypothesis.
    Reference: Yin et al. 2019 (arXiv:1909.00161), as in transformers' zero-shot pipeline. A pair
    that is too long is truncated as by `BertClassifier`, the longer text first.

    Args:
        classifier: a `BertClassifier` trained on inference, such as MNLI, one of whose labels is
            "entailment" in any case.
        texts: N texts, or one text.
        candidates: C labels.
        template: a sentence with {} in place of the candidate.
        several: whether any number of candidates may be true. The probability of each is then that
            of entailment against contradiction (or against the other class if there are two). This
            also applies to a single candidate.
        batch_size: pairs of a batch, 32 by default.
        **kwargs: as `keras.Model.predict`, without a progress bar by default.

    Returns:
        (labels, probabilities): a list of the N most probable candidates, or with `several` of N
        lists of those whose probability is 0.5 or more, the most probable first; and float32
        [N, C], in the order of `candidates`. For one text a label, or a list, and [C].

    Raises:
        TypeError: if the model is not a classifier, or a text or a candidate is not a string.
        ValueError: if there are no candidates or one is repeated, the template has no {}, or the
            classifier lacks the labels.
    """
    if not hasattr(classifier, "problem"):
        raise TypeError(
            f"classifier is a {type(classifier).__name__}: expected a BertClassifier trained on "
            "inference, such as MNLI"
        )
    candidates = check_texts(candidates, "candidates")
    if not candidates or len(set(candidates)) < len(candidates):
        raise ValueError(f"candidates={candidates}: expected one or more, each once")
    hypotheses = [template.format(candidate) for candidate in candidates]
    if len(set(hypotheses)) < len(hypotheses) or template.format("") == template:
        raise ValueError(f"template={template!r}: expected {{}} in the candidate's place")
    several = several or len(candidates) == 1
    entailment, contradiction = _inference_labels(classifier, several)
    one = is_text(texts)
    texts = [texts] if one else check_texts(texts)
    shape = (len(texts), len(candidates))
    if not texts:
        return [], np.zeros(shape, "float32")
    pairs = [text for text in texts for _ in hypotheses], hypotheses * len(texts)
    logits = classifier.predict(pairs, batch_size, **{"verbose": 0} | kwargs)
    logits = logits.reshape(*shape, classifier.num_classes)
    found = _probabilities(logits, entailment, contradiction, several).numpy()
    orders = np.argsort(-found, axis=1, kind="stable")
    if several:
        labels = [
            [candidates[i] for i in order if row[i] >= 0.5]
            for order, row in zip(orders, found, strict=True)
        ]
    else:
        labels = [candidates[order[0]] for order in orders]
    return (labels[0], found[0]) if one else (labels, found)


def _inference_labels(classifier: BertClassifier, several: bool) -> tuple[int, int | None]:
    """Ids of the classes entailment and contradiction; the second only if needed."""
    names = [label.lower() for label in classifier.labels or ()]
    others = [name for name in names if name != "entailment"]
    against = others[0] if len(others) == 1 else "contradiction"
    wanted = ["entailment", against] if several else ["entailment"]
    if classifier.problem != "single_label" or not {*wanted} <= {*names}:
        raise ValueError(
            f"classifier of problem={classifier.problem!r} whose labels are {classifier.labels}: "
            'expected those of an inference model, "entailment" among them'
            + ('; several=True needs "contradiction"' if several else "")
        )
    return names.index("entailment"), names.index(against) if several else None


def _probabilities(logits, entailment: int, contradiction: int | None, several: bool):
    """Converts logits [B, C, K] of texts and C hypotheses to probabilities, float32 [B, C].

    Exactly one candidate is true, a softmax of the entailment logits over them; if `several`, each
    may be, a softmax over contradiction and entailment for each (Yin et al. 2019,
    arXiv:1909.00161).
    """
    import tensorflow as tf

    logits = tf.cast(logits, tf.float32)
    if not several:
        return tf.nn.softmax(logits[..., entailment], axis=-1)
    return tf.nn.sigmoid(logits[..., entailment] - logits[..., contradiction])
