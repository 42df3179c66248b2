"""BERT's encoder as one functional model."""

import keras
import keras_hub

from keras_bert.config import find_size
from keras_bert.layers import (
    Adapter,
    AttentionMask,
    BertEmbeddings,
    EncoderBlock,
    PackTexts,
    UnpackTexts,
)
from keras_bert.layers.initializers import blank_weights, truncated_normal


@keras.saving.register_keras_serializable(package="keras_bert")
class BertBackbone(keras_hub.models.Backbone):
    """The encoder of Devlin et al. 2019: ids in, hidden states out.

    Weights start from a normal law of deviation `initializer_range` cut at two deviations, biases
    from zero. The 24 small published sizes, Base and Large are in `keras_bert.config.SIZES`; see
    `from_size`.

    Args:
        vocabulary_size: rows of the word table V.
        num_layers: encoder blocks.
        num_heads: attention heads N, a divisor of `hidden_dim`.
        hidden_dim: hidden units H.
        intermediate_dim: feed-forward units.
        max_sequence_length: rows of the position table; longer inputs raise.
        num_segments: rows of the segment table.
        activation: "gelu_exact" (Hugging Face checkpoints), "gelu_tanh" (the original's) or a
            Keras activation's name.
        hidden_dropout: share of units dropped after the embeddings and before each residual.
        attention_dropout: share of attention probabilities dropped.
        layer_norm_epsilon: added to the variance in each normalization.
        initializer_range: deviation of the initial law.
        output_hidden_states: also give "hidden_states".
        output_attentions: also give "attention_probabilities".
        gradient_checkpointing: recompute each block in the backward pass to save memory.
        adapter_dim: units of the bottlenecks of two adapters in each block (Houlsby et al. 2019);
            None for no adapters. See `keras_bert.models.tune`.
        dtype: Keras dtype policy or its name, such as "mixed_bfloat16".

    Call arguments:
        inputs: a dict of int32 tensors of shape [B, T]:
            `token_ids`; `segment_ids`; `padding_mask`, 1 for tokens and 0 for padding; and, if
            wanted, `position_ids` (default 0, 1, 2, ...) and `sequence_ids` (tokens attend only
            to tokens of the same id, so that several texts can share a row). Or `packed_from`
            [R, P], which lays the B texts into R rows of P tokens for the encoder alone: outputs
            are those of the texts (see `keras_bert.layers.packing`).

    Returns:
        A dict: `sequence_output` float [B, T, H]; `pooled_output` float [B, H], a dense tanh
        layer on position 0; on request `hidden_states`, a list of num_layers + 1 tensors
        [B, T, H] from the embeddings up, and `attention_probabilities`, a list of num_layers
        tensors [B, N, T, T], with `packed_from` those of
        the rows, [R, N, P, P].

    Raises:
        TypeError: for an unknown argument.
        ValueError: if T exceeds `max_sequence_length` and no `position_ids` are given, if an
            input has not two axes, or if `packed_from` comes with the ids that it sets.
    """

    def __init__(
        self,
        vocabulary_size: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        intermediate_dim: int,
        max_sequence_length: int = 512,
        num_segments: int = 2,
        activation: str = "gelu_exact",
        hidden_dropout: float = 0.1,
        attention_dropout: float = 0.1,
        layer_norm_epsilon: float = 1e-12,
        initializer_range: float = 0.02,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
        gradient_checkpointing: bool = False,
        adapter_dim: int | None = None,
        dtype=None,
        **kwargs,
    ):
        # Keras would pass over a misspelt argument, and so over one of a task's `from_preset`.
        if unknown := sorted(kwargs.keys() - {"name", "trainable"}):
            raise TypeError(
                f"unknown argument {', '.join(unknown)}: BertBackbone has none so named"
            )
        # === Layers ===
        self.embeddings = BertEmbeddings(
            vocabulary_size,
            hidden_dim,
            max_sequence_length,
            num_segments,
            hidden_dropout,
            layer_norm_epsilon,
            initializer_range,
            dtype=dtype,
            name="embeddings",
        )
        self.attention_mask = AttentionMask(dtype=dtype, name="attention_mask")
        self.blocks = [
            EncoderBlock(
                num_heads,
                intermediate_dim,
                activation,
                hidden_dropout,
                attention_dropout,
                layer_norm_epsilon,
                initializer_range,
                gradient_checkpointing,
                adapter_dim,
                output_attentions,
                dtype=dtype,
                name=f"block_{i}",
            )
            for i in range(num_layers)
        ]
        self.pooler = keras.layers.Dense(
            hidden_dim,
            activation="tanh",
            kernel_initializer=truncated_normal(initializer_range),
            dtype=dtype,
            name="pooler",
        )

        self.pack = PackTexts(name="pack")
        self.unpack = UnpackTexts(dtype=dtype, name="unpack")
        self.unpack_first = UnpackTexts(first_only=True, dtype=dtype, name="unpack_first")

        # === Functional model ===
        def ids(name, optional=False):
            return keras.Input((None,), dtype="int32", name=name, optional=optional)

        inputs = {name: ids(name) for name in ("token_ids", "segment_ids", "padding_mask")}
        inputs |= {name: ids(name, optional=True) for name in OPTIONAL_INPUTS}
        rows = self.pack(inputs)
        x = self.embeddings(rows["token_ids"], rows["segment_ids"], rows["position_ids"])
        mask = self.attention_mask(rows["padding_mask"], rows["sequence_ids"])
        hidden_states, attention_probabilities = [x], []
        for block in self.blocks:
            x, probabilities = block(x, mask)  # [B, T, H], [B, N, T, T]
            hidden_states.append(x)
            attention_probabilities.append(probabilities)

        def unpacked(x, layer=self.unpack):
            return layer(x, inputs["padding_mask"], inputs["packed_from"])

        outputs = {
            "sequence_output": unpacked(x),
            "pooled_output": self.pooler(unpacked(x, self.unpack_first)),
        }
        if output_hidden_states:
            outputs["hidden_states"] = [unpacked(state) for state in hidden_states]
        if output_attentions:
            outputs["attention_probabilities"] = attention_probabilities
        super().__init__(inputs=inputs, outputs=outputs, dtype=dtype, **kwargs)

        # === Configuration ===
        self.vocabulary_size = vocabulary_size
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.hidden_dim = hidden_dim
        self.intermediate_dim = intermediate_dim
        self.max_sequence_length = max_sequence_length
        self.num_segments = num_segments
        self.activation = activation
        self.hidden_dropout = hidden_dropout
        self.attention_dropout = attention_dropout
        self.layer_norm_epsilon = layer_norm_epsilon
        self.initializer_range = initializer_range
        self.output_hidden_states = output_hidden_states
        self.output_attentions = output_attentions
        self.gradient_checkpointing = gradient_checkpointing
        self.adapter_dim = adapter_dim

    def __call__(self, inputs, *args, **kwargs):
        return super().__call__(complete_inputs(inputs), *args, **kwargs)

    @classmethod
    def blank(cls, **settings) -> "BertBackbone":
        """An encoder whose tables and kernels are zeros: made sooner, to read all weights into.

        Args:
            **settings: as of the class.

        Returns:
            The backbone.
        """
        with blank_weights():
            return cls(**settings)

    @classmethod
    def from_size(cls, size: str, vocabulary_size: int = 30522, **kwargs) -> "BertBackbone":
        """Makes a backbone with new weights in a published size.

        Args:
            size: a key of `keras_bert.config.SIZES`, such as "tiny", "base" or "L6_H256", or
                other layers and width, such as "L9_H384"; see `config.find_size`.
            vocabulary_size: rows of the word table; 30,522 is the English uncased vocabulary.
            **kwargs: any other argument of the class.

        Returns:
            The backbone.

        Raises:
            ValueError: for an unknown size.
        """
        return cls(vocabulary_size, **{**find_size(size), **kwargs})

    def freeze(self, num_blocks: int | None = None) -> None:
        """Stops the training of the embeddings and of the first blocks.

        Compile the model again afterwards, as Keras asks after every change of `trainable`.

        Args:
            num_blocks: how many blocks from the bottom; None for the whole backbone.

        Raises:
            ValueError: if there are fewer blocks.
        """
        if num_blocks is None:
            self.trainable = False
            return
        if not 0 <= num_blocks <= self.num_layers:
            raise ValueError(f"num_blocks={num_blocks}: expected 0 to {self.num_layers}")
        for layer in (self.embeddings, *self.blocks[:num_blocks]):
            layer.trainable = False

    @property
    def adapters(self) -> list[Adapter]:
        """The adapters of all blocks from the bottom up; none without `adapter_dim`."""
        if self.adapter_dim is None:
            return []
        pairs = [(block.attention_adapter, block.feedforward_adapter) for block in self.blocks]
        return [adapter for pair in pairs for adapter in pair]

    def default_lora_layer_names(self) -> list[str]:
        """The dense layers that `enable_lora` gives low-rank updates (Hu et al. 2021)."""
        return ["query", "value"]

    def get_config(self):
        return super().get_config() | {
            "vocabulary_size": self.vocabulary_size,
            "num_layers": self.num_layers,
            "num_heads": self.num_heads,
            "hidden_dim": self.hidden_dim,
            "intermediate_dim": self.intermediate_dim,
            "max_sequence_length": self.max_sequence_length,
            "num_segments": self.num_segments,
            "activation": self.activation,
            "hidden_dropout": self.hidden_dropout,
            "attention_dropout": self.attention_dropout,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "initializer_range": self.initializer_range,
            "output_hidden_states": self.output_hidden_states,
            "output_attentions": self.output_attentions,
            "gradient_checkpointing": self.gradient_checkpointing,
            "adapter_dim": self.adapter_dim,
        }


OPTIONAL_INPUTS = ("position_ids", "sequence_ids", "packed_from")


def complete_inputs(inputs: dict) -> dict:
    """Adds None for the optional inputs that are not there, and checks the others' axes.

    Raises:
        ValueError: if an input has not the two axes [B, T].
    """
    for name, value in inputs.items():
        if value is not None and len(value.shape) != 2:
            raise ValueError(
                f"input '{name}' has shape {tuple(value.shape)}; expected two axes [batch, "
                "tokens] (one text alone needs a batch axis in front: value[None])"
            )
    return {**dict.fromkeys(OPTIONAL_INPUTS), **inputs}
