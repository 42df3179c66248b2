"""The preprocessor of a task, checked beside its backbone."""

from keras_bert.models.backbone import BertBackbone


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
