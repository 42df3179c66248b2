"""The recipe that compares variants of pre-training."""

import importlib
import json
import os
import signal
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

import pytest

from keras_bert.training import interval
from keras_bert_cli import pretrain_flags as pretrain
from recipes import ablations, heldout_figure

import paper_tables

ROOT = Path(__file__).parents[2]
# Takes the place of a run's process: writes a result, fails, or lasts.
FAKE = """
import json, pathlib, sys, time
name, seed = sys.argv[-2:]
folder = pathlib.Path(sys.argv[sys.argv.index("--output_dir") + 1]) / f"{name}-seed{seed}"
print("tried", name)
if name == "peak":
    sys.exit("out of memory")
if name == "deep":
    (folder / "begun").touch()
    time.sleep(3600)
(folder / "preset").mkdir(exist_ok=True)
(folder / "preset" / "weights").write_bytes(bytes(range(256)) * 40)
scores = {"accuracy": 0.25, "perplexity": 9.0 if name == "muon" else 11.0}
result = {"variant": name, "seed": int(seed), "weights": 9.1e6, "steps": 7, "seconds": 3.0}
result |= {"heldout": scores, "text": scores, "curve": [{"step": 7, "mlm_accuracy": 0.25}]}
result["pairs"] = {"macro_accuracy": 0.5, "by_paradigm": {"p": {"accuracy": 0.5}}}
(folder / "result.json").write_text(json.dumps(result))
"""
REQUIRED = ["--corpus", "c", "--heldout", "h", "--steps", "3"]


