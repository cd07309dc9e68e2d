"""Laws about steps on each IPU: what follows from the tiles of the IPU and from their clocks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pva import schema
from pva.array_types import Values
from pva.check.by_row import of_ipus, on_ipus
from pva.check.execution import EXCHANGES
from pva.check.graph import OPERANDS
from pva.check.law import Laws, Violation, at_most, equal, near, share
from pva.data.dataset import Dataset

LAWS = Laws()
BY_IPU = "steps_by_ipu"
DIRECTIONS = (("bytes_in", "received"), ("bytes_out", "sent"))


def _rows(data: Dataset, tag: str) -> tuple[Values, Values, Values]:
    """Return the rows of a type of step, and of each its compute set or exchange, and its IPU."""
    step, ipu = (data.column(BY_IPU, name) for name in ("step", "ipu"))
    program = data.column("steps", "program")[step]
    operand = data.column("programs", OPERANDS[tag][0])[program]
    types = data.texts("programs", "type")[program]
    rows = np.flatnonzero((program >= 0) & (types == tag) & (operand >= 0))
    return rows, operand[rows], ipu[rows]


@LAWS.needing(BY_IPU, "steps", "programs", "target")
def steps_take_what_their_slowest_tile_of_each_ipu_takes(data: Dataset) -> Iterator[Violation]:
    """A step takes on an IPU the cycles of its slowest tile there."""
    for tag, (_, array) in OPERANDS.items():
        if data.has(array):
            rows, operand, ipu = _rows(data, tag)
            slowest = of_ipus(data, array).most[operand, ipu]
            recorded = data.column(BY_IPU, "cycles")[rows]
            yield from equal(recorded, slowest, f"cycles of {tag}", "number")


@LAWS.needing(BY_IPU, "steps", "programs", "target")
def balances_of_ipus_are_those_of_their_tiles(data: Dataset) -> Iterator[Violation]:
    """The balances of a step on an IPU follow from the cycles of the tiles there."""
    for tag, (_, array) in OPERANDS.items():
        if data.has(array):
            rows, operand, ipu = _rows(data, tag)
            spent, most, active, per_ipu = of_ipus(data, array)
            for name, tiles in (
                ("tile_balance", np.full(most.shape, per_ipu)),
                ("active_tile_balance", active),
            ):
                expected = share(spent, most * tiles)[operand, ipu]
                yield from near(data.column(BY_IPU, name)[rows], expected, f"{name} of {tag}")


@LAWS.needing(BY_IPU, "steps.tile_balance", "steps.active_tiles", "target")
def balances_of_steps_are_those_of_their_ipus(data: Dataset) -> Iterator[Violation]:
    """What the tiles of the IPUs spent in a step, and how many were active, is so in all."""
    rows, steps = data.table(BY_IPU), data.table("steps")
    tiles, tiles_per_ipu = data.of_replica("num_tiles"), int(data.value("target", "tiles_per_ipu"))
    spent = rows["tile_balance"] * rows["cycles"] * tiles_per_ipu
    active = share(rows["tile_balance"] * tiles_per_ipu, rows["active_tile_balance"])
    count = len(steps["cycles"])
    spent, active = (np.bincount(rows["step"], part, minlength=count) for part in (spent, active))
    expected = share(spent, steps["cycles"] * tiles)
    expected[np.bincount(rows["step"], minlength=count) == 0] = np.nan
    yield from near(steps["tile_balance"], expected, "tile_balance")
    recorded = np.flatnonzero((steps["active_tiles"] >= 0) & ~np.isnan(expected * active))
    counts, expected = steps["active_tiles"][recorded], np.rint(active[recorded]).astype(np.int64)
    yield from equal(counts, expected, "active_tiles", "number", "those of its IPUs are")


@LAWS.needing(BY_IPU, "steps", "relative_sync_delay", "target")
def syncs_let_tiles_go_by_their_delays(data: Dataset) -> Iterator[Violation]:
    """Behind a sync the tiles of an IPU are as far apart as the ways back to them differ."""
    if data.has("io_tiles") and data.length("io_tiles"):
        return  # the others stay where they were
    is_sync = data.texts("steps", "type") == "Sync"
    first, last = (data.column(BY_IPU, f"all_to_{end}") for end in ("min", "max"))
    mine = is_sync[data.column(BY_IPU, "step")] & (first >= 0) & (last >= 0)
    delay = max(int(data.value("target", "min_sync_delay")), 0) + data.array("relative_sync_delay")
    expected = int(np.ptp(delay // 2)) if len(delay) else 0
    yield from equal((last - first)[mine], expected, "all_to_max - all_to_min", "row of a sync")


@LAWS.needing(BY_IPU, "steps", "programs", "target")
def bytes_of_ipus_are_those_of_their_tiles(data: Dataset) -> Iterator[Violation]:
    """What goes into an IPU and out of it in a step is what its tiles receive and send."""
    for tag, exchange in EXCHANGES.items():
        for column, way in DIRECTIONS:
            name = f"{exchange}_bytes_{way}"
            if data.has(name):
                rows, operand, ipu = _rows(data, tag)
                expected = of_ipus(data, name).sums[operand, ipu]
                recorded = data.column(BY_IPU, column)[rows]
                yield from equal(recorded, expected, f"{column} of {tag}", "number")


@LAWS.needing(BY_IPU, "steps", "tile_clock", "target")
def clocks_of_tiles_are_those_that_the_steps_left(data: Dataset) -> Iterator[Violation]:
    """The clocks of the tiles of an IPU lie between those that its last step before left."""
    step, ipu = (data.column(BY_IPU, name) for name in ("step", "ipu"))
    clock = on_ipus(data, "tile_clock")
    order = np.lexsort((step, ipu))
    if len(clock):
        first = order[np.append(True, np.diff(ipu[order]) != 0)[: len(order)]]
        begun = data.column(BY_IPU, "from_max")[first]
        latest = clock[0].max(axis=1, initial=0)[ipu[first]]
        yield from at_most(begun, latest, "from_max of the first step", "row", "its IPU's clock is")
        tiles = data.column("steps", "active_tiles")[step[first]]
        active = first[tiles == data.of_replica("num_tiles")]
        for column, clocks in (
            ("from_min", clock[0].min(axis=1)),
            ("from_max", clock[0].max(axis=1)),
        ):
            begun = data.column(BY_IPU, column)[active]
            yield from equal(begun, clocks[ipu[active]], f"{column} of all tiles", "first step")
    for snapshot in range(1, len(clock)):
        border = snapshot * schema.CLOCK_INTERVAL
        before = order[step[order] < border]
        last = before[np.append(np.diff(ipu[before]) != 0, len(before) > 0)[: len(before)]]
        for column, clocks in (
            ("all_to_min", clock[snapshot].min(axis=1)),
            ("all_to_max", clock[snapshot].max(axis=1)),
        ):
            expected = data.column(BY_IPU, column)[last]
            recorded = expected >= 0
            of_ipu = clocks[ipu[last][recorded]]
            yield from equal(
                of_ipu, expected[recorded], f"clock before step {border}", "IPU", f"{column} is"
            )
