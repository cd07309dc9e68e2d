"""Check the planner against physics: no plan beats its machine's peak, larger problems take longer.

    python -m benchmarks.physics --problems 2000 --step 64

Plans are priced, not compiled. `peak` are random products and convolutions on every machine whose
multiplications take fewer cycles than the matrix units need for them. `growth` are those that take
fewer cycles when one dimension is doubled. `dips` are square products whose throughput is below
that of a smaller one.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from simulator import poplar
from simulator.graph.target import Target
from simulator.graph.types import FLOAT, HALF, Type
from simulator.poplibs.poplin import ConvParams, InputTransform, OutputTransform
from simulator.poplibs.poplin.joint_plan import plan_of
from simulator.poplibs.poplin.plan import Plan
from simulator.poplibs.poplin.planner import Settings
from simulator.poplibs.poplin.problem import compact, flattened, problem_of

MACHINES = ("mk1", "mk2", "bow", "ipu21")
TYPES = ((HALF, HALF), (HALF, FLOAT), (FLOAT, FLOAT))  # of the inputs and of the partials
PER_UNIT = {HALF: 4, FLOAT: 1}  # multiplications of a unit in a cycle
PROPORTION = 0.6
DIP = 0.03
GROWN = ("batchSize", "inputChannelsPerConvGroup", "outputChannelsPerConvGroup")


@dataclass(frozen=True, slots=True)
class Case:
    """A problem on a machine."""

    machine: str
    params: ConvParams
    partials: Type

    def __str__(self) -> str:
        """Name the sizes."""
        p = self.params
        return (
            f"{self.machine} {p.dataType}/{self.partials} batch {p.batchSize} "
            f"{p.inputChannelsPerConvGroup}->{p.outputChannelsPerConvGroup} x {p.numConvGroups} "
            f"field {p.inputFieldShape} kernel {p.kernelShape} stride {p.outputTransform.stride} "
            f"padding {p.inputTransform.paddingLower}"
        )


def target_of(machine: str) -> Target:
    """Return the target of a machine."""
    return poplar.IPUModel(machine).createDevice().getTarget()


def plan_of_case(case: Case) -> Plan:
    """Plan a problem alone."""
    target = target_of(case.machine)
    settings = Settings(target.tiles_per_ipu, case.partials, PROPORTION)
    return plan_of(target, flattened(compact(problem_of(case.params))), settings)


def least_cycles(case: Case) -> float:
    """Return the cycles that all tiles' matrix units need for what is not padding."""
    target, params = target_of(case.machine), case.params
    macs = params.batchSize * params.numConvGroups
    macs *= params.inputChannelsPerConvGroup * params.outputChannelsPerConvGroup
    for axis in problem_of(params).axes:
        macs *= int((axis.reads >= 0).sum())
    units = target.getNumConvUnits(params.dataType, case.partials)
    return macs / (target.tiles_per_ipu * units * PER_UNIT[params.dataType])


def random_case(generator: np.random.Generator) -> Case:
    """Draw a product or a convolution, and a machine for it."""
    dtype, partials = TYPES[generator.integers(len(TYPES))]
    dims = int(generator.integers(0, 3))
    sizes = 2 ** generator.uniform(0, 11 if not dims else 8, 4)
    batch, inputs, outputs = (max(1, int(size)) for size in sizes[:3])
    groups = int(generator.choice([1, 1, 1, 4, 32]))
    kernel = tuple(int(k) for k in generator.integers(1, 6, dims))
    field = tuple(k + int(f) for k, f in zip(kernel, generator.integers(0, 60, dims), strict=True))
    params = ConvParams(
        dtype,
        batch,
        field,
        kernel,
        inputs,
        outputs,
        groups,
        InputTransform(
            paddingLower=[int(generator.integers(k)) for k in kernel],
            paddingUpper=[int(generator.integers(k)) for k in kernel],
        ),
        outputTransform=OutputTransform(stride=[int(s) for s in generator.integers(1, 3, dims)]),
    )
    return Case(str(generator.choice(MACHINES)), params, partials)


def cases(count: int, seed: int = 0) -> Iterator[Case]:
    """Draw so many problems."""
    generator = np.random.default_rng(seed)
    for _ in range(count):
        yield random_case(generator)


def faster_than_peak(chosen: Iterator[Case]) -> Iterator[str]:
    """Name the plans whose multiplications take fewer cycles than the machine's peak allows."""
    for case in chosen:
        plan = plan_of_case(case)
        taken, least = plan.slices * dict(plan.cycles)["multiply"], least_cycles(case)
        if taken < least:
            yield f"{case}: {taken:,} cycles, {least:,.0f} at least; {plan.describe()}"


def falls(chosen: Iterator[Case]) -> Iterator[str]:
    """Name the plans that take fewer cycles when one dimension is doubled."""
    for case in chosen:
        before = plan_of_case(case).total_cycles
        for name in GROWN:
            larger = replace(case.params, **{name: 2 * getattr(case.params, name)})
            after = plan_of_case(replace(case, params=larger)).total_cycles
            if after < before:
                yield f"{case}: {before:,} cycles, with {name} doubled {after:,}"


def dips(machine: str, dtype: Type, sizes: range) -> Iterator[str]:
    """Name square products whose throughput is more than DIP below that of a smaller one."""
    best = 0.0
    for size in sizes:
        params = ConvParams(dtype, size, (), (), size, size)
        rate = size**3 / plan_of_case(Case(machine, params, FLOAT)).total_cycles
        if rate < (1 - DIP) * best:
            yield f"{machine} {dtype} n = {size:,}: {rate / best - 1:+.1%}"
        best = max(best, rate)


def main() -> None:
    """Print all that breaks a rule."""
    given = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    given.add_argument("--problems", type=int, default=200, help="random problems")
    given.add_argument("--step", type=int, default=256, help="from a square product to the next")
    options = given.parse_args()
    rules = {
        "peak": list(faster_than_peak(cases(options.problems))),
        "growth": list(falls(cases(options.problems // 4))),
        "dips": [
            line
            for machine in ("mk1", "mk2")
            for dtype in (HALF, FLOAT)
            for line in dips(machine, dtype, range(256, 4097, options.step))
        ],
    }
    for rule, lines in rules.items():
        print(f"{rule}: {len(lines)}")
        print("".join(f"  {line}\n" for line in lines), end="")


if __name__ == "__main__":
    main()
