"""Reductions over dimensions: on the tiles where the data is, then across tiles."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Many
from dataclasses import dataclass, replace
from enum import Enum
from functools import update_wrapper
from operator import index
from typing import Any, NamedTuple, overload

import numpy as np

from simulator.codelets.products.reduction import REAL, REDUCTIONS
from simulator.graph.errors import PoplarError, poplibs_error
from simulator.graph.graph import ComputeSet, Graph
from simulator.graph.option_table import Option, checked, defaults
from simulator.graph.program import Copy, Execute, Program, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import (
    BOOL,
    FLOAT,
    HALF,
    Array,
    Type,
    checked_type,
)
from simulator.logging import library_call
from simulator.poplibs.popops.reduction.regions import Partials, partials_of
from simulator.poplibs.popops.reduction.stages import (
    Progress,
    Stages,
    add_reduction,
    make_result,
)
from simulator.poplibs.popops.regions import debug_name
from simulator.poplibs.poputil import mapTensorLinearly

# PopLibs' option of this name has the same default.
OPTIONS = {
    "accumType.inVertex": Option(
        "float", "taken, and without effect here", allowed=("float", "half")
    ),
    "accumType.interTile": Option(
        "float", "type of partial sums and products of halves", allowed=("float", "half")
    ),
}


class Operation(Enum):
    """What a reduction does."""

    ADD = "ADD"
    MUL = "MUL"
    MIN = "MIN"
    MAX = "MAX"
    LOGICAL_AND = "LOGICAL_AND"
    LOGICAL_OR = "LOGICAL_OR"
    SQUARE_ADD = "SQUARE_ADD"
    LOG_ADD = "LOG_ADD"


@dataclass(frozen=True, slots=True, eq=False)
class ReduceParams:
    """An operation, a factor for its result, and whether that is added to what the output holds.

    The factor is a number or a tensor of one float.
    """

    op: Operation
    update: bool = False
    scale: Tensor | float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class SingleReduceOp:
    """One of the reductions of `reduceMany`; its output has the type of the input if none is set.

    PopLibs' name of `in_` is a keyword of Python.
    """

    in_: Tensor
    dims: Many[int]
    params: ReduceParams | Operation
    outType: Type | None = None
    debugName: str = ""


class _Task(NamedTuple):
    """A reduction as it was asked for, checked: over all dimensions of the tensor but the kept."""

    tensor: Tensor
    kept: tuple[int, ...]
    params: ReduceParams
    name: str
    out_type: Type
    out_shape: tuple[int, ...]


@overload
def reduce(
    graph: Graph,
    A: Tensor,
    outType: Type,
    dims: Many[int],
    params: ReduceParams | Operation,
    prog: Sequence | list[ComputeSet],
    debugContext: str = "",
    options: Mapping[str, object] | None = None,
) -> Tensor: ...
@overload
def reduce(
    graph: Graph,
    A: Tensor,
    dims: Many[int],
    params: ReduceParams | Operation,
    prog: Sequence | list[ComputeSet],
    debugContext: str = "",
    options: Mapping[str, object] | None = None,
) -> Tensor: ...
def reduce(graph: Graph, A: Tensor, *arguments: Any, **named: Any) -> Tensor:
    """Reduce dimensions of a tensor: reduce(graph, A, [outType,] dims, params, prog).

    A list in the place of the program gets the compute sets, to be executed in their order. The
    output lies where the values of each of its elements do if that is one tile, and else is
    spread linearly over the tiles.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a = trial.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> trial.values(popops.reduce(trial.graph, a, [0], popops.Operation.ADD, trial.prog))
    [4.0, 6.0]
    """
    if arguments and isinstance(arguments[0], Type):
        named, arguments = {"outType": arguments[0], **named}, arguments[1:]
    return _reduce(graph, A, *arguments, **named)


@library_call("POPOPS")
def allTrue(graph: Graph, A: Tensor, prog: Sequence, debugContext: str = "") -> Tensor:
    """Return whether all elements of a tensor of bools are true: a bool of no dimensions.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> trial.values(popops.allTrue(trial.graph, trial.tensor([True, False]), trial.prog))
    False
    """
    if A.dtype != BOOL:
        raise poplibs_error(f"{debug_name(debugContext, 'allTrue')}: {A!r}; bools are needed")
    name = debug_name(debugContext, "allTrue")
    return reduce(graph, A.flatten(), [0], Operation.LOGICAL_AND, prog, name)


def _named_reduce(
    graph: Graph,
    A: Tensor,
    dims: Many[int],
    params: ReduceParams | Operation,
    prog: Sequence | list[ComputeSet],
    debugContext: str = "",
    options: Mapping[str, object] | None = None,
    outType: Type | None = None,
) -> Tensor:
    outputs: list[Tensor] = []
    task = _task(A, dims, params, outType, debug_name(debugContext, "Reduce"))
    _run(graph, [task], outputs, prog, options, task.name)
    return outputs[0]


_named_reduce.__name__ = "reduce"  # what errors and log lines call it
_reduce = library_call("POPOPS")(_named_reduce)
update_wrapper(reduce, _reduce, assigned=())  # its arguments by name, for whoever asks


@library_call("POPOPS")
def reduceWithOutput(
    graph: Graph,
    A: Tensor,
    out: Tensor,
    dims: Many[int],
    params: ReduceParams | Operation,
    prog: Sequence | list[ComputeSet],
    debugContext: str = "",
    options: Mapping[str, object] | None = None,
) -> None:
    """Reduce dimensions of a tensor into `out`, which is mapped already.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a, out = trial.tensor([[1.0, 2.0], [3.0, 4.0]]), trial.tensor([0.0, 0.0])
    >>> popops.reduceWithOutput(trial.graph, a, out, [1], popops.Operation.MAX, trial.prog)
    >>> trial.values(out)
    [2.0, 4.0]
    """
    task = _task(A, dims, params, out.dtype, debug_name(debugContext, "Reduce"))
    _run(graph, [task], [out], prog, options, task.name)


@library_call("POPOPS")
def reduceMany(
    graph: Graph,
    reductions: Many[SingleReduceOp],
    outputs: list[Tensor],
    prog: Sequence,
    debugContext: str = "",
    options: Mapping[str, object] | None = None,
) -> None:
    """Run several reductions in the same compute sets.

    An empty list of outputs is filled; else it holds the output of each.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a, sums = trial.tensor([[1.0, 2.0], [3.0, 4.0]]), []
    >>> add = popops.ReduceParams(popops.Operation.ADD)
    >>> ways = [popops.SingleReduceOp(a, [axis], add) for axis in (0, 1)]
    >>> popops.reduceMany(trial.graph, ways, sums, trial.prog)
    >>> trial.values(*sums)
    [[4.0, 6.0], [3.0, 7.0]]
    """
    name = debug_name(debugContext, "ReduceMany")
    if outputs and len(outputs) != len(reductions):
        raise PoplarError(f"{name}: {len(outputs)} outputs of {len(reductions)} reductions")
    tasks = []
    for number, single in enumerate(reductions):
        out_type = outputs[number].dtype if outputs else single.outType
        task_name = debug_name(name, single.debugName or str(number))
        tasks.append(_task(single.in_, single.dims, single.params, out_type, task_name))
    _run(graph, tasks, outputs, prog, options, name)


def _task(
    tensor: Tensor,
    dims: Many[int],
    params: ReduceParams | Operation,
    out_type: Type | None,
    name: str,
) -> _Task:
    """Check what was asked for."""
    reduced = [index(dim) for dim in dims]
    wrong = [dim for dim in reduced if not 0 <= dim < tensor.rank()]
    if wrong or len(set(reduced)) < len(reduced):
        raise PoplarError(
            f"{name}: dimensions {reduced} of {tensor!r}; different ones "
            f"of its {tensor.rank()} dimensions are needed"
        )
    reduce_params = params if isinstance(params, ReduceParams) else ReduceParams(Operation(params))
    checked_params = replace(
        reduce_params, op=Operation(reduce_params.op), scale=_scale(reduce_params, name)
    )
    result = checked_type(out_type or tensor.dtype, name)
    _check_types(checked_params, tensor, result, name)
    axes_kept = tuple(axis for axis in range(tensor.rank()) if axis not in reduced)
    shape = tuple(tensor.shape[axis] for axis in axes_kept)
    return _Task(tensor, axes_kept, checked_params, name, result, shape)


def _scale(params: ReduceParams, name: str) -> Tensor | float | None:
    """Check the factor of a result; a factor of one is none."""
    scale = params.scale
    if isinstance(scale, Tensor) and (scale.dtype != FLOAT or scale.numElements() != 1):
        raise PoplarError(f"{name}: scale {scale!r}; a number or a tensor of one float is needed")
    return None if isinstance(scale, int | float) and scale == 1 else scale


def _check_types(params: ReduceParams, tensor: Tensor, out: Type, name: str) -> None:
    kind = REDUCTIONS[params.op.value]
    if tensor.dtype not in kind.types:
        type_names = ", ".join(map(str, kind.types))
        raise PoplarError(f"{name}: {params.op.value} of {tensor!r}; it takes {type_names}")
    if out != tensor.dtype and not (out in REAL and tensor.dtype in REAL):
        raise PoplarError(f"{name}: {tensor!r} into {out}; only float and half may be mixed")
    if (params.update or params.scale is not None) and not kind.scales:
        raise PoplarError(f"{name}: {params.op.value}; only sums take a scale or an update")
    if params.scale is not None and tensor.dtype not in REAL:
        raise PoplarError(f"{name}: scale for {tensor!r}; only float and half are scaled")


def _run(
    graph: Graph,
    tasks: list[_Task],
    outputs: list[Tensor],
    prog: Sequence | list[ComputeSet],
    options: Mapping[str, object] | None,
    name: str,
) -> None:
    """Add the stages of all reductions, and the outputs that were not given."""
    if isinstance(prog, list):
        steps = Sequence()
        _run(graph, tasks, outputs, steps, options, name)
        prog += [_compute_set(step, name) for step in steps.children]
        return
    if not isinstance(prog, Sequence):
        raise poplibs_error(f"{name}: prog is {prog!r}; a Sequence or a list is needed")
    settings = defaults(OPTIONS, checked(OPTIONS, options or {}, name))
    wide = HALF if settings["accumType.interTile"] == "half" else FLOAT
    for task, out in zip(tasks, outputs, strict=False):
        _check_output(task, out)
    with graph.debug_scope(name, "popops"):
        stages, has_outputs = Stages(graph), bool(outputs)
        for number, task in enumerate(tasks):
            partials = partials_of(graph, task.tensor, task.kept)
            if not has_outputs:
                outputs.append(_new_output(graph, task, partials, wide))
            if task.tensor.numElements():
                _add(graph, stages, task, partials, outputs[number], wide)
            elif outputs[number].numElements() and not task.params.update:
                prog.add(_fill(graph, task, outputs[number]))
        stages.add_to(prog)


def _compute_set(step: Program, name: str) -> ComputeSet:
    if not isinstance(step, Execute):
        raise poplibs_error(f"{name}: takes more than compute sets; give a Sequence, not a list")
    return step.compute_set


def _check_output(task: _Task, out: Tensor) -> None:
    if _without_ones(out.shape) != _without_ones(task.out_shape):
        raise PoplarError(
            f"{task.name}: output {out!r} does not fit; shape {list(task.out_shape)} is needed"
        )
    if not out.isParallelWriteable():
        raise PoplarError(f"{task.name}: output {out!r}: has constants, or an element twice")


def _without_ones(shape: tuple[int, ...]) -> list[int]:
    return [size for size in shape if size != 1]


def _new_output(graph: Graph, task: _Task, partials: Partials, wide: Type) -> Tensor:
    """Add the output: where the values of each element are, or spread for all workers.

    A tile then has at least four vectors of the type that is reduced last
    (lib/popops/reduction/ReductionStages.cpp, intermediateToOutput).
    """
    out = graph.addVariable(task.out_type, task.out_shape, f"{task.name}/out")
    block = partials.column // partials.size
    home = np.zeros(out.numElements() // partials.size, dtype=np.int64)
    home[block] = partials.tile
    if len(block) and (partials.tile == home[block]).all():
        position = np.arange(0, out.numElements(), partials.size, dtype=np.int64)
        graph.map_ranges(out, position, position + partials.size, home)
    else:
        grain = max(graph.target.getVectorWidth(_partials_type(task, wide)), 1)
        mapTensorLinearly(graph, out, 4 * grain, grain)
    return out


def _partials_type(task: _Task, wide: Type) -> Type:
    """Return the type of partial results."""
    widens = REDUCTIONS[task.params.op.value].widens
    return wide if task.tensor.dtype == HALF and widens else task.tensor.dtype


def _add(
    graph: Graph, stages: Stages, task: _Task, partials: Partials, out: Tensor, wide: Type
) -> None:
    """Add the stages of one reduction that has values."""
    scale = task.params.scale
    if scale is not None and not isinstance(scale, Tensor):
        scale = graph.addConstant(FLOAT, [], float(scale), f"{task.name}/scale")
        graph.setTileMapping(scale, int(partials.tile[0]))
    result = make_result(graph, out, task.params.update, scale)
    progress = Progress(stages, task.params.op.value, _partials_type(task, wide))
    add_reduction(progress, partials, result, task.name)


def _fill(graph: Graph, task: _Task, out: Tensor) -> Copy:
    """Set each output to what is left of an operation without values."""
    kind = REDUCTIONS[task.params.op.value]
    value: Array = np.array(kind.empty)
    if task.out_type not in REAL:
        limits = np.iinfo(task.out_type.numpy) if task.out_type.numpy.kind in "iu" else None
        value = np.clip(value, limits.min, limits.max) if limits else value
    constant = graph.addConstant(task.out_type, [1], value.reshape(1), f"{task.name}/empty")
    graph.setTileMapping(constant, 0)
    flat = constant.broadcast(out.numElements(), 0).reshape(out.shape)
    return Copy(flat, out, name=f"{task.name}/Empty")
