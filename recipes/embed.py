"""Fine-tunes a BERT to embed texts, and scores the cosines of pairs on a dev set.

Source: Reimers and Gurevych 2019, arXiv:1908.10084, section 4.2: STS-B by the squared error of the
cosine, batch 16, 4 epochs, learning rate 2e-5, mean pooling; Spearman's correlation. With --loss
contrastive the pairs of score 4 and more are trained to find each other among a batch.
Data: STS-B's TSV files, or TensorFlow Datasets when no --data_dir is given.
Results and times: recipes/README.md.
Run: python recipes/embed.py --preset DIR --data_dir DIR --seed 0
"""

import argparse
import json
from functools import partial

from recipe_flags import flags


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = flags(__doc__, epochs=4, batch_size=16)
    parser.add_argument("--data_dir", help="GLUE folder, or the task's; TFDS if left out")
    parser.add_argument("--loss", choices=("contrastive", "cosine"), default="cosine")
    parser.add_argument("--pooling", help="cls, mean, max or pooler; by default the preset's")
    parser.add_argument("--score_only", action="store_true", help="score the preset as it is")
    return parser.parse_args(argv)


if __name__ == "__main__":
    parse(None)  # wrong flags and --help end here, before TensorFlow is imported

import numpy as np

from keras_bert.data import glue
from keras_bert.metrics import evaluate
from keras_bert.tasks.text_embedder import BertTextEmbedder
from keras_bert.training import strategy

from experiment import run_seeds

HIGHEST = 5.0  # score of STS-B, whose lowest is 0


def main(argv: list[str] | None = None) -> dict:
    args = parse(argv)
    devices = strategy(args.strategy)
    read = partial(glue.read, data_dir=args.data_dir) if args.data_dir else glue.read_tfds
    train, dev = (read("stsb", split=split) for split in ("train", "dev"))
    train = train.head(args.limit)
    pairs, scores = train.texts, np.array(train.labels) / HIGHEST
    dev_scores = np.array(dev.labels) / HIGHEST
    data = {"x": pairs, "y": scores, "validation_data": (dev.texts, dev_scores)}
    if args.loss == "contrastive":
        alike, dev_alike = (np.flatnonzero(s >= 0.8) for s in (scores, dev_scores))
        pairs = tuple([side[i] for i in alike] for side in pairs)
        dev_pairs = tuple([side[i] for i in dev_alike] for side in dev.texts)
        data = {"x": pairs, "validation_data": (dev_pairs,)}

    def score(model, output=None):
        cosines = model.similarity(*dev.texts, args.batch_size)
        return evaluate(["pearson", "spearman"], dev_scores, cosines)

    make = partial(BertTextEmbedder.from_preset, loss=args.loss, pooling=args.pooling)
    if args.score_only:
        scores = score(make(args.preset, sequence_length=args.sequence_length))
        print(json.dumps(scores))
        return scores
    return run_seeds(args, devices, make, data, score, monitor="val_loss", mode="min")


if __name__ == "__main__":
    main()
