"""Patterns without which PopART computes no gradient; here nothing needs them, but one is told.

Source: popart `willow/src/patterns`, the PatternCreator of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from simulator.popart.errors import popart_exception
from simulator.popart.representation.ir import GRAPHCORE, ONNX, Ir, Node

# Pattern -> the operator whose gradient it makes, and the input that this is the gradient of.
OF_GRADIENTS: dict[str, tuple[str, str, int]] = {
    "Atan2Arg0GradOp": (GRAPHCORE, "Atan2", 0),
    "Atan2Arg1GradOp": (GRAPHCORE, "Atan2", 1),
    "ConvFlipWeightsGradOp": (ONNX, "ConvTranspose", 1),
    "CosGradOp": (ONNX, "Cos", 0),
    "CoshOp": (ONNX, "Cosh", 0),
    "DivArg0GradOp": (ONNX, "Div", 0),
    "DivArg1GradOp": (ONNX, "Div", 1),
    "ExpGradOp": (ONNX, "Exp", 0),
    "Expm1GradOp": (GRAPHCORE, "Expm1", 0),
    "FmodArg0GradOp": (GRAPHCORE, "Fmod", 0),
    "Log1pGradOp": (GRAPHCORE, "Log1p", 0),
    "LogGradOp": (ONNX, "Log", 0),
    "PowArg0GradOp": (ONNX, "Pow", 0),
    "PowArg1GradOp": (ONNX, "Pow", 1),
    "ReciprocalGradOp": (ONNX, "Reciprocal", 0),
    "SqrtGradOp": (ONNX, "Sqrt", 0),
    "SubtractArg1GradOp": (ONNX, "Sub", 1),
}
MANDATORY = frozenset(OF_GRADIENTS) | {
    "AllReduceToIdentity", "ConvDataGrad", "ConvTranspose", "LoopScanOut", "MatMulLhsGradOp",
    "MatMulOp", "MatMulRhsGradOp", "MulArgGradOp", "ScanToLoop",
}  # fmt: skip


class Chosen(Protocol):
    """What says which patterns are on."""

    def isPatternEnabled(self, name: str) -> bool: ...


def check_gradients(
    ir: Ir, patterns: Chosen, losses: Iterable[str], moving: Iterable[str], subject: str
) -> None:
    """Raise popart_exception for a gradient whose pattern is off, on the way from the losses.

    `moving` are the tensors that change with what is trained or asked for.
    """
    off = {row: name for name, row in OF_GRADIENTS.items() if not patterns.isPatternEnabled(name)}
    if not off:
        return
    needed, moves = set(losses), set(moving)
    for node in reversed(ir.nodes):
        if needed.intersection(node.outputs):
            _check_node(node, off, moves, subject)
            needed.update(node.reads)


def _check_node(
    node: Node, off: Mapping[tuple[str, str, int], str], moves: set[str], subject: str
) -> None:
    for place, name in enumerate(node.inputs):
        pattern = off.get((*node.key, place))
        if pattern and name in moves:
            raise popart_exception(
                f"{subject}: {node}: This op should have been removed by pattern {pattern}"
            )
