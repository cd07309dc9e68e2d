"""The builder's methods: for each operator its attributes in their order, and its outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import onnx

from simulator.popart.errors import popart_exception
from simulator.popart.ir import ONNX
from simulator.popart.operators.table import OPERATORS

_WITHOUT_ATTRIBUTES = (
    "Atan2", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXnor", "BitwiseXor", "Detach",
    "Expm1", "Fmod", "Gelu", "Log1p", "Nop", "Remainder", "Round", "Square",
)  # fmt: skip
# Attributes of ai.graphcore's operators, which ONNX has no schema of, and how many outputs.
_GRAPHCORE: dict[str, tuple[tuple[str, ...], int]] = {
    **dict.fromkeys(_WITHOUT_ATTRIBUTES, ((), 1)),
    "ConvFlipWeights": (("group",), 1),
    "GroupNormalization": (("num_groups", "epsilon"), 3),
    "IdentityLoss": (("reduction",), 1),
    "L1": (("lambda", "reduction"), 1),
    "LSTM": (("output_full_sequence",), 2),
    "Nll": (("reduction", "ignoreIndex", "inputIsLogProbability"), 1),
    "PrintTensor": (("print_gradient", "title"), 1),
    "Reshape": (("shape",), 1),
    "Scale": (("scale",), 1),
    "Subsample": (("strides",), 1),
}  # fmt: skip
# Methods whose names are not that of the operator in small letters.
_METHODS = {
    "And": "logical_and", "If": "logical_if", "L1": "l1loss", "Nll": "nllloss",
    "Not": "logical_not", "Or": "logical_or", "Xor": "logical_xor",
}  # fmt: skip
_FEWEST = {"BatchNormalization": 1, "Dropout": 1, "MaxPool": 1, "LSTM": 3, "TopK": 2}


FEW = 1000  # inputs; schemas of as many as one likes have a number far above


@dataclass(frozen=True, slots=True)
class Signature:
    """An operator as a method: its name, its attributes, how many outputs it gives."""

    operator: str
    attributes: tuple[str, ...]
    outputs: int = 1
    least: int = 0
    most: int = 1 << 30
    positional: tuple[str, ...] = ()

    def check(self, given: Mapping[str, Any], inputs: int, what: str) -> None:
        """Raise popart_exception for an unknown attribute or a wrong number of inputs."""
        unknown = [name for name in given if name not in self.attributes]
        if unknown:
            known = ", ".join(self.attributes) or "none"
            raise popart_exception(f"{what}: no attribute {unknown[0]!r}; there are {known}")
        if not self.least <= inputs <= self.most:
            wanted = f"{self.least} or more" if self.most > FEW else f"{self.least} to {self.most}"
            raise popart_exception(f"{what}: {inputs} inputs; {wanted} are needed")


@cache
def signatures(domain: str, opset: int) -> dict[str, Signature]:
    """Give the methods of a domain by their names: MaxPool is maxpool, And logical_and."""
    made = {}
    for found, operator in OPERATORS:
        if found == domain:
            signature = _of_schema(operator, opset) if domain == ONNX else _of_table(operator)
            if signature is not None:
                made[_METHODS.get(operator, operator.lower())] = signature
    return made


def _of_table(operator: str) -> Signature:
    attributes, outputs = _GRAPHCORE[operator]
    return Signature(operator, attributes, outputs, positional=attributes)


def _of_schema(operator: str, opset: int) -> Signature | None:
    """Give an operator's method by ONNX's schema; None when the operator set has none.

    By position it takes what has to be there first, else in the order of the alphabet, as PopART's
    methods do; before them the number of outputs, where that is open.
    """
    if not onnx.defs.has(operator, opset, ""):
        return None
    schema = onnx.defs.get_schema(operator, opset, "")
    outputs = _FEWEST.get(operator, max(schema.min_output, 1))
    attributes = tuple(schema.attributes)
    ordered = sorted(attributes, key=lambda name: (not schema.attributes[name].required, name))
    many = () if schema.min_output == schema.max_output else ("num_outputs",)
    counts = (schema.min_input, schema.max_input)
    return Signature(operator, attributes, outputs, *counts, (*many, *ordered))
