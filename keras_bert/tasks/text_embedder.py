"""Text embeddings for comparison and search (Reimers and Gurevych 2019, arXiv:1908.10084)."""

import math
from collections.abc import Sequence
from pathlib import Path

import keras
import numpy as np
from keras import ops

from keras_bert.arguments import check_choice, check_count
from keras_bert.checkpoints import open_checkpoint
from keras_bert.checkpoints.sentence_transformers import (
    Dense,
    read_embedding_settings,
    write_embedding_settings,
)
from keras_bert.data.examples import Examples, are_ids, is_dataset
from keras_bert.data.table_rows import LIST, NUMERIC, Cell, Table
from keras_bert.data.texts import is_text, text_columns
from keras_bert.layers.activations import get_activation
from keras_bert.layers.initializers import truncated_normal
from keras_bert.layers.pooling import POOLINGS, TextPooling, UnitLength
from keras_bert.metrics import evaluate
from keras_bert.models.backbone import BertBackbone
from keras_bert.serving.signatures import EXAMPLES, TEXT
from keras_bert.tasks.targets import numbers
from keras_bert.tasks.task import BertTask, Rows
from keras_bert.text.embedder_preprocessor import BertTextEmbedderPreprocessor, cosine, nearest
from keras_bert.training.pair_losses import CosinePearson, CosineSquaredError, InBatchNegatives
from keras_bert.training.task_metrics import COSINES, NOTHING

LOSSES = ("contrastive", "cosine")
_QUERIES = 256  # number of queries compared with a corpus at once


