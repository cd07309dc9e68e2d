"""Texts out of log probabilities: beam search (popnn/CTCInference.hpp).

As in PopLibs each sample has tiles of its own, which share its symbols, its beams and the ranking
of its candidates. A step's log probabilities are sliced before it; PopLibs keeps all steps on all
tiles of a sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isqrt

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.layers import ctc_beams as vertices
from simulator.codelets.layers.ctc_beams import FIELDS, INVALID, VOID, ZERO
from simulator.graph.errors import poplibs_error
from simulator.graph.geometry.intervals import as_int64
from simulator.graph.graph import Graph
from simulator.graph.option_table import Option, checked, defaults
from simulator.graph.program import Copy, Execute, Sequence
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import FLOAT, HALF, UNSIGNED_INT, Array, IntArray, Type
from simulator.graph.vertices.vertex import Codelet, Direction, Field, VertexGroup, cut_ranges
from simulator.logging import library_call
from simulator.poplibs import popops
from simulator.poplibs.popnn.nonlinearities.softmax import logSoftmax
from simulator.poplibs.popops.regions import debug_name

Options = Mapping[str, object] | None
OPTIONS = {
    "partialsType": Option("float", "type of probabilities", allowed=("float", "half")),
    "availableMemoryProportion": Option("0.6", "taken, and without effect here"),
    "sortStageGroups": Option("", "groups that each stage ranks, such as 4,1"),
}
ONE_STAGE = 20  # classes below which all candidates are ranked at once
INTEGERS = ("parent", "addend")


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of sorting: `groups` of candidates, each ranked and reduced by so many tiles."""

    groups: int
    rankPartitions: int
    reducePartitions: int


@dataclass(frozen=True, slots=True)
class Plan:
    """How a beam search is cut (PopLibs lib/popnn/CTCInferencePlan.cpp)."""

    inType: Type
    partialsType: Type
    batchSize: int
    maxTime: int
    numClasses: int
    beamwidth: int
    tilesPerBatchEntry: int
    batch: int
    extend: int
    copy: int
    output: int
    sort: tuple[Stage, ...]

    def tile(self, sample: IntArray, part: IntArray) -> IntArray:
        """Return the tile of a part of the work of a sample."""
        entry = sample // ceil_div(self.batchSize, self.batch)
        tiles: IntArray = entry * self.tilesPerBatchEntry + part % self.tilesPerBatchEntry
        return tiles


