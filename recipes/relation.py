"""Fine-tunes a BERT to tell the relation of two entities, and scores it on the test file.

Source: Baldini Soares et al. 2019, arXiv:1906.03158, section 3; SemEval-2010 Task 8, scored by the
task's own rule (macro-F1 of nine relations, direction counted). Wu and He 2019, R-BERT: batch 16, 5
epochs, learning rate 2e-5, 128 tokens.
Data: TRAIN_FILE.TXT and TEST_FILE_FULL.TXT of the task, plain or with .gz.
Results and times: recipes/README.md.
Run: python recipes/relation.py --preset DIR --data_dir DIR --seed 0
"""

import argparse
from functools import partial
from pathlib import Path

from recipe_flags import flags


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = flags(__doc__, epochs=5, batch_size=16)
    parser.add_argument("--data_dir", required=True, help="folder of the files")
    parser.add_argument("--train_file", default="TRAIN_FILE.TXT.gz")
    parser.add_argument("--test_file", default="TEST_FILE_FULL.TXT.gz")
    parser.add_argument("--markers", nargs=4, help="tokens around the first and second entity")
    return parser.parse_args(argv)


if __name__ == "__main__":
    parse(None)  # wrong flags and --help end here, before TensorFlow is imported

from keras_bert.data.relations import RELATIONS, read_relations
from keras_bert.metrics import relation_scores
from keras_bert.tasks.relation_classifier import BertRelationClassifier
from keras_bert.training import strategy

from experiment import run_seeds


def main(argv: list[str] | None = None) -> dict:
    args = parse(argv)
    devices = strategy(args.strategy)
    train = read_relations(Path(args.data_dir) / args.train_file).head(args.limit)
    test = read_relations(Path(args.data_dir) / args.test_file)

    def score(model, output):
        scores = relation_scores(test.labels, model.relate(test, batch_size=args.batch_size)[0])
        return {"macro_f1": scores.f1, "accuracy": scores.accuracy}

    make = partial(
        BertRelationClassifier.from_preset,
        labels=list(RELATIONS),
        markers=args.markers,
        skip_mismatch=True,  # a head for other relations is replaced
    )
    return run_seeds(args, devices, make, {"x": train, "validation_data": test}, score)


if __name__ == "__main__":
    main()
