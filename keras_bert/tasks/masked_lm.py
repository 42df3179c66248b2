"""Masked language modelling (Devlin et al. 2019, section 3.1)."""

from dataclasses import dataclass
from functools import partial

import keras
import numpy as np

from keras_bert.arguments import check_batch_size
from keras_bert.data.contract import check_batch
from keras_bert.data.examples import Examples, are_examples, are_ids, is_dataset
from keras_bert.data.texts import as_strings, is_text
from keras_bert.layers.heads import MaskedLMHead
from keras_bert.metrics import Perplexity, best_temperature
from keras_bert.models.backbone import BertBackbone
from keras_bert.tasks.batch_sources import check_beside, holds_texts
from keras_bert.tasks.calibrated import Calibrated
from keras_bert.tasks.from_checkpoint import saved_pretraining_heads
from keras_bert.tasks.masked_batches import masked_source, model_inputs
from keras_bert.tasks.task import Answer, Rows
from keras_bert.tasks.text_scores import TextScore, fill_scores, row_chunks, score_rows
from keras_bert.text.classifier_preprocessor import BertClassifierPreprocessor
from keras_bert.text.masked_lm_preprocessor import BertMaskedLMPreprocessor
from keras_bert.text.padding import pack
from keras_bert.text.prompts import (
    MASK,
    candidate_ids,
    check_has_mask,
    mask_positions,
    mask_words,
    prompt_rows,
)
from keras_bert.training.task_metrics import CHOICES, CLASSES

MOST_MASKED = 2048  # texts whose logits are kept at once, 250 MB with 30,000 tokens
LOGITS = 1 << 26  # numbers kept at once while texts are scored: 256 MB


@dataclass(frozen=True)
class Candidate:
    """A candidate token for a [MASK].

    Args:
        token: as the vocabulary spells it, such as "paris" or "##s".
        id: its id.
        score: its probability, from 0 to 1.
        text: the text with the token in place of the [MASK]; other [MASK]s stay.
    """

    token: str
    id: int
    score: float
    text: str


