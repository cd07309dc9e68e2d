"""The tags that programs become, by the table of the user guide (chapter "Profiling")."""

import numpy as np
import pytest

from simulator import poplar
from simulator.compiler.compile import compile_graph
from simulator.graph.graph import Graph
from simulator.graph.machine.target import TARGETS
from simulator.graph.program import (
    Block,
    Call,
    ErrorProgram,
    If,
    Repeat,
    RepeatWhileFalse,
    RepeatWhileTrue,
    Sequence,
    Switch,
    WriteUndef,
)
from tests.stream_copies import PHASES

PREAMBLE = 14  # rows: the control Sequence, its preamble and the Switch


@pytest.fixture
def graph():
    return Graph(TARGETS["tiny"])


@pytest.fixture
def flag(graph):
    tensor = graph.addVariable(poplar.INT, [1], "flag")
    graph.setTileMapping(tensor, 2)
    return tensor


def tree(executable, row=PREAMBLE):
    """Write a program and those below it as nested tuples of types."""
    programs = executable.lowered.programs
    below = [tree(executable, child) for child in programs[row].children]
    return (programs[row].type, *below) if below else programs[row].type


def lowered(graph, *nodes):
    executable = compile_graph(graph, [Sequence(*nodes)])
    return executable, tree(executable)


@pytest.fixture
def body(flag):
    return WriteUndef(flag)


CONSENSUS = ("SetLocalConsensusFromVar", "Sync")
BODY = ("Sequence", "WriteUndef")


def test_an_if_follows_a_consensus_and_a_sync(graph, flag, body):
    _, found = lowered(graph, If(flag, body), If(flag, body, body))
    assert found == ("Sequence", *CONSENSUS, ("If", BODY), *CONSENSUS, ("IfElse", BODY, BODY))


@pytest.mark.parametrize("loop", [RepeatWhileTrue, RepeatWhileFalse])
def test_a_while_loop_is_a_check_with_its_consensus_and_a_body(graph, flag, body, loop):
    _, found = lowered(graph, loop(body, flag, body))
    check = ("Sequence", "WriteUndef", *CONSENSUS)
    assert found == ("Sequence", ("RepeatWhile", check, BODY))


def test_a_switch_follows_the_broadcast_of_its_value(graph, flag, body):
    executable, found = lowered(graph, Switch(flag, [(1, body), (5, body)], body, "choose"))
    assert found == ("Sequence", "Sync", "DoExchange", ("Switch", BODY, BODY, BODY))
    exchange = executable.lowered.exchanges[1]
    assert exchange.sent.tolist() == [0, 0, 4, 0]
    assert exchange.received.tolist() == [4, 4, 0, 4]


def test_a_call_names_its_function_which_is_lowered_once(graph, flag, body):
    function = graph.addFunction(Sequence(body, body), "twice")
    executable, found = lowered(graph, Call(function), Repeat(2, Call(function)))
    assert found == ("Sequence", "Call", ("Repeat", "Call"))
    calls = [row for row in executable.lowered.programs if row.type == "Call"]
    assert [row.target for row in calls] == [0, 0]
    (row,) = executable.lowered.functions
    assert tree(executable, row) == ("Sequence", "WriteUndef", "WriteUndef")


def test_blocks_nest_as_named_sequences(graph, body):
    executable, found = lowered(graph, Block(Block(body, "inner"), "outer"))
    assert found == ("Sequence", ("Sequence", ("Sequence", "WriteUndef")))
    blocks = [row.name for row in executable.lowered.programs if row.block]
    assert blocks == ["outer", "inner"]


def test_an_error_brings_its_tensor_to_the_host(graph, flag):
    executable, found = lowered(graph, ErrorProgram("wrong", flag))
    assert found == ("Sequence", "Sync", *PHASES, "Sync")
    assert executable.lowered.host_exchanges[-1].sent.tolist() == [0, 0, 4, 0]


def test_a_predicate_is_read_where_the_loop_checks(graph, flag, body):
    executable, _ = lowered(graph, RepeatWhileTrue(Sequence(), flag, body))
    access = executable.lowered.access
    types = np.array([row.type for row in executable.lowered.programs])
    reads = types[access.program[(access.variable == 0) & ~access.write]]
    assert reads.tolist() == ["SetLocalConsensusFromVar"]
