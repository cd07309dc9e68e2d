"""One plan for the three passes of a fully connected layer, in which its weights stay in place.

As in PopLibs (lib/poplin/ConvPlan.cpp): forward, backward and weight update cut the product of
[m, k] and [k, n] alike, into the same parts on the same tiles, where that is cheaper in sum than
a plan for each, the backward one with weights that are rearranged first.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import lcm
from typing import NamedTuple

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.graph.target import Target
from simulator.graph.types import IntArray
from simulator.poplibs import popsolver
from simulator.poplibs.poplin.plan import Method, Plan
from simulator.poplibs.poplin.plan_cost import Estimate, Part, Split, arrange_cycles, estimate
from simulator.poplibs.poplin.planner import Settings, methods_of, plan_convolution
from simulator.poplibs.poplin.problem import Problem, even_candidates


class Pass(NamedTuple):
    """Which sizes of [g, m, k] x [g, k, n] are a pass's batch, outputs and inputs."""

    batch: int
    outputs: int
    inputs: int


TRANSPOSED = 16  # elements of a row of the matrices by which weights are rearranged
G, M, K, N = range(4)
PASSES = {
    "TRAINING_FWD": Pass(M, N, K),
    "TRAINING_BWD": Pass(M, K, N),
    "TRAINING_WU": Pass(K, N, M),
}
# Tiles are numbered by g, k, n, m in every pass, as for the forward one on its own.
PLACES = (G, K, N, M)


def plan_of(target: Target, problem: Problem, settings: Settings) -> Plan:
    """Find the plan of a convolution, or of a product that is a pass of a fully connected layer."""
    which = settings.fully_connected
    alone = replace(settings, fully_connected="", is_joint=None)
    if not which or problem.axes:
        return plan_convolution(target, problem, alone)
    chosen = PASSES[which]
    sizes = [problem.groups, 0, 0, 0]
    sizes[chosen.batch], sizes[chosen.outputs] = problem.batch, problem.outputs
    sizes[chosen.inputs] = problem.inputs
    forward = replace(problem, batch=sizes[M], outputs=sizes[N], inputs=sizes[K])
    return _plans(target, forward, alone, settings.is_joint)[which]


@lru_cache(maxsize=256)
def _plans(
    target: Target, forward: Problem, settings: Settings, is_joint: bool | None
) -> dict[str, Plan]:
    """Return the plans of the three passes: the joint ones, or the best of each."""
    problems = {name: _problem(forward, pass_) for name, pass_ in PASSES.items()}
    apart = {name: plan_convolution(target, p, settings) for name, p in problems.items()}
    weights = forward.groups * forward.outputs * forward.inputs
    share = np.array([ceil_div(ceil_div(weights, TRANSPOSED), settings.tiles)])
    moved = arrange_cycles(target, forward, share, np.array([TRANSPOSED]))
    rearranged = int(moved[0]) + 2 * target.getMaxIPUSyncDelay()
    cost = sum(plan.total_cycles for plan in apart.values()) + rearranged
    together = None if is_joint is False else _joint(target, forward, settings, problems)
    if together is None:
        return apart
    cheaper = sum(plan.total_cycles for plan in together.values()) <= cost
    return together if cheaper or is_joint else apart


def _problem(forward: Problem, pass_: Pass) -> Problem:
    sizes = (forward.groups, forward.batch, forward.inputs, forward.outputs)
    batch, outputs, inputs = (sizes[dimension] for dimension in pass_)
    return replace(forward, batch=batch, outputs=outputs, inputs=inputs)


def _joint(
    target: Target, forward: Problem, settings: Settings, problems: dict[str, Problem]
) -> dict[str, Plan] | None:
    """Find the parts that are cheapest for all passes; none if nothing fits.

    The weights, or what takes their place, stream through the matrix units in every pass, and the
    batch is not cut: so each weight is used on one tile.
    """
    method = next(
        m for m in methods_of(target, forward, settings) if m.vertex == "AMP" and m.swapped
    )
    sizes = (forward.groups, forward.batch, forward.inputs, forward.outputs)
    steps = (1, forward.batch, *(lcm(method.in_group, method.out_group),) * 2)
    problems = {name: replace(problem, grain=steps[K]) for name, problem in problems.items()}
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
        blocks = [
            np.minimum(block * step, size)
            for block, step, size in zip(arrays, steps, sizes, strict=False)
        ]
        batch, outputs, inputs = PASSES[name]
        counts = arrays[len(sizes) :]
        part = Part(blocks[G], blocks[batch], (), blocks[outputs], (), blocks[inputs])
        split = Split(counts[inputs], counts[outputs], counts[batch])
        return estimate(target, problems[name], method, part, split, ())

    def cycles(arrays: list[IntArray]) -> IntArray:
        found = [priced(arrays, name) for name in PASSES]
        fits = np.all([one.bytes <= limit for one in found], axis=0)
        every = [stage for one in found for stage in one.cycles.values()]
        return np.where(fits, np.add.reduce(every), -1)

    inputs = [*largest, *parts]
    solution = model.minimize(model.call(inputs, cycles, "cycles"))
    if not solution.validSolution():
        return None
    values = [np.array([solution[variable]]) for variable in inputs]
    counts = [solution[count] for count in parts]
    return {
        name: _plan(problems[name], method, counts, PASSES[name], priced(values, name), limit)
        for name in PASSES
    }


def _plan(
    problem: Problem,
    method: Method,
    counts: list[int],
    pass_: Pass,
    found: Estimate,
    limit: int,
) -> Plan:
    """Return the plan of one pass."""
    dimensions = (G, *pass_)
    return Plan(
        problem,
        method,
        tuple(counts[dimension] for dimension in dimensions),
        tuple((stage, int(np.ravel(value)[0])) for stage, value in found.cycles.items()),
        int(np.ravel(found.bytes)[0]),
        limit,
        order=tuple(dimensions.index(dimension) for dimension in PLACES),
    )
