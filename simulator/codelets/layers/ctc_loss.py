"""Vertices of the classification loss: a step of one part of the labels of a sample.

Values: Graves et al., Connectionist Temporal Classification (2006), equations 6 to 16, in
logarithms: states are the labels with a blank before, between and behind them. Cycles: PopLibs
lib/popnn/PerformanceEstimation.hpp (alphaCycles, gradGivenAlphaCycles, logAddCycles, logMulCycles)
as its popnnCycleEstimators.cpp calls them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.codelets.vertex_type import POPNN_CYCLES, VertexTypes, worker
from simulator.graph.geometry.intervals import offsets_of
from simulator.graph.types import Array, IntArray
from simulator.graph.vertices.vertex import Codelet, Operands

LOG_ADD, LOG_MULTIPLY = 16, 1  # cycles of a sum and of a product in logarithms
LAST_BLANK = LOG_ADD + LOG_MULTIPLY
ALPHA = 2 * (1 + 3) + 2 * (LOG_ADD + LOG_MULTIPLY) + 2  # of a symbol, the blank beside it, a step
GRADIENT = 2 * (2 + 1) + 2 * (LOG_ADD + LOG_MULTIPLY)


def step(labels: IntArray) -> IntArray:
    """44 a label, a worker: a step forward or back."""
    return ALPHA * labels


def step_with_gradient(labels: IntArray) -> IntArray:
    """84 a label, a worker: a step and its gradient."""
    return (ALPHA + GRADIENT) * labels


FIELDS = "logProbs labels column prev side sidePrev count validTime validLabel states"
TYPES = VertexTypes(
    tuple(
        worker(f"popnn::{name}<blank>", f"{FIELDS} {more}".strip(), cost, POPNN_CYCLES, (72, 500))
        for name, more, cost in (
            ("CTCAlpha", "loss", step),
            ("CTCBeta", "", step),
            ("CTCGradGivenAlpha", "grad", step_with_gradient),
            ("CTCGradGivenBeta", "loss grad", step_with_gradient),
        )
    )
)


@dataclass(frozen=True, slots=True)
class Way:
    """Which way a vertex goes over the steps, and whether it combines both ways."""

    forward: bool
    gradient: bool = False

    @property
    def name(self) -> str:
        """Return PopLibs' name of the vertex."""
        if self.gradient:
            return "CTCGradGivenBeta" if self.forward else "CTCGradGivenAlpha"
        return "CTCAlpha" if self.forward else "CTCBeta"


def codelet(way: Way, classes: int, blank: int) -> Codelet:
    """Return a vertex type. Parameters by vertex: `labels`, `offset` of the first, `begin` step.

    `column` are the states of the step before (behind, on the way back), or `prev` those of the
    neighbouring part of the steps when this one begins; `side` and `sidePrev` are the states
    beside them, of the neighbouring part of the labels. `count` is the step, and goes on.
    `states` keeps what the other way needs for the gradient, `grad` is a sum in logarithms.
    """

    def compute(operands: Operands) -> dict[str, Array]:
        arrays, parameters = operands.arrays, operands.group.parameters
        count = arrays["count"].astype(np.int64)
        rows = operands.counts["logProbs"] // classes
        at = count - parameters["begin"]
        live = (at >= 0) & (at < rows) & (count < arrays["validTime"])
        live &= parameters["offset"] <= arrays["validLabel"]
        width = operands.counts["column"]
        for size, labels in np.unique(
            np.stack([width[live], parameters["labels"][live]], 1), axis=0
        ).tolist():
            chosen = live & (width == size) & (parameters["labels"] == labels)
            _advance(operands, way, _Part(np.flatnonzero(chosen), size, labels, classes, blank))
        ahead = 1 if way.forward else -1
        written = ["column", "states", "loss", "grad"]
        outputs = {name: arrays[name] for name in written if name in operands.counts}
        moved = (count + ahead).astype(arrays["count"].dtype)
        if way.gradient:
            outputs.pop("states")
        return {**outputs, "count": moved}

    return TYPES.codelet(f"popnn::{way.name}<{blank}>", compute)


