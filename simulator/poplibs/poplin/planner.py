"""Choose how a convolution is divided: the cheapest way whose data fits into the tiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.products.convolution_cycles import input_group
from simulator.graph.errors import PoplarError
from simulator.graph.machine.target import Target
from simulator.graph.types import FLOAT, HALF, IntArray, Type
from simulator.poplibs import popsolver
from simulator.poplibs.poplin.plan import ONE_GRAIN, Method, Plan, row_length
from simulator.poplibs.poplin.plan_cost import Part, Split, held_bytes, stage_cycles
from simulator.poplibs.poplin.problem import (
    Problem,
    even_candidates,
    slice_kernel,
    slice_outputs,
)
from simulator.poplibs.poplin.rearrange_cost import PRODUCTS, rearranging_cycles
from simulator.poplibs.poplin.transforms import Transform, transforms_of

SLICE_GRAIN, MAX_SLICES = 16, 64  # outputs: the most that the matrix units make at once
FURTHER_SLICES = 8  # how many are tried when something fits already
SLIC_CHANNELS, MAX_SLIC_STRIDE = (1, 2, 4), 2
VMAC_GROUPS = 4  # halves that a worker multiplies in a cycle
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


@lru_cache(maxsize=512)
def plan_convolution(target: Target, problem: Problem, settings: Settings) -> Plan:
    """Find the cheapest plan among those of all forms of a problem, within the least limit.

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
    """Find the cheapest plan of each form that has one within a limit."""
    for form in transforms_of(target, problem):
        form_problem = form.problem(problem)
        all_methods = methods_of(target, form_problem, settings)
        methods = [m for m in all_methods if form == Transform() or m.describe() == "AMP"]
        if plan := _plan_of_form(target, form_problem, settings, limit, methods):
            spread = form.cycles(target, problem, settings.tiles)
            stages = (("transform", spread), *plan.cycles) if spread else plan.cycles
            yield replace(plan, transform=form, cycles=stages)


def _plan_of_form(
    target: Target, problem: Problem, settings: Settings, limit: int, methods: list[Method]
) -> Plan | None:
    """Find the cheapest plan whose temporary data fits into a limit; None if there is none.

    A method whose data does not fit is tried again on slices, made one after another.
    """
    fitting: list[Plan] = []
    waiting = methods
    for slices in (1 << power for power in range(MAX_SLICES.bit_length())):
        tried = waiting if slices <= FURTHER_SLICES or not fitting else []
        plans_by_method = {
            method: [
                replace(plan, slices=slices, whole=problem)
                for part in _slices_of(problem, slices, method)
                if (plan := _solve(target, part, method, settings, limit))
            ]
            for method in tried
        }
        fitting += [plan for plans in plans_by_method.values() for plan in plans]
        waiting = [method for method in tried if not plans_by_method[method]]
    return min(fitting, key=lambda plan: plan.total_cycles, default=None)


def fixed_plan(target: Target, problem: Problem, plan: Plan, settings: Settings) -> Plan:
    """Return the plan of another slice: the same one, if its size is the same."""
    if problem.sizes() == plan.problem.sizes():
        return replace(plan, problem=problem, slices=1)
    limit = max(plan.limit, plan.temporary_bytes)
    plan_found = _solve(target, problem, plan.method, settings, limit)
    return plan_found or plan_convolution(target, problem, settings)


def _slices_of(problem: Problem, slices: int, method: Method) -> Iterator[Problem]:
    """Return the largest slice of a problem cut in each dimension that can be sliced."""
    if slices == 1:
        yield problem
        return
    if problem.outputs >= slices * SLICE_GRAIN:
        yield slice_outputs(problem, 0, _step(problem.outputs, slices, SLICE_GRAIN))
    if method.expanded and problem.axes[0].kernel >= slices:
        yield slice_kernel(problem, 0, _step(problem.axes[0].kernel, slices, 1))


def _step(size: int, slices: int, grain: int) -> int:
    return ceil_div(ceil_div(size, slices), grain) * grain


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
    if plain:
        if not product:
            yield replace(amp, swapped=True)
        elif group > units:
            wide = replace(amp, out_group=group, units=units)
            yield from (replace(wide, swapped=True), wide)
        yield from _of_short_sums(target, problem, amp)
    else:
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
    problem: Problem,
    method: Method,
    settings: Settings,
    limit: int,
) -> Plan | None:
    """Let popsolver choose the number of parts of each dimension, within a limit of bytes."""
    model = popsolver.Model()
    sizes, grains = problem.sizes(), method.grains(problem)
    parts, largest, used = [], [], model.addConstant(1)
    for name, size, grain in zip(problem.names(), sizes, grains, strict=True):
        candidates = even_candidates(size, grain, settings.tiles)
        if name in ONE_GRAIN.get(method.vertex, ()):
            candidates = [parts for parts in candidates if parts == ceil_div(size, grain)]
        if not candidates:
            return None
        count = model.addVariable(1, candidates[-1], name, among=candidates)
        used = model.product([used, count])
        model.lessOrEqual(used, settings.tiles)
        parts.append(count)
        largest.append(model.ceildiv(-(-size // grain), count))
    dims = len(problem.axes)
    split = [model.product(parts[3 + dims :]), parts[2 + dims], model.product(parts[1 : 2 + dims])]
    shares = _shares_of_taps(problem)

    def stages(arrays: list[IntArray], tiles: int = 0) -> dict[str, IntArray]:
        *blocks, sums, outputs, positions = arrays
        part, cut = _part(problem, method, blocks), Split(sums, outputs, positions)
        stages = stage_cycles(target, problem, method, part, cut, shares, shared=True, tiles=tiles)
        used = sums * outputs * positions * ceil_div(problem.groups, part.groups)
        moved = rearranging_cycles(target, problem, method, settings.purpose, used)
        return {"transform": moved, **stages}

    def room(arrays: list[IntArray]) -> IntArray:
        *blocks, sums, outputs, positions = arrays
        part, cut = _part(problem, method, blocks), Split(sums, outputs, positions)
        return held_bytes(target, problem, method, part, cut)

    inputs = [*largest, *split]
    tile_bytes = model.call(inputs, room, "bytes")
    model.lessOrEqual(tile_bytes, limit)  # what does not fit is priced no further
    cost = model.call(inputs, lambda arrays: np.add.reduce([*stages(arrays).values()]), "cycles")
    solution = model.minimize([cost, tile_bytes])
    if not solution.validSolution():
        return None
    chosen = [np.array([solution[variable]]) for variable in inputs]
    stage_values = stages(chosen, settings.tiles)
    cycles = tuple((name, int(np.ravel(value)[0])) for name, value in stage_values.items())
    plan = Plan(
        problem,
        method,
        tuple(solution[count] for count in parts),
        cycles,
        solution[tile_bytes],
        allowed_bytes(target, settings),
        workers=target.workers,
    )
    plan = _in_rows(target, plan, settings.tiles, solution[cost])
    return _of_whole_dots(plan) if method.vertex == "HMAC" else plan


def _in_rows(target: Target, plan: Plan, tiles: int, price: int) -> Plan:
    """Let rows of parts that take the same begin with a bus; tell what that saves of the price."""
    rows, bus = plan.vertices // plan.alike, target.getTilesPerSharedExchangeBus()
    row = int(row_length(plan.alike, rows, bus, tiles))
    saved = price - sum(cycles for _, cycles in plan.cycles)
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
