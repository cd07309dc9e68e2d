"""Check the planner against physics: no plan beats its machine's peak, larger problems take longer.

    python -m benchmarks.physics --problems 2000 --step 64

Plans are priced, not compiled; it ends with status 1 where a claim does not hold. `peak` are random
products and convolutions on every machine whose multiplications take fewer cycles than the matrix
units X are those that take fewer cycles when one dimension grows,
by one or to twice its size. `dips` are square products whose throughput is below that of a smaller
one. `published` are products that are further than a tenth from a throughput that was published.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from simulator import poplar
from simulator.graph.machine.target import Target
from simulator.graph.types import FLOAT, HALF, Type
from simulator.poplibs.poplin import ConvParams, InputTransform, OutputTransform
from simulator.poplibs.poplin.planning.joint_plan import plan_of
from simulator.poplibs.poplin.planning.plan import Plan
from simulator.poplibs.poplin.planning.planner import Settings
from simulator.poplibs.poplin.planning.problem import Axis, compact, flattened, problem_of

MACHINES = ("mk1", "mk2", "bow", "ipu21")
TILES = {"mk1": 1216, "mk2": 1472, "bow": 1472, "ipu21": 1472}
TYPES = ((HALF, HALF), (HALF, FLOAT), (FLOAT, FLOAT))  # of the inputs and of the partials
# Multiplications of a tile in a cycle: half of the published peak, by tiles and clock.
MACS_OF_MK2 = {(HALF, HALF): 64, (HALF, FLOAT): 32, (FLOAT, FLOAT): 16}
MACS = {
    "mk1": {(HALF, HALF): 32, (HALF, FLOAT): 32, (FLOAT, FLOAT): 8},
    "mk2": MACS_OF_MK2,
    "bow": MACS_OF_MK2,
    "ipu21": MACS_OF_MK2,
}
RECEIVED, SHARING = 4, 2  # bytes of a tile in a cycle; tiles that an exchange bus serves at once
PROPORTION = 0.6
DIP = 0.03
GROWN = (
    "numConvGroups",
    "batchSize",
    "inputChannelsPerConvGroup",
    "outputChannelsPerConvGroup",
)
# TFLOPS of square products; see docs/accuracy.md for what of the source could be read.
PUBLISHED = {("mk2", FLOAT, 3584): 44.0}
PUBLISHED_ERROR = 0.1


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
    params = case.params
    macs = params.batchSize * params.numConvGroups
    macs *= params.inputChannelsPerConvGroup * params.outputChannelsPerConvGroup
    for axis in problem_of(params).axes:
        macs *= int((axis.reads >= 0).sum())
    return macs / (TILES[case.machine] * MACS[case.machine][params.dataType, case.partials])


def _met(axis: Axis) -> tuple[int, int]:
    """Count the inputs that are read and the elements of the kernel that meet one."""
    reads = axis.reads
    return len(np.unique(reads[reads >= 0])), int((reads >= 0).any(axis=0).sum())


def least_exchange(machine: str, plan: Plan) -> dict[str, float]:
    """Return the cycles of a slice's exchanges at least, were all tiles to receive all the time.

    Each part of the outputs needs the inputs, each part of the batch the weights; one of them may
    have them. Of a sum's parts all but one are sent. Tiles of a bus may receive the same operand,
    not the same parts of sums.
    """
    problem, parts = plan.problem, dict(zip(plan.problem.names(), plan.parts, strict=True))
    inputs, taps = problem.groups * problem.inputs, problem.groups * problem.inputs
    made, apart = problem.groups * problem.outputs * problem.batch, parts["batch"]
    for number, axis in enumerate(problem.axes):
        read, met = _met(axis)
        inputs, taps, made = inputs * read, taps * met, made * axis.output
        apart *= parts[f"field{number}"] if axis.plain else 1  # elsewhere a part may meet no input
    copies = inputs * problem.batch * (parts["outputs"] - 1)
    copies += taps * problem.outputs * (apart - 1)
    rate = TILES[machine] * RECEIVED
    return {
        "exchange": copies * problem.dtype.size / (rate * SHARING),
        "reduce exchange": made * (plan.sums - 1) * plan.method.partials.size / rate,
    }


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


def planned(chosen: Iterable[Case]) -> list[tuple[Case, Plan]]:
    """Plan all cases, each alone."""
    return [(case, plan_of_case(case)) for case in chosen]


def faster_than_peak(plans: list[tuple[Case, Plan]]) -> Iterator[str]:
    """Name the plans whose multiplications take fewer cycles than the machine's peak allows."""
    for case, plan in plans:
        taken, least = plan.slices * dict(plan.cycles)["multiply"], least_cycles(case)
        if taken < least:
            yield f"{case}: {taken:,} cycles, {least:,.0f} at least; {plan.describe()}"


