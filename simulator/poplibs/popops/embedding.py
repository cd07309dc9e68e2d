"""Plans of lookups in embeddings: how rows, columns and offsets are shared among the tiles.

All ways to split them that give a tile different numbers of rows, columns or offsets are weighed at
once; the one with the fewest bytes is taken whose temporary data fits: PopLibs of March 2021.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import lcm
from typing import Any, overload

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.indexing.slicing import UpdateKind
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.option_table import OptionValue
from simulator.graph.types import FLOAT, HALF, IntArray, Type, checked_type
from simulator.logging import library_call, log
from simulator.poplibs.popops.overloads import NEEDED, arguments_of
from simulator.poplibs.popops.slicing.index_bounds import gather_options
from simulator.poplibs.popops.slicing.planned.embedding_cost import (
    KEPT_WEIGHT,
    Estimate,
    Problem,
    Splits,
)
from simulator.poplibs.popops.slicing.planned.slice_plan import (
    SPLITS,
    Options,
    SlicePlan,
    constraints,
    proportion,
    slice_options,
)

NAME = "embedding::plan"


@dataclass(frozen=True, slots=True)
class SlicePlanningParameters:
    """The arguments of `plan`, of which `planMultiple` takes several."""

    graph: Graph
    dataType: Type
    groupSize: int
    numEntries: int
    outputSize: int
    numLookups: Sequence[int]
    optionFlags: Options = None


@overload
def plan(
    graph: Graph,
    dataType: Type,
    numEntries: int,
    outputSize: int,
    numLookups: Sequence[int],
    options: Options = None,
) -> SlicePlan: ...
@overload
def plan(
    graph: Graph,
    dataType: Type,
    groupSize: int,
    numEntries: int,
    outputSize: int,
    numLookups: Sequence[int],
    options: Options = None,
) -> SlicePlan: ...
@library_call("POPOPS")
def plan(graph: Graph, dataType: Type, *arguments: object, **named: object) -> SlicePlan:
    """Plan slices and updates of a matrix [numEntries][outputSize] by so many offsets.

    With a `groupSize` there are as many matrices. Raises poplibs_error when no split fulfils the
    constraints.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> plan = popops.embedding.plan(trial.graph, poplar.FLOAT, 8, 4, [2])  # rows, columns, offsets
    >>> popops.createSliceableTensor(trial.graph, poplar.FLOAT, [8, 4], [0], [1], plan, {}).shape
    (8, 4)
    """
    sizes: dict[str, object] = {"numEntries": NEEDED, "outputSize": NEEDED, "numLookups": NEEDED}
    grouped = "groupSize" in named or (
        len(arguments) > 3 and isinstance(arguments[2], int | np.integer)
    )
    first: dict[str, object] = {"groupSize": NEEDED} if grouped else {}
    call_args = arguments_of(NAME, {**first, **sizes, "options": None}, arguments, named)
    options = slice_options(gather_options(call_args["options"], NAME)[1], NAME)
    bound = constraints(options, NAME)
    problem = _problem(graph, checked_type(dataType, NAME), call_args, options, bound)
    splits = _ways(problem, bound, options)
    if not len(splits.lookup):
        raise poplibs_error(
            f"{NAME}: no way to split {problem.rows} rows, {problem.columns} columns and "
            f"{problem.offsets} offsets over {problem.target.num_tiles} tiles with {bound}"
        )
    room = proportion(options, NAME) * problem.target.getBytesPerTile()
    best_plan, temporary = _smallest(problem, splits, options, room)
    log(
        "PL",
        "POPOPS",
        "DEBUG",
        f"Embedding plan {best_plan}\ntemporary bytes of a tile: {temporary}, "
        f"availableMemoryProportion={proportion(options, NAME)}",
    )
    return best_plan


@library_call("POPOPS")
def planMultiple(params: Sequence[SlicePlanningParameters]) -> list[SlicePlan]:
    """Plan slices and updates of several matrices; each plan is that of `plan`.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> sizes = 1, 8, 4, [2]  # groups, rows, columns, offsets
    >>> one = popops.embedding.SlicePlanningParameters(trial.graph, poplar.FLOAT, *sizes, {})
    >>> len(popops.embedding.planMultiple([one, one]))
    2
    """
    return [
        plan(
            one.graph,
            one.dataType,
            one.groupSize,
            one.numEntries,
            one.outputSize,
            one.numLookups,
            one.optionFlags,
        )
        for one in params
    ]


def _problem(
    graph: Graph,
    dtype: Type,
    call_args: Mapping[str, Any],
    options: Mapping[str, OptionValue],
    bound: Mapping[str, int],
) -> Problem:
    """Put sizes and options together; raises poplibs_error for sizes that cannot be."""
    rows, columns, groups = (
        call_args["numEntries"],
        call_args["outputSize"],
        call_args.get("groupSize", 1),
    )
    offsets = max(call_args["numLookups"], default=1)
    if min(rows, columns, groups, offsets) < 1:
        raise poplibs_error(
            f"{NAME}: {groups} matrices of {rows} rows and {columns} columns, {offsets} offsets; "
            "at least 1 of each is needed"
        )
    if not (options["usedForSlice"] or options["usedForUpdate"]):
        raise poplibs_error(f"{NAME}: usedForSlice and usedForUpdate are false; one must be true")
    kinds: dict[str, UpdateKind] = {
        "none": "",
        "add": "ADD",
        "max": "MAX",
        "mul": "MUL",
    }
    kind = kinds[str(options["operationForUpdate"])]
    partials = {"half": HALF, "float": FLOAT}.get(str(options["partialType"]), FLOAT)
    whole_words = lcm(graph.target.getAtomicStoreGranularity(), dtype.size) // dtype.size
    return Problem(
        target=graph.target,
        dtype=dtype,
        partials=partials if kind == "ADD" and dtype in (FLOAT, HALF) else dtype,
        matrices=groups,
        rows=rows,
        columns=columns,
        offsets=offsets,
        grain=min(columns, bound.get("unslicedGrainSize", whole_words)),
        update=kind,
    )


def _ways(problem: Problem, bound: Mapping[str, int], options: Mapping[str, OptionValue]) -> Splits:
    """List the ways to split a problem that use no more tiles than there are.

    The offsets of updates without an operation stay together, as the last of them counts; so do
    those of integers, which have no sums of scaled partials.
    """
    together = problem.update == "" or problem.dtype not in (FLOAT, HALF)
    most = {
        "lookupSplit": 1 if options["usedForUpdate"] and together else problem.offsets,
        "slicedDimSplit": ceil_div(problem.rows, 2),
        "unslicedDimSplit": ceil_div(problem.columns, problem.grain),
        "groupSplit": problem.matrices,
    }
    sizes = {**most, "lookupSplit": problem.offsets, "slicedDimSplit": problem.rows}
    tiles = problem.target.num_tiles
    ways = np.ones((1, 0), dtype=np.int64)
    for name in SPLITS:
        numbers = _splits_of(sizes[name], min(most[name], tiles))
        numbers = numbers if name not in bound else numbers[:0]
        if name in bound and bound[name] <= most[name]:
            numbers = np.array([bound[name]], dtype=np.int64)
        longer = np.repeat(ways, len(numbers), axis=0)
        ways = np.column_stack([longer, np.tile(numbers, len(ways))])
        ways = ways[ways.prod(axis=1) <= tiles]
    return Splits(*ways.T.copy())


def _splits_of(size: int, most: int) -> IntArray:
    """List the splits of a size, up to `most`, that give different sizes of the parts."""
    numbers = np.arange(1, most + 1, dtype=np.int64)
    return np.unique(ceil_div(size, ceil_div(size, numbers)))


def _smallest(
    problem: Problem, splits: Splits, options: Mapping[str, OptionValue], room: float
) -> tuple[SlicePlan, int]:
    """Take the way with the fewest bytes among those whose temporary data fits, else among all.

    What stays on the tile weighs more than what is there for a time.
    """
    estimate = Estimate(problem, splits)
    temporary = np.zeros_like(splits.lookup)
    for used, part in (("usedForSlice", estimate.slice), ("usedForUpdate", estimate.update)):
        if options[used]:
            temporary = np.maximum(temporary, part())
    fits = np.flatnonzero(temporary <= room)
    if not len(fits):
        log("PL", "POPOPS", "WARN", f"{NAME}: no plan needs at most {room:,.0f} temporary bytes")
        fits = np.arange(len(temporary))
    goal = KEPT_WEIGHT * estimate.kept(bool(options["usedForUpdate"])) + temporary
    best = fits[np.lexsort((splits.tiles[fits], goal[fits]))[0]]
    best_plan = SlicePlan(
        lookupSplit=int(splits.lookup[best]),
        slicedDimSplit=int(splits.sliced[best]),
        unslicedDimSplit=int(splits.unsliced[best]),
        groupSplit=int(splits.group[best]),
        unslicedGrainSize=problem.grain,
        groupSize=problem.matrices,
        isNull=False,
    )
    return best_plan, int(temporary[best])
