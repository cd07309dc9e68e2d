"""Bring the channels of an operand together in memory, by transposes on all tiles."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from simulator.graph.graph import Graph
from simulator.graph.program import Execute, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.vertices.vertex import ComputeSet
from simulator.poplibs.poplin.convolutions.create import weights_of
from simulator.poplibs.poplin.convolutions.operands import run_of
from simulator.poplibs.poplin.planning.plan import Plan
from simulator.poplibs.popops import rearrange

MAX_ROWS = 16  # of a matrix that is transposed; more make it no cheaper


@dataclass
class Regrouping:
    """Operands of a product that are brought into other groups, by transposes in one compute set.

    As in PopLibs until June 2021 (lib/poplin/Convolution.cpp, TransformPreProgram of SDK 2.1): all
    copies come first, then the transposes of both operands.
    """

    graph: Graph
    prog: Sequence
    name: str
    transposes: ComputeSet | None = None

    def regroup(
        self, tensor: Tensor, lying: tuple[int, int], grouping: tuple[int, int], operand: str
    ) -> Tensor:
        """Return a copy of an operand in which groups of a dimension lie together.

        `lying` are the dimension and the size of the groups that lie together now, `grouping` those
        that shall. The copy has its values once the transposes are run.
        """
        (old, run), (new, group) = lying, grouping
        rows = gcd(run, tensor.shape[old], MAX_ROWS)
        if self.transposes is None:
            self.transposes = self.graph.addComputeSet(f"{self.name}/Transpose")
        name = f"{self.name}/{operand}"
        groupings = (old, rows), (new, _columns(tensor.shape[new], group))
        return rearrange.regroupTensor(
            self.graph, tensor, self.prog, self.transposes, *groupings, name
        )

    def run(self) -> None:
        """Add the transposes to the program, if there are any."""
        if self.transposes is not None:
            self.prog.add(Execute(self.transposes))


def transposed_where_it_lies(
    graph: Graph, plan: Plan, weights: Tensor, prog: Sequence, name: str
) -> Tensor:
    """Return the weights [g][co][ci] of a backward pass, whose outputs lie together, by inputs.

    Blocks are transposed on the tiles that have them, where groups of channels leave some, into
    what the plan reads as weights: so nothing is exchanged where the passes are planned jointly. As
    in PopLibs (lib/poplin/Convolution.cpp, fullyConnectedWeightTranspose).
    """
    _, outputs, inputs = weights.shape
    group = plan.method.in_group
    rows, columns = gcd(gcd(run_of(weights, 1), outputs), group), gcd(group, inputs)
    if rows == 1 or columns == 1 or weights.dtype not in rearrange.TYPES:
        return weights
    label = f"{name}/weightTranspose"
    transposes = graph.addComputeSet(f"{label}/Transpose")
    transposed = weights_of(graph, weights.shape, plan, f"{label}/transposed")
    rearrange.regroup_where_it_lies(
        graph, weights, transposes, (1, rows), (2, columns), transposed, label
    )
    prog.add(Execute(transposes))
    return transposed


def _columns(size: int, group: int) -> int:
    """Return how many of a dimension are brought together: whole groups, else more or fewer."""
    if size % group == 0:
        return group
    divisors = [number for number in range(1, 4 * group + 1) if size % number == 0]
    return max(divisors, key=lambda number: (number % 4 == 0, number))
