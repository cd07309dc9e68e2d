"""The nodes of a model as a JSON text, as PopART's sessions give them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from simulator.popart.representation.ir import GRAPH_NAME, IPU_ATTRIBUTE, Ir, Node


def serialised(ir: Ir, backward: Sequence[Node], placed: Mapping[str, int]) -> str:
    """Return {graph: [node, ...]}: the graphs by their names, `maingraph` for one that has none.

    A node has type, name, inputs, outputs and attributes, all as texts (popart,
    `willow/src/opserialiser.cpp`).
    """
    graphs: dict[str, list[dict[str, Any]]] = {}
    _add(graphs, _named(ir, "maingraph"), ir, [*ir.nodes, *backward], placed)
    return json.dumps(graphs)


def _add(
    graphs: dict[str, list[dict[str, object]]], name: str, ir: Ir, nodes: Sequence[Node],
    placed: Mapping[str, int],
) -> None:  # fmt: skip
    graphs[name] = [_shown(ir, node, placed.get(node.name)) for node in nodes]
    for node in nodes:
        for key, value in node.attributes.items():
            if isinstance(value, Ir):
                name = _named(value, f"{node.name}/{key}")
                _add(graphs, name, value, value.nodes, {})


def _named(ir: Ir, name: str) -> str:
    """Return the name of a graph, or another where it has none but the builder's."""
    return name if ir.name in ("", GRAPH_NAME) else ir.name


def _shown(ir: Ir, node: Node, ipu: int | None) -> dict[str, Any]:
    attributes = {
        key: str(value) for key, value in node.attributes.items() if not isinstance(value, Ir)
    }
    where = {} if ipu is None else {IPU_ATTRIBUTE: str(ipu)}
    return {
        "type": node.operator,
        "name": node.name,
        "inputs": [_tensor(ir, name, place) for place, name in enumerate(node.inputs) if name],
        "outputs": [
            {"name": name, "index": str(place)} for place, name in enumerate(node.outputs) if name
        ],
        "attributes": {**attributes, **where},
    }


def _tensor(ir: Ir, name: str, place: int) -> dict[str, str]:
    info = ir.infos.get(name)
    entry = {"name": name, "index": str(place)}
    if info is None:
        return entry
    shape = "[" + " ".join(map(str, info.dims)) + "]"
    return {**entry, "shape": shape, "type": info.type}