def faster_than_exchange(plans: list[tuple[Case, Plan]]) -> Iterator[str]:
    """Name the plans whose exchanges take fewer cycles than the tiles need to receive so much."""
    for case, plan in plans:
        taken = dict(plan.cycles)
        for stage, least in least_exchange(case.machine, plan).items():
            if taken[stage] < least:
                yield f"{case}: {stage} {taken[stage]:,} cycles, {least:,.0f} at least"


def falls(chosen: Iterable[Case]) -> Iterator[str]:
    """Name the plans that take fewer cycles when one dimension grows: by one, or to twice."""
    for case in chosen:
        before = plan_of_case(case).total_cycles
        for name in GROWN:
            size = getattr(case.params, name)
            for grown in dict.fromkeys((size + 1, 2 * size)):
                after = plan_of_case(replace(case, params=replace(case.params, **{name: grown})))
                if after.total_cycles < before:
                    yield f"{case}: {before:,} cycles, {name} {grown}: {after.total_cycles:,}"


def square(machine: str, dtype: Type, size: int) -> Case:
    """Return a product of square matrices."""
    return Case(machine, ConvParams(dtype, size, (), (), size, size), FLOAT)


def dips(machine: str, dtype: Type, sizes: range) -> Iterator[str]:
    """Name square products whose throughput is more than DIP below that of a smaller one."""
    best = 0.0
    for size in sizes:
        rate = size**3 / plan_of_case(square(machine, dtype, size)).total_cycles
        if rate < (1 - DIP) * best:
            yield f"{machine} {dtype} n = {size:,}: {rate / best - 1:+.1%}"
        best = max(best, rate)


def teraflops(machine: str, dtype: Type, size: int) -> float:
    """Return the throughput of a square product as its plan is priced."""
    cycles = plan_of_case(square(machine, dtype, size)).total_cycles
    return 2 * size**3 * target_of(machine).getTileClockFrequency() / cycles / 1e12


def far_from_published() -> Iterator[str]:
    """Name the products that are further than PUBLISHED_ERROR from what was published."""
    for (machine, dtype, size), published in PUBLISHED.items():
        ours = teraflops(machine, dtype, size)
        if abs(ours / published - 1) > PUBLISHED_ERROR:
            yield f"{machine} {dtype} n = {size:,}: {ours:.1f} TFLOPS, published {published:.1f}"


def main() -> int:
    """Print all that breaks a claim; return 1 if something does."""
    given = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    given.add_argument("--problems", type=int, default=200, help="random problems")
    given.add_argument("--step", type=int, default=256, help="from a square product to the next")
    options = given.parse_args()
    plans = planned(cases(options.problems))
    claims = {
        "peak": faster_than_peak(plans),
        "exchange": faster_than_exchange(plans),
        "growth": falls(cases(options.problems // 8)),
        "dips": (
            line
            for machine in ("mk1", "mk2")
            for dtype in (HALF, FLOAT)
            for line in dips(machine, dtype, range(256, 4097, options.step))
        ),
        "published": far_from_published(),
    }
    broken = 0
    for claim, found in claims.items():
        lines = list(found)
        broken += bool(lines)
        print(f"{claim}: {len(lines)}")
        print("".join(f"  {line}\n" for line in lines), end="", flush=True)
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
