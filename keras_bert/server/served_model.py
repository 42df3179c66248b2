"""Models to serve: where their versions lie, and the versions that are loaded."""

import asyncio
import contextlib
import gc
import logging
import os
import re
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert.data.rows import parse_json
from keras_bert.server.batching import Batcher
from keras_bert.server.rest import DEFAULT, Limits, RequestError, array_of, not_found
from keras_bert.serving.export_contract import read_contract
from keras_bert.serving.onnx_network import in_onnx, load_functions

LABELS = "version_labels.json"  # in a base folder: {"stable": 1, "canary": 2}
SAVED_MODEL = "saved_model.pb"
_LARGEST = 2**63 - 1  # a version is an int64
_BATCHES = 4  # at once on a CPU; TensorFlow divides each between more cores
EXPLAINING = 8  # explanations that wait or are computed, of a model
MAPS = 24 << 20  # attention probabilities that one answer holds, of a byte each
log = logging.getLogger("keras_bert.server")


def base_versions(folder: Path) -> dict[int, Path]:
    """Folders by number, ascending: subfolders whose names are numbers, as TensorFlow Serving's."""
    found = {version_of(path.name): path for path in folder.iterdir() if path.is_dir()}
    return dict(sorted((number, path) for number, path in found.items() if number is not None))


def version_of(name: str) -> int | None:
    """The version that a folder of that name is of, or None."""
    numeric = name.isascii() and name.isdecimal() and int(name) <= _LARGEST
    return int(name) if numeric else None


@dataclass
class Place:
    """Where the versions of a model are.

    Attributes:
        base: a base folder, which is watched for new versions; or None.
        export: one export, whose version is `version`; or None.
        preset: a preset to export on start; or None.
        task: the preset whose network is looked into to explain answers, or None.
        version: the number of `export`, or of the export of `preset`.
        metrics: the scores of the run, or None.
    """

    base: Path | None = None
    export: Path | None = None
    preset: str | None = None
    task: str | None = None
    version: int = 1
    metrics: dict[str, Any] | None = None


def find_place(source: str | Path) -> Place:
    """Finds out what a user wants served.

    Args:
        source: an export; a base folder with an export in each numeric subfolder; a run folder,
            which has `preset/` and perhaps `export/`; or a preset, by folder, name or address, as
            `from_preset` takes it.

    Raises:
        FileNotFoundError: if it is none of these.
    """
    folder = Path(source)
    if (folder / SAVED_MODEL).is_file():
        read_contract(folder)
        version = version_of(folder.resolve().name)
        return Place(export=folder, version=1 if version is None else version)
    if folder.is_dir() and base_versions(folder):
        return Place(base=folder)
    if (folder / "preset").is_dir():
        has_export = (folder / "export").is_dir()
        place = find_place(folder / ("export" if has_export else "preset"))
        if place.base is None:  # where versions come and go, they may not be the preset's
            place.task = str(folder / "preset")
        metrics = folder / "metrics.json"
        if metrics.is_file():
            place.metrics = _finite(parse_json(metrics.read_text(encoding="utf-8"), metrics))
            if isinstance(place.metrics, dict):
                place.metrics.pop("epochs", None)  # the page shows the run, not its history
        return place
    if folder.is_dir() and not any((folder / n).exists() for n in ("config.json", "modules.json")):
        if not list(folder.glob("*.ckpt*")) and not (folder / "bert_config.json").exists():
            raise FileNotFoundError(
                f"model {str(source)!r}: expected an export, a folder with an export in each "
                "numeric subfolder, a run folder with preset/, or a preset"
            )
    return Place(preset=str(source), task=str(source))


def _finite(value: Any) -> Any:
    """A value of JSON with null for NaN and infinity, which a perplexity may be."""
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def default_name(source: str | Path) -> str:
    """The name of a model for which the user gave none: that of its folder."""
    path = Path(source)
    path = path.resolve() if path.exists() else path
    if version_of(path.name) is not None and (path / SAVED_MODEL).is_file():
        path = path.parent
    return re.sub(r"[^\w.-]+", "-", path.name) or "model"


