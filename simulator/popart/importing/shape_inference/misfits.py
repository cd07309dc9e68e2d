"""Why the inputs of a node do not fit, in the words that PopART's programs look for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simulator.popart.errors import popart_exception
from simulator.popart.representation.ir import Ir, Node
from simulator.popart.representation.tensor_info import TensorInfo

PAIRS = ("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor")


def misfit(node: Node, ir: Ir) -> str:
    """Return what of a node's inputs does not fit; "" where PopART has no words of its own."""
    reason = _of_pair if node.operator in PAIRS else _REASONS.get(node.operator)
    if reason is None or len(node.inputs) != 2 or not all(name in ir.infos for name in node.inputs):
        return ""
    return reason(node, ir)


def _of_pair(node: Node, ir: Ir) -> str:
    first, second = (ir.infos[name] for name in node.inputs)
    subject = f"'Op {node.name}({node.domain}.{node.operator}:{node.version})'"
    try:
        np.broadcast_shapes(first.dims, second.dims)
    except ValueError:
        return (
            f"np broadcasting failed on {subject}, frames {list(first.dims)} and "
            f"{list(second.dims)} are not aligned"
        )
    if first.type == second.type:
        return ""
    shapes = " and ".join(f"[{' '.join(map(str, info.dims))}]" for info in (first, second))
    return (
        f"np broadcasting failed on {subject}, incompatible types {first.type} and {second.type} "
        f"(shapes {shapes})"
    )


def _of_expand(node: Node, ir: Ir) -> str:
    return "corresponding dimensions must have the same value or one of them must be 1"


def _of_reshape(node: Node, ir: Ir) -> str:
    shape = ir.known(node.inputs[1])
    if shape is None or np.count_nonzero(shape == -1) < 2:
        return ""
    return "shape input to ReshapeOp can only use -1 to specify one unknown dimension"


def _of_tile(node: Node, ir: Ir) -> str:
    repeats, rank = ir.known(node.inputs[1]), len(ir.infos[node.inputs[0]].dims)
    if repeats is None:
        return ""
    if repeats.size != rank:
        return (
            f"'Repeats' tensor {node.inputs[1]!r} should have one element for each dimension of "
            "the data tensor"
        )
    if repeats.min(initial=0) < 0:
        return f"repeats {repeats.tolist()}; Values must be non-negative in each shape dimension"
    return ""


def check_elements(node: Node, ir: Ir, outputs: dict[str, TensorInfo], subject: str) -> None:
    """Refuse a Reshape to another number of elements, which ONNX lets pass: popart_exception."""
    if node.operator != "Reshape":
        return
    data, output = ir.infos.get(node.inputs[0]), outputs.get(node.outputs[0])
    if data is None or output is None:
        return
    if data.nelms() != output.nelms():
        raise popart_exception(
            f"{subject}: {node.inputs[0]!r} {data} cannot be reshaped to {list(output.dims)}: "
            f"{data.nelms()} elements against {output.nelms()}; a model that takes any batch "
            "leaves one size of the shape open (-1)"
        )


_REASONS: dict[str, Callable[[Node, Ir], str]] = {
    "Expand": _of_expand,
    "Reshape": _of_reshape,
    "Tile": _of_tile,
}
