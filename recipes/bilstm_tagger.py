"""A tagger on features that are given: LSTMs in both directions and a dense layer."""

import keras

from keras_bert.layers.dropout import Dropout


@keras.saving.register_keras_serializable(package="keras_bert")
class BiLSTMTagger(keras.Model):
    """Gives each word's logits from features of all words of its sentence.

    Rule: Devlin et al. 2019, section 5.3: two layers of 768 units on BERT's hidden states, which
    are not trained; `keras_bert.tasks.features.extract_features` with `per="word"` gives them.

    Args:
        feature_dim: numbers in a word's vector D.
        num_classes: labels K.
        units: of each direction of each layer.
        num_layers: layers.
        dropout: share of units dropped before each layer and before the dense one.
        **kwargs: as `keras.Model`.

    Call arguments:
        inputs: float32 [B, T, D]. A vector of zeros is padding and must stand at the end.

    Returns:
        float32 logits [B, T, K].

    Raises:
        ValueError: if a size is less than 1.
    """

    def __init__(
        self,
        feature_dim: int,
        num_classes: int,
        units: int = 768,
        num_layers: int = 2,
        dropout: float = 0.1,
        **kwargs,
    ):
        sizes = {
            "feature_dim": feature_dim,
            "num_classes": num_classes,
            "units": units,
            "num_layers": num_layers,
        }
        for name, size in sizes.items():
            if size < 1:
                raise ValueError(f"{name}={size}: expected 1 or more")

        # === Functional model ===
        inputs = keras.Input((None, feature_dim), name="features")
        x = keras.layers.Masking(name="masking")(inputs)
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
