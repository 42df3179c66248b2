"""LSTMs in both directions: a tagger on features that are given, and on top of a BERT."""

import keras

import keras_bert
from keras_bert.layers.dropout import Dropout


@keras.saving.register_keras_serializable(package="keras_bert")
class LayerWeights(keras.layers.Layer):
    """Sums the states of several layers with learned weights, as ELMo does.

    gamma * sum over layers of softmax(w)[layer] * state. Reference: Peters et al. 2018, equation 1;
    Devlin et al. 2019, Table 7, "weighted sum". w starts at 0, gamma at 1: the mean.

    Args:
        num_states: layers S.

    Call arguments:
        x: float [B, T, S * D], the layers' states side by side.

    Returns:
        float [B, T, D].
    """

    def __init__(self, num_states: int, **kwargs):
        super().__init__(**kwargs)
        self.num_states = num_states
        self.supports_masking = True

    def build(self, shape):
        self.w = self.add_weight(name="w", shape=(self.num_states,), initializer="zeros")
        self.gamma = self.add_weight(name="gamma", shape=(), initializer="ones")

    def call(self, x):
        shape = keras.ops.shape(x)
        states = keras.ops.reshape(x, (*shape[:2], self.num_states, x.shape[-1] // self.num_states))
        share = keras.ops.softmax(self.w)
        return self.gamma * keras.ops.einsum("btsd,s->btd", states, share)

    def compute_output_shape(self, shape):
        return (*shape[:-1], shape[-1] // self.num_states)

    def get_config(self):
        return super().get_config() | {"num_states": self.num_states}


@keras.saving.register_keras_serializable(package="keras_bert")
class BiLSTMTagger(keras.Model):
    """Gives each word's logits from features of all words of its sentence.

    Rule: Devlin et al. 2019, section 5.3: two layers of 768 units on BERT's hidden states, which
    are not trained; `keras_bert.tasks.features.extract_features` with `per="word"` gives them.
    With `num_states` it learns how to weigh the states of several layers, see `LayerWeights`.

    Args:
        feature_dim: numbers in a word's vector D.
        num_classes: labels K.
        units: of each direction of each layer.
        num_layers: layers.
        dropout: dropout rate before each layer and before the dense one.
        num_states: layers whose states a word's vector has side by side, to be weighed and summed;
            1 to read the vector as it is.
        **kwargs: as `keras.Model`.

    Call arguments:
        inputs: float32 [B, T, D]. A vector of zeros is padding and must stand at the end.

    Returns:
        float32 logits [B, T, K].

    Raises:
        ValueError: if a size is less than 1, or `feature_dim` is no multiple of `num_states`.
    """

    def __init__(
        self,
        feature_dim: int,
        num_classes: int,
        units: int = 768,
        num_layers: int = 2,
        dropout: float = 0.1,
        num_states: int = 1,
        **kwargs,
    ):
        sizes = {
            "feature_dim": feature_dim,
            "num_classes": num_classes,
            "units": units,
            "num_layers": num_layers,
            "num_states": num_states,
        }
        for name, size in sizes.items():
            if size < 1:
                raise ValueError(f"{name}={size}: expected 1 or more")
        if feature_dim % num_states:
            raise ValueError(f"feature_dim={feature_dim}: expected a multiple of {num_states}")

        # === Functional model ===
        inputs = keras.Input((None, feature_dim), name="features")
        x = keras.layers.Masking(name="masking")(inputs)
        if num_states > 1:
            x = LayerWeights(num_states, name="layer_weights")(x)
        for i in range(num_layers):
            x = Dropout(dropout, name=f"dropout_{i}")(x)
            lstm = keras.layers.LSTM(units, return_sequences=True, name=f"lstm_{i}")
            x = keras.layers.Bidirectional(lstm, name=f"bidirectional_{i}")(x)  # [B, T, 2 * units]
        x = Dropout(dropout, name=f"dropout_{num_layers}")(x)
        outputs = keras.layers.Dense(num_classes, dtype="float32", name="head")(x)  # [B, T, K]
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

        # === Configuration ===
        self.settings = sizes | {"dropout": dropout}

    def get_config(self):
        return {"name": self.name, **self.settings}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls(**config)


# === On top of a BERT, trained with it ===


def add_bilstm(task: keras.Model, outputs: dict) -> dict:
    """Puts an LSTM in each direction on the last layer, with half as many units as it has.

    Rule: Devlin et al. 2019, section 5.1, "+ BiLSTM": randomly initialized, on top of the model
    from left to right. A text's vector is the last state of each direction.

    Args:
        task: whose backbone is below.
        outputs: of its backbone, `sequence_output` [B, T, H].

    Returns:
        `sequence_output` [B, T, H] and `pooled_output` [B, H] of the LSTMs.
    """
    units = task.backbone.hidden_dim // 2
    lstm = keras.layers.LSTM(
        units, return_sequences=True, return_state=True, dtype="float32", name="lstm"
    )
    both = keras.layers.Bidirectional(lstm, dtype="float32", name="bilstm")
    real = task.backbone.input["padding_mask"] != 0
    states, ahead, _, back, _ = both(outputs["sequence_output"], mask=real)
    pooled = keras.layers.Concatenate(dtype="float32", name="bilstm_ends")([ahead, back])
    return {"sequence_output": states, "pooled_output": pooled}


@keras.saving.register_keras_serializable(package="keras_bert")
class BiLSTMClassifier(keras_bert.BertClassifier):
    """A `BertClassifier` with LSTMs in both directions between backbone and head."""

    head_kind = None  # no other format has such a head
    reads_first_tokens = False

    def encode(self, inputs):
        return add_bilstm(self, super().encode(inputs))


@keras.saving.register_keras_serializable(package="keras_bert")
class BiLSTMQuestionAnswerer(keras_bert.BertQuestionAnswerer):
    """A `BertQuestionAnswerer` with LSTMs in both directions between backbone and head."""

    head_kind = None

    def encode(self, inputs):
        return add_bilstm(self, super().encode(inputs))
