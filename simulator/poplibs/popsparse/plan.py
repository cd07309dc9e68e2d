"""How a sparse product is cut: parts of rows (x), of columns (y), and of dense columns (z).

Tile (x, y, z) multiplies the non-zeros of part (x, y) with dense columns z. A part's non-zeros are
in a bucket, which has room for more than the even share (metaInfoBucketOversizeProportion). PopLibs
moves what does not fit to the buckets of other parts; here the partitioner refuses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import ceil, sqrt

import numpy as np

from simulator.codelets.costs import ceil_div, even_bounds
from simulator.codelets.products import sparse as vertices
from simulator.graph.errors import poplibs_error
from simulator.graph.machine.target import Target
from simulator.graph.option_table import Option, OptionValue, checked, defaults
from simulator.graph.types import FLOAT, HALF, IntArray, Type
from simulator.poplibs.popsparse.params import Params

Options = Mapping[str, object] | None
_TAKEN = "taken, and without effect here"
MATMUL = {
    "availableMemoryProportion": Option("0.6", _TAKEN),
    "metaInfoBucketOversizeProportion": Option("0.3", "room of a bucket above an even share"),
    "partialsType": Option("float", "type of the parts of sums", allowed=("float", "half")),
    "sharedBuckets": Option(True, _TAKEN),
    "partitioner.optimiseForSpeed": Option(True, _TAKEN),
    "partitioner.forceBucketSpills": Option(False, _TAKEN),
    "partitioner.useActualWorkerSplitCosts": Option(False, _TAKEN),
}
FULLY_CONNECTED = MATMUL | {
    "doGradAPass": Option(False, _TAKEN),
    "doGradWPass": Option(False, _TAKEN),
    "enableStructuredRearrangements": Option(True, _TAKEN),
    "planConstraints": Option("", _TAKEN, form="json"),
}
SPREAD = 4  # standard deviations of room above the mean, for parts of few non-zeros
SPEED = 4  # bytes that a tile receives in a cycle
LAUNCH = 200  # cycles of a step beside its work


class PlanningCache:
    """PopLibs' store of plans; here plans are kept for the whole process."""


@dataclass(frozen=True, slots=True)
class SparsePlan:
    """Parts of block rows, of block columns and of dense columns, and the blocks of a bucket."""

    params: Params
    dtype: Type
    partials: Type
    x: int
    y: int
    z: int
    room: int

    @property
    def block(self) -> int:
        """Return the rows of a block."""
        return self.params.sparsityParams.block

    def bounds(self, axis: str) -> IntArray:
        """Return where the parts of an axis begin and end: x and y in blocks, z in columns."""
        size = {"x": self.params.rows, "y": self.params.inner, "z": self.params.columns}[axis]
        return even_bounds(size if axis == "z" else size // self.block, getattr(self, axis))

    def tile(self, x: IntArray, y: IntArray, z: IntArray) -> IntArray:
        """Return the tile of a part."""
        return (x * self.y + y) * self.z + z

    @property
    def nonzeros(self) -> int:
        """Count the blocks that a bucket has when they are evenly spread."""
        return ceil_div(self.params.getNumNonZeroValues() // self.block**2, self.x * self.y)


def settings(options: Options, name: str, table: Mapping[str, Option]) -> dict[str, OptionValue]:
    """Return the value of each option; raises InvalidOptionError and poplibs_error."""
    values = defaults(table, checked(table, options or {}, name))
    try:
        share = float(values["metaInfoBucketOversizeProportion"])
    except ValueError:
        share = -1.0
    if share < 0:
        text = values["metaInfoBucketOversizeProportion"]
        raise poplibs_error(
            f"{name}: metaInfoBucketOversizeProportion is {text!r}; a number from 0 on is needed"
        )
    return values | {"metaInfoBucketOversizeProportion": str(share)}


def sparse_plan(
    target: Target, params: Params, dtype: Type, options: Options, name: str
) -> SparsePlan:
    """Plan a product; raises InvalidOptionError and poplibs_error."""
    if dtype not in (FLOAT, HALF):
        raise poplibs_error(f"{name}: data of type {dtype}; float or half is needed")
    values = settings(options, name, FULLY_CONNECTED)
    partials = HALF if values["partialsType"] == "half" and dtype == HALF else FLOAT
    x, y, z = _grid(target, params, dtype)
    oversize = float(values["metaInfoBucketOversizeProportion"])
    block = params.sparsityParams.block
    blocks = params.getNumNonZeroValues() // block**2
    share = blocks / (x * y)
    most = ceil_div(params.rows // block, x) * ceil_div(params.inner // block, y)
    room = min(ceil(share * (1 + oversize) + SPREAD * sqrt(share)), most)
    return SparsePlan(params, dtype, partials, x, y, z, max(room, 1))


@cache
def _grid(target: Target, params: Params, dtype: Type) -> tuple[int, int, int]:
    """Return the parts for which exchange, products and sums take the least together."""
    block, tiles = params.sparsityParams.block, target.tiles_per_ipu
    sizes = (params.rows // block, params.inner // block, params.columns)
    x, y, z = (axis.reshape(-1) for axis in np.meshgrid(*(_ways(size, tiles) for size in sizes)))
    fits = x * y * z <= tiles
    x, y, z = x[fits], y[fits], z[fits]
    rows, inner, columns = (ceil_div(n, way) for n, way in zip(sizes, (x, y, z), strict=True))
    nonzeros = ceil_div(params.getNumNonZeroValues() // block**2, x * y)
    if block > 1:
        work = vertices.blocks(rows, nonzeros, columns, block, dtype, target)
    else:
        work = vertices.elements(rows, ceil_div(nonzeros, rows), columns, dtype, target)
    received = (inner * block * columns + nonzeros * (block**2 + 1)) * dtype.size
    sums = np.where(y > 1, 2 * rows * block * columns * 4 // SPEED + LAUNCH, 0)
    best = int(np.argmin(work + received // SPEED + sums))
    return int(x[best]), int(y[best]), int(z[best])


def _ways(size: int, tiles: int) -> IntArray:
    """List the powers of two up to a size, and the size itself."""
    most = min(size, tiles)
    powers = 1 << np.arange(most.bit_length())
    return np.unique(np.append(powers[powers <= most], most))
