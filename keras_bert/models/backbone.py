"""BERT's encoder as a functional model."""

import keras
import keras_hub
import numpy as np

from keras_bert.arguments import check_count, check_number
from keras_bert.config import find_size
from keras_bert.layers import (
    Adapter,
    AttentionMask,
    BertEmbeddings,
    EncoderBlock,
)
from keras_bert.layers.initializers import blank_weights, truncated_normal
from keras_bert.layers.packing import (
    last_tokens,
    pack_texts,
    state_of,
    unpack_one,
    unpack_texts,
)

# Inputs that a call accepts in addition to the three of the functional model.
OPTIONAL_INPUTS = ("position_ids", "sequence_ids", "token_embeddings", "packed_from")


@keras.saving.register_keras_serializable(package="keras_bert")
class BertBackbone(keras_hub.models.Backbone):
    """The encoder of Devlin et al. 2019, from token ids to hidden states.

    Weights are initialized from a truncated normal with stddev `initializer_range`, biases with
    zeros. `keras_bert.config.SIZES` has the 24 small published sizes, Base and Large; see
    `from_size`.

    Args:
        vocabulary_size: vocabulary size V.
        num_layers: number of encoder blocks.
        num_heads: number of attention heads N, a divisor of `hidden_dim`.
        hidden_dim: hidden size H.
        intermediate_dim: number of feed-forward units.
        max_sequence_length: number of positions; longer inputs raise an error.
        num_segments: number of segment ids.
        activation: "gelu_exact" (Hugging Face checkpoints), "gelu_tanh" (the original's) or the
            name of a Keras activation.
        hidden_dropout: dropout rate after the embeddings and before each residual sum.
        attention_dropout: dropout rate of the attention probabilities.
        layer_norm_epsilon: added to the variance in each LayerNorm.
        initializer_range: stddev of the truncated normal initializer.
        output_hidden_states: also return "hidden_states".
        output_attentions: also return "attention_probabilities".
        gradient_checkpointing: recompute each block in the backward pass to save memory.
        adapter_dim: bottleneck size of the two adapters in each block (Houlsby et al. 2019);
            None for no adapters. See `keras_bert.models.tune`.
        causal: whether tokens attend only to themselves and to tokens before them, for pre-training
            from left to right (the objective "lm" of `pretraining_dataset`). The pooled output is
            then that of the last token, the only one that has seen the text. BERT's is False.
        dtype: Keras dtype policy or its name, such as "mixed_bfloat16".

    Call arguments:
        inputs: a dict of int32 tensors of shape [B, T]: `token_ids`; `segment_ids`;
            `padding_mask`, 1 for tokens and 0 for padding. A call also accepts
            `position_ids` (default 0, 1, 2, ...); `sequence_ids` (tokens attend only to tokens
            with the same id, for sequence packing); `token_embeddings`, float [B, T, H],
            used instead of the word embeddings, for gradients with respect to them; and
            `packed_from` [R, P], which packs the B texts into R rows of P tokens inside the
            encoder, with outputs per text (see `keras_bert.layers.packing`).

    Returns:
        A dict: `sequence_output` float [B, T, H]; `pooled_output` float [B, H], a dense tanh
        layer on position 0 (if `causal`, on the last token); on request `hidden_states`, a list
        of num_layers + 1 tensors [B, T, H] starting with the embeddings, and
        `attention_probabilities`, a list of num_layers tensors [B, N, T, T], or [R, N, P, P] of
        the packed rows with `packed_from`.

    Raises:
        TypeError: for an unknown argument.
        ValueError: if T exceeds `max_sequence_length` and no `position_ids` are given, if an
            input does not have two axes, if an id in an array or eager tensor is outside its
            table, or if `packed_from` is passed together with inputs that it sets. Inside a
            compiled function, which cannot raise, the outputs of a row with an id outside its
            table are NaN.
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
        causal: bool = False,
        dtype=None,
        **kwargs,
    ):
        # Keras would ignore a misspelt argument, and so would a task's `from_preset`.
        if unknown := sorted(kwargs.keys() - {"name", "trainable"}):
            raise TypeError(
                f"unknown argument {', '.join(unknown)}: BertBackbone has no such argument"
            )
        for name, value, least in (
            ("vocabulary_size", vocabulary_size, 1),
            ("num_layers", num_layers, 0),
            ("num_heads", num_heads, 1),
            ("hidden_dim", hidden_dim, 1),
            ("intermediate_dim", intermediate_dim, 1),
            ("max_sequence_length", max_sequence_length, 1),
            ("num_segments", num_segments, 1),
        ):
            check_count(name, value, least)
        check_number("layer_norm_epsilon", layer_norm_epsilon)
        check_number("initializer_range", initializer_range)
        if not isinstance(causal, bool):
            raise TypeError(f"causal={causal!r}: expected True or False")
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
        self.attention_mask = AttentionMask(causal, dtype=dtype, name="attention_mask")
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

        # === Functional model ===
        self.causal = causal
        self.output_hidden_states = output_hidden_states
        self.output_attentions = output_attentions
        names = ("token_ids", "segment_ids", "padding_mask")
        inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in names}
        super().__init__(inputs=inputs, outputs=self._encode(inputs), dtype=dtype, **kwargs)
        self.token_embedding = self.embeddings.word  # KerasHub's name for it

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
        self.gradient_checkpointing = gradient_checkpointing
        self.adapter_dim = adapter_dim

    def _encode(self, inputs: dict, training=None) -> dict:
        """Runs the network, on symbolic inputs in the constructor and on tensors in a call."""
        packed_from = inputs.get("packed_from")
        rows = inputs if packed_from is None else pack_texts(inputs)
        x = self.embeddings(
            rows["token_ids"],
            rows["segment_ids"],
            rows.get("position_ids"),
            rows.get("token_embeddings"),
            training=training,
        )
        mask = self.attention_mask(rows["padding_mask"], rows.get("sequence_ids"))
        hidden_states, attention_probabilities = [x], []
        for block in self.blocks:
            x, probabilities = block(x, mask, training=training)  # [B, T, H], [B, N, T, T]
            hidden_states.append(x)
            attention_probabilities.append(probabilities)

        if packed_from is not None:
            texts = (inputs["padding_mask"], packed_from)
            pooled = unpack_one(x, *texts, last=self.causal, training=training)
            hidden_states = [unpack_texts(state, *texts) for state in hidden_states]
        elif self.causal:
            pooled = state_of(x, last_tokens(rows["padding_mask"]))
        else:
            pooled = x[:, 0, :]
        outputs = {"sequence_output": hidden_states[-1], "pooled_output": self.pooler(pooled)}
        if self.output_hidden_states:
            outputs["hidden_states"] = hidden_states
        if self.output_attentions:
            outputs["attention_probabilities"] = attention_probabilities
        return outputs

    def call(self, inputs, training=None, mask=None):
        check_ids(inputs, self.limits)
        if any(inputs.get(name) is not None for name in OPTIONAL_INPUTS):
            # Cast as by the functional model: ids on a GPU are int64.
            inputs = {
                name: value
                if name == "token_embeddings"
                else keras.ops.convert_to_tensor(value, dtype="int32")
                for name, value in inputs.items()
                if value is not None
            }
            return self._encode(inputs, training)
        inputs = {name: value for name, value in inputs.items() if name not in OPTIONAL_INPUTS}
        return super().call(inputs, training=training, mask=mask)

    def compute_output_spec(self, inputs, training=None, mask=None):
        if any(inputs.get(name) is not None for name in OPTIONAL_INPUTS):
            return keras.backend.compute_output_spec(self._encode, inputs)
        return super().compute_output_spec(inputs)

    @classmethod
    def blank(cls, **settings) -> "BertBackbone":
        """Creates an encoder with zeros as weights, faster, to load a checkpoint into.

        Args:
            **settings: arguments of the class.

        Returns:
            The backbone.
        """
        with blank_weights():
            return cls(**settings)

    @classmethod
    def from_size(cls, size: str, vocabulary_size: int = 30522, **kwargs) -> "BertBackbone":
        """Creates a backbone of a published size with new weights.

        Args:
            size: a key of `keras_bert.config.SIZES`, such as "tiny", "base" or "L6_H256", or
                other layers and hidden size, such as "L9_H384"; see `config.find_size`.
            vocabulary_size: size of the vocabulary; 30,522 is that of the English uncased one.
            **kwargs: any other argument of the class.

        Returns:
            The backbone.

        Raises:
            ValueError: for an unknown size.
        """
        return cls(vocabulary_size, **{**find_size(size), **kwargs})

    @classmethod
    def from_preset(cls, preset, load_weights: bool = True, **kwargs) -> "BertBackbone":
        """Loads a backbone from a checkpoint, without its heads.

        Args:
            preset: any checkpoint that a task's `from_preset` accepts.
            load_weights: False for new weights of the same shapes.
            **kwargs: arguments of the class that override the checkpoint's, such as `dtype`.

        Returns:
            The backbone.

        Raises:
            FileNotFoundError: if `preset` does not exist or lacks a file.
            TypeError: for an unknown argument.
            ValueError: if a file is damaged or weights do not fit.
        """
        if cls is not BertBackbone:  # a user's class, which KerasHub finds by its registered name
            return super().from_preset(preset, load_weights, **kwargs)
        from keras_bert.checkpoints import open_checkpoint  # which imports this class

        return open_checkpoint(preset, load_weights).backbone(load_weights, **kwargs)

    @property
    def limits(self) -> dict[str, int]:
        """The number of rows of each id input's table: values are from 0 to one less."""
        return {
            "token_ids": self.vocabulary_size,
            "segment_ids": self.num_segments,
            "position_ids": self.max_sequence_length,
        }

    def freeze(self, num_blocks: int | None = None) -> None:
        """Freezes the embeddings and the first blocks.

        Compile the model again afterwards, as Keras requires after every change of `trainable`.

        Args:
            num_blocks: number of blocks, from the bottom; None for the whole backbone.

        Raises:
            ValueError: if the backbone has fewer blocks.
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
        """The adapters of all blocks, from the bottom; empty without `adapter_dim`."""
        if self.adapter_dim is None:
            return []
        pairs = [(block.attention_adapter, block.feedforward_adapter) for block in self.blocks]
        return [adapter for pair in pairs for adapter in pair]

    def default_lora_layer_names(self) -> list[str]:
        """The dense layers to which `enable_lora` adds LoRA updates (Hu et al. 2021)."""
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
            "causal": self.causal,
            **self._tuning(),
        }

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        tuning = {name: config.pop(name, None) for name in ("frozen", "lora")}
        backbone = super().from_config(config)
        backbone.restore_tuning(**tuning)
        return backbone

    def _tuning(self) -> dict:
        """The frozen weights and LoRA settings for `restore_tuning`; {} if there are none."""
        found = {}
        trained = {id(weight) for weight in self.trainable_weights}
        if trained and len(trained) < len(self.weights):
            found["frozen"] = [w.path for w in self.weights if id(w) not in trained]
        layers = [x for x in self._flatten_layers() if getattr(x, "lora_enabled", False)]
        if layers:
            found["lora"] = {
                "rank": layers[0].lora_rank,
                "alpha": layers[0].lora_alpha,
                "layers": sorted({layer.name for layer in layers}),
            }
        return found

    def restore_tuning(self, frozen: list[str] | None = None, lora: dict | None = None) -> None:
        """Restores the LoRA updates and frozen weights of a saved model.

        Args:
            frozen: paths of weights; None for none.
            lora: `rank`, `alpha` and names of `layers`; None for none.
        """
        if lora:
            trainable = self.trainable
            self.enable_lora(lora["rank"], list(lora["layers"]))
            for layer in self._flatten_layers(include_self=False):
                layer.trainable = True
                if getattr(layer, "lora_enabled", False):
                    layer.lora_alpha = lora["alpha"]
            self.trainable = trainable
        for weight in self.weights if frozen else ():
            weight.trainable = weight.path not in frozen


def check_ids(inputs: dict, limits: dict[str, int]) -> None:
    """Checks that ids are inside their tables, of which `limits` has the numbers of rows.

    Symbolic tensors and those of a traced function, whose values are unknown, pass. The error names
    input, value and row.
    """
    for name, limit in limits.items():
        ids = _known(inputs.get(name))
        if ids is None or not ids.size or 0 <= ids.min() <= ids.max() < limit:
            continue
        wrong = tuple(np.argwhere((ids < 0) | (ids >= limit))[0])
        raise ValueError(
            f"{name} from {ids.min()} to {ids.max()}: expected 0 to {limit - 1}; row {wrong[0]} "
            f"has {ids[wrong]}"
        )


def _known(value):
    """A value as an array; None if there is none or it is not computed yet."""
    if value is None or isinstance(value, keras.KerasTensor):
        return None
    try:
        return np.asarray(value)
    except (NotImplementedError, TypeError):  # inside a function that TensorFlow or JAX traces
        return None
