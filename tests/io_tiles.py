"""A program whose I/O tiles fetch the numbers of the next turn while the others compute."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pva.check.graph import OPERANDS
from pva.data.dataset import Dataset
from pva.formats import registry
from simulator import gcl, poplar, popops, poputil
from simulator.graph.graph import Graph
from simulator.graph.program import Copy, Repeat, Sequence, Sync, SyncType
from simulator.graph.types import Array

TILES, IO_TILES, TURNS, NUMBERS = 8, 2, 4, 4096


def machine(tiles: int = TILES, ipus: int = 1) -> poplar.Device:
    """Return a small machine."""
    return poplar.IPUModel("tiny", tilesPerIPU=tiles, numIPUs=ipus).createDevice()


def squares(graph: Graph, *, io: bool, work: int, wait: bool) -> Sequence:
    """Add a program that squares numbers of a stream, turn by turn, and adds them up.

    With `wait` all tiles wait for each other before and after a fetch.
    """
    numbers = NUMBERS
    each = graph.getTarget().getTilesPerIPU()
    aside = graph.createVirtualGraph(gcl.perIPUTiles(graph, 0, IO_TILES)) if io else graph
    compute = graph
    if io:
        compute = graph.createVirtualGraph(gcl.perIPUTiles(graph, IO_TILES, each - IO_TILES))
    stream = graph.addHostToDeviceFIFO("numbers", poplar.FLOAT, numbers)
    result = graph.addDeviceToHostFIFO("total", poplar.FLOAT, numbers)
    waiting = aside.addVariable(poplar.FLOAT, [numbers], "waiting")
    poputil.mapTensorLinearly(aside, waiting)
    held = compute.addVariable(poplar.FLOAT, [numbers], "held")
    total = compute.addVariable(poplar.FLOAT, [numbers], "total")
    for tensor in (held, total):
        poputil.mapTensorLinearly(compute, tensor)
    body = Sequence(Copy(waiting, held, name="hand over"))
    popops.addInPlace(compute, total, popops.square(compute, held, body, "square"), body, "sum")
    for turn in range(work):
        popops.negInPlace(compute, held, body, f"work{turn}")
    around = [Sync(SyncType.INTERNAL)] if wait else []
    body.children.extend([*around, Copy(stream, waiting, name="fetch"), *around])
    begin = Sequence(Copy(stream, waiting, name="first"))
    popops.zero(compute, total, begin, "zero")
    return Sequence(begin, Repeat(TURNS, body), Copy(total, result, name="give"))


def report_of(
    folder: Path,
    *,
    io: bool = True,
    work: int = 10,
    ipus: int = 1,
    wait: bool = False,
    **more: object,
) -> tuple[Dataset, Array]:
    """Run the program; return its report and the sum of squares."""
    device = machine(ipus=ipus)
    graph = poplar.Graph(device.getTarget())
    program = squares(graph, io=io, work=work, wait=wait)
    options = {"autoReport.all": True, "autoReport.directory": str(folder)} | more
    engine = poplar.Engine(graph, program, options)
    engine.load(device)
    numbers = np.arange(NUMBERS * (TURNS + 1), dtype=np.float32) % 7
    total = np.zeros(NUMBERS, dtype=np.float32)
    engine.connectStream("numbers", numbers)
    engine.connectStream("total", total)
    engine.run(0)
    return registry.read(folder), total


def clocks(data: Dataset) -> tuple[Array, Array]:
    """Work out tile by tile when each step begins and ends on it: [step][tile].

    Only what a report says of its machine and its programs goes in.
    """
    each, ipus = int(data.value("target", "tiles_per_ipu")), data.of_replica("num_ipus")
    delays = data.array("relative_sync_delay") + data.value("target", "min_sync_delay")
    io = set(data.column("io_tiles", "tile").tolist())
    apart = int(data.value("target", "global_sync_cycles"))
    sets, types = data.texts("programs", "tile_set"), data.texts("programs", "type")
    syncs = data.texts("programs", "sync_type")
    clock = np.zeros(each * ipus, dtype=np.int64)
    begins, ends = [], []
    for program in data.column("steps", "program").tolist():
        begins.append(clock.copy())
        if types[program] == "Sync":
            wanted = {"All": (True, False), "IO": (True,), "Compute": (False,)}[sets[program]]
            mine = [t for t in range(each * ipus) if (t % each in io) in wanted]
            arrived = {t: clock[t] + (delays[t % each] + 1) // 2 for t in mine}
            for t in mine:
                together = [
                    time + (apart if external else 0)
                    for other, time in arrived.items()
                    for external in [syncs[program] == "External"]
                    if external or other // each == t // each
                ]
                clock[t] = max(together) + delays[t % each] // 2
        elif types[program] in OPERANDS:
            column, array = OPERANDS[types[program]]
            clock = clock + data.array(array)[data.column("programs", column)[program]]
        ends.append(clock.copy())
    return np.array(begins), np.array(ends)
