"""The heat map of what is live by tile and step."""

from __future__ import annotations

import numpy as np

from dashboard.figures.live_map import live_map, mark_object
from pva.analysis import liveness_map
from tests.analysis.samples import small


def test_cells_are_bytes_by_tile_down_and_step_across() -> None:
    frame = liveness_map(small(), rows=1 << 20, columns=1 << 20)
    figure = live_map(frame, always=True, capacity=2048, theme="light")
    cells = np.asarray(figure.data[0].z)
    step, tile = 6, 5
    row = frame[(frame["step"] == step) & (frame["tile"] == tile)].iloc[0]
    assert cells[tile, step] == row["live"]
    assert f"Tile {tile}" in figure.data[0].customdata[tile, step]


def test_without_the_always_live_a_cell_is_the_rest() -> None:
    frame = liveness_map(small(), rows=1 << 20, columns=1 << 20)
    both = [live_map(frame, always=always, capacity=2048, theme="dark") for always in (True, False)]
    less = np.asarray(both[0].data[0].z) - np.asarray(both[1].data[0].z)
    assert (less == frame["always_live"].to_numpy().reshape(len(less[0]), -1).T).all()


def test_a_click_chooses_the_step_of_the_column() -> None:
    frame = liveness_map(small(), rows=1, columns=3)
    figure = live_map(frame, always=True, capacity=2048, theme="light")
    assert figure.layout.meta["picks"] == sorted(set(frame["step"].tolist()))


def test_the_chosen_object_is_marked_by_its_tiles_and_its_life() -> None:
    frame = liveness_map(small(), rows=1 << 20, columns=1 << 20)
    figure = live_map(frame, always=True, capacity=2048, theme="light")
    mark_object(figure, frame, np.array([3, 5]), (4, 10, "partials"), theme="light")
    frames = figure.data[1].y.reshape(-1, 6)[:, :5].tolist()
    assert frames == [[2.5, 2.5, 3.5, 3.5, 2.5], [4.5, 4.5, 5.5, 5.5, 4.5]]
    shape = figure.layout.shapes[-1]
    assert (shape.x0, shape.x1) == (3.5, 10.5)


def test_several_tiles_of_a_group_are_one_mark() -> None:
    frame = liveness_map(small(), rows=2, columns=3)
    figure = live_map(frame, always=True, capacity=2048, theme="light")
    mark_object(figure, frame, np.array([0, 1, 2]), None, theme="light")
    assert figure.data[1].y[:5].tolist() == [-0.5, -0.5, 0.5, 0.5, -0.5]


def test_rows_one_below_the_other_have_one_frame() -> None:
    frame = liveness_map(small(), rows=1 << 20, columns=1 << 20)
    figure = live_map(frame, always=True, capacity=2048, theme="light")
    mark_object(figure, frame, np.array([1, 2, 3]), None, theme="light")
    assert figure.data[1].y[:5].tolist() == [0.5, 0.5, 3.5, 3.5, 0.5]
