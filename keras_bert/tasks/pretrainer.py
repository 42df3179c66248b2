"""Pre-training: masked tokens and next sentences (Devlin et al. 2019, section 3.1)."""

import keras
import numpy as np

from keras_bert.data.contract import check_batch
from keras_bert.data.texts import is_text
from keras_bert.layers.heads import NextSentenceHead
from keras_bert.models.backbone import BertBackbone
from keras_bert.serving.signatures import EXAMPLES, TEXT
from keras_bert.tasks.masked_lm import BertMaskedLM
from keras_bert.tasks.task import Answer, Rows
from keras_bert.text.classifier_preprocessor import BertClassifierPreprocessor


@keras.saving.register_keras_serializable(package="keras_bert")
class BertPretrainer(BertMaskedLM):
    """A backbone with the heads for masked language modelling and next sentence prediction.

    `fit` and `evaluate` take a `tf.data.Dataset` of batches with the keys of
    `keras_bert.data.contract`. The loss is the weighted mean over masked tokens plus the mean over
    rows. Reference: google-research/bert `run_pretraining.py`, `model_fn_builder`.

    Args:
        backbone: a `BertBackbone`.
        next_sentence: False for masked language modelling alone, which can also be trained on
            texts.
        preprocessor: a `BertMaskedLMPreprocessor` for `fill` and `next_sentence`, or None.
        temperature: as `BertMaskedLM`; not of next sentences.
        **kwargs: as `BertMaskedLM`.

    Call arguments:
        inputs: the backbone's, and `mask_positions`, int32 [B, P].

    Returns:
        A dict: `mlm`, logits [B, P, V] in the backbone's compute type; and, unless switched off,
        `nsp`, float32 logits [B, 2] of "is next" and "is random".

    Raises:
        ValueError: if the preprocessor does not fit the backbone.
    """

    def __init__(
        self,
        backbone: BertBackbone,
        next_sentence: bool = True,
        preprocessor: BertClassifierPreprocessor | None = None,
        temperature: float = 1.0,
        **kwargs,
    ):
        self.next_sentence_head = None
        if next_sentence:
            self.next_sentence_head = NextSentenceHead(
                backbone.initializer_range, name="next_sentence_head"
            )
        super().__init__(backbone, preprocessor, temperature=temperature, **kwargs)

    def _further_outputs(self, encoded: dict) -> dict:
        if self.next_sentence_head is None:
            return {}
        return {"nsp": self.next_sentence_head(encoded["pooled_output"])}  # [B, 2]

    @property
    def has_next_sentence(self) -> bool:
        """Whether there is a head for next sentences."""
        return self.next_sentence_head is not None

    @classmethod
    def complete_settings(cls, own, network, checkpoint, skip_mismatch):
        saved = super().complete_settings(own, network, checkpoint, skip_mismatch)
        own.setdefault("next_sentence", saved != ["masked_lm_head"])
        return saved

    def default_metrics(self) -> dict[str, list[keras.metrics.Metric]]:
        metrics = super().default_metrics()
        if self.has_next_sentence:
            metrics["nsp"] = [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]
        return metrics

    @staticmethod
    def pack(batch: dict, next_sentence: bool = True) -> tuple[dict, dict, dict]:
        """Converts a batch, as `BertMaskedLM.pack`, with the labels of next sentences.

        `next_sentence=False` omits that task, whether or not the batch has labels for it. Otherwise
        y and sample_weight have `nsp` [B] too.

        Raises:
            TypeError: if `batch` is not a dict of arrays.
            ValueError: if it violates the contract, or a key that the two tasks need is missing.
        """
        x, y, weights = BertMaskedLM.pack(batch)
        if next_sentence:
            check_batch(batch, require=["next_sentence_labels"])
            y["nsp"] = labels = batch["next_sentence_labels"]
            weights["nsp"] = _ones_like(labels)
        return x, y, weights

    def contract_inputs(self, batch: dict) -> tuple[dict, dict, dict]:
        return self.pack(batch, self.has_next_sentence)

    def next_sentence(
        self,
        first: str | list[str],
        second: str | list[str],
        batch_size: int | None = None,
        **kwargs,
    ) -> float | np.ndarray:
        """Predicts the probability that one text follows another, class 0, "is next".

        After training on sentence order ("sop") it is that of the right order. Pairs that are too
        long are truncated at the end of the longer text.

        Args:
            first: a text, or a list of N.
            second: the possible continuation: a text, or a list of N.
            batch_size: rows of a batch, 32 by default.
            **kwargs: as `keras.Model.predict`, without a progress bar by default.

        Returns:
            float32 [N], or a float for two strings.

        Raises:
            TypeError: if a text is not a string.
            ValueError: if the lists differ in length, or the model has no preprocessor or no
                head for next sentences.
        """
        if not self.has_next_sentence:
            raise ValueError("this BertPretrainer was made with next_sentence=False")
        if is_text(first) and is_text(second):
            return float(self.next_sentence([first], [second], batch_size, **kwargs)[0])
        self.check_has_preprocessor()
        data, asked = self._texts((first, second)), self.signatures()["next_sentence"]
        parts = [found for _, found in self.respond(asked, data, batch_size, kwargs)]
        return np.concatenate([part["probability"] for part in parts])

    def signatures(self, top_k: int | None = None, targets: list[str] | None = None):
        """As `BertMaskedLM.signatures`, plus `next_sentence` if the model has that head.

        The latter takes `text` and `text_pair`, string [B], and gives `probability`, float32 [B],
        that the second text follows the first, and `logits`, float32 [B, 2].
        """
        found = super().signatures(top_k, targets)
        if self.has_next_sentence:
            asks = {"text": TEXT, "text_pair": TEXT}
            example = {"text": EXAMPLES[:1], "text_pair": ["Ships lay still."]}
            kept, answers = _next_logits, _is_next
            found["next_sentence"] = Answer(
                asks, example, self._pair_rows, answers, kept, ("next_sentence",)
            )
        return found

    def _pair_rows(self, first, second) -> Rows:
        """Rows of pairs, without tokens to predict."""
        import tensorflow as tf

        ids = self.preprocessor.pack((first, second))
        return Rows(ids | {"mask_positions": tf.zeros([tf.shape(first)[0], 1], tf.int32)})

    def _learns_from_texts(self) -> bool:
        return super()._learns_from_texts() and not self.has_next_sentence

    def get_config(self):
        return super().get_config() | {"next_sentence": self.has_next_sentence}


def _next_logits(output):
    return {"logits": output["nsp"]}


def _is_next(outputs, rows, first, second) -> dict:
    import tensorflow as tf

    logits = outputs["logits"]
    return {"probability": tf.nn.softmax(logits)[:, 0], "logits": logits}


def _ones_like(labels):
    """float32 ones of the labels' shape and array type."""
    if isinstance(labels, np.ndarray):
        return np.ones(labels.shape, "float32")
    import tensorflow as tf

    return tf.ones_like(labels, tf.float32)
