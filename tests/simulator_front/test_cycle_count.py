"""Programs that measure themselves, against the clock by hand and against their reports."""

import numpy as np
import pytest

from pva import openReport
from simulator import poplar, popops
from simulator.poplar import INT, UNSIGNED_INT, PoplarError, SyncType, program


class Busy(poplar.SupervisorVertex):
    """Does nothing for as long as its estimate says."""

    def compute(self):
        pass


def machine(**members):
    device = poplar.IPUModel("tiny", **members).createDevice()
    return device, poplar.Graph(device.getTarget())


def busy(graph, **cycles):
    """Keep tiles (t0=1000: tile 0) busy for so many cycles."""
    compute_set = graph.addComputeSet("busy")
    for tile, count in cycles.items():
        vertex = graph.addVertex(compute_set, Busy, tile=int(tile[1:]))
        graph.setPerfEstimate(vertex, count)
    return program.Sequence(program.Execute(compute_set))


def run(device, graph, *programs, options=None, **read):
    for name, tensor in read.items():
        graph.createHostRead(name, tensor)
    engine = poplar.Engine(graph, list(programs), options)
    engine.load(device)
    engine.run()
    return engine


def cycles(words):
    """Put two words together as a program on the host does."""
    low, high = map(int, np.asarray(words).reshape(-1))
    return high << 32 | low


def test_a_sequence_on_one_tile_takes_its_cycles_and_a_sync():
    device, graph = machine()
    work = busy(graph, t2=1000)
    count = poplar.cycleCount(graph, work, 2, SyncType.INTERNAL)
    found = run(device, graph, work, count=count).readTensor("count")
    delay = graph.getTarget().sync_delay_by_tile()[2]
    assert found.dtype == np.uint32
    assert cycles(found) == 1000 + delay


def test_a_tile_that_has_less_to_do_counts_until_the_last_is_ready():
    device, graph = machine()
    work = busy(graph, t0=1000, t3=5000)
    count = poplar.cycleCount(graph, work, 0, SyncType.INTERNAL)
    delays = graph.getTarget().sync_delay_by_tile()
    # Both leave the first sync; tile 0 reads the clock 39 cycles later; both leave the second.
    expected = 5000 + delays[3] - 39
    assert cycles(run(device, graph, work, count=count).readTensor("count")) == expected


def test_the_count_is_the_time_between_the_two_steps_of_the_report(tmp_path):
    device, graph = machine()
    work = program.Sequence(program.Repeat(7, busy(graph, t0=90, t1=400)), busy(graph, t1=33))
    count = poplar.cycleCount(graph, work, 1, SyncType.EXTERNAL, "timer")
    options = {"autoReport.all": True, "autoReport.directory": str(tmp_path)}
    engine = run(device, graph, work, options=options, count=count)
    steps = openReport(str(tmp_path / "profile.pop")).execution.steps
    stamped = {step.program.name: step.ipus[0].activeCycles for step in steps}
    begin, end = stamped["timer/timeCS_1"].cyclesTo.max, stamped["timer/timeCS_2"].cyclesFrom.min
    assert cycles(engine.readTensor("count")) == end - begin


def test_a_stream_takes_the_count_of_every_turn_of_a_loop_that_values_end():
    device, graph = machine()
    left = graph.addVariable(INT, [1], "left")
    graph.setTileMapping(left, 0)
    graph.setInitialValue(left, [3])
    work = busy(graph, t0=200)
    count = poplar.cycleCount(graph, work, 0, SyncType.INTERNAL)
    out = graph.addDeviceToHostFIFO("counts", UNSIGNED_INT, 2)
    body = program.Sequence(work, program.Copy(count, out))
    popops.subInPlace(graph, left, 1, body)
    engine = poplar.Engine(graph, program.RepeatWhileTrue(program.Sequence(), left[0], body))
    counts = np.zeros((3, 2), np.uint32)
    engine.connectStream("counts", counts)
    engine.load(device)
    engine.run()
    expected = 200 + graph.getTarget().sync_delay_by_tile()[0]
    assert counts.tolist() == [[expected, 0]] * 3


def test_a_count_of_more_than_32_bits_has_its_high_word_second():
    device, graph = machine()
    work = busy(graph, t0=1 << 33)
    count = poplar.cycleCount(graph, work, 0, SyncType.INTERNAL)
    found = run(device, graph, work, count=count).readTensor("count")
    assert found.tolist() == [graph.getTarget().sync_delay_by_tile()[0], 2]


def test_stamps_of_several_tiles_go_on_from_run_to_run():
    device, graph = machine()
    whole = program.Sequence()
    before = poplar.cycleStamp(graph, whole, [0, 2], SyncType.INTERNAL)
    whole.add(busy(graph, t0=500))
    after = poplar.cycleStamp(graph, whole, 2, SyncType.INTERNAL)
    engine = run(device, graph, whole, first=before[0], second=before[1], after=after)
    first, second, last = (cycles(engine.readTensor(n)) for n in ("first", "second", "after"))
    delays = graph.getTarget().sync_delay_by_tile()
    # Tiles leave a sync by their way back, half of the round trip, and are done 39 cycles later.
    assert second - first == delays[2] // 2 - delays[0] // 2
    assert last - first == 500 + (delays[0] + 1) // 2 + delays[2] // 2 + 39
    engine.run()
    assert cycles(engine.readTensor("first")) > last


def test_every_replica_counts_its_own_way():
    device = poplar.IPUModel("tiny", numIPUs=2).createDevice()
    graph = poplar.Graph(device.getTarget(), poplar.replication_factor(2))
    number = graph.addReplicationIndexConstant()
    graph.setTileMapping(number, 0)
    choice = program.If(number, busy(graph, t0=3000), busy(graph, t0=1000))
    work = program.Sequence(choice)
    count = poplar.cycleCount(graph, work, 0, SyncType.INTERNAL)
    first, second = run(device, graph, work, count=count).readTensor("count")
    assert cycles(second) - cycles(first) == 2000


def test_an_older_program_gives_the_name_where_the_sync_is_now():
    _, graph = machine(numIPUs=2)
    work = busy(graph, t0=10)
    poplar.cycleCount(graph, work, 0, "timer")
    assert [step.type for step in work.children if isinstance(step, program.Sync)] == [
        SyncType.EXTERNAL
    ] * 2
    assert graph.compute_sets[-1].name == "timer/timeCS_2"


def test_without_values_a_program_that_measures_itself_takes_as_long():
    totals = []
    for values in (True, False):
        device, graph = machine()
        work = busy(graph, t0=10)
        poplar.cycleCount(graph, work, 0, SyncType.INTERNAL)
        engine = run(device, graph, work, options={"simulator.computeValues": values})
        totals.append(engine.getExecutionProfile()["simulation"]["cycles"])
    assert totals[0] == totals[1] > 0


def test_what_has_no_clock_or_is_no_sequence_is_refused_in_one_line():
    _, graph = machine()
    with pytest.raises(PoplarError, match=r"^cycleCount: a Sequence is needed, not Sync"):
        poplar.cycleCount(graph, program.Sync(), 0, SyncType.INTERNAL)
    with pytest.raises(PoplarError, match=r"tile 9; the target has tiles 0 to 3"):
        poplar.cycleCount(graph, program.Sequence(), 9, SyncType.INTERNAL)
    cpu = poplar.Graph(poplar.Target.createCPUTarget())
    with pytest.raises(PoplarError, match=r"^timer: a CPU target has no clock"):
        poplar.cycleStamp(cpu, program.Sequence(), 0, SyncType.INTERNAL, "timer")
