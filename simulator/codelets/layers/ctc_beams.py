"""Vertices of a beam search in what a connectionist temporal classification gives.

Values: Hannun et al., First-Pass Large Vocabulary Continuous Speech Recognition using
Bi-Directional Recurrent DNNs (2014), algorithm 1, in logarithms. A candidate is a beam as it is
(copied) or with one more symbol (extended); those of one text are merged, and the best go on.
Cycles of ranking, reducing and updating: PopLibs lib/popnn/popnnCycleEstimators.cpp; it has none of
the others, which are our estimates from its C++ codelets.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.vertex_type import POPNN_CYCLES, VertexTypes, supervisor, worker
from simulator.graph.machine.target import Target
from simulator.graph.types import Array, IntArray
from simulator.graph.vertices.vertex import Codelet, Operands

VOID, INVALID = 2**32 - 1, 2**32 - 2  # no symbol, and that of a beam that does not begin
ZERO = -65504.0  # the logarithm that stands for a probability of zero
FIELDS = ("parent", "addend", "pnb", "pb", "total")
LOG_ADD = 16  # cycles, PopLibs lib/popnn/PerformanceEstimation.hpp


def copy_candidate(vertices: IntArray) -> IntArray:
    """72, a worker: three products and two sums in logarithms, loads and stores."""
    return np.full_like(vertices, 37 + 2 * LOG_ADD + 3)


def extend_candidates(beams: IntArray) -> IntArray:
    """14 + 17 a beam, a worker: a product in logarithms, loads and stores of five fields."""
    return 14 + 17 * beams


def merge_candidates(extended: IntArray, steps: IntArray) -> IntArray:
    """26 + 6 an extended candidate + 12 a step of the beams' past, a worker."""
    return 26 + 6 * extended + 12 * steps


def select_candidates(beams: IntArray) -> IntArray:
    """13 + 6 a beam, a worker: what has been merged is dropped."""
    return 13 + 6 * beams


