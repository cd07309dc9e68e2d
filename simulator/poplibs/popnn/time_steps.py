"""Sequences of a batch that end at different steps (popnn/Rnn.hpp, `varTimeSteps`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

from simulator.codelets.elementwise import step_mask
from simulator.graph.errors import poplibs_error
from simulator.graph.geometry.intervals import as_int64
from simulator.graph.graph import Graph
from simulator.graph.program import Copy, Execute, If, RepeatWhileTrue
from simulator.graph.program import Sequence as Program
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import INT, UNSIGNED_INT, Type
from simulator.graph.vertices.vertex import VertexGroup, cut_field
from simulator.poplibs import popops
from simulator.poplibs.popops.expr import PlaceHolder
from simulator.poplibs.popops.loop import addForLoopCounterVertex

LAST = (1 << 32) - 1  # the unsigned int before 0
_1, _2, _3 = (PlaceHolder(number) for number in range(1, 4))
_R = TypeVar("_R")


def takes_lengths(
    position: int, name: str = "realTimeSteps"
) -> Callable[[Callable[..., _R]], Callable[..., _R]]:
    """Let a function take lengths at a place among its arguments, too, as PopLibs does."""

    def decorate(function: Callable[..., _R]) -> Callable[..., _R]:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> _R:
            given = args[position] if len(args) > position else None
            if isinstance(given, Tensor) and given.dtype in (UNSIGNED_INT, INT):
                args = (*args[:position], *args[position + 1 :])
                kwargs[name] = given
            return function(*args, **kwargs)

        return call

    return decorate


def params_with_lengths(params: type[_R]) -> type[_R]:
    """Let a class of parameters take `varTimeSteps` as the fourth, before the layer's sizes."""
    setattr(params, "__init__", takes_lengths(4, "varTimeSteps")(params.__init__))  # noqa: B010
    return params


def check_lengths(lengths: Tensor | None, batch: int, name: str) -> None:
    """Raise poplibs_error for lengths that are not one, or one a sample, of unsigned int."""
    if lengths is None:
        return
    if lengths.dtype != UNSIGNED_INT or lengths.rank() != 1 or lengths.dim(0) not in (1, batch):
        raise poplibs_error(f"{name}: time steps are {lengths!r}; unsigned int[{batch}] or [1]")


@dataclass(frozen=True, slots=True)
class Lengths:
    """The steps of each sample, or of all; the most and the least of them."""

    graph: Graph
    steps: Tensor
    most: Tensor
    least: Tensor
    dtype: Type
    name: str

    @classmethod
    def of(
        cls, graph: Graph, steps: Tensor | None, dtype: Type, prog: Program, name: str
    ) -> Lengths | None:
        """Add what finds the most and the least; of no lengths there is nothing."""
        if steps is None:
            return None
        numbers = popops.cast(graph, steps, INT, prog, f"{name}/timeSteps")
        ends = []
        for operation in (popops.Operation.MAX, popops.Operation.MIN):
            label = f"{name}/{operation.name.title()}VarSequenceLength"
            end = popops.reduce(graph, numbers, INT, [0], operation, prog, label)
            ends.append(popops.cast(graph, end.expand([0]), UNSIGNED_INT, prog, label))
        return cls(graph, steps, ends[0], ends[1], dtype, name)

    def loop(
        self, prog: Program, name: str, body: Callable[[Tensor, Program], None], backward: bool
    ) -> None:
        """Run what `body` adds for each step that a sample has, the last one first if backward."""
        graph, step, check = self.graph, Program(), Program()
        index = graph.addVariable(UNSIGNED_INT, [1], f"{name}/seqIdx")
        before = graph.addConstant(UNSIGNED_INT, [1], LAST, f"{name}/uintMax")
        for tensor in (index, before):
            graph.setTileMapping(tensor, 0)
        first, end, by = (self.most, before, -1) if backward else (before, self.most, 1)
        prog.add(Copy(first, index, name=f"{name}/initSeqIdx"))
        increment = graph.addConstant(UNSIGNED_INT, [1], by % (LAST + 1), f"{name}/one")
        graph.setTileMapping(increment, 0)
        label = f"{name}/loopCounter"
        proceed = addForLoopCounterVertex(graph, index, end, increment, 0, check, label)
        body(index, step)
        prog.add(RepeatWhileTrue(check, proceed, step, name=name))

    def mask(self, index: Tensor, prog: Program) -> Mask | None:
        """Add what tells which samples have the step; of one length all have it."""
        if self.steps.numElements() == 1:
            return None
        graph, name = self.graph, f"{self.name}/batchStepsWithinLimit"
        inside, beyond = (
            graph.clone(self.steps, f"{name}/{label}", self.dtype) for label in ("mask", "inverse")
        )
        count = self.steps.numElements()
        fields = {
            "B": cut_field("B", "input", index, 0, 1),
            "data": cut_field("data", "input", self.steps, 0, count),
            "out": cut_field("out", "output", inside, 0, count),
            "outInv": cut_field("outInv", "output", beyond, 0, count),
        }
        compute_set = graph.addComputeSet(f"{name}/compareGT")
        cycles = step_mask.mask_cycles(as_int64(count), graph.target, self.dtype)
        codelet = step_mask.greater_than(self.dtype)
        graph.add_vertices(VertexGroup(compute_set.id, codelet, as_int64(0), fields, {}, cycles))
        prog.add(Execute(compute_set))
        some = popops.gteq(graph, index, self.least, prog, f"{name}/loopPaddingLimit")
        return Mask(graph, inside, beyond, some, self.name)


@dataclass(frozen=True, slots=True)
class Mask:
    """Ones for the samples [batch] that have a step, the inverse, and whether any lacks it."""

    graph: Graph
    inside: Tensor
    beyond: Tensor
    some: Tensor
    name: str

    def zero(self, tensor: Tensor, prog: Program) -> None:
        """Set to zero what [..., batch, outputs] has of samples without the step."""
        axes = [0] * (tensor.rank() - 2)
        mask = self.inside.expand([1]).expand(axes) if axes else self.inside.expand([1])
        popops.mapInPlace(self.graph, _1 * _2, [tensor, mask], prog, f"{self.name}/mask")

    def zero_if_any(self, tensor: Tensor, prog: Program) -> None:
        """Do what `zero` does in those steps alone that some sample lacks."""
        masked = Program()
        self.zero(tensor, masked)
        prog.add(If(self.some.reshape([]), masked, Program(), name=f"{self.name}/masked"))

    def select(self, tensor: Tensor, value: Tensor, prog: Program) -> None:
        """Replace [batch, outputs] by a value in the samples that have the step."""
        operands = [tensor, value, self.inside.expand([1]), self.beyond.expand([1])]
        expression = _3 * _2 + PlaceHolder(4) * _1
        popops.mapInPlace(self.graph, expression, operands, prog, f"{self.name}/selectState")
