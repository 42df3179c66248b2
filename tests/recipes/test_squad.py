"""The recipe from end to end on a few questions: files in, answers and scores out, read back."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

from keras_bert import BertQuestionAnswerer
from keras_bert.data import hold_out_articles, read_predictions, read_squad
from keras_bert.metrics import squad_v1_scores, squad_v2_scores
from recipes import squad

TINY = Path(__file__).parents[1] / "golden" / "tiny_one_block"


def write(path, articles, impossible=0.0, seed=0):
    """A file of articles of 3 questions each about the golden vocabulary's words."""
    rng = random.Random(seed)
    words = "rain wind the a harbour froze boat red".split()
    data = []
    for number in range(articles):
        context = "  ".join(rng.choices(words, k=9))
        qas = []
        for place in range(3):
            answer = rng.choice(words)
            none = answer not in context or rng.random() < impossible
            if none and not impossible:
                answer, none = context.split()[0], False
            answers = [{"text": answer, "answer_start": context.find(answer)}] * (not none)
            key = f"{path.stem}-{number}-{place}"
            qa = {"id": key, "question": f"the {answer}", "answers": answers}
            qas.append(qa | ({"is_impossible": none} if impossible else {}))
        paragraphs = [{"context": context, "qas": qas}]
        data.append({"title": f"article {number}", "paragraphs": paragraphs})
    path.write_text(json.dumps({"version": "v2.0", "data": data}))
    return path


def flags(tmp_path, more):
    return (
        f"--preset {TINY} --data_dir {tmp_path} --output_dir {tmp_path / 'runs'} --epochs 1 "
        f"--batch_size 8 --sequence_length 13 --stride 3 {more}"
    ).split()


@pytest.mark.slow
def test_recipe_writes_what_it_promises(tmp_path):
    write(tmp_path / "all.json", 7, impossible=0.3)
    more = "--version 2.0 --train all.json --held_out 0.4 --seed 3"
    (run,) = squad.main(flags(tmp_path, more))["by_seed"]
    train, dev = hold_out_articles(read_squad(tmp_path / "all.json"), 0.4)
    assert (len(train), len(dev)) == (12, 9)
    references = {e.id: [answer.text for answer in e.answers] for e in dev}
    output = tmp_path / "runs" / "seed3"
    assert json.loads((output / "metrics.json").read_text()) == run
    assert run["train_rows"] > 12
    assert run["train_rows_per_second"] > 0 and len(run["val_loss_by_epoch"]) == 1
    assert (output / "best.weights.h5").is_file()
    texts = read_predictions(output / "predictions.json")
    odds = json.loads((output / "null_odds.json").read_text())
    assert set(texts) == set(odds) == set(references)
    assert squad_v2_scores(references, texts)["f1"] == pytest.approx(run["f1"])
    model = BertQuestionAnswerer.from_preset(output / "preset")
    assert model.null_threshold == run["null_threshold"]
    again = model.answer_examples(dev)
    assert {key: prediction.text for key, prediction in again.items()} == texts
    for key, prediction in again.items():
        assert (prediction.text == "") == (odds[key] > model.null_threshold)
        assert prediction.null_score == pytest.approx(odds[key], abs=1e-5)


@pytest.mark.slow
def test_two_files_of_the_first_version(tmp_path):
    write(tmp_path / "train.json", 5)
    dev = read_squad(write(tmp_path / "dev.json", 3, seed=1))
    more = "--train train.json --dev dev.json --limit 11 --resume --seed 0 1"
    summary = squad.main(flags(tmp_path, more))
    references = {e.id: [answer.text for answer in e.answers] for e in dev}
    values = [run["exact_match"] for run in summary["by_seed"]]
    assert summary["runs"] == 2 and summary["exact_match"]["mean"] == pytest.approx(np.mean(values))
    answers = []
    for seed, run in enumerate(summary["by_seed"]):
        output = tmp_path / "runs" / f"seed{seed}"
        assert run["null_threshold"] is None
        assert not (output / "null_odds.json").exists()
        answers.append(read_predictions(output / "predictions.json"))
        assert all(answers[-1][e.id] and answers[-1][e.id] in e.context for e in dev)
        scores = squad_v1_scores(references, answers[-1])
        assert scores["exact_match"] == pytest.approx(run["exact_match"])
    again = squad.main(flags(tmp_path, more))  # goes on after the last step
    assert [run["exact_match"] for run in again["by_seed"]] == values
    for seed, texts in enumerate(answers):
        assert read_predictions(tmp_path / "runs" / f"seed{seed}" / "predictions.json") == texts


def test_articles_are_held_out_whole(tmp_path):
    examples = read_squad(write(tmp_path / "all.json", 11))
    train, dev = hold_out_articles(examples, 0.3)
    titles = [{e.title for e in part} for part in (train, dev)]
    assert not titles[0] & titles[1] and list(map(len, titles)) == [8, 3]
    assert hold_out_articles(examples[::-1], 0.3)[1] == dev[::-1]  # whatever the order
    with pytest.raises(ValueError, match="share=0.01 of 11 articles"):
        hold_out_articles(examples, 0.01)


def test_flags_that_are_wrong(capsys):
    for more in ("--dev b.json --held_out 0.5", "", "--held_ou 0.5"):
        with pytest.raises(SystemExit):
            squad.parse(f"--preset {TINY} --train a.json {more}".split())
    assert "expected one of --dev and --held_out" in capsys.readouterr().err
