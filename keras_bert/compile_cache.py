"""XLA's compiled programs, kept for the next process.

TensorFlow can load compiled programs from a folder (`--tf_xla_persistent_cache_directory`), but
writes them there in place, fails on a damaged one, and looks at neither versions nor devices. Each
process therefore has a folder of its own. It begins with links to the programs in the store that
fit this machine and whose checksum is right, and what it adds is moved to the store afterwards.
"""

import atexit
import contextlib
import ctypes
import hashlib
import importlib.metadata
import logging
import os
import platform
import re
import shutil
import stat
import tempfile
import threading
import time
from pathlib import Path

SWITCH = "KERAS_BERT_COMPILE_CACHE"
LIMIT = 2 * 2**30  # bytes of the store
LEFT_FREE = 2**30  # bytes below which nothing is kept: TensorFlow fails where it cannot write
NUMBERS = 1_000_000  # tensors of a process between two of its functions, at most
LEFT_BEHIND = 7 * 24 * 3600  # seconds after which a process of another machine counts as killed

# Everything that may decide about a compiled program, and is not part of the program.
_PACKAGES = ("tensorflow", "tensorflow-cpu", "nvidia-cublas-cu12", "nvidia-cudnn-cu12")
_PACKAGES += ("nvidia-cuda-nvcc-cu12", "nvidia-cuda-runtime-cu12", "nvidia-nccl-cu12")
_VARIABLES = ("XLA_FLAGS", "TF_DETERMINISTIC_OPS", "TF_CUDNN_DETERMINISTIC")
_VARIABLES += ("NVIDIA_TF32_OVERRIDE",)

_OURS = (
    r" ?--tf_xla_persistent_cache_directory=\S*/keras_bert/compiled/\.process-\S+"
    r" --tf_xla_persistent_cache_device_types=\S+"
)

logger = logging.getLogger("keras_bert")
_used = None  # the `_Folder` of this process


def enable(devices: str = "GPU", cards: list[str] | None = None) -> Path | None:
    """Keeps compiled programs from now on; to be called before TensorFlow looks for devices.

    The store is `keras_bert/compiled` in the user's cache (`XDG_CACHE_HOME`, by default
    `~/.cache`). It belongs to the user alone, since programs in it are executed, and does not grow
    beyond `LIMIT`. The environment variable KERAS_BERT_COMPILE_CACHE=0 turns it off; a folder that
    the user set in TF_XLA_FLAGS is used in its place.

    On a machine with a card, matrix products are also left to cuBLAS, in XLA_FLAGS.

    Args:
        devices: types of devices whose programs are kept, as TensorFlow names them.
        cards: names of the cards that programs run on, and the version of their driver; by
            default those of this machine. Without one, nothing is kept.

    Returns:
        The folder that TensorFlow reads and writes; None if nothing is kept.
    """
    global _used
    cards = _cards() if cards is None else cards
    if cards and os.environ.get("KERAS_BACKEND", "tensorflow") == "tensorflow":
        _leave_products_to_cublas()
    # The flags of a parent process name its folder, which is not to be shared.
    flags = re.sub(_OURS, "", os.environ.get("TF_XLA_FLAGS", "")).strip()
    if "TF_XLA_FLAGS" in os.environ:
        os.environ["TF_XLA_FLAGS"] = flags
    if os.environ.get(SWITCH) == "0" or "tf_xla_persistent_cache" in flags or _used is not None:
        return None
    if not cards or not hasattr(os, "getuid"):
        return None
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute()
        if len(str(cache).split()) != 1:  # TensorFlow separates its flags there
            logger.warning("compiled programs are not kept: %s contains a blank", cache)
            return None
        store = _private(cache)
        if store is None:
            return None
        if shutil.disk_usage(store).free < LEFT_FREE:
            logger.warning("compiled programs are not kept: the disk of %s is almost full", store)
            return None
        _used = _Folder(store, _key(cards, flags))
    except (OSError, RuntimeError) as error:  # RuntimeError: no home
        logger.warning("compiled programs are not kept: %s", error)
        return None
    os.environ["TF_XLA_FLAGS"] = (
        f"{flags} --tf_xla_persistent_cache_directory={_used.own} "
        f"--tf_xla_persistent_cache_device_types={devices}"
    ).strip()
    atexit.register(_used.close)
    return _used.own


