"""Which operators can be run, and which of ONNX cannot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import onnx

from simulator.popart.importing.composites.table import COMPOSITES
from simulator.popart.operators.layer_gradients import GRADIENTS
from simulator.popart.operators.table import OPERATORS
from simulator.popart.representation.ir import ONNX

# What is folded or run by nodes of others at import, of each version.
FOLDED = ("Constant", "ConstantOfShape", "EyeLike", "Range", "Shape", "Size")
MADE = "ai.graphcore.internal"  # domain of what a session adds itself


class OperatorIdentifier(NamedTuple):
    """An operator of a version."""

    domain: str
    type: str
    version: int


def _versions() -> Iterator[tuple[str, str, int]]:
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.domain:
            yield ONNX, schema.name, schema.since_version


def getSupportedOperations(includeInternal: bool) -> list[OperatorIdentifier]:
    """Return the operators that can be run; the internal ones are gradients, too.

    >>> from simulator import popart
    >>> {"Relu", "Conv"} <= {operation.type for operation in popart.getSupportedOperations(False)}
    True
    """
    identifiers = {(*key, version) for key, row in OPERATORS.items() for version in row.versions}
    identifiers |= {
        (*key, version) for key, composite in COMPOSITES.items() for version in composite.versions
    }
    identifiers |= {one for one in _versions() if one[1] in FOLDED}
    if includeInternal:
        identifiers |= {(MADE, f"{name}Grad", 1) for _, name in GRADIENTS}
    return [OperatorIdentifier(*one) for one in sorted(identifiers)]


def getUnsupportedOperations(opset: int) -> list[OperatorIdentifier]:
    """Return the operators of an operator set of ONNX that cannot be run.

    >>> from simulator import popart
    >>> "Relu" in {operation.type for operation in popart.getUnsupportedOperations(11)}
    False
    """
    runnable = {(one.type, one.version) for one in getSupportedOperations(False)}
    newest = {
        name: onnx.defs.get_schema(name, opset, "").since_version
        for _, name, _ in _versions() if onnx.defs.has(name, opset, "")
    }  # fmt: skip
    return [OperatorIdentifier(ONNX, *one) for one in sorted(newest.items()) if one not in runnable]
