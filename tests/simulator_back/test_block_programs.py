"""Which programs lightweight profiling records, what that costs, and where it is told."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pva
from pva import schema
from pva.check import check
from pva.formats import registry
from simulator import poplar
from simulator.codelets.system.clock import EVENT_CYCLES
from simulator.compiler.lowering.block_recording import HEADER_BYTES
from simulator.device import Device
from simulator.graph.machine.target import Target
from simulator.poplar import INT, Graph, program
from simulator.profile.values import dataset_of
from tests import every_program

ALL = {"profiler.blocks.filter": "."}
Block = program.Block


class Down(poplar.SupervisorVertex):
    """Count down."""

    value = poplar.InOut(INT)

    def compute(self) -> None:
        self.value[...] -= 1


class Counting:
    """A program around a number that the host writes and a vertex counts down."""

    def __init__(self, device: Device | None = None, replicas: int = 1) -> None:
        self.device = device or every_program.device(1)
        target = self.device.getTarget()
        self.graph = Graph(target, poplar.replication_factor(replicas))
        self.left = self.graph.addVariable(INT, [1], "left")
        self.graph.setTileMapping(self.left, 0)
        self.graph.createHostWrite("left", self.left)
        compute_set = self.graph.addComputeSet("count")
        vertex = self.graph.addVertex(compute_set, Down, {"value": self.left}, tile=0)
        self.graph.setPerfEstimate(vertex, 10)
        self.down = program.Execute(compute_set)

    def engine(
        self, *nodes: Any, options: dict[str, Any] | None = None, left: Any = 3
    ) -> poplar.Engine:
        """Load a program and run it once."""
        engine = poplar.Engine(self.graph, program.Sequence(*nodes), options or ALL)
        engine.load(self.device)
        engine.writeTensor("left", np.array(left, dtype=np.int32))
        engine.run()
        return engine

    def names(self, *nodes: Any, options: dict[str, Any] | None = None, left: int = 3) -> list[str]:
        """Name what was recorded, in order, without the flushes."""
        return names(self.engine(*nodes, options=options, left=left))


def names(engine: poplar.Engine, kind: str = "common") -> list[str]:
    """Name the blocks of a kind."""
    profile = engine.getExecutionProfile()["blocks"]
    rows = engine.getGraphProfile()["programs"]
    shown = zip(profile["program"], profile["kind"], strict=True)
    return [rows[number]["name"] for number, of in shown if of == kind]


@pytest.fixture
def counting() -> Counting:
    return Counting()


# Programs
@pytest.mark.parametrize(("left", "turns"), [(0, 0), (1, 1), (5, 5)])
def test_a_loop_has_a_block_for_each_turn_that_its_data_asks_for(counting, left, turns):
    loop = program.RepeatWhileTrue(
        program.Sequence(), counting.left[0], Block(counting.down, "turn"), "loop"
    )
    found = counting.names(Block(loop, "around"), left=left)
    assert found == ["around", *["turn"] * turns]


def test_a_branch_has_the_blocks_that_it_takes(counting):
    yes, no = (Block(counting.down, name) for name in ("yes", "no"))
    choice = program.If(counting.left[0], yes, no)
    cases = program.Switch(counting.left[0], [(0, yes)], no)
    assert counting.names(choice, cases, left=1) == ["yes", "yes"]
    assert counting.names(choice, cases, left=0) == ["no", "no"]


def test_a_function_has_its_blocks_in_every_call(counting):
    function = counting.graph.addFunction(Block(counting.down, "inside"), "function")
    calls = program.Repeat(2, Block(program.Call(function), "call"))
    assert counting.names(calls, program.Call(function)) == [
        "call", "inside", "call", "inside", "inside",
    ]  # fmt: skip


def test_many_turns_are_laid_out_at_once(counting):
    options = ALL | {"profiler.blocks.bufferSize": 2 * 8 * 3000}
    found = counting.names(program.Repeat(3000, Block(counting.down, "turn")), options=options)
    assert found == ["turn"] * 3000


def test_a_filter_is_found_anywhere_in_the_names_of_blocks_alone(counting):
    nodes = [Block(counting.down, name) for name in ("model/forward", "model/back", "counted")]
    assert counting.names(*nodes, options={"profiler.blocks.filter": "ward|ck$"}) == [
        "model/forward", "model/back",
    ]  # fmt: skip
    assert counting.names(*nodes, options={"profiler.blocks.filter": "^forward|count$"}) == []


def test_programs_are_recorded_as_if_in_a_block(counting):
    again = program.Repeat(2, counting.down, "again")
    function = counting.graph.addFunction(program.Sequence(counting.down), "called")
    nodes = [again, program.Call(function), Block(counting.down, "block")]
    found = counting.names(*nodes, options={"profiler.programs.filter": "again|count|call|block"})
    assert found == ["again", "count", "count", "called", "count", "block", "count"]


def test_a_sequence_around_one_program_of_its_name_is_that_program(counting):
    named = program.Repeat(2, counting.down, "count")
    assert counting.names(named, options={"profiler.programs.filter": "count"}) == ["count"] * 3


def test_each_of_several_programs_is_recorded_as_a_whole(counting):
    first = program.Sequence(counting.down, program.WriteUndef(counting.left), name="first")
    second = Block(program.Sequence(name="main"), "second")
    options = {"profiler.programs.filter": "first|second|main"}
    engine = poplar.Engine(counting.graph, [first, second], options)
    engine.load(counting.device)
    found = []
    for number in (1, 0, 1):
        engine.resetExecutionProfile()
        engine.run(number)
        found.append(names(engine))
    assert found == [["second", "main"], ["first"], ["second", "main"]]
    assert names(engine, "blockFlush") == ["BlockFlush"]


def test_neither_remote_buffers_nor_other_ipus_make_the_host_wait():
    made = Counting(every_program.device(2))
    rows = made.graph.addRemoteBuffer("rows", INT, 1)
    other = made.graph.addVariable(INT, [1], "other")
    made.graph.setTileMapping(other, 5)
    copies = [program.Copy(made.left, rows), program.Copy(made.left, other)]
    engine = made.engine(Block(program.Sequence(*copies), "block"))
    assert names(engine, "streamCopy") == ["rows"] * 3 * 2
    assert names(engine, "blockFlush") == ["BlockFlush"] * 2  # on each IPU, at the end of the run


def test_replicas_are_recorded_by_the_one_that_is_profiled():
    made = Counting(every_program.device(2), replicas=2)
    loop = program.RepeatWhileTrue(
        program.Sequence(), made.left[0], Block(made.down, "turn"), "loop"
    )
    options = ALL | {"profiler.replicaToProfile": 1}
    engine = made.engine(loop, options=options, left=[[2], [4]])
    assert names(engine) == ["turn"] * 4


# Costs
def test_what_matches_nothing_costs_nothing(counting):
    node = Block(counting.down, "block")
    plain = counting.engine(node, options={"autoReport.all": False})
    filtered = counting.engine(node, options={"profiler.blocks.filter": "other"})
    profiles = [engine.getGraphProfile() for engine in (plain, filtered)]
    for key in ("programs", "memory", "computeSets", "exchanges"):
        assert profiles[0].get(key) == profiles[1].get(key)
    cycles = [engine.getExecutionProfile()["runs"][0]["cycles"] for engine in (plain, filtered)]
    assert cycles[0] == cycles[1]
    assert filtered.getExecutionProfile()["blocks"]["program"] == []


def test_each_recording_tile_has_a_buffer_and_code_and_no_other_tile():
    device = every_program.device(2)
    made = Counting(device)
    options = {"profiler.blocks.tile": 2, "profiler.blocks.bufferSize": 64}
    node = Block(made.down, "block")
    plain, recorded = (
        made.engine(node, options=given)._executable.memory
        for given in ({"autoReport.all": False}, ALL | options)
    )
    more = (recorded.by_category - plain.by_category).sum(axis=(1, 2))
    results = more[schema.CATEGORIES.index("instrumentationResults")]
    assert results.tolist() == [0, 0, 64 + HEADER_BYTES, 0] * 2
    control = more[schema.CATEGORIES.index("controlCode")]
    # Two events and the flush are programs of the recording tiles, the four syncs of all.
    assert set((control[[2, 6]] - control[0]).tolist()) == {3 * 8}
    assert more[schema.CATEGORIES.index("vertexCode")].tolist() == [0, 0, 12 * 4, 0] * 2


def test_an_event_takes_cycles_of_the_recording_tile_alone(counting):
    engine = counting.engine(Block(counting.down, "block"))
    costs, lowered = engine._executable.costs, engine._executable.lowered
    recorder = lowered.compute_sets.index("BlockRecorder")
    assert costs.cycles[recorder].tolist() == [EVENT_CYCLES, 0, 0, 0]
    events = [row.event for row in lowered.programs if row.compute_set == recorder]
    assert events == ["blockBegin", "blockEnd"]


def test_the_host_is_sent_the_buffer_where_it_waits_anyway(counting):
    stream = counting.graph.addDeviceToHostFIFO("out", INT, 1)
    nodes = [Block(counting.down, "block"), program.Copy(counting.left, stream)]
    nodes += [program.Sync(program.SyncType.EXTERNAL), program.Sync(program.SyncType.INTERNAL)]
    engine = poplar.Engine(counting.graph, program.Sequence(*nodes), ALL)
    rows = engine._executable.lowered.programs[14:]
    tags = {"StreamCopy": "name", "OnTileExecute": "event", "Sync": "sync_type"}
    row_tags = [getattr(row, tags[row.type]) for row in rows if row.type in tags]
    assert [tag for tag in row_tags if tag] == [
        "blockBegin", "blockEnd",
        "External", "BlockFlush", "copyBegin", "copyEnd",
        "copyBegin", "out", "copyEnd", "copyBegin", "Internal", "copyEnd",
        "External", "BlockFlush",
        "Internal",
        "External", "BlockFlush", "Internal", "Internal",
    ]  # fmt: skip


# Reports
@pytest.mark.parametrize("level", ["", "tile", "vertex", "device", "ipu"])
def test_every_class_of_program_keeps_the_laws(level):
    options = {"profiler.blocks.filter": "block", "profiler.programs.filter": "a|o"}
    options["autoReport.executionProfileProgramRunCount"] = 1
    if level:
        options |= {"debug.instrument": True, "debug.computeInstrumentationLevel": level}
    engine = every_program.engine(options)
    engine.setPrintStream(io.StringIO())
    for _ in range(3):
        engine.run()
    data = dataset_of(engine.getGraphProfile(), engine.getExecutionProfile())
    assert check(data) == []
    kinds = np.bincount(data.column("blocks", "kind"), minlength=4)
    assert kinds[[0, 2, 3]].min() > 0


@pytest.mark.parametrize("format", ["json", "cbor", "plain", "pop"])
def test_blocks_come_back_from_every_format(format, tmp_path):
    written = tmp_path / "written"
    engine = every_program.engine(
        {"autoReport.all": True, "autoReport.directory": str(written)} | ALL
    )
    engine.setPrintStream(io.StringIO())
    engine.run()
    before = registry.read(written)
    path = tmp_path / f"execution.{ {'plain': 'cbor'}.get(format, format) }"
    registry.write(before.select("execution"), path, format)
    after = registry.read(path)
    for name, values in before.table("blocks").items():
        assert after.column("blocks", name).tolist() == values.tolist()
        assert len(values) > 0
    assert check(before) == []


def test_libpva_tells_the_kinds_of_blocks_apart(tmp_path: Path) -> None:
    engine = every_program.engine(
        {"autoReport.all": True, "autoReport.directory": str(tmp_path)} | ALL
    )
    engine.setPrintStream(io.StringIO())
    engine.run()
    blocks = pva.openReport(tmp_path).execution.blocks(4)
    assert {block.tile for block in blocks} == {4}
    assert [block.name for block in blocks if block.isCommon] == ["block"]
    copies = np.repeat(["fetched", "rows", "rows", "left", "stored"], 3).tolist()
    assert [block.name for block in blocks if block.isStreamCopy] == copies
    assert {block.program.name for block in blocks if block.isBlockFlush} == {"BlockFlush"}
    assert len(pva.openReport(tmp_path).execution.blocks(1)) == 0


def test_a_profile_that_is_reset_counts_from_its_first_run(counting):
    engine = counting.engine(Block(counting.down, "block"))
    first = engine.getExecutionProfile()["blocks"]
    engine.resetExecutionProfile()
    assert engine.getExecutionProfile()["blocks"]["run"] == []
    engine.run()
    assert engine.getExecutionProfile()["blocks"] == first


def test_a_cpu_has_no_clock_to_record():
    made = Counting(Device(Target.createCPUTarget()))
    engine = made.engine(Block(made.down, "block"), options=ALL | {"profiler.blocks.tile": 9})
    assert "blocks" not in engine.getExecutionProfile()


# Bad input
@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("blocks.filter", "(", r"profiler.blocks.filter is '\('; a regular expression is needed"),
        ("programs.filter", "[", r"profiler.programs.filter is '\['; a regular expression is"),
        ("blocks.tile", 4, "profiler.blocks.tile is 4; each IPU has tiles 0 to 3"),
        ("blocks.bufferSize", 7, "profiler.blocks.bufferSize is 7; an event takes 8 bytes"),
    ],
)
def test_a_wrong_option_is_named_in_one_line(counting, option, value, text):
    with pytest.raises(poplar.PoplarError, match=text) as caught:
        counting.engine(counting.down, options=ALL | {f"profiler.{option}": value})
    assert "\n" not in str(caught.value)


def in_phases(options: dict[str, Any], **stream: Any) -> poplar.Engine:
    """Run a copy in, a step, and a copy out."""
    made = Counting()
    fed = made.graph.addHostToDeviceFIFO("fed", INT, 1, options=stream)
    taken = made.graph.addDeviceToHostFIFO("taken", INT, 1, options=stream)
    nodes = program.Copy(fed, made.left), made.down, program.Copy(made.left, taken)
    engine = poplar.Engine(made.graph, program.Sequence(*nodes), options)
    engine.connectStream("fed", np.array([7], dtype=np.int32))
    engine.connectStream("taken", result := np.zeros(1, dtype=np.int32))
    engine.loadAndRun(made.device)
    assert result.tolist() == [6]
    return engine


AHEAD = {"exchange.enablePrefetch": True, "exchange.streamBufferOverlap": "None"}
PHASES = ["StreamCopyBegin", "StreamCopyMid", "StreamCopyEnd"]


@pytest.mark.parametrize(
    ("options", "stream"),
    [({}, {}), ({}, {"bufferingDepth": 2}), (AHEAD, {}), (AHEAD, {"bufferingDepth": 3})],
)
def test_streams_are_copied_in_three_phases(
    options: dict[str, Any], stream: dict[str, Any]
) -> None:
    report = in_phases(options, **stream).getReport()
    (run,) = report.execution.runs
    for name in ("fed", "taken"):
        steps = [step for step in run.steps if step.program.name == name]
        assert [step.program.type.name for step in steps] == PHASES
        cycles = [step.cycles for step in steps if step.program.type.name != "StreamCopyMid"]
        assert not any(cycles)
    types = [program.type.name for program in report.compilation.programs]
    assert [types.count(kind) for kind in PHASES] == [4, 4, 4]  # and two that choose the program
    assert not list(check(report.dataset))


def test_each_phase_of_a_stream_copy_is_a_block_and_has_the_chapters_tag() -> None:
    engine = in_phases(ALL | {"profiler.programs.filter": "."})
    blocks = [block for block in engine.getReport().execution.blocks(0) if block.isStreamCopy]
    told = [(block.program.type.name, block.program.name) for block in blocks]
    assert told == [(kind, name) for name in ("fed", "taken") for kind in PHASES]
    ends = [block.cyclesTo for block in blocks]
    assert ends == sorted(ends)
    tags = [row["type"] for row in engine.getGraphProfile()["programs"] if row.get("name") == "fed"]
    assert [tag for tag in tags if "Stream" in tag] == [PHASES[0], "StreamCopy", PHASES[2]]
