"""Batches for pre-training from a prepared corpus: settings, and their checks."""

import functools
import os
import warnings
from collections.abc import Callable
from typing import Any

from keras_bert.arguments import check_above_zero, check_choice, check_count, check_number
from keras_bert.data.records import CorpusIndex, read_index
from keras_bert.data.row_stream import RowStream
from keras_bert.text.tokenizer import BertTokenizer

PAIRS = ("nsp", "sop", "nsp_sop")
OBJECTIVES = (*PAIRS, "mlm", "lm")


def pretraining_dataset(
    folder: str | os.PathLike[str],
    sequence_length: int = 128,
    max_predictions: int = 20,
    objective: str = "nsp",
    batch_size: int = 256,
    seed: int = 0,
    *,
    short_seq_prob: float = 0.1,
    cross_documents: bool = False,
    repeat: bool = True,
    start: int = 0,
    block_tokens: int = 2_000_000,
    tokenizer: BertTokenizer | None = None,
    num_parallel_calls: int | None = None,
    final_rate: float | None = None,
    rate_steps: int | None = None,
    **masking: Any,
) -> Any:
    """Streams batches for pre-training, with new sentence pairs and dynamic masking in every epoch.

    The same arguments give the same batches on any machine and at any parallelism, and row r of the
    stream is the same for every batch size. Remaining rows of an epoch go into the first batch of
    the next epoch; none is dropped.

    Args:
        folder: the folder of the corpus, see `prepare_corpus`.
        sequence_length: L, number of tokens in a row.
        max_predictions: P, maximum number of masked tokens in a row. The paper uses 20 at length
            128; use `int(0.15 * sequence_length)` or slightly more. For "lm" the maximum number of
            tokens to predict: `sequence_length - 1` for all.
        objective: "nsp", pairs for next sentence prediction as in the original, label 0 for the
            true next sentence and 1 for a random one; "sop", pairs for sentence order prediction,
            label 0 in order and 1 swapped; "nsp_sop", for each document those of the one
            or of the other, drawn anew in each epoch; "mlm", text of full length in one segment,
            without labels; "lm", the same text unmasked, to predict the next token at each position
            with a backbone of `causal=True`. See `pairing.py` for the algorithms.
        batch_size: B, number of rows in a batch.
        seed: seed of all draws.
        short_seq_prob: fraction of documents whose rows have a shorter target length, drawn anew
            in each epoch.
        cross_documents: for "mlm" and "lm": whether a row may continue with the next document,
            after a [SEP].
        repeat: whether the stream is endless. If not, it is the first epoch, always with the same
            masks, for evaluation. Its last batch may be smaller.
        start: index of the first batch. Earlier ones are counted, not computed.
        block_tokens: approximate number of tokens in a block, the set of documents from which
            random next sentences are drawn. Larger blocks mix better and take more memory.
        tokenizer: tokenizer of the model, to check that the corpus has its vocabulary.
        num_parallel_calls: number of blocks, and of chunks to mask, computed in parallel. By
            default `tf.data` decides.
        final_rate: the masking rate goes linearly from `rate` to this one (Wettig et al. 2023 and
            Ankner et al. 2024 find more masks better at first); None for a fixed rate. It is a
            function of the position in the stream, in chunks of 512 rows, so a resumed run
            continues with it; with `repeat=False` the rate is `rate` at all rows.
        rate_steps: number of batches after which `final_rate` is reached, and kept.
        **masking: further settings of `Masker`, such as `rate` or `unit`; none for "lm".

    Returns:
        A `tf.data.Dataset` of dicts (see `contract.py`): `token_ids`, `segment_ids` and
        `padding_mask` int32 [B, L], `mask_positions` and `mask_ids` int32 [B, P], `mask_weights`
        float32 [B, P], and with pairs `next_sentence_labels` int32 [B]. Shapes
        are static if it repeats. Its attribute `starting_at` is a function from a number of batches
        to the same dataset as `skip`, but much faster; datasets derived from it, such as by `map`,
        do not have it.

    Raises:
        FileNotFoundError: if the corpus does not exist or is incomplete.
        ValueError: if a setting is out of range, the corpus is damaged, has another vocabulary or
            is too small for the objective, or the vocabulary has no [MASK].
        tf.errors.InvalidArgumentError: while reading, if a record has another vocabulary.

    Warns:
        UserWarning: if `max_predictions` does not suit the length, or next sentence prediction has
            only one document to draw from or almost no true pairs.
    """
    check_choice("objective", objective, OBJECTIVES)
    pairs = objective in PAIRS
    if cross_documents and pairs:
        raise ValueError(f"cross_documents=True: expected objective='mlm', not {objective!r}")
    specials = 3 if pairs else 2
    if sequence_length < specials + 2:
        raise ValueError(
            f"sequence_length={sequence_length}: expected at least {specials + 2}, for {specials} "
            "special and 2 other tokens"
        )
    check_count("batch_size", batch_size)
    check_count("block_tokens", block_tokens)
    check_count("start", start, 0)
    check_number("short_seq_prob", short_seq_prob, most=1)
    rate = masking.get("rate", 0.15)
    rates = _rates(rate, final_rate, rate_steps, batch_size) if repeat else None
    if objective == "lm" and (masking or final_rate is not None):
        given = ", ".join([*masking, *(["final_rate"] if final_rate is not None else [])])
        raise ValueError(f"objective='lm' masks nothing: expected no {given}")
    specials, kind = (1, "follow another") if objective == "lm" else (specials, "are not special")
    if max_predictions > sequence_length - specials:
        raise ValueError(
            f"max_predictions={max_predictions}: expected at most {sequence_length - specials}, "
            f"the tokens of a row that {kind}"
        )
    if objective != "lm":
        most = max(rate, final_rate or rate) if repeat else rate
        _warn_of_cap(max_predictions, sequence_length, most)
    index = read_index(folder)
    if objective in ("nsp", "nsp_sop"):
        _check_documents(index, sequence_length)
    own = index.make_tokenizer()
    if tokenizer is not None and own.get_vocabulary() != tokenizer.get_vocabulary():
        raise ValueError(
            f"{index.folder} has a vocabulary of {own.vocabulary_size()} tokens, but the tokenizer "
            f"has a different one, of {tokenizer.vocabulary_size()}"
        )
    return RowStream(
        index=index,
        make_spans=functools.partial(
            _spans_maker(objective, cross_documents, index.documents == 1),
            sequence_length=sequence_length,
            short_seq_prob=short_seq_prob,
        ),
        joined=cross_documents,
        tokenizer=own,
        masker=_masker(index, own, max_predictions, masking, objective),
        rates=rates,
        sequence_length=sequence_length,
        batch_size=batch_size,
        seed=seed,
        repeat=repeat,
        block_documents=_documents_in_a_block(index, block_tokens),
        num_parallel_calls=num_parallel_calls,
    ).starting_at(start)


