"""Pre-training by masked tokens and next sentences (Devlin et al. 2019, section 3.1)."""

import logging
from pathlib import Path

import keras
import numpy as np

from keras_bert.checkpoints import open_checkpoint
from keras_bert.checkpoints.preset import load_h5
from keras_bert.data.contract import OPTIONAL_INPUTS, REQUIRED_INPUTS, check_batch
from keras_bert.layers.heads import MaskedLMHead, NextSentenceHead
from keras_bert.metrics.perplexity import Perplexity
from keras_bert.models.backbone import BertBackbone
from keras_bert.tasks.task import BertTask

logger = logging.getLogger("keras_bert")


@keras.saving.register_keras_serializable(package="keras_bert")
class BertPretrainer(BertTask):
    """A backbone with the masked language model's head and the next sentence's.

    `fit` and `evaluate` take a `tf.data.Dataset` of batches by `keras_bert.data.contract`. The
    loss is the weighted mean over masked tokens plus the mean over rows. Rule:
    google-research/bert `run_pretraining.py`, `model_fn_builder`.

    Args:
        backbone: a `BertBackbone`.
        next_sentence: False for the masked language model alone.
        preprocessor: kept for `save_to_preset`, or None; `fit` does not use it.
        **kwargs: as `keras.Model`.

    Call arguments:
        inputs: the backbone's, and `mask_positions`, int32 [B, P].

    Returns:
        A dict: `mlm`, logits [B, P, V] in the backbone's compute type; and, unless switched off,
        `nsp`, float32 logits [B, 2] of "is next" and "is random".
    """

    backbone_cls = BertBackbone

    def __init__(
        self, backbone: BertBackbone, next_sentence: bool = True, preprocessor=None, **kwargs
    ):
        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.masked_lm_head = MaskedLMHead(
            backbone.embeddings,
            backbone.activation,
            backbone.layer_norm_epsilon,
            backbone.initializer_range,
            dtype=backbone.dtype_policy,
            name="masked_lm_head",
        )
        self.next_sentence_head = None
        if next_sentence:
            self.next_sentence_head = NextSentenceHead(
                backbone.initializer_range, name="next_sentence_head"
            )

        # === Functional model ===
        positions = keras.Input((None,), dtype="int32", name="mask_positions")
        encoded = backbone(backbone.input)
        outputs = {"mlm": self.masked_lm_head(encoded["sequence_output"], positions)}  # [B, P, V]
        if next_sentence:
            outputs["nsp"] = self.next_sentence_head(encoded["pooled_output"])  # [B, 2]
        # === Configuration ===
        self.next_sentence = next_sentence  # the compilation below reads it

        inputs = {**backbone.input, "mask_positions": positions}
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

    @classmethod
    def from_preset(
        cls,
        preset: str | Path,
        next_sentence: bool | None = None,
        load_weights: bool = True,
        **kwargs,
    ) -> "BertPretrainer":
        """Makes a pretrainer from a checkpoint, to train it further.

        The heads of a preset of ours are loaded; those of the other forms are new for now. What
        was loaded and what is new stands in `loading_report`, and new weights are logged as a
        warning.

        Args:
            preset: a folder saved by `save_to_preset`; a Hugging Face directory or hf://
                address; or a KerasHub BERT preset's name, address or folder.
            next_sentence: whether to have that head; by default as the preset has, else True.
            load_weights: False for new weights in the same shape.
            **kwargs: `BertBackbone` arguments, such as `dtype` or `hidden_dropout`.

        Raises:
            FileNotFoundError: if there is nothing at `preset`, or a file is missing.
            ValueError: if a file is damaged or weights do not fit.
        """
        checkpoint = open_checkpoint(preset)
        saved = checkpoint.settings("task.json", cls.__name__)
        saved_next_sentence = saved.get("next_sentence", True)
        if next_sentence is None:
            next_sentence = saved_next_sentence
        backbone = checkpoint.backbone(load_weights, **kwargs)
        model = cls(backbone, next_sentence)
        report = checkpoint.report
        loaded = []
        if saved and load_weights:
            # Read into a pretrainer with the heads of the file, which may be more or fewer.
            whole = model
            if saved_next_sentence != next_sentence:
                whole = cls(backbone, saved_next_sentence)
            load_h5(whole.load_task_weights, checkpoint.source.path("task.weights.h5"))
            model.masked_lm_head.set_weights(whole.masked_lm_head.get_weights())
            loaded = model._heads() if whole is model else [model.masked_lm_head]
        for head in model._heads():
            names = report.loaded if head in loaded else report.new
            names += [weight.path for weight in head.weights]
        if load_weights and report.new:
            logger.warning("%s", report)
        model.loading_report = report
        return model

    def _heads(self) -> list[keras.layers.Layer]:
        return [self.masked_lm_head, *([self.next_sentence_head] if self.next_sentence else [])]

    def default_loss(self) -> dict[str, keras.losses.Loss]:
        # Divided by the sum of the weights: a free slot must not make the loss look smaller.
        return {
            name: keras.losses.SparseCategoricalCrossentropy(
                from_logits=True, reduction="mean_with_sample_weight"
            )
            for name in self._output_keys()
        }

    def default_metrics(self) -> dict[str, list[keras.metrics.Metric]]:
        # Keras puts "mlm_" before the names where there are two outputs, but not before one's.
        prefix = "" if self.next_sentence else "mlm_"
        accuracy = keras.metrics.SparseCategoricalAccuracy
        metrics = {"mlm": [accuracy(name=f"{prefix}accuracy"), Perplexity(f"{prefix}perplexity")]}
        if self.next_sentence:
            metrics["nsp"] = [accuracy(name="accuracy")]
        return metrics

    def _output_keys(self) -> tuple[str, ...]:
        return ("mlm", "nsp") if self.next_sentence else ("mlm",)

    @staticmethod
    def pack(batch: dict, next_sentence: bool = True) -> tuple[dict, dict, dict]:
        """Turns a batch by the contract into what `keras.Model.fit` reads.

        Args:
            batch: NumPy arrays, or TensorFlow tensors inside `tf.data` too, by key.
            next_sentence: False to leave that task out, whether or not the batch has labels.

        Returns:
            (x, y, sample_weight), dicts: x for the model; y by output, `mlm` [B, P] and `nsp`
            [B]; sample_weight likewise.

        Raises:
            TypeError: if `batch` is no dict of arrays.
            ValueError: if it breaks the contract, or lacks what the two tasks need.
        """
        needed = ["mask_positions", "mask_ids", "mask_weights"]
        needed += ["next_sentence_labels"] if next_sentence else []
        check_batch(batch, require=needed)
        y, weights = {"mlm": batch["mask_ids"]}, {"mlm": batch["mask_weights"]}
        if next_sentence:
            y["nsp"] = labels = batch["next_sentence_labels"]
            weights["nsp"] = _ones_like(labels)
        return _inputs(batch), y, weights

    def fit(self, x=None, *args, **kwargs):
        """Trains the model.

        Args:
            x: a `tf.data.Dataset` of batches by `keras_bert.data.contract`; if it repeats
                without end, pass `steps_per_epoch`.
            *args: as `BertTask.fit`.
            **kwargs: as `BertTask.fit`; `validation_data` is a dataset like x.

        Returns:
            The Keras `History`: loss, mlm_accuracy, mlm_perplexity; with next sentences also
            mlm_loss, nsp_loss, nsp_accuracy.

        Raises:
            TypeError: if x is no dataset of dicts.
            ValueError: if its batches break the contract.
        """
        _check_dataset(x)
        return super().fit(x, *args, **kwargs)

    def evaluate(self, x=None, *args, **kwargs):
        """Gives loss and metrics on a dataset like that of `fit`."""
        _check_dataset(x)
        return super().evaluate(x, *args, **kwargs)

    def encode_class_weight(self, class_weight: dict) -> dict[int, float]:
        raise ValueError("class_weight has no meaning here: weights of tokens are `mask_weights`")

    def _dataset_preparer(self, dataset, labelled):
        import tensorflow as tf

        def prepare(batch, y=None, sample_weight=None):
            # Keras's `fit` hands the validation data that it was given on to `evaluate`, so that
            # what was packed here comes by once more.
            if isinstance(y, dict):
                return (batch, y, sample_weight) if labelled else batch
            if y is not None:
                raise TypeError("the dataset gives (x, y); expected one dict by the contract")
            if labelled:
                packed = self.pack(batch, self.next_sentence)
            else:
                check_batch(batch, require=["mask_positions"])
                packed = _inputs(batch)
            # The model would read zeros at such a position, and a compiled one can't complain.
            length = tf.shape(batch["token_ids"])[1]
            message = "mask_positions: expected 0 to T - 1"
            tf.debugging.assert_non_negative(batch["mask_positions"], message)
            tf.debugging.assert_less(batch["mask_positions"], length, message)
            return packed

        return prepare

    def get_config(self):
        return super().get_config() | {"next_sentence": self.next_sentence}


def _inputs(batch: dict) -> dict:
    """What of a batch the model reads."""
    names = (*REQUIRED_INPUTS, *OPTIONAL_INPUTS, "mask_positions")
    return {name: batch[name] for name in names if name in batch}


def _ones_like(labels):
    """float32 ones in the shape of labels, as the kind of array that they are."""
    if isinstance(labels, np.ndarray):
        return np.ones(labels.shape, "float32")
    import tensorflow as tf

    return tf.ones_like(labels, tf.float32)


def _check_dataset(x) -> None:
    if not hasattr(x, "element_spec"):
        raise TypeError(
            f"expected a tf.data.Dataset of batches by keras_bert.data.contract, got "
            f"{type(x).__name__}"
        )
