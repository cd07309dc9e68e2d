"""Scans: a body that runs once for each slice of its inputs, and stacks what it makes."""

from __future__ import annotations

from simulator.graph.program import Copy, Repeat
from simulator.graph.program import Sequence as Program
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import UNSIGNED_INT
from simulator.popart.operators.call import Call
from simulator.popart.operators.control_flow.loops import apart, stacked
from simulator.popart.representation.ir import SLICES_ATTRIBUTE, Ir, Node
from simulator.popart.representation.tensor_info import TensorInfo
from simulator.poplibs import popops
from simulator.poplibs.popops import expr
from simulator.poplibs.popops.expr import _1


def _carried(node: Node) -> int:
    """Count the tensors that each run of the body gives to the next."""
    return len(node.inputs) - int(node.attributes["num_scan_inputs"])


def _keeps(node: Node) -> bool:
    """Return whether slices keep their axis, of size 1, and outputs are joined along theirs.

    So PopART's builder means a Scan (popart, `willow/src/op/scan.cpp`); ONNX drops the axis.
    """
    return bool(node.attributes.get(SLICES_ATTRIBUTE, 0))


def _axes(node: Node, which: str, ranks: list[int]) -> list[int]:
    """Return the axis of each input or output along which it is cut or stacked."""
    axes = node.attributes.get(f"scan_{which}_axes") or [0] * len(ranks)
    return [int(axis) % max(rank, 1) for axis, rank in zip(axes, ranks, strict=True)]


def _input_axes(node: Node, infos: list[TensorInfo]) -> list[int]:
    return _axes(node, "input", [len(info.dims) for info in infos])


def body_inputs(node: Node, ir: Ir) -> list[TensorInfo]:
    """Return what the body reads: what is carried, and a slice of each other input."""
    infos = [ir.infos[name] for name in node.inputs]
    count = _carried(node)
    cut = zip(infos[count:], _input_axes(node, infos[count:]), strict=True)
    size = [1] if _keeps(node) else []
    slices = [TensorInfo(i.type, [*i.dims[:axis], *size, *i.dims[axis + 1 :]]) for i, axis in cut]
    return [*infos[:count], *slices]


def lacks(node: Node, ir: Ir) -> str:
    """Return what of a scan cannot be done."""
    body, count = node.attributes["body"], _carried(node)
    if not isinstance(body, Ir) or any(name not in body.infos for name in body.outputs):
        return ""  # its own nodes say why
    for name, output in zip(node.inputs[:count], body.outputs, strict=False):
        if ir.infos[name] != body.infos[output]:
            return (
                f"{name!r} goes in as {ir.infos[name]} and comes out as {body.infos[output]}; "
                "the same would be needed"
            )
    return "" if _runs(node, [ir.infos[name] for name in node.inputs]) else "it has no slices"


def _runs(node: Node, infos: list[TensorInfo]) -> int:
    """Count the slices of an input, and so the runs of the body."""
    cut = infos[_carried(node) :]
    return cut[0].dims[_input_axes(node, cut)[0]]


def inferred(node: Node, ir: Ir) -> dict[str, TensorInfo]:
    """Return type and shape of what a scan leaves: what is carried, and stacks of slices."""
    body: Ir = node.attributes["body"]
    count, runs = _carried(node), _runs(node, [ir.infos[name] for name in node.inputs])
    infos = [body.infos[name] for name in body.outputs]
    keeps = _keeps(node)
    axes = _axes(node, "output", [len(info.dims) + (not keeps) for info in infos[count:]])
    stacks = []
    for info, axis in zip(infos[count:], axes, strict=True):
        joined = [runs * info.dims[axis]] if keeps else [runs]
        stacks.append(
            TensorInfo(info.type, [*info.dims[:axis], *joined, *info.dims[axis + keeps :]])
        )
    pairs = zip(node.outputs, [*infos[:count], *stacks], strict=False)
    return {name: info for name, info in pairs if name}


def scan(call: Call) -> list[Tensor]:
    """Run the body for each slice; it changes what is carried and fills a slice of each stack."""
    body: Ir = call.attribute("body")
    count, name = _carried(call.node), call.name
    infos = [call.info(place) for place in range(len(call.node.inputs))]
    runs = _runs(call.node, infos)
    carried = [call.copy(call[place], f"carried{place}") for place in range(count)]
    number = call.variable(UNSIGNED_INT, [1], "iteration")
    popops.zero(call.graph, number, call.prog, f"{name}/iteration")
    inner = Program(name=f"{name}/body")
    outer, call.prog = call.prog, inner
    slices = [
        popops.dynamicSlice(call.graph, rows, number, [0], [1], inner, name)
        for rows in _cut(call, infos, count)
    ]
    axes = _input_axes(call.node, infos[count:])
    keeps_axis = _keeps(call.node)
    slices = [part.dimRoll(0, axis) if keeps_axis else part.squeeze([0])
              for part, axis in zip(slices, axes, strict=True)]  # fmt: skip
    results = call.lower_graph(
        body, inner, dict(zip(body.inputs, [*carried, *slices], strict=True))
    )
    stacks = [stacked(call, part, number, runs) for part in results[count:]]
    for new, old in zip(apart(call, results[:count], carried), carried, strict=True):
        if new is not old:
            inner.add(Copy(new, old, name=f"{name}/carried"))
    one = expr.Const(1, UNSIGNED_INT)
    popops.mapInPlace(call.graph, _1 + one, [number], inner, f"{name}/iteration")
    call.prog = outer
    call.prog.add(Repeat(runs, inner, name=name))
    return [*carried, *_turned(call, stacks)]


def _cut(call: Call, infos: list[TensorInfo], count: int) -> list[Tensor]:
    """View each input with the axis that is cut in front, from its end where that is asked."""
    axes = _input_axes(call.node, infos[count:])
    backward = call.attribute("scan_input_directions") or [0] * len(axes)
    rows = [call[count + place].dimRoll(axis, 0) for place, axis in enumerate(axes)]
    return [row.reverse(0) if way else row for row, way in zip(rows, backward, strict=True)]


def _turned(call: Call, stacks: list[Tensor]) -> list[Tensor]:
    """View each stack with its slices along the axis and in the direction that are asked."""
    keeps_axis = _keeps(call.node)
    axes = _axes(call.node, "output", [stack.rank() - keeps_axis for stack in stacks])
    backward = call.attribute("scan_output_directions") or [0] * len(axes)
    ways = zip(stacks, axes, backward, strict=True)
    turned = [(stack.reverse(0) if way else stack).dimRoll(0, axis) for stack, axis, way in ways]
    if not keeps_axis:
        return turned
    return [stack.flatten(axis, axis + 2) for stack, axis in zip(turned, axes, strict=True)]