def test_runs_side_by_side_report_and_go_on(tmp_path, monkeypatch, capsys):
    script = tmp_path / "fake.py"
    script.write_text(FAKE)
    monkeypatch.setattr(ablations, "__file__", str(script))
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text(json.dumps({"paradigm": "p", "field": "binding"}))
    command = [*REQUIRED, "--pairs", str(pairs), "--output_dir", str(tmp_path / "runs")]
    command += ["--per_gpu", "2", "--variants", "base", "peak", "muon", "--seeds", "0", "1"]
    results = ablations.main([*command, "--pack", str(tmp_path / "out"), "--part_mb", "0.0005"])
    names = [(result["variant"], result["seed"]) for result in results]
    assert names == [("base", 0), ("muon", 0), ("base", 1), ("muon", 1)]
    shown = capsys.readouterr().out
    assert "peak-seed0: ended with status 1: tried peak\n    out of memory" in shown
    row = next(line for line in shown.splitlines() if line.startswith("| muon-1"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    heading = ablations.heading([]).splitlines()[0].strip("|").split("|")
    by_name = dict(zip([name.strip() for name in heading], cells, strict=True))
    assert by_name["weights"] == "9.1M" and by_name["binding"] == by_name["all pairs"] == "0.500"
    assert by_name["ppl"] == "9.00" and by_name["agreement"] == "-"
    assert "packed muon-seed0" in shown
    parts = sorted((tmp_path / "out").glob("preset.tar.xz.*"))
    assert len(parts) > 1 and max(part.stat().st_size for part in parts) <= 500
    whole = tmp_path / "preset.tar.xz"
    whole.write_bytes(b"".join(part.read_bytes() for part in parts))
    with tarfile.open(whole) as archive:
        content = archive.extractfile("muon-seed0/weights").read()
    assert content == bytes(range(256)) * 40
    assert len(json.loads((tmp_path / "out" / "results.json").read_text())) == 4


def test_a_figure_of_means_over_seeds(tmp_path, capsys):
    def result(variant, *points):
        keys = ("step", "mlm_accuracy")
        return {"variant": variant, "curve": [dict(zip(keys, p, strict=True)) for p in points]}

    results = [
        result("base", (5, 0.1), (10, 0.3)),
        result("base", (5, 0.3), (10, 0.7), (12, 0.9)),  # by the clock, it came further
        result("peak", (5, 0.2), (10, None)),
    ]
    expected = {"base": {5: [0.1, 0.3], 10: [0.3, 0.7]}, "peak": {5: [0.2]}}
    assert heldout_figure.curves(results, "mlm_accuracy") == expected
    lines = heldout_figure.draw(results, "mlm_accuracy", tmp_path / "figure.svg")
    assert lines == [
        "base (2 seeds): mlm_accuracy 0.5 ± 0.2 at 10",
        "peak (1 seed): mlm_accuracy 0.2 ± 0 at 5",
    ]
    content = (tmp_path / "figure.svg").read_text()
    assert "base (2 seeds)" in content and "held-out mlm_accuracy" in content
    assert content.count("fill-opacity: 0.2") == 1  # one band, of the variant with two seeds
    assert heldout_figure.draw(results, "nsp_accuracy", tmp_path / "none.png") == [
        "no run has the held-out metric nsp_accuracy"
    ]
    with pytest.raises(SystemExit):
        ablations.main([*REQUIRED, "--figure", "figure.jpg"])
    assert "--figure: figure.jpg: expected a name that ends in" in capsys.readouterr().err


def test_a_signal_ends_the_runs_and_what_is_done_is_reported(tmp_path, monkeypatch, capsys):
    script = tmp_path / "fake.py"
    script.write_text(FAKE)
    monkeypatch.setattr(ablations, "__file__", str(script))
    handler = signal.getsignal(signal.SIGTERM)
    begun = tmp_path / "runs" / "deep-seed0" / "begun"

    def stop():
        while not begun.exists():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=stop)
    thread.start()
    command = [*REQUIRED, "--output_dir", str(tmp_path / "runs")]
    results = ablations.main([*command, "--variants", "muon", "deep", "base"])
    thread.join()
    assert [result["variant"] for result in results] == ["muon"]
    shown = capsys.readouterr().out
    assert "deep-seed0: stopped; the same command continues it" in shown
    assert "base-seed0: no time was left to start it" in shown
    assert signal.getsignal(signal.SIGTERM) is handler


DATA = ["--glue_dir", "g", "--squad", "s", "--ner_dir", "n", "--presets", "mini=p"]


def test_tables_make_the_runs_that_they_need():
    args = ablations.parse([*REQUIRED[:-1], "8", *DATA, "--tables", *paper_tables.TABLES])
    flags = {job.name: args.flags.get(job.name) for job in args.jobs}
    assert flags.pop("mini") is None  # is not pre-trained
    for name, given in flags.items():
        own = pretrain.parse([*ablations.BASE.split(), *REQUIRED, *given.split()])
        assert (own.objective == "lm") == name.startswith("causal")
        assert own.steps == {"quarter": 2, "half": 4}.get(name.rpartition("_")[2], 3)
    shares = paper_tables.MASKS[2]
    own = pretrain.parse([*REQUIRED, *flags[paper_tables.masks_name(shares)].split()])
    assert (own.mask_share, own.random_share) == (0.8, 0.2) and shares == (80, 0, 20)
    causal = ablations.Job("objectives", "causal", 2)
    tasks, seeds = ablations.tasks_of(args, causal)
    assert causal in args.jobs and "squad+bilstm" in tasks and seeds == [0]
    assert ablations.tasks_of(args, ablations.Job("layers", "mini", 2)) == (["ner", "layers"], [2])
    result = {task: {"by_seed": [{}]} for task in tasks[1:]}
    assert ablations.missing_tasks(args, causal, result) == tasks[:1]
    for task in ablations.TASKS:  # of every recipe
        words = ablations.TASKS[task].split()
        more = {"glue": ["--task", task.partition("+")[0]], "squad": ["--train", "t", "--dev", "d"]}
        recipe = importlib.import_module(words[0])
        recipe.parse(["--preset", "p", *words[1:], *more.get(words[0], [])])


def test_tables_of_the_results_so_far(tmp_path, capsys):
    for seed, accuracy in enumerate((0.60, 0.62, 0.64)):
        folder = tmp_path / f"base-seed{seed}"
        folder.mkdir()
        by_seed = [{"accuracy": accuracy - 0.01}, {"accuracy": accuracy + 0.01}]
        result = {"variant": "base", "seed": seed, "weights": 9.1e6, "steps": 4}
        result["curve"] = [{"step": 2, "mlm_accuracy": 0.1 + seed / 10}]
        result["mnli"] = {"accuracy": {"mean": accuracy}, "by_seed": by_seed}
        (folder / "result.json").write_text(json.dumps(result))
        folder = tmp_path / f"no_nsp-seed{seed}"
        folder.mkdir()
        other = accuracy + (0.01, 0.02, 0.06)[seed]
        result |= {"variant": "no_nsp", "mnli": {"accuracy": {"mean": other}, "by_seed": [{}]}}
        (folder / "result.json").write_text(json.dumps(result))
    (tmp_path / "mini-seed1").mkdir()  # its features are still being trained on
    result = {"variant": "mini", "seed": 1, "ner": {"by_seed": [{"dev_f1": 0.8, "test_f1": 0.75}]}}
    (tmp_path / "mini-seed1" / "result.json").write_text(json.dumps(result))
    names = ["objectives", "masks", "sizes", "layers"]
    command = [*REQUIRED, *DATA, "--output_dir", str(tmp_path), "--tables", *names, "--table"]
    picture = tmp_path / "curves.png"
    ablations.main([*command, "--figure", str(picture)])
    assert picture.read_bytes().startswith(b"\x89PNG")
    lines = capsys.readouterr().out.splitlines()
    (row,) = [line for line in lines if line.startswith("| masked + next sentence | 3")]
    assert row == "| masked + next sentence | 3 | 0.620 ± 0.016 | - | - | - | - | - |"
    curve = "0.200 ± 0.082"
    assert f"| 2 | {curve} | {curve} | - |" in lines
    (row,) = [line for line in lines if line.startswith("| no next sentence - with it")]
    expected = interval([0.01, 0.02, 0.06])  # of the package
    assert f"| {expected.mean:+.3f} [{expected.low:+.3f}, {expected.high:+.3f}] |" in row
    assert "| 80 | 10 | 10 | 0.600 ± 0.010 | - | - |" in lines  # of the first alone, over tasks
    assert "| fine-tuned | 0.8000 | 0.7500 |" in lines
    assert "| 6 | 256 | 9.1 M | - | 0.600 ± 0.010 | - | - |" in lines


def test_variants_are_flags_of_the_recipe():
    for name, flags in ablations.VARIANTS.items():
        given = ["--corpus", "c", "--heldout", "h", "--steps", "10"]
        args = pretrain.parse([*ablations.BASE.split(), *flags.split(), *given])
        assert (args.objective == "lm") == (name == "causal")
        if flags:  # one change: the others are the base's
            base = vars(pretrain.parse([*ablations.BASE.split(), *given]))
            changed = {key for key, value in vars(args).items() if base[key] != value}
            assert changed == {flag[2:] for flag in flags.split() if flag.startswith("--")}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--variants", "nonsense"], "--variants: unknown nonsense; known are base, "),
        (["--add", "x"], "--add 'x': expected NAME=FLAGS"),
        (["--tasks", "cola"], "--tasks cola needs --glue_dir"),
        (["--tables", "masks"], "--tasks mnli needs --glue_dir"),
        (["--presets", "mini"], "--presets 'mini': expected NAME=PRESET"),
    ],
)
def test_flags_that_are_wrong(more, message, capsys):
    with pytest.raises(SystemExit):
        ablations.main([*REQUIRED, *more])
    assert message in capsys.readouterr().err
    with pytest.raises(SystemExit):
        ablations.main(REQUIRED[:4])
    assert "--steps and --minutes is required" in capsys.readouterr().err


@pytest.mark.slow
def test_two_variants_from_records_to_scores(corpus, tmp_path):
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text(json.dumps({"good": "the cat sat", "bad": "the sat cat", "paradigm": "p"}))
    command = [sys.executable, "recipes/ablations.py", "--corpus", corpus, "--heldout", corpus]
    command += ["--pairs", str(pairs), "--output_dir", str(tmp_path / "runs"), "--steps", "6"]
    command += ["--variants", "base", "causal", "--report_every", "3", "--pack", str(tmp_path)]
    base = "--size L1_H64 --lengths 24 --predictions 4 --batch_sizes 8"
    command += ["--base", base, "--add", "lm=--objective lm --predictions 23 --optimizer muon"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    results = {r["variant"]: r for r in json.loads((tmp_path / "results.json").read_text())}
    assert set(results) == {"base", "lm"}, done.stdout  # causal asks for 127 of 24 tokens
    assert "causal-seed0: ended with status 1" in done.stdout
    assert 0 < results["base"]["heldout"]["accuracy"] < 1 and "next_token" in results["lm"]
    assert [point["step"] for point in results["base"]["curve"]] == [3, 6]
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert "| base-0 |" in again.stdout, again.stderr[-2000:]