def rank_candidates(ranked: IntArray, candidates: IntArray, beams: int, target: Target) -> IntArray:
    """22 + 11 a beam + W * (28 + share * (28 + 3 for 2 candidates)); 766-791. Of the tile."""
    share = ceil_div(ranked, target.workers)
    worker_cycles = 13 + 15 + share * (28 + 3 * ((candidates - 1) // 2))
    return 22 + 11 * beams + target.workers * worker_cycles


def reduce_candidates(partitions: IntArray, target: Target) -> IntArray:
    """36 + W * (19 + half a cycle a partition), of the tile; 793-808."""
    return 36 + target.workers * (19 + (partitions - 1) // 2)


def update_beams(beams: IntArray, target: Target) -> IntArray:
    """28 + W * (17 + 7 a beam), of the tile; 810-825."""
    return 28 + target.workers * (17 + 7 * beams)


def output_beam(steps: IntArray) -> IntArray:
    """20 + 9 a step, a worker."""
    return 20 + 9 * steps


_OURS = f"our estimate, from the C++ codelets of PopLibs; {POPNN_CYCLES} has none"
_CANDIDATES = " ".join(FIELDS)
TYPES = VertexTypes(
    (
        worker(
            "popnn::CTCGenerateCopyCandidates<type>",
            f"logProbs last beamPnb beamTotal {_CANDIDATES}",
            copy_candidate,
            _OURS,
            (56, 220),
            exact=False,
        ),
        worker(
            "popnn::CTCGenerateExtendCandidates<type>",
            f"logProbs last beamPb beamTotal {_CANDIDATES}",
            extend_candidates,
            _OURS,
            (52, 200),
            exact=False,
        ),
        worker(
            "popnn::CTCMergeCandidates<type>",
            "extendPnb extendParent extendAddend historyParent historyAddend time pnb pb total "
            "merged",
            merge_candidates,
            _OURS,
            (60, 300),
            exact=False,
        ),
        worker(
            "popnn::CTCSelectExtendCandidates<type>",
            "merged total addend",
            select_candidates,
            _OURS,
            (24, 120),
            exact=False,
        ),
        supervisor(
            "popnn::CTCRankCandidates<type>",
            f"{_CANDIDATES} ranked",
            rank_candidates,
            POPNN_CYCLES,
            (60, 260),
        ),
        supervisor(
            "popnn::CTCReduceCandidates<type>",
            f"ranked {_CANDIDATES}",
            reduce_candidates,
            POPNN_CYCLES,
            (48, 140),
        ),
        supervisor(
            "popnn::CTCUpdate<type>",
            f"time length {_CANDIDATES} historyParent historyAddend last beamPnb beamPb beamTotal",
            update_beams,
            POPNN_CYCLES,
            (52, 220),
        ),
        worker(
            "popnn::CTCGenerateOutput",
            "historyParent historyAddend length outputLength output",
            output_beam,
            _OURS,
            (32, 160),
            exact=False,
        ),
    )
)


def log_add(left: Array, right: Array) -> Array:
    """Add probabilities by their logarithms; those of zero stay zero."""
    total: Array = np.logaddexp(left.astype(np.float64), right.astype(np.float64))
    return np.maximum(total, ZERO)


def _rows(operands: Operands, name: str) -> Array:
    """Return the values of a field, a row a vertex; all have as many."""
    array: Array = operands.arrays[name].reshape(len(operands.group), -1)
    return array


def _outputs(values: dict[str, Array], like: Array) -> dict[str, Array]:
    wide = {name: array.astype(like.dtype) for name, array in values.items()}
    wide |= {k: values[k].astype(np.uint32) for k in ("parent", "addend") if k in values}
    return {name: array.reshape(-1) for name, array in wide.items()}


@cache
def copy_codelet(name: str, blank: int) -> Codelet:
    """Return the worker of one beam that stays as it is: by a blank, or by its last symbol again.

    `beam` is its number, a parameter.
    """

    def compute(operands: Operands) -> dict[str, Array]:
        probs = _rows(operands, "logProbs").astype(np.float64)
        beam = operands.group.parameters["beam"]
        pnb, total = (_rows(operands, key)[:, 0] for key in ("beamPnb", "beamTotal"))
        last = _rows(operands, "last")[:, 0].astype(np.int64)
        ends_in_symbol = last < INVALID
        again = probs[np.arange(len(beam)), np.where(ends_in_symbol, last, 0)]
        repeated = np.where(ends_in_symbol, np.maximum(pnb + again, ZERO), ZERO)
        blanked = np.maximum(total + probs[:, blank], ZERO)
        sums = {"pnb": repeated, "pb": blanked, "total": log_add(repeated, blanked)}
        places = {"parent": beam, "addend": np.full(len(beam), VOID)}
        return _outputs(sums | places, operands.arrays["beamPnb"])

    return TYPES.codelet(f"popnn::CTCGenerateCopyCandidates<{name}>", compute)


@cache
def extend_codelet(name: str) -> Codelet:
    """Return the worker that appends one symbol, a parameter, to all beams."""

    def compute(operands: Operands) -> dict[str, Array]:
        symbol = operands.group.parameters["symbol"]
        prob = _rows(operands, "logProbs").astype(np.float64)
        pb, total = _rows(operands, "beamPb"), _rows(operands, "beamTotal")
        same = _rows(operands, "last") == symbol[:, None]
        # The same symbol again is a new one only behind a blank.
        pnb = np.maximum(np.where(same, pb, total) + prob, ZERO)
        beams = np.broadcast_to(np.arange(pnb.shape[1]), pnb.shape)
        places = {"parent": beams, "addend": np.broadcast_to(symbol[:, None], pnb.shape)}
        sums = {"pnb": pnb, "pb": np.full_like(pnb, ZERO), "total": pnb}
        return _outputs(sums | places, operands.arrays["beamPb"])

    return TYPES.codelet(f"popnn::CTCGenerateExtendCandidates<{name}>", compute)


@cache
def merge_codelet(name: str, beams: int) -> Codelet:
    """Return the worker that adds to a copied beam the extended one of the same text, if any.

    `merged` is the place of that one among the extended candidates, else their number.
    """

    def compute(operands: Operands) -> dict[str, Array]:
        beam, arrays = operands.group.parameters["beam"], operands.arrays
        count = len(beam)
        texts, sizes = texts_of(
            _rows(operands, "historyParent").reshape(count, -1, beams),
            _rows(operands, "historyAddend").reshape(count, -1, beams),
            arrays["time"].astype(np.int64),
        )
        parent = texts[np.arange(count), beam]
        size = sizes[np.arange(count), beam]
        ends = parent[np.arange(count), np.maximum(size - 1, 0)]
        parents = _rows(operands, "extendParent").astype(np.int64)
        # The text without its end is the beam's that was extended by that end.
        shorter = parent.copy()
        shorter[np.arange(count), np.maximum(size - 1, 0)] = VOID
        alike = (texts == shorter[:, None]).all(axis=2) & (size > 0)[:, None]
        alike &= sizes == size[:, None] - 1
        fits = np.take_along_axis(alike, parents, axis=1)
        fits &= _rows(operands, "extendAddend") == ends[:, None]
        place = np.where(fits.any(axis=1), fits.argmax(axis=1), fits.shape[1])
        gained = np.append(_rows(operands, "extendPnb"), np.full((count, 1), ZERO), axis=1)
        pnb = log_add(arrays["pnb"], gained[np.arange(count), place])
        values = {"pnb": pnb, "total": log_add(pnb, arrays["pb"])}
        merged = {"merged": place.astype(np.uint32)}
        return _outputs(values, arrays["pnb"]) | merged

    return TYPES.codelet(f"popnn::CTCMergeCandidates<{name}>", compute)


def texts_of(parents: Array, addends: Array, time: IntArray) -> tuple[Array, IntArray]:
    """Return the symbols of all beams [sample, beam, step] after `time` steps, and their number.

    Symbols come first, VOID behind them. A beam that does not begin has INVALID first.
    """
    samples, steps, beams = parents.shape
    place = np.broadcast_to(np.arange(beams), (samples, beams)).copy()
    symbols = np.full((samples, beams, steps), VOID, dtype=np.int64)
    for step in range(steps - 1, -1, -1):
        live = (time >= step)[:, None]
        symbol = np.take_along_axis(addends[:, step], place, axis=1).astype(np.int64)
        symbols[:, :, step] = np.where(live, symbol, VOID)
        before = np.take_along_axis(parents[:, step], place, axis=1)
        place = np.where(live & (step > 0), before, place).astype(np.int64)
    order = np.argsort(symbols == VOID, axis=2, kind="stable")
    return np.take_along_axis(symbols, order, axis=2), (symbols != VOID).sum(axis=2)


@cache
def select_codelet(name: str) -> Codelet:
    """Return the worker that drops the extended candidates of one symbol that have been merged.

    `first` is the place of the first of them among all, a parameter.
    """

    def compute(operands: Operands) -> dict[str, Array]:
        total = _rows(operands, "total")
        places = operands.group.parameters["first"][:, None] + np.arange(total.shape[1])
        merged = _rows(operands, "merged").astype(np.int64)
        gone = (places[:, :, None] == merged[:, None]).any(axis=2)
        addend = np.where(gone, INVALID, _rows(operands, "addend"))
        return {
            "total": np.where(gone, ZERO, total).astype(total.dtype).reshape(-1),
            "addend": addend.astype(np.uint32).reshape(-1),
        }

    return TYPES.codelet(f"popnn::CTCSelectExtendCandidates<{name}>", compute)


@cache
def rank_codelet(name: str, beams: int) -> Codelet:
    """Return the supervisor that ranks some of the candidates among all.

    It writes those among the best to their place in a table [field][beam], the others as zeros.
    """

    def compute(operands: Operands) -> dict[str, Array]:
        parameters = operands.group.parameters
        total = _rows(operands, "total")
        rows, count = total.shape
        order = np.argsort(-total.astype(np.float64), axis=1, kind="stable")[:, :beams]
        mine = (order >= parameters["first"][:, None]) & (order < parameters["end"][:, None])
        table = np.zeros((rows, len(FIELDS), beams), dtype=np.float64)
        for number, key in enumerate(FIELDS):
            best = np.take_along_axis(_rows(operands, key), order, axis=1)
            table[:, number, : order.shape[1]] = np.where(mine, best, 0)
        bits = table.astype(np.float32)
        bits[:, :2] = table[:, :2].astype(np.uint32).view(np.float32)
        return {"ranked": bits.reshape(-1)}

    return TYPES.codelet(f"popnn::CTCRankCandidates<{name}>", compute)


@cache
def reduce_codelet(name: str, beams: int) -> Codelet:
    """Return the supervisor that adds up the tables of all partitions: each has other places."""

    def compute(operands: Operands) -> dict[str, Array]:
        tables = operands.arrays["ranked"].reshape(len(operands.group), -1, len(FIELDS), beams)
        words = tables[:, :, :2].copy().view(np.uint32).sum(axis=1)
        real = tables[:, :, 2:].sum(axis=1)
        values = {"parent": words[:, 0], "addend": words[:, 1]}
        values |= {key: real[:, number] for number, key in enumerate(FIELDS[2:])}
        like = np.empty(0, np.float32 if name == "float" else np.float16)
        return _outputs(values, like)

    return TYPES.codelet(f"popnn::CTCReduceCandidates<{name}>", compute)


@cache
def update_codelet(name: str, beams: int) -> Codelet:
    """Return the supervisor that appends the best candidates to the past of a sample's beams.

    After its `length` steps a sample keeps its beams and their probabilities.
    """

    def compute(operands: Operands) -> dict[str, Array]:
        arrays, count = operands.arrays, len(operands.group)
        time, length = (arrays[key].astype(np.int64) for key in ("time", "length"))
        parent, addend = (_rows(operands, key) for key in ("parent", "addend"))
        pasts = {key: _rows(operands, key).reshape(count, -1, beams)
                 for key in ("historyParent", "historyAddend")}  # fmt: skip
        steps = pasts["historyParent"].shape[1]
        goes_on = np.flatnonzero((time < length) & (time + 1 < steps))
        last = _rows(operands, "last")
        before = np.take_along_axis(last, parent.astype(np.int64), axis=1)
        for key, column in (("historyParent", parent), ("historyAddend", addend)):
            pasts[key][goes_on, time[goes_on] + 1] = column[goes_on]
        newest = np.where(addend == VOID, before, addend)
        last[goes_on] = newest[goes_on]
        results: dict[str, Any] = {key: past.reshape(-1) for key, past in pasts.items()}
        results["last"] = last.reshape(-1)
        for key in ("Pnb", "Pb", "Total"):
            rows = _rows(operands, f"beam{key}")
            rows[goes_on] = _rows(operands, key.lower())[goes_on]
            results[f"beam{key}"] = rows.reshape(-1)
        return results

    return TYPES.codelet(f"popnn::CTCUpdate<{name}>", compute)


@cache
def output_codelet(beams: int) -> Codelet:
    """Return the worker that writes the symbols of one beam, a parameter, and their number."""

    def compute(operands: Operands) -> dict[str, Array]:
        count, beam = len(operands.group), operands.group.parameters["beam"]
        parents, addends = (
            _rows(operands, key).reshape(count, -1, beams)
            for key in ("historyParent", "historyAddend")
        )
        steps = np.minimum(operands.arrays["length"].astype(np.int64), parents.shape[1] - 1)
        texts, sizes = texts_of(parents, addends, steps)
        text, size = texts[np.arange(count), beam], sizes[np.arange(count), beam]
        size = np.where((text == INVALID).any(axis=1), 0, size)
        shown = np.where(np.arange(text.shape[1] - 1) < size[:, None], text[:, :-1], 0)
        return {
            "outputLength": size.astype(np.uint32),
            "output": shown.astype(np.uint32).reshape(-1),
        }

    return TYPES.codelet("popnn::CTCGenerateOutput", compute)
