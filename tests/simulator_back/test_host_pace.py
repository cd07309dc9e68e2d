"""A host that takes time: what filling and taking buffers adds to copies, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simulator import poplar
from simulator.graph.program import Copy, Sequence

BYTES, CLOCK, LINK = 4000, 1_330_000_000, 8_000_000_000
ON_LINK = 665  # 4,000 B of 8 GB/s at 1.33 GHz
AHEAD = {"exchange.enablePrefetch": True, "exchange.streamBufferOverlap": "None"}


def cycles(direction: str, pace: int, options: dict[str, Any], depth: int = 1) -> int:
    """Return what a copy of 4,000 bytes takes beyond the latency of 5 cycles."""
    model = poplar.IPUModel("tiny", hostFillBytesPerSecond=pace)
    graph = poplar.Graph(model.createDevice().getTarget())
    tensor = graph.addVariable(poplar.FLOAT, [BYTES // 4], "tensor")
    graph.setTileMapping(tensor, 0)
    add = graph.addHostToDeviceFIFO if direction == "in" else graph.addDeviceToHostFIFO
    stream = add("stream", poplar.FLOAT, BYTES // 4, options={"bufferingDepth": depth})
    copy = Copy(stream, tensor) if direction == "in" else Copy(tensor, stream)
    executable = poplar.compileGraph(graph, [Sequence(copy)], options)
    costs = [cost.cycles for cost in executable.compiled.lowered.host_exchanges]
    return int(np.max(costs)) - 5


@pytest.mark.parametrize(
    ("direction", "pace", "options", "depth", "wanted"),
    [
        ("in", 0, {}, 1, ON_LINK),
        ("in", LINK // 4, {}, 1, 5 * ON_LINK),  # it fills for 4 times as long, then the link moves
        ("in", LINK // 4, {"exchange.enablePrefetch": True}, 1, 5 * ON_LINK),  # buffers may overlap
        ("in", LINK // 4, AHEAD, 2, 4 * ON_LINK),
        ("in", LINK * 2, AHEAD, 1, ON_LINK),
        ("out", LINK // 4, AHEAD, 1, 5 * ON_LINK),
        ("out", LINK // 4, {}, 2, 4 * ON_LINK),
        ("out", LINK * 2, {}, 2, ON_LINK),
    ],
)
def test_a_copy_waits_for_the_host_unless_it_works_ahead(
    direction: str, pace: int, options: dict[str, Any], depth: int, wanted: int
) -> None:
    assert cycles(direction, pace, options, depth) == wanted
