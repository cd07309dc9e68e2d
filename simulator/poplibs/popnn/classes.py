"""Which class a model gives to each sample, and how often it is right (popnn/Loss.hpp)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.elementwise.vertices import Cycles
from simulator.codelets.layers.classification import (
    accuracy_codelet,
    class_gather_codelet,
    class_sparse_codelet,
    partial_type,
)
from simulator.codelets.layers.loss_cycles import CLASSES_A_WORKER
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.program import Copy, Execute, Program, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, HALF, INT, UNSIGNED_INT, IntArray, Type
from simulator.graph.vertices.vertex import Codelet, Field, VertexGroup, cut_field
from simulator.logging import library_call
from simulator.poplibs.popops.elementwise.cast import cast
from simulator.poplibs.popops.overloads import NEEDED, arguments_of
from simulator.poplibs.popops.regions import debug_name
from simulator.poplibs.popops.sorting.topk import SortOrder, TopKParams, topKWithPermutation

Pair = tuple[Tensor, Tensor]


@library_call("POPNN")
def argMax(graph: Graph, input: Tensor, prog: Sequence, debugContext: str = "") -> Tensor:
    """Return the index of the largest element of each row, the first of equals.

    >>> from simulator import popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> rows = trial.tensor([[1.0, 5.0, 3.0], [7.0, 2.0, 0.0]])
    >>> trial.values(popnn.argMax(trial.graph, rows, trial.prog))
    [1, 0]
    """
    return _best(graph, input, prog, debugContext, largest=True)[1]


@library_call("POPNN")
def argMin(graph: Graph, input: Tensor, prog: Sequence, debugContext: str = "") -> Tensor:
    """Return the index of the smallest element of each row, the first of equals.

    >>> from simulator import popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> rows = trial.tensor([[1.0, 5.0, 3.0], [7.0, 2.0, 0.0]])
    >>> trial.values(popnn.argMin(trial.graph, rows, trial.prog))
    [0, 2]
    """
    return _best(graph, input, prog, debugContext, largest=False)[1]


@library_call("POPNN")
def maxAndArgMax(graph: Graph, input: Tensor, prog: Sequence, debugContext: str = "") -> Pair:
    """Return the largest element of each row, and its index.

    >>> from simulator import popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> rows = trial.tensor([[1.0, 5.0, 3.0], [7.0, 2.0, 0.0]])
    >>> trial.values(*popnn.maxAndArgMax(trial.graph, rows, trial.prog))
    [[5.0, 7.0], [1, 0]]
    """
    return _with_values(graph, input, prog, debugContext, largest=True)


@library_call("POPNN")
def minAndArgMin(graph: Graph, input: Tensor, prog: Sequence, debugContext: str = "") -> Pair:
    """Return the smallest element of each row, and its index.

    >>> from simulator import popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> rows = trial.tensor([[1.0, 5.0, 3.0], [7.0, 2.0, 0.0]])
    >>> trial.values(*popnn.minAndArgMin(trial.graph, rows, trial.prog))
    [[1.0, 0.0], [0, 2]]
    """
    return _with_values(graph, input, prog, debugContext, largest=False)


@library_call("POPNN")
def topK(graph: Graph, input: Tensor, *arguments: Any, **named: Any) -> Pair | Tensor:
    """Return the K largest elements of each row [rows, 1, K], and their indices alike.

    With `sort` the largest come first. As in PopLibs the indices may be written to a tensor of
    [rows, K] that stands before K; the elements alone are given then, [rows, K].

    >>> from simulator import popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> rows = trial.tensor([[1.0, 5.0, 3.0], [7.0, 2.0, 0.0]])
    >>> trial.values(*popnn.topK(trial.graph, rows, 2, True, trial.prog))
    [[[[5.0, 3.0]], [[7.0, 2.0]]], [[[1, 2]], [[0, 1]]]]
    """
    form: dict[str, object] = {
        "K": NEEDED,
        "sort": NEEDED,
        "prog": NEEDED,
        "debugContext": "",
    }
    to = "indices" in named or (arguments and isinstance(arguments[0], Tensor))
    call_args = arguments_of("topK", {"indices": NEEDED, **form} if to else form, arguments, named)
    K, sort, prog = (call_args[key] for key in ("K", "sort", "prog"))
    name = debug_name(call_args["debugContext"], "topK")
    if input.rank() != 2 or not 1 <= K <= input.dim(1):
        raise poplibs_error(f"{name}: {K} of {input!r}; rows of at least K elements are needed")
    order = SortOrder.DESCENDING if sort else SortOrder.NONE
    params = TopKParams(K, True, order)
    values, indices = topKWithPermutation(graph, prog, input, params, name)
    if to:
        given = call_args["indices"]
        if given.numElements() != indices.numElements() or given.dtype != indices.dtype:
            raise poplibs_error(f"{name}: indices {given!r}; {indices!r} is needed")
        prog.add(Copy(indices, given.reshape(indices.shape), name=name))
        return values
    return values.expand([1]), indices.expand([1])


@library_call("POPNN")
def calcAccuracy(
    graph: Graph, modelOutputs: Tensor, expected: Tensor, numCorrect: Tensor, debugContext: str = ""
) -> Program:
    """Return a program that adds to `numCorrect` how many rows have their largest output right.

    Expected is a label a row, or the one-hot rows of the labels. A label MASKED_LABEL_CODE is never
    right.

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> rows = trial.tensor([[1.0, 5.0, 3.0], [7.0, 2.0, 0.0]])
    >>> labels, right = (trial.tensor(x, poplar.UNSIGNED_INT) for x in ([1, 2], [0]))
    >>> trial.prog.add(popnn.calcAccuracy(trial.graph, rows, labels, right))
    >>> trial.values(right)  # the first is right
    [1]
    """
    name = debug_name(debugContext, "Accuracy")
    if numCorrect.numElements() != 1 or numCorrect.dtype != UNSIGNED_INT:
        raise poplibs_error(f"{name}: counts into {numCorrect!r}; one unsigned int is needed")
    tile = graph.tile_ranges(numCorrect)[2]
    if not len(tile):
        raise poplibs_error(f"{name}: {numCorrect!r} is on no tile")
    one_hot = expected.rank() == 2
    index = UNSIGNED_INT if one_hot else expected.dtype
    if index not in (INT, UNSIGNED_INT):
        raise poplibs_error(f"{name}: labels {expected!r}; int or unsigned int is needed")
    prog = Sequence()
    largest = _Search(graph, name, index, True, int(tile[0]))
    best_places = _search(largest, modelOutputs, prog)[1]
    labels = _search(largest.named("expected"), expected, prog)[1] if one_hot else expected
    if labels.shape != best_places.shape:
        raise poplibs_error(f"{name}: {expected!r} does not label the rows of {modelOutputs!r}")
    codelet, cycles = accuracy_codelet(labels.dtype)
    with graph.debug_scope(name, "popnn"):
        compute_set = graph.addComputeSet(f"{name}/CalcAccuracy")
        batch = best_places.numElements()
        fields = {
            "maxPerBatch": cut_field("maxPerBatch", "input", best_places, 0, batch),
            "expected": cut_field("expected", "input", labels, 0, batch),
            "numCorrect": cut_field("numCorrect", "inout", numCorrect, 0, 1),
        }
        cost = cycles(np.array([batch], dtype=np.int64))
        graph.add_vertices(VertexGroup(compute_set.id, codelet, tile, fields, {}, cost))
        prog.add(Execute(compute_set))
    return prog


@dataclass(frozen=True, slots=True)
class _Search:
    """What is looked for: the type of the places, the largest or smallest, the tile for them."""

    graph: Graph
    name: str
    index: Type
    largest: bool
    tile: int

    @property
    def kind(self) -> str:
        """Return the word that PopLibs has in its names."""
        return "max" if self.largest else "min"

    def named(self, part: str) -> _Search:
        """Return the same search under a longer name."""
        return _Search(self.graph, f"{self.name}/{part}", self.index, self.largest, self.tile)


def _best(graph: Graph, values: Tensor, prog: Sequence, context: str, *, largest: bool) -> Pair:
    search = _Search(graph, context, UNSIGNED_INT, largest, 0)
    return _search(search, values, prog)


def _with_values(
    graph: Graph, values: Tensor, prog: Sequence, context: str, *, largest: bool
) -> Pair:
    best, index = _best(graph, values, prog, context, largest=largest)
    if best.dtype != values.dtype:
        best = cast(graph, best, values.dtype, prog, context)
    return best, index


@dataclass(frozen=True, slots=True)
class _Stage:
    """The vertices of a stage: their row, and the elements of it that each takes.

    A row has `rows` elements before and `results` after the stage, one of each 32.
    """

    row: IntArray
    first: IntArray
    end: IntArray
    results: int

    @property
    def results_first(self) -> IntArray:
        """Return where the results of each vertex begin."""
        return self.row * self.results + self.first // CLASSES_A_WORKER

    @property
    def results_end(self) -> IntArray:
        """Return where they end."""
        return self.row * self.results + ceil_div(self.end, CLASSES_A_WORKER)


def _stage(batch: int, classes: int, share: int) -> _Stage:
    """Assign each vertex `share` elements of a row."""
    vertices = ceil_div(classes, share)
    number = np.arange(batch * vertices, dtype=np.int64)
    first = number % vertices * share
    end = np.minimum(first + share, classes)
    return _Stage(number // vertices, first, end, ceil_div(classes, CLASSES_A_WORKER))


def _search(search: _Search, values: Tensor, prog: Sequence) -> Pair:
    """Reduce each row by 32 to 1, in as many stages as it takes; PopLibs lib/popnn/Loss.cpp."""
    graph, name = search.graph, debug_name(search.name, f"arg{search.kind}")
    if values.rank() != 2 or values.dim(1) == 0:
        raise poplibs_error(f"{name}: {values!r}; rows of at least one element are needed")
    if values.dtype not in (FLOAT, HALF, INT, UNSIGNED_INT):
        raise poplibs_error(f"{name}: {values!r}; known for float, half, int, unsigned int")
    search = _Search(graph, name, search.index, search.largest, search.tile)
    with graph.debug_scope(name, "popnn"):
        share = graph.target.workers * CLASSES_A_WORKER
        best = _gather(search, values, _stage(values.dim(0), values.dim(1), share), prog)
        number = 1
        while best[0].dim(1) > 1:
            stage = _stage(best[0].dim(0), best[0].dim(1), CLASSES_A_WORKER)
            best = _sparse(search, best, stage, number, prog)
            number += 1
    return best[0].flatten(), best[1].flatten()


@dataclass(frozen=True, slots=True)
class _Vertices:
    """What the vertices of a stage are, and what they read."""

    codelet: Codelet
    cycles: Cycles
    inputs: dict[str, Field]
    parameters: dict[str, IntArray]
    partial: Type


def _gather(search: _Search, values: Tensor, stage: _Stage, prog: Sequence) -> Pair:
    """Add the first stage: supervisor vertices whose workers take 32 elements each."""
    codelet_and_cycles = class_gather_codelet(values.dtype, search.index, largest=search.largest)
    low = stage.row * values.dim(1)
    part = cut_field("activations", "input", values, low + stage.first, low + stage.end)
    first, partial = {"first": stage.first}, partial_type(values.dtype)
    return _add(
        search,
        stage,
        0,
        _Vertices(*codelet_and_cycles, {"activations": part}, first, partial),
        prog,
    )


def _sparse(search: _Search, best: Pair, stage: _Stage, number: int, prog: Sequence) -> Pair:
    """Add a later stage: workers that take 32 results each."""
    codelet_and_cycles = class_sparse_codelet(best[0].dtype, search.index, largest=search.largest)
    low = stage.row * best[0].dim(1)
    inputs = {
        field: cut_field(field, "input", tensor, low + stage.first, low + stage.end)
        for field, tensor in zip(("activations", "labels"), best, strict=True)
    }
    return _add(
        search, stage, number, _Vertices(*codelet_and_cycles, inputs, {}, best[0].dtype), prog
    )


def _add(search: _Search, stage: _Stage, number: int, vertices: _Vertices, prog: Sequence) -> Pair:
    """Add the vertices of a stage on tile after tile, those of the last one on the search's."""
    graph, word = search.graph, search.kind
    shape = [int(stage.row[-1]) + 1 if len(stage.row) else 0, stage.results]
    tile = np.arange(len(stage.row), dtype=np.int64) % graph.target.num_tiles
    if stage.results == 1:
        tile = np.full(len(stage.row), search.tile, dtype=np.int64)
    fields, results = dict(vertices.inputs), []
    for field, dtype in (("value", vertices.partial), ("index", search.index)):
        name = f"{search.name}/{word}{field.capitalize()}Partials[{number}]"
        result = graph.addVariable(dtype, shape, name)
        low, high = stage.results_first, stage.results_end
        graph.map_ranges(result, low, high, tile)
        fields[field] = cut_field(field, "output", result, low, high)
        results.append(result)
    title = f"{search.name}/Reduce{word.capitalize()}Class[{number}]"
    compute_set = graph.addComputeSet(title)
    cost = vertices.cycles(stage.end - stage.first)
    graph.add_vertices(
        VertexGroup(compute_set.id, vertices.codelet, tile, fields, vertices.parameters, cost)
    )
    prog.add(Execute(compute_set))
    return results[0], results[1]