def _leave_products_to_cublas() -> None:
    """Keeps XLA from compiling and timing Triton code for every matrix product.

    That takes three quarters of the time to the first step of BERT-Base, and finds nothing faster
    than cuBLAS. A user's own value of the flag is kept.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_gpu_enable_triton_gemm" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --xla_gpu_enable_triton_gemm=false".strip()


def wait() -> None:
    """Waits until TensorFlow can load all programs of the store; called before it compiles."""
    if _used is not None:
        _used.wait()


def renumber() -> None:
    """Gives the function whose trace begins here the number it has in other processes.

    The number is part of the name that TensorFlow finds a kept program by. It counts tensors, too,
    and so differs after a test of the kernels, or with other data; it goes on to the next multiple
    of `NUMBERS` here, in at most 0.13 s.
    """
    if _used is not None:
        from tensorflow.python.framework.ops import uid

        for _ in range(-uid() % NUMBERS):
            uid()


def keep() -> None:
    """Moves programs compiled so far to the store; called where long work ends."""
    if _used is not None:
        _used.keep()


def noted(fact: str) -> bool:
    """Whether this or an earlier process, with the same cards, versions and flags, noted a fact.

    Args:
        fact: its name, as `note` was given it.
    """
    if _used is None:
        return False
    _used.wait()
    return (_used.own / fact).exists()


def note(fact: str) -> None:
    """Keeps a fact about the programs of this process with them; nothing if none are kept.

    Args:
        fact: a name of letters, digits and hyphens.
    """
    if _used is not None:
        with contextlib.suppress(OSError):
            (_used.own / fact).touch()


class _Folder:
    """The folder of one process, and the part of the store that it shares.

    Files of the store are named CHECKSUM-NAME, with the name that TensorFlow gave them. Checksums
    are computed while TensorFlow is being imported.
    """

    def __init__(self, store: Path, key: str):
        self.store, self.shared, self.process = store, store / key, os.getpid()
        self.shared.mkdir(mode=0o700, exist_ok=True)
        _remove_left_behind(store)
        prefix = f".process-{platform.node()}-{self.process}-"
        self.own = Path(tempfile.mkdtemp(prefix=prefix, dir=store))
        self._linked = set()
        self._links = threading.Thread(target=self._link_sound, daemon=True)
        self._links.start()

    def wait(self) -> None:
        """Waits until the folder has all programs of the store."""
        self._links.join()

    def _link_sound(self) -> None:
        for path in sorted(self.shared.iterdir()):
            checksum, _, name = path.name.partition("-")
            try:
                if _checksum(path) != checksum:
                    logger.warning("%s is damaged: it is removed and compiled again", path)
                    path.unlink()
                elif name not in self._linked:
                    _link(path, self.own / name)
                    os.utime(path)  # it is in use
                    self._linked.add(name)
            except OSError:  # another process removed it
                continue

    def keep(self) -> None:
        """Moves new programs to the store, and removes the oldest if it is too large."""
        if os.getpid() != self.process:  # a fork: it is not its folder
            return
        self.wait()
        with contextlib.suppress(OSError):
            for path in self.own.iterdir():
                if path.name not in self._linked:
                    self._linked.add(path.name)
                    place = self.shared / f"{_checksum(path)}-{path.name}"
                    # A copy, complete before it has its name: TensorFlow may read this one again.
                    scratch = self.own / f".{path.name}"
                    shutil.copyfile(path, scratch)
                    os.replace(scratch, place)
            _shrink(self.store)

    def close(self) -> None:
        """Keeps what is new, and removes the folder."""
        self.keep()
        if os.getpid() == self.process:
            shutil.rmtree(self.own, ignore_errors=True)


def _link(source: Path, place: Path) -> None:
    try:
        os.link(source, place)
    except OSError:  # a file system without links
        shutil.copyfile(source, place)


def _private(cache: Path) -> Path | None:
    """The store, created if missing; None if others could put programs into it."""
    store = cache / "keras_bert" / "compiled"
    cache.mkdir(parents=True, exist_ok=True)
    for folder in (store.parent, store):
        folder.mkdir(mode=0o700, exist_ok=True)
        found = os.lstat(folder)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
            logger.warning(
                "compiled programs are not kept: %s: expected a folder of this user in which no "
                "one else can write. %s=0 turns this off",
                folder,
                SWITCH,
            )
            return None
    return store


def _key(cards: list[str], flags: str) -> str:
    parts = [platform.machine(), flags, *sorted(set(cards))]
    if len(parts) > 4:  # cards of several kinds: it matters which of them this process sees
        parts.append(os.environ.get("CUDA_VISIBLE_DEVICES", ""))
    for name in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            parts.append(f"{name}={importlib.metadata.version(name)}")
    parts += [f"{name}={os.environ.get(name, '')}" for name in _VARIABLES]
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=12).hexdigest()


def _cards() -> list[str]:
    """Names of this machine's NVIDIA cards, and the version of their driver."""
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return []
    if library.nvmlInit_v2() != 0:
        return []
    text, count, found = ctypes.create_string_buffer(256), ctypes.c_uint(), []
    library.nvmlDeviceGetCount_v2(ctypes.byref(count))
    for i in range(count.value):
        handle = ctypes.c_void_p()
        library.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(handle))
        library.nvmlDeviceGetName(handle, text, len(text))
        found.append(text.value.decode(errors="replace"))
    if found:
        library.nvmlSystemGetDriverVersion(text, len(text))
        found.append(f"driver {text.value.decode(errors='replace')}")
    library.nvmlShutdown()
    return found


def _checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()[:32]


def _shrink(store: Path) -> None:
    files = [(path.stat(), path) for path in store.glob("[!.]*/*")]
    size = sum(about.st_size for about, _ in files)
    for about, path in sorted(files, key=lambda pair: pair[0].st_mtime):
        if size <= LIMIT:
            return
        path.unlink(missing_ok=True)
        size -= about.st_size


def _remove_left_behind(store: Path) -> None:
    """Removes the folders of processes that were killed."""
    for folder in store.glob(".process-*"):
        host, _, process = folder.name.removeprefix(".process-").rpartition("-")[0].rpartition("-")
        with contextlib.suppress(OSError):
            if host == platform.node() and process.isdigit():
                gone = not _runs(int(process))
            else:
                gone = time.time() - folder.stat().st_mtime > LEFT_BEHIND
            if gone:
                shutil.rmtree(folder, ignore_errors=True)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
