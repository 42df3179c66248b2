"""The flags that recipes share. No TensorFlow is imported here, so that --help answers at once."""

import argparse
import importlib.util
from pathlib import Path

from keras_bert_cli.main import STRATEGIES

SWITCH = {"auto": "auto", "on": True, "off": False}  # of arguments that are "auto", True or False
GLUE = "sst2 cola mrpc rte qqp stsb mnli qnli wnli".split()
PARTS = ("train", "dev", "test")  # of tagged data


def flags(
    doc: str,
    epochs: int = 3,
    batch_size: int = 32,
    learning_rate: float = 2e-5,
    sequence_length: int = 128,
) -> argparse.ArgumentParser:
    """A parser with the flags of every fine-tuning recipe.

    Args:
        doc: the recipe's docstring; its first line describes it.
        epochs: default of the flag of that name, as the others.
        batch_size: likewise.
        learning_rate: likewise.
        sequence_length: likewise.
    """
    parser = argparse.ArgumentParser(description=doc.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--preset", required=True, help="folder, name or address of a BERT")
    parser.add_argument("--new_weights", action="store_true", help="only the preset's shape")
    parser.add_argument("--output_dir", default=f"runs/{Path(parser.prog).stem}")
    parser.add_argument("--seed", type=int, nargs="+", default=[0], help="one run a seed")
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--batch_size", type=int, default=batch_size)
    parser.add_argument("--learning_rate", type=float, default=learning_rate)
    parser.add_argument("--epsilon", type=float, default=1e-6, help="of AdamW")
    parser.add_argument("--sequence_length", type=int, default=sequence_length)
    parser.add_argument("--dropout", type=float, help="of the BERT; default: the preset's")
    parser.add_argument("--padding", choices=("bucket", "full"), default="bucket")
    parser.add_argument("--packing", choices=SWITCH, default="auto", help="texts that share a row")
    parser.add_argument("--dtype", default="float32", help='such as "mixed_bfloat16" on a GPU')
    parser.add_argument("--steps_per_execution", type=int, default=1)
    parser.add_argument("--accumulation_steps", type=int, default=1)
    parser.add_argument("--strategy", choices=STRATEGIES, default="auto", help="of devices")
    parser.add_argument("--resume", action="store_true", help="save, and go on where it stopped")
    parser.add_argument("--limit", type=int, help="train on the first so many examples only")
    return parser


def add_bilstm_flag(parser: argparse.ArgumentParser) -> None:
    """Adds the flags --bilstm and --frozen."""
    text = "new LSTMs in both directions on the last layer, trained along; without XLA"
    parser.add_argument("--bilstm", action="store_true", help=text)
    parser.add_argument("--frozen", action="store_true", help="the BERT is not trained")


def add_tagged_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the flags that `read_tagged_parts` reads."""
    parser.add_argument("--data_dir", help="folder with the three files")
    for part in PARTS:
        parser.add_argument(f"--{part}", help="a file, in place of the folder's")
    parser.add_argument("--word_column", type=int, default=0)
    parser.add_argument("--tag_column", type=int, default=-1)
    parser.add_argument("--scheme", choices=("iob2", "iob1", "none"), default="iob2")


def small_run_flags(
    doc: str, tasks: list[str], rows: list[int], seeds: int
) -> argparse.ArgumentParser:
    """A parser with the flags of the recipes that compare many small runs on GLUE.

    Args:
        doc: the recipe's docstring; its first line describes it.
        tasks: default of --tasks.
        rows: default of --rows.
        seeds: default number of seeds.
    """
    parser = argparse.ArgumentParser(description=doc.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--preset", default="bert_mini_en_public_domain")
    parser.add_argument("--data_dir", required=True, help="the GLUE folder")
    parser.add_argument("--tasks", nargs="+", default=tasks, choices=GLUE)
    parser.add_argument("--rows", type=int, nargs="+", default=rows, help="labelled rows to use")
    parser.add_argument("--seeds", type=int, nargs="+", default=[*range(seeds)])
    parser.add_argument("--output_dir", default=f"runs/{Path(parser.prog).stem}")
    parser.add_argument("--part", default="runs", help="file of results, one for each process")
    parser.add_argument("--table", action="store_true", help="only print the results so far")
    parser.add_argument("--minutes", type=float, help="begin no run after so long")
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--learning_rate", type=float, default=1e-4)
    parser.add_argument("--epochs", type=float, default=4, help="over the rows without copies")
    parser.add_argument("--least_steps", type=int, default=200, help="if the epochs have fewer")
    parser.add_argument("--length", type=int, help="tokens of a row; default: 64, pairs 128")
    parser.add_argument("--dtype", default="float32", help='such as "mixed_bfloat16" on a GPU')
    parser.add_argument("--dev_limit", type=int, help="score on the first so many dev rows")
    return parser


def need(parser: argparse.ArgumentParser, package: str, extra: str, what: str) -> None:
    """Ends the program, before anything is trained, where a package is missing.

    Args:
        parser: says so.
        package: the package's name.
        extra: of keras3-bert, that installs it.
        what: asks for it.
    """
    if importlib.util.find_spec(package) is None:
        parser.error(f"{what} needs {package}: pip install --use-pep517 'keras3-bert[{extra}]'")
