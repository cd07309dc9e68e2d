"""Laws about steps and runs: shares, bytes and clocks that follow from other columns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pva import schema
from pva.array_types import Truths
from pva.check.by_row import of_tiles
from pva.check.execution import EXCHANGES, rows_of_steps
from pva.check.graph import OPERANDS
from pva.check.law import CLOSE, Laws, Violation, at_most, equal, near, share
from pva.data.dataset import Dataset

LAWS = Laws()
BY_IPU = "steps_by_ipu"
SYNCS = ("Sync", "SyncAns", "Sans")
WAITS = ("StreamCopyBegin", "StreamCopyEnd")
ORDERED = (
    ("from_min", "from_max"), ("to_min", "to_max"), ("from_min", "to_min"), ("from_max", "to_max"),
)  # fmt: skip


@LAWS.needing("steps.tile_balance", "steps.active_tile_balance", "programs")
def balances_are_those_of_the_tiles(data: Dataset) -> Iterator[Violation]:
    """Balances and the number of active tiles of a step follow from the cycles of the tiles."""
    for tag, (_, array) in OPERANDS.items():
        if data.has(array):
            steps, rows = rows_of_steps(data, tag)
            spent, most, active, tile_counts = of_tiles(data, array)
            recorded = data.column("steps", "active_tiles")[steps]
            comparable = recorded >= 0
            yield from equal(
                recorded[comparable], active[rows][comparable], f"active_tiles of {tag}", "number"
            )
            for name, tiles in (
                ("tile_balance", np.full(len(most), tile_counts)),
                ("active_tile_balance", active),
            ):
                shares = share(spent, most * tiles)[rows]
                yield from near(data.column("steps", name)[steps], shares, f"{name} of {tag}")


@LAWS.needing("steps")
def steps_tell_only_what_their_type_has(data: Dataset) -> Iterator[Violation]:
    """Only what computes has a balance of threads, only what moves bytes has these or one of data.

    Other writers may tell 0 bytes of the others.
    """
    computes, moves_none = _kinds(data)
    for name, without in (("thread_balance", ~computes), ("data_balance", moves_none)):
        recorded = ~np.isnan(data.column("steps", name))
        yield from equal(recorded & without, False, f"{name} of a type without, told", "step")
    moved = data.column("steps", "total_data")
    yield from at_most(np.where(moves_none, moved, 0), 0, "total_data of a type without", "step")


@LAWS.needing("steps", BY_IPU)
def what_moves_no_bytes_moves_none_on_any_ipu(data: Dataset) -> Iterator[Violation]:
    """A step that computes or syncs brings no bytes into an IPU and takes none out."""
    step = data.column(BY_IPU, "step")
    moves_none = _kinds(data)[1][step]
    for name in ("bytes_in", "bytes_out"):
        moved = np.where(moves_none, data.column(BY_IPU, name), 0)
        yield from at_most(moved, 0, f"{name} of a type without", "row")


def _kinds(data: Dataset) -> tuple[Truths, Truths]:
    """Return which steps compute, and which compute, sync or wait for the host."""
    types = data.texts("steps", "type")
    computes = np.asarray(types == "OnTileExecute")
    return computes, computes | np.isin(types, SYNCS + WAITS)


@LAWS.needing("steps.cycles", "steps.active_tiles")
def steps_take_time_just_where_tiles_are_active(data: Dataset) -> Iterator[Violation]:
    """A step takes cycles where a tile is active in it; of one that takes none there is no balance.

    A sync may take none. Other writers may tell a balance of 0 or 1.
    """
    cycles, active = (data.column("steps", name) for name in ("cycles", "active_tiles"))
    lasts, still = (cycles > 0) & (active >= 0), cycles == 0
    yield from equal(active[lasts] > 0, True, "whether a tile is active", "lasting step")
    none = still & ~np.isin(data.texts("steps", "type"), SYNCS)
    yield from at_most(active[none], 0, "active_tiles", "step of no cycles but a sync")
    for name in ("tile_balance", "active_tile_balance"):
        balance = data.column("steps", name)[still]
        fractional = (balance > 0) & (balance < 1)
        yield from equal(fractional, False, f"whether it has a {name}", "step of no cycles")


@LAWS.needing("steps.thread_balance", "programs", "compute_set_cycles_by_tile",
              "compute_set_active_cycles_by_tile")  # fmt: skip
def thread_balances_are_those_of_the_compute_sets(data: Dataset) -> Iterator[Violation]:
    """The thread balance of a step is the share of active cycles in those of its tiles."""
    steps, rows = rows_of_steps(data, "OnTileExecute")
    active, spent = (
        of_tiles(data, f"compute_set_{name}_by_tile").sums for name in ("active_cycles", "cycles")
    )
    recorded = data.column("steps", "thread_balance")[steps]
    yield from near(recorded, share(active, spent)[rows], "thread_balance")


@LAWS.needing("steps.data_balance", "programs")
def data_balances_are_those_of_the_exchanges(data: Dataset) -> Iterator[Violation]:
    """The data balance of a step is the mean over the most that a tile sends and receives."""
    for tag, exchange in EXCHANGES.items():
        names = [f"{exchange}_bytes_sent", f"{exchange}_bytes_received"]
        if all(data.has(name) for name in names):
            steps, rows = rows_of_steps(data, tag)
            moved = data.array(names[0]) + data.array(names[1])
            shares = share(moved.sum(axis=1), moved.max(axis=1, initial=0) * moved.shape[1])
            recorded = data.column("steps", "data_balance")[steps]
            yield from near(recorded, shares[rows], f"data_balance of {tag}")


@LAWS.needing("steps.total_data", BY_IPU)
def data_of_a_step_is_that_of_its_ipus(data: Dataset) -> Iterator[Violation]:
    """A step moves half of what goes into its IPUs and out of them."""
    total = data.column("steps", "total_data")
    both = np.zeros_like(total)
    moved = data.column(BY_IPU, "bytes_in") + data.column(BY_IPU, "bytes_out")
    np.add.at(both, data.column(BY_IPU, "step"), moved)
    listed = np.isin(np.arange(len(total)), data.column(BY_IPU, "step"))
    comparable = (total >= 0) & listed
    yield from equal(
        both[comparable] // 2, total[comparable], "bytes in and out of the IPUs", "number"
    )


@LAWS.needing(BY_IPU)
def clocks_of_an_ipu_are_in_order(data: Dataset) -> Iterator[Violation]:
    """Active tiles end after they begin, none later than the longest takes, which fits between."""
    for early, late in ORDERED:
        first, last = data.column(BY_IPU, early), data.column(BY_IPU, late)
        recorded = (first >= 0) & (last >= 0)
        yield from at_most(first[recorded], last[recorded], early, "row", f"{late} is")
    cycles = data.column(BY_IPU, "cycles")
    for early, late in (("from_min", "to_min"), ("from_max", "to_max")):
        took = data.column(BY_IPU, late) - data.column(BY_IPU, early)
        yield from at_most(took, cycles, f"{late} - {early}", "row", "its longest tile takes")
    most = data.column(BY_IPU, "to_max") - data.column(BY_IPU, "from_min")
    yield from at_most(cycles, most, "cycles", "row", "to_max - from_min is")


@LAWS.needing(BY_IPU, "steps.active_tiles", "target")
def where_all_tiles_are_active_their_clocks_are_all_there_are(data: Dataset) -> Iterator[Violation]:
    """Where all are active, the first and last to begin and to end are those of all tiles."""
    rows = data.table(BY_IPU)
    step, ipu, recorded = rows["step"], rows["ipu"], rows["all_to_min"] >= 0
    active = data.column("steps", "active_tiles")[step] == data.of_replica("num_tiles")
    run = data.column("steps", "run")[step]
    order = np.lexsort((step, ipu))
    before, after = order[:-1], order[1:]
    follows = (ipu[before] == ipu[after]) & (run[before] == run[after]) & recorded[before]
    before, after = before[follows & active[after]], after[follows & active[after]]
    for end in ("min", "max"):
        clock, begin, stop = rows[f"all_to_{end}"], rows[f"from_{end}"], rows[f"to_{end}"]
        column, why = f"from_{end}", f"all_to_{end} before it is"
        yield from equal(begin[after], clock[before], column, "row of an active IPU", why)
        mine = active & recorded
        column, why = f"to_{end}", f"all_to_{end} is"
        yield from equal(stop[mine], clock[mine], column, "row of an active IPU", why)


@LAWS.needing(BY_IPU)
def balances_of_ipus_are_fractions(data: Dataset) -> Iterator[Violation]:
    """A balance of an IPU is from 0 to 1, where there is one."""
    for column in schema.TABLE[BY_IPU].columns:
        if column.unit == "fraction":
            values = data.column(BY_IPU, column.name)
            recorded = values[~np.isnan(values)]
            yield from at_most(recorded, 1.0 + CLOSE, f"{column.name} known", "number")
            yield from at_most(-recorded, 0.0, f"negative {column.name} known", "number")


@LAWS.needing("runs")
def runs_end_after_they_begin(data: Dataset) -> Iterator[Violation]:
    """A run ends no earlier than it begins: in steps, on the host and on the trace's clock."""
    host = (("start_microseconds", "end_microseconds"), ("trace_begin", "trace_end"))
    pairs = {"runs": (("first_step", "end_step"), *host), "other_runs": host}
    for table in filter(data.has, pairs):
        for early, late in pairs[table]:
            first, last = data.column(table, early), data.column(table, late)
            recorded = (first >= 0) & (last >= 0)
            yield from at_most(
                first[recorded], last[recorded], early, f"row of {table}", f"{late} is"
            )


