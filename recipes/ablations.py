"""Pre-trains variants of one recipe, several at once on each GPU, and compares them.

Each variant is the base with one change. A run is scored on held-out text at one set of masks, on
minimal pairs, and after fine-tuning on tasks of GLUE. Runs that are done are not repeated, one that
was stopped continues, and one that fails does not stop the others. --tables makes the runs that
tables 5 to 8 of Devlin et al. 2019 need, and prints them.
Data: folders made by keras-bert corpus, pairs by tools/make_minimal_pairs.py, GLUE's files, a file
of SQuAD, CoNLL-2003's folder.
Results: recipes/README.md.
Run: python recipes/ablations.py --corpus DIR --heldout DIR --pairs pairs.jsonl --minutes 6
"""

import argparse
import importlib
import io
import json
import os
import shlex
import signal
import subprocess
import sys
import tarfile
import time
import traceback
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from queue import Queue
from typing import NamedTuple

from heldout_figure import draw, figure_path
from paper_tables import CAUSAL, CURVES, HEADLINES, NO_NSP, TABLES

# Flags of keras-bert pretrain. The first is that of the shipped preset's first phase.
BASE = (
    "--size L6_H256 --lengths 128 --shares 1 --predictions 20 --batch_sizes 256 --objective nsp "
    "--learning_rate 7e-4 --warmup 0.05 --weight_decay 0.01 --dropout 0"
)
VARIANTS = {
    "base": "",
    "no_nsp": NO_NSP,
    "masks": "--mask_rate 0.3 0.15 --predictions 39",
    "short": "--lengths 64 128 --shares 0.7 0.3 --predictions 10 20 --batch_sizes 512 256",
    "peak": "--learning_rate 1.5e-3 --warmup 0.1",
    "hold": "--hold 0.6",
    "muon": "--optimizer muon --learning_rate 2e-3",
    "lamb": "--optimizer lamb --learning_rate 4e-3 --batch_sizes 1024 --warmup 0.1",
    "deep": "--size L12_H192",
    "dropout": "--dropout 0.1",
    "words": "--mask_unit word",
    "decay": "--weight_decay 0.1",
    "causal": CAUSAL,
}
# A recipe and its flags, for GLUE as for the shipped preset. Of those of glue.py and squad.py there
# are two more: NAME+bilstm, and NAME+frozen, where the BERT below the BiLSTM is not trained.
TASKS = {
    "cola": "glue --sequence_length 64 --batch_size 32 --epochs 4 --learning_rate 1e-4",
    "mrpc": "glue --sequence_length 128 --batch_size 32 --epochs 4 --learning_rate 3e-4",
    "sst2": "glue --sequence_length 64 --batch_size 128 --epochs 3 --learning_rate 2e-4",
    "qnli": "glue --sequence_length 128 --batch_size 32 --epochs 3 --learning_rate 1e-4",
    "mnli": "glue --sequence_length 128 --batch_size 32 --epochs 3 --learning_rate 1e-4",
    "rte": "glue --sequence_length 128 --batch_size 32 --epochs 4 --learning_rate 1e-4",
    "stsb": "glue --sequence_length 128 --batch_size 32 --epochs 4 --learning_rate 1e-4",
    "squad": "squad --sequence_length 128 --batch_size 32 --epochs 3 --learning_rate 2e-4",
    "ner": "ner --sequence_length 128 --batch_size 32 --epochs 3 --learning_rate 2e-4",
    "features": "features --epochs 4 --resume",  # the last four layers
    "layers": "features --epochs 4 --resume --table7",
}
ON_TOP = {"bilstm": "--bilstm", "frozen": "--bilstm --frozen --learning_rate 1e-3"}
for _task in [name for name, flags in TASKS.items() if flags.startswith(("glue", "squad"))]:
    TASKS |= {f"{_task}+{name}": f"{TASKS[_task]} {flags}" for name, flags in ON_TOP.items()}
