"""Exports whose network runs in ONNX Runtime: `network.onnx` between two functions of TensorFlow.

Where a task has one row for each text and its answers depend on the outputs alone, `answers.onnx`
computes them, and ASCII texts become rows in Python: a call then needs no TensorFlow, whose threads
take longer to wake up than a short text takes to compute. Other texts take the functions below.

The SavedModel beside it has, for each signature NAME of the contract, `NAME/rows`, from the inputs
to rows of ids; `NAME/answers`, from the network's outputs, these rows and the inputs to the
answers; and perhaps `NAME/kept`, which reduces the outputs of some rows to what `answers` reads.
"""

import json
import os
import tempfile
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from keras_bert.arguments import needed
from keras_bert.data.rows import parse_json
from keras_bert.serving.network import BY_TOKEN
from keras_bert.serving.onnx_graph import fused, quantized
from keras_bert.serving.other_runtimes import OPSET, to_onnx
from keras_bert.serving.signatures import Signature, check_columns, token_signature
from keras_bert.text.ascii_rows import AsciiRows

NETWORK = "network.onnx"
ANSWERS = "answers.onnx"
VOCABULARY = "assets.extra/vocabulary.json"
# Texts on which rows made in Python are compared with those of the graph, when a task is exported.
PROBES = ("", "A b, c!", "don't\x00 [MASK] it's 3.50\t(x)\n", "Zyx" * 70, "harbour ice " * 600)
WEIGHTS = ("float32", "int8")


class OnnxNetwork:
    """The network of a task in ONNX Runtime: any number of rows of any length.

    Rows of similar length are run together, each chunk truncated to its longest row. A chunk runs
    on one core, and on each core one at a time: the products of short texts are too small to
    divide. A product takes as many threads as TensorFlow's setting of intra-op threads, or 1.

    Args:
        file: the ONNX model.
        by_token: whether axis 1 of the outputs is that of tokens.
        rows: number of rows run at once.

    Raises:
        ImportError: if onnxruntime is not installed.
    """

    def __init__(self, file: str | Path, by_token: bool, rows: int):
        with needed(str(file), "ONNX Runtime", "'keras3-bert[runtimes]'"):
            import onnxruntime
        import tensorflow as tf

        self._by_token, self._rows = by_token, rows
        options = onnxruntime.SessionOptions()
        threads = tf.config.threading.get_intra_op_parallelism_threads() or 1
        affinity = getattr(os, "sched_getaffinity", None)
        cores = len(affinity(0)) if affinity else os.cpu_count() or 1
        self._pool = ThreadPoolExecutor(max(1, cores // threads), "onnx")
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            str(file), options, providers=["CPUExecutionProvider"]
        )
        self._inputs = [value.name for value in self._session.get_inputs()]
        self.outputs = [value.name for value in self._session.get_outputs()]

    def __call__(self, ids: dict[str, np.ndarray], after: Callable | None = None) -> list:
        """Computes the outputs for rows of ids.

        Args:
            ids: int32 by name, [R, T], [B, C, T] or, for inputs that are not by token, [R, P].
            after: reduces the outputs of some rows, arrays in the order of `outputs`, to the part
                to keep.

        Returns:
            Arrays [R, ...], or [B, C, ...]; axis 1 of outputs by token is padded with zeros to T.
        """
        mask = ids["padding_mask"]
        several = mask.shape[:2] if mask.ndim == 3 else None
        if several:
            ids = {name: value.reshape(-1, value.shape[-1]) for name, value in ids.items()}
            mask = ids["padding_mask"]
        count, length = mask.shape
        by_token = self._by_token or several
        if 1 <= count <= self._rows and not by_token and after is None and mask[:, -1].any():
            return self._session.run(None, {name: ids[name] for name in self._inputs})
        if not count:  # a row of padding: an empty batch has an empty answer
            ids = {name: np.zeros((1, *v.shape[1:]), v.dtype) for name, v in ids.items()}
            mask = ids["padding_mask"]
        used = np.where(mask != 0, np.arange(1, length + 1), 0).max(axis=1, initial=0)
        order = np.argsort(used, kind="stable")
        chunks = [order[i : i + self._rows] for i in range(0, len(order), self._rows)]
        run = self._pool.map if len(chunks) > 1 else map
        # The longest first, so that no core is left with a long one at the end.
        parts = list(run(lambda chunk: self._part(ids, chunk, used, after), chunks[::-1]))[::-1]
        if self._by_token:
            parts = [[_padded(value, length) for value in part] for part in parts]
        found = [np.concatenate(values) for values in zip(*parts, strict=True)]
        back = np.argsort(order)[:count]
        found = [value[back] for value in found]
        return [value.reshape(*several, *value.shape[1:]) for value in found] if several else found

    def _part(self, ids, chosen, used, after):
        width = max(int(used[chosen[-1]]), 1)
        batch = {name: ids[name][chosen] for name in self._inputs}
        for name in BY_TOKEN:
            if name in batch:
                batch[name] = batch[name][:, :width]
        found = self._session.run(None, batch)
        return found if after is None else after(found)


def _padded(value: np.ndarray, length: int) -> np.ndarray:
    return np.pad(value, [(0, 0), (0, length - value.shape[1])] + [(0, 0)] * (value.ndim - 2))


class Direct:
    """Rows of ASCII texts, and answers by an ONNX model from outputs, without TensorFlow."""

    def __init__(self, rows: AsciiRows, answers: str | Path):
        import onnxruntime

        self.rows = rows
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            str(answers), options, providers=["CPUExecutionProvider"]
        )
        self._input = self._session.get_inputs()[0].name
        self._names = [value.name for value in self._session.get_outputs()]

    def answers(self, outputs: np.ndarray) -> dict[str, np.ndarray]:
        """The answers by name; strings as bytes."""
        found = dict(zip(self._names, self._session.run(None, {self._input: outputs}), strict=True))
        for name, value in found.items():
            if value.dtype.kind == "O":
                texts = [text.encode() for text in value.flat]
                found[name] = np.array(texts, object).reshape(value.shape)
        return found


