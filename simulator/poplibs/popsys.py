"""Measuring a program on the device: PopLibs had these functions in popsys, later Poplar itself.

They stand among Poplar's names: `poplar.cycleCount`, `poplar.cycleStamp`.
"""

from __future__ import annotations

from collections.abc import Sequence as List
from typing import overload

import numpy as np

from simulator.codelets.system import clock
from simulator.graph.errors import PoplarError
from simulator.graph.geometry.intervals import as_int64
from simulator.graph.graph import Graph
from simulator.graph.program import Execute, Sequence, Sync, SyncType
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import UNSIGNED_INT
from simulator.graph.vertices.vertex import VertexGroup, cut_field
from simulator.logging import library_call

WORDS = 2  # of a number of cycles


@library_call("POPLAR")
def cycleCount(
    graph: Graph,
    prog: Sequence,
    tile: int,
    syncType: SyncType | str | None = None,
    debugContext: str = "",
) -> Tensor:
    """Count the cycles that a sequence takes on a tile, from one sync to another.

    The sequence becomes one that measures itself. Gives two unsigned ints on that tile, the low
    word of the count first. Without a type of sync (older programs have the debug context in its
    place) the syncs are internal, of several IPUs external. Raises PoplarError for a CPU target.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x = trial.tensor([1.0, 2.0])
    >>> y = popops.neg(trial.graph, x, trial.prog)
    >>> low, high = trial.values(poplar.cycleCount(trial.graph, trial.prog, 0))
    >>> low > 0, high
    (True, 0)
    """
    name, sync = _checked(graph, prog, syncType, debugContext or "cycleCount")
    around = Sequence()
    start = _add(graph, around, as_int64([tile]), sync, f"{name}/timeCS_1")
    around.add(Sequence(prog.children, name=prog.name))
    count = _add(graph, around, as_int64([tile]), sync, f"{name}/timeCS_2", start)[0]
    prog.children = around.children
    return count


@overload
def cycleStamp(
    graph: Graph,
    prog: Sequence,
    tile: int,
    syncType: SyncType | str | None = None,
    debugContext: str = "",
) -> Tensor: ...
@overload
def cycleStamp(
    graph: Graph,
    prog: Sequence,
    tile: List[int],
    syncType: SyncType | str | None = None,
    debugContext: str = "",
) -> list[Tensor]: ...
@library_call("POPLAR")
def cycleStamp(
    graph: Graph,
    prog: Sequence,
    tile: int | List[int],
    syncType: SyncType | str | None = None,
    debugContext: str = "",
) -> Tensor | list[Tensor]:
    """Read the clock of a tile after a sync: two unsigned ints on it, the low word first.

    Of a list of tiles it is a list of tensors. The clock is that of the report's steps: 0 when an
    engine runs for the first time. Arguments are as for `cycleCount`.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x = trial.tensor([1.0, 2.0])
    >>> before = poplar.cycleStamp(trial.graph, trial.prog, 0)
    >>> y = popops.neg(trial.graph, x, trial.prog)
    >>> before, after = trial.values(before, poplar.cycleStamp(trial.graph, trial.prog, 0))
    >>> before[0] < after[0]
    True
    """
    name, sync = _checked(graph, prog, syncType, debugContext or "cycleStamp")
    one = isinstance(tile, int | np.integer)
    stamps = _add(graph, prog, as_int64([tile] if one else tile), sync, f"{name}/timeStampCS")
    return stamps[0] if one else list(stamps)


def _checked(
    graph: Graph, prog: Sequence, sync_type: SyncType | str | None, name: str
) -> tuple[str, Sync]:
    """Return the name and the sync of a measurement; raises PoplarError for what has no clock."""
    if graph.target.target_type == "CPU":
        raise PoplarError(f"{name}: a CPU target has no clock that could be read")
    if not isinstance(prog, Sequence):
        raise PoplarError(f"{name}: a Sequence is needed, not {prog!r}; put the program into one")
    if isinstance(sync_type, str):
        name, sync_type = sync_type, None
    has_several_ipus = graph.target.num_ipus > 1
    return name, Sync(sync_type or (SyncType.EXTERNAL if has_several_ipus else SyncType.INTERNAL))


def _add(
    graph: Graph,
    prog: Sequence,
    tiles: np.ndarray,
    sync: Sync,
    name: str,
    start: Tensor | None = None,
) -> Tensor:
    """Add a sync, and a vertex to each tile: it reads the clock, or what has passed since `start`.

    Gives what they write, [tile][word].
    """
    out = graph.addVariable(UNSIGNED_INT, [len(tiles), WORDS], f"{name}/cycles")
    rows = np.arange(len(tiles), dtype=np.int64)
    low, high = rows * WORDS, (rows + 1) * WORDS
    graph.map_ranges(out, low, high, tiles)
    fields = {"out": cut_field("out", "output", out, low, high)}
    codelet, cycles = clock.START, clock.start_cycles(tiles)
    if start is not None:
        fields["startCount"] = cut_field("startCount", "input", start, low, high)
        codelet, cycles = clock.END, clock.end_cycles(tiles)
    compute_set = graph.addComputeSet(name)
    graph.add_vertices(VertexGroup(compute_set.id, codelet, tiles, fields, {}, cycles))
    prog.add(sync)
    prog.add(Execute(compute_set))
    return out
