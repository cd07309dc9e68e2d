"""Loops: a body that runs a number of times, or as long as it wants to."""

from __future__ import annotations

from simulator.graph.program import Copy, Repeat, RepeatWhileTrue
from simulator.graph.program import Sequence as Program
from simulator.graph.tensors.regions import variables_of
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import BOOL, INT, UNSIGNED_INT, Array
from simulator.popart.operators.call import Call
from simulator.popart.representation.ir import Ir, Node
from simulator.popart.representation.tensor_info import TensorInfo
from simulator.poplibs import popops
from simulator.poplibs.popops import expr
from simulator.poplibs.popops.expr import _1, _2


def _carried(node: Node) -> int:
    """Count the tensors that each run of the body gives to the next."""
    return len(node.inputs) - 2


def _trips(node: Node, ir: Ir) -> int | None:
    """Return how many times the body runs at most, if it is known."""
    trip_count = ir.constants.get(node.inputs[0]) if node.inputs[0] else None
    return None if trip_count is None else max(int(trip_count.reshape(-1)[0]), 0)


def _never_stops(node: Node, first: Array | None) -> bool:
    """Return whether the body runs whatever it says, so that only the number of times counts.

    `first` is the condition before it, where it is known.
    """
    body: Ir = node.attributes["body"]
    if node.inputs[1] and (first is None or not bool(first.reshape(-1)[0])):
        return False
    condition = body.constants.get(body.outputs[0])
    if condition is not None:
        return bool(condition.reshape(-1)[0])
    return body.outputs[0] == body.inputs[1] or _passes(body)


def _passes(body: Ir) -> bool:
    """Return whether a body gives its condition on as it is, by an Identity."""
    makers = {name: node for node in body.nodes for name in node.outputs}
    maker = makers.get(body.outputs[0])
    return maker is not None and maker.operator == "Identity" and maker.inputs[0] == body.inputs[1]


def lacks(node: Node, ir: Ir) -> str:
    """Return what of a loop cannot be done."""
    body, count = node.attributes["body"], _carried(node)
    if not isinstance(body, Ir) or any(name not in body.infos for name in body.outputs):
        return ""  # its own nodes say why
    for initial, name in zip(node.inputs[2:], body.outputs[1:], strict=False):
        if ir.infos[initial] != body.infos[name]:
            return (
                f"{initial!r} goes in as {ir.infos[initial]} and comes out as {body.infos[name]}; "
                "the same would be needed"
            )
    if _trips(node, ir) == 0:
        return "it never runs; what it leaves would be what goes in"
    stops = not _never_stops(node, ir.constants.get(node.inputs[1]))
    if len(body.outputs) - 1 > count and (_trips(node, ir) is None or stops):
        return "how many slices it stacks is not known; a constant number of runs would be needed"
    return ""


def inferred(node: Node, ir: Ir) -> dict[str, TensorInfo]:
    """Return type and shape of what a loop leaves: what is carried, and stacks of slices."""
    body: Ir = node.attributes["body"]
    count, trips, infos = _carried(node), _trips(node, ir), {}
    for place, (name, inner) in enumerate(zip(node.outputs, body.outputs[1:], strict=False)):
        info = body.infos.get(inner)
        if name and info is not None and place < count:
            infos[name] = info
        elif name and info is not None and trips is not None:
            infos[name] = TensorInfo(info.type, [trips, *info.dims])
    return infos


def loop(call: Call) -> list[Tensor]:
    """Run the body, which changes what is carried and fills a slice of each stack."""
    body: Ir = call.attribute("body")
    count = len(call.node.inputs) - 2
    carried = [call.copy(call[place], f"carried{place}") for place in range(2, 2 + count)]
    number = call.variable(UNSIGNED_INT, [1], "iteration")
    popops.zero(call.graph, number, call.prog, f"{call.name}/iteration")
    flag = _flag(call)
    inner = Program(name=f"{call.name}/body")
    outer, call.prog = call.prog, inner
    bindings = dict(zip(body.inputs, [_signed(call, number), flag, *carried], strict=False))
    results = call.lower_graph(body, inner, bindings)
    stacks = [stacked(call, slice, number, info.dims[0]) for slice, info in
              zip(results[1 + count :], call.outputs[count:], strict=False)]  # fmt: skip
    following = apart(call, [results[0], *results[1 : 1 + count]], [flag, *carried])
    for new, old in zip(following, [flag, *carried], strict=True):
        if new is not old:
            inner.add(Copy(new, old, name=f"{call.name}/carried"))
    popops.mapInPlace(
        call.graph, _1 + expr.Const(1, UNSIGNED_INT), [number], inner, f"{call.name}/iteration"
    )
    call.prog = outer
    _add(call, inner, number, flag)
    return [*carried, *stacks]


def _flag(call: Call) -> Tensor:
    """Add the condition with its first value; without one it is true."""
    flag = call.variable(BOOL, [], "condition")
    first = call.scalar(1) if call.has(1) else call.constant(1, BOOL, "true").reshape([])
    call.prog.add(Copy(first, flag, name=f"{call.name}/condition"))
    return flag


def _signed(call: Call, number: Tensor) -> Tensor:
    """Return the number of the run as the body reads it."""
    return call.cast(number, INT).reshape([])


def apart(call: Call, results: list[Tensor], old: list[Tensor]) -> list[Tensor]:
    """Copy what views something that is about to change, unless it stays where it is."""
    changing = {number for tensor in old for number in variables_of(tensor)}
    return [
        call.copy(new) if new is not before and changing.intersection(variables_of(new)) else new
        for new, before in zip(results, old, strict=True)
    ]


def stacked(call: Call, slice: Tensor, number: Tensor, count: int) -> Tensor:
    """Add a stack, and the copy of a run's slice to its place."""
    one, name = slice.expand([0]), f"{call.name}/Stack"
    stack = popops.createSliceableTensorFromSlice(call.graph, one, [0], [count], name)
    popops.dynamicUpdate(call.graph, stack, one, number, [0], [1], call.prog, name)
    return stack


def _add(call: Call, body: Program, number: Tensor, flag: Tensor) -> None:
    """Add the body, as often as it is to run."""
    trip_count = call.value(0)
    trips = None if trip_count is None else max(int(trip_count.reshape(-1)[0]), 0)
    if trips is not None and _never_stops(call.node, call.value(1)):
        call.prog.add(Repeat(trips, body, name=call.name))
        return
    before, predicate = Program(name=f"{call.name}/condition"), flag
    if call.has(0):
        limit = call.constant(trips, INT, "trips") if trips is not None else call.scalar(0)
        outer, call.prog = call.prog, before
        runs = call.map(expr.Lt(_1, _2), _signed(call, number), call.cast(limit.reshape([]), INT))
        predicate = call.map(expr.And(_1, _2), runs, flag)
        call.prog = outer
    call.prog.add(RepeatWhileTrue(before, predicate, body, name=call.name))
