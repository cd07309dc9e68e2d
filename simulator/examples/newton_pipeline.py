"""Square roots in a pipeline over two IPUs: what a program does depends on its data.

The first IPU takes a batch from the host, the second one refines the roots by Newton's method until
they no longer change, keeps them in a remote buffer and sends them back. How many batches there are
and how many rounds each takes is known at run time only.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from simulator import poplar, popops, poputil
from simulator.graph.types import Array
from simulator.poplar import program

BATCH, BATCHES = 256, 4
TOLERANCE = 1e-6  # of the largest relative change: above the rounding of a float


class LargestChange(poplar.Vertex):
    """Set whether a root still changes, and keep it for the next round."""

    root: Any = poplar.Input(poplar.Vector(poplar.FLOAT))
    last: Any = poplar.InOut(poplar.Vector(poplar.FLOAT))
    changes: Any = poplar.Output(poplar.INT)

    def compute(self) -> None:
        self.changes[0] = (np.abs(self.root - self.last) > TOLERANCE * self.root).any()
        self.last[:] = self.root


@dataclass(frozen=True, slots=True)
class Result:
    """The roots by [replica][batch], the largest relative error, and the report's directory."""

    roots: Array
    error: float
    report: Path | None


def build(graph: poplar.Graph) -> list[program.Program]:
    """Add both stages; give the program that takes one batch, and the one that takes several."""
    tiles = graph.getTarget().getTilesPerIPU()
    first, second = (graph.createVirtualGraph(ipu * tiles, (ipu + 1) * tiles) for ipu in (0, 1))
    values = first.addVariable(poplar.FLOAT, [BATCH], "values")
    poputil.mapTensorLinearly(first, values)
    source = graph.addHostToDeviceFIFO("values", poplar.FLOAT, BATCH)
    magnitudes = program.Sequence(program.Copy(source, values))
    positive = popops.absolute(first, values, magnitudes, "Magnitude")

    squares = second.addVariable(poplar.FLOAT, [BATCH], "squares")
    poputil.mapTensorLinearly(second, squares)
    roots = second.clone(squares, "roots")
    refine = program.Sequence(
        program.Copy(positive, squares, name="ToSecondIPU"), program.Copy(squares, roots)
    )
    _add_newton(second, squares, roots, refine)

    count = second.addVariable(poplar.UNSIGNED_INT, [1], "batch")
    limit = second.addVariable(poplar.UNSIGNED_INT, [1], "batches")
    for tensor in (count, limit):
        second.setTileMapping(tensor, 0)
    graph.createHostWrite("batches", limit)
    archive = second.addRemoteBuffer("archive", poplar.FLOAT, BATCH, repeats=BATCHES)
    results = graph.addDeviceToHostFIFO("roots", poplar.FLOAT, BATCH)
    store = program.Sequence(
        program.Copy(roots, archive, count, "Archive"), program.Copy(roots, results)
    )
    stages = zip(("Load", "Newton", "Store"), (magnitudes, refine, store), strict=True)
    one = graph.addFunction(
        program.Sequence(*(program.Block(stage, name) for name, stage in stages)), "OneBatch"
    )
    several = popops.countedForLoop(
        second, count, 0, limit, 1, program.Call(one), debugContext="Batches"
    )
    return [program.Call(one), several]


def _add_newton(
    graph: poplar.Graph, squares: poplar.Tensor, roots: poplar.Tensor, prog: program.Sequence
) -> None:
    """Refine roots: x becomes (x + a / x) / 2, until no tile sees a change."""
    last = graph.clone(roots, "last")
    half = graph.addConstant(poplar.FLOAT, [1], 0.5)
    graph.setTileMapping(half, 0)
    changes = graph.addVariable(poplar.INT, [graph.getTarget().getNumTiles()], "changes")
    compute_set = graph.addComputeSet("Newton/LargestChange")
    used = [
        (tile, part) for tile, parts in enumerate(graph.getTileMapping(roots)) for part in parts
    ]
    for place, (tile, (begin, end)) in enumerate(used):
        graph.setTileMapping(changes[place], tile)
        vertex = graph.addVertex(
            compute_set,
            LargestChange,
            {
                "root": roots.slice(begin, end),
                "last": last.slice(begin, end),
                "changes": changes[place],
            },
            tile=tile,
        )
        graph.setPerfEstimate(vertex, 20 + 5 * (end - begin))
    check = program.Sequence(program.Execute(compute_set))
    anywhere = popops.reduce(
        graph, changes.slice(0, len(used)), [0], popops.Operation.MAX, check, "Newton/Any"
    )
    body = program.Sequence()
    quotient = popops.div(graph, squares, roots, body, "Newton")
    popops.addInPlace(graph, roots, quotient, body, "Newton")
    popops.mulInPlace(graph, roots, half, body, "Newton")
    zero = graph.addConstant(poplar.FLOAT, [1], 0)
    graph.setTileMapping(zero, 0)
    prog.add(program.Copy(zero.broadcast(BATCH, 0), last, name="Newton/NoRootYet"))
    prog.add(program.RepeatWhileTrue(check, anywhere, body, "Newton"))


def run(
    *,
    target: str = "mk2",
    tiles: int = 0,
    replicas: int = 1,
    out: Path | None = None,
    compile_ipu_code: bool = False,
    seed: int = 1,
) -> Result:
    """Take one batch, then all of them, on `tiles` tiles of each IPU, 0 for all."""
    members: dict[str, Any] = {"numIPUs": 2 * replicas, "compileIPUCode": compile_ipu_code}
    members |= {"tilesPerIPU": tiles} if tiles else {}
    device = poplar.IPUModel(target, **members).createDevice()
    graph = poplar.Graph(device.getTarget(), poplar.replication_factor(replicas))
    facts = {"application": "newton_pipeline", "batches": BATCHES, "replicas": replicas}
    report = {
        "autoReport.all": True,
        "autoReport.directory": str(out),
        "autoReport.app": facts,
        "profiler.blocks.filter": ".*",
    }
    engine = poplar.Engine(graph, build(graph), {} if out is None else report)
    engine.load(device)
    # The batches differ by orders of magnitude, and so do the rounds that they take.
    scale = 100.0 ** np.arange(BATCHES)[:, None, None]
    batches = np.random.default_rng(seed).uniform(-1, 1, (BATCHES, replicas, BATCH)) * scale
    roots = np.zeros((BATCHES, replicas, BATCH), dtype=np.float32)
    engine.connectStream("values", batches.astype(np.float32))
    engine.connectStream("roots", roots)
    engine.writeTensor("batches", np.full(replicas, BATCHES, dtype=np.uint32))
    engine.run(0, "one batch")
    for handle, memory in (("values", batches.astype(np.float32)), ("roots", roots)):
        engine.connectStream(handle, memory)
    engine.run(1, "all batches")
    expected = np.sqrt(np.abs(batches))
    error = float((np.abs(roots - expected) / expected).max())
    return Result(np.swapaxes(roots, 0, 1), error, out)
