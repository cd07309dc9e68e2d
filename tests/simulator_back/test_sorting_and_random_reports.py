"""Whole programs that draw, drop out, sort and select: their reports break no law."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pva.check import check
from pva.formats import registry
from simulator import popops, poprand, poputil
from simulator.poplar import (
    FLOAT,
    HALF,
    SHORT,
    UNSIGNED_INT,
    Engine,
    Graph,
    IPUModel,
    program,
    replication_factor,
)

BEST = popops.TopKParams(5, True, popops.SortOrder.DESCENDING)


def ran(directory: Path, build: Callable[[Graph, Any, program.Sequence], Any], dtype: Any) -> Any:
    """Run a program on numbers from 0 to 639, shuffled; give what it read."""
    device = IPUModel("mk1", tilesPerIPU=16).createDevice()
    graph = Graph(device.getTarget())
    tensor = graph.addVariable(dtype, [8, 80], "values")
    poputil.mapTensorLinearly(graph, tensor)
    graph.createHostWrite("values", tensor)
    sequence = program.Sequence()
    graph.createHostRead("found", build(graph, tensor, sequence))
    engine = Engine(
        graph, sequence, {"autoReport.all": True, "autoReport.directory": str(directory)}
    )
    engine.load(device)
    engine.writeTensor("values", shuffled().astype(dtype.numpy))
    engine.run(0)
    return engine.readTensor("found").reshape(8, -1)


def shuffled() -> Any:
    return np.random.default_rng(0).permutation(640).reshape(8, 80)


@pytest.mark.parametrize("dtype", [FLOAT, SHORT], ids=str)
def test_a_report_of_a_sort_breaks_no_law(tmp_path: Path, dtype: Any) -> None:
    found = ran(tmp_path, lambda g, t, p: popops.sort(g, t, 1, p, "net"), dtype)
    np.testing.assert_array_equal(found, np.sort(shuffled(), axis=1))
    assert [str(violation) for violation in check(registry.read(tmp_path))] == []


def test_a_report_of_the_best_k_breaks_no_law(tmp_path: Path) -> None:
    found = ran(tmp_path, lambda g, t, p: popops.topKWithPermutation(g, p, t, BEST)[1], HALF)
    np.testing.assert_array_equal(found, np.argsort(-shuffled(), axis=1)[:, :5])
    assert [str(violation) for violation in check(registry.read(tmp_path))] == []


def test_a_report_of_random_numbers_breaks_no_law(tmp_path: Path) -> None:
    def build(graph: Graph, tensor: Any, prog: program.Sequence) -> Any:
        seed = graph.addConstant(UNSIGNED_INT, [2], [3, 4], "seed")
        graph.setTileMapping(seed, 5)
        drawn = poprand.normal(graph, seed, 1, tensor, FLOAT, 10, 1, prog, "net")
        return poprand.dropout(graph, None, 1, drawn, tensor, 0.5, 2.0, prog, "net")

    found = ran(tmp_path, build, FLOAT)
    assert set(np.unique(found > 0)) == {False, True}
    assert [str(violation) for violation in check(registry.read(tmp_path))] == []


def test_replicas_draw_apart_and_again_alike_after_a_load() -> None:
    device = IPUModel("mk1", tilesPerIPU=4, numIPUs=2).createDevice()
    graph = Graph(device.getTarget(), replication_factor(2))
    tensor = graph.addVariable(FLOAT, [16], "values")
    poputil.mapTensorLinearly(graph, tensor)
    seed = graph.addConstant(UNSIGNED_INT, [2], [3, 4], "seed")
    graph.setTileMapping(seed, 0)
    prog = program.Sequence()
    for handle, master in (("free", None), ("seeded", seed)):
        drawn = poprand.uniform(graph, master, 0, tensor, FLOAT, 0, 1, prog, handle)
        graph.createHostRead(handle, drawn)
    engine, found = Engine(graph, prog), []
    for _ in range(2):
        engine.load(device)
        engine.run(0)
        found.append([engine.readTensor(handle) for handle in ("free", "seeded")])
    np.testing.assert_array_equal(found[0], found[1])
    free, seeded = found[0]
    assert not np.isin(free[0], free[1]).any()
    np.testing.assert_array_equal(seeded[0], seeded[1])
