"""What a program notes of its own operations while it is exported: block, scope, memory, ...

A mark is put on the nodes that are traced within it, and comes out with the exported model.
Outside an export nothing is noted: a module runs in PyTorch as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from simulator.poptorch.errors import Error

PREFIX = "poptorch_"
BLOCK, SCOPE, CHECKPOINT, MEMORY, PRINT, LOSS = (
    "block",
    "scope",
    "checkpoint",
    "memory",
    "print",
    "loss",
)

_traced: list[bool] = []  # an export that keeps no marks
_begun: list[ExitStack] = []  # of the export under way: the block that goes on till the next


def exporting() -> bool:
    """Return whether marks are taken now."""
    return bool(_begun)


@contextmanager
def being_exported() -> Iterator[None]:
    """Take marks within; raises Error where this PyTorch keeps none and one is made."""
    _begun.append(ExitStack())
    try:
        with torch.fx.traceback.preserve_node_meta():
            yield
            _begun[-1].close()
    finally:
        _begun.pop()


@contextmanager
def traced() -> Iterator[None]:
    """Refuse marks within: TorchScript keeps none."""
    _traced.append(True)
    try:
        yield
    finally:
        _traced.pop()


@contextmanager
def marked(**values: object) -> Iterator[None]:
    """Mark what is traced within."""
    if _traced:
        (name, value), *_ = values.items()
        raise Error(f"{name} {value!r}: a trace keeps no marks; leave Jit.traceModel out")
    if not exporting():
        yield
        return
    annotate = getattr(torch.fx.traceback, "annotate", None)
    if annotate is None:
        raise Error(f"poptorch: torch {torch.__version__} keeps no marks of nodes; 2.9 does")
    with annotate({f"{PREFIX}{name}": value for name, value in values.items()}):
        yield


def mark_from_here(**values: object) -> None:
    """Mark what is traced from here on, till the next such mark; a trace goes by module paths."""
    if exporting():
        _begun[-1].close()
        _begun[-1] = ExitStack()
        _begun[-1].enter_context(marked(**values))


def marked_tensor(tensor: torch.Tensor, **values: object) -> torch.Tensor:
    """Return a tensor whose node has a mark: a copy while exporting, else itself."""
    if not exporting() and not _traced:
        return tensor
    with marked(**values):
        return tensor.clone()


def of_meta(meta: dict[str, Any]) -> dict[str, Any]:
    """Return the marks in what torch.export notes of a node."""
    noted = meta.get("custom") or {}
    return {k.removeprefix(PREFIX): v for k, v in noted.items() if str(k).startswith(PREFIX)}
