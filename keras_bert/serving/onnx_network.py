"""Exports whose network runs in ONNX Runtime: `network.onnx` between two functions of TensorFlow.

The SavedModel beside it has, for each signature NAME of the contract, `NAME/rows`, from the inputs
to rows of ids; `NAME/answers`, from the network's outputs, these rows and the inputs to the
answers; and perhaps `NAME/kept`, which reduces the outputs of some rows to what `answers` reads.
"""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from keras_bert.serving.network import BY_TOKEN
from keras_bert.serving.onnx_graph import fused, quantized
from keras_bert.serving.other_runtimes import to_onnx
from keras_bert.serving.signatures import Signature, check_columns, token_signature

NETWORK = "network.onnx"
WEIGHTS = ("float32", "int8")


class OnnxNetwork:
    """The network of a task in ONNX Runtime: any number of rows of any length.

    Rows of similar length are run together, each chunk truncated to its longest row.

    Args:
        file: the ONNX model.
        by_token: whether axis 1 of the outputs is that of tokens.
        rows: number of rows run at once.
        threads: threads of a product; by default TensorFlow's setting, or all cores of the process.

    Raises:
        ImportError: if onnxruntime is not installed.
    """

    def __init__(self, file: str | Path, by_token: bool, rows: int, threads: int | None = None):
        try:
            import onnxruntime
        except ImportError as error:
            raise ImportError(
                f"{file} runs in ONNX Runtime: `pip install 'keras3-bert[runtimes]'`"
            ) from error
        import tensorflow as tf

        self._by_token, self._rows = by_token, rows
        options = onnxruntime.SessionOptions()
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
        threads = threads or tf.config.threading.get_intra_op_parallelism_threads() or cores
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
        if not count:  # a row of padding: an empty batch has an empty answer
            ids = {name: np.zeros((1, *v.shape[1:]), v.dtype) for name, v in ids.items()}
            mask = ids["padding_mask"]
        used = np.where(mask != 0, np.arange(1, length + 1), 0).max(axis=1, initial=0)
        order = np.argsort(used, kind="stable")
        parts = [self._part(ids, order[i : i + self._rows], used, after)
                 for i in range(0, len(order), self._rows)]  # fmt: skip
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


class OnnxFunction:
    """One signature: rows, network, answers.

    Args:
        name: of the signature.
        functions: the functions of the SavedModel by name.
        network: the network.
    """

    def __init__(self, name: str, functions: dict[str, Callable], network: OnnxNetwork):
        self._rows, self._answers = functions[f"{name}/rows"], functions[f"{name}/answers"]
        self._kept, self._network = functions.get(f"{name}/kept"), network

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
    """Writes the network of a task for ONNX Runtime on a CPU.

    Args:
        task: the task.
        path: the file to write.
        weights: "float32", or "int8" for int8 arithmetic; see `quantized`.

    Returns:
        The number of fused ops by type, see `fused`.

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
    """Traces the functions before and after the network.

    Args:
        task: the task.
        answers: its `Answer`s by name.
        network: its network in ONNX Runtime.

    Returns:
        Concrete functions by name, as `OnnxFunction` takes them, including those of `tokens`.
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


def load_functions(folder: str | Path, contract: dict[str, Any]) -> tuple[Any, dict[str, Callable]]:
    """Loads an export of either kind.

    Args:
        folder: the export.
        contract: its contract.

    Returns:
        (the SavedModel, which owns the variables and has to be kept; functions by signature, from
        tensors by name to tensors by name).

    Raises:
        ImportError: if it needs TensorFlow Text or ONNX Runtime, which is not installed.
        ValueError: if a signature of the contract is missing.
    """
    import tensorflow as tf

    if contract.get("text_ops"):
        try:
            import tensorflow_text  # noqa: F401
        except ImportError as error:
            raise ImportError(
                f"{folder} runs ops of TensorFlow Text: `pip install tensorflow-text`"
            ) from error
    model = tf.saved_model.load(str(folder))
    functions, kind = dict(model.signatures), contract.get("onnx")
    if kind is not None:
        network = OnnxNetwork(Path(folder) / NETWORK, kind["by_token"], kind["rows"])
        split = [name.removesuffix("/rows") for name in functions if name.endswith("/rows")]
        functions |= {name: OnnxFunction(name, functions, network) for name in split}
    if missing := contract["signatures"].keys() - functions.keys():
        raise ValueError(f"the graph lacks the signatures {', '.join(sorted(missing))}")
    return model, {name: functions[name] for name in contract["signatures"]}
