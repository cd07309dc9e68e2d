"""Programs that decide at run time, against the same thing written in Python."""

import io

import numpy as np
import pytest

from simulator import poplar, popops
from simulator.poplar import program


class Session:
    """A graph on the tiny target with one accumulator that programs add to."""

    def __init__(self):
        self.device = poplar.IPUModel("tiny").createDevice()
        self.graph = poplar.Graph(self.device.getTarget())
        self.total = self.variable(poplar.INT, 1, "total", 1)
        self.graph.createHostRead("total", self.total)
        self.engine = None

    def variable(self, dtype, size, name, tile=0):
        tensor = self.graph.addVariable(dtype, [size], name)
        self.graph.setTileMapping(tensor, tile)
        return tensor

    def constant(self, dtype, value, tile=0):
        tensor = self.graph.addConstant(dtype, [1], [value])
        self.graph.setTileMapping(tensor, tile)
        return tensor

    def add(self, value):
        body = program.Sequence()
        popops.addInPlace(self.graph, self.total, self.constant(poplar.INT, value, 1), body)
        return body

    def written(self, dtype, name="flag"):
        tensor = self.variable(dtype, 1, name)
        self.graph.createHostWrite(name, tensor)
        return tensor

    def run(self, *programs, index=0, **written):
        if self.engine is None:
            self.engine = poplar.Engine(self.graph, list(programs))
            self.engine.load(self.device)
        for name, value in written.items():
            self.engine.writeTensor(name, [value])
        self.engine.run(index)
        return int(self.engine.readTensor("total")[0])


@pytest.fixture
def session():
    return Session()


@pytest.mark.parametrize("dtype", [poplar.BOOL, poplar.INT, poplar.FLOAT, poplar.HALF])
@pytest.mark.parametrize(("value", "expected"), [(0, 20), (1, 3)])
def test_if_runs_the_body_of_its_predicate(session, dtype, value, expected):
    choice = program.If(session.written(dtype), session.add(3), session.add(20))
    assert session.run(choice, flag=value) == expected


def test_an_if_without_else_does_nothing_for_zero(session):
    choice = program.If(session.written(poplar.INT), session.add(3))
    assert [session.run(choice, flag=value) for value in (0, -1, 0, 7)] == [0, 3, 3, 6]


@pytest.mark.parametrize(("value", "expected"), [(3, 1), (-7, 10), (0, 100), (8, 1000)])
def test_switch_runs_the_case_of_its_value_or_the_default(session, value, expected):
    cases = [(3, session.add(1)), (-7, session.add(10))]
    switch = program.Switch(session.written(poplar.INT), cases, session.add(1000))
    switch.add(0, session.add(100))
    assert session.run(switch, flag=value) == expected


def test_a_switch_without_default_skips_what_no_case_names(session):
    switch = program.Switch(session.written(poplar.UNSIGNED_INT)).add(4, session.add(5))
    assert [session.run(switch, flag=value) for value in (4, 5, 4)] == [5, 5, 10]


# The check counts down first: from 7 it ends at 0 after six turns, from 1 at once.
@pytest.mark.parametrize(
    ("kind", "count", "turns"),
    [("True", 7, 6), ("True", 1, 0), ("False", 7, 0), ("False", 1, 1)],
)
def test_a_while_loop_checks_before_every_turn(session, kind, count, turns):
    left = session.written(poplar.INT, "left")
    step = program.Sequence()
    popops.subInPlace(session.graph, left, session.constant(poplar.INT, 1), step)
    loop = getattr(program, f"RepeatWhile{kind}")(step, left, session.add(1))
    assert session.run(loop, left=count) == turns


def test_a_function_is_run_wherever_it_is_called(session):
    function = session.graph.addFunction(session.add(2), "two")
    call = program.Call(function)
    nested = session.graph.addFunction(program.Repeat(3, call))
    assert session.run(program.Sequence(call, program.Call(nested), session.add(100))) == 108


def test_an_engine_runs_the_program_of_a_number(session):
    programs = session.add(1), session.add(10), session.add(100)
    assert [session.run(*programs, index=index) for index in (1, 0, 2, 1)] == [10, 11, 111, 121]


def test_blocks_and_syncs_change_no_value(session):
    block = program.Block(program.Block(session.add(4), "inner"), "outer")
    syncs = [program.Sync(kind) for kind in poplar.program.SyncType]
    assert session.run(program.Sequence(*syncs, block)) == 4


def test_an_error_program_ends_the_run_with_its_message_and_tensor(session):
    flag = session.written(poplar.INT)
    body = program.If(flag, program.ErrorProgram("bad state", flag), session.add(1))
    with pytest.raises(poplar.PoplarError, match=r"bad state: flag is \{7\}"):
        session.run(body, flag=7)
    assert session.run(body, flag=0) == 1


