"""The page Explore: which configuration to run, what it costs, and what does not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashboard.address import Address, AddressError, parse
from dashboard.pages import explore
from dashboard.store import Store
from pva.errors import NotRecordedError, PvaError
from tests.builders import write_report
from tests.dashboard.layouts import parts, words
from tests.many.explored import POINTS, write_explored

pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store([write_explored(tmp_path_factory.mktemp("space"))])


def chosen(search: str = "") -> Address:
    return parse("/explore", search)


def test_the_fastest_that_fits_heads_the_page_with_its_price(store: Store) -> None:
    said = words(explore.answer(store, chosen(), "light")).replace("\u00a0", " ")
    assert said == (
        "Run batch 2, ipus 1: 180 items/s, its fullest tile 70.0 % full. "
        "batch 1, ipus 1 frees 200 B of the fullest tile and is 44.4 % slower. "
        "5 points of 8 were run: 3 fit, 1 does not, 1 has no figures."
    )


def test_where_nothing_fits_the_nearest_is_named(tmp_path: Path) -> None:
    misses = ((1, 1, 1010, None, ""), (2, 1, 1500, None, ""))
    store = Store([write_explored(tmp_path, misses)])
    said = words(explore.answer(store, chosen(), "light")).replace("\u00a0", " ")
    assert said.startswith("No point fits: batch 1 comes nearest and lacks 10 B on tile 3.")


def test_points_that_fit_and_that_do_not_have_other_marks(store: Store) -> None:
    figure = explore.plot(store, chosen("colour=none"), "light")
    marks = next(trace for trace in figure.data if trace.name == "points")
    drawn = dict(zip(marks.customdata, zip(marks.x, marks.y, marks.marker.symbol, strict=True),
                     strict=True))  # fmt: skip
    assert drawn["k1"] == (700, 180, "circle")
    assert drawn["k2"][0] == 1300 and drawn["k2"][1] < 0 and drawn["k2"][2] == "x"
    assert drawn["k4"][2] == "triangle-up-open"


def test_the_front_joins_what_no_other_is_better_than(store: Store) -> None:
    front = explore.plot(store, chosen(), "dark").data[0]
    assert (front.name, list(front.x), list(front.y)) == (
        "no other is better", [500, 700], [100, 180]
    )  # fmt: skip
    alone = explore.shown(store, chosen("x=batch&y=samples_per_second"))
    assert alone["key"][alone["best"]].tolist() == ["k1"]  # speed alone counts: batch is no figure


def test_points_are_coloured_by_a_lever_and_filtered(store: Store) -> None:
    named = [trace.name for trace in explore.plot(store, chosen("colour=batch"), "light").data]
    assert [name for name in named if name.startswith("batch")] == [
        "batch 1", "batch 2", "batch 4", "batch 8"
    ]  # fmt: skip
    left = explore.shown(store, chosen("filter=configuration~ipus 2"))
    assert sorted(left["key"]) == ["k3", "k4"]
    with pytest.raises(AddressError, match="x=abc"):
        explore.plot(store, chosen("x=abc"), "light")


def test_a_lever_of_one_value_is_no_axis(store: Store) -> None:
    with pytest.raises(AddressError, match="precision"):
        explore.plot(store, chosen("x=precision"), "light")


def links(element: Any) -> list[str]:
    return [one.href for one in parts(element) if hasattr(one, "href")]


def test_two_points_lead_to_their_reports_and_to_the_comparison(store: Store) -> None:
    shown = explore.chosen(store, chosen("point=k0,k1"), "light")
    assert links(shown) == [
        "/summary?report=k0", "/summary?report=k1", "/compare?report=k0&against=k1"
    ]  # fmt: skip


def test_a_point_without_a_report_shows_why_and_the_command(store: Store) -> None:
    shown = explore.chosen(store, chosen("point=k2"), "light")
    said = words(shown).replace("\u00a0", " ")
    assert links(shown) == []
    assert "Tile 3 lacks 300 B; most is live at step 7 (Conv): weights (800 bytes)." in said
    assert said.endswith("tilescope simulate -b 4")
    assert "killed: it took more" in words(explore.chosen(store, chosen("point=k4"), "light"))
    assert "no such point" in words(explore.chosen(store, chosen("point=<b>"), "light"))


def test_chosen_points_have_a_ring_of_their_own(store: Store) -> None:
    rings = [trace for trace in explore.plot(store, chosen("point=k0,k1"), "light").data
             if trace.name == "chosen"]  # fmt: skip
    assert [sorted(ring.y) for ring in rings] == [[100, 180]]
    assert rings[0].marker.size > 11 and rings[0].customdata is None
    names = [trace.name for trace in explore.plot(store, chosen(), "light").data]
    assert "chosen" not in names


def test_what_is_saved_are_the_points_shown_with_their_columns(store: Store) -> None:
    frame = explore.saved(store, chosen("filter=configuration~batch 4"))
    assert frame["key"].tolist() == ["k3", "k2"]
    assert {"batch", "ipus", "samples_per_second", "command", "best"} <= {*frame.columns}
    assert len(explore.saved(store, chosen())) == len(POINTS)


def test_an_exploration_without_reports_has_the_page_alone(tmp_path: Path) -> None:
    store = Store([write_explored(tmp_path / "space", reports=0)])
    assert explore.available(store, "")
    assert "batch 2" in words(explore.answer(store, chosen(), "light"))


def test_a_report_of_no_exploration_has_no_such_page(tmp_path: Path) -> None:
    store = Store([write_report(tmp_path / "one")])
    assert not explore.available(store, "")
    with pytest.raises(NotRecordedError, match="not of an exploration"):
        explore.layout(store, chosen())


def test_a_table_that_leads_out_of_the_paths_given_is_not_read(tmp_path: Path) -> None:
    outside = write_explored(tmp_path / "outside")
    inside = write_explored(tmp_path / "inside")
    (inside / "points.parquet").unlink()
    (inside / "points.parquet").symlink_to(outside / "points.parquet")
    assert Store([inside]).exploration() is None


def test_a_table_without_a_column_is_named(tmp_path: Path) -> None:
    import pandas as pd

    folder = write_explored(tmp_path)
    pd.read_parquet(folder / "points.parquet").drop(columns="over").to_parquet(
        folder / "points.parquet"
    )
    with pytest.raises(PvaError, match="points.parquet: no column over"):
        explore.layout(Store([folder]), chosen())


def test_a_thousand_points_are_one_mark_a_point(tmp_path: Path) -> None:
    many = tuple((n + 1, 1 + n % 40, 500 + n % 400, 100.0 + n, "") for n in range(1000))
    store = Store([write_explored(tmp_path, many, reports=0)])
    figure = explore.plot(store, chosen("colour=batch"), "light")
    marks = [trace for trace in figure.data if trace.customdata is not None]
    assert len(marks) == 13 and marks[-1].name == "988 more"
    assert np.concatenate([trace.customdata for trace in marks]).size == 1000


def test_a_report_of_a_point_is_named_by_what_was_varied(tmp_path: Path) -> None:
    folder = write_explored(tmp_path / "space")
    about = {"levers": {"batch": ["1", "2"], "ipus": ["1"], "target": ["mk2", "bow"]}}
    (folder / "exploration.json").write_text(json.dumps(about))
    (folder / "points").mkdir()
    levers = {"batch": "2", "ipus": "1", "target": "bow"}
    (folder / "points" / "k0.json").write_text(json.dumps({"levers": levers}))
    (folder / "points" / "k1.json").write_text("{")  # damaged: the directory's name
    assert Store([folder]).keys == ["batch 2, target bow", "k1"]
