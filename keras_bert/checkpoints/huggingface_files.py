"""Finds the weight files in a Hugging Face directory: single or sharded, from two libraries."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from keras_bert.checkpoints.safetensors_files import StoredTensor, read_headers
from keras_bert.checkpoints.source import Source
from keras_bert.checkpoints.torch_file import torch_to_safetensors

SAFETENSORS, TORCH = "model.safetensors", "pytorch_model.bin"
_SHOWN = 10


@contextmanager
def stored_tensors(source: Source) -> Iterator[dict[str, StoredTensor]]:
    """Yields the tensors of the weight files, by the names in them.

    Shards take precedence over a single file, and safetensors over PyTorch's files, which PyTorch
    converts to safetensors for the duration of the context.

    Raises:
        FileNotFoundError: if there are no weights, or a shard is missing.
        ValueError: if a file is damaged, or an index disagrees with its shards.
    """
    for whole in (SAFETENSORS, TORCH):
        index = f"{whole}.index.json"
        if source.has(index):
            listed = _listed_files(source, index)
        elif source.has(whole):
            listed = {}
        else:
            continue
        paths = [source.path(name) for name in sorted(set(listed.values())) or [whole]]
        with tempfile.TemporaryDirectory(prefix="keras_bert_") as scratch:
            for i, path in enumerate(paths if whole == TORCH else ()):
                paths[i] = Path(scratch) / f"{i}.safetensors"
                torch_to_safetensors(path, paths[i])
            stored = read_headers(paths)
            missing = sorted(set(listed) - set(stored))
            if missing:
                raise ValueError(
                    f"{source.name}/{index} lists {len(missing)} tensors that are in none of its "
                    f"files: {', '.join(missing[:_SHOWN])}"
                )
            yield stored
        return
    try:
        said = str(source.path(SAFETENSORS))
    except FileNotFoundError as error:
        said = str(error)  # it lists the existing files
    raise FileNotFoundError(f"{said}; expected {SAFETENSORS} or {TORCH}")


def _listed_files(source: Source, index: str) -> dict[str, str]:
    """Returns the file of each tensor in an index."""
    listed = source.json(index).get("weight_map")
    is_right = isinstance(listed, dict) and all(isinstance(n, str) for n in listed.values())
    if not is_right or not listed:
        raise ValueError(f"{source.name}/{index} has no weight_map of names of files")
    return listed
