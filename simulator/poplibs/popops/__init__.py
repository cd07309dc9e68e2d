"""Operations on tensors (popops)."""

from __future__ import annotations

from simulator.poplibs.popops.elementwise import (
    absolute,
    add,
    addInPlace,
    cast,
    div,
    divInPlace,
    exp,
    inv,
    log,
    max,
    min,
    mul,
    mulInPlace,
    neg,
    scaledAddTo,
    scaledSubtractFrom,
    sqrt,
    square,
    sub,
    subInPlace,
)
from simulator.poplibs.popops.reduce import Operation, reduce, reduceWithOutput

__all__ = [
    "Operation",
    "absolute",
    "add",
    "addInPlace",
    "cast",
    "div",
    "divInPlace",
    "exp",
    "inv",
    "log",
    "max",
    "min",
    "mul",
    "mulInPlace",
    "neg",
    "reduce",
    "reduceWithOutput",
    "scaledAddTo",
    "scaledSubtractFrom",
    "sqrt",
    "square",
    "sub",
    "subInPlace",
]