@keras.saving.register_keras_serializable(package="keras_bert")
class BertTextEmbedder(BertTask):
    """A backbone whose token states are pooled into one vector per text.

    `fit` takes pairs of texts. With the loss "cosine" each pair has a score, the target of the
    cosine of its embeddings; the loss is the squared error (Reimers and Gurevych 2019, section 3).
    With "contrastive" the texts of a pair match and have no score: among the second texts of the
    batch, the matching one should have the greatest cosine. The loss is the cross-entropy of 20
    times the cosines (see `keras_bert.training.pair_losses.InBatchNegatives`). Examples may include
    hard negatives, which are added to those of the batch. The negatives are those of the same
    replica and micro-batch, so the number of devices and `accumulation_steps` change this loss.

    Args:
        backbone: a `BertBackbone`; for `layers` below the last one with `output_hidden_states`.
        preprocessor: a `BertTextEmbedderPreprocessor`, or None to work on ids alone.
        pooling: "cls", the state of [CLS]; "mean" or "max" over all tokens, including [CLS] and
            [SEP]; "pooler", the backbone's pooled output; or several of the first three, whose
            vectors are concatenated.
        layers: indices of the hidden states to average: 0 is the embeddings' output, i that of
            block i, from 1; negative ones count from the last, -1. For "pooler" (-1,).
        normalize: whether to normalize embeddings to length 1.
        loss: "contrastive" or "cosine".
        dense: dense layers after the pooling, dicts of `units`, `activation` and `use_bias`.
        prompts: prefixes by name that `embed` adds to a text, such as {"query": "query: "}.
        default_prompt: the name of the prompt that `embed`, and methods that use it, add by
            default. `fit` and `predict` do not add prompts.
        **kwargs: as `keras.Model`.

    `fit` takes a tuple (firsts, seconds) of two lists of N texts; for "contrastive" also (anchors,
    positives, negatives), where negatives are N texts or N lists of M texts. For "cosine" y are N
    scores from -1 to 1 (those of STS-B run from 0 to 5: divide them by 5); for "contrastive" y is
    None, and `validation_data` is (x,) or a dataset. A dataset yields (x, y) for "cosine",
    ((firsts, seconds),) or ((anchors, positives, negatives),) for "contrastive". Ids are [N, C, T],
    C texts per example.

    Call arguments:
        inputs: the backbone's, int32 [B, T]; or with an additional axis, [B, C, T] for C texts per
            example.

    Returns:
        float32 embeddings [B, H], or [B, C, H].

    Raises:
        ValueError: if an argument is none of these, the backbone does not output its hidden states,
            or the preprocessor does not fit it.
    """

    preprocessor_cls = BertTextEmbedderPreprocessor
    most_texts = None
    answers_read_rows = False
    reads_several = True
    column_names = ("text", "text_pair", "negatives", "label", "weight")

    def __init__(
        self,
        backbone: BertBackbone,
        preprocessor: BertTextEmbedderPreprocessor | None = None,
        pooling: str | Sequence[str] = "mean",
        layers: Sequence[int] = (-1,),
        normalize: bool = False,
        loss: str = "contrastive",
        dense: Sequence[dict] = (),
        prompts: dict[str, str] | None = None,
        default_prompt: str | None = None,
        **kwargs,
    ):
        poolings = [pooling] if isinstance(pooling, str) else list(pooling)
        once = len({*poolings}) == len(poolings) and (
            "pooler" not in poolings or len(poolings) == 1
        )
        if not poolings or not once or not {*poolings} <= {*POOLINGS}:
            raise ValueError(
                f"pooling={pooling!r}: expected some of {', '.join(POOLINGS)}, each once, and "
                "'pooler' alone"
            )
        if default_prompt is not None and default_prompt not in (prompts or {}):
            raise ValueError(f"default_prompt={default_prompt!r}: expected a name in prompts")
        check_choice("loss", loss, LOSSES)
        chosen = _check_layers(layers, backbone, pooling)

        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.dense_layers = [
            keras.layers.Dense(
                layer["units"],
                activation=get_activation(layer["activation"]),
                use_bias=layer["use_bias"],
                kernel_initializer=truncated_normal(backbone.initializer_range),
                dtype="float32",
                name=f"head_{number}",
            )
            for number, layer in enumerate(dense)
        ]

        # === Functional model === of the rows of all texts
        inputs = backbone.input
        encoded = self.encode(inputs)
        if poolings == ["pooler"]:
            vectors = keras.ops.cast(encoded["pooled_output"], "float32")  # [B, H]
        else:
            last = [encoded["sequence_output"]]  # [B, T, H]
            states = last if chosen == [backbone.num_layers] else encoded["hidden_states"]
            states = states if states is last else [states[i] for i in chosen]
            vectors = [
                TextPooling(name, name=f"pooling_{name}")(states, inputs["padding_mask"])
                for name in poolings
            ]
            vectors = keras.ops.concatenate(vectors, axis=-1) if len(vectors) > 1 else vectors[0]
        for layer in self.dense_layers:
            vectors = layer(vectors)
        if normalize:
            vectors = UnitLength(name="unit_length")(vectors)
        self.pair_loss = loss  # before the model is compiled, which construction ends with
        super().__init__(inputs=inputs, outputs=vectors, **kwargs)

        # === Configuration ===
        self.pooling = pooling if isinstance(pooling, str) else poolings
        self.dense = [dict(layer) for layer in dense]
        self.prompts, self.default_prompt = dict(prompts or {}), default_prompt
        self.pooled_layers = [int(i) for i in layers]
        self.normalize = normalize

    @classmethod
    def from_preset(
        cls,
        preset: str | Path,
        *,
        load_weights: bool = True,
        skip_mismatch: bool = False,
        **settings,
    ):
        """Makes an embedder, as `BertTask.from_preset`, or from sentence-transformers' directories.

        Such a directory defines how embeddings are computed, with its dense layers and prompts.

        Raises:
            FileNotFoundError: if there is nothing at `preset`, or a file is missing.
            TypeError: if an argument is unknown.
            ValueError: as `BertTask.from_preset`, or if a directory of sentence-transformers
                computes embeddings in a way that is not supported.
        """
        beside = read_embedding_settings(preset)
        if beside is None:
            return super().from_preset(
                preset, load_weights=load_weights, skip_mismatch=skip_mismatch, **settings
            )
        found = {
            "pooling": beside.pooling if len(beside.pooling) > 1 else beside.pooling[0],
            "normalize": beside.normalize,
            "prompts": beside.prompts,
            "default_prompt": beside.default_prompt,
        }
        sizes = ((d.kernel.shape[1], d.activation, d.bias is not None) for d in beside.dense)
        names = ("units", "activation", "use_bias")
        found["dense"] = [dict(zip(names, size, strict=True)) for size in sizes]
        checkpoint = open_checkpoint(beside.checkpoint, load_weights)
        if beside.sequence_length and checkpoint.contents is not None:
            positions = settings.get("max_sequence_length")
            positions = positions or checkpoint.contents.config["max_sequence_length"]
            found["sequence_length"] = min(beside.sequence_length, positions)
        if beside.lowercase and checkpoint.contents and checkpoint.contents.tokenizer:
            # Lower-casing is applied before the tokenizer, whose treatment of accents is kept.
            tokenizer = checkpoint.contents.tokenizer
            if not tokenizer.get("lowercase", True):
                accents = bool(tokenizer.get("strip_accents"))
                tokenizer |= {"lowercase": True, "strip_accents": accents}
        settings = found | {n: value for n, value in settings.items() if value is not None}
        embedder = cls._from_checkpoint(checkpoint, load_weights, skip_mismatch, settings)
        pairs = zip(embedder.dense_layers, beside.dense, strict=False) if load_weights else ()
        for layer, dense in pairs:
            layer.set_weights([dense.kernel] + [dense.bias] * layer.use_bias)
            paths = [weight.path for weight in layer.weights]
            report = embedder.loading_report
            report.new[:] = [path for path in report.new if path not in paths]
            report.loaded += paths
        return embedder

    @classmethod
    def complete_settings(cls, own, network, checkpoint, skip_mismatch):
        fitting = super().complete_settings(own, network, checkpoint, skip_mismatch)
        if [*own.get("layers", (-1,))] != [-1]:
            network.setdefault("output_hidden_states", True)
        return fitting

    def write_beside(self, folder: Path) -> None:
        """Adds sentence-transformers' files to a Hugging Face directory, as `save_checkpoint` does.

        Raises:
            ValueError: if embeddings use hidden states other than the last or the pooler, or there
                is no preprocessor.
        """
        if self.pooled_layers != [-1] or self.preprocessor is None:
            raise ValueError(
                f"sentence-transformers takes the last layer and texts: layers="
                f"{self.pooled_layers}, preprocessor={self.preprocessor}"
            )
        layers = [
            Dense(said["activation"], *map(ops.convert_to_numpy, layer.weights[:1]), bias)
            for said, layer in zip(self.dense, self.dense_layers, strict=True)
            for bias in [ops.convert_to_numpy(layer.bias) if said["use_bias"] else None]
        ]
        pooling = [self.pooling] if isinstance(self.pooling, str) else self.pooling
        length, prompts = self.preprocessor.sequence_length, (self.prompts, self.default_prompt)
        settings = (pooling, layers, self.normalize, length, *prompts)
        write_embedding_settings(folder, self.backbone.hidden_dim, *settings)

    @property
    def output_kind(self) -> str:
        """As `BertTask.output_kind`, depending on the loss."""
        return NOTHING if self.pair_loss == "contrastive" else COSINES

    @property
    def only_in_presets(self) -> tuple[str, ...]:
        """Descriptions of what is lost if `save_checkpoint` writes another format."""
        return (
            f"no other form says how embeddings are made: pooling {self.pooling!r}, layers "
            f"{self.pooled_layers}, normalize {self.normalize} and loss {self.pair_loss!r} are "
            "left out",
        )

    @property
    def needs_labels(self) -> bool:
        """Whether training needs scores of pairs."""
        return self.pair_loss != "contrastive"

    def default_loss(self):
        return InBatchNegatives() if self.pair_loss == "contrastive" else CosineSquaredError()

    def default_metrics(self) -> list:
        return [] if self.pair_loss == "contrastive" else [CosinePearson()]

    # === Rows ===

    def examples(self, x, y=None) -> Examples:
        return super().examples(_with_columns_of_negatives(x), y)

    def table_cells(self, given, labelled):
        cells = super().table_cells(given, labelled)
        cells["text_pair"] = Cell(required=labelled)
        if labelled and self.pair_loss == "contrastive":
            del cells["label"]
            cells["negatives"] = Cell(LIST, required=False)
        return cells

    @property
    def label_kind(self) -> str:
        return NUMERIC

    def examples_of_table(self, columns):
        x, y = super().examples_of_table(columns)
        return ((*x, columns["negatives"]) if "negatives" in columns else x), y

    def _labelled(self, x, y, method):
        if is_dataset(x) or isinstance(x, Table):
            return super()._labelled(x, y, method)
        count = self._count_examples(x)
        if y is None and self.pair_loss == "contrastive":
            y = np.arange(count)
        return super()._labelled(x, y, method)

    def rows(self, *columns, prompt: str = "") -> Rows:
        import tensorflow as tf

        texts = (tf.strings.join([prompt, c]) if prompt else c for c in columns)
        return Rows(self.preprocessor.pack(tuple(texts)))

    # === Answers ===

    def answers(self, outputs, rows, text, prompt: str = ""):
        """`embedding`, float32 [B, H]."""
        return {"embedding": outputs[:, 0]}

    def signatures(self, prompt: str | None = None):
        """Lists `serving_default`, for texts, and `similarity`, for pairs; `prompt`, as `embed`.

        The first takes `text`, string [B], and returns `embedding`, float32 [B, H]; the second also
        takes `text_pair`, and returns the `cosine` of both texts' embeddings, float32 [B].

        Raises:
            ValueError: if there is no such prompt.
        """
        prompt = self.default_prompt if prompt is None else prompt
        if prompt:
            check_choice("prompt", prompt, self.prompts)
        found = super().signatures(prompt=self.prompts[prompt] if prompt else "")
        asks = {"text": TEXT, "text_pair": TEXT}
        example = {"text": EXAMPLES[:1], "text_pair": ["Ice lay on the water in the morning."]}
        found["similarity"] = found["serving_default"]._replace(
            asks=asks, example=example, answers=_cosines
        )
        return found

    def predict(self, x, batch_size: int | None = None, **kwargs):
        """Computes embeddings, float32: [N, H] for N texts or ids [N, T], [N, C, H] for examples.

        Examples of C texts each are a tuple, as in `fit`.
        """
        found = super().predict(x, batch_size, **kwargs)
        several = isinstance(x, tuple) or found.ndim < 3 or found.shape[1] > 1
        return found if several else found[:, 0]

    def embed(
        self, texts, batch_size: int | None = None, prompt: str | None = None, **kwargs
    ) -> np.ndarray:
        """Computes the embedding of each text, float32 [N, H]; of one text [H].

        Args:
            texts: a list of N texts, or one text.
            batch_size: rows of a batch, 32 by default.
            prompt: the name of one of `prompts`, which is prepended to every text; by default
                `default_prompt`, and "" for none.
            **kwargs: as `keras.Model.predict`, without a progress bar by default.

        Returns:
            The embeddings.

        Raises:
            TypeError: if a text is not a string.
            ValueError: for pairs (use `predict`), or if there is no such prompt.
        """
        if isinstance(texts, tuple):
            raise ValueError("got a tuple: embed takes a list of texts")
        if is_text(texts):
            return self.embed([texts], batch_size, prompt, **kwargs)[0]
        return self.answers_to(texts, batch_size, kwargs, prompt=prompt)["embedding"]

    def similarity(self, firsts, seconds, batch_size: int | None = None, **kwargs) -> np.ndarray:
        """Computes the cosine similarity of each pair of texts.

        Args:
            firsts: N texts, or one.
            seconds: as many.
            batch_size: rows of a batch, 32 by default.
            **kwargs: as `embed`.

        Returns:
            float32 [N]; for two single texts a float.

        Raises:
            TypeError: if a text is not a string.
            ValueError: if their numbers differ.
        """
        if is_text(firsts) and is_text(seconds):
            return float(self.similarity([firsts], [seconds], batch_size, **kwargs)[0])
        columns = text_columns((firsts, seconds))
        sides = (self.embed(column, batch_size, **kwargs) for column in columns)
        return cosine(*sides).numpy()

    def search(self, queries, corpus, top_k: int = 10, batch_size: int | None = None, **kwargs):
        """Finds the texts of a corpus nearest to each query by cosine similarity.

        Args:
            queries: Q texts, or one.
            corpus: N texts, or their embeddings, float [N, H].
            top_k: number of results per query, at most N.
            batch_size: rows of a batch, 32 by default.
            **kwargs: as `embed`.

        Returns:
            (indices, scores): int32 and float32 [Q, top_k], the nearest first; for one query
            [top_k].

        Raises:
            TypeError: if a text is not a string.
            ValueError: if the corpus is empty, its width differs, or `top_k` is below 1.
        """
        if is_text(queries):
            indices, scores = self.search([queries], corpus, top_k, batch_size, **kwargs)
            return indices[0], scores[0]
        check_count("top_k", top_k)
        if not isinstance(corpus, np.ndarray) or corpus.ndim != 2:
            corpus = self.embed(corpus, batch_size, **kwargs)
        if not len(corpus):
            raise ValueError("there are no texts to search")
        width = self.output_shape[-1]
        if corpus.shape[1] != width:
            raise ValueError(f"corpus has shape {corpus.shape}; expected embeddings [N, {width}]")
        count = min(int(top_k), len(corpus))
        found = {"indices": [np.zeros((0, count), "int32")], "scores": [np.zeros((0, count), "f")]}
        vectors = self.embed(queries, batch_size, **kwargs)
        for start in range(0, len(vectors), _QUERIES):
            part = nearest(vectors[start : start + _QUERIES], corpus, count)
            for name, value in part.items():
                found[name].append(value.numpy())
        return np.concatenate(found["indices"]), np.concatenate(found["scores"])

    def scores(self, x, y=None, **kwargs) -> dict[str, float]:
        """Scores embeddings of pairs of texts.

        Args:
            x: pairs, as in `fit`.
            y: for the loss "cosine", the target cosines.
            **kwargs: as `predict`.

        Returns:
            "pearson" and "spearman" of the cosines; for "contrastive" the "accuracy" of finding a
            first text's match among all second texts and negatives.
        """
        x, labels = self._scored(x, y)
        firsts, seconds, *negatives = self.predict(x, **{"verbose": 0} | kwargs).swapaxes(0, 1)
        cosines = cosine(firsts, seconds).numpy()
        if self.pair_loss == "cosine":
            return evaluate(["pearson", "spearman"], labels, cosines)
        greatest = nearest(firsts, np.concatenate([seconds, *negatives]), 1)["scores"].numpy()[:, 0]
        return {"accuracy": float(np.mean(cosines > greatest - 1e-6))}  # ties count as correct

    def encode_labels(self, y) -> np.ndarray:
        """Checks scores, float32 [N]; for the contrastive loss, returns indices of pairs."""
        if self.pair_loss == "contrastive":
            y = np.asarray(y)
            if y.dtype.kind not in "iu" or y.ndim != 1 or len(np.unique(y)) < len(y):
                raise ValueError("the contrastive loss takes no labels: leave y out")
            return y.astype("int32")
        scores = numbers(y, 1)[:, 0]
        wrong = np.abs(scores) > 1
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"score {scores[row]:g} in row {row}: expected cosines, from -1 to 1 (divide those "
                "of STS-B by 5)"
            )
        return scores

    def encode_labels_in_graph(self, y):
        """Casts scores, as `BertTask.encode_labels_in_graph` gets them."""
        import tensorflow as tf

        if y is not None and y.dtype == tf.string:
            raise ValueError("the dataset gives (x, y) with strings as y: a pair is ((x, y),)")
        return y if y is None else tf.reshape(tf.cast(y, tf.float32), [-1])

    def step_inputs(self, x, y=None, sample_weight=None):
        return super().step_inputs(_with_texts_axis(x), y, sample_weight)

    def dataset_preparer(self, dataset, labelled):
        import tensorflow as tf

        prepare = super().dataset_preparer(dataset, labelled)

        def prepare_pairs(*batch):
            x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(prepare(*batch))
            x = _with_texts_axis(x)
            if labelled and self.pair_loss == "contrastive":
                y = tf.range(tf.shape(x["token_ids"])[0])
            return keras.utils.pack_x_y_sample_weight(x, y, sample_weight)

        return prepare_pairs

    def _count_examples(self, x) -> int:
        """The number of examples, of two texts each or more, in what `fit` takes."""
        most = 2 if self.pair_loss == "cosine" else math.inf
        if isinstance(x, Examples):
            x = x.columns
        if are_ids(x):
            shape = np.shape(x.get("token_ids"))
            if len(shape) != 3 or not 2 <= shape[1] <= most:
                raise ValueError(f"token_ids of shape {shape}: expected those of pairs, [N, 2, T]")
            return shape[0]
        if not isinstance(x, tuple) or not 2 <= len(x) <= most:
            raise ValueError(
                f"expected pairs of texts, a tuple (firsts, seconds), got {type(x).__name__}"
                + (f" of {len(x)}: the loss 'cosine' takes two" if isinstance(x, tuple) else "")
            )
        return len(x[0])

    def get_config(self):
        return super().get_config() | {"layers": self.pooled_layers, "loss": self.pair_loss}


