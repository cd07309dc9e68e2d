"""Inputs whose values matter: places of another tensor, and what a node has to know."""

from __future__ import annotations

from simulator.graph.types import Array
from simulator.popart.errors import popart_exception
from simulator.popart.operators.table import OPERATORS
from simulator.popart.representation.ir import ONNX, Ir

# Operator -> the inputs that are places along an axis of the first one.
INDICES = {"Gather": 1, "GatherElements": 1, "Scatter": 1, "ScatterElements": 1}
TUPLES = {"GatherND": 1, "ScatterND": 1}  # of places along the first axes behind those of a batch


def looked_up(ir: Ir) -> dict[str, int]:
    """Return how many places each tensor of indices chooses from: the fewest of its readers."""
    limits: dict[str, int] = {}
    for node in ir.nodes:
        if node.domain == ONNX and node.operator in INDICES:
            dims, name = ir.infos[node.inputs[0]].dims, node.inputs[INDICES[node.operator]]
            axis = int(node.attributes.get("axis", 0))
            if -len(dims) <= axis < len(dims):
                limits[name] = min(dims[axis], limits.get(name, dims[axis]))
        elif node.domain == ONNX and node.operator in TUPLES:
            name, first = node.inputs[1], int(node.attributes.get("batch_dims", 0))
            sizes = ir.infos[node.inputs[0]].dims[first : first + ir.infos[name].dims[-1]]
            limits[name] = min((*sizes, limits.get(name, sizes[0]))) if sizes else 0
    return limits


def static_inputs(ir: Ir) -> list[str]:
    """Name the tensors whose values nodes, and those of graphs within, have to know."""
    names: dict[str, None] = {}
    for node in ir.nodes:
        for place in OPERATORS[node.key].static if node.key in OPERATORS else ():
            if place < len(node.inputs) and node.inputs[place]:
                names[node.inputs[place]] = None
        for graph in node.graphs:
            names |= dict.fromkeys(static_inputs(graph))
    return list(names)


def check_places(values: Array, count: int, subject: str) -> None:
    """Raise popart_exception for a place that is none of so many; negative ones count back."""
    for index in (int(values.min()), int(values.max())) if values.size else ():
        if not -count <= index < count:
            raise popart_exception(f"{subject}: index {index}; there are {count} to choose from")