DATA = {"glue": "glue_dir", "squad": "squad", "ner": "ner_dir", "features": "ner_dir"}
RESULT = "result.json"


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--corpus", required=True, help="folder of the prepared corpus")
    parser.add_argument("--heldout", required=True, help="and of one to evaluate on")
    parser.add_argument("--pairs", help="minimal pairs, JSON lines")
    parser.add_argument("--glue_dir", help="GLUE folder, for --tasks")
    parser.add_argument("--squad", help="a file of SQuAD; a third of its articles is scored on")
    parser.add_argument("--ner_dir", help="folder of CoNLL-2003, or with --scheme of others")
    parser.add_argument("--scheme", choices=("iob2", "iob1"), default="iob1", help="of its tags")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=[], help="the paper's")
    parser.add_argument(
        "--presets", nargs="+", default=[], metavar="NAME=PRESET", help="for the table of layers"
    )
    parser.add_argument("--table", action="store_true", help="only print the results so far")
    parser.add_argument("--output_dir", default="runs/ablations")
    parser.add_argument(
        "--variants", nargs="*", help="names; none: only --add; default: all, without --tables"
    )
    parser.add_argument(
        "--add", nargs="+", default=[], metavar="NAME=FLAGS", help="more, as flags of pretrain"
    )
    parser.add_argument("--base", default="", help="flags of pretrain that change the base")
    parser.add_argument("--seeds", type=int, nargs="+", help="default: 0, and those of --tables")
    parser.add_argument("--steps", type=int, help="of every run")
    parser.add_argument("--minutes", type=float, help="of every run, or at most so many")
    parser.add_argument(
        "--rate_steps", type=int, help="of a changing masking rate, if only --minutes are given"
    )
    parser.add_argument("--report_every", type=int, default=500, help="steps between evaluations")
    parser.add_argument(
        "--figure",
        type=figure_path,
        help="PNG, PDF or SVG of a held-out metric by step: mean over seeds, and band",
    )
    parser.add_argument("--metric", default="mlm_accuracy", help="of heldout.json, for --figure")
    parser.add_argument("--dtype", default="float32", help='such as "mixed_bfloat16" on a GPU')
    parser.add_argument("--tasks", nargs="*", choices=TASKS, default=[], help="to fine-tune on")
    parser.add_argument("--task_seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--task_limit", type=int, help="examples to train on, of each task")
    parser.add_argument("--gpus", nargs="+", default=[""], help="their numbers; none: CPU")
    parser.add_argument("--per_gpu", type=int, default=1, help="runs at once on each")
    parser.add_argument("--cores", type=int, help="CPU cores of a run; default: a fair share")
    parser.add_argument("--total_minutes", type=float, help="then all is stopped and reported")
    parser.add_argument("--pack", help="folder for results.json and the best run's preset")
    parser.add_argument(
        "--part_mb", type=float, default=15, help="size of the preset's files there"
    )
    parser.add_argument(
        "--worker", nargs=3, metavar=("PART", "NAME", "SEED"), help=argparse.SUPPRESS
    )
    args = parser.parse_args(argv)
    if not (args.steps or args.minutes):
        parser.error("one of the arguments --steps and --minutes is required")
    known = dict(VARIANTS)
    for text in args.add:
        name, equals, flags = text.partition("=")
        if not equals or not name.isidentifier():
            parser.error(f"--add {text!r}: expected NAME=FLAGS")
        known[name] = flags
    if args.variants is None:
        args.variants = [] if args.tables else [*VARIANTS]
    if unknown := [name for name in args.variants if name not in known]:
        parser.error(f"--variants: unknown {', '.join(unknown)}; known are {', '.join(known)}")
    if wrong := [text for text in args.presets if not text.partition("=")[2]]:
        parser.error(f"--presets {wrong[0]!r}: expected NAME=PRESET")
    args.presets = dict(text.split("=", 1) for text in args.presets)
    added = [name for name in known if name not in VARIANTS and name not in args.variants]
    args.flags = {name: known[name] for name in [*args.variants, *added]}
    args.jobs = [Job("tasks", name, seed) for seed in args.seeds or [0] for name in args.flags]
    shares = {"quarter": (args.steps or 0) // 4, "half": (args.steps or 0) // 2}
    for title in args.tables:
        table = TABLES[title]
        for name, flags in (table.variants or {}).items():
            args.flags.setdefault(name, known.get(name, flags).format(**shares))
        names = args.presets if table.variants is None else table.variants
        args.jobs += [Job(title, n, seed) for seed in args.seeds or table.seeds for n in names]
    for job in args.jobs:
        for task in tasks_of(args, job)[0]:
            data = DATA[TASKS[task].split()[0]]
            if not getattr(args, data):
                parser.error(f"--tasks {task} needs --{data}")
    return args


class Job(NamedTuple):
    """A run and a part of its tasks: those of --tasks, or of a table.

    Attributes:
        part: "tasks", or the table.
        name: of the variant or preset.
        seed: of pre-training.
    """

    part: str
    name: str
    seed: int

    @property
    def run(self) -> str:
        """The name of the run's folder."""
        return f"{self.name}-seed{self.seed}"


def tasks_of(args: argparse.Namespace, job: Job) -> tuple[list[str], list[int]]:
    """The tasks of a job, and the seeds to fine-tune with."""
    if job.part == "tasks":
        return args.tasks, args.task_seeds
    table = TABLES[job.part]
    return table.tasks_of(job.name), (
        [job.seed] if job.name in args.presets else list(table.task_seeds)
    )


# === One run, in a process of its own ===


def missing_tasks(args: argparse.Namespace, job: Job, result: dict) -> list[str]:
    """The tasks of a job that its run has no result of."""
    tasks, seeds = tasks_of(args, job)
    found = {task: result.get(task, {}) for task in tasks}
    return [
        task
        for task in tasks
        if len(found[task].get("by_seed", [])) < len(seeds) and "by_layers" not in found[task]
    ]


def work(args: argparse.Namespace, job: Job) -> None:
    """Makes one part of a run, or what is missing of it: pre-training, or its tasks."""
    folder = Path(args.output_dir) / job.run
    result = read_json(folder / RESULT)
    if job.part == "pretrain":
        if "steps" not in result or not (folder / "preset").exists():
            write_json(folder / RESULT, result | pretrained(args, job, folder))
        return
    preset = args.presets.get(job.name, str(folder / "preset"))
    seeds = tasks_of(args, job)[1]
    for task in missing_tasks(args, job, result):
        recipe, *flags = shlex.split(TASKS[task])
        flags += ["--preset", preset, "--dtype", args.dtype, "--seed", *map(str, seeds)]
        flags += ["--output_dir", str(folder / "tasks" / task)]
        if recipe != "features":
            flags += ["--padding", "full", "--strategy", "one"]
        if recipe == "glue":
            flags += ["--task", task.partition("+")[0], "--data_dir", args.glue_dir]
            flags += ["--train_split", "train", "train_slice", "--dev_split", "dev_slice", "dev"]
        elif recipe == "squad":
            flags += ["--train", str(Path(args.squad).absolute()), "--held_out", "0.33"]
        else:
            flags += ["--data_dir", args.ner_dir, "--scheme", args.scheme]
        flags += ["--limit", str(args.task_limit)] if args.task_limit else []
        begin = time.time()
        found = importlib.import_module(recipe).main(flags)
        result |= {"variant": job.name, "seed": job.seed}
        result[task] = found | {"seconds": time.time() - begin}
        write_json(folder / RESULT, result)


def pretrained(args: argparse.Namespace, job: Job, folder: Path) -> dict:
    """Trains a run; gives its result, with scores unless the tables are wanted, which have none."""
    from keras_bert_cli import pretrain

    own = args.flags[job.name]
    flags = ["--corpus", args.corpus, "--heldout", args.heldout, "--seed", str(job.seed)]
    flags += ["--output_dir", str(folder), "--report_every", str(args.report_every)]
    flags += ["--dtype", args.dtype, "--strategy", "one", "--resume"]
    for flag in ("steps", "minutes"):
        if getattr(args, flag):
            flags += [f"--{flag}", str(getattr(args, flag))]
    flags += shlex.split(" ".join([BASE, args.base, own]))
    if "--mask_rate" in flags and args.rate_steps and not args.steps:
        flags += ["--rate_steps", str(args.rate_steps)]
    begin = time.time()
    trained = pretrain.main(flags)
    phases = [trained[key] for key in trained if key.startswith("phase")]
    result = {
        "variant": job.name,
        "seed": job.seed,
        "flags": own,
        "weights": trained["parameters"],
        "steps": sum(phase["steps"] for phase in phases),
        "seconds": sum(phase["seconds"] for phase in phases),
        "own_heldout": phases[-1].get("heldout"),
        "curve": read_json(folder / "heldout.json"),
    }
    if not args.tables:
        result |= score(args, folder / "preset")
        halve(folder / "preset")
    return result | {"seconds_in_all": time.time() - begin}


def score(args: argparse.Namespace, preset: Path) -> dict:
    """Held-out text, in pairs of segments and in one, at fixed masks; and minimal pairs."""
    import keras_bert
    from keras_bert.data import pretraining_dataset
    from keras_bert.metrics import minimal_pairs

    model = keras_bert.BertPretrainer.from_preset(str(preset), next_sentence=False, dtype="float32")
    model.compile()
    length = min(128, model.backbone.max_sequence_length)
    settings = {"sequence_length": length, "tokenizer": model.preprocessor.tokenizer}
    if model.backbone.causal:
        forms = {"next_token": {"objective": "lm", "max_predictions": length - 1}}
    else:
        forms = {name: {"max_predictions": length * 20 // 128} for name in ("heldout", "text")}
        forms["text"] |= {"objective": "mlm"}
    found: dict = {"heldout": {}}
    for name, form in forms.items():
        rows = pretraining_dataset(args.heldout, repeat=False, **settings, **form)
        scores = model.evaluate(rows, return_dict=True, verbose=0)
        found[name] = {key: scores[f"mlm_{key}"] for key in ("accuracy", "perplexity")}
    if args.pairs:
        found["pairs"] = minimal_pairs(model, args.pairs)
    return found


def halve(preset: Path) -> None:
    """Stores the weights of a preset in float16, in place; it computes in float32 when loaded."""
    import h5py

    import keras_bert

    model = keras_bert.BertPretrainer.from_preset(str(preset), dtype="float32")
    model.save_to_preset(str(preset))

    def copy(source, target):
        for key, value in source.attrs.items():
            target.attrs[key] = value
        for key, value in source.items():
            if isinstance(value, h5py.Group):
                copy(value, target.create_group(key))
                continue
            data = value[()]
            target[key] = data.astype("float16") if data.dtype == "float32" else data
            for name, attribute in value.attrs.items():
                target[key].attrs[name] = attribute

    for path in preset.glob("*.weights.h5"):
        smaller = path.with_suffix(".half")
        with h5py.File(path) as source, h5py.File(smaller, "w") as target:
            copy(source, target)
        smaller.replace(path)


def read_json(path: Path):
    """The content of a file; {} if there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write_json(path: Path, content) -> None:
    """Writes a file that is never half written."""
    new = path.with_name(f".{path.name}.new")
    new.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    new.replace(path)


# === All runs ===


class Runs:
    """Starts runs, so many at once on each GPU, and stops them when the time is over.

    Args:
        args: the flags.
        argv: the same, to pass on.
    """

    def __init__(self, args: argparse.Namespace, argv: list[str]):
        self.args, self.argv = args, argv
        places = [gpu for _ in range(args.per_gpu) for gpu in args.gpus]
        cores = sorted(os.sched_getaffinity(0))
        share = args.cores or max(1, len(cores) // len(places))
        self.free: Queue = Queue()
        for number, gpu in enumerate(places):
            chosen = [cores[(number * share + i) % len(cores)] for i in range(share)]
            self.free.put((gpu, set(chosen)))
        self.count = len(places)
        self.end = time.time() + 60 * (args.total_minutes or 1e9)
        self.processes: set[subprocess.Popen] = set()

    def stop(self, *_) -> None:
        """Ends all runs, each after the step that it makes; for signals."""
        self.end = 0.0
        for process in list(self.processes):
            process.send_signal(signal.SIGTERM)

    def run(self, job: Job) -> str | None:
        """Waits for a place, and runs; gives the reason why it did not finish, or None.

        No two jobs of a run may be at work at once.
        """
        made = job.name in self.args.presets
        result = read_json(Path(self.args.output_dir) / job.run / RESULT)
        if (made or "steps" in result) and not missing_tasks(self.args, job, result):
            return None
        place = gpu, cores = self.free.get()
        try:
            if not made:
                problem = self._process(job._replace(part="pretrain"), gpu, cores)
                if problem or not tasks_of(self.args, job)[0]:
                    return problem
            # A new process finds the programs that others have compiled since.
            return self._process(job, gpu, cores)
        finally:
            self.free.put(place)

    def _process(self, job: Job, gpu: str, cores: set) -> str | None:
        folder = Path(self.args.output_dir) / job.run
        folder.mkdir(parents=True, exist_ok=True)
        left = self.end - time.time()
        if left < 1:
            return "no time was left to start it"
        environment = os.environ | {"CUDA_VISIBLE_DEVICES": gpu or "-1"}
        environment["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"  # several share a card
        with (folder / "output.txt").open("a") as output:
            process = subprocess.Popen(
                [sys.executable, __file__, *self.argv, "--worker", *map(str, job)],
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            self.processes.add(process)
            os.sched_setaffinity(process.pid, cores)
            try:
                code = process.wait(left)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGTERM)  # saves the step that runs
                try:
                    process.wait(15)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                return "the time was over; the same command continues it"
            finally:
                self.processes.discard(process)
        if self.end == 0.0:
            return "stopped; the same command continues it"
        if code:
            return f"ended with status {code}: {tail(folder / 'output.txt')}"
        return None


def tail(path: Path, lines: int = 12) -> str:
    """The last lines of a file."""
    text = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n    ".join(text[-lines:])


def row(result: dict, tasks: list[str]) -> str:
    """A line of the table."""

    def number(value, digits=3):
        return "-" if value is None else f"{value:.{digits}f}"

    def of(name, key):
        return result.get(name, {}).get(key)

    first = "next_token" if "next_token" in result else "heldout"
    own = next((v for k, v in (result.get("own_heldout") or {}).items() if "nsp_acc" in k), None)
    fields = field_means(result)
    cells = [
        f"{result['variant']}-{result['seed']}",
        f"{result['weights'] / 1e6:.1f}M",
        str(result["steps"]),
        f"{result['seconds']:.0f}",
        number(own),
        *("*" * (first != "heldout") + number(of(first, "accuracy")),),
        number(of(first, "perplexity"), 2),
        number(of("text", "accuracy")),
        number(of("text", "perplexity"), 2),
        *(number(fields.get(field)) for field in FIELDS),
        number(of("pairs", "macro_accuracy")),
    ]
    for task in tasks:
        metric = HEADLINES.get(task.partition("+")[0], "accuracy")
        found = result.get(task, {}).get(metric)
        cells.append(f"{found['mean']:.3f}±{found['deviation']:.3f}" if found else "-")
    return "| " + " | ".join(cells) + " |"


FIELDS = ("agreement", "forms", "binding", "licensing", "islands")


def field_means(result: dict) -> dict[str, float]:
    """The mean accuracy of the paradigms of each field of tools/make_minimal_pairs.py."""
    by_paradigm = result.get("pairs", {}).get("by_paradigm", {})
    fields = result.get("fields", {})
    found: dict[str, list[float]] = {}
    for paradigm, scores in by_paradigm.items():
        found.setdefault(fields.get(paradigm, "other"), []).append(scores["accuracy"])
    return {field: sum(values) / len(values) for field, values in found.items()}


def heading(tasks: list[str]) -> str:
    """The first two lines of the table."""
    names = ["run", "weights", "steps", "s", "next sentence", "pairs acc", "ppl", "text acc", "ppl"]
    names += [*FIELDS, "all pairs", *tasks]
    return f"| {' | '.join(names)} |\n|{'---|' * len(names)}"


def fields_of(pairs: str | None) -> dict[str, str]:
    """The field of each paradigm, from a file of pairs."""
    if not pairs:
        return {}
    lines = Path(pairs).read_text(encoding="utf-8").splitlines()
    return {pair["paradigm"]: pair.get("field", "other") for pair in map(json.loads, lines)}


def pack(args: argparse.Namespace, results: list[dict]) -> None:
    """Writes all results, and the preset of the lowest held-out perplexity in parts."""
    folder = Path(args.pack)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "results.json", results)
    ranked = [r for r in results if r.get("text")]
    if not ranked:
        return
    best = min(ranked, key=lambda r: r["text"]["perplexity"])
    name = f"{best['variant']}-seed{best['seed']}"
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:xz") as archive:
        archive.add(Path(args.output_dir) / name / "preset", name)
    data, size = content.getvalue(), int(args.part_mb * 1e6)
    for number, start in enumerate(range(0, len(data), size)):
        (folder / f"preset.tar.xz.{number}").write_bytes(data[start : start + size])
    print(f"packed {name}: `cat preset.tar.xz.* | tar xJ`", flush=True)


def report(args: argparse.Namespace, results: list[dict]) -> None:
    """Prints all results, or the paper's tables, and draws the figure if one is asked for."""
    if args.figure:
        labels = CURVES if args.tables else None
        print("\n".join(draw(results, args.metric, args.figure, labels)), flush=True)
    if not args.tables:
        print(heading(args.tasks))
        print("\n".join(row(result, args.tasks) for result in results), flush=True)
        for result in results:
            curve = [(p["step"], round(p.get("mlm_accuracy") or 0, 3)) for p in result["curve"]]
            print(f"{result['variant']}-{result['seed']}, held-out accuracy by step: {curve}")
        return
    for title in args.tables:
        table = TABLES[title]

        def of(name, seeds=args.seeds or table.seeds):
            names = args.presets if name is None else [name]
            return [r for r in results if r["variant"] in names and r["seed"] in seeds]

        print(f"\n{table.title}\n\n{table.show(of)}", flush=True)


def results_so_far(args: argparse.Namespace) -> list[dict]:
    """The results of all runs that have some, in the order of the jobs."""
    found = {job.run: read_json(Path(args.output_dir) / job.run / RESULT) for job in args.jobs}
    return [result for result in found.values() if result]


def main(argv: list[str] | None = None) -> list[dict]:
    argv = sys.argv[1:] if argv is None else argv
    args = parse(argv)
    if args.worker:
        part, name, seed = args.worker
        work(args, Job(part, name, int(seed)))
        return []
    fields = fields_of(args.pairs)

    def all_results():
        return [result | {"fields": fields} for result in results_so_far(args)]

    if args.table:
        results = all_results()
        report(args, results)
        return results
    runs, begin = Runs(args, argv), time.time()
    before = {n: signal.signal(n, runs.stop) for n in (signal.SIGTERM, signal.SIGINT)}
    if not args.tables:
        print(heading(args.tasks), flush=True)

    def show(job: Job, future: Future) -> None:
        try:
            problem = future.result()
        except Exception:
            problem = traceback.format_exc()
        result = read_json(Path(args.output_dir) / job.run / RESULT)
        if "weights" in result and not args.tables:
            print(row(result | {"fields": fields}, args.tasks), flush=True)
        label = job.run if job.part == "tasks" else f"{job.run}, {job.part}"
        if problem or args.tables:
            print(f"{label}: {problem or 'done'} ({time.time() - begin:.0f} s)", flush=True)

    waiting, running = list(args.jobs), {}
    with ThreadPoolExecutor(runs.count) as pool:
        while waiting or running:
            for job in list(waiting):
                at_work = {other.run for other in running.values()}
                if len(running) < runs.count and job.run not in at_work:
                    waiting.remove(job)
                    running[pool.submit(runs.run, job)] = job
            # Once a second, or a signal that another thread received would wait for a run's end.
            for future in wait(running, 1.0, FIRST_COMPLETED).done:
                show(running.pop(future), future)
    for number, handler in before.items():
        signal.signal(number, handler)
    results = all_results()
    print(f"\nAll, {time.time() - begin:.0f} s:")
    report(args, results)
    if args.pack:
        pack(args, results)
    return results


if __name__ == "__main__":
    main()
