"""Choose how a convolution is divided: the cheapest way whose data fits into the tiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from math import gcd
from operator import mul
from typing import TypeAlias

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.products.convolution_cycles import input_group
from simulator.graph.errors import PoplarError
from simulator.graph.machine.target import Target
from simulator.graph.types import FLOAT, HALF, IntArray, Type
from simulator.poplibs import popsolver
from simulator.poplibs.poplin.planning.plan import ONE_GRAIN, Method, Plan, row_length
from simulator.poplibs.poplin.planning.plan_cost import Part, Split, held_bytes, stage_cycles
from simulator.poplibs.poplin.planning.problem import (
    Problem,
    even_candidates,
)
from simulator.poplibs.poplin.planning.rearrange_cost import (
    LAYER,
    PRODUCTS,
    TRAINING,
    rearranging_cycles,
)
from simulator.poplibs.poplin.planning.serial import (
    SerialCost,
    loop_cycles,
    serial_cost,
    serial_splits,
    slice_of,
    tile_products,
)
from simulator.poplibs.poplin.planning.serial_split import SerialSplit
from simulator.poplibs.poplin.planning.transforms import Transform, transforms_of

SLIC_CHANNELS, MAX_SLIC_STRIDE = (1, 2, 4), 2
AS_IT_IS = Transform()
VMAC_GROUPS = 4  # halves that a worker multiplies in a cycle
MAX_ROWS = 1 << 16  # that are priced at once; their columns stay in a processor's cache
LEAST_LIMIT = 256  # part of a tile's memory that is doubled where nothing is allowed
DEFAULT_MEMORY_PROPORTION = 0.6  # as PopLibs' availableMemoryProportion


@dataclass(frozen=True)
class Settings:
    """What a plan must keep to; `fully_connected` is the pass of such a layer, if it is of one.

    `is_joint` says whether its passes have one plan; None leaves it to what is cheaper. `purpose`
    is the pass as PopLibs' option of convolutions has it.
    """

    tiles: int
    partials: Type = FLOAT
    memory_proportion: float = DEFAULT_MEMORY_PROPORTION
    fully_connected: str = ""
    is_joint: bool | None = None
    purpose: str = "NONE"
    slices: tuple[tuple[str, int], ...] = ()  # that a serial split has to have, by dimension


@lru_cache(maxsize=512)
def plan_convolution(target: Target, problem: Problem, settings: Settings) -> Plan:
    """Return the cheapest plan of all forms of a problem, within the least limit.

    To save time, other forms than the plain one are tried on the matrix units as they are alone.
    """
    for limit in _limits(target, settings):
        if plans := list(_plans_of_forms(target, problem, settings, limit)):
            return min(plans, key=lambda plan: plan.total_cycles)
    raise PoplarError(f"convolution: no plan of {problem}")


def _limits(target: Target, settings: Settings) -> Iterator[int]:
    """Return the bytes of temporary data of a tile that are allowed, and more where nothing fits.

    As in PopLibs (lib/poplin/ConvPlan.cpp, minimizeMemory): twice as many until they are twice a
    tile's memory, then any number.
    """
    limit = allowed_bytes(target, settings)
    yield limit
    limit = max(limit, target.bytes_per_tile // LEAST_LIMIT)
    while limit < 2 * target.bytes_per_tile:
        limit *= 2
        yield limit
    yield popsolver.LARGEST


def allowed_bytes(target: Target, settings: Settings) -> int:
    """Return the bytes of temporary data that a tile should have at most."""
    return int(target.bytes_per_tile * settings.memory_proportion)


def _plans_of_forms(
    target: Target, problem: Problem, settings: Settings, limit: int
) -> Iterator[Plan]:
    """Yield the cheapest plan of each form that has one within a limit."""
    trained = settings.purpose.startswith(TRAINING)
    for form in transforms_of(target, problem, trained=trained):
        form_problem = form.problem(problem)
        all_methods = methods_of(target, form_problem, settings)
        plain = not form.swap and not form.expanded and form.combined == 1
        methods = [m for m in all_methods if plain or m.describe() == "AMP"]
        if plan := _plan_of_form(target, form_problem, settings, limit, methods, form):
            # The price of trained ones has what is rearranged.
            spread = 0 if trained else form.cycles(target, problem, settings.tiles)
            stages = (("transform", spread), *plan.cycles) if spread else plan.cycles
            yield replace(plan, transform=form, cycles=stages)


def _plan_of_form(
    target: Target,
    problem: Problem,
    settings: Settings,
    limit: int,
    methods: list[Method],
    form: Transform = AS_IT_IS,
) -> Plan | None:
    """Return the cheapest plan whose temporary data fits into a limit; None if there is none.

    Ways of few slices come first. Those that cannot be cheaper than the best so far are left out,
    and so are more slices of a dimension once they cost no less than fewer.
    """
    ways = [
        (split, method)
        for method in methods
        for split in serial_splits(problem, method)
        if split.has(settings.slices, swapped=method.swapped)
    ]
    if form.expanded:  # slices of kernels and of sums would cut what is laid out
        ways = [way for way in ways if way[0].dimension in ("", "outputs")]
    best: Plan | None = None
    least: dict[tuple[Method, str], int] = {}
    dearer: set[tuple[Method, str]] = set()
    for split, method in sorted(ways, key=lambda way: way[0].count):
        way = method, split.dimension
        cheaper = best.total_cycles if best else popsolver.LARGEST
        cheaper -= loop_cycles(target, problem, method, split, settings.tiles)
        least_tiles = tile_products(target, problem, method) // max(cheaper, 1)
        if way in dearer or cheaper <= 0 or least_tiles > settings.tiles:
            continue
        plan = _solve(target, problem, method, settings, limit, split, least_tiles, form)
        if plan is None:
            continue
        if plan.total_cycles >= least.get(way, least.get((method, ""), popsolver.LARGEST)):
            dearer.add(way)
        least[way] = plan.total_cycles
        if best is None or plan.total_cycles < best.total_cycles:
            best = plan
    return best


def fixed_plan(target: Target, problem: Problem, plan: Plan, settings: Settings) -> Plan:
    """Return the plan of another slice: the same one, if its size is the same."""
    alone = SerialSplit()
    if problem.sizes() == plan.problem.sizes():
        return replace(plan, problem=problem, serial=alone)
    limit = max(plan.limit, plan.temporary_bytes)
    plan_found = _solve(target, problem, plan.method, settings, limit, alone)
    return plan_found or plan_convolution(target, problem, settings)


def methods_of(target: Target, problem: Problem, settings: Settings) -> Iterator[Method]:
    """List the ways to compute a part."""
    partials = FLOAT if problem.dtype == FLOAT else settings.partials
    units = target.getNumConvUnits(problem.dtype, partials)
    group = input_group(target, problem.dtype)
    plain = not any(axis.kernel > 1 or axis.padding for axis in problem.axes)
    amp = Method("AMP", partials, group, units)
    product = settings.purpose.startswith(PRODUCTS)
    if product:  # of ways that cost the same PopLibs takes the first
        yield replace(amp, swapped=True)
    yield amp
    trained = settings.purpose.startswith(TRAINING)
    widths = [replace(amp, out_group=group, units=units)] if group > units else []
    if trained:
        yield from widths
        if problem.axes:  # several rows of the kernel at once, in groups of fewer channels
            sizes = [size for size in (group // 2, group // 4) if size * problem.dtype.size >= 8]
            yield from (replace(way, in_group=size) for size in sizes for way in (amp, *widths))
    if plain:
        if not product:
            yield from (replace(way, swapped=True) for way in (amp, *(widths * trained)))
        for wide in widths * product:
            yield from (replace(wide, swapped=True), wide)
        yield from _of_short_sums(target, problem, amp)
    elif not trained:
        yield replace(amp, expanded=True)
        yield replace(amp, expanded=True, swapped=True)
    yield from _of_dot_products(problem, partials)
    if problem.dtype == HALF and problem.axes:
        yield from _of_groups(problem, partials)


def _of_dot_products(problem: Problem, partials: Type) -> Iterator[Method]:
    """List the ways without the matrix units: sums of products, or products of single channels."""
    single = problem.dtype == FLOAT or problem.inputs == 1
    dot = Method("HMAC", partials, 1 if single else 2, 1 if partials == FLOAT else 2)
    ways = [dot]
    if problem.inputs > 1:  # a sum of whole vectors may take less than one of fewer products
        ways.append(replace(dot, in_group=8 // problem.dtype.size))
    if not problem.axes and problem.inputs == 1:
        ways.append(Method("OuterProduct", problem.dtype, 1, 8 // problem.dtype.size))
    for way in ways:
        if not problem.axes:
            yield replace(way, swapped=True)
        yield way


def made_at_once(target: Target, problem: Problem, method: Method) -> Method:
    """Return the method whose matrix units make results of the smaller type: sums of one step.

    Of ways with as many products a cycle PopLibs takes the one of the smaller type
    (lib/poplin/ConvVertexType.cpp, sortConvVertexTypeCandidates).
    """
    small, group = problem.out_type, input_group(target, problem.dtype)
    summed = ceil_div(problem.inputs, method.in_group) * method.in_group
    if method.vertex != "AMP" or small.size >= method.partials.size or summed != group:
        return method
    units = min(target.getNumConvUnits(problem.dtype, small), method.out_group)
    return replace(method, partials=small, units=units)


def _of_short_sums(target: Target, problem: Problem, amp: Method) -> Iterator[Method]:
    """List the ways to make results of the smaller type at once: for sums of one step.

    As in PopLibs (lib/poplin/ConvVertexType.cpp, getConvVertexAMPCandidates).
    """
    small = problem.out_type
    if small.size < amp.partials.size and problem.inputs <= amp.in_group:
        units = target.getNumConvUnits(problem.dtype, small)
        short = replace(amp, partials=small, out_group=units)
        yield from (short, replace(short, swapped=True))


def _of_groups(problem: Problem, partials: Type) -> Iterator[Method]:
    """List the ways to compute several groups at once, or groups of few channels."""
    channels = max(problem.inputs, problem.outputs)
    # A kernel row slides over neighbours: neither it nor the input has zeros between.
    slides = all(axis.kernel_step == axis.input_step == 1 for axis in problem.axes)
    if slides and problem.axes[-1].kernel > 1 and problem.axes[-1].stride <= MAX_SLIC_STRIDE:
        for size in SLIC_CHANNELS if channels <= SLIC_CHANNELS[-1] else ():
            yield Method("SLIC", partials, size, size, conv_groups=SLIC_CHANNELS[-1] // size)
    if problem.outputs == 1:
        yield Method("VMAC", partials, 1, 1, conv_groups=VMAC_GROUPS)


def _solve(
    target: Target,
    full_problem: Problem,
    method: Method,
    settings: Settings,
    limit: int,
    split: SerialSplit,
    least_tiles: int = 0,
    form: Transform = AS_IT_IS,
) -> Plan | None:
    """Choose the parts of each dimension of a slice, within a limit of bytes: the cheapest.

    On fewer than `least_tiles` no plan can be cheap enough. Of those that cost the same, those of
    fewer bytes are chosen, then those of fewer parts of the first dimensions.
    """
    problem = slice_of(full_problem, split, method)
    trained = settings.purpose.startswith(TRAINING)
    every_count = _part_counts(full_problem, problem, method, split, settings.tiles, trained)
    ways = _ways_to_cut([*every_count], least_tiles, settings.tiles)
    price = _Price(target, full_problem, problem, method, settings, split, form)
    best: tuple[int, int, int] | None = None  # cycles, bytes and row
    for begin in range(0, len(ways[0]), MAX_ROWS):
        chunk = [counts[begin : begin + MAX_ROWS] for counts in ways]
        rows, cycles, tile_bytes = price.within(limit, chunk)
        if len(rows):
            cheap = np.flatnonzero(cycles == cycles.min())
            first = cheap[tile_bytes[cheap].argmin()]
            cheapest = int(cycles[first]), int(tile_bytes[first]), begin + int(rows[first])
            best = min(best or cheapest, cheapest)
    if best is None:
        return None
    least_cycles, its_bytes, row = best
    chosen = [counts[row : row + 1] for counts in ways]
    stages = price.stages(price.parts(chosen), settings.tiles)
    by_slice, once = (_numbers(of) for of in stages)
    plan = Plan(
        problem,
        method,
        tuple(int(count[0]) for count in chosen),
        by_slice,
        its_bytes,
        allowed_bytes(target, settings),
        serial=split,
        once=once,
        whole=full_problem,
        workers=target.workers,
    )
    plan = _in_rows(target, plan, settings.tiles, least_cycles)
    return _of_whole_dots(plan) if method.vertex == "HMAC" else plan


def _ways_to_cut(every_count: list[list[int]], least: int, most: int) -> list[IntArray]:
    """Return the parts of each dimension, of each way that has from `least` to `most` in all."""
    ways: list[IntArray] = []
    used = np.ones(1, dtype=np.int64)
    for counts in every_count:
        number = np.array(counts, dtype=np.int64)
        together = used[:, None] * number
        row, place = np.nonzero(together <= most)
        used, ways = together[row, place], [*(way[row] for way in ways), number[place]]
    enough = used >= least
    return ways if enough.all() else [way[enough] for way in ways]


def _part_counts(
    full_problem: Problem,
    problem: Problem,
    method: Method,
    split: SerialSplit,
    tiles: int,
    trained: bool,
) -> Iterator[list[int]]:
    """List for each dimension of a slice into how many parts it may be cut.

    As in PopLibs, slices and their parts together cut the whole dimension evenly.
    """
    sizes, grains = problem.sizes(), method.grains(problem)
    for d, (name, size, grain) in enumerate(zip(problem.names(), sizes, grains, strict=True)):
        counts = even_candidates(size, grain, tiles)
        if name == split.dimension:
            pieces = even_candidates(full_problem.sizes()[d], grain, tiles * split.count)
            counts = [number // split.count for number in pieces if number % split.count == 0]
        if trained and name == f"kernel{len(problem.axes) - 1}":
            counts = [1]  # the innermost is not cut (ConvModel.cpp)
        if name in ONE_GRAIN.get(method.vertex, ()):
            counts = [number for number in counts if number == ceil_div(size, grain)]
        yield counts


def _numbers(stages: dict[str, IntArray]) -> tuple[tuple[str, int], ...]:
    return tuple((name, int(np.ravel(value)[0])) for name, value in stages.items())


_Parts: TypeAlias = tuple[Part, Split, SerialCost]


@dataclass(frozen=True)
class _Price:
    """What the largest part of a slice takes, for many ways to cut it at once."""

    target: Target
    full_problem: Problem
    problem: Problem
    method: Method
    settings: Settings
    split: SerialSplit
    form: Transform = AS_IT_IS

    def parts(self, counts: list[IntArray]) -> _Parts:
        """Return the largest part and the cuts of each way, and what its slices take."""
        problem, method, dims = self.problem, self.method, len(self.problem.axes)
        steps = [ceil_div(*of) for of in zip(problem.sizes(), method.grains(problem), strict=True)]
        part = _part(problem, method, [*map(ceil_div, steps, counts)])
        sums, positions = reduce(mul, counts[3 + dims :]), reduce(mul, counts[1 : 2 + dims])
        cut = Split(sums, counts[2 + dims], positions)
        used = cut.sums * cut.outputs * cut.positions * ceil_div(problem.groups, part.groups)
        share = ceil_div(part.groups * part.outputs * part.positions, cut.sums)
        of_layer = self.settings.purpose.startswith(LAYER)
        serial = serial_cost(
            self.target, self.full_problem, method, self.split, used, share, of_layer=of_layer
        )
        return part, cut, serial

    def within(self, limit: int, counts: list[IntArray]) -> tuple[IntArray, IntArray, IntArray]:
        """Return which ways fit into a limit of bytes, and the cycles and bytes of each."""
        parts = self.parts(counts)
        taken = self.bytes(parts)
        rows = np.flatnonzero(taken <= limit)
        if not len(rows):
            return rows, rows, rows
        if len(rows) < len(taken):  # what does not fit is priced no further
            taken, parts = taken[rows], self.parts([count[rows] for count in counts])
        return rows, self.cycles(parts), taken

    def stages(
        self, parts: _Parts, tiles: int = 0
    ) -> tuple[dict[str, IntArray], dict[str, IntArray]]:
        """Return the cycles by stage of each slice, and of what is done once.

        As in PopLibs, each slice pays for the rearranging of whole operands.
        """
        part, cut, serial = parts
        target, problem, method = self.target, self.problem, self.method
        trained = self.settings.purpose.startswith(TRAINING)
        shares = _shares_of_outputs(problem) if trained else _shares_of_taps(problem)
        stages = stage_cycles(target, problem, method, part, cut, shares, shared=True, tiles=tiles)
        used = cut.sums * cut.outputs * cut.positions * ceil_div(problem.groups, part.groups)
        rearranged = rearranging_cycles(
            target,
            self.full_problem,
            method,
            self.settings.purpose,
            used,
            swap=self.form.swap,
            combined=self.form.combined > 1,
            laid_out=bool(self.form.expanded),
        )
        return {"transform": rearranged, **stages, **serial.by_slice}, serial.once

    def cycles(self, parts: _Parts) -> IntArray:
        """Add up all slices."""
        by_slice, once = self.stages(parts)
        total: IntArray = self.split.count * np.add.reduce([*by_slice.values()])
        return total + np.add.reduce([*once.values()]) if once else total

    def bytes(self, parts: _Parts) -> IntArray:
        """Return the temporary bytes of a tile."""
        part, cut, serial = parts
        return serial.bytes + held_bytes(self.target, self.problem, self.method, part, cut)


def _in_rows(target: Target, plan: Plan, tiles: int, price: int) -> Plan:
    """Let rows of parts that take the same begin with a bus; tell what that saves of the price."""
    rows, bus = plan.vertices // plan.alike, target.getTilesPerSharedExchangeBus()
    row = int(row_length(np.array(plan.alike), np.array(rows), bus, tiles))
    saved = price - plan.total_cycles
    return replace(plan, row=row if row > plan.alike and rows > 1 else 0, saved=saved)


def _of_whole_dots(plan: Plan) -> Plan:
    """Let the channels of a part be one group, over which a vertex makes dot products."""
    grain, inputs = plan.method.in_group, plan.problem.inputs
    group = ceil_div(ceil_div(inputs, plan.parts[-1]), grain) * grain
    parts = (*plan.parts[:-1], ceil_div(inputs, group))
    return replace(plan, method=replace(plan.method, in_group=group, dot=group), parts=parts)


def _part(problem: Problem, method: Method, blocks: list[IntArray]) -> Part:
    """Return the sizes of the largest part from the steps it has in each dimension.

    They are whole steps: PopLibs fills groups of channels up with zeros, which are exchanged too.
    Where the kernel is laid out as channels, groups of both together are filled up instead.
    """
    grains = method.grains(problem)
    sizes = [block * grain for block, grain in zip(blocks, grains, strict=True)]
    if method.expanded:
        sizes[-1] = np.minimum(sizes[-1], problem.inputs)
    dims = len(problem.axes)
    return Part(
        sizes[0],
        sizes[1],
        tuple(sizes[2 : 2 + dims]),
        sizes[2 + dims],
        tuple(sizes[3 + dims : 3 + 2 * dims]),
        sizes[-1],
    )


def _shares_of_taps(problem: Problem) -> tuple[float, ...]:
    """Return for each dimension the share of the kernel that meets an input and not a zero."""
    return tuple(float((axis.reads >= 0).mean()) for axis in problem.axes)


def _shares_of_outputs(problem: Problem) -> tuple[float, ...]:
    """Return for each dimension the share of outputs that an element of the kernel is priced for.

    Those that lie between inputs are left out, not those that it meets beside them
    (PerformanceEstimation.hpp, getConvPartialnx1InnerLoopCycleEstimate).
    """
    return tuple(gcd(axis.input_step, axis.stride) / axis.input_step for axis in problem.axes)
