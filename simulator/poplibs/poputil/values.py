"""What a value becomes in another type, or in the name of a vertex type."""

from __future__ import annotations

import numpy as np

from simulator.graph.errors import poplibs_error
from simulator.graph.machine.target import Target
from simulator.graph.types import FLOAT, HALF, Type
from simulator.logging import library_call


@library_call("POPUTIL")
def castToDeviceHalfValue(target: Target, input: float) -> float:
    """Return the half that is nearest to a value; what is too large is infinite.

    >>> from simulator import poplar, poputil
    >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
    >>> poputil.castToDeviceHalfValue(graph.getTarget(), 2049.0)  # above 2048 halves are even
    2048.0
    """
    return _as_half(input)


@library_call("POPUTIL")
def checkAccuracyWhenCast(
    target: Target, input: float, inputType: Type, outputType: Type, tolerance: float
) -> bool:
    """Return whether a value keeps its accuracy when it is cast: float to half, or back.

    The error must be less than the tolerance times the value.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> target = trial.graph.getTarget()
    >>> [
    ...     popops.checkAccuracyWhenCast(target, number, poplar.FLOAT, poplar.HALF, 1e-6)
    ...     for number in (0.5, 0.1)
    ... ]
    [True, False]
    """
    if (inputType, outputType) == (HALF, FLOAT):
        return True
    if (inputType, outputType) != (FLOAT, HALF):
        raise poplibs_error(
            f"checkAccuracyWhenCast: from {inputType} to {outputType}; known for float and half"
        )
    with np.errstate(over="ignore"):
        value = float(np.float32(input))
    return abs(value) * tolerance > abs(_as_half(value) - value)


def _as_half(value: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float16(np.float32(value)))


@library_call("POPUTIL")
def templateVertex(name: str, *args: Type | bool | int | str) -> str:
    """Return the name of a vertex type with the arguments of its template.

    >>> from simulator import poplar, poputil
    >>> poputil.templateVertex("popops::Fill", poplar.FLOAT)
    'popops::Fill<float>'
    """
    texts = (str(arg).lower() if isinstance(arg, bool) else str(arg) for arg in args)
    return f"{name}<{','.join(texts)}>" if args else name