class OnnxFunction:
    """One signature: rows, network, answers; by the SavedModel's functions or without them."""

    def __init__(
        self,
        name: str,
        functions: dict[str, Callable],
        network: OnnxNetwork,
        direct: Direct | None = None,
    ):
        self._rows, self._answers = functions[f"{name}/rows"], functions[f"{name}/answers"]
        self._kept, self._network = functions.get(f"{name}/kept"), network
        self._direct = direct

    def arrays(self, inputs: dict[str, Any]) -> dict[str, np.ndarray] | None:
        """Calls it with lists or arrays by name; None if that needs TensorFlow."""
        if self._direct is None:
            return None
        texts = inputs["text"]
        texts = texts.tolist() if isinstance(texts, np.ndarray) else texts
        if not isinstance(texts, list) or not all(isinstance(t, str | bytes) for t in texts):
            return None
        ids = self._direct.rows(texts)
        return None if ids is None else self._direct.answers(self._network(ids)[0])

    def __call__(self, **inputs) -> dict[str, Any]:
        """Calls it with tensors by name; returns tensors by name."""
        import tensorflow as tf

        rows = self._rows(**inputs)
        ids = {name[4:]: v.numpy() for name, v in rows.items() if name.startswith("ids_")}
        found = self._network(ids, self._reduced if self._kept else None)
        outputs = {f"output_{i}": tf.constant(value) for i, value in enumerate(found)}
        about = {name: value for name, value in rows.items() if name.startswith("row_")}
        return self._answers(**outputs, **about, **inputs)

    def _reduced(self, outputs: list[np.ndarray]) -> list[np.ndarray]:
        import tensorflow as tf

        found = self._kept(**{f"output_{i}": tf.constant(v) for i, v in enumerate(outputs)})
        return [found[f"output_{i}"].numpy() for i in range(len(found))]


def write_network(task, path: Path, weights: str) -> dict[str, int]:
    """Writes the network of a task for ONNX Runtime on a CPU; gives the counts of `fused`.

    Args:
        task: the task.
        path: the file to write.
        weights: "float32", or "int8" for int8 arithmetic; see `quantized`.

    Raises:
        ImportError: if a package of the extra `runtimes` is not installed.
        ValueError: if `weights` is neither, or as `to_onnx`.
    """
    if weights not in WEIGHTS:
        raise ValueError(f"weights={weights!r}: expected {' or '.join(WEIGHTS)} for format='onnx'")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / NETWORK
        to_onnx(task, file)  # which says what to install
        import onnx

        model = onnx.load(file)
    counts = fused(model)
    if weights == "int8":
        quantized(model, path)
    else:
        onnx.save(model, str(path))
    return counts


def split_functions(task, answers: dict[str, Any], network: OnnxNetwork) -> dict[str, Any]:
    """Traces the functions before and after the network, of each `Answer` of a task and `tokens`.

    They are concrete functions by name, as `OnnxFunction` takes them.
    """
    found = {}
    for name, answer in answers.items():
        found |= _split(task, name, answer, network)
    # The checks of `tokens`, whose answers are the outputs themselves.
    ids = token_signature(task, SimpleNamespace(call=lambda ids: ids))
    return found | _split_tokens(ids, task, network)


