"""The best k elements of each row, by a network that all tiles share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from simulator.codelets.indexing.sorting import Step
from simulator.codelets.indexing.sorting_cycles import Values
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.program import Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import (
    FLOAT,
    HALF,
    INT,
    UNSIGNED_INT,
    Type,
    checked_shape,
    element_count,
)
from simulator.logging import library_call
from simulator.poplibs import poputil
from simulator.poplibs.popops.elementwise.cast import cast_into
from simulator.poplibs.popops.regions import debug_name
from simulator.poplibs.popops.sorting.network import Network, add_steps, layout_of, new_tensor

KEY_TYPES = (FLOAT, HALF, INT, UNSIGNED_INT)


class SortOrder(Enum):
    """In which order results stand."""

    NONE = "NONE"
    ASCENDING = "ASCENDING"
    DESCENDING = "DESCENDING"


@dataclass(frozen=True, slots=True)
class TopKParams:
    """Which elements are wanted, and how.

    With `stableSort` the first of equal elements are taken, and stand in their order, the best
    first.
    """

    k: int
    largest: bool
    sortOrder: SortOrder
    stableSort: bool = False


@library_call("POPOPS")
def createTopKInput(
    graph: Graph, type: Type, shape: list[int], params: TopKParams, debugContext: str = ""
) -> Tensor:
    """Add a variable that lies where `topK` of its last dimension first needs it.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = popops.TopKParams(2, True, popops.SortOrder.DESCENDING)
    >>> popops.createTopKInput(trial.graph, poplar.FLOAT, [3, 8], params).shape
    (3, 8)
    """
    name = debug_name(debugContext, "topKInput")
    sizes = checked_shape(shape, name)
    if not sizes:
        raise poplibs_error(f"{name}: shape is []; at least one dimension is needed")
    rows, batch = sizes[-1], element_count(sizes[:-1])
    layout = layout_of(Step(1, True, rows, batch), graph.target.num_tiles)
    tensor = new_tensor(graph, type, layout, name)
    inverse = np.argsort(layout.order, kind="stable")
    in_order = tensor.view(tensor.elements()[inverse])
    return in_order.reshape((rows, batch)).transpose().reshape(sizes)


@library_call("POPOPS")
def topK(
    graph: Graph, prog: Sequence, t: Tensor, params: TopKParams, debugContext: str = ""
) -> Tensor:
    """Return the best k elements of the last dimension.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a = trial.tensor([3.0, 9.0, 1.0, 5.0])
    >>> params = popops.TopKParams(2, True, popops.SortOrder.DESCENDING)
    >>> trial.values(popops.topK(trial.graph, trial.prog, a, params))
    [9.0, 5.0]
    """
    name = debug_name(debugContext, "topK")
    return top_k(graph, prog, t, None, params, name)["keys"]


@library_call("POPOPS")
def topKKeyValue(
    graph: Graph,
    prog: Sequence,
    keys: Tensor,
    values: Tensor,
    params: TopKParams,
    debugContext: str = "",
) -> tuple[Tensor, Tensor]:
    """Return the best k elements of the last dimension of `keys`, and the values beside them.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> keys, values = trial.tensor([3.0, 9.0, 1.0, 5.0]), trial.tensor([30, 90, 10, 50])
    >>> params = popops.TopKParams(2, True, popops.SortOrder.DESCENDING)
    >>> trial.values(*popops.topKKeyValue(trial.graph, trial.prog, keys, values, params))
    [[9.0, 5.0], [90, 50]]
    """
    name = debug_name(debugContext, "topKKeyValue")
    if keys.shape != values.shape:
        raise poplibs_error(f"{name}: {keys!r} and {values!r} differ in shape")
    check_type(values, name)
    best = top_k(graph, prog, keys, values, params, name)
    return best["keys"], best["values"]


@library_call("POPOPS")
def topKWithPermutation(
    graph: Graph, prog: Sequence, t: Tensor, params: TopKParams, debugContext: str = ""
) -> tuple[Tensor, Tensor]:
    """Return the best k elements of the last dimension, and their indices in it.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a = trial.tensor([3.0, 9.0, 1.0, 5.0])
    >>> params = popops.TopKParams(2, True, popops.SortOrder.DESCENDING)
    >>> trial.values(*popops.topKWithPermutation(trial.graph, trial.prog, a, params))
    [[9.0, 5.0], [1, 3]]
    """
    name = debug_name(debugContext, "topKWithPermutation")
    best = top_k(graph, prog, t, None, params, name, indices=True)
    return best["keys"], best["indices"]


def top_k(
    graph: Graph,
    prog: Sequence,
    keys: Tensor,
    values: Tensor | None,
    params: TopKParams,
    name: str,
    *,
    indices: bool = False,
) -> dict[str, Tensor]:
    """Return the best of the keys, and of what goes with them: values, indices."""
    _check(keys, params, name)
    rows = keys.dim(keys.rank() - 1)
    with graph.debug_scope(name, "popops"):
        beside: dict[str, Tensor] = {} if values is None else {"values": values}
        if indices or params.stableSort:
            beside["indices"] = _indices(graph, keys.shape, f"{name}/indices")
        if keys.numElements() == 0 or params.k == 0:
            return _empty(graph, {"keys": keys} | beside, params.k, name)
        is_whole = rows == params.k and params.sortOrder is SortOrder.NONE
        moving = {key: _by_rows(tensor) for key, tensor in {"keys": keys, **beside}.items()}
        if is_whole or rows == 1:
            best = {key: poputil.duplicate(graph, t, prog, name) for key, t in moving.items()}
        else:
            best = _network(graph, prog, moving, rows, params, name)
        shape = (*keys.shape[:-1], params.k)
        return {key: _by_batch(tensor, shape, params) for key, tensor in best.items()}


def _check(keys: Tensor, params: TopKParams, name: str) -> None:
    if not isinstance(params, TopKParams) or not isinstance(params.sortOrder, SortOrder):
        raise poplibs_error(f"{name}: params are {params!r}; TopKParams are needed")
    check_type(keys, name)
    if keys.rank() == 0:
        raise poplibs_error(f"{name}: {keys!r}; at least one dimension is needed")
    rows = keys.dim(keys.rank() - 1)
    if not isinstance(params.k, int | np.integer) or not 0 <= params.k <= rows:
        raise poplibs_error(f"{name}: k is {params.k!r}; {keys!r} has {rows} elements a row")


def check_type(tensor: Tensor, name: str) -> None:
    """Raise poplibs_error for a tensor of a type that no network moves."""
    if tensor.dtype not in KEY_TYPES:
        type_names = ", ".join(map(str, KEY_TYPES))
        raise poplibs_error(f"{name}: {tensor!r}; known for {type_names}")


def _indices(graph: Graph, shape: tuple[int, ...], name: str) -> Tensor:
    """Return a constant of the indices in the last dimension, for all rows."""
    rows = shape[-1]
    numbers = graph.addConstant(UNSIGNED_INT, [rows], np.arange(rows), name)
    poputil.mapTensorLinearly(graph, numbers)
    return numbers.expand([0]).broadcast(element_count(shape[:-1]), 0).reshape(shape)


def _empty(graph: Graph, like: dict[str, Tensor], k: int, name: str) -> dict[str, Tensor]:
    shape = (*like["keys"].shape[:-1], k)
    return {key: graph.addVariable(t.dtype, shape, f"{name}/{key}") for key, t in like.items()}


def _by_rows(tensor: Tensor) -> Tensor:
    """View a tensor flat, its last dimension first."""
    return tensor.dimRoll(tensor.rank() - 1).flatten()


def _by_batch(tensor: Tensor, shape: tuple[int, ...], params: TopKParams) -> Tensor:
    """View what `_by_rows` gave in its shape, in the order that is wanted."""
    best_first = SortOrder.DESCENDING if params.largest else SortOrder.ASCENDING
    table = tensor.reshape((params.k, element_count(shape[:-1])))
    turned = params.sortOrder not in (SortOrder.NONE, best_first)
    return (table.reverse(0) if turned else table).transpose().reshape(shape)


def _network(
    graph: Graph,
    prog: Sequence,
    moving: dict[str, Tensor],
    rows: int,
    params: TopKParams,
    name: str,
) -> dict[str, Tensor]:
    """Sort by a network, halves as floats; values that are compared take the first place."""
    wide = {
        key: cast_into(graph, tensor, FLOAT, prog, name, None) if tensor.dtype == HALF else tensor
        for key, tensor in moving.items()
    }
    beside = [key for key in ("indices", "values") if key in moving]
    places = dict(zip(("values", "others"), beside, strict=False))
    kind: Values = "compared" if params.stableSort else "moved" if beside else "none"
    network = Network(graph, prog, name, params.largest, kind)
    fields = {"keys": wide["keys"], **{place: wide[key] for place, key in places.items()}}
    in_order = params.sortOrder is not SortOrder.NONE
    ordered = add_steps(network, fields, rows, params.k, in_order=in_order)
    named = {"keys": ordered["keys"]} | {key: ordered[place] for place, key in places.items()}
    return {
        key: cast_into(graph, tensor, HALF, prog, name, None)
        if moving[key].dtype == HALF
        else tensor
        for key, tensor in named.items()
    }
