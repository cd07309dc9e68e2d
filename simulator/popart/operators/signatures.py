"""The builder's methods: for each operator its attributes in their order, and its outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

import onnx

from simulator.popart.errors import popart_exception
from simulator.popart.operators.graphcore_signatures import GRAPHCORE_SIGNATURES
from simulator.popart.representation.ir import ONNX

# Methods whose names are not that of the operator in small letters.
_METHODS = {
    "And": "logical_and", "Ctc": "ctcloss", "If": "logical_if", "L1": "l1loss", "Nll": "nllloss",
    "NormalizeImage": "normalize_image", "Not": "logical_not", "Or": "logical_or",
    "PackedDataBlock": "packedDataBlock",
    "Xor": "logical_xor",
}  # fmt: skip
_FEWEST = {"BatchNormalization": 1, "Dropout": 1, "MaxPool": 1, "LSTM": 3, "TopK": 2}
_Kind = onnx.AttributeProto
KINDS = {
    "i": _Kind.INT, "f": _Kind.FLOAT, "s": _Kind.STRING, "g": _Kind.GRAPH, "I": _Kind.INTS,
    "F": _Kind.FLOATS, "S": _Kind.STRINGS,
}  # fmt: skip


FEW = 1000  # inputs; schemas of as many as one likes have a number far above


@dataclass(frozen=True, slots=True)
class Signature:
    """An operator as a method: its name, its attributes, how many outputs it gives.

    `kinds` are the types of the attributes, numbers of onnx.AttributeProto, where they are known.
    """

    operator: str
    attributes: tuple[str, ...]
    outputs: int = 1
    least: int = 0
    most: int = 1 << 30
    positional: tuple[str, ...] = ()
    kinds: Mapping[str, int] = field(default_factory=dict)
    most_outputs: int = 1 << 30

    def check(self, attributes: Mapping[str, object], inputs: int, subject: str) -> None:
        """Raise popart_exception for an unknown attribute or a wrong number of inputs."""
        unknown = [name for name in attributes if name not in self.attributes]
        if unknown:
            attribute_names = ", ".join(self.attributes) or "none"
            raise popart_exception(
                f"{subject}: no attribute {unknown[0]!r}; there are {attribute_names}"
            )
        if not self.least <= inputs <= self.most:
            expected = (
                f"{self.least} or more" if self.most > FEW else f"{self.least} to {self.most}"
            )
            raise popart_exception(
                f"{self.operator} has invalid number of inputs: {inputs}; {expected} are needed"
            )


@cache
def signatures(domain: str, opset: int) -> dict[str, Signature]:
    """Return the methods of a domain by their names: MaxPool is maxpool, And logical_and."""
    if domain == ONNX:
        names = {schema.name for schema in onnx.defs.get_all_schemas() if not schema.domain}
        every = [_of_schema(name, opset) for name in sorted(names)]
    else:
        every = [_of_table(name) for name in GRAPHCORE_SIGNATURES]
    defined = [signature for signature in every if signature is not None]
    return {_METHODS.get(one.operator, one.operator.lower()): one for one in defined}


def _of_table(operator: str) -> Signature:
    row = GRAPHCORE_SIGNATURES[operator]
    pairs = [pair.split(":") for pair in row.attributes.split()]
    positional = tuple(name for name, _ in pairs)
    kinds = {name: KINDS[kind] for name, kind in pairs if name != "num_outputs"}
    return Signature(
        operator, tuple(kinds), row.outputs, row.least, row.most, positional, kinds
    )  # fmt: skip


def _of_schema(operator: str, opset: int) -> Signature | None:
    """Return an operator's method by ONNX's schema; None when the operator set has none.

    By position it takes what has to be there first, else in the order of the alphabet, as PopART's
    methods do; before them the number of outputs, where that is open.
    """
    if not onnx.defs.has(operator, opset, ""):
        return None
    schema = onnx.defs.get_schema(operator, opset, "")
    if schema.deprecated:
        return None
    outputs = _FEWEST.get(operator, max(schema.min_output, 1))
    attributes = tuple(schema.attributes)
    ordered = sorted(attributes, key=lambda name: (not schema.attributes[name].required, name))
    many = () if schema.min_output == schema.max_output else ("num_outputs",)
    counts = (schema.min_input, schema.max_input)
    kinds = {name: int(schema.attributes[name].type.value) for name in attributes}
    return Signature(
        operator, attributes, outputs, *counts, (*many, *ordered), kinds, schema.max_output
    )
