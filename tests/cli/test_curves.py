import json

import pytest

from keras_bert_cli.curves import draw_curves, write_heldout

LINES = [
    {"epoch": 0, "step": 5, "loss": 3.0, "mlm_perplexity": 20.0, "step_ms": 9.0, "val_loss": 3.5},
    {"step": 7, "loss": 2.9},
    {"epoch": 1, "step": 10, "loss": None, "mlm_perplexity": 15.0, "val_loss": 3.1},
    {"epoch": 1, "step": 10, "loss": 2.0, "mlm_perplexity": 14.0, "val_loss": 3.0},
]


def written(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_what_training_and_validation_share_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    log = written(tmp_path / "log.jsonl", LINES)
    assert draw_curves(log, tmp_path / "new" / "curves.png") == ["loss"]
    content = (tmp_path / "new" / "curves.png").read_bytes()
    assert content.startswith(b"\x89PNG") and len(content) > 5000
    assert draw_curves(log, tmp_path / "again.png") == ["loss"]
    assert (tmp_path / "again.png").read_bytes() == content


def test_without_validation_losses_are_drawn_and_without_epochs_nothing(tmp_path):
    pytest.importorskip("matplotlib")
    alone = [{k: v for k, v in line.items() if k != "val_loss"} for line in LINES]
    log = written(tmp_path / "log.jsonl", alone)
    assert draw_curves(log, tmp_path / "curves.png") == ["loss"]
    log = written(tmp_path / "steps.jsonl", LINES[1:2])
    assert draw_curves(log, tmp_path / "none.png") == [] and not (tmp_path / "none.png").exists()


def test_without_matplotlib_a_warning_says_so(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert draw_curves(written(tmp_path / "log.jsonl", LINES), tmp_path / "curves.png") == []
    assert "matplotlib" in caplog.text


def test_heldout_numbers_over_the_steps_of_all_phases(tmp_path):
    first = written(tmp_path / "first.jsonl", LINES)
    second = written(tmp_path / "second.jsonl", [{"epoch": 0, "step": 4, "val_loss": 1.5}])
    logs = [first, tmp_path / "missing.jsonl", second]
    expected = [
        {"phase": 1, "step": 5, "loss": 3.5},
        {"phase": 1, "step": 10, "loss": 3.0},
        {"phase": 3, "step": 14, "loss": 1.5},
    ]
    assert write_heldout(logs, tmp_path / "heldout.json") == expected
    assert json.loads((tmp_path / "heldout.json").read_text()) == expected
