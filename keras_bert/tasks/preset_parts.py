"""What a checkpoint holds for the models of pre-training beside the backbone."""

from keras_bert.checkpoints import Checkpoint
from keras_bert.models.backbone import BertBackbone
from keras_bert.text.classifier_preprocessor import BertClassifierPreprocessor
from keras_bert.text.masked_lm_preprocessor import BertMaskedLMPreprocessor


def read_text_side(
    checkpoint: Checkpoint,
    backbone: BertBackbone,
    sequence_length: int | None = None,
    padding: str | None = None,
) -> BertMaskedLMPreprocessor | None:
    """Makes the preprocessor of a checkpoint; None where it has no tokenizer.

    Args:
        checkpoint: where the tokenizer lies, and perhaps settings.
        backbone: says how many positions there are.
        sequence_length: in place of the checkpoint's.
        padding: in place of the checkpoint's.
    """
    if not checkpoint.has_text_side():
        return None
    for kind in (BertMaskedLMPreprocessor, BertClassifierPreprocessor):
        if saved := checkpoint.settings("preprocessor.json", kind.__name__):
            break
    return BertMaskedLMPreprocessor(
        checkpoint.tokenizer(),
        sequence_length or saved.get("sequence_length") or backbone.max_sequence_length,
        padding or saved.get("padding", "bucket"),
        saved.get("masking"),
    )


def saved_heads(checkpoint: Checkpoint) -> list[str]:
    """Names of the heads of pre-training that a checkpoint holds."""
    if checkpoint.contents is not None:
        return [name for name in checkpoint.heads() if name != "head"]
    if checkpoint.settings("task.json", "BertMaskedLM"):
        return ["masked_lm_head"]
    saved = checkpoint.settings("task.json", "BertPretrainer")
    if not saved:
        return []
    return ["masked_lm_head", *(["next_sentence_head"] if saved["next_sentence"] else [])]
