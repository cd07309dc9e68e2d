"""What a model holds of which a product has no plan: a report without its computations."""

from __future__ import annotations

from collections.abc import Mapping

from simulator.engine import Engine
from simulator.graph.graph import Graph
from simulator.graph.machine.target import Target
from simulator.graph.program import Sequence
from simulator.popart.programs import device_to_host, host_to_device
from simulator.popart.representation.ir import Ir
from simulator.popart.representation.tensor_info import TensorInfo
from simulator.poplibs.poputil import mapTensorLinearly


def tensors_at_ends(ir: Ir) -> dict[str, TensorInfo]:
    """Return the types and shapes of weights, inputs and outputs that have elements."""
    names = dict.fromkeys([*ir.weights, *ir.inputs, *ir.outputs])
    return {name: ir.infos[name] for name in names if ir.infos[name].nelms()}


def report_tensors(
    infos: Mapping[str, TensorInfo], target: Target, options: Mapping[str, object], reason: str
) -> None:
    """Write a report of these tensors, spread over all tiles, and of nothing else.

    Each comes from the host, and goes back when all are there: so all are live at once. The
    report's provenance says that no plan exists, and the reason.
    """
    graph = Graph(target)
    graph.unplanned = reason
    begin, end = Sequence(), Sequence()
    for name, info in infos.items():
        tensor = graph.addVariable(info.device, info.dims, name)
        mapTensorLinearly(graph, tensor)
        begin.add(host_to_device(graph, "input", name, tensor)[1])
        end.add(device_to_host(graph, "output", name, tensor)[1])
    Engine(graph, Sequence(begin, end), {**options, "debug.allowOutOfMemory": True})
