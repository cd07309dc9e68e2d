"""Laws about time: steps, runs and what the tiles did."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pva import schema
from pva.array_types import Values
from pva.check.by_row import of_tiles
from pva.check.graph import OPERANDS
from pva.check.law import Laws, Violation, at_most, equal
from pva.data.dataset import Dataset
from pva.data.tile_sets import tiles_of_sets

LAWS = Laws()
BY_IPU = "steps_by_ipu"
# Which figure of `tile_cycles` the steps of a type make up.
ACTIVITIES = {
    "OnTileExecute": "compute",
    "DoExchange": "do_exchange",
    "GlobalExchange": "global_exchange",
    "StreamCopy": "stream_copy",
}
EXCHANGES = {
    "DoExchange": "exchange",
    "GlobalExchange": "external_exchange",
    "StreamCopy": "host_exchange",
}


def rows_of_steps(data: Dataset, tag: str) -> tuple[Values, Values]:
    """Return the steps of a type, and for each the row of its compute set or exchange."""
    column, _ = OPERANDS[tag]
    program = data.column("steps", "program")
    mine = (program >= 0) & (data.texts("steps", "type") == tag)
    steps = np.flatnonzero(mine & (data.texts("programs", "type")[program] == tag))
    rows = data.column("programs", column)[program[steps]]
    return steps[rows >= 0], rows[rows >= 0]


@LAWS.needing("steps", "programs")
def steps_last_as_long_as_their_slowest_tile(data: Dataset) -> Iterator[Violation]:
    """A step takes the cycles of its slowest tile."""
    cycles = data.column("steps", "cycles")
    for tag, (_, array) in OPERANDS.items():
        if data.has(array):
            steps, rows = rows_of_steps(data, tag)
            slowest = of_tiles(data, array).most
            yield from equal(cycles[steps], slowest[rows], f"cycles of {tag}", "number")


@LAWS.needing("steps", "steps_by_ipu")
def steps_last_as_long_as_their_slowest_ipu(data: Dataset) -> Iterator[Violation]:
    """A step takes the cycles of its slowest IPU."""
    cycles, rows = data.column("steps", "cycles"), data.column("steps_by_ipu", "step")
    slowest = np.full(len(cycles), -1)
    np.maximum.at(slowest, rows, data.column("steps_by_ipu", "cycles"))
    recorded = (slowest >= 0) & (cycles >= 0)
    yield from equal(cycles[recorded], slowest[recorded], "cycles", "number")


@LAWS.needing("steps", "steps_by_ipu")
def clocks_of_all_tiles_enclose_those_of_active_ones(data: Dataset) -> Iterator[Violation]:
    """Of all tiles of an IPU, none ends behind its step, and none of the active ones outside."""
    columns = [c for c in schema.TABLE[BY_IPU].columns if c.unit == "cycles"]
    end = data.column("steps", "cycles_to")[data.column(BY_IPU, "step")]
    rows = {column.name: data.column(BY_IPU, column.name) for column in columns} | {"end": end}
    for early, late, reason in (
        ("all_to_min", "to_min", "to_min is"),
        ("to_max", "all_to_max", "all_to_max is"),
        ("all_to_max", "end", "its step ends at"),
    ):
        recorded = (rows["all_to_min"] >= 0) & (rows["all_to_max"] >= 0) & (rows["end"] >= 0)
        yield from at_most(rows[early][recorded], rows[late][recorded], early, "row", reason)


@LAWS.needing("steps", "steps_by_ipu")
def steps_begin_with_the_clocks_that_the_last_one_left(data: Dataset) -> Iterator[Violation]:
    """Active tiles of an IPU begin when clocks of its tiles stood after its step before."""
    step, ipu, first, last = (
        data.column(BY_IPU, name) for name in ("step", "ipu", "all_to_min", "all_to_max")
    )
    order = np.lexsort((step, ipu))
    before, after = order[:-1], order[1:]
    run = data.column("steps", "run")[step]
    consecutive = (ipu[before] == ipu[after]) & (run[before] == run[after]) & (first[before] >= 0)
    before, after = before[consecutive], after[consecutive]
    begins = [data.column(BY_IPU, name)[after] for name in ("from_min", "from_max")]
    yield from at_most(first[before], begins[0], "all_to_min", "row", "the next from_min is")
    yield from at_most(begins[1], last[before], "from_max", "row", "all_to_max before it is")


@LAWS.needing("steps", "target", "relative_sync_delay")
def syncs_take_what_the_farthest_tile_needs(data: Dataset) -> Iterator[Violation]:
    """A sync takes at least the delay of the farthest tile, between IPUs what that adds as well."""
    if data.has("io_tiles") and data.length("io_tiles"):
        return  # a sync of some tiles takes what the farthest of those needs
    cycles = data.column("steps", "cycles")
    mine = (data.texts("steps", "type") == "Sync") & (cycles >= 0)
    farthest = int(data.array("relative_sync_delay").max(initial=0))
    least = int(data.value("target", "min_sync_delay")) + farthest - 1  # half of it each way
    between = data.texts("steps", "sync_type")[mine] == "External"
    delay = least + between * max(int(data.value("target", "global_sync_cycles")), 0)
    yield from at_most(delay, cycles[mine], "delay of the farthest tile", "sync", "it takes")


@LAWS.needing("steps")
def time_does_not_run_back(data: Dataset) -> Iterator[Violation]:
    """A step ends no earlier than it begins, and begins where the one before it ended."""
    begin, end = (data.column("steps", name) for name in ("cycles_from", "cycles_to"))
    recorded = (begin >= 0) & (end >= 0)
    yield from at_most(begin[recorded], end[recorded], "cycles_from", "step", "cycles_to is")
    yield from at_most(
        end[recorded][:-1], begin[recorded][1:], "cycles_to", "step", "next begins at"
    )


@LAWS.needing("steps")
def overlap_is_what_was_hidden(data: Dataset) -> Iterator[Violation]:
    """Of a step's cycles, those that made the run no longer were overlapped."""
    names = ("cycles", "cycles_from", "cycles_to", "cycles_overlapped")
    cycles, begin, end, overlapped = (data.column("steps", name) for name in names)
    recorded = (overlapped >= 0) & (begin >= 0) & (end >= 0)
    hidden = cycles[recorded] - (end - begin)[recorded]
    yield from equal(overlapped[recorded], hidden, "cycles_overlapped", "number")