class Export:
    """A loaded export.

    Attributes:
        contract: its contract.
        signature_defs: `signature_def` of TensorFlow Serving's metadata, by name.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if the contract is damaged or does not fit the graph.
    """

    def __init__(self, folder: Path):
        self.contract = read_contract(folder)
        self.signature_defs = _signature_defs(self.contract["signatures"])
        self._functions = load_functions(folder, self.contract)
        for example in self.contract.get("examples", []):
            self._warm_up(example)

    def _warm_up(self, example: dict) -> None:
        """Asks an example of the contract, which traces and allocates before clients wait."""
        request = example["request"]
        name = request.get("signature_name", DEFAULT)
        specs = self.contract["signatures"][name]["inputs"]
        limits = Limits(rows=1 << 30, text=1 << 30)
        self(name, {n: array_of(request["inputs"][n], specs[n], n, limits) for n in specs})

    def __call__(self, signature: str, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Calls a signature with arrays by name; returns such, in the order of the contract.

        Raises:
            RequestError: if the graph refuses the inputs.
        """
        import tensorflow as tf

        specs = self.contract["signatures"][signature]
        try:
            found = self._functions[signature](inputs)
        except tf.errors.InvalidArgumentError as error:
            raise RequestError(400, refusal(str(error), specs["inputs"])) from error
        return {name: found[name] for name in specs["outputs"]}


def _signature_defs(signatures: dict[str, dict]) -> dict[str, dict]:
    """`signature_def` of TensorFlow Serving's metadata, by name, from a contract."""
    from google.protobuf.json_format import MessageToDict
    from tensorflow import as_dtype
    from tensorflow.core.protobuf import meta_graph_pb2

    found = {}
    for name, spec in sorted(signatures.items()):
        definition = meta_graph_pb2.SignatureDef(method_name="tensorflow/serving/predict")
        for side, tensors in ((definition.inputs, "inputs"), (definition.outputs, "outputs")):
            for key, value in spec[tensors].items():
                side[key].name = f"{name}_{key}:0" if tensors == "inputs" else key
                side[key].dtype = as_dtype(value["dtype"]).as_datatype_enum
                for size in value["shape"]:
                    side[key].tensor_shape.dim.add(size=-1 if size is None else size)
        found[name] = MessageToDict(
            definition,
            preserving_proto_field_name=True,
            always_print_fields_with_no_presence=True,
        )
    return found


def refusal(message: str, names: dict[str, Any]) -> str:
    """The sentence of a graph's own check in TensorFlow's error; see `serving.signatures`.

    The error holds nodes, stacks and paths too. A client may see what begins with an input of
    these names, or names one.
    """
    message = message.replace("\\'", "'")  # TensorFlow escapes strings
    for pattern in (
        r"assertion failed: \[(inputs? '[^\]]*?)\]((?: \[[^\]\n]*\])*)",
        r"assertion failed: \[([a-z_]+ (?:lie|have|are)[^\]]*?)\]()",
        r"assertion failed: \[((?:spans overlap|entities do not fit) [^\]]*?)\]( \[\d+\])?",
        rf"((?:{'|'.join(map(re.escape, names))}) are longer than [^\n\[]*?)()[\n\[]",
    ):
        match = re.search(pattern, message)
        if match:
            return f"{match[1]}{match[2] or ''}".replace("[", "").replace("]", "").strip()
    return f"inputs {', '.join(names)}: the model refused them"


@dataclass(eq=False)
class Version:
    """One version of a model.

    Attributes:
        number: its number.
        state: as TensorFlow Serving's: "LOADING", "AVAILABLE", "UNLOADING" or "END".
        error: why it is not available, without a path; or "".
        export: the loaded export, while there is one.
        batcher: its queue, while there is one.
        stamp: of the files that were tried.
    """

    number: int
    state: str = "LOADING"
    error: str = ""
    export: Export | None = None
    batcher: Batcher | None = None
    stamp: tuple = ()

    def status(self) -> dict[str, Any]:
        """The entry of TensorFlow Serving's model status."""
        code = "UNKNOWN" if self.error else "OK"
        return {
            "version": str(self.number),
            "state": self.state,
            "status": {"error_code": code, "error_message": self.error},
        }


@dataclass
class Settings:
    """Settings of batching and of the watch over new versions.

    Attributes:
        max_batch_size, max_wait, max_queue: see `Batcher`.
        threads: see `Batcher`; of each version. None for what `chosen_threads` says.
        poll: seconds between two looks into a base folder.
    """

    max_batch_size: int
    max_wait: float
    max_queue: int
    threads: int | None
    poll: float


@dataclass(eq=False)
class ServedModel:
    """A model with its versions.

    The newest version is served, and those that have a label in `version_labels.json` of the base
    folder. A new one is loaded and warmed up beside the old one, then takes its place; requests
    that the old one has are answered by it.

    Attributes:
        ran: called with the number of rows and the seconds of each batch.
        versions: all that were seen, by number.
        labels: numbers by label.
        looks: how many times the place was looked at.
    """

    name: str
    place: Place
    settings: Settings
    ran: Callable[[int, float], None] = lambda rows, seconds: None
    versions: dict[int, Version] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    looks: int = 0

    def __post_init__(self):
        # Threads start when they are needed: no more than the versions' batches take.
        self._executor = ThreadPoolExecutor(self.settings.threads or _BATCHES, f"model-{self.name}")
        self._loader = ThreadPoolExecutor(1, f"load-{self.name}")
        self._explainer = ThreadPoolExecutor(1, f"explain-{self.name}")
        self._explaining, self._task = 0, None
        self._scratch: tempfile.TemporaryDirectory | None = None
        self._tasks: set[asyncio.Task] = set()

    # === Requests ===

    def available(self) -> list[Version]:
        """Versions that answer, the newest first."""
        found = [v for v in self.versions.values() if v.state == "AVAILABLE"]
        return sorted(found, key=lambda version: -version.number)

    def version(self, number: str | None, label: str | None) -> Version:
        """The version that a request is for, by the number or label in its path.

        Raises:
            RequestError: if there is no such version.
        """
        if label is not None:
            if label not in self.labels:
                raise RequestError(400, f"Unrecognized servable version label: {label:.100}")
            number = str(self.labels[label])
        found = self.available()
        for version in found:
            if number is None or version.number == int(number[:20]):
                return version
        raise not_found(self.name, number)

    @property
    def explains(self) -> bool:
        """Whether answers can be explained: an export has no gradients, a preset has."""
        return self.place.task is not None

    async def look(self, find: Callable[[Any], Any]) -> Any:
        """What `find` finds in the model's task, which is loaded for the first look; one at a time.

        Raises:
            RequestError: if the model is an export alone, the example is wrong, or too many wait.
        """
        if not self.explains:
            raise RequestError(
                400, f"model {self.name}: served from an export; serve its preset to explain it"
            )
        if self._explaining >= EXPLAINING:
            raise RequestError(
                503, f"model {self.name}: too many explanations wait", {"Retry-After": "5"}
            )
        self._explaining += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._explainer, self._found, find)
        finally:
            self._explaining -= 1

    def _found(self, find: Callable[[Any], Any]) -> Any:
        if self._task is None:
            self._task = load_task(self.place.task)
        try:
            return find(self._task)
        except (TypeError, ValueError) as error:
            raise RequestError(400, str(error)) from error

    # === Loading ===

    async def load(self) -> None:
        """Loads the versions for the first time.

        Raises:
            RuntimeError: if none could be loaded; its cause is the reason.
        """
        loop = asyncio.get_running_loop()
        if self.place.preset is not None:
            self.place.export = await loop.run_in_executor(self._loader, self._exported)
        await self.refresh()
        if not self.available():
            raise RuntimeError(
                f"model {self.name!r}: no version could be loaded: "
                + "; ".join(v.error for v in self.versions.values())
            )

    async def watch(self) -> None:
        """Looks for new versions until it is cancelled."""
        said = ""
        while self.place.base is not None:
            await asyncio.sleep(self.settings.poll)
            try:
                await self.refresh()
                said = ""
            except (OSError, ValueError) as error:
                if said != str(error):  # once, not at every look
                    log.error("model %s: %s", self.name, error)
                said = str(error)

    async def refresh(self) -> None:
        """Loads versions that are new, and retires those that are no longer served.

        Raises:
            OSError: if the base folder cannot be read.
            ValueError: if the file of labels is wrong.
        """
        loop = asyncio.get_running_loop()
        found, labels = await loop.run_in_executor(self._loader, self._look)
        for number in {*labels.values()} & found.keys():
            await self._loaded(number, found[number])
        newest = None
        for number in sorted(found, reverse=True):
            if await self._loaded(number, found[number]):
                newest = number
                break
        serving = {version.number for version in self.available()}
        # A label whose new version is not available stays where it is.
        moved = {
            label: n if n in serving else self.labels.get(label) for label, n in labels.items()
        }
        self.labels = {label: n for label, n in moved.items() if n in serving}
        if newest is not None:
            for version in self.available():
                if version.number not in {newest, *self.labels.values()}:
                    self._retire(version)
        self.looks += 1

    def _look(self) -> tuple[dict[int, Path], dict[str, int]]:
        if self.place.base is None:
            return {self.place.version: self.place.export}, {}
        return base_versions(self.place.base), read_labels(self.place.base / LABELS)

    async def _loaded(self, number: int, folder: Path) -> bool:
        """Loads a version if it is not loaded; tells whether it is available now."""
        loop = asyncio.get_running_loop()
        version = self.versions.get(number)
        if version is not None and version.state == "AVAILABLE":
            return True
        stamp = await loop.run_in_executor(self._loader, stamp_of, folder)
        if version is not None and version.error and version.stamp == stamp:
            return False  # nothing has changed since it failed
        version = self.versions[number] = Version(number, stamp=stamp)
        log.info("model %s: loading version %d", self.name, number)
        try:
            export, threads = await loop.run_in_executor(self._loader, self._opened, folder)
        except Exception as error:
            log.error("model %s: version %d was not loaded: %s", self.name, number, error)
            version.state, version.error = "END", f"{type(error).__name__} while it was loaded"
            return False
        chosen = self.settings
        version.export = export
        version.batcher = Batcher(
            export,
            self._executor,
            threads,
            chosen.max_batch_size,
            chosen.max_wait,
            chosen.max_queue,
            self.ran,
            partial(divides, export.contract),
        )
        version.state = "AVAILABLE"
        log.info("model %s: version %d is available", self.name, number)
        return True

    def _opened(self, folder: Path) -> tuple[Export, int]:
        """Loads an export, after the number of its threads, which TensorFlow takes before it runs.

        Each version has its own: a new one may have the other form.
        """
        threads = chosen_threads(self.settings.threads, in_onnx(read_contract(folder)))
        return Export(folder), threads

    def _retire(self, version: Version) -> None:
        version.state = "UNLOADING"
        task = asyncio.create_task(self._drained(version))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _drained(self, version: Version) -> None:
        await version.batcher.drained()
        version.state, version.export, version.batcher = "END", None, None
        await asyncio.get_running_loop().run_in_executor(self._loader, gc.collect)
        log.info("model %s: version %d is unloaded", self.name, version.number)

    def _exported(self) -> Path:
        """Exports the preset into a folder that only this user can read."""
        self._scratch = tempfile.TemporaryDirectory(prefix="keras_bert-serve-")
        folder = Path(self._scratch.name) / "1"
        chosen_threads(self.settings.threads)  # before TensorFlow runs
        task = load_task(self.place.preset)
        log.info("exporting %s as %s", self.place.preset, type(task).__name__)
        task.export(folder, verbose=0)
        return folder

    async def close(self) -> None:
        """Drains and frees everything."""
        for version in self.available():
            await version.batcher.drained()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._executor.shutdown(wait=True)
        self._loader.shutdown(wait=True)
        self._explainer.shutdown(wait=True)
        if self._scratch is not None:
            self._scratch.cleanup()