@LAWS.needing("runs.cycles", "runs.cycles_from")
def runs_follow_each_other(data: Dataset) -> Iterator[Violation]:
    """A run begins when the one before it has ended, on the device and on the host.

    On the device, none of `other_runs` is within one.
    """
    begin, cycles = data.column("runs", "cycles_from"), data.column("runs", "cycles")
    rows = np.flatnonzero((begin >= 0) & (cycles >= 0))
    ends = (begin + cycles)[rows]
    yield from at_most(ends[:-1], begin[rows][1:], "end in cycles", "run", "the next begins at")
    first, last = (data.column("runs", f"{name}_microseconds") for name in ("start", "end"))
    recorded = (first > 0) & (last > 0)
    subject = "end_microseconds"
    yield from at_most(
        last[recorded][:-1], first[recorded][1:], subject, "run", "the next begins at"
    )
    first, last = data.column("runs", "trace_begin"), data.column("runs", "trace_end")
    recorded = (first >= 0) & (last >= 0)
    yield from at_most(
        last[recorded][:-1], first[recorded][1:], "trace_end", "run", "the next is at"
    )
    if data.has("other_runs"):
        yield from _in_turn(data)


@LAWS.needing("runs.items", "runs.batches", "runs.stages", "target")
def the_work_of_a_run_is_whole_batches(data: Dataset) -> Iterator[Violation]:
    """The items of a run are those of as many batches on every replica, a pipeline's at least."""
    items, batches, stages = (data.column("runs", c) for c in ("items", "batches", "stages"))
    recorded = (items >= 0) & (batches > 0) & (stages >= 0)
    parts = batches[recorded] * max(int(data.value("target", "num_replicas")), 1)
    yield from equal(items[recorded] % parts, 0, "items left over by batches and replicas", "run")
    yield from at_most(parts, items[recorded], "batches of all replicas", "run", "items are")
    yield from at_most(stages[recorded], batches[recorded], "stages", "run", "batches are")


def _in_turn(data: Dataset) -> Iterator[Violation]:
    begin, cycles = (
        np.concatenate([data.column(table, name) for table in ("runs", "other_runs")])
        for name in ("cycles_from", "cycles")
    )
    rows = np.flatnonzero((begin >= 0) & (cycles >= 0))
    rows = rows[np.argsort(begin[rows], kind="stable")]
    ends, subject = (begin + cycles)[rows], "end in cycles, runs and other_runs by their begin"
    yield from at_most(ends[:-1], begin[rows][1:], subject, "number", "the next begins at")


@LAWS.needing("steps.tile_balance", "steps.active_tile_balance", "steps.active_tiles", "target")
def balances_agree_with_the_active_tiles(data: Dataset) -> Iterator[Violation]:
    """The balance of all tiles is that of the active ones, times their share in all."""
    columns = ("tile_balance", "active_tile_balance", "active_tiles")
    balance, of_active, active = (data.column("steps", name) for name in columns)
    tiles = data.of_replica("num_tiles")
    recorded = active >= 0
    yield from at_most(active[recorded], tiles, "active_tiles", "number")
    yield from near(balance[recorded], (of_active * active / tiles)[recorded], "tile_balance")
