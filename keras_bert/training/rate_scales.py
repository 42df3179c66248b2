"""Layer-wise learning rates."""

from keras_bert.arguments import check_above_zero


def layerwise_rate_scales(model, decay: float) -> dict[str, float]:
    """Factors for `rate_scales` that shrink from the head of a model down to its embeddings.

    Block i of L, from 0 at the bottom, gets decay^(L - i), the embeddings decay^(L + 1); the pooler
    and everything outside of the backbone 1. So each layer learns at `decay` times the rate of the
    one above it (Howard and Ruder 2018, section 3.2, discriminative fine-tuning; Clark et al. 2020,
    ELECTRA, whose code has one more power on everything below the head).

    Args:
        model: a model with a `backbone` that has `embeddings` and `blocks`.
        decay: the factor from one layer to the next, such as 0.9.

    Returns:
        A dict from the path of each trainable weight to its factor.

    Raises:
        ValueError: unless 0 < decay <= 1.
    """
    check_above_zero("decay", decay, most=1)
    scales = dict.fromkeys((weight.path for weight in model.trainable_weights), 1.0)
    blocks = model.backbone.blocks
    layers_down = [*reversed(blocks), model.backbone.embeddings]
    for power, layer in enumerate(layers_down, start=1):
        scales |= {weight.path: decay**power for weight in layer.trainable_weights}
    return scales