def divides(contract: dict[str, Any], signature: str) -> bool:
    """Whether rows of a signature can be asked apart: no output is as wide as its widest row."""
    outputs = contract["signatures"][signature]["outputs"]
    return all(spec["shape"] and None not in spec["shape"][1:] for spec in outputs.values())


def chosen_threads(threads: int | None, onnx: bool = False) -> int:
    """The number of batches to run at the same time, and TensorFlow's threads to match.

    The products of short texts are too small to divide: two cores answer more texts with a batch
    each than with one batch after the other on both. `OnnxNetwork` divides the rows of a batch
    between the cores itself; a second batch would only wait for the same cores.
    """
    import tensorflow as tf

    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    if threads is None and onnx:
        return 1
    if threads is None:
        threads = 1 if tf.config.list_physical_devices("GPU") else min(cores, _BATCHES)
    threading = tf.config.threading
    unset = "TF_NUM_INTRAOP_THREADS" not in os.environ
    if threads == cores and unset and not threading.get_intra_op_parallelism_threads():
        with contextlib.suppress(RuntimeError):  # it runs, with threads of its own
            threading.set_intra_op_parallelism_threads(1)
    return threads


def attribution_of(columns: list[list], task):
    """The `Attribution` of the answer to an example: columns of one value."""
    from keras_bert.explain import attributions

    texts = columns[0] if len(columns) == 1 else tuple(columns)
    (found,) = attributions(task, texts)
    return found


