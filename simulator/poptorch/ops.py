"""Operations of PopTorch within a module; outside an export they are PyTorch's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NoReturn, TypeVar

import torch

from simulator import popart
from simulator.poptorch.enums import MatMulSerializationMode
from simulator.poptorch.errors import Error
from simulator.poptorch.exporting import marks
from simulator.poptorch.log import logger
from simulator.poptorch.options import Options
from simulator.poptorch.sessions import device_of

Result = TypeVar("Result")
REDUCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "none": lambda x: x,
    "sum": torch.sum,
    "mean": torch.mean,
}


def identity_loss(x: torch.Tensor, reduction: str) -> torch.Tensor:
    """Return a tensor, or its "sum" or "mean", as what is trained.

    >>> import torch
    >>> from simulator import poptorch
    >>> float(poptorch.identity_loss(torch.tensor([1.0, 3.0]), "mean"))
    2.0
    """
    if reduction not in REDUCTIONS:
        raise Error(f"identity_loss: {reduction!r}; it must be one of {', '.join(REDUCTIONS)}")
    return marks.marked_tensor(REDUCTIONS[reduction](x), loss=True)


def ipu_print_tensor(
    tensor: torch.Tensor, title: str = "", *_: object, **__: object
) -> torch.Tensor:
    """Return a tensor, which is printed when the program runs.

    >>> import torch
    >>> from simulator import poptorch
    >>> poptorch.ipu_print_tensor(torch.tensor([1.0]), "x").tolist()
    [1.0]
    """
    return marks.marked_tensor(tensor, print=title)


def recomputationCheckpoint(*tensors: torch.Tensor) -> torch.Tensor | tuple[torch.Tensor, ...]:
    """Return tensors that are kept for the way back, whatever is computed again.

    >>> import torch
    >>> from simulator import poptorch
    >>> poptorch.recomputationCheckpoint(torch.tensor([1.0])).tolist()
    [1.0]
    """
    marked_tensors = tuple(marks.marked_tensor(tensor, checkpoint=True) for tensor in tensors)
    return marked_tensors[0] if len(marked_tensors) == 1 else marked_tensors


def set_available_memory(tensor: torch.Tensor, available_memory_proportion: float) -> torch.Tensor:
    """Return a product, which may take that share of a tile's memory.

    >>> import torch
    >>> from simulator import poptorch
    >>> product = torch.tensor([[1.0, 2.0]]) @ torch.tensor([[3.0], [4.0]])
    >>> poptorch.set_available_memory(product, 0.3).tolist()
    [[11.0]]
    """
    share = available_memory_proportion
    if not isinstance(share, int | float) or not 0 < share <= 1:
        raise Error(f"set_available_memory: {share!r}; more than 0 and at most 1 is needed")
    return marks.marked_tensor(tensor, memory=float(share))


def serializedMatMul(
    lhs: torch.Tensor,
    rhs: torch.Tensor,
    mode: MatMulSerializationMode,
    factor: int = 0,
    keep_precision: bool = False,
) -> torch.Tensor:
    """Return the product of two matrices, made in `factor` parts along a dimension.

    >>> import torch
    >>> from simulator import poptorch
    >>> a, b = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0], [4.0]])
    >>> mode = poptorch.MatMulSerializationMode.ReducingDim
    >>> poptorch.serializedMatMul(a, b, mode, factor=2).tolist()
    [[11.0]]
    """
    del keep_precision
    if mode == MatMulSerializationMode.Disabled or factor in (0, 1):
        return lhs @ rhs
    modes = MatMulSerializationMode
    size = {modes.InputChannels: lhs.shape[-2], modes.ReducingDim: lhs.shape[-1],
            modes.OutputChannels: rhs.shape[-1]}[mode]  # fmt: skip
    if size % factor:
        raise Error(f"serializedMatMul: {mode.name} of size {size} is not cut into {factor} parts")
    if mode == modes.InputChannels:
        return torch.cat([part @ rhs for part in lhs.chunk(factor, -2)], -2)
    if mode == modes.OutputChannels:
        return torch.cat([lhs @ part for part in rhs.chunk(factor, -1)], -1)
    parts = zip(lhs.chunk(factor, -1), rhs.chunk(factor, -2), strict=True)
    first, *products = [a @ b for a, b in parts]
    for product in products:
        first = first + product
    return first


def for_loop(
    count: int,
    body: Callable[..., torch.Tensor | Sequence[torch.Tensor]],
    inputs: Sequence[torch.Tensor],
) -> list[torch.Tensor]:
    """Return what a function makes of tensors that it is called with so many times, laid out.

    >>> import torch
    >>> from simulator import poptorch
    >>> (y,) = poptorch.for_loop(3, lambda x: [2 * x], [torch.tensor([1.0])])
    >>> y.tolist()
    [8.0]
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise Error(f"for_loop: count is {count!r}; a whole number is needed")
    current = list(inputs)
    for _ in range(count):
        results = body(*current)
        results = [results] if isinstance(results, torch.Tensor) else list(results)
        if [t.shape for t in results] != [t.shape for t in current]:
            raise Error("for_loop: the body makes tensors of other shapes than its inputs")
        current = results
    return current


