"""Operators of ai.onnx.ml on numbers: thresholds, columns, trees of decisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from simulator.graph.types import Array
from simulator.popart.importing.composites.body import Body, Unsupported

# Conditions by their numbers (BRANCH_LEQ, ...); 6 asks whether a value is one of a set.
_CONDITIONS = {0: "LessOrEqual", 1: "Less", 2: "GreaterOrEqual", 3: "Greater", 4: "Equal"}
_UNEQUAL, _MEMBER = 5, 6
_AVERAGE, _SUM = 0, 1


def thresholded(body: Body) -> None:
    """Return 1 where a value is above the threshold, else 0 (Binarizer)."""
    host = body.info().host
    wide = "x0" if host.kind == "f" else body("Cast", "x0", to=onnx.TensorProto.FLOAT)
    kind = host if host.kind == "f" else np.dtype(np.float32)
    limit = np.asarray(body.attribute("threshold", 0.0), kind)
    number = onnx.helper.np_dtype_to_tensor_dtype(host)
    body("Cast", body("Greater", wide, limit), to=number, out="y")


def columns(body: Body) -> None:
    """Take columns of the last axis (ArrayFeatureExtractor); a single row is one of a matrix."""
    dims = body.dims()
    source = body("Unsqueeze", "x0", [0]) if len(dims) == 1 else "x0"
    body("Gather", source, body("Reshape", "x1", [-1]), axis=-1, out="y")


@dataclass(frozen=True, slots=True)
class _Paths:
    """For each leaf the conditions on the way from a root, 1 to hold and -1 not, and its trees.

    `ways` is [conditions, leaves].
    """

    ways: Array
    trees: int


def _paths(body: Body) -> _Paths:
    """Follow all branches from the roots; raises Unsupported for trees that have no end."""
    branches = [(body.attribute(f"nodes_{side}nodeids"), body.attribute(f"nodes_{side}leafs"))
             for side in ("true", "false")]  # fmt: skip
    nodes, leaves = len(branches[0][0]), len(body.attribute("leaf_targetids"))
    ways = np.zeros((nodes, leaves), np.float32)
    pending: list[tuple[int, dict[int, int]]] = [
        (root, {}) for root in body.attribute("tree_roots")
    ]
    trees = len(pending)
    while pending:
        node, path = pending.pop()
        for sign, (following, is_leaf) in zip((1, -1), branches, strict=True):
            way = {**path, node: sign}
            if is_leaf[node]:
                ways[list(way), following[node]] = list(way.values())
            elif following[node] in way:
                raise Unsupported(f"node {node} leads back to node {following[node]}")
            else:
                pending.append((following[node], way))
    return _Paths(ways, trees)


def tree_ensemble(body: Body) -> None:
    """Add up the weights of the leaves that rows of numbers end in (TreeEnsemble).

    All conditions are looked at. Of those on the way to a leaf the ones that have to hold count 1,
    the others -1: only where all are as they have to be is the sum that of the first ones.
    """
    how, after = body.attribute("aggregate_function", _SUM), body.attribute("post_transform", 0)
    if how not in (_AVERAGE, _SUM) or after != 0:
        raise Unsupported(
            f"aggregate_function {how}, post_transform {after}; sums and averages as they are "
            "can be computed"
        )
    paths = _paths(body)
    if (paths.ways == 0).all():
        raise Unsupported("its roots are leaves; a condition would be needed")
    holds = body("Cast", _conditions(body), to=onnx.TensorProto.FLOAT)
    reached = body("MatMul", holds, paths.ways)
    needed = (paths.ways > 0).sum(axis=0).astype(np.float32)
    hit = body("Cast", body("Equal", reached, needed), to=onnx.TensorProto.FLOAT)
    kind = np.dtype(body.info().host)
    weights = np.asarray(body.attribute("leaf_weights"), np.float32)
    targets = np.asarray(body.attribute("leaf_targetids"))
    table = np.zeros((len(targets), int(body.attribute("n_targets"))), np.float32)
    table[np.arange(len(targets)), targets] = weights / (paths.trees if how == _AVERAGE else 1)
    number = onnx.helper.np_dtype_to_tensor_dtype(kind)
    body("Cast", body("MatMul", hit, table), to=number, out="y")


def _conditions(body: Body) -> str:
    """Return whether each condition holds for each row: [rows, conditions]."""
    modes = np.asarray(body.attribute("nodes_modes")).reshape(-1)
    splits = np.asarray(body.attribute("nodes_splits")).astype(body.info().host)
    features = np.asarray(body.attribute("nodes_featureids"))
    values = body("Gather", "x0", features, axis=1)
    conditions = body.constant(np.zeros((1, len(modes)), np.bool_))
    for mode in np.unique(modes).tolist():
        holds = _compared(body, values, mode, splits, modes)
        conditions = body("Where", (modes == mode)[None], holds, conditions)
    missing = body.attribute("nodes_missing_value_tracks_true")
    if missing:
        is_lost = body("And", body("IsNaN", values), np.asarray(missing, np.bool_)[None])
        conditions = body("Or", conditions, is_lost)
    return conditions


def _compared(body: Body, values: str, mode: int, splits: Array, modes: Array) -> str:
    """Compare all values by one mode; what it says of conditions of another does not count."""
    if mode == _MEMBER:
        return _member(body, values, modes)
    limits = np.nan_to_num(splits)[None]
    if mode == _UNEQUAL:
        return body("Not", body("Equal", values, limits))
    if mode not in _CONDITIONS:
        raise Unsupported(f"mode {mode} of a condition; known are 0 to {_MEMBER}")
    return body(_CONDITIONS[mode], values, limits)


def _member(body: Body, values: str, modes: Array) -> str:
    """Look for values in the sets of the conditions, which NaN ends one after another."""
    flat = np.asarray(body.attribute("membership_values")).astype(body.info().host).reshape(-1)
    ends = np.flatnonzero(np.isnan(flat))
    sets: list[Any] = [part[~np.isnan(part)] for part in np.split(flat, ends)]
    width = max(map(len, sets), default=0)
    places = np.flatnonzero(modes == _MEMBER)
    if not width or len(ends) < len(places):
        raise Unsupported(f"{len(ends)} sets of values for {len(places)} conditions")
    table = np.full((len(modes), width), np.nan, flat.dtype)
    for place, members in zip(places, sets, strict=False):
        table[place, : len(members)] = members
    same = body("Equal", body("Unsqueeze", values, [2]), table[None])
    matches = body("Cast", same, to=onnx.TensorProto.INT32)
    return body("Cast", body("ReduceMax", matches, [2], keepdims=0), to=onnx.TensorProto.BOOL)