@LAWS.needing("steps", "programs")
def data_of_a_step_is_that_of_its_exchange(data: Dataset) -> Iterator[Violation]:
    """A step moves half of what its exchange sends and receives."""
    total = data.column("steps", "total_data")
    for tag, exchange in EXCHANGES.items():
        arrays = [f"{exchange}_bytes_sent", f"{exchange}_bytes_received"]
        if all(data.has(name) for name in arrays):
            steps, rows = rows_of_steps(data, tag)
            moved = np.sum([of_tiles(data, name).sums for name in arrays], axis=0) // 2
            yield from equal(total[steps], moved[rows], f"total_data of {tag}", "number")


@LAWS.needing("steps")
def balances_are_fractions(data: Dataset) -> Iterator[Violation]:
    """A balance is from 0 to 1, where there is one."""
    for column in schema.TABLE["steps"].columns:
        if column.unit == "fraction":
            values = data.column("steps", column.name)
            shares = values[~np.isnan(values)]
            subject = f"{column.name} known"
            yield from at_most(shares, 1.0 + 1e-9, subject, "number")
            yield from at_most(-shares, 0.0, f"negative {subject}", "number")


@LAWS.needing("steps", "runs")
def runs_share_out_the_steps(data: Dataset) -> Iterator[Violation]:
    """Each step is in its run, and recorded runs follow each other without a gap."""
    run = data.column("steps", "run")
    first, end = (data.column("runs", name) for name in ("first_step", "end_step"))
    recorded = np.flatnonzero(end > first)
    sizes = (end - first)[recorded]
    yield from equal(int(sizes.sum()), len(run), "steps of all runs")
    starts = np.cumsum(sizes) - sizes
    yield from equal(first[recorded], starts, "first_step", "recorded run")
    if int(sizes.sum()) == len(run):
        yield from equal(run, np.repeat(recorded, sizes), "run", "step")


