"""Evenly spaced numbers and grids of coordinates (PopLibs poplin/MeshGrid.hpp)."""

from __future__ import annotations

import numpy as np

from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, HALF, Type
from simulator.logging import library_call
from simulator.poplibs.popops.regions import debug_name


@library_call("POPLIN")
def linspace(
    graph: Graph, type: Type, left: float, right: float, count: int, debugContext: str = ""
) -> Tensor:
    """Add a constant of `count` evenly spaced numbers from left to right, on tile 0.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> trial.values(poplin.linspace(trial.graph, poplar.FLOAT, 0.0, 1.0, 5))
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    name = debug_name(debugContext, "linspace")
    if type not in (FLOAT, HALF):
        raise poplibs_error(f"{name}: type is {type}; float or half is needed")
    if count < 1:
        raise poplibs_error(f"{name}: count is {count}; at least 1 is needed")
    values = np.linspace(left, right, count, dtype=np.float32)
    tensor = graph.addConstant(type, [count], values.tolist(), name)
    graph.setTileMapping(tensor, 0)
    return tensor


@library_call("POPLIN")
def meshgrid2d(graph: Graph, x: Tensor, y: Tensor) -> list[Tensor]:
    """View x as the rows and y as the columns of two grids of len(y) rows and len(x) columns.

    >>> from simulator import poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x, y = trial.tensor([1.0, 2.0, 3.0]), trial.tensor([10.0, 20.0])
    >>> trial.values(*poplin.meshgrid2d(trial.graph, x, y))
    [[[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], [[10.0, 10.0, 10.0], [20.0, 20.0, 20.0]]]
    """
    if x.rank() != 1 or y.rank() != 1 or x.dtype != y.dtype:
        raise poplibs_error(f"meshgrid2d: {x!r} and {y!r}; two vectors of one type are needed")
    across, down = x.numElements(), y.numElements()
    return [x.expand([0]).broadcast(down, 0), y.expand([1]).broadcast(across, 1)]
