"""Turns a file of torch.save into a safetensors file. A program of its own, never imported.

usage: python -I torch_to_safetensors.py FILE TARGET FOLDER...

FOLDERs are looked through for modules last. PyTorch reads the file with weights_only=True, which
unpickles numbers and plain containers and refuses everything else. It can't do so in the calling
process: with TensorFlow it crashes on some machines. Says on stderr what is wrong and ends with 1.
"""

import sys

# torch.load(weights_only=True) could be made to run code before this release (CVE-2025-32434).
OLDEST = (2, 6)
SLACK = 2 << 30  # bytes that PyTorch may take beyond the tensors, for its threads and its own data


def main(path: str, target: str, folders: list[str]) -> None:
    """Writes the file, or raises an error with one line of text."""
    sys.path += [folder for folder in folders if folder not in sys.path]
    import os

    import torch
    from safetensors.torch import save_file

    if tuple(int(n) for n in torch.__version__.split(".")[:2]) < OLDEST:
        raise ValueError(f"PyTorch is {torch.__version__}; reading it safely takes 2.6 or later")
    size = os.path.getsize(path)
    _limit_memory(8 * size + SLACK)
    values = torch.load(path, map_location="cpu", weights_only=True)
    save_file(plain_tensors(values, size), target)


def _limit_memory(more: int) -> None:
    """Lets this process allocate so many bytes and no more, where the system (Linux) can do it.

    A small file may ask for any amount.
    """
    try:
        import resource

        with open("/proc/self/statm") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        limit = now + more if hard == resource.RLIM_INFINITY else min(now + more, hard)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    except (ImportError, OSError):
        pass


def plain_tensors(values, size: int) -> dict:
    """Gives the tensors, each with memory of its own, after a look at what they are.

    Raises:
        ValueError: if there is anything else, or the tensors claim more than the file can hold:
            each less than its `size`, and all together, with tied ones twice, less than 4 of it.
    """
    import torch

    if not isinstance(values, dict):
        raise ValueError(f"it holds a {type(values).__name__}; expected a dict of tensors")
    found, storages, total = {}, set(), 0
    for name, value in values.items():
        if not isinstance(name, str) or type(value) not in (torch.Tensor, torch.nn.Parameter):
            raise ValueError(f"under {name!r:.60} it holds a {type(value).__name__}, no tensor")
        if value.layout != torch.strided or value.device.type != "cpu" or value.is_quantized:
            raise ValueError(f"{name} is a tensor of an unusual kind: {value.layout}")
        length = value.numel() * value.element_size()
        total += length
        if length > size or total > 4 * size:
            raise ValueError(f"{name} claims {length:,} bytes, in a file of {size:,}")
        value = value.detach().contiguous()
        storage = value.untyped_storage().data_ptr()
        found[name] = value.clone() if storage in storages else value
        storages.add(storage)
    return found


if __name__ == "__main__":
    try:
        main(sys.argv[1], sys.argv[2], sys.argv[3:])
    except Exception as error:  # whatever PyTorch raises is a reason not to read the file
        # Of what it says on pickles, not the advice to trust them.
        text = str(error).split("WeightsUnpickler error: ")[-1].split("Check the documentation")[0]
        sys.exit(f"{type(error).__name__}: {' '.join(text.split())[:300]}")
