"""Pictures of a run's log."""

import importlib.util
import io
import json
import logging
from pathlib import Path

from keras_bert.atomic import write_file

logger = logging.getLogger("keras_bert")


def write_heldout(logs: list[Path], path: Path) -> list[dict]:
    """Writes the held-out losses and metrics over the steps of a run, as a JSON list.

    Args:
        logs: files by `JsonLines`, one a phase in order; one that is missing is passed over. Of two
            lines with the same step the later one counts.
        path: file to write.

    Returns:
        The list, of dicts with `phase`, from 1, `step` of the whole run, and the numbers by name.
    """
    found, before = [], 0
    for phase, log in enumerate(logs, 1):
        epochs = {}
        for line in log.read_text(encoding="utf-8").splitlines() if log.exists() else ():
            values = json.loads(line)
            if "epoch" in values:
                epochs[values["step"]] = values
        for step, values in sorted(epochs.items()):
            heldout = {n.removeprefix("val_"): v for n, v in values.items() if n[:4] == "val_"}
            if heldout:
                found.append({"phase": phase, "step": before + step, **heldout})
        before += max(epochs, default=0)
    write_file(path, (json.dumps(found, indent=1) + "\n").encode())
    return found


def draw_curves(log: str | Path, picture: str | Path) -> list[str]:
    """Draws losses and metrics over the steps of a run, training beside validation.

    Args:
        log: a file by `JsonLines`; its lines of epochs are drawn. Of two lines with the same
            step the later one counts.
        picture: PNG to write.

    Returns:
        Names of what was drawn, each with a panel of its own. Empty without the `matplotlib`
        package, which is said in a warning, or without a line of an epoch.
    """
    if importlib.util.find_spec("matplotlib") is None:
        logger.warning("no picture of the run: the matplotlib package is not installed")
        return []
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    epochs = {}
    with Path(log).open(encoding="utf-8") as file:
        for line in file:
            values = json.loads(line)
            if "epoch" in values:
                epochs[values["step"]] = values
    names = {name.removeprefix("val_") for values in epochs.values() for name in values}
    # What both sides have comes without rates such as `step_ms`.
    names = sorted(n for n in names if any(n in v and f"val_{n}" in v for v in epochs.values()))
    names = names or sorted({n for values in epochs.values() for n in values if "loss" in n})
    if not names:
        return []
    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    figure = Figure(figsize=(4.2 * columns, 3.0 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    for place, name in enumerate(names):
        axes = figure.add_subplot(rows, columns, place + 1)
        for key, label in ((name, "training"), (f"val_{name}", "validation")):
            # JSON has null for what was not finite.
            points = [
                (step, v[key]) for step, v in sorted(epochs.items()) if v.get(key) is not None
            ]
            if points:
                axes.plot(*zip(*points, strict=True), marker=".", label=label)
        if "perplexity" in name:
            axes.set_yscale("log")
        axes.set_title(name)
        axes.set_xlabel("step")
        axes.grid(alpha=0.3)
        axes.legend()

    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=100)
    write_file(picture, content.getvalue())
    return names
