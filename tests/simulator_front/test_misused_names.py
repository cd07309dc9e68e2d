"""Poplar's names given what they do not take: one line that says what would be right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simulator import poplar, poplin, popnn, popops

Setting = tuple[poplar.Graph, poplar.Tensor, poplar.Tensor, Any]


class SumVertex(poplar.Vertex):
    in_ = poplar.Input(poplar.Vector(poplar.FLOAT))
    out = poplar.Output(poplar.FLOAT)
    factor = poplar.FLOAT

    def compute(self) -> None:
        self.out = np.zeros(7)  # type: ignore[assignment]


class Silent(poplar.Vertex):
    in_ = poplar.Input(poplar.FLOAT)


def setting() -> Setting:
    graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())
    data, sums = (graph.addVariable(poplar.FLOAT, [4], name) for name in ("data", "sums"))
    for tensor in (data, sums):
        graph.setTileMapping(tensor, 0)
    return graph, data, sums, graph.addComputeSet("add")


def connected(given: Setting, out: Any) -> Any:
    graph, data, _, add = given
    vertex = graph.addVertex(add, SumVertex, {"in": data, "out": out}, tile=1)
    graph.setCycleEstimate(vertex, 9)
    return vertex


def started(given: Setting, program: Any) -> poplar.Engine:
    engine = poplar.Engine(given[0], program)
    engine.load(poplar.Device(given[0].target))
    return engine


def nested() -> Any:
    program = poplar.program.Sequence(name="loop")
    program.add(poplar.program.Repeat(2, program))
    return program


Wrong = Callable[[Setting], Any]
WRONG: list[tuple[Wrong, str]] = [
    (lambda s: s[0].setTileMapping(s[1], 1.5), "'data': mapped to 1.5; a tile is needed"),
    (lambda s: s[0].setTileMapping(s[1], "0"), "'data': mapped to '0'; a tile is needed"),
    (lambda s: s[0].setTileMapping(s[1], [[(4, 0)]]), "mapping of elements 4 to 0; it has 4"),
    (
        lambda s: s[0].setTileMapping(s[1], [[(0, 2)], [(1, 3)]]),
        "'data': element 1 is mapped twice; each is on one tile",
    ),
    (lambda s: s[0].addVariable("float", [2], "x"), "'x': type is 'float'; one such as"),
    (lambda s: s[0].addVariable(poplar.FLOAT, [2.5], "x"), r"shape is \[2.5\]"),
    (lambda s: s[0].addConstant("half", [2], 0, "c"), "constant 'c': type is 'half'"),
    (lambda s: s[0].addHostToDeviceFIFO("in", "int", 4), "stream 'in': type is 'int'"),
    (lambda s: s[0].addVertex(s[3], int), "a codelet class is needed, not <class 'int'>"),
    (lambda s: s[0].addVertex(s[3], Silent), r"codelet Silent: has no compute\(\)"),
    (lambda s: connected(s, 3), r"SumVertex\[0\] on tile 1, field 'out': connected to 3; what is"),
    (lambda s: connected(s, setting()[2][0]), "a tensor of this graph is needed"),
    (
        lambda s: s[0].setInitialValue(connected(s, s[2][0])["factor"], "abc"),
        r"SumVertex\[0\] on tile 1, field 'factor': values are of type <U3; numbers",
    ),
    (lambda s: poplar.Graph(s[0]), "Graph: needs a target or a device, not Graph"),
    (
        lambda s: poplar.IPUModel("mk2", tilesPerIPU="many"),
        "tilesPerIPU is 'many'; a number from 1",
    ),
    (lambda s: poplar.IPUModel("mk2", tileClockFrequency=0), "tileClockFrequency is 0; a number"),
    (lambda s: started(s, nested()), "Sequence 'loop': contains itself|Repeat '': contains itself"),
    (
        lambda s: started(s, poplar.program.Execute(poplar.ComputeSet(5, "far"))),
        "Execute: compute set 'far' is not of this graph",
    ),
    (
        lambda s: started(s, poplar.program.Copy(setting()[1], s[1])),
        r"Tensor\(data: float\[4\]\) is not of this graph",
    ),
    (
        lambda s: popops.add(s[0], s[1], s[2][:3], poplar.program.Sequence(), "x"),
        "do not broadcast to one shape",
    ),
    (
        lambda s: popops.reduce(
            s[0], s[1], [0, 0], popops.Operation.ADD, poplar.program.Sequence(), "x"
        ),
        r"x/Reduce: dimensions \[0, 0\] of .* different ones of its 1 dimensions are needed",
    ),
]


@pytest.mark.parametrize(("wrong", "said"), WRONG, ids=[said[:30] for _, said in WRONG])
def test_misuse_is_refused_in_one_line(wrong: Wrong, said: str) -> None:
    with pytest.raises(poplar.PoplarError, match=said) as caught:
        wrong(setting())
    assert "\n" not in str(caught.value)


def test_a_vertex_that_computes_too_much_is_named_with_its_tile_and_field() -> None:
    given = setting()
    connected(given, given[2][0])
    engine = started(given, poplar.program.Execute(given[3]))
    with pytest.raises(poplar.PoplarError, match=r"SumVertex\[0\] on tile 1, field 'out': comp"):
        engine.run(0)


FOREIGN: list[Callable[[Setting, Setting], Any]] = [
    lambda mine, other: mine[0].setTileMapping(other[1], 0),
    lambda mine, other: mine[0].setTileMapping(other[1][0], [[(0, 1)]]),
    lambda mine, other: mine[0].getTileMapping(other[1]),
    lambda mine, other: mine[0].setInitialValue(other[1], 1),
    lambda mine, other: mine[0].createHostRead("read", other[1]),
    lambda mine, other: mine[0].createHostWrite("write", other[1]),
    lambda mine, other: mine[0].addVertex(other[0].addComputeSet("theirs"), SumVertex),
]


@pytest.mark.parametrize("wrong", FOREIGN)
def test_what_is_of_another_graph_is_refused(wrong: Callable[[Setting, Setting], Any]) -> None:
    with pytest.raises(poplar.PoplarError, match="is not of this graph"):
        wrong(setting(), setting())


# What the libraries are given: a graph, its tensor, a program, and a tensor of another graph.
LIBRARY: dict[str, Callable[..., Any]] = {
    "expInPlace": lambda g, a, s, b: popops.expInPlace(g, b, s),
    "add": lambda g, a, s, b: popops.add(g, a, b, s),
    "addInPlace": lambda g, a, s, b: popops.addInPlace(g, a, b, s),
    "map": lambda g, a, s, b: popops.map(g, popops.expr._1 * popops.expr._2, [a, b], s),
    "cast": lambda g, a, s, b: popops.cast(g, b, poplar.INT, s),
    "reduce": lambda g, a, s, b: popops.reduce(g, b, [0], popops.Operation.ADD, s),
    "multiSlice": lambda g, a, s, b: popops.multiSlice(
        g, b.expand([1]), g.addConstant(poplar.UNSIGNED_INT, [1, 1], 0), [0], [1], s
    ),
    "scaledAddTo": lambda g, a, s, b: popops.scaledAddTo(g, a, b, 2.0, s),
    "matMul": lambda g, a, s, b: poplin.matMul(g, a.expand([0]), b.expand([1]), s),
    "softmax": lambda g, a, s, b: popnn.nonLinearity(
        g, popnn.NonLinearityType.SOFTMAX, b.expand([0]), s
    ),
}


@pytest.mark.parametrize("name", LIBRARY)
def test_no_library_computes_with_a_tensor_of_another_graph(name: str) -> None:
    graph, data, *_ = setting()
    other = setting()[0].addVariable(poplar.FLOAT, [4], "theirs")
    other.graph.setTileMapping(other, 0)
    with pytest.raises(poplar.PoplarError, match="variable 'theirs':? is not of this graph"):
        LIBRARY[name](graph, data, poplar.program.Sequence(), other)


@pytest.mark.parametrize("how", ["vertex", "copy", "host"])
def test_constants_are_not_written(how: str) -> None:
    given = setting()
    graph, data, *_ = given
    constant = graph.addConstant(poplar.FLOAT, [4], 1, "ones")
    graph.setTileMapping(constant, 2)
    with pytest.raises(poplar.PoplarError, match="writes constant 'ones'"):
        if how == "vertex":
            connected(given, constant[0])
            started(given, poplar.program.Execute(given[3]))
        elif how == "copy":
            poplar.program.Copy(data, constant)
        else:
            graph.createHostWrite("ones", constant)


def test_numbers_of_numpy_are_numbers() -> None:
    given = setting()
    graph, data, sums, _ = given
    graph.setTileMapping(data, np.int64(2))
    graph.setTileMapping(sums, [[], [(np.int32(0), np.int64(4))]])
    vertex = connected(given, sums[0])
    graph.setTileMapping(vertex, np.int64(3))
    assert graph.getTileMapping(sums)[1] == [(0, 4)]
    assert poplar.program.Repeat(np.int64(3), poplar.program.Sequence()).count == 3


def test_devices_and_views_take_numbers_of_numpy() -> None:
    two = np.int64(2)
    target = poplar.IPUModel("tiny", numIPUs=two).getTarget()
    graph = poplar.Graph(target)
    assert poplar.Graph(target, two).getReplicationFactor() == 2
    assert graph.createVirtualGraph(two).getTarget().getNumTiles() == 4
    assert graph.createVirtualGraph(two, np.int64(4)).getTarget().getNumTiles() == 2
    assert poplar.Target.createIPUTarget(two, "ipu2").getNumTiles() == 2944
    assert poplar.DeviceManager().getDevice(two).getId() == 2
    assert type(graph.createReplicatedGraph(two).getTarget().getNumIPUs()) is int


def test_no_part_for_any_tile_maps_nothing() -> None:
    graph, *_ = setting()
    lonely = graph.addVariable(poplar.FLOAT, [2], "lonely")
    graph.setTileMapping(lonely, [[], []])
    assert graph.getTileMapping(lonely, False) == [[], [], [], []]
    with pytest.raises(poplar.invalid_tile_mapping, match="lonely.*: 0 of 2 elements are mapped"):
        graph.getTileMapping(lonely)


def test_copy_to_an_element_that_stands_twice_in_the_tensor() -> None:
    _, data, sums, _ = setting()
    twice = poplar.concat([sums.slice(0, 2), sums.slice(0, 2)])
    with pytest.raises(poplar.PoplarError, match="writes an element of sums twice"):
        poplar.program.Copy(data, twice)
