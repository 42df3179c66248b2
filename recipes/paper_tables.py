"""Tables 5 to 8 and figure 5 of Devlin et al. 2019 at a small size, for ablations.py --tables.

Each says which runs it needs, and prints their results. Results: recipes/README.md.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

HEADLINES = {"cola": "matthews", "mrpc": "f1", "stsb": "spearman", "squad": "f1", "ner": "dev_f1"}
HEADLINES["features"] = "dev_f1"  # the others: accuracy
LABELS = {"cola": "CoLA", "mnli": "MNLI", "mrpc": "MRPC", "qnli": "QNLI", "sst2": "SST-2"}
LABELS |= {"squad": "SQuAD", "ner": "NER, fine-tuned", "features": "NER, frozen"}
# Shares of [MASK], the same token and a random one, in the order of the paper's rows.
MASKS = [(80, 10, 10), (100, 0, 0), (80, 0, 20), (80, 20, 0), (0, 20, 80), (0, 0, 100)]
SIZES = [(3, 256), (6, 256), (9, 256), (12, 256), (3, 384), (6, 384)]
LARGEST_FIRST = sorted(SIZES, key=lambda size: -size[0] * size[1] ** 2)
PAIRS = ["mnli", "qnli", "mrpc"]
NO_NSP = "--objective mlm --cross_documents"
CAUSAL = "--objective lm --cross_documents --predictions 127"


class Table(NamedTuple):
    """Runs, and how they are shown.

    Attributes:
        title: what it is.
        variants: flags of keras-bert pretrain by name; None for the presets that are given.
        tasks: names of tasks; of some variants, by their name, others.
        show: makes Markdown of the results.
        seeds: of pre-training.
        task_seeds: of fine-tuning; of presets, that of the run.
    """

    title: str
    variants: dict[str, str] | None
    tasks: dict[str, list[str]]
    show: Callable
    seeds: tuple = (0,)
    task_seeds: tuple = (0,)

    def tasks_of(self, variant: str) -> list[str]:
        """The tasks of a variant."""
        return self.tasks.get(variant, self.tasks.get("", []))


def masks_name(shares: tuple) -> str:
    """The variant of these shares; that of 80, 10, 10 is the base."""
    return "base" if shares == MASKS[0] else "masks_{}_{}_{}".format(*shares)


def size_name(size: tuple) -> str:
    """The variant of so many layers and units."""
    return "base" if size == (6, 256) else "L{}_H{}".format(*size)


# === Markdown ===


def score_of(results: list[dict], task: str, metric: str | None = None) -> list[float]:
    """A metric of all runs; runs of one pre-training are averaged."""
    metric = metric or HEADLINES.get(task.partition("+")[0], "accuracy")
    found = [result.get(task, {}).get(metric) for result in results]
    return [one["mean"] for one in found if one]


def cell(values: list[float], digits: int = 3) -> str:
    """Mean and population deviation over seeds, and how many if they are not three."""
    if not values:
        return "-"
    spread = f" ± {np.std(values):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{spread}"


def markdown(heading: list[str], rows: list[list[str]]) -> str:
    """A table."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def task_cell(results: list[dict], task: str) -> str:
    """A task's cell. One of a single pre-training has the deviation over fine-tuning."""
    digits = 1 if task.startswith("squad") else 3
    if len(results) != 1:
        return cell(score_of(results, task), digits)
    metric = HEADLINES.get(task.partition("+")[0], "accuracy")
    runs = results[0].get(task, {}).get("by_seed", [])
    return cell([run[metric] for run in runs], digits)


def perplexity(results: list[dict], key: str = "mlm_perplexity") -> list[float]:
    """Held-out, in the rows and masks that the run is trained on."""
    return [r["own_heldout"][key] for r in results if (r.get("own_heldout") or {}).get(key)]


# Student's t of 95% for 2, 3, ... differences.
T95 = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262]


