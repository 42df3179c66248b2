"""Trains a BERT to find names, or to tag words in another way, and scores it by entity.

Source: Devlin et al. 2019, section 5.3: the first piece of each word is classified; batch 32 and
learning rates as for the other tasks. The paper's model is cased and sees the whole document; here
a row is one sentence.
Data: columns of words and tags. --data_dir takes a folder with the files of CoNLL-2003
(eng.train, eng.testa, eng.testb), WNUT 2017 or MSRA; other files go in by --train, --dev, --test.
Results and times: recipes/README.md.
Run: python recipes/ner.py --preset DIR --data_dir CONLL2003 --scheme iob1 --seed 0
"""

import argparse
from functools import partial

from recipe_flags import add_tagged_flags, flags


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = flags(__doc__, learning_rate=5e-5)
    add_tagged_flags(parser)
    parser.add_argument("--crf", action="store_true", help="a chain over the labels")
    return parser.parse_args(argv)


if __name__ == "__main__":
    parse(None)  # wrong flags and --help end here, before TensorFlow is imported

import keras_bert
from keras_bert.data import tag_names
from keras_bert.metrics import tagging_scores
from keras_bert.training import strategy

from experiment import read_tagged_parts, run_seeds


def main(argv: list[str] | None = None) -> dict:
    args = parse(argv)
    devices = strategy(args.strategy)
    data = read_tagged_parts(args)
    train = data.pop("train").head(args.limit)
    make = partial(
        keras_bert.BertTokenClassifier.from_preset,
        labels=tag_names(train.tags, *(part.tags for part in data.values())),
        crf=args.crf,
        skip_mismatch=True,  # a head for other labels is replaced
    )

    def score(model, output):
        scores = {}
        for part, rows in data.items():
            found = model.predict_tags(rows.words, args.batch_size)
            one = tagging_scores(rows.tags, found, entities=args.scheme != "none")
            scores |= {f"{part}_{name}": value for name, value in one.items()}
        return scores

    return run_seeds(args, devices, make, {"x": train, "validation_data": data["dev"]}, score)


if __name__ == "__main__":
    main()