@keras.saving.register_keras_serializable(package="keras_bert")
class BertMaskedLM(Calibrated):
    """A backbone with the masked language model's head, which predicts tokens at masked positions.

    `fill` takes texts with [MASK]s. `fit` and `evaluate` take texts, which they mask, or a
    `tf.data.Dataset` of batches that are already masked; see `keras_bert.data.contract` for their
    keys. The loss is the weighted mean over masked tokens. Reference: google-research/bert
    `run_pretraining.py`.

    Args:
        backbone: a `BertBackbone`.
        preprocessor: a `BertMaskedLMPreprocessor`, or None to work on ids alone. With a
            `BertClassifierPreprocessor`, `fit` on texts masks as BERT did.
        head_activation: activation of the head; the backbone's by default.
        head_epsilon: epsilon of the head's normalization; the backbone's by default.
        temperature: divides the logits before `fill` computes probabilities; see `calibrate`.
        **kwargs: as `keras.Model`.

    `fit` takes a list of N texts, a tuple (firsts, seconds) of two such lists, or a
    `tf.data.Dataset` of batches of texts; no labels. Texts are truncated to `sequence_length`
    tokens and masked as the preprocessor defines. The masks are a function of `seed`, the epoch and
    the position in it: every epoch has its own, and a resumed run has those of an uninterrupted
    one. Masks of validation data are the same every time. A dataset may also yield batches with the
    keys of `keras_bert.data.contract`. For an infinite dataset, pass `steps_per_epoch`.

    Call arguments:
        inputs: the backbone's, and `mask_positions`, int32 [B, P].

    Returns:
        A dict: `mlm`, logits [B, P, V] in the backbone's compute type.

    Raises:
        ValueError: if the preprocessor does not fit the backbone.
    """

    preprocessor_cls = BertMaskedLMPreprocessor

    example = {"text": [f"The harbour {MASK} in the {MASK}.", "No ships."]}
    needs_labels = False
    at_once = 256  # logits are as wide as the vocabulary

    @property
    def output_kind(self) -> dict[str, str]:
        """As `BertTask.output_kind`: tokens are not classes; next sentences are."""
        return {name: CHOICES if name == "mlm" else CLASSES for name in self.output}

    def __init__(
        self,
        backbone: BertBackbone,
        preprocessor: BertClassifierPreprocessor | None = None,
        head_activation: str | None = None,
        head_epsilon: float | None = None,
        temperature: float = 1.0,
        **kwargs,
    ):
        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.masked_lm_head = MaskedLMHead(
            backbone.embeddings,
            head_activation or backbone.activation,
            backbone.layer_norm_epsilon if head_epsilon is None else head_epsilon,
            backbone.initializer_range,
            dtype=backbone.dtype_policy,
            name="masked_lm_head",
        )

        # === Functional model ===
        positions = keras.Input((None,), dtype="int32", name="mask_positions")
        encoded = self.encode(backbone.input)
        outputs = {"mlm": self.masked_lm_head(encoded["sequence_output"], positions)}  # [B, P, V]
        outputs |= self._further_outputs(encoded)
        inputs = {**backbone.input, "mask_positions": positions}
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

        # === Configuration ===
        self.head_activation = head_activation
        self.head_epsilon = head_epsilon
        self.temperature = temperature

    def _further_outputs(self, encoded: dict) -> dict:
        """Outputs of a subclass's own heads by name."""
        return {}

    @classmethod
    def complete_settings(cls, own, network, checkpoint, skip_mismatch):
        for name, value in checkpoint.masked_lm_settings().items():
            own.setdefault(name, value)
        return saved_pretraining_heads(checkpoint)

    def default_metrics(self) -> dict[str, list[keras.metrics.Metric]]:
        # Keras adds the prefix "mlm_" to the names if there are two outputs, but not for a single
        # one.
        prefix = "mlm_" if len(self.output) == 1 else ""
        accuracy = keras.metrics.SparseCategoricalAccuracy(name=f"{prefix}accuracy")
        return {"mlm": [accuracy, Perplexity(f"{prefix}perplexity")]}

    @staticmethod
    def pack(batch: dict) -> tuple[dict, dict, dict]:
        """Converts a batch, see `contract.py`, to the structure that `keras.Model.fit` reads.

        Args:
            batch: NumPy arrays, or TensorFlow tensors inside `tf.data` too, by key.

        Returns:
            (x, y, sample_weight), dicts: x for the model; y by output, `mlm` [B, P]; sample_weight
            by output, of the same shapes as y.

        Raises:
            TypeError: if `batch` is not a dict of arrays.
            ValueError: if it violates the contract, or a needed key is missing.
        """
        check_batch(batch, require=["mask_positions", "mask_ids", "mask_weights"])
        return model_inputs(batch), {"mlm": batch["mask_ids"]}, {"mlm": batch["mask_weights"]}

    def contract_inputs(self, batch: dict) -> tuple[dict, dict, dict]:
        """Converts a batch, as `pack`, for the heads that this model has."""
        return self.pack(batch)

    def fill(
        self,
        texts: str | list[str],
        top_k: int | None = None,
        batch_size: int = 32,
        targets: list[str] | None = None,
        **kwargs,
    ) -> list[list[Candidate]] | list[list[list[Candidate]]]:
        """Predicts the most probable tokens for each [MASK] of a text.

        The literal [MASK] is always the special token, whatever the tokenizer's
        `special_tokens_in_text`. Several in one text are filled independently: the candidates of
        each assume that all others are still masked. A text longer than the preprocessor's
        `sequence_length` is read in a window around each [MASK]. Probabilities are float32, over
        all tokens of the vocabulary.

        Args:
            texts: a text, or a list of N.
            top_k: candidates for each [MASK]; 5 by default, or the number of targets.
            batch_size: rows of a batch.
            targets: restricts the candidates to these tokens: words of a single piece, or as the
                vocabulary spells them, such as "##s". Scores stay probabilities over all tokens.
            **kwargs: as `keras.Model.predict`, without a progress bar by default.

        Returns:
            For each [MASK] of the text a list of `top_k` candidates, the most probable first, each
            with `token`, `id`, `score` and `text`; of a list of texts, a list of these.

        Raises:
            TypeError: if a text is not a string.
            ValueError: if a text has no [MASK], `top_k` is out of range, a target is not a single
                token, or the model has no preprocessor.

        Example:

        >>> [[best, *others]] = model.fill("She opened the [MASK] and looked out.")
        >>> best.token, best.score, best.text
        """
        single = is_text(texts)
        self.check_has_preprocessor()
        (texts,) = self._texts([texts] if single else texts).columns
        for number, text in enumerate(texts):
            if MASK not in text:
                raise ValueError(f"texts[{number}] has no {MASK} to fill in: {text!r:.200}")
        found = []
        asked = self.signatures(top_k, targets)["serving_default"]
        data = Examples((texts,))
        for (part,), answers in self.respond(asked, data, batch_size, kwargs) if texts else ():
            columns = (answers[name] for name in ("count", "token", "id", "score"))
            for text, count, *masks in zip(part, *columns, strict=True):
                found.append(_candidates(text, *(mask[:count] for mask in masks)))
        return found[0] if single else found

    def _texts(self, x) -> Examples:
        columns = super().examples(x).columns
        return Examples(tuple(as_strings(column, "ignore") for column in columns))

    def score(
        self, texts: str | list[str], batch_size: int = 256, **kwargs
    ) -> TextScore | list[TextScore]:
        """Computes the log-likelihood of texts, by token.

        The pseudo-log-likelihood of Salazar et al. 2020: each token in turn is replaced by [MASK]
        and predicted from all others, in a row of its own. With a causal backbone it is the
        log-likelihood, each token predicted from those before it, a row a text. The softmax is
        computed in float64 from the model's logits. Tokens of a text that is longer than
        `sequence_length` are scored in windows.

        Args:
            texts: a text, or a list of N.
            batch_size: predicted tokens of a batch.
            **kwargs: as `keras.Model.predict`, without a progress bar by default.

        Returns:
            A `TextScore` with `tokens`, `log_probs` and their sum, `total`; a list of N for a list.

        Raises:
            TypeError: if a text is not a string.
            ValueError: if the vocabulary has no [MASK], or the model has no preprocessor.

        Example:

        >>> model.score("The keys are here.").total > model.score("The keys is here.").total
        """
        if is_text(texts):
            return self.score([texts], batch_size, **kwargs)[0]
        self.check_has_preprocessor()
        tokenizer = self.preprocessor.tokenizer
        check_has_mask(tokenizer)
        batch_size, kwargs = check_batch_size(batch_size), {"verbose": 0} | kwargs
        (texts,) = self._texts(texts).columns
        ids = tokenizer.tokenize(texts).to_list() if texts else []
        length, size = self.preprocessor.sequence_length, tokenizer.vocabulary_size()
        found = [np.zeros(len(text), "float32") for text in ids]
        rows = score_rows(ids, tokenizer, length, self.backbone.causal)
        for part, inputs in row_chunks(rows, LOGITS // size, tokenizer.pad_token_id):
            together = max(1, batch_size // inputs["mask_positions"].shape[1])
            # The backbone's table may have more rows than there are tokens.
            logits = self.predict(inputs, together, **kwargs)["mlm"][..., :size]
            fill_scores(found, ids, part, logits)
        vocabulary = tokenizer.get_vocabulary()
        return [
            TextScore([vocabulary[i] for i in text], scores)
            for text, scores in zip(ids, found, strict=True)
        ]

    def best_temperature(self, x, y, batch_size, **kwargs):
        self._check_no_labels(y)
        (texts,) = self._texts(x).columns
        logits, right = self.masked_word_logits(texts, batch_size, **kwargs)[2:]
        if not len(right):
            raise ValueError(f"x: {len(texts)} texts without a word of one token to mask")
        return best_temperature(logits, right)

    def masked_word_logits(self, texts, batch_size: int | None = None, **kwargs) -> tuple:
        """Masks a word in each of N texts and predicts it, as `calibrate` does.

        Of more than 2,048 texts with a word of one token, so many are evenly chosen. Returns
        (indices of the M texts; these with a [MASK]; float32 logits [M, V]; ids of the words, int
        [M]).
        """
        self.check_has_preprocessor()
        tokenizer = self.preprocessor.tokenizer
        check_has_mask(tokenizer)
        kept, masked, right = mask_words(texts, tokenizer)
        chosen = np.linspace(0, len(kept) - 1, min(len(kept), MOST_MASKED)).round().astype(int)
        kept, masked = ([column[i] for i in chosen] for column in (kept, masked))
        size = tokenizer.vocabulary_size()
        if not masked:
            return kept, masked, np.zeros([0, size], "float32"), right[chosen]
        # One [MASK] a text: one row, in the same order.
        rows = self._prompt_rows(masked).ids
        ids = {name: value.numpy() for name, value in rows.items()}
        logits = self.predict(ids, batch_size, **{"verbose": 0} | kwargs)["mlm"]
        return kept, masked, np.asarray(logits[:, 0, :size], "float32"), right[chosen]

    def signatures(self, top_k: int | None = None, targets: list[str] | None = None):
        """Lists `serving_default`, the candidate tokens for each [MASK]; arguments, as `fill`.

        It takes `text`, string [B], and gives, with M the maximum number of [MASK]s of a text:
        `token`, string, `id`, int32, and `score`, float32, all [B, M, K], the most probable first,
        and `count`, int32 [B], the number of [MASK]s; unused places hold "", -1 and 0. A text
        without [MASK] has none.
        """
        tokenizer = self.preprocessor.tokenizer
        check_has_mask(tokenizer)
        if self.backbone.causal:
            raise ValueError(
                "a causal backbone predicts the next token and fills no [MASK]: expected one with "
                "causal=False; `score` serves both"
            )
        candidates, top_k = candidate_ids(tokenizer, top_k, targets)
        kept = partial(_likeliest, candidates, top_k, tokenizer.vocabulary_size(), self.temperature)
        answers = partial(self._fills, top_k)
        key = ("fill", top_k, candidates.tobytes())
        answer = Answer(self.asks, self.example, self._prompt_rows, answers, kept, key)
        return {"serving_default": answer}

    def _prompt_rows(self, text) -> Rows:
        """Rows that contain each [MASK] of the texts once, and its position."""
        import tensorflow as tf

        preprocessor = self.preprocessor
        rows = prompt_rows(text, preprocessor.tokenizer, preprocessor.sequence_length)
        ids = pack([rows.pieces], preprocessor.tokenizer, preprocessor.sequence_length, "bucket")
        positions, slots = mask_positions(rows)
        # The number of slots is a power of two, since XLA compiles once per number.
        used = tf.cast(tf.shape(positions)[1], tf.float32)
        most = tf.cast(2 ** tf.math.ceil(tf.math.log(used) / tf.math.log(2.0) - 1e-4), tf.int32)
        room = most - tf.shape(positions)[1]
        positions = tf.pad(positions, [[0, 0], [0, room]])
        # Unused slots repeat the first: another token would change the scale of int8 products.
        positions = tf.where(positions == 0, positions[:, :1], positions)
        return Rows(ids | {"mask_positions": positions}, about=(rows, slots))

    def _fills(self, top_k, outputs, rows, text):
        import tensorflow as tf

        prompts, slots = rows.about
        place = tf.stack([prompts.row, slots], axis=1)
        vocabulary = tf.constant(self.preprocessor.tokenizer.get_vocabulary())

        def dense(values, default):
            of_texts = tf.RaggedTensor.from_row_lengths(values, prompts.counts)
            return of_texts.to_tensor(default, shape=[None, None, top_k])

        ids, scores = (tf.gather_nd(outputs[name], place) for name in ("id", "score"))  # [M, K]
        return {
            "token": dense(tf.gather(vocabulary, ids), ""),
            "id": dense(ids, -1),
            "score": dense(scores, 0.0),
            "count": prompts.counts,
        }

    # === Training ===

    def fit(self, x=None, y=None, *args, **kwargs):
        """Trains the model on texts or a dataset, see the class; as `BertTask.fit`.

        There are no labels: the targets are part of the texts.

        Raises:
            TypeError: if x is neither, or labels are passed.
            ValueError: if a batch violates the contract, or a dataset of texts has unknown
                cardinality and `steps_per_epoch` is not set.
        """
        unknown = is_dataset(x) and holds_texts(x) and x.cardinality() < -1
        if unknown and not kwargs.get("steps_per_epoch"):
            raise ValueError(
                "the dataset of texts does not say its size, by which epochs get masks of their "
                "own: pass steps_per_epoch"
            )
        return super().fit(x, y, *args, **kwargs)

    def brings_labels(self, x) -> bool:
        return not isinstance(x, tuple)

    def _labelled(self, x, y, method):
        self._check_no_labels(y)
        dataset = is_dataset(x)
        if not dataset or holds_texts(x):
            if are_ids(x) or x is None or not self._learns_from_texts():
                raise TypeError(
                    f"expected {'texts or ' if self._learns_from_texts() else ''}a tf.data.Dataset "
                    f"of batches by keras_bert.data.contract, got {'texts in ' if dataset else ''}"
                    f"{type(x).__name__}"
                )
            self.check_has_preprocessor()
        return super()._labelled(x, None, method)

    def _check_no_labels(self, y) -> None:
        if y is not None:
            raise TypeError(f"expected no labels, got y of type {type(y).__name__}")

    def rows(self, *columns) -> Rows:
        """Rows of fixed length, which masking needs."""
        return Rows(self._masking_preprocessor().rows_to_mask(columns))

    def table_cells(self, given, labelled):
        return super().table_cells(given, labelled=False)

    def rows_of_table(self, columns, labelled=True):
        ids, _, weights = super().rows_of_table(columns, labelled)
        return ids, np.zeros(ids["token_ids"].shape[0], "int32"), weights

    def _masking_preprocessor(self) -> BertMaskedLMPreprocessor:
        found = self.preprocessor
        if isinstance(found, BertMaskedLMPreprocessor):
            return found
        return BertMaskedLMPreprocessor(found.tokenizer, found.sequence_length)

    def predict(self, x, batch_size: int | None = None, **kwargs):
        """Gives the logits at masked positions, as `BertTask.predict`.

        x is a dict of int32 arrays, the backbone's inputs and `mask_positions` [N, P], or a
        `tf.data.Dataset` of batches of them. For texts, use `fill`.

        Raises:
            TypeError: if x are texts.
            ValueError: if ids or positions are out of range.
        """
        if not are_ids(x) and (not is_dataset(x) or holds_texts(x)):
            raise TypeError(
                f"predict takes ids with mask_positions, got {type(x).__name__}: for texts with "
                "[MASK]s call fill"
            )
        return super().predict(x, batch_size, **kwargs)

    def encode_labels(self, y) -> np.ndarray:
        raise TypeError("expected no labels: the tokens to predict stand in the texts")

    def _learns_from_texts(self) -> bool:
        return not self.backbone.causal  # whose batches are those of the objective "lm"

    def check_ids(self, x: dict[str, np.ndarray]) -> None:
        super().check_ids(x)
        if "mask_positions" not in x:
            raise ValueError(f"ids lack mask_positions; got {', '.join(x)}")

    def source(self, x, y=None, sample_weight=None, batch_size=None, labelled=True, **options):
        if not labelled or (is_dataset(x) and not holds_texts(x)):
            return super().source(x, y, sample_weight, batch_size, labelled, **options)
        if (class_weight := options.pop("class_weight", None)) is not None:
            self.encode_class_weight(class_weight)
        check_beside(x, None, sample_weight, batch_size)
        if are_examples(x):
            x, _, sample_weight = self.ragged_rows(x, None, sample_weight)
        preprocessor, batch_size = self._masking_preprocessor(), check_batch_size(batch_size)
        return masked_source(self, preprocessor, x, sample_weight, batch_size, **options)

    def dataset_preparer(self, dataset, labelled):
        import tensorflow as tf

        @tf.autograph.experimental.do_not_convert  # costs a second, without any effect
        def prepare(batch, y=None, sample_weight=None):
            if isinstance(y, dict):  # by `pack` already
                return (batch, y, sample_weight) if labelled else batch
            if y is not None:
                raise TypeError("the dataset gives (x, y); expected one dict by the contract")
            if labelled:
                return self.contract_inputs(batch)
            check_batch(batch, require=["mask_positions"])
            return model_inputs(batch)

        return prepare


def _likeliest(candidates, top_k: int, size: int, temperature: float, output):
    """`id` and `score` of the top candidates [R, P, K], from logits [R, P, V]."""
    import tensorflow as tf

    # The backbone's table may have more rows than there are tokens.
    logits = tf.cast(output["mlm"], tf.float32)[..., :size]
    scores = tf.gather(tf.nn.softmax(logits / temperature), candidates, axis=-1)
    scores, ids = tf.math.top_k(scores, top_k)
    return {"id": tf.gather(candidates, ids), "score": scores}


def _candidates(text: str, tokens, ids, scores) -> list[list[Candidate]]:
    """The candidates for each [MASK] of a text."""
    return [
        [
            Candidate(token.decode(), id, score, put_in(text, mask, token.decode()))
            for token, id, score in zip(*(v.tolist() for v in of_mask), strict=True)
        ]
        for mask, of_mask in enumerate(zip(tokens, ids, scores, strict=True))
    ]


def put_in(text: str, mask: int, token: str) -> str:
    """Replaces a [MASK], by index from 0; a `##` piece is joined to the preceding text."""
    parts = text.split(MASK)
    before, after = MASK.join(parts[: mask + 1]), MASK.join(parts[mask + 1 :])
    if token.startswith("##"):
        before, token = before.rstrip(), token[2:]
    return before + token + after
