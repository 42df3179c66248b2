"""The entry point for checkpoints of every format."""

import inspect
import logging
from pathlib import Path
from typing import Any

import keras

from keras_bert.checkpoints import google, huggingface, kerashub, preset
from keras_bert.checkpoints.checks import check_size, check_vocabulary_fits, shown
from keras_bert.checkpoints.contents import (
    MASKED_LM,
    NEXT_SENTENCE,
    TASK_ARGUMENTS,
    Contents,
)
from keras_bert.checkpoints.names import weights_by_name
from keras_bert.checkpoints.report import LoadingReport
from keras_bert.checkpoints.source import Source
from keras_bert.checkpoints.tensorflow_files import OBJECT_GRAPH, read_index
from keras_bert.checkpoints.tensors import fill
from keras_bert.models.backbone import BertBackbone
from keras_bert.text.tokenizer import BertTokenizer
from keras_bert.text.vocabulary import read_vocabulary

logger = logging.getLogger("keras_bert")
_SHOWN = 500  # characters of a file's keys in an error


class Checkpoint:
    """A checkpoint of any format, read piece by piece.

    Args:
        source: its files.
        form: "keras_bert", "google", "huggingface" or "kerashub".
        contents: the contents of the three others; None for a preset of this package, whose parts
            are read by Keras into the layers that they came from.
    """

    def __init__(self, source: Source, form: str, contents: Contents | None = None):
        self.source = source
        self.form = form
        self.contents = contents
        self.report = LoadingReport(source.name, form)
        if contents is not None:
            names = ("embeddings/", "block_", "pooler/")
            others = [name for name in contents.tensors if not name.startswith(names)]
            self.report.left_over = [*contents.left_over, *others]  # until a model takes them

    def backbone(self, load_weights: bool = True, **overrides) -> BertBackbone:
        """Makes the backbone, by default with the checkpoint's weights.

        Args:
            load_weights: False for new weights in the same shape.
            **overrides: `BertBackbone` arguments that replace the checkpoint's.

        Returns:
            The backbone.

        Raises:
            TypeError: if an override is unknown, such as a misspelt argument of `from_preset`.
        """
        known = inspect.signature(BertBackbone.__init__).parameters.keys() | {"name", "trainable"}
        if unknown := sorted(overrides.keys() - known):
            raise TypeError(
                f"unknown argument {', '.join(unknown)}: expected those of from_preset and of "
                "BertBackbone"
            )
        if self.contents is None:
            return preset.load_backbone(self.source, load_weights, self.report, **overrides)
        backbone = BertBackbone(**(self.contents.config | overrides))
        weights = weights_by_name(backbone)
        if not load_weights:
            self.report.new += [weight.path for weight in weights.values()]
            return backbone
        # No other form knows adapters; all but the original may lack a pooler.
        adapters = [w.path for adapter in backbone.adapters for w in adapter.weights]
        own = {name: weight for name, weight in weights.items() if weight.path not in adapters}
        fill(own, self.contents.tensors, self.report, optional=["pooler/"])
        self.report.new += adapters
        return backbone

    def has_text_side(self) -> bool:
        """Whether there is a tokenizer: a checkpoint may be for ids alone."""
        if self.contents is None:
            return self.source.has("tokenizer.json")
        return self.contents.tokenizer is not None

    def tokenizer(self, **overrides) -> BertTokenizer:
        """Makes the tokenizer.

        Args:
            **overrides: `BertTokenizer` settings that replace the checkpoint's.

        Returns:
            The tokenizer.
        """
        if self.contents is None:
            config = preset.settings(self.source, "tokenizer.json", "BertTokenizer")
            config["dtype"] = preset.dtype_policy(config.get("dtype"), self.source)
            path = self.source.path("assets/tokenizer/vocab.txt")
            vocabulary: Any = str(path)
            if self.source.has("config.json"):
                backbone = preset.settings(self.source, "config.json", "BertBackbone")
                check_size(backbone.get("vocabulary_size"), "vocabulary_size", self.source.name)
                check_vocabulary_fits(read_vocabulary(path), backbone, str(path))
        else:
            config, vocabulary = self.contents.tokenizer, self.contents.vocabulary
        return BertTokenizer(**(config | {"vocabulary": vocabulary} | overrides))

    def preprocessor(self, kind: type, positions: int | None = None, **wanted):
        """Makes a preprocessor; None without a tokenizer.

        Args:
            kind: its class, whose `settings` are the names of its arguments.
            positions: maximum number of tokens of the backbone; by default the checkpoint's.
            **wanted: settings that override the checkpoint's, if not None.

        Returns:
            The preprocessor, with rows as long as the position table if neither the checkpoint nor
            `wanted` sets a length.

        Raises:
            TypeError: if `kind` has no such setting.
        """
        if unknown := sorted(wanted.keys() - {*kind.settings}):
            raise TypeError(
                f"unknown argument {', '.join(unknown)}: expected settings of {kind.__name__}, "
                f"{', '.join(kind.settings)}"
            )
        if not self.has_text_side():
            if self.contents is not None:  # a preset of ours was saved without one
                logger.warning(
                    "%s has no vocabulary (vocab.txt or tokenizer.json), so a task takes ids "
                    "alone; for texts set its preprocessor",
                    self.source.name,
                )
            return None
        if positions is None and self.contents is not None:
            positions = self.contents.config["max_sequence_length"]
        elif positions is None and self.source.has("config.json"):
            config = preset.settings(self.source, "config.json", "BertBackbone")
            positions = config["max_sequence_length"]
        settings = {"padding": "bucket"}
        for name in (kind.__name__, *kind.takes_settings_of):
            if saved := self.settings("preprocessor.json", name):
                settings |= {name: saved[name] for name in kind.settings if name in saved}
                break
        settings |= {name: value for name, value in wanted.items() if value is not None}
        return kind(self.tokenizer(), **kind.completed(settings, positions))

    def settings(self, file: str, class_name: str) -> dict[str, Any]:
        """Settings of a preprocessor or task saved by us; empty for the other forms.

        Args:
            file: such as "task.json".
            class_name: of the class that the settings have to be of.

        Returns:
            Its arguments by name, or {}.
        """
        if self.contents is not None or not self.source.has(file):
            return {}
        found = self.source.json(file).get("registered_name")
        if found != preset.registered(class_name):
            return {}
        return preset.settings(self.source, file, class_name)

    def head_name(self) -> str | None:
        """What the checkpoint holds a head of, in words: a class of ours, or a kind; or None."""
        if self.contents is not None:
            return self.contents.head and self.contents.head.replace("_", " ")
        if not self.source.has("task.json"):
            return None
        found = str(self.source.json("task.json").get("registered_name"))
        return shown(found.removeprefix(preset.PACKAGE))[:_SHOWN]

    def heads(self) -> list[str]:
        """The heads that another form holds: names of layers of ours; empty for our presets."""
        if self.contents is None:
            return []
        prefixes = (MASKED_LM, NEXT_SENTENCE, "head/")
        return [prefix.rstrip("/") for prefix in prefixes if self.contents.has(prefix)]

    def masked_lm_settings(self) -> dict[str, Any]:
        """Arguments of a task that belong to the masked-LM head of the checkpoint, or {}."""
        if self.contents is not None:
            return {TASK_ARGUMENTS[name]: value for name, value in self.contents.masked_lm.items()}
        names = ("BertMaskedLM", "BertPretrainer")
        saved = next(filter(None, (self.settings("task.json", name) for name in names)), {})
        names = (*TASK_ARGUMENTS.values(), "temperature")
        return {n: saved[n] for n in names if saved.get(n) is not None}

    def fill_head(self, model: keras.Model, name: str) -> None:
        """Copies one of `heads` into the layer of that name.

        Args:
            model: has the layer.
            name: of the head.

        Raises:
            ValueError: if a tensor is missing or does not fit.
        """
        weights = weights_by_name(model)
        own = {key: weight for key, weight in weights.items() if key.startswith(f"{name}/")}
        fill(own, self.contents.tensors, self.report)
        self.report.left_over = [n for n in self.report.left_over if n not in own]


