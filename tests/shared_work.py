"""A program whose IPUs compute for as long as one says, as layers of a model would."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pva
from simulator import poplar
from simulator.poplar import Graph, program

TILES, THREADS = 4, 6  # a vertex alone on its tile takes turns with five idle threads
Work = tuple[int, str, int]  # IPU, name, cycles of the vertex on its first tile


class Nothing(poplar.Vertex):
    """Takes as long as its estimate."""

    def compute(self) -> bool:
        """Compute nothing."""
        return True


def report_of(folder: Path, work: Sequence[Work], *, in_turn: bool = False) -> pva.Report:
    """Run computations one after another on each IPU, beside one another on several.

    With `in_turn` all IPUs wait for each other in between.
    """
    ipus = max(ipu for ipu, _, _ in work) + 1
    device = poplar.IPUModel("tiny", numIPUs=ipus, tilesPerIPU=TILES).createDevice()
    graph = Graph(device.getTarget())
    graph.addCodelets(Nothing)
    steps: list[program.Program] = []
    for ipu, name, cycles in work:
        if steps and in_turn:
            steps.append(program.Sync(program.SyncType.EXTERNAL))
        compute_set = graph.addComputeSet(name)
        vertex = graph.addVertex(compute_set, Nothing, {}, tile=ipu * TILES)
        graph.setPerfEstimate(vertex, cycles)
        steps.append(program.Execute(compute_set))
    options = {"autoReport.all": "true", "autoReport.directory": str(folder)}
    engine = poplar.Engine(graph, program.Sequence(*steps), options)
    engine.load(device)
    engine.run()
    return pva.openReport(folder)
