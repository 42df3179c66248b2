"""pytorch_model.bin, read through safetensors."""

import importlib.util
import subprocess
import sys
from pathlib import Path

_SCRIPT = Path(__file__).with_name("torch_to_safetensors.py")
_SECONDS = 1800  # ten times what BERT-Large takes on a slow disk


def torch_to_safetensors(path: Path, target: Path) -> None:
    """Makes PyTorch convert its file to a safetensors file, in another process.

    Only numbers and plain containers are unpickled: see `torch_to_safetensors.py`.

    Raises:
        ValueError: if PyTorch is not installed, or cannot read the file.
    """
    if importlib.util.find_spec("torch") is None:
        raise ValueError(
            f"{path} is a pickle, which PyTorch alone reads safely, and it is not installed: "
            "`pip install torch`, or have the model converted where it is, by "
            "`AutoModel.from_pretrained(...).save_pretrained(..., safe_serialization=True)` of "
            "transformers, with the model's own class in place of AutoModel"
        )
    # -I keeps the working folder out of the search for modules; what this process finds, such as
    # packages in a user's own site folder, comes last.
    folders = [folder for folder in sys.path if Path(folder).is_absolute()]
    command = [sys.executable, "-I", str(_SCRIPT), str(path.resolve()), str(target), *folders]
    try:
        done = subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"{path}: PyTorch did not read it within {_SECONDS} seconds") from None
    if done.returncode != 0 or not target.is_file():
        said = done.stderr.decode(errors="replace").strip() or f"it ended with {done.returncode}"
        raise ValueError(
            f"{path} can't be read as a PyTorch file of weights: {said.splitlines()[-1][:500]}"
        )