@library_call("POPNN")
def plan(
    graph: Graph,
    inType: Type,
    batchSize: int,
    maxTime: int,
    numClasses: int,
    beamwidth: int,
    options: Options = None,
) -> Plan:
    """Plan a beam search; raises poplibs_error and InvalidOptionError.

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> sizes = 1, 2, 3  # samples, steps, classes
    >>> plan = popnn.ctc_infer.plan(trial.graph, poplar.FLOAT, *sizes, beamwidth=2)
    >>> popnn.ctc_infer.createDataInput(trial.graph, poplar.FLOAT, *sizes, plan).shape
    (2, 1, 3)
    """
    name = "ctc_infer::plan"
    values = defaults(OPTIONS, checked(OPTIONS, options or {}, name))
    if min(batchSize, maxTime, beamwidth) < 1 or numClasses < 2:
        raise poplibs_error(
            f"{name}: batch {batchSize}, time {maxTime}, {numClasses} classes, beam width "
            f"{beamwidth}; at least 1 of each and 2 classes are needed"
        )
    tiles = graph.target.tiles_per_ipu
    batch = _partitions(batchSize, tiles)
    per_entry = tiles // batch
    groups = _groups(str(values["sortStageGroups"]), numClasses, beamwidth, name)
    stages, candidates = [], beamwidth * numClasses
    for number, group in enumerate(groups):
        size, group_tiles = ceil_div(candidates, group), max(1, per_entry // group)
        share = max(graph.target.workers, ceil_div(size, group_tiles))
        reduced = _partitions(beamwidth, group_tiles)
        stages.append(Stage(group, ceil_div(size, share), reduced))
        candidates = beamwidth * groups[number]
    return Plan(
        inType,
        HALF if values["partialsType"] == "half" else FLOAT,
        batchSize,
        maxTime,
        numClasses,
        beamwidth,
        per_entry,
        batch,
        _partitions(numClasses - 1, per_entry),
        _partitions(beamwidth, per_entry),
        _partitions(beamwidth, per_entry),
        tuple(stages),
    )


def _partitions(size: int, most: int) -> int:
    return ceil_div(size, ceil_div(size, most))


def _groups(text: str, classes: int, beams: int, name: str) -> list[int]:
    """Return the groups of each stage; the last one has 1."""
    try:
        groups = [int(part) for part in text.strip("[]{}").split(",") if part.strip()]
    except ValueError:
        groups = [0]
    if groups and (min(groups) < 1 or groups[-1] != 1):
        raise poplibs_error(f"{name}: sortStageGroups is {text!r}; a list that ends in 1 is needed")
    if groups or classes < ONE_STAGE:
        return groups or [1]
    total, first = beams * classes, isqrt(classes)
    while total - (first - 1) * ceil_div(total, first) < beams:
        first -= 1
    return [first, 1]


@library_call("POPNN")
def createDataInput(
    graph: Graph,
    type: Type,
    batchSize: int,
    maxTime: int,
    numClasses: int,
    plan: Plan,
    debugContext: str = "",
) -> Tensor:
    """Add log probabilities [time, batch, classes], each sample on its first tile.

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> sizes = 1, 2, 3  # samples, steps, classes
    >>> plan = popnn.ctc_infer.plan(trial.graph, poplar.FLOAT, *sizes, beamwidth=2)
    >>> popnn.ctc_infer.createDataInput(trial.graph, poplar.FLOAT, *sizes, plan).shape
    (2, 1, 3)
    """
    shape = [batchSize, maxTime, numClasses]
    data = graph.addVariable(type, shape, debug_name(debugContext, "data"))
    _map_rows(graph, data, plan.tile(np.arange(batchSize), as_int64(0)))
    return data.dimShuffle([1, 0, 2])


def _map_rows(graph: Graph, tensor: Tensor, tiles: IntArray) -> None:
    """Put equal parts of a tensor on tiles, in order."""
    size = tensor.numElements() // max(len(tiles), 1)
    begins = np.arange(len(tiles)) * size
    graph.map_ranges(tensor, begins, begins + size, tiles)


@library_call("POPNN")
def beamSearchDecoderLogProbabilities(
    graph: Graph,
    logProbs: Tensor,
    dataLengths: Tensor,
    prog: Sequence,
    blankClass: int,
    beamwidth: int,
    topPaths: int,
    plan: Plan,
    debugContext: str = "",
    options: Options = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the log probabilities of the best texts [batch, paths], their lengths, and the texts.

    Texts are [batch, paths, time], zeros behind their end; of each sample `dataLengths` steps of
    `logProbs` [time, batch, classes] are taken.

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> sizes = 1, 2, 3  # samples, steps, classes
    >>> plan = popnn.ctc_infer.plan(trial.graph, poplar.FLOAT, *sizes, beamwidth=2)
    >>> scores = trial.tensor([[[-9.0, 0.0, -9.0]], [[-9.0, -9.0, 0.0]]])  # class 1, then 2
    >>> steps = trial.tensor([2], poplar.UNSIGNED_INT)
    >>> _, lengths, texts = popnn.ctc_infer.beamSearchDecoderLogProbabilities(
    ...     trial.graph, scores, steps, trial.prog, blankClass=0, beamwidth=2, topPaths=1, plan=plan
    ... )
    >>> trial.values(lengths, texts)
    [[[2]], [[[1, 2]]]]
    """
    name = debug_name(debugContext, "CTCBeamSearchDecoderLogProbs")
    checked(OPTIONS, options or {}, name)
    _check(name, logProbs, dataLengths, (blankClass, beamwidth, topPaths), plan)
    with graph.debug_scope(name, "popnn"):
        search = _Search(graph, plan, blankClass, name)
        return search.decoded(logProbs, dataLengths, prog, topPaths)


@library_call("POPNN")
def beamSearchDecoderLogits(
    graph: Graph,
    logits: Tensor,
    dataLengths: Tensor,
    prog: Sequence,
    blankClass: int,
    beamwidth: int,
    topPaths: int,
    plan: Plan,
    debugContext: str = "",
    options: Options = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the same of the log softmax of `logits`.

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> sizes = 1, 2, 3  # samples, steps, classes
    >>> plan = popnn.ctc_infer.plan(trial.graph, poplar.FLOAT, *sizes, beamwidth=2)
    >>> scores = trial.tensor([[[-9.0, 0.0, -9.0]], [[-9.0, -9.0, 0.0]]])  # class 1, then 2
    >>> steps = trial.tensor([2], poplar.UNSIGNED_INT)
    >>> _, lengths, texts = popnn.ctc_infer.beamSearchDecoderLogits(
    ...     trial.graph, scores, steps, trial.prog, blankClass=0, beamwidth=2, topPaths=1, plan=plan
    ... )
    >>> trial.values(lengths, texts)
    [[[2]], [[[1, 2]]]]
    """
    name = debug_name(debugContext, "CTCBeamSearchDecoderLogits")
    probs = logSoftmax(graph, logits, prog, name)
    sizes = (blankClass, beamwidth, topPaths)
    return beamSearchDecoderLogProbabilities(
        graph, probs, dataLengths, prog, *sizes, plan, name, options
    )


def _check(
    name: str, probs: Tensor, lengths: Tensor, sizes: tuple[int, int, int], plan: Plan
) -> None:
    blank, beams, paths = sizes
    shape = (plan.maxTime, plan.batchSize, plan.numClasses)
    if probs.shape != shape or probs.dtype not in (FLOAT, HALF):
        raise poplibs_error(f"{name}: {probs!r}; the plan is for {list(shape)} of float or half")
    if plan.partialsType == HALF and probs.dtype == FLOAT:
        raise poplibs_error(f"{name}: partialsType half of {probs!r}; float is needed")
    if lengths.shape != (plan.batchSize,) or lengths.dtype != UNSIGNED_INT:
        needed = f"{UNSIGNED_INT}[{plan.batchSize}]"
        raise poplibs_error(f"{name}: dataLengths {lengths!r}; {needed} is needed")
    if beams != plan.beamwidth or not 1 <= paths <= beams or not 0 <= blank < plan.numClasses:
        raise poplibs_error(
            f"{name}: beam width {beams}, {paths} paths, blank class {blank}; the plan has "
            f"{plan.beamwidth} beams and {plan.numClasses} classes"
        )


class _Search:
    """The tensors of a search [sample, beam], and the vertices of a step."""

    def __init__(self, graph: Graph, plan: Plan, blank: int, name: str) -> None:
        self.graph, self.plan, self.name, self.blank = graph, plan, name, blank
        self.batch, self.beams = plan.batchSize, plan.beamwidth
        self.symbols = np.array([c for c in range(plan.numClasses) if c != blank])
        self.first = plan.tile(np.arange(self.batch), as_int64(0))
        self.dtype = plan.partialsType
        steps = plan.maxTime + 1
        self.state = {
            key: self._variable(key, UNSIGNED_INT if key == "last" else self.dtype, 1)
            for key in ("last", "beamPnb", "beamPb", "beamTotal")
        }
        self.past = {
            key: self._variable(key, UNSIGNED_INT, steps)
            for key in ("historyParent", "historyAddend")
        }

    def _variable(self, key: str, dtype: Type, rows: int) -> Tensor:
        shape = [self.batch, rows * self.beams]
        tensor = self.graph.addVariable(dtype, shape, f"{self.name}/{key}")
        _map_rows(self.graph, tensor, self.first)
        return tensor

    def _fields(self, label: str, count: int, tiles: IntArray) -> dict[str, Tensor]:
        """Add the five fields of candidates [sample, count], equal parts of them on tiles."""
        tensors = {}
        for key in FIELDS:
            dtype = UNSIGNED_INT if key in INTEGERS else self.dtype
            shape = [self.batch, count]
            tensors[key] = self.graph.addVariable(dtype, shape, f"{self.name}/{label}/{key}")
            _map_rows(self.graph, tensors[key], tiles)
        return tensors

    # The whole search
    def decoded(
        self, probs: Tensor, lengths: Tensor, prog: Sequence, paths: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        graph, name = self.graph, self.name
        data = createDataInput(graph, probs.dtype, *self._sizes(), self.plan, name)
        prog.add(Copy(probs, data, name=f"{name}/broadcastInput"))
        self._begin(prog)

        def body(time: Tensor) -> Sequence:
            step = Sequence(name=f"{name}/beamSearchDecoderLoop")
            row = popops.dynamicSlice(graph, data, time, [0], [1], step, f"{name}/step")
            self._step(row.squeeze([0]), time, lengths, step)
            return step

        most = popops.reduce(graph, lengths, [0], popops.Operation.MAX, prog, f"{name}/maxTime")
        prog.add(popops.countedLoop(graph, most, body, f"{name}/loop"))
        return self._outputs(lengths, prog, paths)

    def _sizes(self) -> tuple[int, int, int]:
        return self.batch, self.plan.maxTime, self.plan.numClasses

    def _begin(self, prog: Sequence) -> None:
        """Let one beam of each sample begin, and the others not."""
        starts = {"last": (VOID, INVALID), "beamPnb": (0, ZERO), "beamTotal": (0, ZERO)}
        for key, (one, others) in starts.items():
            self._set(self.state[key], one, others, prog)
        self._set(self.state["beamPb"], ZERO, ZERO, prog)
        self._set(self.past["historyAddend"][:, : self.beams], VOID, INVALID, prog)
        popops.zero(self.graph, self.past["historyParent"], prog, f"{self.name}/begin")

    def _set(self, tensor: Tensor, one: float, others: float, prog: Sequence) -> None:
        values = [one] + [others] * (self.beams - 1)
        start = self.graph.addConstant(tensor.dtype, [1, self.beams], values, f"{self.name}/start")
        self.graph.setTileMapping(start, 0)
        prog.add(Copy(start.broadcast(self.batch, 0), tensor, name=f"{self.name}/begin"))

    def _step(self, row: Tensor, time: Tensor, lengths: Tensor, prog: Sequence) -> None:
        """Make candidates, merge and sort them, and let the best go on."""
        copied, extended = self._generated(row, prog)
        self._merged(copied, extended, time, prog)
        best = {key: concat([copied[key], extended[key]], 1) for key in FIELDS}
        for number, stage in enumerate(self.plan.sort):
            best = self._sorted(best, stage, number, prog)
        self._updated(best, time, lengths, prog)

    def _generated(
        self, row: Tensor, prog: Sequence
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        plan, count = self.plan, len(self.symbols)
        sample, beam = self._each(self.beams)
        copy_tiles = plan.tile(sample, beam // ceil_div(self.beams, plan.copy))
        copied = self._fields("copy", self.beams, copy_tiles)
        with_sample, number = self._each(count)
        tiles = plan.tile(with_sample, number // ceil_div(count, plan.extend))
        extended = self._fields("extend", count * self.beams, tiles)
        compute_set = self.graph.addComputeSet(f"{self.name}/generate")
        classes = plan.numClasses
        one = sample * self.beams + beam
        read = {
            "logProbs": self._cut("logProbs", "input", row, sample * classes, classes),
            "last": self._cut("last", "input", self.state["last"], one, 1),
            "beamPnb": self._cut("beamPnb", "input", self.state["beamPnb"], one, 1),
            "beamTotal": self._cut("beamTotal", "input", self.state["beamTotal"], one, 1),
        }
        written = {k: self._cut(k, "output", t, one, 1) for k, t in copied.items()}
        codelet = vertices.copy_codelet(str(self.dtype), self.blank)
        cycles = vertices.copy_candidate(sample)
        self._add(compute_set.id, codelet, copy_tiles, read | written, {"beam": beam}, cycles)
        place = with_sample * classes + self.symbols[number]
        all_beams = with_sample * self.beams
        read = {"logProbs": self._cut("logProbs", "input", row, place, 1)}
        for key in ("last", "beamPb", "beamTotal"):
            read[key] = self._cut(key, "input", self.state[key], all_beams, self.beams)
        begin = (with_sample * count + number) * self.beams
        written = {k: self._cut(k, "output", t, begin, self.beams) for k, t in extended.items()}
        symbol = {"symbol": self.symbols[number]}
        codelet = vertices.extend_codelet(str(self.dtype))
        cycles = vertices.extend_candidates(np.full_like(tiles, self.beams))
        self._add(compute_set.id, codelet, tiles, read | written, symbol, cycles)
        prog.add(Execute(compute_set))
        return copied, extended

    def _merged(
        self,
        copied: dict[str, Tensor],
        extended: dict[str, Tensor],
        time: Tensor,
        prog: Sequence,
    ) -> None:
        """Merge the candidates of one text, and drop those that are merged into others."""
        plan, beams, name = self.plan, self.beams, str(self.dtype)
        count, steps = len(self.symbols) * beams, plan.maxTime + 1
        sample, beam = self._each(beams)
        tiles = plan.tile(sample, beam // ceil_div(beams, plan.copy))
        merged = self.graph.addVariable(UNSIGNED_INT, [self.batch, beams], f"{self.name}/merged")
        _map_rows(self.graph, merged, tiles)
        compute_set = self.graph.addComputeSet(f"{self.name}/merge")
        fields = {
            f"extend{key.capitalize()}": self._cut(
                f"extend{key.capitalize()}", "input", extended[key], sample * count, count
            )
            for key in ("pnb", "parent", "addend")
        }
        for key, past in self.past.items():
            fields[key] = self._cut(key, "input", past, sample * steps * beams, steps * beams)
        fields["time"] = self._cut("time", "input", time, sample * 0, 1)
        one = sample * beams + beam
        ways: dict[str, Direction] = {"pnb": "inout", "pb": "input", "total": "output"}
        fields |= {key: self._cut(key, way, copied[key], one, 1) for key, way in ways.items()}
        fields["merged"] = self._cut("merged", "output", merged, one, 1)
        codelet, size = vertices.merge_codelet(name, beams), np.full_like(tiles, count)
        cycles = vertices.merge_candidates(size, np.full_like(tiles, steps))
        self._add(compute_set.id, codelet, tiles, fields, {"beam": beam}, cycles)
        prog.add(Execute(compute_set))
        sample, number = self._each(len(self.symbols))
        tiles = plan.tile(sample, number // ceil_div(len(self.symbols), plan.extend))
        compute_set = self.graph.addComputeSet(f"{self.name}/select")
        begin = sample * count + number * beams
        fields = {"merged": self._cut("merged", "input", merged, sample * beams, beams)}
        for key in ("total", "addend"):
            fields[key] = self._cut(key, "inout", extended[key], begin, beams)
        cycles = vertices.select_candidates(np.full_like(tiles, beams))
        codelet = vertices.select_codelet(name)
        self._add(compute_set.id, codelet, tiles, fields, {"first": number * beams}, cycles)
        prog.add(Execute(compute_set))

    def _sorted(
        self, candidates: dict[str, Tensor], stage: Stage, number: int, prog: Sequence
    ) -> dict[str, Tensor]:
        """Return the best candidates of each group: rank all by parts, and add up the parts."""
        plan, beams, label = self.plan, self.beams, f"sort{number}"
        total = candidates["total"].dim(1)
        size, parts = ceil_div(total, stage.groups), stage.rankPartitions
        table = len(FIELDS) * beams
        shape = [self.batch, stage.groups, parts, table]
        ranked = self.graph.addVariable(FLOAT, shape, f"{self.name}/{label}/ranked")
        sample, group, part = self._each(stage.groups, parts)
        tiles = plan.tile(sample, group * parts + part)
        _map_rows(self.graph, ranked, tiles)
        compute_set = self.graph.addComputeSet(f"{self.name}/{label}/rank")
        share = ceil_div(size, parts)
        low = sample * total + group * size
        members = np.minimum(size, total - group * size)
        for length in np.unique(members).tolist():  # the last group may be smaller
            pick = np.flatnonzero(members == length)
            fields = {k: self._cut(k, "input", t, low[pick], length) for k, t in candidates.items()}
            place = np.arange(len(sample))[pick] * table
            fields["ranked"] = self._cut("ranked", "output", ranked, place, table)
            first = np.minimum(part[pick] * share, length)
            end = np.minimum(first + share, length)
            sizes = (end - first, np.full_like(first, length), beams, self.graph.target)
            codelet = vertices.rank_codelet(str(self.dtype), beams)
            cycles, bounds = vertices.rank_candidates(*sizes), {"first": first, "end": end}
            self._add(compute_set.id, codelet, tiles[pick], fields, bounds, cycles)
        prog.add(Execute(compute_set))
        return self._reduced(ranked, stage, label, prog)

    def _reduced(
        self, ranked: Tensor, stage: Stage, label: str, prog: Sequence
    ) -> dict[str, Tensor]:
        sample, group = self._each(stage.groups)
        tiles = self.plan.tile(sample, group * stage.rankPartitions)
        best = self._fields(label, stage.groups * self.beams, tiles)
        compute_set = self.graph.addComputeSet(f"{self.name}/{label}/reduce")
        size = ranked.numElements() // len(tiles)
        number = np.arange(len(tiles))
        fields = {"ranked": self._cut("ranked", "input", ranked, number * size, size)}
        for key, tensor in best.items():
            fields[key] = self._cut(key, "output", tensor, number * self.beams, self.beams)
        cycles = vertices.reduce_candidates(
            np.full_like(tiles, stage.rankPartitions), self.graph.target
        )
        codelet = vertices.reduce_codelet(str(self.dtype), self.beams)
        self._add(compute_set.id, codelet, tiles, fields, {}, cycles)
        prog.add(Execute(compute_set))
        return best

    def _updated(
        self, best: dict[str, Tensor], time: Tensor, lengths: Tensor, prog: Sequence
    ) -> None:
        sample, beams = np.arange(self.batch), self.beams
        compute_set = self.graph.addComputeSet(f"{self.name}/update")
        fields = {
            "time": self._cut("time", "input", time, sample * 0, 1),
            "length": self._cut("length", "input", lengths, sample, 1),
        }
        for key, tensor in best.items():
            fields[key] = self._cut(key, "input", tensor, sample * beams, beams)
        for key, tensor in (self.past | self.state).items():
            size = tensor.dim(1)
            fields[key] = self._cut(key, "inout", tensor, sample * size, size)
        codelet = vertices.update_codelet(str(self.dtype), beams)
        cycles = vertices.update_beams(np.full_like(sample, beams), self.graph.target)
        self._add(compute_set.id, codelet, self.first, fields, {}, cycles)
        prog.add(Execute(compute_set))

    def _outputs(
        self, lengths: Tensor, prog: Sequence, paths: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        graph, plan, time = self.graph, self.plan, self.plan.maxTime
        sample, path = self._each(paths)
        tiles = plan.tile(sample, path // ceil_div(self.beams, plan.output))
        shape = [self.batch, paths]
        sizes = graph.addVariable(UNSIGNED_INT, shape, f"{self.name}/labelLengths")
        texts = graph.addVariable(UNSIGNED_INT, [*shape, time], f"{self.name}/decodedLabels")
        for tensor in (sizes, texts):
            _map_rows(graph, tensor, tiles)
        compute_set, number = graph.addComputeSet(f"{self.name}/output"), np.arange(len(sample))
        fields = {
            key: self._cut(key, "input", past, sample * past.dim(1), past.dim(1))
            for key, past in self.past.items()
        }
        fields |= {
            "length": self._cut("length", "input", lengths, sample, 1),
            "outputLength": self._cut("outputLength", "output", sizes, number, 1),
            "output": self._cut("output", "output", texts, number * time, time),
        }
        cycles = vertices.output_beam(np.full_like(number, time))
        codelet = vertices.output_codelet(self.beams)
        self._add(compute_set.id, codelet, tiles, fields, {"beam": path}, cycles)
        prog.add(Execute(compute_set))
        total = self.state["beamTotal"].slice(0, paths, 1)
        if total.dtype != plan.inType:
            total = popops.cast(graph, total, plan.inType, prog, f"{self.name}/Cast")
        return total, sizes, texts

    # Vertices
    def _each(self, *counts: int) -> list[IntArray]:
        """Number the samples and the parts of each."""
        return [as_int64(axis.reshape(-1)) for axis in np.indices((self.batch, *counts))]

    def _cut(self, name: str, way: Direction, tensor: Tensor, begin: IntArray, size: int) -> Field:
        ones = np.ones_like(begin)
        return cut_ranges(name, way, tensor.flatten(), begin, begin + size, ones)

    def _add(
        self,
        compute_set: int,
        codelet: Codelet,
        tiles: IntArray,
        fields: dict[str, Field],
        parameters: Mapping[str, Array],
        cycles: IntArray,
    ) -> None:
        group = VertexGroup(compute_set, codelet, tiles, fields, dict(parameters), cycles)
        self.graph.add_vertices(group)
