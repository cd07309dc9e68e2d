"""A program with every class of program in it, for the tests of profiles."""

from __future__ import annotations

from typing import Any

import numpy as np

from simulator import poplar
from simulator.device import Device
from simulator.graph.machine.target import make_target
from simulator.poplar import FLOAT, INT, Graph, Input, Output, Vector, Vertex, program

COUNT = 8


class Twice(Vertex):
    """Double the elements of a vector."""

    values = Input(Vector(FLOAT))
    doubled = Output(Vector(FLOAT))

    def compute(self) -> None:
        self.doubled[...] = 2 * self.values


class Down(Vertex):
    """Count down."""

    before = Input(INT)
    after = Output(INT)

    def compute(self) -> None:
        self.after[...] = self.before - 1


def device(ipus: int = 2, target: str = "tiny", *, tiles: int = 4, code: bool = True) -> Device:
    """Make a device of small IPUs whose code is counted."""
    made = make_target(target, num_ipus=ipus, tiles_per_ipu=tiles, compile_ipu_code=code)
    return Device(made)


def built(graph: Graph) -> program.Sequence:
    """Add everything to a graph; the program runs each class once or more."""
    last = graph.target.num_tiles - 1
    values = graph.addVariable(FLOAT, [COUNT], "values")
    doubled = graph.addVariable(FLOAT, [COUNT], "doubled")
    left = graph.addVariable(INT, [1], "left")
    for index in range(COUNT):
        graph.setTileMapping(values[index : index + 1], index % (last + 1))
    graph.setTileMapping(doubled, last)
    graph.setTileMapping(left, 1)
    double = _computing(graph, "double", Twice, {"values": values, "doubled": doubled}, 0, 20)
    count = _computing(graph, "count", Down, {"before": left, "after": left}, 1, 7)
    three = graph.addConstant(INT, [1], [3], "three")
    graph.setTileMapping(three, 1)
    fetched = graph.addHostToDeviceFIFO("fetched", FLOAT, COUNT)
    stored = graph.addDeviceToHostFIFO("stored", FLOAT, COUNT)
    rows = graph.addRemoteBuffer("rows", FLOAT, COUNT, 2)
    kept = graph.addVariable(FLOAT, [COUNT], "kept")
    graph.setTileMapping(kept, 2)
    function = graph.addFunction(program.Sequence(program.Execute(double)), "twice")
    failing = program.ErrorProgram("never", left)
    return program.Sequence(
        program.Copy(fetched, values),
        program.Copy(three, left, "start"),
        program.Repeat(2, program.Execute(double), "again"),
        program.Call(function),
        program.Call(function),
        program.RepeatWhileTrue(program.Execute(count), left[0], program.Sequence(), "loop"),
        program.RepeatWhileFalse(program.Copy(three, left), left[0], program.Sequence()),
        program.If(left[0], program.Execute(count), failing, "both"),
        program.If(left[0], program.Execute(count), name="one"),
        program.Switch(left[0], [(1, program.Execute(count))], program.Sequence(), "cases"),
        program.Copy(values, doubled, "gather"),
        program.Copy(doubled, kept),
        program.Copy(kept, rows),
        program.Copy(rows, kept),
        program.WriteUndef(kept),
        program.Sync(program.SyncType.INTERNAL),
        program.Sync(program.SyncType.EXTERNAL),
        program.Block(program.Sequence(program.Execute(double)), "block"),
        program.PrintTensor("left", left),
        program.Copy(doubled, stored),
    )


def _computing(
    graph: Graph, name: str, codelet: type[Vertex], fields: dict[str, Any], tile: int, cycles: int
) -> poplar.ComputeSet:
    compute_set = graph.addComputeSet(name)
    graph.addCodelets(codelet)
    vertex = graph.addVertex(compute_set, codelet, fields, tile=tile)
    graph.setPerfEstimate(vertex, cycles)
    return compute_set


def engine(options: dict[str, Any] | None = None, ipus: int = 2, **target: Any) -> poplar.Engine:
    """Make an engine of the program, loaded and connected."""
    made = device(ipus, **target)
    graph = Graph(made.getTarget())
    found = poplar.Engine(graph, built(graph), options)
    found.load(made)
    found.connectStream("fetched", np.arange(COUNT, dtype=np.float32))
    found.connectStream("stored", np.zeros(COUNT, dtype=np.float32))
    return found