def _split(task, name: str, answer, network: OnnxNetwork) -> dict[str, Any]:
    import tensorflow as tf

    structure = {}  # of the rows, known when they are traced
    specs = [column.spec(key) for key, column in answer.asks.items()]

    def rows(*columns):
        made = answer.rows(*check_columns(answer.asks, columns))
        structure["rows"] = made
        leaves = _leaves(made)
        ids = {f"ids_{key}": value for key, value in made.ids.items()}
        return ids | {f"row_{i}": leaf for i, leaf in enumerate(leaves)}

    first = tf.function(rows, specs, autograph=False).get_concrete_function()
    several = structure["rows"].ids["padding_mask"].shape.rank == 3
    outputs = _output_specs(task, network, several)
    kept, reduced = None, outputs
    if answer.kept is not None:

        def reduce(*values):
            made = answer.kept(_structured(task, network, values))
            structure["kept"] = made
            return {f"output_{i}": v for i, v in enumerate(_leaves(made))}

        kept = tf.function(reduce, outputs, autograph=False).get_concrete_function()
        made = kept.structured_outputs
        reduced = [
            tf.TensorSpec(made[f"output_{i}"].shape, made[f"output_{i}"].dtype, f"output_{i}")
            for i in range(len(made))
        ]
    leaves = [
        tf.TensorSpec(leaf.shape, leaf.dtype, f"row_{i}")
        for i, leaf in enumerate(_leaves(structure["rows"]))
    ]

    def answers(*values):
        values = list(values)
        columns = values[len(reduced) + len(leaves) :]
        found = values[: len(reduced)]
        if kept is None:
            found = _structured(task, network, found)
        else:
            found = _packed(structure["kept"], found)
        made = _packed(structure["rows"], values[len(reduced) : len(reduced) + len(leaves)])
        return answer.answers(found, made, *columns)

    last = tf.function(answers, [*reduced, *leaves, *specs], autograph=False)
    found = {f"{name}/rows": first, f"{name}/answers": last.get_concrete_function()}
    return found if kept is None else found | {f"{name}/kept": kept}


def _split_tokens(signature: Signature, task, network: OnnxNetwork) -> dict[str, Any]:
    import tensorflow as tf

    names = [spec.name for spec in signature.inputs]

    def rows(*values):
        checked = signature.function(*values)
        return {f"ids_{name}": checked[name] for name in names}

    def answers(*values):
        return dict(zip(network.outputs, values[: len(network.outputs)], strict=True))

    outputs = _output_specs(task, network, False)
    return {
        "tokens/rows": tf.function(rows, signature.inputs, autograph=False).get_concrete_function(),
        "tokens/answers": tf.function(
            answers, [*outputs, *signature.inputs], autograph=False
        ).get_concrete_function(),
    }


def _output_specs(task, network: OnnxNetwork, several: bool) -> list:
    import tensorflow as tf

    by_name = task.output if isinstance(task.output, dict) else {network.outputs[0]: task.output}
    free = [None, None] if several else [None]
    return [
        tf.TensorSpec([*free, *by_name[name].shape[1:]], by_name[name].dtype, f"output_{i}")
        for i, name in enumerate(network.outputs)
    ]


def _structured(task, network: OnnxNetwork, values):
    """The outputs as the task's call returns them."""
    if isinstance(task.output, dict):
        return dict(zip(network.outputs, values, strict=True))
    return values[0]


def _leaves(structure) -> list:
    """The tensors of a structure; ragged tensors as values and splits; None is none."""
    import tensorflow as tf

    flat = tf.nest.flatten(structure, expand_composites=True)
    return [tf.convert_to_tensor(leaf) for leaf in flat if leaf is not None]


def _packed(structure, leaves: list):
    import tensorflow as tf

    given = iter(leaves)
    flat = tf.nest.flatten(structure, expand_composites=True)
    flat = [None if leaf is None else next(given) for leaf in flat]
    return tf.nest.pack_sequence_as(structure, flat, expand_composites=True)