def _warn_of_cap(max_predictions: int, sequence_length: int, rate: float) -> None:
    full = int(rate * sequence_length)
    if max_predictions < full or max_predictions > 2 * full + 1:
        effect = "rows get fewer masks" if max_predictions < full else "most slots are unused"
        warnings.warn(
            f"max_predictions={max_predictions}, but {rate} of {sequence_length} tokens are {full}"
            f": {effect}. Is it the setting for another sequence_length?",
            stacklevel=3,
        )


def _check_documents(index: CorpusIndex, sequence_length: int) -> None:
    if index.documents == 1 and index.sentences == 1:
        raise ValueError(
            f"{index.folder}: next sentence prediction needs at least 2 sentences, and to be "
            "useful at least 2 documents, but the corpus is one document of one sentence"
        )
    if index.documents == 1:
        said = (
            "the corpus is one document, so random next sentences come from the document itself "
            "(never the true next one). Are there blank lines between documents? Or use the "
            "objective 'mlm'."
        )
    elif index.sentences < 1.1 * index.documents:
        said = (
            f"{index.documents} documents have {index.sentences} sentences, so nearly all pairs "
            "are random ones. Is there a blank line after every sentence?"
        )
    elif index.tokens > index.sentences * sequence_length:
        said = (
            f"a sentence has {index.tokens // index.sentences} tokens on average, more than a row "
            f"of {sequence_length}, so most next sentences are random. Is there one sentence per "
            "line?"
        )
    else:
        return
    warnings.warn(f"{index.folder}: {said}", stacklevel=3)


def _rates(
    rate: float, final_rate: float | None, steps: int | None, batch_size: int
) -> tuple[float, float, int] | None:
    """The settings of a falling or rising masking rate, for `RowStream`."""
    if (final_rate is None) != (steps is None):
        raise ValueError(
            f"final_rate={final_rate}, rate_steps={steps}: expected both or neither of them"
        )
    if final_rate is None or steps is None:
        return None
    check_above_zero("final_rate", final_rate, most=1)
    return rate, final_rate, check_count("rate_steps", steps) * batch_size


def _masker(
    index: CorpusIndex, own: BertTokenizer, max_predictions: int, settings: dict, objective: str
) -> Any:
    from keras_bert.data.masking import Masker, NextTokens

    try:
        if objective == "lm":
            return NextTokens(max_predictions)
        return Masker(own, max_predictions, **settings)
    except ValueError as error:
        raise ValueError(f"{index.folder}: {error}") from error


def _spans_maker(objective: str, cross_documents: bool, alone: bool) -> Callable:
    from keras_bert.data import pairing

    if objective == "nsp":
        return functools.partial(pairing.next_sentence_spans, alone=alone)
    if objective == "sop":
        return pairing.sentence_order_spans
    if objective == "nsp_sop":
        return functools.partial(pairing.next_or_order_spans, alone=alone)
    return pairing.joined_spans if cross_documents else pairing.packed_spans


def _documents_in_a_block(index: CorpusIndex, block_tokens: int) -> int:
    """Documents per block: about `block_tokens`, at least 2, and without a small last block."""
    size = max(2, round(block_tokens * index.documents / index.tokens))
    while size < index.documents and 0 < index.documents % size < max(2, size / 2):
        size += 1
    return size
