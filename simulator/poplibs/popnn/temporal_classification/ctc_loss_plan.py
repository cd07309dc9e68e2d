"""How the classification loss is cut: samples, steps and labels over the tiles.

PopLibs lib/popnn/CTCLossPlan.cpp: of all cuts that leave no part empty and whose temporary data fit
a tile, the one with the fewest cycles, then bytes, then tiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.layers.ctc_loss import ALPHA, GRADIENT, LAST_BLANK
from simulator.graph.errors import poplibs_error
from simulator.graph.machine.target import Target
from simulator.graph.types import FLOAT, IntArray, Type

SYNC, EXCHANGE = 90, 100  # cycles of a step, whatever it moves
LABEL_BYTES = 2
PARALLEL = ("batch", "time", "label", "lastBlankOnSeparateTile")
FIXED = {"sliceIntoOutput": 1, "alphabet": 1, "sliceFromInput": 0}  # PopLibs knows no other


@dataclass(frozen=True, slots=True)
class Plan:
    """What a loss is planned for, and into how many parts samples, steps and labels are cut.

    `lastBlankOnSeparateTile`: the blank behind the last label is a part of its own.
    `reducedClasses`: only the blank and the classes of a sample's labels are computed, which are
    the `numClasses` then.
    """

    inType: Type
    outType: Type
    batchSize: int
    maxTime: int
    maxLabelLength: int
    numClasses: int
    partialsType: Type = FLOAT
    batch: int = 1
    time: int = 1
    label: int = 1
    lastBlankOnSeparateTile: bool = False
    reducedClasses: bool = False

    @property
    def label_parts(self) -> int:
        """Count the parts of the labels, with that of the last blank."""
        return self.label + self.lastBlankOnSeparateTile

    @property
    def tiles(self) -> int:
        """Count the tiles that it uses."""
        return self.batch * self.time * self.label_parts


def bounds(size: int, parts: int) -> IntArray:
    """Return the bounds of parts as large as the first, of which the last has what is left."""
    numbers: IntArray = np.minimum(np.arange(parts + 1) * ceil_div(size, parts), size)
    return numbers


def best_plan(
    sizes: Plan, target: Target, constraints: Mapping[str, Any], proportion: float
) -> Plan:
    """Cut a loss of these sizes; raises poplibs_error where nothing fits the constraints."""
    batch, time, label, apart = _ways(sizes, target)
    steps, labels = ceil_div(sizes.maxTime, time), ceil_div(sizes.maxLabelLength, label)
    samples = ceil_div(sizes.batchSize, batch)
    cycles = _cycles(sizes, target, time, label, apart, samples, steps, labels)
    memory = _bytes(sizes, label, apart, samples, steps, labels)
    mask = (memory <= proportion * target.getBytesPerTile()) & _wanted(
        constraints, dict(zip(PARALLEL, (batch, time, label, apart), strict=True))
    )
    fits = np.flatnonzero(mask)
    if not len(fits):
        raise poplibs_error(f"ctc::plan: no plan of {len(batch)} fits memory and {constraints}")
    tiles = batch * time * (label + apart)
    best = fits[np.lexsort((tiles[fits], memory[fits], cycles[fits]))[0]]
    return replace(
        sizes,
        batch=int(batch[best]),
        time=int(time[best]),
        label=int(label[best]),
        lastBlankOnSeparateTile=bool(apart[best]),
    )


def _ways(sizes: Plan, target: Target) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """List the cuts, each as many parts as differ, on no more tiles than there are."""
    tiles = target.num_tiles
    splits = [
        _splits(size, tiles) for size in (sizes.batchSize, sizes.maxTime, sizes.maxLabelLength)
    ]
    grid = np.meshgrid(*splits, [0, 1], indexing="ij")
    batch, time, label, apart = (part.ravel().astype(np.int64) for part in grid)
    mask = batch * time * (label + apart) <= tiles
    return batch[mask], time[mask], label[mask], apart[mask]


def _splits(size: int, most: int) -> IntArray:
    """List the numbers of parts that leave none empty."""
    numbers = np.arange(1, min(size, most) + 1, dtype=np.int64)
    return np.unique(ceil_div(size, ceil_div(size, numbers)))


def _cycles(
    sizes: Plan, target: Target, time: IntArray, label: IntArray, apart: IntArray,
    samples: IntArray, steps: IntArray, labels: IntArray,
) -> IntArray:  # fmt: skip
    """Estimate what all steps of both passes take: compute, exchange and sync.

    A time part more when their number is odd, as the middle one goes one way only.
    """
    count = steps * (time + time % 2) // 2
    balanced = labels == sizes.maxLabelLength // label
    extra = LAST_BLANK * (balanced & (apart == 0))
    alpha = (ALPHA * labels + extra) * target.workers
    gradient = ((ALPHA + GRADIENT) * labels + 2 * extra) * target.workers
    rounds = ceil_div(samples, target.workers)
    both = (label > 1) & (time > 2)
    moved = np.where(time > 2, labels, 0) + 2 * (label > 1) + 2 * both
    per_cycle, size = target.exchange_bytes_per_cycle, sizes.partialsType.size
    exchanges = 2 * EXCHANGE + moved * size // per_cycle + (2 + 4 * labels) * size // per_cycle
    total: IntArray = count * rounds * (alpha + gradient + exchanges + 2 * SYNC)
    return total


def _bytes(
    sizes: Plan, label: IntArray, apart: IntArray, samples: IntArray, steps: IntArray,
    labels: IntArray,
) -> IntArray:  # fmt: skip
    """Estimate the temporary bytes of a tile."""
    rows, partials = samples * steps * sizes.numClasses, sizes.partialsType.size
    states = 2 * labels + (labels * label == sizes.maxLabelLength)
    gradients = rows * partials * np.where(label + apart > 1, 2, 1)
    total: IntArray = (
        rows * sizes.inType.size
        + samples * labels * LABEL_BYTES
        + gradients
        + 4 * samples * states * partials
    )
    return total


def _wanted(constraints: Mapping[str, Any], values: dict[str, IntArray]) -> Any:
    """Return which cuts fulfil the constraints; raises poplibs_error for one that is not known."""
    mask: Any = True
    for group, given in constraints.items():
        names = PARALLEL + tuple(FIXED) if group == "parallel" else ("batch", "time", "label")
        if group not in ("parallel", "serial"):
            raise poplibs_error(f"ctc::plan: constraint {group!r}; parallel and serial are known")
        for name, number in given.items():
            if name not in names:
                known = ", ".join(names)
                raise poplibs_error(f"ctc::plan: constraint {group}.{name}; {known} are known")
            held = values.get(name, FIXED.get(name, 1)) if group == "parallel" else 1
            mask = mask & (held == int(number))
    return mask
