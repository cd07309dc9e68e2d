"""One plan for the three passes of a fully connected layer, in which its weights stay in place.

As in PopLibs (lib/poplin/ConvPlan.cpp): forward, backward and weight update cut the product of
[m, k] and [k, n] alike, into the same parts on the same tiles, where that is cheaper in sum than
a plan for each, which pays for the operands that it has to rearrange.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.products.convolution_cycles import input_group
from simulator.graph.machine.target import Target
from simulator.graph.types import FLOAT, IntArray
from simulator.logging import log
from simulator.poplibs import popsolver
from simulator.poplibs.poplin.planning.plan import Method, Plan
from simulator.poplibs.poplin.planning.plan_cost import Estimate, Part, Split, estimate
from simulator.poplibs.poplin.planning.planner import (
    Settings,
    allowed_bytes,
    made_at_once,
    plan_convolution,
)
from simulator.poplibs.poplin.planning.problem import Problem, even_candidates
from simulator.poplibs.poplin.planning.rearrange_cost import LAYER, rearranging_cycles


class Pass(NamedTuple):
    """Which sizes of [g, m, k] x [g, k, n] are a pass's batch, outputs and inputs."""

    batch: int
    outputs: int
    inputs: int


G, M, K, N = range(4)
PASSES = {
    "TRAINING_FWD": Pass(M, N, K),
    "TRAINING_BWD": Pass(M, K, N),
    "TRAINING_WU": Pass(K, N, M),
}
# Tiles are numbered by g, k, n, m in every pass, as for the forward one on its own.
PLACES = (G, K, N, M)


def plan_of(target: Target, problem: Problem, settings: Settings) -> Plan:
    """Return the plan of a convolution, or of a product as a pass of a fully connected layer."""
    log(
        "PL",
        "POPLIN",
        "DEBUG",
        f"Planning convolution with a per-tile memory limit of {allowed_bytes(target, settings)} "
        f"bytes across {settings.tiles} tiles.",
    )
    which = settings.fully_connected
    alone = replace(settings, fully_connected="", is_joint=None)
    if not which or problem.axes:
        return plan_convolution(target, problem, alone)
    pass_dims = PASSES[which]
    sizes = [problem.groups, 0, 0, 0]
    sizes[pass_dims.batch], sizes[pass_dims.outputs] = problem.batch, problem.outputs
    sizes[pass_dims.inputs] = problem.inputs
    forward = replace(problem, batch=sizes[M], outputs=sizes[N], inputs=sizes[K])
    return _plans(target, forward, alone, settings.is_joint)[which]


@lru_cache(maxsize=256)
def _plans(
    target: Target, forward: Problem, settings: Settings, is_joint: bool | None
) -> dict[str, Plan]:
    """Return the plans of the three passes: the joint ones, or the best of each."""
    problems = {name: _problem(forward, pass_) for name, pass_ in PASSES.items()}
    apart = {
        name: plan_convolution(target, p, replace(settings, purpose=f"{LAYER}{name}"))
        for name, p in problems.items()
    }
    # Types that differ are not planned jointly, as in PopLibs.
    if is_joint is False or (is_joint is None and forward.out_type != forward.dtype):
        return apart
    best: dict[str, Plan] | None = None
    least = float("inf") if is_joint else _cycles_of(apart)
    for methods in _methods(target, forward, settings):
        if _fewest_cycles(target, forward, settings, methods) > least:
            continue
        plans = _joint(target, forward, settings, problems, methods)
        if plans and (_cycles_of(plans), best is not None) <= (least, False):
            best, least = plans, _cycles_of(plans)
    return best or apart


def _fewest_cycles(
    target: Target, forward: Problem, settings: Settings, methods: dict[str, Method]
) -> int:
    """Return what passes of dot products take at least: a vector a cycle, on all tiles."""
    products = forward.groups * forward.batch * forward.inputs * forward.outputs
    passes = sum(method.vertex == "HMAC" for method in methods.values())
    return passes * products // (target.getVectorWidth(forward.dtype) * settings.tiles)


def _cycles_of(plans: dict[str, Plan]) -> int:
    """Add up the cycles of plans as PopLibs prices them, which leaves no tile free."""
    return sum(plan.total_cycles + plan.saved for plan in plans.values())


def _problem(forward: Problem, pass_: Pass) -> Problem:
    sizes = (forward.groups, forward.batch, forward.inputs, forward.outputs)
    batch, outputs, inputs = (sizes[dimension] for dimension in pass_)
    return replace(forward, batch=batch, outputs=outputs, inputs=inputs)


def _methods(target: Target, forward: Problem, settings: Settings) -> Iterator[dict[str, Method]]:
    """List the ways to compute all passes; what is summed in one step is of the smaller type."""
    problems = {name: _problem(forward, pass_) for name, pass_ in PASSES.items()}
    for methods in _ways(target, forward, settings):
        yield {
            name: made_at_once(target, problems[name], method) for name, method in methods.items()
        }


