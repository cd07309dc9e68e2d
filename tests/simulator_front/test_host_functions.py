"""Functions of the host that a program calls, and what else public programs are built of."""

import io

import numpy as np
import pytest

from simulator import poplar, popops, poputil
from simulator.poplar import FLOAT, INT, HostFunctionArgument, PoplarError, program

LINEAR = poplar.VariableMappingMethod.LINEAR
DEVICE = poplar.IPUModel("tiny").createDevice()


def calling(options=None, times=1):
    """A program that adds 1 to x, has the host divide 120 by the sum, and reads q and the rest."""
    graph = poplar.Graph(DEVICE)
    x = graph.addVariable(INT, [3], LINEAR, "x")
    q = graph.addVariable(FLOAT, [3], LINEAR, "q")
    rest = graph.addVariable(INT, [1], LINEAR, "rest")
    divide = graph.addHostFunction("divide", [HostFunctionArgument(INT, 3)], [(FLOAT, 3), (INT, 1)])
    more = program.Sequence()
    popops.addInPlace(graph, x, 1, more)
    more.add(program.Call(divide, [x], [q, rest], "ask"))
    for name, tensor in (("q", q), ("rest", rest)):
        graph.createHostRead(name, tensor)
    return poplar.Engine(graph, program.Repeat(times, more), options), graph, divide, x


@pytest.mark.parametrize(
    "options", [{}, {"exchange.enablePrefetch": True, "exchange.streamBufferOverlap": "None"}]
)
def test_a_host_function_takes_what_was_computed_and_gives_what_is_computed_on(options):
    engine, *_ = calling(options, times=3)
    taken = []

    def divide(inputs, outputs):
        taken.append(inputs[0].tolist())
        outputs[0][:] = 120 / inputs[0]
        outputs[1][:] = len(taken)

    engine.connectHostFunction("divide", 0, divide)
    engine.loadAndRun(DEVICE)
    assert taken == [[1] * 3, [2] * 3, [3] * 3]
    assert engine.readTensor("q").tolist() == [40.0] * 3
    assert engine.readTensor("rest").tolist() == [3]


def test_a_call_of_the_host_is_a_copy_for_each_argument():
    engine, *_ = calling()
    engine.connectHostFunction("divide", lambda inputs, outputs: None)
    engine.loadAndRun(DEVICE)
    graph = engine.getGraphProfile()
    written = graph["writtenPrograms"]
    assert "ask" in written["name"] and list(written["type"]).count("Copy") == 3
    names = [one.get("name") for one in graph["programs"] if one["type"] == "StreamCopy"]
    assert names[-3:] == ["divide/input0", "divide/output0", "divide/output1"]


def test_what_gives_without_taking_is_called_once_a_call_and_each_replica_has_its_own():
    graph = poplar.Graph(poplar.IPUModel("tiny", numIPUs=2).createDevice(), 2)
    x = graph.addVariable(INT, [2], LINEAR, "x")
    graph.createHostRead("x", x)
    give = graph.addHostFunction("give", [], [(INT, 2)])
    engine = poplar.Engine(graph, program.Call(give, [], [x]))
    for replica in range(2):
        engine.connectHostFunction("give", replica, lambda _, out, r=replica: out[0].fill(10 + r))
    engine.loadAndRun(poplar.IPUModel("tiny", numIPUs=2).createDevice())
    assert engine.readTensor("x").tolist() == [[10, 10], [11, 11]]


def test_what_cannot_be_called_is_refused():
    engine, graph, divide, x = calling()
    with pytest.raises(PoplarError, match="host function 'no': unknown; host functions are divide"):
        engine.connectHostFunction("no", print)
    with pytest.raises(PoplarError, match="'divide': 3 cannot be called"):
        engine.connectHostFunction("divide", 3)
    with pytest.raises(PoplarError, match="'divide': there is one of this name already"):
        graph.addHostFunction("divide", [(INT, 1)], [])
    with pytest.raises(PoplarError, match="'divide': 0 outputs; it has 2"):
        program.Call(divide, [x], [])
    engine.load(DEVICE)
    with pytest.raises(PoplarError, match="divide/input0"):
        engine.run()


def test_a_kept_executable_has_its_host_functions():
    engine, *_ = calling()
    file = io.BytesIO()
    engine.serializeExecutable(file)
    file.seek(0)
    again = poplar.Engine(poplar.Executable.deserialize(file))
    again.connectHostFunction("divide", lambda taken, out: out[0].fill(taken[0].sum()))
    again.loadAndRun(DEVICE)
    assert again.readTensor("q").tolist() == [3.0] * 3


# Of 16 tiles, 4 are used: 128 bytes of floats, at least, each.
@pytest.mark.parametrize(
    ("arguments", "tiles"),
    [
        ((5,), [5, 6, 7, 8]),
        ((14,), [14, 15, 0, 1]),
        ((2, False), [13, 12, 11, 10]),
        ((13, False), [2, 1, 0, 15]),
        ((0, 0, 5), [5, 6, 7, 8]),
        ((64, 1, 15, False), [0, 15]),
    ],
)
def test_a_tensor_is_spread_from_a_tile_on_upward_or_downward(arguments, tiles):
    graph = poplar.Graph(poplar.IPUModel("tiny", tilesPerIPU=16).createDevice())
    x = graph.addVariable(FLOAT, [128], "x")
    poputil.mapTensorLinearlyWithOffset(graph, x, *arguments)
    each = 128 // len(tiles)
    by_tile = {tile: parts for tile, parts in enumerate(graph.getTileMapping(x)) if parts}
    assert by_tile == {
        tile: [(each * place, each * place + each)] for place, tile in enumerate(tiles)
    }
    with pytest.raises(PoplarError, match="offset is 16; a tile from 0 to 15 is needed"):
        poputil.mapTensorLinearlyWithOffset(graph, x, 16)


def test_what_is_assumed_equal_takes_no_time():
    cycles = []
    for assumed in (False, True):
        graph = poplar.Graph(DEVICE)
        x = graph.addVariable(INT, [3], LINEAR, "x")
        prog = program.Sequence()
        popops.addInPlace(graph, x, 1, prog)
        if assumed:
            prog.add(program.AssumeEqualAcrossReplicas(x, "same"))
        graph.createHostRead("x", x)
        engine = poplar.Engine(graph, prog)
        engine.loadAndRun(DEVICE)
        cycles.append(engine.getExecutionProfile()["runs"][0]["cycles"])
        np.testing.assert_array_equal(engine.readTensor("x"), [1, 1, 1])
    assert cycles[0] == cycles[1] > 0


def test_the_timing_between_two_stamps_is_the_hosts_and_the_devices():
    engine, *_ = calling()
    engine.connectHostFunction("divide", lambda taken, given: None)
    engine.load(DEVICE)
    stamps = [engine.getTimeStamp()]
    for _ in range(3):
        engine.run()
        stamps.append(engine.getTimeStamp())
    runs = engine.getExecutionProfile()["runs"]
    cycles = sum(run["cycles"] for run in runs[:2])
    assert stamps == sorted(stamps) and stamps[2].cycles - stamps[0].cycles == cycles
    text = engine.reportTiming(stamps[0], stamps[2])
    microseconds = cycles / 1330
    assert text.endswith(
        f" ms on the host; {cycles:,} cycles ({microseconds:,.2f} us) on the device"
    )
    with pytest.raises(PoplarError, match="reportTiming: end is 3; TimerTimePoint is needed"):
        engine.reportTiming(stamps[0], 3)
