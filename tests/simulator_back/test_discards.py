"""Memory of values goes back once nothing needs them, and not before."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import HealthCheck, given, settings

from simulator import poplar
from simulator.poplar import FLOAT, program
from simulator.runtime import discards
from simulator.runtime.storage import Storage
from tests.random_programs import Drawn
from tests.simulator_back.test_random_programs import Session, compare, drawn_programs, wanted

ELEMENTS = discards.LEAST_BYTES // 4


class Copies:
    """A graph with four variables of as many bytes as are worth it, and one reader: the host."""

    def __init__(self, elements: int = ELEMENTS) -> None:
        device = poplar.IPUModel("mk2").createDevice()
        self.graph = poplar.Graph(device.getTarget())
        self.a, self.b, self.c, self.read = (self._variable(name, elements) for name in "abcr")
        self.graph.createHostRead("read", self.read)
        self.graph.createHostWrite("a", self.a)

    def _variable(self, name: str, elements: int) -> poplar.Tensor:
        variable = self.graph.addVariable(FLOAT, [elements], name)
        self.graph.setTileMapping(variable, 0)
        return variable

    def dead_after(self, *steps: program.Program) -> dict[str, list[str]]:
        """Name what is dead after each copy, by the names of both."""
        engine = poplar.Engine(self.graph, program.Sequence(*steps))
        executable = engine.executable.compiled
        names = {variable.offset: variable.name for variable in executable.graph.variables}
        return {
            action.name: [names[begin] for begin, _ in parts]
            for action, parts in discards.discards_of(executable).items()
        }

    def copy(self, source: poplar.Tensor, target: poplar.Tensor, name: str) -> program.Copy:
        return program.Copy(source, target, name=name)


def test_a_variable_is_dead_once_its_last_reader_has_run() -> None:
    g = Copies()
    steps = g.copy(g.a, g.b, "1"), g.copy(g.b, g.c, "2"), g.copy(g.c, g.read, "3")
    # `a` is the host's, what was in `r` is replaced by "3", and behind that all ends.
    assert g.dead_after(*steps) == {"1": ["r"], "2": ["b"]}


def test_what_the_next_turn_of_a_loop_reads_is_not_dead() -> None:
    g = Copies()
    turn = g.copy(g.a, g.b, "1"), g.copy(g.b, g.c, "2"), g.copy(g.c, g.a, "3")
    loop = program.Repeat(3, program.Sequence(*turn))
    dead = g.dead_after(loop, g.copy(g.a, g.read, "4"))
    assert dead == {"1": ["a", "r"], "2": ["b"]}  # "3" writes `a` for the next turn


def test_what_one_of_two_calls_still_needs_is_not_dead() -> None:
    g = Copies()
    function = g.graph.addFunction(program.Sequence(g.copy(g.b, g.c, "1"), g.copy(g.c, g.a, "2")))
    call, first, last = program.Call(function), g.copy(g.a, g.b, "0"), g.copy(g.a, g.read, "3")
    # The second call is the last to need `b`, the first one is not.
    assert "b" not in g.dead_after(first, call, call, last).get("1", [])
    assert "b" in g.dead_after(first, call, first, call, last)["1"]


def test_small_variables_are_not_worth_it() -> None:
    g = Copies(ELEMENTS - 1)
    steps = g.copy(g.a, g.b, "1"), g.copy(g.b, g.c, "2"), g.copy(g.c, g.read, "3")
    assert g.dead_after(*steps) == {}


def test_discarded_memory_is_zero_and_its_neighbours_are_not() -> None:
    g = Copies()
    storage = Storage(g.graph)
    storage.arena[:] = 1
    page = 4096  # at most: whole pages alone go back
    storage.discard([(page + 1, 3 * page), (5 * page, 5 * page)])
    assert set(np.flatnonzero(storage.arena != 1) // page) <= {2}


@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=[*HealthCheck])
@given(drawn_programs())
def test_what_is_given_back_may_be_anything(drawn: Drawn) -> None:
    chance = np.random.default_rng(11)

    def overwrite(storage: Storage, parts: list[tuple[int, int]]) -> None:
        for begin, end in parts:
            storage.arena[begin:end] = chance.integers(0, 2, end - begin)

    machine: Any = drawn.model()
    with patch.object(discards, "LEAST_BYTES", 1), patch.object(Storage, "discard", overwrite):
        session = Session(drawn, "")
        for index in drawn.runs:
            machine.run(drawn.programs[index].node, drawn.together)
            session.engine.run(index)
    compare(drawn, session.results(), wanted(drawn, machine))
