"""The report on every weight of a loaded checkpoint."""

from dataclasses import dataclass, field


@dataclass
class LoadingReport:
    """Names of weights by outcome.

    Args:
        source: location of the checkpoint.
        form: "keras_bert", "google", "huggingface" or "kerashub".
        loaded: weights of the model that were loaded from the checkpoint.
        new: weights of the model that the checkpoint has no value for.
        left_over: tensors of the checkpoint that the model has no place for, by the checkpoint's
            names where we do not know them, else by ours.
        skipped: tensors that did not fit and were let go because of `skip_mismatch`.
        reshaped: what `resize` did to which weight.
    """

    source: str
    form: str
    loaded: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    left_over: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    reshaped: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{self.source} ({self.form}): {len(self.loaded)} weights loaded"]
        for title, names in (
            ("newly initialised", self.new),
            ("left over in the checkpoint", self.left_over),
            ("skipped by skip_mismatch", self.skipped),
            ("reshaped", self.reshaped),
        ):
            if names:
                lines.append(f"{title}: {', '.join(names)}")
        return "; ".join(lines)
