"""Searches hyper-parameters with Optuna, by default the grid of BERT's paper.

Source: Devlin et al. 2019, appendix A.3: batch size 16 or 32, learning rate 5e-5, 3e-5 or 2e-5, 2
to 4 epochs. Trials are kept in a file, so the search resumes, and the same command started several
times (on one machine, or on many that share the folder) is as many workers. A trial that is worse
after an epoch than the median of the others there is pruned. The preset of the best trial stays.
Results: recipes/README.md.
Run: python recipes/search.py --data_dir GLUE --tasks mrpc --trials 18
"""

import argparse

from recipe_flags import need, small_run_flags

SPACES = ("paper", "wide")


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = small_run_flags(__doc__, ["mrpc"], [], seeds=1)
    parser.add_argument("--trials", type=int, default=18, help="in all, over all workers")
    parser.add_argument("--space", choices=SPACES, default="paper", help="the grid, or wider: TPE")
    parser.add_argument("--rates", type=float, nargs="+", default=[5e-5, 3e-5, 2e-5])
    parser.add_argument("--no_pruning", action="store_true")
    parser.add_argument("--picture", help="file to draw the trials into, such as trials.png")
    args = parser.parse_args(argv)
    need(parser, "optuna", "search", "search.py")
    if args.picture:
        need(parser, "matplotlib", "plots", "--picture")
    if len(args.tasks) > 1:
        parser.error("--tasks: expected one, a study has one score")
    return args


if __name__ == "__main__":
    parse(None)  # wrong flags and --help end here, before TensorFlow is imported

import json
import os
import shutil
import socket
import time
from pathlib import Path

import keras
import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from small_runs import Task, check_settings, classifier

GRID = {"batch_size": [16, 32], "epochs": [2, 3, 4]}


class Report(keras.callbacks.Callback):
    """Scores the dev set after every epoch, and ends a trial that is to be pruned."""

    def __init__(self, trial: optuna.Trial, task: Task, prune_below: int):
        super().__init__()
        self.trial, self.task, self.prune_below, self.scores = trial, task, prune_below, []

    def on_epoch_end(self, epoch, logs=None):
        logits = self.model.predict(self.task.dev.texts, 128, verbose=0)
        self.scores.append(self.task.scores(logits)["score"])
        self.trial.report(self.scores[-1], epoch + 1)
        if epoch + 1 < self.prune_below and self.trial.should_prune():
            self.model.stop_training = True
            self.trial.set_user_attr("pruned_at", epoch + 1)


