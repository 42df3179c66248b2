"""The figure of runs that `ablations.py` compares: a held-out metric by step, over seeds.

Data: the `curve` of each run's result.json, which is the content of its heldout.json.
Run: python recipes/ablations.py ... --figure curves.pdf
"""

import argparse
import importlib.util
import io
import statistics
from pathlib import Path


def figure_path(text: str) -> Path:
    """The value of --figure, checked before anything is trained."""
    if importlib.util.find_spec("matplotlib") is None:
        raise argparse.ArgumentTypeError(
            "matplotlib is missing: pip install --use-pep517 'keras3-bert[plots]'"
        )
    if Path(text).suffix not in (".png", ".pdf", ".svg"):
        raise argparse.ArgumentTypeError(f"{text}: expected a name that ends in .png, .pdf or .svg")
    return Path(text)


def curves(results: list[dict], metric: str) -> dict[str, dict[int, list[float]]]:
    """By variant: the values of a held-out metric, one a seed, at the steps that all seeds have."""
    found: dict[str, list[dict[int, float]]] = {}
    for result in results:
        curve = result.get("curve") or []
        points = {p["step"]: p[metric] for p in curve if p.get(metric) is not None}
        if points:  # a variant may lack the metric, as `no_nsp` has no next sentences
            found.setdefault(result["variant"], []).append(points)
    return {
        variant: {
            step: [run[step] for run in runs] for step in sorted(set.intersection(*map(set, runs)))
        }
        for variant, runs in found.items()
    }


def draw(
    results: list[dict], metric: str, path: Path, labels: dict[str, str] | None = None
) -> list[str]:
    """Draws a held-out metric by step, the mean over seeds with a band of one deviation.

    Args:
        results: of the runs.
        metric: a name in heldout.json, such as "mlm_accuracy" or "mlm_perplexity".
        path: PNG, PDF or SVG to write.
        labels: variants to draw, and their names in the legend; by default all, by their own.

    Returns:
        A line for each variant, with its last point.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogFormatter

    figure = Figure(figsize=(4.8, 3.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes, lines = figure.add_subplot(), []
    found = curves(results, metric)
    labels = labels or {variant: variant for variant in found}
    for variant, points in ((v, found[v]) for v in labels if v in found):
        if not points:
            lines.append(f"{variant}: its seeds have no step in common")
            continue
        mean = [statistics.fmean(values) for values in points.values()]
        deviation = [statistics.pstdev(values) for values in points.values()]
        seeds = len(next(iter(points.values())))
        label = f"{labels[variant]} ({seeds} seed{'s' * (seeds > 1)})"
        (line,) = axes.plot(list(points), mean, marker=".", label=label)
        if seeds > 1:
            low = [m - d for m, d in zip(mean, deviation, strict=True)]
            high = [m + d for m, d in zip(mean, deviation, strict=True)]
            axes.fill_between(list(points), low, high, color=line.get_color(), alpha=0.2, lw=0)
        lines.append(f"{label}: {metric} {mean[-1]:.4g} ± {deviation[-1]:.2g} at {max(points)}")
    axes.set_xlabel("step")
    axes.set_ylabel(f"held-out {metric}")
    if "perplexity" in metric:
        axes.set_yscale("log")
        for level in ("major", "minor"):  # 1800, not 1.8 x 10^3
            getattr(axes.yaxis, f"set_{level}_formatter")(LogFormatter())
    axes.grid(alpha=0.3)
    if axes.lines:  # above the axes, where it hides no curve
        columns = 1 if len(axes.lines) < 5 else 2
        place = {"loc": "outside upper left", "ncols": columns}
        figure.legend(**place, frameon=False, fontsize="small")
    content = io.BytesIO()
    with rc_context({"pdf.fonttype": 42, "svg.fonttype": "none"}):  # text stays text
        figure.savefig(content, format=path.suffix[1:], dpi=200)
    new = path.with_name(f".{path.name}.new")
    new.parent.mkdir(parents=True, exist_ok=True)
    new.write_bytes(content.getvalue())
    new.replace(path)
    return lines or [f"no run has the held-out metric {metric}"]
