"""Series and heatmaps give back what was added."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pvti
from pva.trace import Trace
from pvti.heatmap import _count_sorted, count_bins

Finish = Callable[[], Trace]


def test_a_series_keeps_values_and_times(finish: Finish, clock: Any) -> None:
    loss = pvti.Graph("Loss", "nats").addSeries("train")
    for value in (2.5, 1, float("nan"), float("inf")):
        loss.add(value)
    (series,) = finish().series
    assert (series.graph, series.unit, series.name) == ("Loss", "nats", "train")
    assert np.array_equal(series.value, [2.5, 1, np.nan, np.inf], equal_nan=True)
    assert series.time_ns.tolist() == [1000, 2000, 3000, 4000]


def test_a_heatmap_bins_what_it_is_given(finish: Finish) -> None:
    weights = pvti.HeatmapDouble("weights", [0, 1, 2, 4], "2^x")
    weights.add([0, 0.5, 1, 4, -1, 9, float("nan")])
    weights.add(np.array([[2.0, 3.0], [3.5, 1.5]]))
    weights.add(array("d", [1.0]))
    (heatmap,) = finish().heatmaps
    assert (heatmap.name, heatmap.unit, heatmap.edges.tolist()) == ("weights", "2^x", [0, 1, 2, 4])
    assert heatmap.counts.tolist() == [[2, 1, 1], [0, 1, 3], [0, 1, 0]]
    assert heatmap.below.tolist() == [2, 0, 0]
    assert heatmap.above.tolist() == [1, 0, 0]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(-20, 20), min_size=2, max_size=8, unique=True).map(sorted),
    st.lists(st.integers(-25, 25) | st.floats(-25, 25), max_size=50),
)
def test_bins_are_those_of_numpy(edges: list[int], values: list[float]) -> None:
    below, counts, above = count_bins([float(edge) for edge in edges], values)
    assert counts == np.histogram(values, edges)[0].tolist()
    assert below == sum(value < edges[0] for value in values)
    assert above == sum(value > edges[-1] for value in values)


@pytest.mark.parametrize("edges", [[], [1], [2, 1], [1, 1]])
def test_edges_that_do_not_ascend_are_refused(edges: list[int]) -> None:
    with pytest.raises(ValueError, match="two or more, ascending"):
        pvti.HeatmapInt("h", edges)


def test_without_a_trace_nothing_is_recorded(tmp_path: Path) -> None:
    pvti.Graph("Idle").addSeries("s").add(1)
    pvti.HeatmapFloat("Idle", [0, 1]).add([1])
    pvti.startTrace(tmp_path)
    pvti.closeTrace()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, 3, 4],
        (1.0, 2.0, 3.0, 4.0),
        [[1, 2], [3, 4]],
        iter([1, 2, 3, 4]),
        array("f", [1, 2, 3, 4]),
        bytes([1, 2, 3, 4]),
        memoryview(np.array([[1, 2], [3, 4]], np.int16)),
        (ctypes.c_double * 4)(1, 2, 3, 4),
        np.array([[1, 2], [3, 4]], np.float32),
        np.array([1, 2, 3, 4], ">i4"),
        np.array([1, 2, 3, 4])[::-1],
        np.array([[1.0, 2.0], [3.0, 4.0]]).view(np.matrix),
        np.ma.array([1, 2, 3, 4]),
        pd.Series([1, 2, 3, 4]),
        pd.Index([1.0, 2.0, 3.0, 4.0]),
        pd.array([1, 2, 3, 4], "Int64"),
    ],
)
def test_a_heatmap_takes_any_sequence_or_buffer(finish: Finish, values: Any) -> None:
    pvti.HeatmapInt("h", [0, 2, 4], "things").add(values)
    (heatmap,) = finish().heatmaps
    assert heatmap.counts.tolist() == [[1, 3]]
    assert (heatmap.below.tolist(), heatmap.above.tolist()) == ([0], [0])


@pytest.mark.parametrize(
    "values", [np.ma.array([1, 3, 3, 9], mask=[0, 1, 0, 1]), pd.array([1, None, 3, None], "Int64")]
)
def test_what_an_array_masks_is_no_number(finish: Finish, values: Any) -> None:
    pvti.HeatmapInt("h", [0, 2, 4]).add(values)
    (heatmap,) = finish().heatmaps
    assert heatmap.counts.tolist() == [[1, 1]]
    assert (heatmap.below.tolist(), heatmap.above.tolist()) == ([2], [0])


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(-20, 20), min_size=2, max_size=8, unique=True).map(sorted),
    st.lists(st.integers(-25, 25) | st.floats(), max_size=50),
)
def test_arrays_are_counted_as_lists_are(edges: list[int], values: list[float]) -> None:
    wanted = count_bins([float(edge) for edge in edges], values)
    assert _count_sorted([float(edge) for edge in edges], np.array(values, np.float64)) == wanted


def test_what_is_no_number_breaks_nothing_and_is_kept_as_that(finish: Finish) -> None:
    loss = pvti.Graph("Loss").addSeries("train")
    for value in (None, "high", 2):
        loss.add(value)
    heatmap = pvti.HeatmapFloat("h", [0, 1])
    heatmap.add([None, "x", 0.5])
    heatmap.add(0.5)
    heatmap.add(None)
    trace = finish()
    assert np.array_equal(trace.series[0].value, [np.nan, np.nan, 2], equal_nan=True)
    assert trace.heatmaps[0].counts.tolist() == [[1], [1], [0]]
    assert trace.heatmaps[0].below.tolist() == [2, 0, 1]


@pytest.mark.parametrize("first", ["series", "heatmaps"])
def test_what_a_trace_starts_with_is_not_before_it(finish: Finish, first: str) -> None:
    if first == "series":
        pvti.Graph("g").addSeries("s").add(1)
    else:
        pvti.HeatmapInt("h", [0, 2]).add([1])
    (found,) = getattr(finish(), first)
    assert found.time_ns[0] >= 0
