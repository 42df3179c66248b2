"""One door for every form of checkpoint."""

from pathlib import Path
from typing import Any

from keras_bert.checkpoints import huggingface, kerashub, preset
from keras_bert.checkpoints.report import LoadingReport
from keras_bert.checkpoints.source import Source
from keras_bert.checkpoints.tensors import fill
from keras_bert.models.backbone import BertBackbone
from keras_bert.text.tokenizer import BertTokenizer


class Checkpoint:
    """A checkpoint of any form, read piece by piece.

    Args:
        source: its files.
        form: "keras_bert", "huggingface" or "kerashub".
    """

    def __init__(self, source: Source, form: str):
        self.source = source
        self.form = form
        self.report = LoadingReport(source.name, form)

    def backbone(self, load_weights: bool = True, **overrides) -> BertBackbone:
        """Makes the backbone, with the checkpoint's weights unless told otherwise.

        Args:
            load_weights: False for new weights in the same shape.
            **overrides: `BertBackbone` arguments that replace the checkpoint's.
        """
        if self.form == "keras_bert":
            return preset.load_backbone(self.source, load_weights, self.report, **overrides)
        form = {"huggingface": huggingface, "kerashub": kerashub}[self.form]
        backbone = BertBackbone(**(form.backbone_config(self.source) | overrides))
        if load_weights:
            self._tensors = form.read_tensors(self.source)
            fill(form.backbone_slots(backbone), self._tensors, self.report)
            # Neither form knows adapters.
            self.report.new += [w.path for adapter in backbone.adapters for w in adapter.weights]
        else:
            self.report.new += [weight.path for weight in backbone.weights]
        return backbone

    def has_text_side(self) -> bool:
        """Whether there is a tokenizer: a preset of ours may be for ids alone."""
        return self.form != "keras_bert" or self.source.has("tokenizer.json")

    def tokenizer(self, **overrides) -> BertTokenizer:
        """Makes the tokenizer.

        Args:
            **overrides: `BertTokenizer` settings that replace the checkpoint's.
        """
        if self.form == "keras_bert":
            config = preset.settings(self.source, "tokenizer.json", "BertTokenizer")
            config["dtype"] = preset.dtype_policy(config.get("dtype"), self.source)
            vocabulary = self.source.path("assets/tokenizer/vocab.txt")
            return BertTokenizer(**(config | {"vocabulary": str(vocabulary)} | overrides))
        form = {"huggingface": huggingface, "kerashub": kerashub}[self.form]
        settings, vocabulary = form.tokenizer_config(self.source)
        if isinstance(vocabulary, Path):
            vocabulary = str(vocabulary)
        return BertTokenizer(**(settings | {"vocabulary": vocabulary} | overrides))

    def settings(self, file: str, class_name: str) -> dict[str, Any]:
        """Settings of a preprocessor or task saved by us; empty for the other forms."""
        if self.form != "keras_bert" or not self.source.has(file):
            return {}
        found = self.source.json(file).get("registered_name")
        if found != preset.PACKAGE + class_name:
            return {}
        return preset.settings(self.source, file, class_name)

    def classifier_labels(self) -> list[str] | None:
        """Label names that a Hugging Face classifier carries, else None."""
        return huggingface.classifier_labels(self.source) if self.form == "huggingface" else None

    def fill_classifier(self, head) -> bool:
        """Copies a Hugging Face classifier's head; says whether there was one.

        Raises:
            ValueError: if it has another number of classes.
        """
        if self.form != "huggingface" or "classifier.weight" not in self._tensors:
            return False
        names = ("classifier.weight", "classifier.bias")
        tensors = {name: self._tensors[name] for name in names if name in self._tensors}
        fill(huggingface.classifier_slots(head), tensors, self.report)
        self.report.left_over = [n for n in self.report.left_over if n not in names]
        return True


def open_checkpoint(source: str | Path) -> Checkpoint:
    """Finds out which form a checkpoint has.

    Args:
        source: a preset folder of ours, a Hugging Face directory, a KerasHub preset's name,
            address or folder, or an hf:// address.

    Raises:
        FileNotFoundError: if there is nothing at `source`.
        ValueError: if what is there is no BERT.
    """
    files = Source(source)
    config = files.json("config.json")
    registered = str(config.get("registered_name"))
    if registered.startswith(preset.PACKAGE):
        return Checkpoint(files, "keras_bert")
    if registered == "keras_hub>BertBackbone":
        return Checkpoint(files, "kerashub")
    if "model_type" in config:
        return Checkpoint(files, "huggingface")
    raise ValueError(
        f"{files.name}/config.json describes no BERT: expected a preset of keras_bert, a KerasHub "
        f"BertBackbone or a Hugging Face config with a model_type; found keys "
        f"{', '.join(sorted(config)) or 'none'}"
    )
