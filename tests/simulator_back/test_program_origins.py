"""Which of the user's programs each compiled one was made of, at the place where it stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pva import schema
from simulator import poplar
from simulator.compiler.compile import compile_graph
from simulator.compiler.executable import Executable, Lowered
from simulator.compiler.instrumentation import NO_INSTRUMENTATION, BlockOptions, Instrumentation
from simulator.compiler.lowering.lower import lower
from simulator.graph.graph import Graph
from simulator.graph.machine.target import TARGETS
from simulator.graph.program import (
    Block,
    Call,
    Copy,
    If,
    Program,
    Repeat,
    RepeatWhileFalse,
    Sequence,
    Switch,
    Sync,
    WriteUndef,
)  # fmt: skip
from simulator.profile.written import TYPES, written_tables


@pytest.fixture
def graph() -> Graph:
    return Graph(TARGETS["tiny"])


@pytest.fixture
def flag(graph: Graph) -> Any:
    tensor = graph.addVariable(poplar.INT, [1], "flag")
    graph.setTileMapping(tensor, 2)
    return tensor


def became(lowered: Lowered, node: Program) -> list[list[str]]:
    """List the types that a program became, at each place where it stands."""
    places = [row for row, each in enumerate(lowered.written) if each.node is node]
    return [
        [p.type for p, o in zip(lowered.programs, lowered.origins, strict=True) if o == place]
        for place in places
    ]


def test_each_program_is_of_the_one_that_was_written_there(graph: Graph, flag: Any) -> None:
    leaf = WriteUndef(flag, "leaf")
    loop = RepeatWhileFalse(leaf, flag, leaf)
    choice = If(flag, leaf)
    function = graph.addFunction(Sequence(leaf), "shared")
    calls = Call(function), Call(function)
    switch = Switch(flag, [(3, leaf)])
    around = Repeat(2, Block(Sequence(loop, choice), "block"))
    lowered = lower(graph, [Sequence(around, *calls, switch, Sync())])
    assert became(lowered, loop) == [
        ["RepeatWhile", "Sequence", "SetLocalConsensusFromVar", "Sync"]
    ]
    assert became(lowered, choice) == [["SetLocalConsensusFromVar", "Sync", "If"]]
    assert became(lowered, switch) == [["Sync", "DoExchange", "Switch"]]
    assert [became(lowered, call) for call in calls] == [[["Call"]]] * 2
    # A body that is no Sequence gets one of its own. The function stands there once.
    assert became(lowered, leaf) == [
        ["WriteUndef"], ["Sequence", "WriteUndef"], ["Sequence", "WriteUndef"],
        ["Sequence", "WriteUndef"], ["WriteUndef"],
    ]  # fmt: skip
    roles = [each.role for each in lowered.written if each.node is leaf]
    assert roles == ["condition", "body", "true", "case 3", ""]
    assert lowered.origins[0] == -1


def test_nothing_of_the_compiler_alone_lies_in_what_was_written(graph: Graph, flag: Any) -> None:
    copied = graph.addVariable(poplar.INT, [1], "copied")
    graph.setTileMapping(copied, 0)
    program = Sequence(Block(Repeat(3, Copy(flag, copied)), "block"), Copy(copied, flag))
    recorded = Instrumentation(compute="device", blocks=BlockOptions(blocks="block"))
    for instrumentation in (NO_INSTRUMENTATION, recorded):
        lowered = lower(graph, [program], instrumentation)
        for parent, child in edges(lowered):
            own, above = lowered.origins[child], lowered.origins[parent]
            assert own == above or (own >= 0 and lowered.written[own].parent == above)


def edges(lowered: Lowered) -> Iterator[tuple[int, int]]:
    for row, program in enumerate(lowered.programs):
        yield from ((row, child) for child in program.children)


def test_a_row_tells_what_a_program_says(graph: Graph, flag: Any) -> None:
    stream = graph.addHostToDeviceFIFO("feed", poplar.INT, 1)
    program = Sequence(Copy(stream, flag, "load"), Repeat(5, Sequence(), "five"), If(flag, Sync()))
    executable: Executable = compile_graph(graph, [program])
    table = written_tables(executable.lowered)["written_programs"]
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    known = {
        "source": "stream feed",
        "destination": "flag",
        "bytes": 4,
        "name": "load",
        "parent": 0,
    }
    assert rows[1] | known == rows[1]
    assert rows[2] | {"type": TYPES["Repeat"], "count": 5, "name": "five"} == rows[2]
    assert (rows[4]["source"], rows[5]["role"]) == ("flag", "true")


def test_every_class_of_program_has_its_word() -> None:
    assert set(schema.WRITTEN_TYPES) == {each.__name__ for each in leaves(Program)}


def leaves(cls: type) -> Iterator[type]:
    for below in cls.__subclasses__():
        if below.__module__ == Program.__module__:
            yield below
            yield from leaves(below)
