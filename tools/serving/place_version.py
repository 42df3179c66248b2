"""Puts an export among a model's versions, as TensorFlow Serving looks for them.

usage: python tools/serving/place_version.py export/ models/classifier [--version 7]
       python tools/serving/place_version.py export/ models/classifier --batching \\
           tools/serving/batching_parameters.txt

The copy gets the next number. It is made in a hidden folder beside the versions and renamed when it
is whole, so a server that looks at the folder meanwhile never sees a part of it. Prints the number.
The standard library is enough.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

BATCHING = "batching_params.pbtxt"  # the server looks for this name in a version's folder
TRIES = 100


class PlaceError(Exception):
    """The export cannot be placed."""


def versions(model: Path) -> list[int]:
    """The numbers of a model's versions, ascending: folders whose names are decimal numbers."""
    if not model.is_dir():
        return []
    names = [path.name for path in model.iterdir() if path.is_dir()]
    return sorted(int(name) for name in names if name.isascii() and name.isdecimal())


def not_by_rows(export: Path) -> str | None:
    """Names an output of serving_default for which the server's batching does not work.

    The server cuts every output of a batch along its first axis into the requests it was made of,
    so each must be as long there as the inputs. The examples of the export's contract tell.
    """
    path = export / "assets.extra" / "contract.json"
    if not path.is_file():
        raise PlaceError(
            f"--batching: {export} has no assets.extra/contract.json to tell if it can"
        )
    contract = json.loads(path.read_text(encoding="utf-8"))
    names = list(contract["signatures"]["serving_default"]["outputs"])
    for example in contract["examples"]:
        request, reply = example["request"], example["reply"]
        if request.get("signature_name", "serving_default") != "serving_default":
            continue
        if "outputs" not in reply:
            continue
        outputs = reply["outputs"] if len(names) > 1 else {names[0]: reply["outputs"]}
        rows = {len(value) for value in request["inputs"].values()}
        for name, value in outputs.items():
            if not isinstance(value, list) or {len(value)} != rows:
                return name
    return None


def place(
    export: str | Path,
    model: str | Path,
    version: int | None = None,
    batching: str | Path | None = None,
) -> int:
    """Copies an export as a version of a model.

    Args:
        export: folder of a SavedModel.
        model: folder of the model's versions; made if need be.
        version: its number, 1 or more; None for the one after the highest.
        batching: a file of batching parameters to put beside the SavedModel, for a server with
            `--enable_per_model_batching_parameters`; None for a version that is not batched.

    Returns:
        the number.

    Raises:
        PlaceError: if there is no SavedModel, the version is there already, or batching does not
            work for this model.
    """
    export, model = Path(export), Path(model)
    if not (export / "saved_model.pb").is_file():
        raise PlaceError(f"{export} is no SavedModel: it has no saved_model.pb")
    if version is not None and version < 1:
        raise PlaceError(f"version {version}, expected 1 or more")
    if batching is not None:
        output = not_by_rows(export)
        if output:
            raise PlaceError(
                f"--batching: output {output} of serving_default is not one a row, which the "
                "server's batching needs; place the export without it"
            )
    model.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".placing.", dir=model))
    try:
        new = scratch / "new"
        shutil.copytree(export, new)
        if batching is not None:
            shutil.copyfile(batching, new / BATCHING)
        for file in new.rglob("*"):
            if file.is_file():
                _to_disk(file)
        for _ in range(TRIES):
            number = version or max(versions(model), default=0) + 1
            if not (model / str(number)).exists():
                try:
                    os.rename(new, model / str(number))
                except OSError:
                    if not (model / str(number)).exists():
                        raise
                else:
                    _to_disk(model)
                    return number
            if version:
                raise PlaceError(f"{model} has a version {version} already")
        raise PlaceError(f"{model}: other programs took {TRIES} numbers meanwhile")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def main(arguments: list[str] | None = None) -> Any:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("export", help="folder of a SavedModel")
    parser.add_argument("model", help="folder of the model's versions: MODELS/NAME")
    parser.add_argument("--version", type=int, help="default: the one after the highest")
    parser.add_argument("--batching", metavar="FILE", help="batching parameters of this version")
    args = parser.parse_args(arguments)
    try:
        print(place(args.export, args.model, args.version, args.batching))
    except (PlaceError, OSError) as error:
        sys.exit(f"place_version.py: {error}")


if __name__ == "__main__":
    main()
