"""Vertices of the connectionist temporal classification: losses of a sample and their gradient.

Values: Graves et al., Connectionist Temporal Classification (2006), equations 6 to 16, in
logarithms. Cycles: PopLibs lib/popnn/PerformanceEstimation.hpp (alphaCycles, gradGivenAlphaCycles,
logAddCycles, logMulCycles); here one worker has all steps and labels of a sample, where PopLibs
cuts both over tiles by a plan: an estimate.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from simulator.codelets.vertex_type import POPNN_ESTIMATES, VertexTypes, worker
from simulator.graph.types import Array, IntArray
from simulator.graph.vertex import Codelet, Operands

LOG_ADD, LOG_MULTIPLY = 16, 1  # cycles of a sum and of a product in logarithms
ALPHA = 2 * (1 + 3) + 2 * (LOG_ADD + LOG_MULTIPLY) + 2  # of a symbol, the blank beside it, a step
GRADIENT = 2 * (2 + 1) + 2 * (LOG_ADD + LOG_MULTIPLY)


def cycles(steps: IntArray, labels: IntArray, *, gradient: bool) -> IntArray:
    """17 + 44 a label a step; with the gradient, which goes back too, 51 + 128: a worker."""
    last = LOG_ADD + LOG_MULTIPLY  # of the blank at the end
    alpha = ALPHA * steps * labels + last
    return 2 * alpha + GRADIENT * steps * labels + last if gradient else alpha


TYPES = VertexTypes(
    tuple(
        worker(
            f"popnn::{name}<blank>",
            fields,
            partial(cycles, gradient=gradient),
            f"our estimate, from {POPNN_ESTIMATES}",
            (60, 400),
            exact=False,
        )
        for name, fields, gradient in (
            ("CTCAlpha", "logProbs labels validTime validLabel loss", False),
            ("CTCGradGivenAlpha", "logProbs labels validTime validLabel loss grad", True),
        )
    )
)


def codelet(classes: int, blank: int, *, gradient: bool, softmax: bool = False) -> Codelet:
    """Return the vertex type: log probabilities [steps, classes], labels, and both lengths.

    Its gradient is by the log probabilities, or, with `softmax`, by what they are the softmax of.
    """

    def compute(operands: Operands) -> dict[str, Array]:
        arrays, count = operands.arrays, len(operands.group)
        rows = arrays["logProbs"].astype(np.float64).reshape(count, -1, classes)
        labels = arrays["labels"].astype(np.int64).reshape(count, -1)
        lengths = [arrays[name].astype(np.int64) for name in ("validTime", "validLabel")]
        losses, posterior = losses_of(rows, labels, *lengths, blank=blank)
        outputs = {"loss": losses.astype(arrays["logProbs"].dtype)}
        if gradient:
            slope = -posterior
            if softmax:
                live = np.arange(rows.shape[1]) < lengths[0][:, None]
                slope += np.where(live[:, :, None], np.exp(rows), 0)
            outputs["grad"] = slope.astype(arrays["logProbs"].dtype).reshape(-1)
        return outputs

    name = "CTCGradGivenAlpha" if gradient else "CTCAlpha"
    return TYPES.codelet(f"popnn::{name}<{blank}>", compute)


def losses_of(
    rows: Array, labels: Array, times: IntArray, lengths: IntArray, *, blank: int
) -> tuple[Array, Array]:
    """Return minus the log probability of each sample's labels, and what each class adds to it.

    `rows` are log probabilities [samples, steps, classes]; the second is [samples, steps, classes],
    the probability that a step shows a class given that the labels come out.
    """
    samples, steps, _ = rows.shape
    states = 2 * labels.shape[1] + 1
    symbols = np.full((samples, states), blank)
    symbols[:, 1::2] = labels
    # A state can be left out between two symbols that differ, none of which is blank.
    skips = np.zeros((samples, states), dtype=bool)
    skips[:, 2:] = (symbols[:, 2:] != blank) & (symbols[:, 2:] != symbols[:, :-2])
    shown = np.take_along_axis(
        rows, np.broadcast_to(symbols[:, None], (samples, steps, states)), axis=2
    )
    valid = np.arange(states) < 2 * lengths[:, None] + 1
    with np.errstate(divide="ignore", invalid="ignore"):
        alpha = _forward(shown, skips, valid, times)
        ends = np.stack([2 * lengths, np.maximum(2 * lengths - 1, 0)], axis=1)
        last = alpha[np.arange(samples)[:, None], np.maximum(times - 1, 0)[:, None], ends]
        last[lengths == 0, 1] = -np.inf
        total = np.logaddexp(last[:, 0], last[:, 1])
        beta = _backward(shown, skips, valid, times, lengths)
        joint = np.exp(alpha + beta - total[:, None, None])
    joint[~np.isfinite(joint)] = 0
    posterior = np.zeros_like(rows)
    places: Any = (np.arange(samples)[:, None, None], np.arange(steps)[None, :, None],
                   np.broadcast_to(symbols[:, None], joint.shape))  # fmt: skip
    np.add.at(posterior, places, joint)
    return -total, posterior


def _forward(shown: Array, skips: Array, valid: Array, times: IntArray) -> Array:
    """Return the log probabilities of all ways to each state at each step."""
    alpha = np.full(shown.shape, -np.inf)
    alpha[:, 0, :2] = shown[:, 0, :2]
    for step in range(1, shown.shape[1]):
        before = alpha[:, step - 1]
        ways = np.logaddexp(before, _moved(before, 1))
        ways = np.where(skips, np.logaddexp(ways, _moved(before, 2)), ways)
        alpha[:, step] = np.where(valid, ways + shown[:, step], -np.inf)
    alpha[:, 0] = np.where(valid, alpha[:, 0], -np.inf)
    return np.where(np.arange(shown.shape[1])[:, None] < times[:, None, None], alpha, -np.inf)


def _backward(
    shown: Array, skips: Array, valid: Array, times: IntArray, lengths: IntArray
) -> Array:
    """Return the log probabilities of all ways from each state at each step to the end."""
    samples, steps, states = shown.shape
    beta = np.full(shown.shape, -np.inf)
    ends = (np.arange(states) == 2 * lengths[:, None]) | (
        np.arange(states) == 2 * lengths[:, None] - 1
    )
    ahead = np.zeros_like(skips)
    ahead[:, :-2] = skips[:, 2:]
    for step in range(steps - 1, -1, -1):
        last = (times - 1 == step)[:, None]
        if step == steps - 1:
            beta[:, step] = np.where(last & ends, 0.0, -np.inf)
            continue
        after = np.where(valid, beta[:, step + 1] + shown[:, step + 1], -np.inf)
        ways = np.logaddexp(after, _moved(after, -1))
        ways = np.where(ahead, np.logaddexp(ways, _moved(after, -2)), ways)
        beta[:, step] = np.where(last & ends, 0.0, np.where(valid & ~last, ways, -np.inf))
    return beta


def _moved(rows: Array, by: int) -> Array:
    """Return rows moved along the states; what comes in cannot be reached."""
    out = np.full_like(rows, -np.inf)
    if by > 0:
        out[:, by:] = rows[:, :-by]
    else:
        out[:, :by] = rows[:, -by:]
    return out
