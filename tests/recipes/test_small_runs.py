"""The recipes around fine-tuning, from files to tables, and again without a run repeated."""

import random
from pathlib import Path

import numpy as np
import pytest

import keras_bert
from recipes import adapt, augment, distil, few_labels

TINY = str(Path(__file__).parents[1] / "golden" / "tiny_hf")


@pytest.fixture
def flags(tmp_path):
    rng = random.Random(0)
    words = "rain wind the a harbour froze boat red".split()
    folder = tmp_path / "glue" / "SST-2"
    folder.mkdir(parents=True)
    for name, size in (("train", 40), ("dev", 11)):
        rows = [f"{' '.join(rng.choices(words, k=5))}\t{i % 2}\n" for i in range(size)]
        (folder / f"{name}.tsv").write_text("sentence\tlabel\n" + "".join(rows))
    text = f"--preset {TINY} --data_dir {tmp_path / 'glue'} --output_dir {tmp_path / 'out'}"
    return f"{text} --tasks sst2 --rows 20 --length 10 --epochs 1 --least_steps 2".split()


@pytest.mark.thorough
def test_few_labels(flags, capsys):
    rows = few_labels.main([*flags, "--seeds", "0", "1", "--k", "2"])
    ways = [row["variant"] for row in rows[:7]]
    assert ways[0] == "one run of orders" and ways[-1] == "cross-validation"
    assert len(rows) == 14 and all(0 <= row["score"] <= 1 for row in rows)
    first = capsys.readouterr().out
    assert "| sst2 | 20 | averaged weights of folds | 2 |" in first
    assert few_labels.main([*flags, "--table"]) == rows  # nothing is trained
    assert capsys.readouterr().out == first
    with pytest.raises(SystemExit, match="other settings: epochs was 1.0, now 2.0: expected"):
        few_labels.main([*flags, "--seeds", "0", "--epochs", "2"])  # its table would show old runs


@pytest.mark.slow
def test_augment(flags):
    rows = augment.main([*flags, "--seeds", "0", "--top_k", "3", "--masked_lm_epochs", "1"])
    assert [row["variant"] for row in rows] == ["none", "words", "label"]


@pytest.mark.slow
def test_adapt(flags, tmp_path):
    more = ["--seeds", "0", "--adapt_steps", "2", "--new_words", "3"]
    rows = adapt.main([*flags, *more])
    assert [row["variant"] for row in rows] == ["none", "adapted", "new_words"]
    sizes = [
        keras_bert.BertMaskedLM.from_preset(tmp_path / f"out/sst2-{name}-seed0/preset")
        for name in ("adapted", "new_words")
    ]
    before = keras_bert.BertMaskedLM.from_preset(TINY)
    assert not np.allclose(
        sizes[0].backbone.blocks[0].get_weights()[0], before.backbone.blocks[0].get_weights()[0]
    )
    assert sizes[1].backbone.vocabulary_size >= before.backbone.vocabulary_size
    assert adapt.main([*flags, *more]) == rows


@pytest.mark.slow
def test_distil(flags, tmp_path):
    more = ["--teacher", TINY, "--seeds", "0", "--teacher_epochs", "1", "--top_k", "3", "--save"]
    rows = distil.main([*flags, *more])
    assert [row["variant"] for row in rows] == ["", "plain", "logits", "unlabelled", "copies"]
    more += ["--blocks", "0", "2", "--variants", "plain", "hidden"]
    rows = distil.main([*flags, *more])
    assert [row["student"] for row in rows[-2:]] == ["0+2"] * 2
    student = keras_bert.BertClassifier.from_preset(tmp_path / "out" / "0+2-sst2-hidden")
    assert student.backbone.num_layers == 2


@pytest.mark.slow
def test_search(flags, tmp_path, capsys):
    pytest.importorskip("optuna", reason="optuna is not installed")
    from recipes import search

    flags = [flag for flag in flags if flag not in ("--rows", "20")]
    best = search.main([*flags, "--trials", "3"])
    assert keras_bert.BertClassifier.from_preset(best["preset"]).num_classes == 2
    assert search.main([*flags, "--trials", "3"]) == best  # no further trial
    picture = tmp_path / "trials.png"
    again = search.main([*flags, "--trials", "4", "--picture", str(picture)])
    assert again["score"] >= best["score"] and picture.stat().st_size > 1000
    assert "trial 3, 4 of 4" in capsys.readouterr().out
    presets = [path.name for path in (tmp_path / "out").glob("sst2-paper-best-*")]
    assert Path(again["preset"]).name in presets


def test_trials_of_a_killed_worker_are_repeated(flags):
    optuna = pytest.importorskip("optuna", reason="optuna is not installed")
    from recipes import search

    args = search.parse([*flags, "--rates", "1e-3"])
    grid = search.GRID | {"learning_rate": args.rates}
    ended = (search.TrialState.COMPLETE,)

    def score(trial):
        trial.set_user_attr("host", search.socket.gethostname())
        return sum(trial.suggest_categorical(name, values) for name, values in grid.items())

    study = search.study_of(args)
    study.optimize(score, n_trials=2)
    lost = study.ask()
    score(lost)
    lost.set_user_attr("process", 2**22 + 1)  # larger than any process's number on Linux
    study = search.study_of(args)
    with pytest.raises(SystemExit, match="other settings: rows was 20, now 30; seed was 0, now 1"):
        search.study_of(search.parse([*flags, "--rows", "30", "--seeds", "1"]))
    search.end_lost_trials(study)
    study.optimize(score, callbacks=[optuna.study.MaxTrialsCallback(6, ended)])
    done = [trial.params for trial in study.get_trials(states=ended)]
    assert len({tuple(sorted(params.items())) for params in done}) == 6  # the whole grid
    assert lost.params in done
