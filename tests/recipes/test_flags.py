"""What recipes and tools say before they load anything, or train."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from keras_bert.checkpoints.writer import FORMS
from keras_bert.config import SIZES
from keras_bert.data import glue
from keras_bert.data.pretraining import OBJECTIVES
from keras_bert.tasks.classifier import PROBLEMS
from keras_bert.tasks.conversion import FORMS as ALL_FORMS
from keras_bert.tasks.features import COMBINATIONS
from keras_bert.tasks.text_embedder import LOSSES
from keras_bert.training.strategies import KINDS
from keras_bert_cli.main import Form
from recipes import classify, squad
from recipes import glue as glue_recipe

import recipe_flags

ROOT = Path(__file__).parents[2]
TINY = ROOT / "tests" / "golden" / "tiny_one_block"
PROGRAMS = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("recipes", "tools", "tools/peers", "tools/serving")
    for path in (ROOT / folder).glob("*.py")
    if "ArgumentParser" in path.read_text() or "flags(__doc__" in path.read_text()
)
# Runs programs with --help one after the other: each ends before one of these is imported.
HELP = """
import runpy, sys
for program in sys.argv[1:]:
    sys.argv = [program, "--help"]
    sys.path.insert(0, program.rpartition("/")[0])
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        assert not end.code, (program, end.code)
    loaded = {"tensorflow", "keras", "torch", "jax"} & set(sys.modules)
    assert not loaded, (program, loaded)
"""


def test_help_comes_before_anything_is_loaded():
    programs = [name for name in PROGRAMS if not name.endswith("recipe_flags.py")]
    assert len(programs) > 20
    done = subprocess.run(
        [sys.executable, "-c", HELP, *programs], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("usage: ") == len(programs)


def test_choices_are_those_of_the_package():
    assert recipe_flags.STRATEGIES == KINDS
    assert classify.PROBLEMS == PROBLEMS
    assert set(recipe_flags.GLUE) == set(glue.TASKS)
    assert {*FORMS, "keras_bert"} == set(ALL_FORMS) == {form.value for form in Form}
    lists = {
        "recipes/embed.py": LOSSES,
        "recipes/features.py": COMBINATIONS,
        "recipes/squad.py": tuple(squad.SCORERS),
        "tools/benchmark_stream.py": OBJECTIVES,
        "tools/benchmark_fit.py": tuple(SIZES)[-6:],
    }
    for name, values in lists.items():
        assert json.dumps(list(values))[1:-1] in (ROOT / name).read_text(), name


@pytest.mark.parametrize(
    ("recipe", "arguments", "package", "extra"),
    [
        (classify, ["--train", "a", "--dev", "b", "--text_column", "t", "--label_column", "l",
                    "--report"], "matplotlib", "plots"),
        (glue_recipe, ["--task", "sst2", "--report"], "matplotlib", "plots"),
        (squad, ["--train", "a", "--dev", "b", "--version", "cmrc"], "nltk", "metrics"),
    ],
)  # fmt: skip
def test_what_is_missing_is_said_before_training(
    recipe, arguments, package, extra, monkeypatch, capsys
):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SystemExit):
        recipe.main(["--preset", "DIR", *arguments])
    said = capsys.readouterr().err
    assert f"needs {package}" in said and f"keras3-bert[{extra}]" in said


@pytest.mark.thorough
def test_results_are_there_before_pictures_are_drawn(tmp_path, monkeypatch):
    rows = "text\tlabel\n" + "rain wind\tx\nboats\ty\n" * 4
    (tmp_path / "rows.tsv").write_text(rows)

    def failing(*_, **__):
        assert (tmp_path / "out/seed0/metrics.json").is_file()
        assert (tmp_path / "out/seed0/preset/config.json").is_file()
        raise RuntimeError("a picture could not be drawn")

    monkeypatch.setattr("keras_bert.explain.errors", failing)
    file = str(tmp_path / "rows.tsv")
    with pytest.raises(RuntimeError, match="a picture"):
        classify.main(
            ["--preset", str(TINY), "--train", file, "--dev", file, "--text_column", "text",
             "--label_column", "label", "--report", "--sequence_length", "8", "--epochs", "1",
             "--output_dir", str(tmp_path / "out"), "--dropout", "0.3"]
        )  # fmt: skip
    config = json.loads((tmp_path / "out/seed0/preset/config.json").read_text())["config"]
    assert config["hidden_dropout"] == config["attention_dropout"] == 0.3
