"""Analyses of liveness, on the hand-made report."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pva import schema
from pva.analysis.memory import liveness
from pva.analysis.selection import SelectionError
from tests.analysis.samples import every_report, opened, rows
from tests.builders import small_report


def report(**changes: Any) -> Any:
    return SimpleNamespace(dataset=small_report(**changes))


def test_curve_shows_always_live_under_what_comes_and_goes() -> None:
    curve = liveness.liveness_curve(report())
    assert curve["depth"].tolist() == [0, 1, 1, 1, 2, 3, 3, 3, 4, 5, 1, 1, 1, 1]
    # Step 6 is the multiplication: x and product (80 bytes each) and the message (40).
    row = curve.loc[6]
    assert (row["type"], row["name"]) == ("OnTileExecute", "multiply")
    assert (row["always_live"], row["not_always_live"], row["total"]) == (3382, 200, 3582)


def test_curves_of_the_ipus_add_up_to_that_of_all() -> None:
    whole = liveness.liveness_curve(report())["total"]
    parts = [liveness.liveness_curve(report(), ipu=ipu)["total"] for ipu in (0, 1)]
    assert (whole == parts[0] + parts[1]).all()


def test_variables_of_every_step_add_up_to_the_curve() -> None:
    curve = liveness.liveness_curve(report())
    sums = [liveness.live_variables(report(), step=step)["bytes"].sum() for step in curve["step"]]
    assert sums == curve["not_always_live"].tolist()


def test_live_variables_stand_largest_first() -> None:
    frame = liveness.live_variables(report(), step=6)
    assert frame["name"].tolist() == ["x", "product", "message"]
    assert frame["category"].tolist() == ["variable", "variable", "message"]
    assert frame["bytes"].tolist() == [80, 80, 40]


def test_live_variables_of_a_tile_are_the_pieces_there() -> None:
    frame = liveness.live_variables(report(), step=12, tile=5)
    assert frame[["name", "bytes"]].to_numpy().tolist() == [["partials", 16]]


@pytest.mark.parametrize("step", [-1, 14])
def test_a_step_that_is_not_there_is_refused(step: int) -> None:
    with pytest.raises(SelectionError, match="steps 0 to 13"):
        liveness.live_variables(report(), step=step)


def test_changes_by_name_lead_to_the_variables_of_each_step() -> None:
    names = report().dataset.column("variables", "name")
    different, when, changed, sizes = liveness.live_changes(report(), names)
    live: dict[str, int] = {}
    for step in liveness.liveness_curve(report())["step"]:
        here = when == step
        live |= zip(different[changed[here]], sizes[here], strict=True)
        frame = liveness.live_variables(report(), step=step)
        told = {name: size for name, size in live.items() if size}
        assert told == dict(zip(frame["name"], frame["bytes"], strict=True))


def test_overview_names_the_peak_and_its_largest_variable() -> None:
    overview = liveness.liveness_overview(report())
    assert (overview.peak_step, overview.peak_name, overview.peak_bytes) == (6, "multiply", 200)
    assert overview.max_live == overview.always_live + 200 == 3582
    assert (overview.largest_variable, overview.largest_variable_bytes) == ("x", 80)


def test_overview_of_a_report_without_steps_has_no_peak() -> None:
    empty: dict[str, list[int]] = {"program": [], "parent": [], "bytes": []}
    overview = liveness.liveness_overview(
        report(liveness_steps=empty, liveness_bytes_by_ipu=np.zeros((0, 2)))
    )
    assert (overview.peak_step, overview.peak_bytes) == (-1, 0)
    assert overview.max_live == 3382 + 200  # as the report says of all steps


@pytest.mark.parametrize(("said", "expected"), [(-1, 3582), (199, 3582), (201, 3583)])
def test_the_most_that_is_live_is_what_the_report_says_if_its_steps_have_less(
    said: int, expected: int
) -> None:
    overview = liveness.liveness_overview(report(liveness={"max_bytes": [said]}))
    assert (overview.max_live, overview.peak_bytes) == (expected, 200)


def test_always_live_variables_stand_largest_first() -> None:
    frame = liveness.always_live_variables(report())
    assert frame["name"].tolist()[:2] == ["stack", "vertexCode"]
    assert frame["bytes"].sum() == liveness.liveness_overview(report()).always_live


def test_a_category_that_is_always_live_leaves_out_its_variables() -> None:
    data = small_report()
    stack, constant = map(schema.CATEGORIES.index, ("stack", "constant"))
    memory = data.array("memory_by_category").copy()
    memory[stack, ..., 0] += memory[constant, ..., 0]  # the 4 bytes of step
    memory[constant] = 0
    columns = {c.name: data.column("variables", c.name) for c in schema.TABLE["variables"].columns}
    columns["category"] = [*columns["category"][:-1], stack]
    changed = report(variables=columns, memory_by_category=memory)
    frame = liveness.always_live_variables(changed, tile=0).set_index("name")["bytes"]
    assert (frame["stack"], frame["step"], frame.sum()) == (96, 4, 438)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1, exclude_max=True), max_size=40))
def test_depths_count_the_rows_above(fractions: list[float]) -> None:
    parents = np.array([int(f * (row + 1)) - 1 for row, f in enumerate(fractions)], dtype=np.int64)
    expected: list[int] = []
    for parent in parents.tolist():
        expected.append(0 if parent < 0 else expected[parent] + 1)
    assert liveness.depths(parents).tolist() == expected


def test_depths_of_a_very_deep_tree_and_of_a_circle_end() -> None:
    chain = np.arange(-1, 99_999)
    assert liveness.depths(chain)[-1] == 99_999
    assert len(liveness.depths(np.array([1, 0]))) == 2


def test_depths_take_a_parent_that_is_not_there_for_none() -> None:
    assert liveness.depths(np.array([-1, 0, 99])).tolist() == [0, 1, 0]


@every_report
def test_what_is_live_at_the_peak_adds_up_to_it(name: str) -> None:
    frame = liveness.live_at_peak(opened(name))
    overview = liveness.liveness_overview(opened(name))
    assert frame["bytes"].sum() == overview.max_live
    assert frame["bytes"][frame["always_live"]].sum() == overview.always_live
    assert frame["bytes"].is_monotonic_decreasing


def test_who_is_live_at_the_peak_is_named() -> None:
    frame = liveness.live_at_peak(report()).set_index("name")
    # Step 6: x and product, 80 bytes each, and the message of 40; stack on ten tiles is largest.
    assert frame.index[0] == "stack" and frame["bytes"].iloc[0] == 960
    assert frame["bytes"][~frame["always_live"]].to_dict() == {
        "x": 80,
        "product": 80,
        "message": 40,
    }
    assert frame.loc["message", "category"] == "message"


@every_report
def test_liveness_by_tile_is_that_of_a_loop(name: str) -> None:
    data = opened(name).dataset
    frame = liveness.liveness_by_tile(opened(name)).sort_values("tile")
    tiles = range(data.of_replica("num_tiles"))
    always, most = (
        data.array(array).tolist() for array in ("always_live_bytes", "not_always_live_max_bytes")
    )
    assert frame["most_live"].tolist() == [always[tile] + most[tile] for tile in tiles]
    capacity = data.value("target", "bytes_per_tile")
    assert (frame["most_live"] + frame["free"] == capacity).all()


@every_report
def test_lifetimes_are_those_of_a_loop(name: str) -> None:
    live = {}
    for span in rows(opened(name), "variable_intervals"):
        live.setdefault(span["variable"], set()).update(range(span["begin"], span["end"]))
    frame = liveness.variable_lifetimes(opened(name)).set_index("variable")
    assert set(frame.index) == {variable for variable, steps in live.items() if steps}
    for variable, row in zip(frame.index, frame.to_dict("records"), strict=True):
        steps = live[variable]
        assert (row["steps"], row["first_step"], row["last_step"]) == (
            len(steps), min(steps), max(steps),
        )  # fmt: skip
    # All variables at all steps are the area under the curve.
    area = opened(name).dataset.column("liveness_steps", "bytes").sum()
    assert frame["byte_steps"].sum() == area


def test_the_variable_kept_longest_for_its_size_stands_first() -> None:
    row = liveness.variable_lifetimes(report()).iloc[0]
    assert row[["name", "bytes", "steps", "first_step", "last_step"]].tolist() == ["x", 80, 8, 2, 9]
    assert row["byte_steps"] == 640 and row["at_peak"]


@every_report
def test_liveness_by_ipu_is_the_highest_point_of_its_curve(name: str) -> None:
    frame = liveness.liveness_by_ipu(opened(name)).set_index("ipu")
    for ipu, row in frame.iterrows():
        curve = liveness.liveness_curve(opened(name), ipu=ipu)
        assert row["most_live"] == curve["total"].max()
        assert row["peak_step"] == curve["total"].argmax()
        assert row["name"] == curve["name"][row["peak_step"]]
    assert len(frame) == opened(name).dataset.of_replica("num_ipus")


def test_changes_of_what_is_live_add_up_variables_of_one_name() -> None:
    # Lives, by hand: x of 80 in 2-9, product 80 in 6-11, message 40 in 5-6, partials 32 in 11-12,
    # y 4 in 12-13; message and partials get one name, and so do product and x.
    names = np.array(["p", "w", "p", "m", "m", "y", "s"], dtype=object)
    different, when, changed, live = liveness.live_changes(report(), names)
    changes = [(w, different[r], b) for w, r, b in zip(when, changed, live, strict=True)]
    assert changes == [
        (2, "p", 80), (5, "m", 40), (6, "p", 160), (7, "m", 0), (10, "p", 80), (11, "m", 32),
        (12, "p", 0), (12, "y", 4), (13, "m", 0), (14, "y", 0),
    ]  # fmt: skip


@every_report
def test_always_live_of_the_tiles_and_of_all_is_one_sum(name: str) -> None:
    found = opened(name)
    by_tile = found.dataset.array("always_live_bytes")
    for tile in {0, len(by_tile) - 1}:
        frame = liveness.always_live_variables(found, tile=tile)
        assert frame["bytes"].sum() == by_tile[tile] and (frame["bytes"] > 0).all()
    ipus = found.dataset.of_replica("num_ipus")
    sums = [liveness.always_live_variables(found, ipu=i)["bytes"].sum() for i in range(ipus)]
    assert sum(sums) == by_tile.sum()


@every_report
def test_curve_of_a_tile_peaks_where_the_report_says(name: str) -> None:
    found = opened(name)
    peaks = found.dataset.array("not_always_live_max_bytes")
    for tile in {0, int(peaks.argmax()), len(peaks) - 1}:
        curve = liveness.liveness_curve(found, tile=tile)
        assert curve["not_always_live"].max() == peaks[tile]
        assert (curve["always_live"] == found.dataset.array("always_live_bytes")[tile]).all()


def test_live_variables_of_an_ipu_are_the_pieces_on_its_tiles() -> None:
    frame = liveness.live_variables(report(), step=6, ipu=1)
    assert frame[["name", "bytes"]].to_numpy().tolist() == [
        ["x", 40], ["product", 40], ["message", 20],
    ]  # fmt: skip


def test_who_is_live_at_the_peak_of_a_tile_is_what_lies_there() -> None:
    # Tile 5 has most at step 11: product 8 and partials 16, beside 360 that are always live.
    frame = liveness.live_at_peak(report(), tile=5)
    assert frame[~frame["always_live"]][["name", "bytes"]].to_numpy().tolist() == [
        ["partials", 16], ["product", 8],
    ]  # fmt: skip
    assert frame["bytes"].sum() == 384
    of_ipus = [liveness.live_at_peak(report(), ipu=ipu)["bytes"].sum() for ipu in (0, 1)]
    curves = [liveness.liveness_curve(report(), ipu=ipu)["total"].max() for ipu in (0, 1)]
    assert of_ipus == curves
