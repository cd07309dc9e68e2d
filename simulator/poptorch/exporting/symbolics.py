"""Operators that TorchScript's exporter lacks, and transformers calls, as others of ONNX."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch.onnx import register_custom_op_symbolic, symbolic_helper

OPSET, END = 17, 2**31 - 1


@cache
def register() -> None:
    """Let the exporter write them, from now on."""
    register_custom_op_symbolic("aten::diff", _difference, OPSET)


def _difference(graph: Any, x: Any, n: Any, dim: Any, prepend: Any, append: Any) -> object:
    """Subtract neighbours along a dimension, n times."""
    times = symbolic_helper._get_const(n, "i", "n")
    axis = symbolic_helper._get_const(dim, "i", "dim")
    parts = [part for part in (prepend, x, append) if not symbolic_helper._is_none(part)]
    x = graph.op("Concat", *parts, axis_i=axis) if len(parts) > 1 else x
    begin, one, last, end, along = (
        graph.op("Constant", value_t=torch.tensor([number])) for number in (0, 1, -1, END, axis)
    )
    for _ in range(times):
        upper, lower = ((one, end), (begin, last))
        x = graph.op("Sub", *(graph.op("Slice", x, *way, along) for way in (upper, lower)))
    return x