@dataclass(frozen=True, slots=True)
class _Part:
    """Vertices of as many states and labels."""

    members: IntArray
    states: int
    labels: int
    classes: int
    blank: int


def _advance(operands: Operands, way: Way, part: _Part) -> None:
    """Take the step of some vertices, in the arrays of all."""
    arrays, parameters, members = operands.arrays, operands.group.parameters, part.members
    count = arrays["count"][members].astype(np.int64)
    at = count - parameters["begin"][members]
    rows = operands.counts["logProbs"][members] // part.classes
    begin = {name: offsets_of(operands.counts[name])[:-1][members] for name in operands.counts}

    def taken(name: str, width: int, first: Any = 0) -> Array:
        places = (begin[name] + first)[:, None] + np.arange(width)
        values: Array = arrays[name][places].astype(np.float64)
        return values

    valid = arrays["validLabel"][members].astype(np.int64)
    offset = 2 * parameters["offset"][members]  # of the first state among all
    number = offset[:, None] + np.arange(part.states)
    labels = arrays["labels"][begin["labels"][:, None] + np.arange(part.labels + 2)].astype(
        np.int64
    )
    symbols = np.full((len(members), part.states), part.blank)
    symbols[:, 1::2] = labels[:, 1 : part.labels + 1]
    one_side = 1 if way.forward else 2
    first = at == (0 if way.forward else rows - 1)
    column = np.where(first[:, None], taken("prev", part.states), taken("column", part.states))
    side = np.where(first[:, None], taken("sidePrev", one_side), taken("side", one_side))
    last = count == arrays["validTime"][members].astype(np.int64) - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        if way.forward:
            around = np.concatenate([side, column], 1)
            ways = np.logaddexp(column, around[:, : part.states])
            apart, far = labels[:, 1:-1] != labels[:, :-2], around[:, : part.states - 1 : 2]
        else:
            around = np.concatenate([column, side], 1)
            behind = offset[:, None] + np.arange(part.states + 2)
            ends = np.where(behind == 2 * valid[:, None], 0.0, -np.inf)
            around = np.where(last[:, None], ends, around)
            ways = np.logaddexp(around[:, :-2], around[:, 1:-1])
            apart, far = labels[:, 1:-1] != labels[:, 2:], around[:, 3::2]
        odd = ways[:, 1::2]
        far, apart = far[:, : odd.shape[1]], apart & (labels[:, 1:-1] != part.blank)
        ways[:, 1::2] = np.where(apart[:, : odd.shape[1]], np.logaddexp(odd, far), odd)
        shown = taken("logProbs", part.classes, at * part.classes)
        values = ways + np.take_along_axis(shown, symbols, axis=1)
    inside = number <= 2 * valid[:, None]
    values = np.where(inside, values, -np.inf)
    _put(arrays["column"], begin["column"], values)
    table = begin["states"] + at * part.states
    if way.gradient:
        other = arrays["states"][table[:, None] + np.arange(part.states)]
        joint = np.where(inside, other + (values if way.forward else ways), -np.inf)
        places = (begin["grad"] + at * part.classes)[:, None] + symbols
        np.logaddexp.at(arrays["grad"], places, joint.astype(arrays["grad"].dtype))
    else:
        _put(arrays["states"], table, values if way.forward else np.where(inside, ways, -np.inf))
    if way.forward and last.any():
        final = (number == 2 * valid[:, None]) | (number == 2 * valid[:, None] - 1)
        ending = np.logaddexp.reduce(np.where(final, values, -np.inf), axis=1)
        arrays["loss"][begin["loss"][last]] = ending[last]


def _put(array: Array, begins: IntArray, values: Array) -> None:
    array[begins[:, None] + np.arange(values.shape[1])] = values