@LAWS.needing("steps", "runs")
def runs_last_as_long_as_their_steps(data: Dataset) -> Iterator[Violation]:
    """A recorded run ends no earlier than its last step."""
    first, end = (data.column("runs", name) for name in ("first_step", "end_step"))
    recorded = (end > first) & (end <= data.length("steps"))
    last = data.column("steps", "cycles_to")[end[recorded] - 1]
    begin = data.column("steps", "cycles_from")[first[recorded]]
    start = data.column("runs", "cycles_from")[recorded]
    stop = start + data.column("runs", "cycles")[recorded]
    yield from at_most(last, stop, "last cycles_to", "recorded run", "run ends at")
    has_begin = begin >= 0
    yield from at_most(
        start[has_begin], begin[has_begin], "cycles_from", "recorded run", "first step"
    )


def _recorded_cycles(data: Dataset) -> int:
    """Sum the cycles of the runs that were recorded in full."""
    first, end = (data.column("runs", name) for name in ("first_step", "end_step"))
    return int(data.column("runs", "cycles")[end > first].sum())


@LAWS.needing("execution", "runs")
def cycles_are_those_of_the_recorded_runs(data: Dataset) -> Iterator[Violation]:
    """The cycles of the execution are the sum of the runs that were recorded in full."""
    cycles = data.value("execution", "cycles")
    if cycles < 0:  # a CPU has none
        return
    yield from equal(cycles, _recorded_cycles(data), "cycles")


@LAWS.needing("programs", "target", "io_tiles")
def tile_sets_do_what_is_theirs(data: Dataset) -> Iterator[Violation]:
    """A program of the I/O tiles takes no cycles on the others, one of those none on them."""
    sets, of_program = tiles_of_sets(data), data.column("programs", "tile_set")
    types = data.texts("programs", "type")
    for tag, (column, array) in OPERANDS.items():
        programs = np.flatnonzero((types == tag) & (data.column("programs", column) >= 0))
        if data.has(array) and len(programs):
            cycles = data.array(array)[data.column("programs", column)[programs]]
            outside = np.where(sets[of_program[programs]], 0, cycles).sum(axis=1)
            yield from equal(outside, np.zeros_like(outside), f"cycles of {tag}", "outside")


@LAWS.needing("tile_cycles", "runs", "target")
def activities_fill_the_time_of_all_tiles(data: Dataset) -> Iterator[Violation]:
    """What the tiles did, idling included, is as long as all runs on all tiles."""
    spent = data.table("tile_cycles")
    activities = sum(int(values[0]) for name, values in spent.items() if name != "active_compute")
    expected = _recorded_cycles(data) * data.of_replica("num_tiles")
    yield from equal(activities, expected, "tile cycles")
    yield from at_most(spent["active_compute"], spent["compute"], "active_compute", "row")


@LAWS.needing("tile_cycles", "steps", "programs")
def activities_are_those_of_the_steps(data: Dataset) -> Iterator[Violation]:
    """The cycles of an activity are those of all tiles in the steps of its type."""
    for tag, activity in ACTIVITIES.items():
        array = OPERANDS[tag][1]
        if data.has(array):
            _, rows = rows_of_steps(data, tag)
            expected = int(of_tiles(data, array).sums[rows].sum())
            yield from equal(data.value("tile_cycles", activity), expected, activity)
    active = "compute_set_active_cycles_by_tile"
    if data.has(active):
        _, rows = rows_of_steps(data, "OnTileExecute")
        expected = int(of_tiles(data, active).sums[rows].sum())
        yield from equal(data.value("tile_cycles", "active_compute"), expected, "active_compute")


@LAWS.needing("tile_clock", "steps")
def clocks_are_kept_at_every_interval(data: Dataset) -> Iterator[Violation]:
    """There is a snapshot before step 0, 1024, ..., and no tile's clock runs back."""
    clock = data.array("tile_clock")
    steps = data.length("steps")
    if steps:
        yield from equal(len(clock), -(-steps // schema.CLOCK_INTERVAL), "snapshots")
    yield from at_most(clock[:-1], clock[1:], "clock", "snapshot, tile", "later")