def cond(
    condition: torch.Tensor,
    then_body: Callable[..., Result],
    then_inputs: Sequence[torch.Tensor],
    else_body: Callable[..., Result],
    else_inputs: Sequence[torch.Tensor],
) -> Result:
    """Return what one of two functions makes, as a condition says when the program runs.

    >>> import torch
    >>> from simulator import poptorch
    >>> x = torch.tensor([1.0, 2.0])
    >>> (y,) = poptorch.cond(torch.tensor([True]), lambda t: [t + 1], [x], lambda t: [t - 1], [x])
    >>> y.tolist()
    [2.0, 3.0]
    """
    if not marks.exporting():
        return then_body(*then_inputs) if bool(condition) else else_body(*else_inputs)
    first = len(then_inputs)
    result: Result = torch.cond(
        condition.reshape([]),
        lambda *arguments: then_body(*arguments[:first]),
        lambda *arguments: else_body(*arguments[first:]),
        (*then_inputs, *else_inputs),
    )
    return result


def nop(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor.

    >>> import torch
    >>> from simulator import poptorch
    >>> poptorch.nop(torch.tensor([1.0])).tolist()
    [1.0]
    """
    return tensor


def dynamic_slice(
    tensor: torch.Tensor, dim: int, start: torch.Tensor, size: int, step: int = 1
) -> torch.Tensor:
    """Return `size` places of a dimension from one that is known when the program runs.

    >>> import torch
    >>> from simulator import poptorch
    >>> poptorch.dynamic_slice(torch.arange(6.0), 0, torch.tensor([2]), 3).tolist()
    [2.0, 3.0, 4.0]
    """
    places = start.reshape([]) + torch.arange(0, size, step, dtype=start.dtype)
    return tensor.index_select(dim, places)


def NameScope(name: str) -> AbstractContextManager[None]:
    """Put what is computed within under a name below the module's.

    >>> import torch
    >>> from simulator import poptorch
    >>> with poptorch.NameScope("attention"):
    ...     scores = torch.ones(2, 2) @ torch.ones(2, 2)
    >>> scores.tolist()
    [[2.0, 2.0], [2.0, 2.0]]
    """
    return marks.marked(scope=name)


def MultiConv() -> AbstractContextManager[None]:
    """Take convolutions that Graphcore's compiler would plan together; they are planned apart.

    >>> import torch
    >>> from simulator import poptorch
    >>> first, second = torch.nn.Conv1d(1, 1, 2), torch.nn.Conv1d(1, 1, 2)
    >>> with poptorch.MultiConv():
    ...     both = first(torch.zeros(1, 1, 4)) + second(torch.zeros(1, 1, 4))
    >>> both.shape
    torch.Size([1, 1, 3])
    """
    logger.info("MultiConv: has no effect here")
    return nullcontext()


def custom_op(*_: object, name: str = "", **__: object) -> NoReturn:
    """Refuse: operators of the user's own need code for the device.

    >>> from simulator import poptorch
    >>> poptorch.custom_op([], "Cube", "com.mine", 1, [])
    Traceback (most recent call last):
    simulator.poptorch.errors.Error: ...
    """
    raise Error(f"custom_op {name!r}: codelets in C++ cannot be run here")


class CPU:
    """Operations on the host in the midst of a program, which cannot be done here."""

    def __init__(self, layer_to_call: object = None, ID: str = "") -> None:
        raise Error(f"CPU {ID!r}: a program runs on the device as a whole; split the module")


def isRunningOnIpu() -> bool:
    """Return whether a module is being exported for the device.

    >>> from simulator import poptorch
    >>> poptorch.isRunningOnIpu()
    False
    """
    return marks.exporting()


def ipuHardwareIsAvailable(num_ipus: int = 1) -> bool:
    """Return whether a program may have so many IPUs: their model stands in for them.

    >>> from simulator import poptorch
    >>> poptorch.ipuHardwareIsAvailable(4)
    True
    """
    return bool(popart.DeviceManager().enumerateDevices(numIpus=num_ipus))


def ipuHardwareVersion() -> int:
    """Return the version of the IPUs whose model programs run on: 1, 2 or 21.

    >>> from simulator import poptorch
    >>> poptorch.ipuHardwareVersion() in (1, 2, 21)
    True
    """
    return int(device_of(Options(), 1).version.removeprefix("ipu"))
