"""What could stand for the [MASK]s of a text."""

from dataclasses import dataclass

import numpy as np

from keras_bert.arguments import check_batch_size
from keras_bert.data.texts import check_texts
from keras_bert.text.prompts import MASK, Prompt, candidate_ids, pack_prompts, read_prompts

# Logits are as wide as the vocabulary: this many, a quarter of a gigabyte, are held at once.
_MOST_LOGITS = 2**26


@dataclass(frozen=True)
class Candidate:
    """A token that could stand for a [MASK].

    Args:
        token: as the vocabulary spells it, such as "paris" or "##s".
        id: its id.
        score: its probability, from 0 to 1.
        text: the text with the token in place of the [MASK]; other [MASK]s stay.
    """

    token: str
    id: int
    score: float
    text: str


def fill_masks(
    model, texts: list, top_k: int | None, batch_size: int, targets: list[str] | None, **kwargs
) -> list[list[list[Candidate]]]:
    """Does the work of `BertMaskedLM.fill` for a list of texts."""
    batch_size = check_batch_size(batch_size)
    tokenizer, length = model.preprocessor.tokenizer, model.preprocessor.sequence_length
    candidates, top_k = candidate_ids(tokenizer, top_k, targets)
    texts = [
        text.decode("utf-8", "ignore") if isinstance(text, bytes) else text
        for text in check_texts(texts)
    ]
    prompts = read_prompts(texts, tokenizer, length)
    results = [[None] * text.count(MASK) for text in texts]
    for prompt, logits in _logits(model, prompts, batch_size, **kwargs):
        # The backbone's table may have more rows than there are tokens.
        logits = logits[: len(prompt.masks), : tokenizer.vocabulary_size()]
        ids, scores = likeliest(logits, top_k, candidates)
        for mask, mask_ids, mask_scores in zip(prompt.masks, ids, scores, strict=True):
            found = []
            for id, score in zip(mask_ids.tolist(), mask_scores.tolist(), strict=True):
                token = tokenizer.id_to_token(id)
                text = put_in(texts[prompt.text], int(mask), token)
                found.append(Candidate(token, id, score, text))
            results[prompt.text][mask] = found
    return results


def likeliest(logits: np.ndarray, k: int, candidates) -> tuple[np.ndarray, np.ndarray]:
    """The k candidates of the greatest probability, falling, and these.

    Args:
        logits: float [M, V].
        k: from 1 to C.
        candidates: int [C], the ids to choose from. Probabilities are over all V.

    Returns:
        (ids, probabilities), int [M, k] and float32 [M, k].
    """
    logits = np.asarray(logits, "float32")
    exponents = np.exp(logits - logits.max(axis=-1, keepdims=True))
    probabilities = exponents / exponents.sum(axis=-1, keepdims=True)
    probabilities = probabilities[:, candidates]
    ids = np.argpartition(-probabilities, k - 1, axis=-1)[:, :k]
    order = np.lexsort((ids, -np.take_along_axis(probabilities, ids, 1)), axis=-1)
    ids = np.take_along_axis(ids, order, 1)
    return candidates[ids], np.take_along_axis(probabilities, ids, 1)


def put_in(text: str, mask: int, token: str) -> str:
    """Puts a token in place of one [MASK]; a `##` piece joins what precedes it.

    Args:
        text: the text.
        mask: which of its [MASK]s, from 0.
        token: the token.
    """
    parts = text.split(MASK)
    before, after = MASK.join(parts[: mask + 1]), MASK.join(parts[mask + 1 :])
    if token.startswith("##"):
        before, token = before.rstrip(), token[2:]
    return before + token + after


def _logits(model, prompts: list[Prompt], batch_size: int, **kwargs):
    """Yields (prompt, logits [P, V]) of each prompt, in order of their lengths."""
    if not prompts:
        return
    # Rows of like length share a batch, so that little is spent on padding.
    prompts = sorted(prompts, key=lambda prompt: len(prompt.pieces))
    slots = max(len(prompt.masks) for prompt in prompts)
    rows = max(batch_size, _MOST_LOGITS // (slots * model.backbone.vocabulary_size))
    for start in range(0, len(prompts), rows):
        part = prompts[start : start + rows]
        text_side = model.preprocessor
        batch = pack_prompts(part, text_side.tokenizer, text_side.sequence_length)
        logits = model.predict(batch, batch_size, **kwargs)["mlm"]
        yield from zip(part, logits, strict=True)
