"""The preprocessor of a task: made from a checkpoint, and checked beside its backbone."""

import logging

from keras_bert.checkpoints import Checkpoint
from keras_bert.models.backbone import BertBackbone

logger = logging.getLogger("keras_bert")


def text_side(checkpoint: Checkpoint, preprocessor: type, backbone: BertBackbone, **wanted):
    """Makes the preprocessor of a task; None where the checkpoint has no tokenizer.

    Args:
        checkpoint: where the tokenizer lies, and perhaps the settings.
        preprocessor: its class, whose `settings` are the names of its arguments.
        backbone: says how many positions there are.
        **wanted: settings in place of the checkpoint's; None for what it says.
    """
    if not checkpoint.has_text_side():
        warn_without_vocabulary(checkpoint)
        return None
    saved = checkpoint.settings("preprocessor.json", preprocessor.__name__)
    settings = {"sequence_length": backbone.max_sequence_length, "padding": "bucket"}
    settings |= {name: saved[name] for name in preprocessor.settings if name in saved}
    settings |= {name: value for name, value in wanted.items() if value is not None}
    return preprocessor(checkpoint.tokenizer(), **settings)


def warn_without_vocabulary(checkpoint: Checkpoint) -> None:
    """Says that a task made of this checkpoint takes no texts."""
    logger.warning(
        "%s has no vocabulary (vocab.txt or tokenizer.json), so the task takes ids alone; for "
        "texts set its preprocessor",
        checkpoint.source.name,
    )


def check_text_side(preprocessor, backbone: BertBackbone) -> None:
    """Checks that what the preprocessor gives fits the backbone's tables.

    Raises:
        ValueError: if its rows or its vocabulary are larger.
    """
    if preprocessor is None:
        return
    if preprocessor.sequence_length > backbone.max_sequence_length:
        raise ValueError(
            f"sequence_length={preprocessor.sequence_length} exceeds the backbone's "
            f"{backbone.max_sequence_length} positions"
        )
    # A vocabulary that a saved model brings is read only after construction.
    if not preprocessor.tokenizer.has_vocabulary:
        return
    size = preprocessor.tokenizer.vocabulary_size()
    if size > backbone.vocabulary_size:
        raise ValueError(
            f"the vocabulary has {size} tokens, but the backbone's table has only "
            f"{backbone.vocabulary_size} rows"
        )
