"""Lightweight profiling on tiny IPUs of four tiles, its clocks worked out by hand.

Sync delays are 60, 82, 104 and 126 cycles, half of each to the sync controller. So a sync after
which nothing is done takes 126 cycles, and tile 0, with 33 less on its way back, has 597 on its
clock after the five syncs before a program; it then sends the program's number in 60 + 1 cycles.
An event takes 12 cycles of the recording tile, outside its Block.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pva
from pva.check import check
from simulator import poplar
from simulator.poplar import FLOAT, Graph, program
from simulator.profile.values import dataset_of

BEGIN = 597 + 61  # clock of tile 0 when a program begins
EVENT, HEADER = 12, 40  # cycles; bytes before the events in the buffer
COMMON, OVERFLOW, FLUSH, COPY = range(4)  # kinds


class Work(poplar.SupervisorVertex):
    value = poplar.InOut(FLOAT)

    def compute(self) -> None:
        self.value[...] += 1


class Machine:
    """A graph for tiny IPUs, and what ran on it."""

    def __init__(self, ipus: int = 1, **members: Any) -> None:
        self.device = poplar.IPUModel("tiny", numIPUs=ipus, **members).createDevice()
        self.graph = Graph(self.device.getTarget())

    def work(self, cycles: int, tile: int = 0, name: str = "work") -> program.Execute:
        """Make a program that takes so many cycles on a tile, and nothing else."""
        value = self.graph.addVariable(FLOAT, [1], name)
        self.graph.setTileMapping(value, tile)
        compute_set = self.graph.addComputeSet(name)
        vertex = self.graph.addVertex(compute_set, Work, {"value": value}, tile=tile)
        self.graph.setPerfEstimate(vertex, cycles)
        return program.Execute(compute_set)

    def engine(self, *nodes: Any, filter: str = ".", **options: Any) -> poplar.Engine:
        """Load a program; options of Blocks by their last word."""
        blocks = {f"profiler.blocks.{name}": value for name, value in options.items()}
        engine = poplar.Engine(
            self.graph, program.Sequence(*nodes), {"profiler.blocks.filter": filter} | blocks
        )
        engine.load(self.device)
        return engine

    def blocks(self, *nodes: Any, **options: Any) -> list[tuple[Any, ...]]:
        """Run a program once; list name, kind and clocks of what was recorded on IPU 0."""
        engine = self.engine(*nodes, **options)
        engine.run()
        return [row[1:] for row in listed(engine) if row[0] == 0]


def listed(engine: poplar.Engine, run: int = 0) -> list[tuple[Any, ...]]:
    """List IPU, name, kind and clocks of what a run recorded, by its profile."""
    found = engine.getExecutionProfile()["blocks"]
    names = [row.name for row in engine._executable.lowered.programs]
    kinds = ["common", "overflow", "blockFlush", "streamCopy"]
    columns = ("run", "ipu", "program", "kind", "cyclesFrom", "cyclesTo")
    rows = zip(*(found[column] for column in columns), strict=True)
    return [
        (ipu, names[number] if number >= 0 else "", kinds.index(kind), begin, end)
        for of, ipu, number, kind, begin, end in rows
        if of == run
    ]


def flush_cycles(buffer: int) -> int:
    """Return the cycles of sending a buffer: 5, and what a link of 8 GB/s takes at 1.33 GHz.

    No less than two a word of the first packet, of 128 bytes.
    """
    size = HEADER + buffer
    return 5 + max(-(-size * 133 // 800), 2 * min(size, 128) // 4)


def named(rows: list[tuple[Any, ...]]) -> list[tuple[str, int]]:
    return [row[:2] for row in rows]


@pytest.fixture
def machine() -> Machine:
    return Machine()


# Clocks
def test_a_block_lasts_from_after_its_begin_is_recorded_to_before_its_end_is(machine):
    work, beside = machine.work(100), machine.work(50, tile=1, name="beside")
    inner = program.Block(work, "inner")
    rows = machine.blocks(program.Block(program.Sequence(work, beside, inner), "outer"))
    outer, end = BEGIN + EVENT, BEGIN + EVENT + 100 + EVENT + 100 + EVENT
    flush = end + EVENT + 30 + 30  # the sync before it waits for tile 0
    assert rows == [
        ("outer", COMMON, outer, end),
        ("inner", COMMON, outer + 100 + EVENT, outer + 100 + EVENT + 100),
        ("BlockFlush", FLUSH, flush, flush + flush_cycles(1000)),
    ]


@pytest.mark.parametrize("in_full", [0, 1])
def test_runs_that_are_not_recorded_step_by_step_have_their_blocks(tmp_path, machine, in_full):
    options = {"profiler.blocks.filter": "turn", "autoReport.directory": str(tmp_path)}
    options |= {"autoReport.all": True, "autoReport.executionProfileProgramRunCount": in_full}
    turn = program.Repeat(3, program.Block(machine.work(100), "turn"))
    engine = poplar.Engine(machine.graph, turn, options)
    engine.load(machine.device)
    for runs in range(1, 4):
        engine.run()
        grown = pva.openReport(tmp_path)  # what a killed program would leave
        assert len(grown.execution.blocks(0)) == runs * 4
    begins = [block.cyclesFrom for block in grown.execution.blocks(0) if block.isCommon]
    (first, *_), (second, *_), (third, *_) = np.reshape(begins, (3, 3)).tolist()
    cycles = [run.cycles for run in grown.execution.runs]
    assert [first, second, third] == [BEGIN + EVENT + sum(cycles[:n]) for n in range(3)]
    recorded = [len(run.steps) > 0 for run in grown.execution.runs]
    assert recorded == [number < in_full for number in range(3)]
    assert check(grown.dataset) == []


def test_each_ipu_records_by_its_own_clock():
    machine = Machine(ipus=2)
    both = [machine.work(100, 2, "first"), machine.work(70, 6, "second")]
    engine = machine.engine(program.Block(program.Sequence(*both), "both"), tile=2)
    engine.run()
    found = {row[0]: row[4] - row[3] for row in listed(engine) if row[2] == COMMON}
    assert found == {0: 100, 1: 70}
    tiles = engine.getExecutionProfile()["blocks"]["tile"]
    assert sorted(set(tiles)) == [2, 6]


def test_a_stream_copy_lasts_until_all_tiles_have_their_data(machine):
    stream = machine.graph.addHostToDeviceFIFO("fetched", FLOAT, 80)
    tensor = machine.graph.addVariable(FLOAT, [80], "tensor")
    machine.graph.setTileMapping(tensor, 3)
    copy = program.Copy(stream, tensor)
    engine = machine.engine(copy, program.Block(machine.work(5), "after"))
    engine.connectStream("fetched", np.zeros(80, dtype=np.float32))
    engine.run()
    rows = [row[1:] for row in listed(engine)]
    assert named(rows) == [
        ("BlockFlush", FLUSH), *[("fetched", COPY)] * 3, ("after", COMMON), ("BlockFlush", FLUSH)
    ]  # fmt: skip
    # Tile 3 had 630 + 61 (latency 60 and a word); the sync adds 126, of which 33 less on tile 0.
    flush, ready, moved, over = (row[2:] for row in rows[:4])
    assert flush[0] == 817 - 33
    assert ready[0] == ready[1] == flush[1] + EVENT == 817 - 33 + 178 + EVENT
    # Nothing moves on tile 0, which comes to the sync last, after two more events: 30 there and
    # 30 back. Tile 3 has its data at 817 + 69, and asks 63 later.
    assert moved == (ready[1] + 2 * EVENT, ready[1] + 2 * EVENT)
    assert over == (moved[1] + 2 * EVENT, moved[1] + 2 * EVENT + 30 + 30)


# Overflow
def test_a_full_buffer_drops_events_until_it_is_flushed(machine):
    turns = program.Repeat(4, program.Block(machine.work(100), "turn"))
    turn, flush = EVENT + 100 + EVENT, BEGIN + 4 * (EVENT + 100 + EVENT) + 60
    assert machine.blocks(turns, bufferSize=24) == [  # three events: the second end is dropped
        ("turn", COMMON, BEGIN + EVENT, BEGIN + EVENT + 100),
        ("", OVERFLOW, BEGIN + turn + EVENT + 100, flush),
        ("BlockFlush", FLUSH, flush, flush + flush_cycles(24)),
    ]


def test_recording_goes_on_after_a_flush_inside_a_block(machine):
    work = machine.work(10)
    inside = [program.Block(work, name) for name in ("a", "lost")]
    inside += [program.Sync(program.SyncType.EXTERNAL), program.Block(work, "c")]
    rows = machine.blocks(program.Block(program.Sequence(*inside), "all"), bufferSize=24)
    assert named(rows) == [
        ("all", COMMON), ("a", COMMON), ("", OVERFLOW), ("BlockFlush", FLUSH), ("c", COMMON),
        ("BlockFlush", FLUSH),
    ]  # fmt: skip
    lost = BEGIN + EVENT + EVENT + 10 + EVENT + EVENT
    assert rows[2][2:] == (lost, rows[3][2])


def test_an_end_whose_begin_was_dropped_takes_no_room(machine):
    work = machine.work(10)
    flushed = program.Sequence(program.Sync(program.SyncType.EXTERNAL), program.Block(work, "c"))
    rows = machine.blocks(program.Block(work, "a"), program.Block(flushed, "lost"), bufferSize=16)
    assert named(rows) == [
        ("a", COMMON), ("", OVERFLOW), ("BlockFlush", FLUSH), ("c", COMMON), ("BlockFlush", FLUSH),
    ]  # fmt: skip


def test_without_implicit_flush_the_buffer_is_read_at_the_end_of_each_run(machine):
    turns = program.Repeat(4, program.Block(machine.work(100), "turn"))
    sync = program.Sync(program.SyncType.EXTERNAL)
    engine = machine.engine(turns, sync, bufferSize=24, implicitFlush=False)
    engine.run()
    engine.run()
    end = BEGIN + 4 * (EVENT + 100 + EVENT) + 60
    assert [row[1:] for row in listed(engine)] == [
        ("turn", COMMON, BEGIN + EVENT, BEGIN + EVENT + 100),
        ("", OVERFLOW, BEGIN + 2 * (EVENT + 100) + EVENT, end),
    ]
    assert [row[1:3] for row in listed(engine, run=1)] == [("turn", COMMON), ("", OVERFLOW)]


TREES = st.recursive(
    st.sampled_from(["work", "flush"]), lambda inner: st.lists(inner, max_size=4), max_leaves=12
)


def interpreted(tree: Any, room: int, counter: list[int] | None = None) -> list[tuple[str, str]]:
    """Fill and flush a buffer event by event; give what is told, in the order of begins."""
    events: list[tuple[str, int]] = []
    names = iter(range(1000))

    def walk(node: Any) -> None:
        if node == "flush":
            events.append(("flush", -1))
        elif isinstance(node, list):
            name = next(names)
            events.append(("begin", name))
            for below in node:
                walk(below)
            events.append(("end", name))

    walk([tree])
    events.append(("flush", -1))
    held: list[tuple[str, int]] = []
    used, dropping, begun = 0, False, {}
    told: list[tuple[str, str]] = []
    for place, (what, name) in enumerate(events):
        if what == "flush":
            used, dropping = 0, False
            told.append((f"{place:04}", "BlockFlush"))
            continue
        if what == "end" and name not in begun:
            continue
        if used == room:
            if not dropping:
                told.append((f"{place:04}", ""))
            dropping = True
            continue
        used += 1
        held.append((what, name))
        if what == "begin":
            begun[name] = place
        else:
            told.append((f"{begun[name]:04}", f"block {name}"))
    return [(name, "") for _, name in sorted(told)]


@settings(max_examples=40, deadline=None)
@given(TREES, st.integers(1, 6))
def test_what_is_kept_is_what_a_buffer_filled_event_by_event_keeps(tree, room):
    machine = Machine()
    work, names = machine.work(10), iter(range(1000))

    def made(node: Any) -> Any:
        if node == "work":
            return work
        if node == "flush":
            return program.Sync(program.SyncType.EXTERNAL)
        name = f"block {next(names)}"
        return program.Block(program.Sequence(*map(made, node)), name)

    engine = machine.engine(made([tree]), bufferSize=8 * room)
    engine.run()
    assert [(row[1], "") for row in listed(engine)] == interpreted(tree, room)
    assert check(dataset_of(engine.getGraphProfile(), engine.getExecutionProfile())) == []
