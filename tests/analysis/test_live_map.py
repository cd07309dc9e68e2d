"""What is live by tile and step, against a plain loop and the curve of all tiles."""

from __future__ import annotations

import numpy as np
import pytest

from pva.analysis import liveness_curve, liveness_map
from pva.analysis.selection import SelectionError
from tests.analysis.samples import every_report, opened, rows, small

ALL = 1 << 20


@every_report
def test_each_tile_has_what_its_pieces_take_while_their_variables_live(name: str) -> None:
    report = opened(name)
    frame = liveness_map(report, rows=ALL, columns=ALL)
    always = report.dataset.array("always_live_bytes")
    live = np.tile(np.asarray(always, dtype=np.int64), (len(liveness_curve(report)), 1))
    lives = rows(report, "variable_intervals")
    for piece in rows(report, "variable_pieces"):
        for each in lives:
            if each["variable"] == piece["variable"]:
                live[each["begin"] : each["end"], piece["tile"]] += piece["bytes"]
    assert frame["live"].tolist() == live.ravel().tolist()
    assert frame["fullest_tile"].tolist() == frame["tile"].tolist()


@every_report
def test_tiles_add_up_to_the_curve(name: str) -> None:
    frame = liveness_map(opened(name), rows=ALL, columns=ALL)
    sums = frame.groupby("step")["live"].sum()
    assert sums.tolist() == liveness_curve(opened(name))["total"].tolist()


def test_a_stretch_of_steps_shows_the_one_at_which_most_is_live() -> None:
    curve = liveness_curve(small())["not_always_live"].to_numpy()
    (only,) = liveness_map(small(), rows=1, columns=1)["step"].unique()
    assert only == curve.argmax()
    (last,) = liveness_map(small(), rows=1, columns=1, first_step=9)["step"].unique()
    assert last == 9 + curve[9:].argmax()


def test_a_group_shows_its_fullest_tile_and_spans_no_two_ipus() -> None:
    every = liveness_map(small(), rows=ALL, columns=ALL)
    frame = liveness_map(small(), rows=1, columns=ALL)  # one group an IPU at least
    assert frame["tile"].unique().tolist() == (every.groupby("ipu")["tile"].min()).tolist()
    most = every.groupby(["step", "ipu"])["live"].max()
    assert frame["live"].tolist() == most.tolist()


def test_steps_that_are_not_there_are_refused() -> None:
    with pytest.raises(SelectionError, match="step 1000: not there"):
        liveness_map(small(), last_step=1000)