def differences(of: Callable, tasks: list[str], pairs: dict[str, tuple]) -> str:
    """Mean differences of the runs with the same seed, with their 95% confidence interval.

    Args:
        of: the runs of a variant.
        tasks: the columns.
        pairs: by its label (variant, ending of its tasks, the one it is compared with, its ending).
    """
    rows = []
    for label, (first, ending, second, other) in pairs.items():
        line = [label]
        for task in tasks:
            found = []
            for one in of(first):
                for two in of(second):
                    if one["seed"] == two["seed"]:
                        a, b = score_of([one], task + ending), score_of([two], task + other)
                        found += [x - y for x, y in zip(a, b, strict=False)]
            digits = 1 if task == "squad" else 3
            text = f"{np.mean(found):+.{digits}f}" if found else "-"
            if 1 < len(found) <= len(T95) + 1:
                half = T95[len(found) - 2] * np.std(found, ddof=1) / np.sqrt(len(found))
                low, high = np.mean(found) - half, np.mean(found) + half
                text += f" [{low:+.{digits}f}, {high:+.{digits}f}]"
            line.append(text)
        rows.append(line)
    return markdown(["difference", *(LABELS[task] for task in tasks)], rows)


def objectives(of: Callable) -> str:
    """Table 5, its differences, and the held-out curves."""
    tasks = [*PAIRS, "sst2", "cola", "squad"]
    rows = []
    names = {"base": "masked + next sentence", "no_nsp": "no next sentence"}
    names |= {"causal": "left to right, no next sentence", "causal+bilstm": "+ BiLSTM"}
    for variant, label in names.items():
        name, plus, _ = variant.partition("+")
        suffix = "+bilstm" if plus else ""
        cells = [task_cell(of(name), task + suffix) for task in tasks]
        rows.append([label, str(len(of(name))), *cells])
    text = markdown(["", "runs", *(LABELS[task] for task in tasks)], rows)
    pairs = {
        "no next sentence - with it": ("no_nsp", "", "base", ""),
        "left to right - both directions": ("causal", "", "no_nsp", ""),
        "left to right with BiLSTM - without": ("causal", "+bilstm", "causal", ""),
        "left to right with BiLSTM - both directions": ("causal", "+bilstm", "no_nsp", ""),
    }
    return f"{text}\n\n{differences(of, tasks, pairs)}\n\n{curves(of)}"


# The variants of the held-out curves.
CURVES = {"base": "masked + next sentence", "no_nsp": "masked", "causal": "left to right"}


def curve_points(of: Callable, name: str) -> dict[int, list[float]]:
    """Held-out accuracies of a variant's runs by step."""
    points: dict[int, list[float]] = {}
    for run in of(name):
        for point in run.get("curve", []):
            if point.get("mlm_accuracy"):
                points.setdefault(point["step"], []).append(point["mlm_accuracy"])
    return points


def curves(of: Callable) -> str:
    """Held-out accuracy over steps: of masked tokens, or of the next token."""
    points = [curve_points(of, name) for name in CURVES]
    steps = sorted({step for column in points for step in column})
    rows = [[f"{step:,}", *(cell(column.get(step, [])) for column in points)] for step in steps]
    return markdown(["step", *CURVES.values()], rows)


def fewer_steps(of: Callable) -> str:
    """Figure 5: MNLI after fewer steps, each with a schedule of its own."""
    rows = []
    for part, label in (("_quarter", "a quarter"), ("_half", "half"), ("", "all")):
        runs = {name: of(name + part) for name in ("no_nsp", "causal")}
        steps = next((f"{r['steps']:,}" for rs in runs.values() for r in rs if r.get("steps")), "-")
        rows.append([label, steps, *(task_cell(runs[name], "mnli") for name in runs)])
    return markdown(["", "steps", "masked", "left to right"], rows)


def masks(of: Callable) -> str:
    """Table 8."""
    tasks = ["mnli", "ner", "features"]
    rows = [
        [*map(str, shares), *(task_cell(of(masks_name(shares)), task) for task in tasks)]
        for shares in MASKS
    ]
    return markdown(["[MASK], %", "same, %", "random, %", *(LABELS[t] for t in tasks)], rows)