def attention_of(columns: list[list], task):
    """The `AttentionMaps` between the words of an example: columns of one value.

    An embedder reads texts one by one; of several, this is the attention of the first.

    Raises:
        ValueError: if the maps are too large for an answer.
    """
    from keras_bert.explain import attention
    from keras_bert.tasks import BertTextEmbedder

    values = tuple(column[0] for column in columns)
    alone = len(values) == 1 or isinstance(task, BertTextEmbedder)
    found = attention(task, values[0] if alone else values).by_word()
    if found.maps.size > MAPS:
        layers, heads, words, _ = found.maps.shape
        most = int((MAPS / (layers * heads)) ** 0.5)
        raise ValueError(f"attention of {words} words: expected at most {most}; shorten the text")
    return found


def load_task(preset: str):
    """Loads the task of a preset or checkpoint, as `from_preset` takes it.

    Raises:
        ValueError: if the preset has no head, so that there is nothing to answer.
    """
    from keras_bert.checkpoints import open_checkpoint
    from keras_bert.checkpoints.sentence_transformers import read_embedding_settings
    from keras_bert.tasks import BertTextEmbedder
    from keras_bert.tasks.conversion import task_class

    embeds = read_embedding_settings(preset)
    task = BertTextEmbedder if embeds else task_class(open_checkpoint(preset))
    if task is None:
        raise ValueError(
            f"preset {preset!r} is a network without a head: expected the preset of a task, as "
            "save_to_preset writes it"
        )
    return task.from_preset(preset)


def read_labels(path: Path) -> dict[str, int]:
    """Reads the labels of versions, {label: number}; there may be no file.

    Raises:
        ValueError: with the file, if it is something else.
    """
    try:
        content = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    labels = parse_json(content, path)
    if not isinstance(labels, dict) or not all(type(n) is int for n in labels.values()):
        raise ValueError(f'{path}: expected {{"LABEL": VERSION, ...}} with whole numbers')
    return labels


def stamp_of(folder: Path) -> tuple:
    """Names, sizes and times of the files of an export, to see that they changed."""
    found = []
    with contextlib.suppress(OSError):
        for path in sorted(folder.rglob("*")):
            stat = path.stat()
            found.append((str(path.relative_to(folder)), stat.st_size, stat.st_mtime_ns))
    return tuple(found)