def study_of(args: argparse.Namespace) -> optuna.Study:
    """The study in the folder, made if it is not there."""
    folder = Path(args.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    # Of several rows and seeds, a study uses the first.
    check_settings(args, rows=args.rows and args.rows[0], seed=args.seeds[0])
    grid = GRID | {"learning_rate": args.rates}
    # Grid and draws of several workers must differ in order, not in what is found.
    seed = args.seeds[0] + (0 if args.space == "paper" else os.getpid())
    sampler = (
        optuna.samplers.GridSampler(grid, seed=seed)
        if args.space == "paper"
        else optuna.samplers.TPESampler(seed=seed, constant_liar=True)
    )
    return optuna.create_study(
        storage=JournalStorage(JournalFileBackend(str(folder / "trials.log"))),
        study_name=f"{args.tasks[0]}-{args.space}",
        direction="maximize",
        sampler=sampler,
        pruner=optuna.pruners.MedianPruner(n_startup_trials=4),
        load_if_exists=True,
    )


def end_lost_trials(study: optuna.Study) -> None:
    """Marks trials as failed whose process on this machine is gone: another one repeats them."""
    for trial in study.get_trials(deepcopy=False, states=[TrialState.RUNNING]):
        host, process = trial.user_attrs.get("host"), trial.user_attrs.get("process")
        if host != socket.gethostname() or process is None or _alive(process):
            continue
        study.tell(trial.number, state=TrialState.FAIL)
        study.enqueue_trial(trial.params, skip_if_exists=False)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class Models:
    """One classifier for all trials: another rate needs no compilation, another batch size one.

    Args:
        args: the flags.
        task: to train for.
    """

    def __init__(self, args: argparse.Namespace, task: Task):
        keras.utils.set_random_seed(args.seeds[0])
        self.fresh, self.model = (classifier(task, args.preset) for _ in range(2))

    def start(self) -> keras.Model:
        """The classifier, with the preset's weights and the seed's head."""
        self.model.copy_state(self.fresh)
        return self.model


def objective(args: argparse.Namespace, task: Task, models: Models, trial: optuna.Trial) -> float:
    """Trains one trial; gives the score of the dev set after its last epoch."""
    trial.set_user_attr("host", socket.gethostname())
    trial.set_user_attr("process", os.getpid())
    if args.space == "paper":
        grid = GRID | {"learning_rate": args.rates}
        chosen = {name: trial.suggest_categorical(name, values) for name, values in grid.items()}
    else:
        chosen = {
            "learning_rate": trial.suggest_float("learning_rate", 1e-5, 1e-3, log=True),
            "batch_size": trial.suggest_categorical("batch_size", [8, 16, 32, 64]),
            "epochs": trial.suggest_int("epochs", 2, 6),
            "warmup": trial.suggest_float("warmup", 0.0, 0.2),
        }
    begin = time.time()
    model = models.start()
    rates = {name: chosen[name] for name in ("learning_rate", "warmup") if name in chosen}
    model.compile(packing=False, **rates)
    x, y, _ = task.subset(args.rows[0] if args.rows else None, args.seeds[0])
    report = Report(trial, task, 0 if args.no_pruning else chosen["epochs"])
    model.fit(
        x,
        y,
        batch_size=chosen["batch_size"],
        epochs=chosen["epochs"],
        seed=args.seeds[0],
        callbacks=[report],
        verbose=0,
    )
    trial.set_user_attr("seconds", round(time.time() - begin, 1))
    if "pruned_at" in trial.user_attrs:
        raise optuna.TrialPruned
    return report.scores[-1]


def keep_best(study: optuna.Study, trial, model, folder: Path) -> None:
    """Saves the preset of a trial that is the best so far, and deletes those of worse ones."""
    if study.best_trial.number != trial.number:
        return
    model.save_to_preset(str(folder / f"{study.study_name}-best-{trial.number}"))
    values = {t.number: t.value for t in study.get_trials(states=[TrialState.COMPLETE])}
    for other in folder.glob(f"{study.study_name}-best-*"):
        number = int(other.name.rpartition("-")[2])
        if values.get(number, -1) < values[trial.number]:
            shutil.rmtree(other, ignore_errors=True)


def table(study: optuna.Study) -> str:
    """A Markdown table of the trials, the best first; pruned ones with their last score."""
    trials = study.get_trials(states=[TrialState.COMPLETE, TrialState.PRUNED])
    names = list(dict.fromkeys(name for t in trials for name in t.params))
    lines = [f"| trial | {' | '.join(names)} | score | by epoch | s |"]
    lines.append("|---" * (len(names) + 4) + "|")

    def key(trial):
        last = sorted(trial.intermediate_values.items())[-1][1]
        return trial.state == TrialState.COMPLETE, last

    for trial in sorted(trials, key=key, reverse=True):
        params = [f"{trial.params.get(name):.4g}" for name in names]
        done = trial.state == TrialState.COMPLETE
        score = f"{trial.value:.4f}" if done else "pruned"
        curve = ", ".join(f"{v:.3f}" for _, v in sorted(trial.intermediate_values.items()))
        seconds = f"{trial.user_attrs.get('seconds', 0):.0f}"
        lines.append(f"| {trial.number} | {' | '.join(params)} | {score} | {curve} | {seconds} |")
    return "\n".join(lines)


def draw(study: optuna.Study, path: str) -> None:
    """Draws the score by epoch of all trials, and the last score by learning rate."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot, ticker

    trials = study.get_trials(states=[TrialState.COMPLETE, TrialState.PRUNED])
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    sizes = sorted({trial.params["batch_size"] for trial in trials})
    for trial in trials:
        done = trial.state == TrialState.COMPLETE
        color = f"C{sizes.index(trial.params['batch_size'])}" if done else "0.75"
        left.plot(*zip(*sorted(trial.intermediate_values.items()), strict=True), ".-", color=color)
        if done:
            right.plot(trial.params["learning_rate"], trial.value, "o", color=color)
    for number, size in enumerate(sizes):
        right.plot([], [], "o", color=f"C{number}", label=f"batch size {size}")
    left.plot([], [], color="0.75", label="pruned")
    left.set(xlabel="epoch", ylabel="score")
    left.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
    right.set(xlabel="learning rate", ylabel="last score", xscale="log")
    right.xaxis.set_minor_formatter(ticker.NullFormatter())
    left.legend()
    right.legend()
    figure.savefig(path, dpi=100)
    pyplot.close(figure)


def main(argv: list[str] | None = None) -> dict:
    args = parse(argv)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    folder, study = Path(args.output_dir), study_of(args)
    ended = (TrialState.COMPLETE, TrialState.PRUNED)

    def count() -> int:
        return len(study.get_trials(deepcopy=False, states=ended))

    def after(study, trial):
        if trial.state == TrialState.COMPLETE:
            keep_best(study, trial, models.model, folder)
        last = sorted(trial.intermediate_values.items())[-1][1]
        what = f"{trial.params} {last:.4f} {trial.state.name.lower()}"
        print(f"trial {trial.number}, {count()} of {args.trials}: {what}", flush=True)

    if not args.table and count() < args.trials:
        end_lost_trials(study)
        task = Task(args, args.tasks[0])
        models = Models(args, task)
        study.optimize(
            lambda trial: objective(args, task, models, trial),
            timeout=60 * args.minutes if args.minutes else None,
            callbacks=[after, optuna.study.MaxTrialsCallback(args.trials, ended)],
        )
    print(table(study), flush=True)
    best = {"trial": study.best_trial.number, "score": study.best_value, **study.best_params}
    best["preset"] = str(folder / f"{study.study_name}-best-{best['trial']}")
    print(json.dumps(best), flush=True)
    if args.picture:
        draw(study, args.picture)
    return best


if __name__ == "__main__":
    main()
