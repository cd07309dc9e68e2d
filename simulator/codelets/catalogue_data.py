"""The rows of the catalogue for states of random generators, sorting and images."""

from __future__ import annotations

from simulator.codelets import random_cycles
from simulator.codelets.vertex_cost import VertexCost, supervisor

_AS_SEED = "our estimate, as setting a seed"

STATES: tuple[VertexCost, ...] = tuple(
    supervisor(name, "seeds", random_cycles.hardware_seeds, _AS_SEED, (8, 40), exact=False)
    for name in ("poplar_rt::GetHwSeeds", "poplar_rt::SetHwSeeds")
)

DATA = STATES