@pytest.mark.parametrize(
    ("first", "limit", "step"), [(0, 5, 1), (2, 11, 3), (4, -3, -2), (3, 3, 1), (5, 2, 1)]
)
@pytest.mark.parametrize("known_at", ["compile time", "run time"])
def test_a_counted_loop_counts_as_range_does(session, first, limit, step, known_at):
    count = session.variable(poplar.INT, 1, "count")
    bounds = [first, limit, step]
    if known_at == "run time":
        bounds = [session.written(poplar.INT, name) for name in ("first", "limit", "step")]
    body = program.Sequence()
    popops.addInPlace(session.graph, session.total, count, body)
    loop = popops.countedForLoop(session.graph, count, *bounds, body)
    written = {} if known_at == "compile time" else {"first": first, "limit": limit, "step": step}
    assert session.run(loop, **written) == sum(range(first, limit, step))


def test_counted_loops_hand_their_count_to_the_body(session):
    seen = io.StringIO()
    graph = session.graph

    def body(count):
        return program.PrintTensor("count", count)

    programs = popops.countedLoop(graph, 2, body), popops.countedLoop(graph, 4, 9, 2, body)
    session.engine = poplar.Engine(graph, program.Sequence(*programs))
    session.engine.setPrintStream(seen)
    session.engine.load(session.device)
    session.engine.run()
    assert seen.getvalue().split() == [
        f"{part}" for n in (0, 1, 4, 6, 8) for part in ("count:", f"{{{n}}}")
    ]  # noqa: E501


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ((0, 4, 0), "step must be greater than zero."),
        ((4, 0, -1), "step must be greater than zero."),
        ((4, 4, 1), "begin must be less than end"),
        ((0.5, 4, 1), "begin is 0.5; a whole number is needed"),
        ((0, 1 << 32, 1), "end is 4294967296; an unsigned int is needed"),
        ((5, 4, 2), "begin must be less than end"),
        ((0,), "begin must be less than end"),
        ((-1, 4, 1), "begin is -1; 0 or more is needed"),
    ],
)
def test_bounds_that_run_no_loop_are_refused_as_poplibs_does(session, bounds, said):
    with pytest.raises(poplar.PoplarError, match=f"countedLoop: {said}"):
        popops.countedLoop(session.graph, *bounds, lambda count: session.add(1))


def test_the_name_of_a_counted_loop_may_stand_last(session):
    body = session.add(1)
    loops = [
        popops.countedForLoop(session.graph, 0, 2, 1, body, "a"),
        popops.countedLoop(session.graph, 2, lambda count: body, "b"),
    ]
    assert [loop.name for loop in loops] == ["a/countedForLoop", "b/countedLoop/countedForLoop"]


def test_the_cycles_of_a_loop_are_those_of_the_turns_it_took(session):
    count = session.variable(poplar.INT, 1, "count")
    limit = session.written(poplar.INT, "limit")
    loop = popops.countedForLoop(session.graph, count, 0, limit, 1, session.add(1))
    cycles = []
    for turns in (0, 1, 2, 10):
        session.run(loop, limit=turns)
        cycles.append(session.engine._runner._clock.max())
    took = np.diff([0, *cycles])
    assert took[2] - took[1] == took[1] - took[0] > 0
    assert took[3] - took[0] == 10 * (took[1] - took[0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda s, t: program.If(s.total.expand([0]).broadcast(2, 0), t), "one element"),
        (lambda s, t: program.Switch(s.written(poplar.FLOAT)), "one of these types"),
        (lambda s, t: program.Switch(s.total, [(1, t), (1, t)]), "case 1 stands there twice"),
        (lambda s, t: program.Call("two"), "needs a function"),
        (lambda s, t: program.RepeatWhileTrue(t, s.total, None), "a program is needed"),
        (lambda s, t: program.Block(t, ""), "a text is needed"),
        (lambda s, t: program.Sync("internal"), "SyncType"),
    ],
)
def test_a_program_that_cannot_run_is_refused(session, make, message):
    with pytest.raises(poplar.PoplarError, match=message):
        make(session, session.add(1))


def test_a_function_that_calls_itself_is_refused(session):
    body = program.Sequence()
    body.add(program.Call(session.graph.addFunction(body, "again")))
    with pytest.raises(poplar.PoplarError, match="contains itself"):
        poplar.Engine(session.graph, body)


def test_a_loop_without_end_is_refused_by_its_name(session, monkeypatch):
    monkeypatch.setattr("simulator.runtime.flow.MAX_ROWS", 1000)
    endless = program.RepeatWhileTrue(
        program.Sequence(), session.constant(poplar.INT, 1), program.Sequence(), name="spin"
    )
    with pytest.raises(poplar.PoplarError, match="RepeatWhile 'spin': .* may have no end"):
        session.run(endless)
