"""How a pooling is cut into parts for tiles: the cheapest by an estimate of its cycles.

PopLibs lib/popnn/PoolPlan.cpp. Samples, groups of channels and every dimension of the field may be
cut, the kernel not. The estimate is of the vertices, of bringing all inputs to the tile, and of
arranging them when the channels are grouped in another way than they lie.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm, prod

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.layers.pooling_cycles import COSTS, PLANNED_UNPACKING, initial_shares
from simulator.graph.machine.target import Target
from simulator.graph.types import IntArray, Type
from simulator.poplibs.popnn.pools.windows import PoolShape
from simulator.poplibs.popnn.pools.work import Work, planned_work

MAX_GRAINS = 8  # of 64 bits in a group of channels: more take much memory to arrange
PREFERRED_BYTES = 32  # of a group of channels: what other operations like best
ARRANGED_BYTES_A_CYCLE = 4


@dataclass(frozen=True, slots=True)
class Partition:
    """Into how many parts each dimension is cut, and how many channels a group has."""

    batch: int
    groups: int
    group_channels: int
    field: tuple[int, ...]

    @property
    def parts(self) -> int:
        return self.batch * self.groups * prod(self.field)


@dataclass(frozen=True, slots=True)
class Plan:
    """A partition and its estimated cycles."""

    partition: Partition
    cycles: int


@dataclass(frozen=True, slots=True)
class Problem:
    """What is to be planned: `detected` channels lie together in the input."""

    target: Target
    kind: str
    shape: PoolShape
    dtype: Type
    detected: int

    @property
    def grain(self) -> int:
        """Return the channels of 64 bits."""
        return 8 // self.dtype.size


def preferred_channels(dtype: Type) -> int:
    """Return how many channels a group should have for the operations that follow."""
    return PREFERRED_BYTES // dtype.size


def cheapest(problem: Problem, least_channels: int = 1, most_grains: int = 0) -> Plan | None:
    """Return the cheapest partition; None when no group of channels is large enough.

    Without `most_grains`, groups grow up to those that lie together in the input.
    """
    if not most_grains:
        together = min(problem.detected, problem.shape.channels)
        most_grains = max(min(ceil_div(together, problem.grain), MAX_GRAINS), 1)
    plans: list[Plan] = []
    options = _options(problem)
    for grains in range(1, most_grains + 1):
        channels = grains * problem.grain
        if channels >= least_channels:
            plans.append(_cheapest_of(problem, channels, options))
    return min(plans, key=lambda plan: plan.cycles, default=None)


@dataclass(frozen=True, slots=True, eq=False)
class _Options:
    """Ways to cut samples and field: parts and largest sizes, [option][sample, field].

    `work` is of one group of a vector; `smaller` are the sizes where a dimension that does not
    divide evenly is one less, as it is on some tiles, and `of` the option that each belongs to.
    """

    parts: IntArray
    sizes: IntArray
    smaller: IntArray
    of: IntArray
    work: Work


def _shares(total: int, most: int) -> tuple[IntArray, IntArray]:
    """List the sizes of the largest of up to `most` parts, and the fewest parts that give it."""
    parts = np.arange(1, min(max(total, 1), most) + 1, dtype=np.int64)
    sizes, first = np.unique(ceil_div(total, parts), return_index=True)
    return parts[first][::-1], sizes[::-1]


def _options(problem: Problem) -> _Options:
    shape, target = problem.shape, problem.target
    totals = (shape.batch, *shape.outputs)
    shares = [_shares(total, target.num_tiles) for total in totals]
    choices = np.indices([len(parts) for parts, _ in shares]).reshape(len(totals), -1)
    parts = np.stack([p[i] for (p, _), i in zip(shares, choices, strict=True)], axis=1)
    sizes = np.stack([s[i] for (_, s), i in zip(shares, choices, strict=True)], axis=1)
    fits = parts.prod(axis=1) <= target.num_tiles
    parts, sizes = parts[fits], sizes[fits]
    smaller, of = [sizes], [np.arange(len(sizes), dtype=np.int64)]
    for dimension in range(1, len(totals)):
        uneven = np.flatnonzero(totals[dimension] % np.maximum(sizes[:, dimension], 1))
        less = sizes[uneven].copy()
        less[:, dimension] -= 1
        smaller.append(less)
        of.append(uneven)
    every = np.concatenate(smaller)
    dilation = shape.windows[-1].dilation
    work = planned_work(every, shape.positions, dilation, target.workers)
    return _Options(parts, sizes, every, np.concatenate(of), work)


def _cheapest_of(problem: Problem, channels: int, options: _Options) -> Plan:
    """Return the cheapest partition with groups of this many channels."""
    shape, target = problem.shape, problem.target
    splits, largest = _shares(ceil_div(shape.channels, channels), target.num_tiles)
    vectors = channels // problem.grain
    initial = initial_shares(options.smaller.prod(axis=1) // vectors, vectors, target.workers)
    columns = [column[:, None, :] for column in (*options.work, initial)]
    compute = COSTS[problem.kind](
        *columns, np.array(vectors), largest[:, None], PLANNED_UNPACKING, target.workers
    ).max(axis=-1)
    slowest = np.zeros((len(options.sizes), len(largest)), dtype=np.int64)
    np.maximum.at(slowest, options.of, compute)
    moved = _input_bytes(problem, options.sizes)[:, None] * largest * channels
    cycles = slowest + moved // target.exchange_bytes_per_cycle
    if channels != problem.detected:
        cycles = cycles + moved // ARRANGED_BYTES_A_CYCLE
    used = options.parts.prod(axis=1)[:, None] * splits
    cycles = np.where(used <= target.num_tiles, cycles, np.iinfo(np.int64).max)
    option, split = np.unravel_index(int(cycles.argmin()), cycles.shape)
    batch, *field = options.parts[option].tolist()
    partition = Partition(batch, int(splits[split]), channels, tuple(field))
    return Plan(partition, int(cycles[option, split]))


def _input_bytes(problem: Problem, sizes: IntArray) -> IntArray:
    """Estimate the bytes that a channel of boxes of outputs reads.

    The gradient of a maximum reads three tensors, two of them like its input and one like its
    output; the scale of such a gradient one like its output. Versions of PopLibs differ in this
    estimate; of those this one was taken because it fits the published Mk1 rows of poolings best.
    """
    outputs: IntArray = sizes.prod(axis=1)
    inputs = sizes[:, 0].copy()
    for dimension, window in enumerate(problem.shape.windows, 1):
        inputs *= (sizes[:, dimension] - 1) * window.stride + window.kernel
    elements = {"maxGradient": 2 * inputs + outputs, "maxScale": inputs + outputs}
    elements_read: IntArray = elements.get(problem.kind, inputs)
    return elements_read * problem.dtype.size


def flattening(shape: PoolShape, grain: int) -> list[tuple[int, int]]:
    """Return what to take into the channels when they are fewer than a grain.

    Gives dimensions (0 is the batch) and the part of each that becomes channels: of those in which
    every output has one input, innermost first.
    """
    factor_needed = lcm(shape.channels, grain) // shape.channels if shape.channels < grain else 1
    factors = []
    sizes = (shape.batch, *shape.inputs)
    for dimension in range(len(shape.windows), -1, -1):
        factor = int(np.gcd(factor_needed, sizes[dimension]))
        if factor > 1 and (dimension == 0 or _is_pointwise(shape, dimension - 1)):
            factors.append((dimension, factor))
            factor_needed //= factor
    return factors


def _is_pointwise(shape: PoolShape, dimension: int) -> bool:
    window = shape.windows[dimension]
    return (
        (window.kernel, window.stride, window.dilation, window.padding) == (1, 1, 1, 0)
    ) and window.inputs == window.outputs
