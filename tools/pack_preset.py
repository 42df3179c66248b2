"""Makes a preset small enough to ship: matrices as int8, and nothing but what loading needs.

Run: python tools/pack_preset.py runs/pretrain/preset keras_bert/presets/NAME --dropout 0.1
"""

import argparse
import json
import shutil
from pathlib import Path


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("source", type=Path, help="a preset by save_to_preset")
    parser.add_argument("target", type=Path)
    parser.add_argument("--dropout", type=float, help="to train the packed preset with")
    return parser.parse_args(argv)


if __name__ == "__main__":
    parse(None)  # wrong flags and --help end here, before the imports that take seconds

from keras_bert.atomic import write_folder
from keras_bert.checkpoints.int8_weights import is_int8, to_int8
from keras_bert.checkpoints.preset import FILES

KEPT = ("config.json", "task.json", "preprocessor.json", "tokenizer.json", "metadata.json")
WEIGHTS = ("model.weights.h5", "task.weights.h5")


def main(argv: list[str] | None = None) -> dict:
    args = parse(argv)
    errors = {}

    def write(folder):
        folder = Path(folder)
        for name in KEPT:
            if (args.source / name).exists():
                shutil.copyfile(args.source / name, folder / name)
        if (args.source / "assets").exists():
            shutil.copytree(args.source / "assets", folder / "assets")
        for name in WEIGHTS:
            if (args.source / name).exists():
                errors[name] = to_int8(args.source / name, folder / name)
        # The compute type of the machine that trained is not that of the one that will load.
        settings = {"dtype": "float32"}
        if args.dropout is not None:
            settings |= {"hidden_dropout": args.dropout, "attention_dropout": args.dropout}
        for name in ("config.json", "task.json"):
            if (folder / name).exists():
                config = json.loads((folder / name).read_text())
                config["config"].get("backbone", config)["config"].update(settings)
                (folder / name).write_text(json.dumps(config, indent=4) + "\n")

    if any(is_int8(args.source / name) for name in WEIGHTS):
        raise ValueError(f"{args.source} is packed already")
    write_folder(args.target, write, (*FILES, "*.md"))
    size = sum(path.stat().st_size for path in args.target.rglob("*") if path.is_file())
    result = {"megabytes": size / 1e6, "largest_error_in_a_row": errors}
    print(json.dumps(result))
    return result


if __name__ == "__main__":
    main()
