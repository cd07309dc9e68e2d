"""Faults of nodes in PopART's words, which its programs compare with what they catch.

Words and rules: popart, `willow/src/op`, where each operator sets its outputs up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from simulator.popart.representation.ir import GRAPHCORE, ONNX, SERIAL_FACTOR, SERIAL_MODE, Ir, Node
from simulator.popart.representation.tensor_info import TensorInfo

Check = Callable[[Node, Sequence[TensorInfo]], str]
BOTH_SIZES = (
    "Resize op has inputs for `sizes` and `scales`. Only one of these tensors should be present. "
    "If `sizes` is needed, please pass an empty string as the name of `scales` in the input list "
    "( resize([X, roi, '', sizes]) ). If the proto is not generated from the PopART Builder, "
    "please confirm that only one of the two tensors shall have data."
)


def refusal(node: Node, ir: Ir, subject: str) -> str:
    """Return what is wrong with a node, "" where nothing is.

    The words stand first, where they begin a text, or last, where they end one, beside the
    `subject`, unless they name the node themselves.
    """
    infos = [ir.infos[name] for name in node.inputs if name in ir.infos]
    if not infos or len(infos) < len([name for name in node.inputs if name]):
        return ""
    if node.key in _BY_NAME:
        return _BY_NAME[node.key](node, infos)
    if node.key in _BY_PLACE:
        words = _BY_PLACE[node.key](node, infos)
        return f"{words} ({subject})" if words else ""
    words = _of_ratio(node, ir) if node.key == (ONNX, "Dropout") else ""
    return f"{subject}: {words}" if words else ""


def shown(node: Node) -> str:
    """Return a node as PopART shows it: its name, if it has one, operator, inputs and outputs."""
    operator = f"{node.domain}.{node.operator}:{node.version}"
    label = operator if node.name == node.outputs[0] else f"{node.name} ({operator})"
    return f"Op({label}, inputs=[{', '.join(node.inputs)}], outputs=[{', '.join(node.outputs)}])"


def _sizes(sizes: Sequence[int]) -> str:
    return f"[{' '.join(map(str, sizes))}]"


def _typed(info: TensorInfo) -> str:
    return f"{info.type:<8}{_sizes(info.dims)}"


def _of_product(node: Node, infos: Sequence[TensorInfo]) -> str:
    left, right = (info.dims for info in infos)
    for side, dims in (("lhs", left), ("rhs", right)):
        if not dims:
            return f"{shown(node)} doesn't support scalar tensor input as the {side} input"
    if left[-1] != right[max(len(right) - 2, 0)]:
        return (
            f"{shown(node)} contracting dimensions unequal: lhs '{node.inputs[0]}' {_sizes(left)}, "
            f"rhs '{node.inputs[1]}' {_sizes(right)}"
        )
    return _of_parts(node, left, right)


def _of_parts(node: Node, left: Sequence[int], right: Sequence[int]) -> str:
    """Return what of a product's serialisation does not fit, as `setSerializeMatMul` noted it."""
    mode, factor = str(node.attributes.get(SERIAL_MODE, "none")), node.attributes.get(SERIAL_FACTOR)
    if mode == "none" or factor is None:
        return ""
    title, size = {
        "input_channels": ("input channels dim", left[-2] if len(left) > 1 else 1),
        "reducing_dim": ("reducing dimension", left[-1]),
        "output_channels": ("output channels dim", right[-1] if len(right) > 1 else 1),
    }[mode]
    wrong = f"Invalid serialisation factor {factor}"
    if int(factor) < 1:
        return f"{wrong}. Serialisation factor must be a non-zero positive integer. {shown(node)}"
    if size % int(factor):
        return (
            f"{wrong} for {title} {size}. {mode} dim should be a multiple of the serialisation "
            f"factor: {shown(node)}"
        )
    return ""


def _of_transpose(node: Node, infos: Sequence[TensorInfo]) -> str:
    order, dims = list(node.attributes.get("perm") or ()), infos[0].dims
    if not order or len(order) == len(dims):
        return ""
    return (
        f"Rank of permutation tensor {_sizes(order)}, rank {len(order)} must be equal to rank of "
        f"input tensor, shape {_sizes(dims)}, rank {len(dims)}."
    )


def _of_resize(node: Node, infos: Sequence[TensorInfo]) -> str:
    given = dict(zip(filter(None, node.inputs), infos, strict=True))
    both = node.inputs[2:4]
    has_both = len(both) == 2 and all(name and given[name].nelms() for name in both)
    return BOTH_SIZES if has_both and node.version >= 11 else ""


def _of_old_sum(node: Node, infos: Sequence[TensorInfo]) -> str:
    if node.version > 7 or all(info == infos[0] for info in infos):
        return ""
    return (
        f"Inputs to {node.domain}.{node.operator}:{node.version} do not all the same type & shape, "
        f"with opid.version = {node.version}"
    )


def _of_reverse(node: Node, infos: Sequence[TensorInfo]) -> str:
    axes, rank = list(node.attributes.get("dimensions", ())), len(infos[0].dims)
    for place, axis in enumerate(axes):
        if axis in axes[:place]:
            return f"Dimension {axis} appears multiple times in the list of dimensions"
        if axis < 0:
            return f"invalid dimension '{axis}'. Only positive dimensions are supported"
        if axis >= rank:
            return f"invalid dimension '{axis}' for input tensor of rank {rank}"
    return ""


def _of_subsample(node: Node, infos: Sequence[TensorInfo]) -> str:
    strides = list(node.attributes.get("strides", ()))
    return f"Strides invalid. 0 stride at index {strides.index(0)}" if 0 in strides else ""


def _of_mask(node: Node, infos: Sequence[TensorInfo]) -> str:
    shape, dims = list(node.attributes.get("shape", ())), infos[0].dims
    pairs = zip(shape[::-1], dims[::-1], strict=False)
    if len(shape) <= len(dims) and all(size in (1, n) for size, n in pairs):
        return ""
    return (
        "ShapedDropout: incompatible input tensor and dropout shape. "
        f"{_sizes(shape)} does not broadcast to {_sizes(dims)}"
    )


def _of_labels(node: Node, infos: Sequence[TensorInfo]) -> str:
    probabilities, labels = infos[:2]
    if labels.dims == probabilities.dims[:-1]:
        return ""
    return (
        f"The label tensor ({_typed(labels)}) must have shape {_sizes(probabilities.dims[:-1])} "
        "to match all but the final dimension of the probabilities tensor "
        f"({_typed(probabilities)})"
    )


def _of_ratio(node: Node, ir: Ir) -> str:
    known = ir.known(node.inputs[1]) if len(node.inputs) > 1 and node.inputs[1] else None
    ratio = float(node.attributes.get("ratio", 0.5) if known is None else known)
    if 0 <= ratio < 1:
        return ""
    return f"ratio value {ratio:g} is not valid. Please use a value in the interval [0,1)"


_BY_NAME: Mapping[tuple[str, str], Check] = {
    (ONNX, "MatMul"): _of_product,
    (ONNX, "Resize"): _of_resize,
    (ONNX, "Transpose"): _of_transpose,
}
_BY_PLACE: Mapping[tuple[str, str], Check] = {
    **{(ONNX, name): _of_old_sum for name in ("Max", "Mean", "Min", "Sum")},
    (GRAPHCORE, "Nll"): _of_labels,
    (GRAPHCORE, "Reverse"): _of_reverse,
    (GRAPHCORE, "ShapedDropout"): _of_mask,
    (GRAPHCORE, "Subsample"): _of_subsample,
}