def _ways(target: Target, forward: Problem, settings: Settings) -> Iterator[dict[str, Method]]:
    """List the ways to compute all passes: weights stream by in each of them.

    The input channels of the forward pass are the outputs held in the weight update, whose input
    channels are the batch, held in the forward pass. As in PopLibs (lib/poplin/ConvVertexType.cpp;
    ConvModel.cpp, getFullyConnectedBwdConvVertexType, getFullyConnectedWuConvVertexType).
    """
    partials = FLOAT if forward.dtype == FLOAT else settings.partials
    group = input_group(target, forward.dtype)
    units = min(target.getNumConvUnits(forward.dtype, partials), group)
    amp = Method("AMP", partials, group, units, swapped=True, units=units)
    wide = replace(amp, out_group=group)
    for forward_amp in dict.fromkeys((amp, wide)):
        update = replace(amp, in_group=forward_amp.out_group, out_group=group)
        yield {**dict.fromkeys(PASSES, forward_amp), "TRAINING_WU": update}
    out_group = 1 if partials == FLOAT else 2
    groups = range(units, ceil_div(forward.inputs, units) * units + 1, units)
    firsts = {ceil_div(forward.inputs, size): size for size in reversed(groups)}
    for size in sorted({*firsts.values(), *((1,) if forward.dtype == FLOAT else ())}):
        dot = Method("HMAC", partials, size, out_group, swapped=True, dot=size)
        if forward.batch == 1 == out_group:
            update = Method("OuterProduct", forward.dtype, 1, size, swapped=True)
        else:
            update = dot if size == 1 else replace(amp, out_group=units)
        yield {**dict.fromkeys(PASSES, dot), "TRAINING_WU": update}


def _joint(
    target: Target,
    forward: Problem,
    settings: Settings,
    problems: dict[str, Problem],
    methods: dict[str, Method],
) -> dict[str, Plan] | None:
    """Return the parts that are cheapest for all passes; none if nothing fits.

    The weights, or what takes their place, stream by in every pass, and the batch is not cut: so
    each weight is used on one tile.
    """
    first = methods["TRAINING_FWD"]
    group, padded_batch = first.in_group, ceil_div(forward.batch, first.out_group) * first.out_group
    sizes = (forward.groups, forward.batch, forward.inputs, forward.outputs)
    steps = (1, padded_batch, group, group)
    problems = {name: replace(problem, grain=group) for name, problem in problems.items()}
    limit = int(target.bytes_per_tile * settings.memory_proportion)
    model = popsolver.Model()
    parts, largest, used = [], [], model.addConstant(1)
    for size, step in zip(sizes, steps, strict=True):
        candidates = even_candidates(size, step, settings.tiles)
        count = model.addVariable(1, candidates[-1], among=candidates)
        used = model.product([used, count])
        model.lessOrEqual(used, settings.tiles)
        parts.append(count)
        largest.append(model.ceildiv(ceil_div(size, step), count))

    def priced(arrays: list[IntArray], name: str) -> Estimate:
        blocks = [block * step for block, step in zip(arrays, steps, strict=False)]
        batch, outputs, inputs = PASSES[name]
        counts = arrays[len(sizes) :]
        part = Part(blocks[G], blocks[batch], (), blocks[outputs], (), blocks[inputs])
        split = Split(counts[inputs], counts[outputs], counts[batch])
        problem, method, tiles = problems[name], methods[name], np.multiply.reduce(counts)
        estimate_of_pass = estimate(target, problem, method, part, split, ())
        moved = rearranging_cycles(target, problem, method, LAYER + name, tiles, joint=True)
        return estimate_of_pass._replace(cycles={"transform": moved, **estimate_of_pass.cycles})

    def cycles(arrays: list[IntArray]) -> IntArray:
        estimates = [priced(arrays, name) for name in PASSES]
        fits = np.all([one.bytes <= limit for one in estimates], axis=0)
        every = [stage for one in estimates for stage in one.cycles.values()]
        return np.where(fits, np.add.reduce(every), -1)

    inputs = [*largest, *parts]
    solution = model.minimize(model.call(inputs, cycles, "cycles"))
    if not solution.validSolution():
        return None
    values = [np.array([solution[variable]]) for variable in inputs]
    counts = [solution[count] for count in parts]
    estimates = {name: priced(values, name) for name in PASSES}
    return {
        name: _plan(target, problems[name], methods[name], counts, name, of_pass, limit)
        for name, of_pass in estimates.items()
    }


def _plan(
    target: Target,
    problem: Problem,
    method: Method,
    counts: list[int],
    name: str,
    estimate: Estimate,
    limit: int,
) -> Plan:
    """Return the plan of one pass."""
    dimensions = (G, *PASSES[name])
    return Plan(
        problem,
        method,
        tuple(counts[dimension] for dimension in dimensions),
        tuple((stage, int(np.ravel(value)[0])) for stage, value in estimate.cycles.items()),
        int(np.ravel(estimate.bytes)[0]),
        limit,
        order=tuple(dimensions.index(dimension) for dimension in PLACES),
        workers=target.workers,
    )
