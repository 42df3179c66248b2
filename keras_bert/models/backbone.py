"""BERT's encoder as one functional model."""

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
from keras_bert.layers.packing import pack_texts, unpack_first, unpack_texts

# Inputs that a call may add to the three of the functional model.
OPTIONAL_INPUTS = ("position_ids", "sequence_ids", "token_embeddings", "packed_from")


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
        inputs: a dict of int32 tensors of shape [B, T]: `token_ids`; `segment_ids`;
            `padding_mask`, 1 for tokens and 0 for padding. A call may add to these three:
            `position_ids` (default 0, 1, 2, ...); `sequence_ids` (tokens attend only to tokens of
            the same id, so that several texts can share a row); `token_embeddings`, float
            [B, T, H], which replace the rows of the word table, for gradients with respect to
            them; `packed_from` [R, P], which lays the B texts into R rows of P tokens for the
            encoder alone, outputs being those of the texts (see `keras_bert.layers.packing`).

    Returns:
        A dict: `sequence_output` float [B, T, H]; `pooled_output` float [B, H], a dense tanh
        layer on position 0; on request `hidden_states`, a list of num_layers + 1 tensors
        [B, T, H] from the embeddings up, and `attention_probabilities`, a list of num_layers
        tensors [B, N, T, T], with `packed_from` those of
        the rows, [R, N, P, P].

    Raises:
        TypeError: for an unknown argument.
        ValueError: if T exceeds `max_sequence_length` and no `position_ids` are given, if an
            input has not two axes, if an id in an array or eager tensor is outside of its table,
            or if `packed_from` comes with inputs that it sets. Inside of a compiled function,
            which cannot raise, the outputs of a row with an id outside of its table are NaN.
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

        # === Functional model ===
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
        """The network: of symbolic inputs on construction, of tensors for a call with options."""
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

        if packed_from is None:
            first = x[:, 0, :]
        else:
            texts = (inputs["padding_mask"], packed_from)
            first = unpack_first(x, *texts, training)
            hidden_states = [unpack_texts(state, *texts) for state in hidden_states]
        outputs = {"sequence_output": hidden_states[-1], "pooled_output": self.pooler(first)}
        if self.output_hidden_states:
            outputs["hidden_states"] = hidden_states
        if self.output_attentions:
            outputs["attention_probabilities"] = attention_probabilities
        return outputs

    def call(self, inputs, training=None, mask=None):
        check_ids(inputs, self.limits)
        if any(inputs.get(name) is not None for name in OPTIONAL_INPUTS):
            # Ids of one type, as the functional model makes them: batches on a GPU have int64.
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

    @classmethod
    def from_preset(cls, preset, load_weights: bool = True, **kwargs) -> "BertBackbone":
        """Makes a backbone from a checkpoint; what a task has on top of it is left out.

        Args:
            preset: any checkpoint that a task's `from_preset` takes.
            load_weights: False for new weights in the same shape.
            **kwargs: arguments of the class in place of the checkpoint's, such as `dtype`.

        Returns:
            The backbone.

        Raises:
            FileNotFoundError: if there is nothing at `preset`, or a file is missing.
            TypeError: for an unknown argument.
            ValueError: if a file is damaged, or weights do not fit.
        """
        if cls is not BertBackbone:  # a user's, which KerasHub finds by its registered name
            return super().from_preset(preset, load_weights, **kwargs)
        from keras_bert.checkpoints import open_checkpoint  # which makes this class

        return open_checkpoint(preset, load_weights).backbone(load_weights, **kwargs)

    @property
    def limits(self) -> dict[str, int]:
        """Rows of the table of each input that is an id: values are from 0 to one less."""
        return {
            "token_ids": self.vocabulary_size,
            "segment_ids": self.num_segments,
            "position_ids": self.max_sequence_length,
        }

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
        """What is frozen, and low-rank updates, as `restore_tuning` takes them; {} for neither."""
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
        """Gives layers low-rank updates and freezes weights, as a saved model had them.

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
    """Checks that ids are rows of the tables, where they are known.

    Args:
        inputs: arrays or tensors by name. Those of a traced function and symbolic ones pass.
        limits: number of rows by name, as `BertBackbone.limits`.

    Raises:
        ValueError: if an id is not; the error names input, value and row.
    """
    for name, limit in limits.items():
        ids = _known(inputs.get(name))
        if ids is None or not ids.size or 0 <= ids.min() <= ids.max() < limit:
            continue
        wrong = tuple(np.argwhere((ids < 0) | (ids >= limit))[0])
        raise ValueError(
            f"{name} run from {ids.min()} to {ids.max()}; expected 0 to {limit - 1}: row "
            f"{wrong[0]} holds {ids[wrong]}"
        )


def _known(value):
    """The array behind a value; None for no value and for one that is not computed yet."""
    if value is None or isinstance(value, keras.KerasTensor):
        return None
    try:
        return np.asarray(value)
    except (NotImplementedError, TypeError):  # of a function that TensorFlow or JAX traces
        return None
