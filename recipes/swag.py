"""Fine-tunes a BERT to choose the right one of four endings, and scores it on a dev file.

Source: Devlin et al. 2019, section 4.4: SWAG, batch 16, 3 epochs, learning rate 2e-5. Accuracy on
its dev set: Base 81.6, Large 86.6.
Data: train.csv and val.csv of SWAG's release; HellaSwag put into SWAG's columns; JSON lines.
Results and times: recipes/README.md.
Run: python recipes/swag.py --preset DIR --data_dir DIR --seed 0
"""

import argparse
from pathlib import Path

from recipe_flags import flags


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = flags(__doc__, epochs=3, batch_size=16)
    parser.add_argument("--data_dir", required=True, help="folder of the files")
    parser.add_argument("--train_file", default="train.csv")
    parser.add_argument("--dev_file", default="val.csv")
    parser.add_argument(
        "--dev_share",
        type=float,
        help="share of the train file, from its end, to score on instead of a dev file",
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    parse(None)  # wrong flags and --help end here, before TensorFlow is imported

from keras_bert.data.choices import ChoiceExamples, read_choices
from keras_bert.metrics import evaluate
from keras_bert.tasks.multiple_choice import BertMultipleChoice
from keras_bert.training import strategy

from experiment import run_seeds


def main(argv: list[str] | None = None) -> dict:
    args = parse(argv)
    devices = strategy(args.strategy)
    folder = Path(args.data_dir)
    train = read_choices(folder / args.train_file)
    if args.dev_share is None:
        dev = read_choices(folder / args.dev_file)
    else:
        cut = round(len(train.lines) * (1 - args.dev_share))
        dev, train = ChoiceExamples(*(column[cut:] for column in train)), train.head(cut)
    train = train.head(args.limit)

    def score(model, output):
        return evaluate(["accuracy"], dev.labels, model.predict(dev, args.batch_size))

    data = {"x": train, "validation_data": dev}
    return run_seeds(args, devices, BertMultipleChoice.from_preset, data, score)


if __name__ == "__main__":
    main()