def open_checkpoint(source: str | Path, load_weights: bool = True) -> Checkpoint:
    """Detects the format of a checkpoint, and reads it unless it is a preset of this package.

    Args:
        source: a preset folder of ours or a name of one in the package; a Hugging Face directory
            or an hf:// address; a KerasHub preset's name, address or folder; a folder with a
            checkpoint by google-research/bert, or the prefix or .index file of one.
        load_weights: False to leave the weights of the other forms unread.

    Returns:
        The `Checkpoint`, which makes backbone, tokenizer and heads.

    Raises:
        FileNotFoundError: if there is nothing at `source`, or a file is missing.
        ConnectionError: if it has to be downloaded, and there is no network.
        ValueError: if the checkpoint is not a BERT, or is damaged.
    """
    path, prefix = Path(source), None
    if not path.is_dir() and (path.parent / google.CONFIG).is_file():
        prefix = path.name.removesuffix(".index")
        files = Source(path.parent)
    else:
        files = Source(source)
    if files.has(google.CONFIG) and not files.has("config.json"):
        contents = google.read(files, load_weights, prefix)
        return Checkpoint(files, "google", contents)
    if files.has("tokenizer.json") and not files.has("config.json"):
        # A tokenizer or preprocessor that was saved by itself.
        if str(files.json("tokenizer.json").get("registered_name")).startswith(preset.PACKAGE):
            return Checkpoint(files, "keras_bert")
    if files.folder and not files.has("config.json"):
        _check_form(files)
    config = files.json("config.json")
    registered = str(config.get("registered_name"))
    if registered.startswith(preset.PACKAGE):
        return Checkpoint(files, "keras_bert")
    if registered in ("keras_hub>BertBackbone", "keras_nlp>BertBackbone"):  # its name until 2024
        return Checkpoint(files, "kerashub", kerashub.read(files, load_weights))
    if "model_type" in config:
        return Checkpoint(files, "huggingface", huggingface.read(files, load_weights))
    raise ValueError(
        f"{files.name}/config.json describes no BERT: expected a preset of keras_bert, a KerasHub "
        f"BertBackbone, a Hugging Face config with a model_type, or {google.CONFIG} instead; found "
        f"keys {shown(', '.join(sorted(config)))[:_SHOWN] or 'none'}"
    )


def _check_form(files: Source) -> None:
    """Names the form of a folder that none of our readers is for.

    Raises:
        ValueError: if it is TensorFlow 2's.
    """
    if files.has("saved_model.pb"):
        raise ValueError(
            f"{files.name} is a SavedModel, a graph to serve, which is another form than a "
            "checkpoint: expected the model's weights with a config.json"
        )
    indices = sorted(files.folder.glob("*.index"))
    if indices and OBJECT_GRAPH in read_index(indices[0]):
        raise google.another_form(files.name)