def _cosines(outputs, rows, text, text_pair) -> dict:
    return {"cosine": cosine(outputs[:, 0], outputs[:, 1])}


def _check_layers(layers: Sequence[int], backbone: BertBackbone, pooling: str) -> list[int]:
    """The numbers of hidden states, counted from the embeddings' output up."""
    states = backbone.num_layers + 1
    chosen = [int(i) % states for i in layers]
    outside = any(not -states <= i < states for i in layers)
    if not chosen or outside or len(set(chosen)) < len(chosen):
        raise ValueError(
            f"layers={tuple(layers)}: expected numbers of hidden states, from {-states} to "
            f"{states - 1}, each layer once"
        )
    if chosen == [backbone.num_layers]:
        return chosen
    if pooling == "pooler":
        raise ValueError(f"layers={tuple(layers)}: the pooler reads the last layer, (-1,)")
    if not backbone.output_hidden_states:
        raise ValueError(f"layers={tuple(layers)} need a backbone with output_hidden_states=True")
    return chosen


def _with_columns_of_negatives(x):
    """Splits lists of negatives, the last of three columns, into columns of texts."""
    if not isinstance(x, tuple) or len(x) != 3:
        return x
    negatives = x[2].tolist() if hasattr(x[2], "tolist") else list(x[2])
    if not negatives or is_text(negatives[0]):
        return x
    for row, texts in enumerate(negatives):
        if is_text(texts) or not len(texts) or len(texts) != len(negatives[0]):
            raise ValueError(
                f"negatives of row {row} are {texts!r:.80}; expected a list of "
                f"{len(negatives[0]) or 1} texts, as many as in row 0"
            )
    return *x[:2], *map(list, zip(*negatives, strict=True))


def _with_texts_axis(x: dict) -> dict:
    """Ids [B, T] as [B, 1, T]: with a fixed number of axes, Keras traces its steps once."""
    return {name: value[:, None] if value.shape.rank == 2 else value for name, value in x.items()}
