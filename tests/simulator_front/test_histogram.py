"""Histograms: counts by NumPy's, cycles by the formulas worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simulator.graph.errors import PoplarError, poplibs_error
from simulator.graph.types import FLOAT, HALF, UNSIGNED_INT
from simulator.poplibs import popops
from tests.simulator_front.value_program import Values, numbers


def expected(data: Any, levels: list[float]) -> list[int]:
    """Count by brute force; a level counts above itself."""
    bounds = [-np.inf, *levels, np.inf]
    return [
        int(((data >= low) & (data < high)).sum())
        for low, high in zip(bounds, bounds[1:], strict=False)
    ]


@pytest.mark.parametrize("dtype", [FLOAT, HALF])
@pytest.mark.parametrize("levels", [[0.5], [-1.0, 0.0, 0.25, 2.0], list(np.arange(-8, 8) / 4)])
@pytest.mark.parametrize("turned", [False, True])
def test_elements_are_counted_between_levels(dtype: Any, levels: list[float], turned: bool) -> None:
    values, data = Values(), numbers(33, 7).astype(dtype.numpy)
    data[0, :4] = levels[0]
    tensor = values.tensor(data, dtype=dtype)
    limits = values.tensor(levels, dtype=dtype)
    view = tensor.transpose()[1:] if turned else tensor
    out = popops.histogram(values.graph, view, limits, False, values.program)
    assert out.dtype == UNSIGNED_INT
    rest = data[:, 1:] if turned else data
    assert values.run().read(out).tolist() == expected(rest, levels)


def test_sizes_are_counted_without_their_signs() -> None:
    values, data = Values(), numbers(100)
    tensor, limits = values.tensor(data), values.tensor([0.5, 1.0])
    out = popops.histogram(values.graph, tensor, limits, True, values.program)
    assert values.run().read(out).tolist() == expected(np.abs(data), [0.5, 1.0])


@pytest.mark.parametrize(
    ("levels", "vertex", "cycles"),
    [
        # 40 halves: 10 vectors; by limit 6 * (30 + 2 + 17 + 3 * 10), by data 6 * (38 + 19 + 3 * 2)
        (1, "popops::Histogram1D<half,false,false>", 6 * (38 + 19 + 3 * 2)),
        # 6 limits: each worker has one: 6 * (30 + 12 + 47), by data 6 * (38 + 25 * 6)
        (6, "popops::Histogram1D<half,false,true>", 6 * (30 + 12 + 47)),
    ],
)
def test_workers_share_what_is_sooner_shared(levels: int, vertex: str, cycles: int) -> None:
    values = Values()
    graph = values.graph
    tensor = graph.addVariable(HALF, [40], "data")
    graph.setTileMapping(tensor, 2)
    limits = values.tensor(np.arange(levels), dtype=HALF)
    popops.histogram(graph, tensor, limits, False, values.program)
    group = graph.vertex_groups()[0]
    assert (group.codelet.name, group.cycles.tolist()) == (vertex, [cycles])


def test_counts_stay_floats_where_that_is_asked_for() -> None:
    values = Values()
    tensor, limits = values.tensor(np.arange(10)), values.tensor([4])
    options = {"useFloatArithmetic": "true"}
    out = popops.histogram(values.graph, tensor, limits, False, values.program, "", options)
    assert out.dtype == FLOAT
    assert values.run().read(out).tolist() == [4, 6]


def test_levels_of_another_type_and_unknown_options_are_refused() -> None:
    values = Values()
    tensor, limits = values.tensor(np.arange(10)), values.tensor([4], dtype=HALF)
    with pytest.raises(poplibs_error, match="a list of float is needed"):
        popops.histogram(values.graph, tensor, limits, False, values.program)
    levels = values.tensor([4])
    with pytest.raises(PoplarError, match="useFloat"):
        popops.histogram(values.graph, tensor, levels, False, values.program, "", {"useDouble": 1})