def write_direct(
    task, answers: dict[str, Any], functions: dict[str, Callable], folder: Path
) -> dict[str, Any] | None:
    """Writes what `serving_default` needs to be answered without TensorFlow, if that is possible.

    It is if the answers depend on the outputs alone and the rows made in Python equal those of the
    graph. Returns the arguments of `AsciiRows` without the vocabulary, for the contract; or None.
    """
    import tensorflow as tf
    import tf2onnx

    answer, text = answers["serving_default"], task.preprocessor.tokenizer
    matched = text.special_tokens_in_text or text.added_tokens or text.exact_tokens
    if (
        task.answers_read_rows
        or list(answer.asks) != ["text"]
        or answer.kept is not None
        or text.splitting != "bert"
        or matched
    ):
        return None
    settings = {
        "lowercase": text.lowercase,
        "max_word_length": text.max_word_length,
        "sequence_length": task.preprocessor.sequence_length,
        "first": text.cls_token_id,
        "last": text.sep_token_id,
        "padding": text.pad_token_id,
    }
    vocabulary = text.get_vocabulary()
    ours = AsciiRows(vocabulary, **settings)([probe.encode() for probe in PROBES])
    graph = functions["serving_default/rows"](text=tf.constant(PROBES))
    if graph.keys() - {f"ids_{name}" for name in ours} != {f"row_{i}" for i in range(len(ours))}:
        return None
    for name, value in ours.items():
        theirs = graph[f"ids_{name}"].numpy()
        room = theirs.shape[-1] - value.shape[-1]
        filler = text.pad_token_id if name == "token_ids" else 0
        if theirs.ndim != 2 or room < 0:
            return None
        padded = np.pad(value, [(0, 0), (0, room)], constant_values=filler)
        if not np.array_equal(padded, theirs):
            return None
    spec = tf.TensorSpec([None, *task.output.shape[1:]], task.output.dtype, "outputs")
    no_text = tf.zeros([0], tf.string)
    function = tf.function(
        lambda outputs: answer.answers(outputs, SimpleNamespace(example=None), no_text),
        [spec],
        autograph=False,
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "In the future `np.object`", FutureWarning)
        made, _ = tf2onnx.convert.from_function(function, [spec], opset=OPSET)
    names = sorted(functions["serving_default/answers"].structured_outputs)
    for value, name in zip(made.graph.output, names, strict=True):
        _rename(made.graph, value.name, name)
    (folder / ANSWERS).write_bytes(made.SerializeToString())
    (folder / VOCABULARY).parent.mkdir(exist_ok=True)
    (folder / VOCABULARY).write_text(json.dumps(vocabulary), encoding="utf-8")
    return settings


def _rename(graph, old: str, new: str) -> None:
    """Renames an output of an ONNX graph."""
    import onnx

    if old == new:
        return
    graph.node.append(onnx.helper.make_node("Identity", [old], [new]))
    for value in graph.output:
        if value.name == old:
            value.name = new


def _load_direct(folder: Path, kind: dict[str, Any]) -> dict[str, Direct]:
    settings = kind.get("ascii_rows")
    if settings is None:
        return {}
    vocabulary = parse_json((folder / VOCABULARY).read_text(encoding="utf-8"), folder / VOCABULARY)
    rows = AsciiRows(vocabulary, **settings)
    return {"serving_default": Direct(rows, folder / ANSWERS)}


def in_onnx(contract: dict[str, Any]) -> bool:
    """Whether the network of an export with this contract runs in ONNX Runtime."""
    return contract.get("onnx") is not None


def load_functions(folder: str | Path, contract: dict[str, Any]) -> dict[str, Callable]:
    """Loads an export of either kind, as functions by signature.

    They map lists or arrays by name to arrays by name; strings are bytes.

    Raises:
        ImportError: if it needs TensorFlow Text or ONNX Runtime, which is not installed.
        ValueError: if a signature of the contract is missing.
    """
    import tensorflow as tf

    if contract.get("text_ops"):
        with needed(str(folder), "TensorFlow Text", "tensorflow-text"):
            import tensorflow_text  # noqa: F401
    model = tf.saved_model.load(str(folder))
    functions = dict(model.signatures)
    if in_onnx(contract):
        kind = contract["onnx"]
        network = OnnxNetwork(Path(folder) / NETWORK, kind["by_token"], kind["rows"])
        split = [name.removesuffix("/rows") for name in functions if name.endswith("/rows")]
        direct = _load_direct(Path(folder), kind)
        functions |= {
            name: OnnxFunction(name, functions, network, direct.get(name)) for name in split
        }
    if missing := contract["signatures"].keys() - functions.keys():
        raise ValueError(f"the graph lacks the signatures {', '.join(sorted(missing))}")
    return {
        name: partial(_called, model, functions[name], spec["inputs"])
        for name, spec in contract["signatures"].items()
    }


def _called(model, function: Callable, specs: dict, inputs: dict[str, Any]) -> dict:
    """Calls a function; `model`, which owns its variables, lives as long as it does."""
    if isinstance(function, OnnxFunction):
        found = function.arrays(inputs)
        if found is not None:
            return found
    return called(function, specs, inputs)


def called(function: Callable, specs: dict, inputs: dict[str, Any]) -> dict[str, np.ndarray]:
    """Calls a function of tensors with lists or arrays by name; returns arrays by name."""
    import tensorflow as tf

    tensors = {name: tf.constant(inputs[name], spec["dtype"]) for name, spec in specs.items()}
    return {name: value.numpy() for name, value in function(**tensors).items()}
