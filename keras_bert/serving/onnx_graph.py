"""Rewrites of an ONNX graph for ONNX Runtime on a CPU: fused ops, int8 arithmetic."""

import tempfile
from pathlib import Path

import numpy as np


def fused(model):
    """Replaces layer normalizations and exact GELUs, written out in small ops, by one op each.

    ONNX Runtime fuses these expressions only in the forms in which PyTorch writes them. A part of
    the graph that has another form stays as it is.

    Args:
        model: an `onnx.ModelProto` from `to_onnx`; changed in place.

    Returns:
        The number of replaced expressions by op type.
    """
    import onnx

    graph = _Graph(model.graph)
    counts = {"LayerNormalization": 0, "Gelu": 0}
    for node in list(model.graph.node):
        if found := _normalization(graph, node):
            x, gamma, beta, epsilon = found
            graph.replace(
                node,
                onnx.helper.make_node(
                    "LayerNormalization", [x, gamma, beta], node.output, axis=-1, epsilon=epsilon
                ),
            )
            counts["LayerNormalization"] += 1
        elif x := _gelu(graph, node):
            graph.replace(
                node, onnx.helper.make_node("Gelu", [x], node.output, domain="com.microsoft")
            )
            counts["Gelu"] += 1
    graph.drop_unused()
    if counts["Gelu"]:
        model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    return counts


def quantized(model, path: Path) -> None:
    """Writes a model with int8 products: dynamic quantization by ONNX Runtime.

    Weights are int8 with one scale for each output unit; the inputs of a product are uint8 with one
    scale, computed at each call. Embeddings are stored as int8 too.

    Args:
        model: an `onnx.ModelProto`.
        path: the file to write.
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "float32.onnx"
        onnx.save(model, str(source))
        quantize_dynamic(
            source,
            path,
            op_types_to_quantize=["MatMul", "Gather"],
            weight_type=QuantType.QInt8,
            per_channel=True,
            # Types are not inferred behind ops of ONNX Runtime's own.
            extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT, "MatMulConstBOnly": True},
        )


class _Graph:
    """Look-ups in an ONNX graph."""

    def __init__(self, graph):
        self._graph = graph
        self._makers = {output: node for node in graph.node for output in node.output}
        self._constants = {tensor.name: tensor for tensor in graph.initializer}

    def maker(self, name: str, op_type: str):
        """The node that computes a value, if it is of this type."""
        node = self._makers.get(name)
        return node if node is not None and node.op_type == op_type else None

    def sides(self, node, op_type: str):
        """Both orders of (input made by `op_type`, other input) of a node of two inputs."""
        for mine, other in (node.input, tuple(node.input)[::-1]):
            if (found := self.maker(mine, op_type)) is not None:
                yield found, other

    def scalar(self, name: str) -> float | None:
        """The value of a constant of one number."""
        value = self.constant(name)
        return None if value is None or value.size != 1 else float(value.reshape(()))

    def constant(self, name: str):
        """The value of a constant, or None."""
        from onnx import numpy_helper

        if name in self._constants:
            return numpy_helper.to_array(self._constants[name])
        node = self.maker(name, "Constant")
        return None if node is None else numpy_helper.to_array(node.attribute[0].t)

    def replace(self, old, new) -> None:
        """Puts a node in the place of another."""
        new.name = f"{old.name}/{new.op_type}"
        place = next(i for i, node in enumerate(self._graph.node) if node is old)
        self._graph.node.remove(old)
        self._graph.node.insert(place, new)
        self._makers |= {output: self._graph.node[place] for output in new.output}

    def drop_unused(self) -> None:
        """Drops nodes and constants on which no output depends."""
        needed = [output.name for output in self._graph.output]
        seen = set(needed)
        while needed:
            node = self._makers.get(needed.pop())
            new = set() if node is None else set(node.input) - seen
            seen |= new
            needed += new
        for kept in (self._graph.node, self._graph.initializer):
            names = [x.output if kept is self._graph.node else [x.name] for x in kept]
            for number in reversed(range(len(kept))):
                if seen.isdisjoint(names[number]):
                    del kept[number]


def _normalization(graph: _Graph, node):
    """(x, gamma, beta, epsilon) of x * scale + (beta - mean * scale), see `LayerNorm`; or None."""
    if node.op_type != "Add":
        return None
    for shift, scaled in graph.sides(node, "Sub"):
        product, shrunk = graph.maker(scaled, "Mul"), graph.maker(shift.input[1], "Mul")
        if product is None or shrunk is None:
            continue
        for mean, scale in graph.sides(shrunk, "ReduceMean"):
            x = mean.input[0]
            scaling = graph.maker(scale, "Mul")
            if scaling is None or sorted(product.input) != sorted([x, scale]):
                continue
            for inverse, gamma in graph.sides(scaling, "Reciprocal"):
                root = graph.maker(inverse.input[0], "Sqrt")
                added = root and graph.maker(root.input[0], "Add")
                for variance, epsilon in graph.sides(added, "ReduceMean") if added else ():
                    square = graph.maker(variance.input[0], "Mul")
                    centred = square and graph.maker(square.input[0], "Sub")
                    vectors = (graph.constant(gamma), graph.constant(shift.input[0]))
                    if (
                        centred
                        and square.input[0] == square.input[1]
                        and list(centred.input) == [x, mean.output[0]]
                        and graph.scalar(epsilon) is not None
                        and all(v is not None and v.ndim == 1 for v in vectors)
                        and all(_is_last(graph, reduction) for reduction in (mean, variance))
                    ):
                        return x, gamma, shift.input[0], graph.scalar(epsilon)
    return None


def _is_last(graph: _Graph, node) -> bool:
    """Whether a reduction is over one axis, the last one.

    tf2onnx counts axes from the front if it knows the rank; the vectors of one axis that follow
    broadcast along the last.
    """
    axes = graph.constant(node.input[1]) if len(node.input) > 1 else None
    return axes is not None and axes.size == 1 and int(axes.reshape(())) in (-1, 1, 2)


def _gelu(graph: _Graph, node):
    """x of (x * 0.5) * (erf(x * sqrt(0.5)) + 1), see `gelu_exact`; or None."""
    if node.op_type != "Mul":
        return None
    for added, halved in graph.sides(node, "Add"):
        half = graph.maker(halved, "Mul")
        for erf, one in graph.sides(added, "Erf") if half is not None else ():
            inner = graph.maker(erf.input[0], "Mul")
            if inner is None or graph.scalar(one) != 1.0:
                continue
            values = [(a, graph.scalar(b)) for m in (half, inner) for a, b in _orders(m)]
            pairs = [(x, value) for x, value in values if value is not None]
            if len(pairs) == 2 and pairs[0][0] == pairs[1][0]:
                (x, first), (_, second) = pairs
                if first == 0.5 and np.isclose(second, np.sqrt(0.5), rtol=1e-6):
                    return x
    return None


def _orders(node):
    return (tuple(node.input), tuple(node.input)[::-1])
