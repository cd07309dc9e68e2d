"""Rows of the catalogue: vertex types of popops whose second operand is a vector that repeats."""

from __future__ import annotations

from functools import partial

from simulator.codelets import broadcast_cycles
from simulator.codelets.vertex_cost import VertexCost, row, supervisor

_SOURCE = "PopLibs lib/popops/popopsCycleEstimators.cpp"
_FIELDS = {"": "data B out", "InPlace": "out B"}

VECTORS: tuple[VertexCost, ...] = tuple(
    entry
    for place, fields in _FIELDS.items()
    for entry in (
        supervisor(
            f"popops::BroadcastVectorInner1D{place}<op,type>",
            fields,
            partial(broadcast_cycles.inner_1d, in_place=bool(place)),
            _SOURCE,
            (16, 150),
        ),
        row(
            f"popops::BroadcastVectorInner2D{place}<op,type>",
            fields,
            partial(broadcast_cycles.inner_2d, in_place=bool(place)),
            _SOURCE,
            (24, 170),
        ),
        *(
            supervisor(
                f"popops::BroadcastVectorOuterBy{way}1D{place}<op,type,misaligned>",
                fields,
                broadcast_cycles.outer_1d,
                _SOURCE,
                (16, 150),
            )
            for way in ("Row", "Column")
        ),
    )
)
