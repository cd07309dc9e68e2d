"""Programs that end their own run."""

import pytest

from simulator import poplar, popops
from simulator.poplar import FLOAT, INT, PoplarError, program

_1, Const = popops.expr._1, popops.expr.Const
DEVICE = poplar.IPUModel("tiny").createDevice()


def counter():
    """A count that a program adds 1 to, and whether it is 3."""
    graph = poplar.Graph(DEVICE)
    count = graph.addVariable(INT, [], "count")
    graph.setTileMapping(count, 2)
    more = program.Sequence()
    popops.addInPlace(graph, count, 1, more)
    is_three = popops.map(graph, popops.expr.Equal(_1, Const(3)), [count], more)
    graph.createHostRead("count", count)
    return graph, more, is_three


def engine_of(graph, *programs):
    engine = poplar.Engine(graph, list(programs))
    engine.load(DEVICE)
    return engine


def test_a_condition_ends_the_run_when_it_is_first_met():
    graph, more, is_three = counter()
    more.add(program.AbortOnCondition(is_three, "three is too many"))
    engine = engine_of(graph, program.Repeat(2, more), program.Repeat(100, more))
    engine.run(0)
    with pytest.raises(poplar.application_runtime_error, match="^three is too many$"):
        engine.run(1)
    assert engine.readTensor("count") == 3
    engine.run(0)  # 4 and 5 are not 3
    assert engine.readTensor("count") == 5


@pytest.mark.parametrize(("message", "said"), [("stop", "stop"), ("", "Abort: the program ended")])
def test_an_abort_ends_the_run_where_it_stands(message, said):
    graph, more, _ = counter()
    engine = engine_of(graph, program.Sequence(more, program.Abort(message), more))
    with pytest.raises(PoplarError, match=said):
        engine.run()
    assert engine.readTensor("count") == 1
    assert engine.getExecutionProfile()["runs"] == []


def test_without_values_an_abort_ends_the_run_and_a_condition_is_taken_as_not_met():
    graph, more, is_three = counter()
    never = program.AbortOnCondition(is_three, "never")
    stop = program.ErrorProgram("wrong", is_three)
    programs = [program.Repeat(5, program.Sequence(more, never)), program.Abort("stop"), stop]
    engine = poplar.Engine(graph, programs, {"simulator.computeValues": False})
    engine.load(DEVICE)
    engine.run(0)
    for number, message in ((1, "stop"), (2, "wrong")):
        with pytest.raises(poplar.application_runtime_error, match=message):
            engine.run(number)


def test_a_condition_that_is_not_met_takes_the_vote_and_sync_of_an_if():
    cycles, steps = [], []
    for choose in (
        lambda flag: program.AbortOnCondition(flag),
        lambda flag: program.If(flag, program.Sequence()),
    ):
        graph, more, is_three = counter()
        engine = engine_of(graph, program.Sequence(more, choose(is_three)))
        engine.run()
        cycles.append(engine.getExecutionProfile()["runs"][0]["cycles"])
        steps.append([one["type"] for one in engine.getGraphProfile()["programs"]])
    assert cycles[0] == cycles[1]
    assert steps[0].count("SetLocalConsensusFromVar") == 1
    assert steps[0][-2:] == ["SetLocalConsensusFromVar", "Sync"]


def test_an_abort_is_named_among_the_programs_as_written():
    graph, more, is_three = counter()
    guarded = program.Sequence(more, program.AbortOnCondition(is_three, name="guard"))
    choice = program.If(is_three, program.Abort(name="always"))
    engine = engine_of(graph, program.Sequence(guarded, choice))
    written = engine.getGraphProfile()["writtenPrograms"]
    named = set(zip(written["type"], written["name"], strict=True))
    assert {("AbortOnCondition", "guard"), ("Abort", "always")} <= named


def test_what_no_abort_can_be_is_refused():
    graph, _, is_three = counter()
    pair = graph.addVariable(FLOAT, [2], "pair")
    with pytest.raises(PoplarError, match="AbortOnCondition: .*pair.* one element"):
        program.AbortOnCondition(pair, "no")
    with pytest.raises(PoplarError, match="Abort: message is 3; a text is needed"):
        program.Abort(3)
    with pytest.raises(PoplarError, match="AbortOnCondition: message is 3; a text is needed"):
        program.AbortOnCondition(is_three, 3)
