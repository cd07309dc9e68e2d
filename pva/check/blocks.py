"""Laws about blocks: what lightweight profiling saw on one tile of each IPU."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pva.array_types import Values
from pva.check.law import Laws, Violation, at_most, equal
from pva.data.dataset import Dataset

LAWS = Laws()
COPIES = ("blockFlush", "streamCopy")


def _clocks(data: Dataset) -> tuple[Values, Values]:
    return data.column("blocks", "cycles_from"), data.column("blocks", "cycles_to")


@LAWS.needing("blocks")
def blocks_end_after_they_begin(data: Dataset) -> Iterator[Violation]:
    """A block ends no earlier than it begins."""
    begin, end = _clocks(data)
    yield from at_most(begin, end, "cycles_from", "block", "cycles_to is")


@LAWS.needing("blocks", "runs")
def blocks_are_inside_their_run(data: Dataset) -> Iterator[Violation]:
    """A block begins and ends while its run is being executed."""
    run = data.column("blocks", "run")
    has_run = (run >= 0) & (run < data.length("runs"))
    yield from equal(has_run, True, "whether there is its run", "block")
    first, cycles = (data.column("runs", name) for name in ("cycles_from", "cycles"))
    begin, end = (clock[has_run] for clock in _clocks(data))
    start = first[run[has_run]]
    yield from at_most(start, begin, "cycles_from of the run", "block", "its cycles_from is")
    yield from at_most(end, start + cycles[run[has_run]], "cycles_to", "block", "its run ends at")


@LAWS.needing("blocks", "programs")
def blocks_are_programs(data: Dataset) -> Iterator[Violation]:
    """A block is of a program, a copy or flush of a stream copy; an overflow is of none."""
    program, kind = data.column("blocks", "program"), data.texts("blocks", "kind")
    is_program = (program >= 0) & (program < data.length("programs"))
    subject = "whether it is of a program"
    yield from equal(is_program, kind != "overflow", subject, "block")
    copies = np.flatnonzero(is_program & np.isin(kind, COPIES))
    types = data.texts("programs", "type")[program[copies]]
    is_copy = np.char.startswith(types.astype(str), "StreamCopy")
    yield from equal(is_copy, True, "whether it is of a stream copy", "block of a copy")


@LAWS.needing("blocks", "target")
def blocks_are_on_a_tile_of_their_ipu(data: Dataset) -> Iterator[Violation]:
    """The tile whose clock was read is of the block's IPU."""
    tile, ipu = data.column("blocks", "tile"), data.column("blocks", "ipu")
    ipu_of_tile = tile // int(data.value("target", "tiles_per_ipu"))
    yield from equal(ipu_of_tile, ipu, "IPU of the tile", "block")


@LAWS.needing("blocks")
def blocks_nest(data: Dataset) -> Iterator[Violation]:
    """Of two blocks on a tile one is inside the other, or they are apart.

    The depth after the end of a block is that before its begin, at every block, just when they
    nest. Blocks without cycles are never in the way.
    """
    begin, end = _clocks(data)
    lasting = np.flatnonzero(end > begin)
    tile, begin, end = data.column("blocks", "tile")[lasting], begin[lasting], end[lasting]
    count = len(lasting)
    ends = np.repeat([False, True], count)
    number = np.tile(np.arange(count), 2)
    # At one time ends come before begins, the inner end and the outer begin first.
    time, opposite = np.concatenate([begin, end]), np.concatenate([end, begin])
    turned = np.where(ends, -number, number)
    order = np.lexsort((turned, -opposite, ~ends, time, np.tile(tile, 2)))
    depth = np.empty(2 * count, dtype=np.int64)
    depth[order] = np.cumsum(np.where(ends[order], -1, 1))
    yield from equal(depth[count:] + 1, depth[:count], "depth at its end", "lasting block")
