"""Operations on tensors (popops)."""

from __future__ import annotations

from simulator.poplibs.codelets import addCodelets
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
from simulator.poplibs.popops.encoding import encodeOneHot
from simulator.poplibs.popops.loop import addForLoopCounterVertex, countedForLoop, countedLoop
from simulator.poplibs.popops.reduce import (
    Operation,
    ReduceParams,
    SingleReduceOp,
    reduce,
    reduceMany,
    reduceWithOutput,
)

__all__ = [
    "Operation",
    "ReduceParams",
    "SingleReduceOp",
    "absolute",
    "add",
    "addCodelets",
    "addForLoopCounterVertex",
    "addInPlace",
    "cast",
    "countedForLoop",
    "countedLoop",
    "div",
    "divInPlace",
    "encodeOneHot",
    "exp",
    "inv",
    "log",
    "max",
    "min",
    "mul",
    "mulInPlace",
    "neg",
    "reduce",
    "reduceMany",
    "reduceWithOutput",
    "scaledAddTo",
    "scaledSubtractFrom",
    "sqrt",
    "square",
    "sub",
    "subInPlace",
]
