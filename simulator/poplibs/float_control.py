"""How a tile's arithmetic behaves: the functions of poplar/FloatingPointBehaviour and its like.

They stand among Poplar's names. What they write is a register of each tile: that takes time and
room, but no value is other for it, as the model neither traps nor rounds at random.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.codelets.system.registers import MODIFY, PUT, put_cycles
from simulator.graph.errors import PoplarError
from simulator.graph.graph import Graph
from simulator.graph.program import Execute, Sequence
from simulator.graph.types import Array
from simulator.graph.vertices.vertex import Codelet, VertexGroup
from simulator.logging import library_call, log
from simulator.poplibs.popops.regions import debug_name

# A bit for each; where the machine's register has them makes no difference here.
BITS = {"inv": 1, "div0": 2, "oflo": 4, "esr": 8, "nanoo": 16}


@dataclass(frozen=True, slots=True)
class FloatingPointBehaviour:
    """What traps (invalid operations, division by zero, overflow), stochastic rounding, NaNs.

    >>> FloatingPointBehaviour(esr=False).esr
    False
    """

    inv: bool = True
    div0: bool = True
    oflo: bool = True
    esr: bool = True
    nanoo: bool = True


@library_call("POPLAR")
def setFloatingPointBehaviour(
    graph: Graph, prog: Sequence, behaviour: FloatingPointBehaviour, debugContext: str = ""
) -> None:
    """Write the register of all tiles that says what the floating-point units do.

    >>> from simulator import poplar
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> behaviour = poplar.FloatingPointBehaviour(inv=False, div0=False, oflo=False)
    >>> poplar.setFloatingPointBehaviour(trial.graph, trial.prog, behaviour)
    >>> len(trial.prog.children)
    1
    """
    if not isinstance(behaviour, FloatingPointBehaviour):
        raise PoplarError(
            f"setFloatingPointBehaviour: {behaviour!r}; a FloatingPointBehaviour is needed"
        )
    name = debug_name(debugContext, "setFloatingPointBehaviour")
    bits = [bit for bit in BITS if getattr(behaviour, bit)]
    _tell(name, bits)
    _add(graph, prog, PUT, name, setVal=sum(BITS[bit] for bit in bits))


@library_call("POPLAR")
def setStochasticRounding(
    graph: Graph, prog: Sequence, enable: bool, debugContext: str = ""
) -> None:
    """Switch stochastic rounding on or off on all tiles.

    >>> from simulator import poplar
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> poplar.setStochasticRounding(trial.graph, trial.prog, True)
    >>> len(trial.prog.children)
    1
    """
    name = debug_name(debugContext, "setStochasticRounding")
    _tell(name, ["esr"] if enable else [])
    masks = {"clearVal": 0xFFFF_FFFF ^ BITS["esr"], "setVal": BITS["esr"] if enable else 0}
    _add(graph, prog, MODIFY, name, **masks)


def _tell(name: str, bits: list[str]) -> None:
    traps = [bit for bit in bits if bit in ("inv", "div0", "oflo")]
    if traps:
        log("PL", "POPLAR", "WARN", f"{name}: {', '.join(traps)} are on: the model never traps")
    if "esr" in bits:
        log("PL", "POPLAR", "WARN", f"{name}: esr is on: the model rounds to the nearest")


def _add(graph: Graph, prog: Sequence, codelet: Codelet, name: str, **values: int) -> None:
    """Add a vertex to each tile; a CPU has no register."""
    if graph.target.target_type == "CPU":
        return
    tiles = np.arange(graph.target.num_tiles, dtype=np.int64)
    parameters: dict[str, Array] = {
        field: np.full(len(tiles), value, dtype=np.uint32) for field, value in values.items()
    }
    compute_set = graph.addComputeSet(name)
    graph.add_vertices(
        VertexGroup(compute_set.id, codelet, tiles, {}, parameters, put_cycles(tiles))
    )
    prog.add(Execute(compute_set))
