"""Where each tensor of a session lies, as a JSON file: POPART_TENSOR_TILE_MAP names it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

import numpy as np

from simulator.graph.graph import Graph
from simulator.graph.tensors.tensor import Tensor
from simulator.popart.errors import popart_exception

VARIABLE = "POPART_TENSOR_TILE_MAP"


def tile_map(graph: Graph, tensors: Mapping[str, Tensor]) -> dict[str, list[list[int]]]:
    """Return, for each tensor, rows of [tile, begin, end): positions of the flattened tensor."""
    intervals = {}
    for name, tensor in tensors.items():
        low, high, tiles = graph.tile_ranges(tensor)
        intervals[name] = np.stack([tiles, low, high], axis=1).tolist()
    return intervals


def write_tile_map(graph: Graph, tensors: Mapping[str, Tensor]) -> None:
    """Write the map where the variable says; nothing without it."""
    path = os.environ.get(VARIABLE)
    if not path:
        return
    try:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(tile_map(graph, tensors), file)
    except OSError as error:
        raise popart_exception(f"{VARIABLE} {path}: {error.strerror}") from None
