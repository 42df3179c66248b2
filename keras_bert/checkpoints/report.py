"""What became of every weight when a checkpoint was read."""

from dataclasses import dataclass, field


@dataclass
class LoadingReport:
    """Names of weights by what happened to them.

    Args:
        source: where the checkpoint lies.
        form: "keras_bert", "huggingface" or "kerashub".
        loaded: weights of the model that took a value from the checkpoint.
        new: weights of the model that the checkpoint has no value for.
        left_over: tensors of the checkpoint that the model has no place for.
    """

    source: str
    form: str
    loaded: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    left_over: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{self.source} ({self.form}): {len(self.loaded)} weights loaded"]
        if self.new:
            lines.append(f"newly initialised: {', '.join(self.new)}")
        if self.left_over:
            lines.append(f"left over in the checkpoint: {', '.join(self.left_over)}")
        return "; ".join(lines)
