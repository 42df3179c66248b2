"""The recipe from end to end on a few sentences: files in, metrics out, saved and read back."""

import json
from pathlib import Path

import pytest

from keras_bert.data.relations import read_relations
from keras_bert.metrics import relation_scores
from keras_bert.tasks.relation_classifier import BertRelationClassifier
from recipes import relation

TINY = Path(__file__).parents[1] / "golden" / "tiny_one_block"
LABELS = ["Cause-Effect(e1,e2)", "Cause-Effect(e2,e1)", "Other"]


@pytest.mark.slow  # what recipes share is run by the test of swag.py
# With so few sentences the model may predict relations that none of them has.
@pytest.mark.filterwarnings("ignore:Predicted relations that are not among")
def test_recipe_writes_what_it_promises(tmp_path):
    blocks = [
        f'{i}\t"The <e1>rain</e1> froze{" red" * (i % 5)} <e2>wind</e2>"\n{LABELS[i % 3]}\n'
        for i in range(1, 12)
    ]
    for name in ("TRAIN_FILE.TXT", "TEST_FILE_FULL.TXT"):
        (tmp_path / name).write_text("\n".join(blocks))
    flags = f"--preset {TINY} --data_dir {tmp_path} --output_dir {tmp_path / 'runs'} --seed 0"
    flags += " --train_file TRAIN_FILE.TXT --test_file TEST_FILE_FULL.TXT --epochs 1 --limit 7"
    flags += " --batch_size 5 --sequence_length 13 --markers a boat red the"
    summary = relation.main(flags.split())
    output = tmp_path / "runs" / "seed0"
    metrics = json.loads((output / "metrics.json").read_text())
    assert metrics["train_rows"] == 7
    test = read_relations(tmp_path / "TEST_FILE_FULL.TXT")
    model = BertRelationClassifier.from_preset(output / "preset")
    scores = relation_scores(test.labels, model.relate(test)[0])
    assert metrics["macro_f1"] == pytest.approx(scores.f1) == summary["macro_f1"]["mean"]
    assert metrics["val_accuracy_by_epoch"][-1] == pytest.approx(scores.accuracy / 100)
    assert model.preprocessor.markers == ("a", "boat", "red", "the")
