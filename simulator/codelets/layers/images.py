"""The vertex that normalises the pixels of an image; its cycles are in `sorting_cycles`."""

from __future__ import annotations

from functools import cache

import numpy as np

from simulator.codelets.indexing import sorting_cycles
from simulator.codelets.vertex_type import POPOPS_CYCLES, VertexTypes, supervisor
from simulator.graph.types import FLOAT, Array, Type
from simulator.graph.vertices.vertex import Codelet, Operands, VertexGroup

TYPES = VertexTypes(
    (
        supervisor(
            "popops::NormaliseImage<in,out>",
            "in out scales offsets",
            sorting_cycles.normalise_image,
            POPOPS_CYCLES,
            (28, 180),
        ),
    )
)

CHANNELS, PADDED = 3, 4


@cache
def normalise_image_codelet(dtype: Type, out: Type) -> Codelet:
    """Return the supervisor of out = (in * inScale - offset) * scale by channel, and a zero."""

    def compute(operands: Operands) -> dict[str, Array]:
        arrays, vertices = operands.arrays, len(operands.group)
        pixels = operands.counts["in"] // CHANNELS
        of_vertex = np.repeat(np.arange(vertices), pixels)
        values = arrays["in"].reshape(-1, CHANNELS).astype(FLOAT.numpy)
        in_scale = operands.group.parameters["inScale"].astype(FLOAT.numpy)[of_vertex, None]
        offsets, scales = (
            arrays[name].reshape(vertices, CHANNELS).astype(FLOAT.numpy)[of_vertex]
            for name in ("offsets", "scales")
        )
        result = np.zeros((len(values), PADDED), dtype=out.numpy)
        result[:, :CHANNELS] = (values * in_scale - offsets) * scales
        return {"out": result.reshape(-1)}

    def operations(group: VertexGroup) -> Array:
        return 3 * group.fields["in"].counts()

    name = f"popops::NormaliseImage<{dtype},{out}>"
    return TYPES.codelet(name, compute, operations)
