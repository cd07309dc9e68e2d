"""Blocks of a module, and the IPUs that they run on."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import count
from types import TracebackType
from typing import Any, NamedTuple, ParamSpec, Self, TypeVar

import onnx
import torch

from simulator.popart.model_builder.notes import annotate
from simulator.popart.representation.ir import IPU_ATTRIBUTE, STAGE_ATTRIBUTE
from simulator.popart.representation.origins import origin_of
from simulator.poptorch.enums import AutoStage
from simulator.poptorch.errors import Error
from simulator.poptorch.exporting import marks

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
HELD = "_poptorch_block"  # the attribute of a module that begins a block


class Place(NamedTuple):
    """A block by its name, and the IPU that it asks for, None for what a strategy says."""

    block: str
    ipu: int | None


_numbers = count()


def _place(user_id: str | None, ipu_id: int | None) -> Place:
    if ipu_id is not None and (
        isinstance(ipu_id, bool) or not isinstance(ipu_id, int) or ipu_id < 0
    ):
        raise Error(f"block {user_id!r}: ipu_id is {ipu_id!r}; a whole number is needed")
    return Place(user_id or f"block{next(_numbers)}", ipu_id)


class Block(AbstractContextManager["Block"]):
    """A part of forward: `with poptorch.Block("decoder", ipu_id=1):`."""

    def __init__(self, user_id: str | None = None, ipu_id: int | None = None) -> None:
        self._place = _place(user_id, ipu_id)
        self._marked: Any = None

    def __enter__(self) -> Self:
        self._marked = marks.marked(block=self._place)
        self._marked.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._marked.__exit__(kind, error, trace)

    @staticmethod
    def useAutoId() -> None:
        """Take note: blocks without a name have numbers anyway."""


class _Begin:
    """The hook of a module that begins a block."""

    def __call__(self, module: torch.nn.Module, _: object) -> None:
        marks.mark_from_here(block=getattr(module, HELD))


def BeginBlock(
    layer_to_call: torch.nn.Module, user_id: str | None = None, ipu_id: int | None = None
) -> torch.nn.Module:
    """Let a block begin where a module is called, which goes on till the next one; return it.

    >>> import torch
    >>> from simulator import poptorch
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
    >>> model[1] = poptorch.BeginBlock(model[1], "second", ipu_id=1)
    >>> model(torch.zeros(4, 2)).shape
    torch.Size([4, 1])
    """
    if not isinstance(layer_to_call, torch.nn.Module):
        raise Error(f"BeginBlock: {type(layer_to_call).__name__}; a torch.nn.Module is needed")
    if hasattr(layer_to_call, HELD):
        raise Error(f"BeginBlock: {type(layer_to_call).__name__} begins a block already")
    setattr(layer_to_call, HELD, _place(user_id, ipu_id))
    layer_to_call.register_forward_pre_hook(_Begin())
    return layer_to_call


def BlockFunction(
    user_id: str | None = None, ipu_id: int | None = None
) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Make a function a block: `@poptorch.BlockFunction("decoder", ipu_id=1)`.

    >>> import torch
    >>> from simulator import poptorch
    >>> @poptorch.BlockFunction("double", ipu_id=0)
    ... def double(x):
    ...     return 2 * x
    >>> double(torch.tensor([1.0, 2.0])).tolist()
    [2.0, 4.0]
    """

    def decorated(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        @functools.wraps(function)
        def within(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
            with Block(user_id, ipu_id):
                return function(*arguments, **named)

        return within

    return decorated


def removeBlocks(module: torch.nn.Module) -> None:
    """Take the blocks away that BeginBlock has put into a module.

    >>> import torch
    >>> from simulator import poptorch
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
    >>> model[1] = poptorch.BeginBlock(model[1], "second", ipu_id=1)
    >>> poptorch.removeBlocks(model)
    >>> type(model[1])
    <class 'torch.nn.modules.linear.Linear'>
    """
    for inner in module.modules():
        if hasattr(inner, HELD):
            delattr(inner, HELD)
            hooks = inner._forward_pre_hooks
            for key in [key for key, hook in hooks.items() if isinstance(hook, _Begin)]:
                del hooks[key]


# Strategies
class Stage:
    """Blocks that run one after another on one IPU: Stage("embedding", "layer0").ipu(1)."""

    def __init__(self, *block_ids: str) -> None:
        wrong = [name for name in block_ids if not isinstance(name, str)]
        if wrong:
            raise Error(f"Stage: {wrong[0]!r}; names of blocks are needed")
        self.blocks, self._ipu = block_ids, -1

    def ipu(self, ipu: int) -> Self:
        """Set the IPU of the blocks."""
        self._ipu = ipu
        return self

    def ipu_or(self, place: int) -> int:
        """Return the IPU that was set, or the stage's place."""
        return place if self._ipu < 0 else self._ipu


class _Strategy:
    """How blocks become stages: by themselves, or as stages that are named."""

    def __init__(self, *arguments: AutoStage | str | Stage | Sequence[str]) -> None:
        self.auto = AutoStage.SameAsIpu
        if len(arguments) == 1 and isinstance(arguments[0], AutoStage):
            self.auto, arguments = arguments[0], ()
        self.stages = [_stage(one) for one in arguments]

    def stage(self, block_id: str) -> Stage:
        """Return the stage of a block."""
        for one in self.stages:
            if block_id in one.blocks:
                return one
        raise Error(f"{type(self).__name__}: no stage has the block {block_id!r}")

    def ipus(self) -> dict[str, int]:
        """Return the IPU of each block that a stage names."""
        return {
            block: stage.ipu_or(place)
            for place, stage in enumerate(self.stages)
            for block in stage.blocks
        }


def _stage(entry: Any) -> Stage:
    if isinstance(entry, Stage):
        return entry
    return Stage(entry) if isinstance(entry, str) else Stage(*entry)


class PipelinedExecution(_Strategy):
    """While one IPU works on a micro-batch, the IPU before it works on the next one."""

    def stage_number(self, block: str, number: int) -> int | None:
        """Return the stage of the n-th block; None where its IPU says it."""
        if self.auto is AutoStage.AutoIncrement:
            return number
        return next((n for n, stage in enumerate(self.stages) if block in stage.blocks), None)


class ShardedExecution(_Strategy):
    """The IPUs work one after another."""


class SerialPhasedExecution:
    """Phases that take turns with memory off the chip, of which there is none here."""

    def __init__(self, *phases: object) -> None:
        raise Error(f"{type(self).__name__}: weights stay on the IPU; use PipelinedExecution")


class ParallelPhasedExecution(SerialPhasedExecution):
    """Phases on several IPUs at once."""


def place_nodes(
    model: onnx.ModelProto, noted: Mapping[str, Mapping[str, object]], module: torch.nn.Module,
    strategy: _Strategy | None,
) -> int:  # fmt: skip
    """Note IPU and stage of each node in a block; return how many IPUs there are, 0 for none."""
    named = strategy.ipus() if strategy else {}
    order: dict[str, int] = {}
    highest, unused = -1, set(named)
    for node, place in _places(model, noted, module):
        unused.discard(place.block)
        new = order.setdefault(place.block, len(order))
        ipu = named.get(place.block, place.ipu)
        if ipu is None:
            if named:
                raise Error(f"block {place.block!r}: no stage of the strategy has it, and no IPU")
            ipu = new
        annotate(node, IPU_ATTRIBUTE, ipu)
        if isinstance(strategy, PipelinedExecution):
            stage = strategy.stage_number(place.block, new)
            if stage is not None:
                annotate(node, STAGE_ATTRIBUTE, stage)
        highest = max(highest, ipu)
    if unused:
        names = ", ".join(map(repr, order)) or "none"
        raise Error(
            f"{type(strategy).__name__}: no block is called {sorted(unused)[0]!r};"
            f" there are {names}"
        )
    return highest + 1


def _places(
    model: onnx.ModelProto, noted: Mapping[str, Mapping[str, Any]], module: torch.nn.Module
) -> Iterator[tuple[onnx.NodeProto, Place]]:
    """Pair the nodes in blocks with these: by their marks, else by the modules that begin one."""
    begun = {
        path: getattr(inner, HELD) for path, inner in module.named_modules() if hasattr(inner, HELD)
    }
    by_path = begun if not any(marks.BLOCK in mark for mark in noted.values()) else {}
    current: Place | None = None
    for node in model.graph.node:
        place = noted.get(node.name, {}).get(marks.BLOCK)
        origin = origin_of(node) if by_path else None
        if origin is not None:
            around = [p for p in by_path if f"{origin.module}.".startswith(f"{p}." if p else "")]
            current = by_path[max(around, key=len)] if around else current
            place = current
        if place is not None:
            yield node, Place(*place)