def layers(of: Callable) -> str:
    """Table 7: F1 of dev and test by preset."""
    names = list(dict.fromkeys(result["variant"] for result in of(None)))
    choices = list(
        dict.fromkeys(c for r in of(None) for c in r.get("layers", {}).get("by_layers", {}))
    )
    rows = []
    for choice in ["fine-tuned", *choices]:
        line = [choice]
        for name in names:
            for metric in ("dev_f1", "test_f1"):
                values = []
                for result in of(name):
                    found = result.get("ner", {})
                    if choice != "fine-tuned":
                        found = result.get("layers", {}).get("by_layers", {}).get(choice, {})
                    values += [run[metric] for run in found.get("by_seed", []) if metric in run]
                line.append(cell(values, 4))
        rows.append(line)
    heading = ["", *(f"{name}, {part}" for name in names for part in ("dev", "test"))]
    return markdown(heading, rows)


def sizes(of: Callable) -> str:
    """Table 6."""
    tasks = ["mnli", "mrpc", "sst2"]
    rows = []
    for size in SIZES:
        runs = of(size_name(size))[:1]
        weights = f"{runs[0]['weights'] / 1e6:.1f} M" if runs else "-"
        rows.append([*map(str, size), weights, cell(perplexity(runs), 1)])
        rows[-1] += [task_cell(runs, task) for task in tasks]
    return markdown(["layers", "width", "weights", "perplexity", *(LABELS[t] for t in tasks)], rows)


def ways(of: Callable) -> str:
    """ELMo's, GPT's and BERT's way."""
    tasks = [*PAIRS, "sst2", "squad"]
    rows = []
    for label, name, suffix in (
        ("frozen, left to right, BiLSTM on top", "causal", "+frozen"),
        ("frozen, both directions, BiLSTM on top (ELMo's way)", "no_nsp", "+frozen"),
        ("left to right, fine-tuned (GPT's way)", "causal", ""),
        ("left to right, fine-tuned with a BiLSTM on top", "causal", "+bilstm"),
        ("both directions, fine-tuned (BERT's way)", "no_nsp", ""),
    ):
        tagged = {"+frozen": "features", "": "ner"}.get(suffix)
        cells = [task_cell(of(name), task + suffix) for task in tasks]
        rows.append([label, *cells, task_cell(of(name), tagged) if tagged else "-"])
    text = markdown(["", *(LABELS[task] for task in tasks), "NER"], rows)
    pairs = {
        "fine-tuned - frozen, both directions": ("no_nsp", "", "no_nsp", "+frozen"),
        "fine-tuned - frozen, left to right": ("causal", "", "causal", "+frozen"),
        "both directions - left to right, frozen": ("no_nsp", "+frozen", "causal", "+frozen"),
    }
    return f"{text}\n\n{differences(of, tasks, pairs)}"


# === The tables ===

_OBJECTIVES = {"base": "", "no_nsp": NO_NSP, "causal": CAUSAL}
_TASKS = [*PAIRS, "sst2", "squad", "cola"]
_FROZEN = ["ner", "features", *(f"{task}+frozen" for task in [*PAIRS, "sst2", "squad"])]

TABLES = {
    "objectives": Table(
        "Table 5: objectives",
        _OBJECTIVES,
        {"": _TASKS, "causal": [*_TASKS, *(f"{task}+bilstm" for task in _TASKS)]},
        objectives,
        seeds=(0, 1, 2),
    ),
    "masks": Table(
        "Table 8: masks",
        {
            masks_name((mask, same, random)): f"--mask_share {mask / 100} "
            f"--random_share {random / 100}"
            for mask, same, random in MASKS
        },
        {"": ["mnli", "features", "ner"]},
        masks,
        task_seeds=(0, 1),
    ),
    "sizes": Table(
        "Table 6: sizes",
        {size_name(size): "--size L{}_H{}".format(*size) for size in LARGEST_FIRST},
        {"": ["mnli", "mrpc", "sst2"]},
        sizes,
    ),
    "layers": Table("Table 7: layers", None, {"": ["ner", "layers"]}, layers, seeds=(0, 1, 2)),
    "ways": Table(
        "ELMo, GPT, BERT",
        {name: _OBJECTIVES[name] for name in ("no_nsp", "causal")},
        {"": _FROZEN},
        ways,
        seeds=(0, 1, 2),
    ),
    "steps": Table(
        "Figure 5: steps",
        {
            name + part: f"{_OBJECTIVES[name]} --steps {{{part[1:]}}}"
            for name in ("no_nsp", "causal")
            for part in ("_quarter", "_half")
        },
        {"": ["mnli"]},
        fewer_steps,
    ),
}
