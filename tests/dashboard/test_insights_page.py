"""The page Insights: findings in words, links to the views, figures against the frame."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dashboard.address import Address, parse
from dashboard.details.finding_links import VIEWS
from dashboard.figures.insights import memory_histogram
from dashboard.pages import PAGES, insights
from dashboard.store import Store
from pva.analysis import CATALOGUE
from pva.analysis.filters import Filter
from pva.analysis.insight_rules import RULES
from tests.analysis.test_insights import CASES, LITTLE_ALWAYS, found
from tests.builders import small_report, write_report
from tests.dashboard.layouts import parts, words


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return a store of the small report, one that does not fit, and one that was not run."""
    folder = tmp_path_factory.mktemp("reports")
    target = dict(small_report().table("target"))
    gone: dict[str, Any] = dict.fromkeys(("steps", "steps_by_ipu", "runs", "tile_cycles"))
    return Store(
        [
            write_report(folder / "small"),
            write_report(folder / "full", small_report(target=target | {"bytes_per_tile": [1000]})),
            write_report(folder / "compiled", small_report(**gone)),
            write_report(folder / "light", small_report(**LITTLE_ALWAYS)),
        ]
    )


def text(element: Any) -> str:
    return words(element).replace("\u00a0", " ")


def links(element: Any) -> list[str]:
    return [part.href for part in parts(element) if hasattr(part, "href")]


def test_answer_says_what_is_spare_and_what_is_lacking(store: Store) -> None:
    fits = text(insights.layout(store, Address()))
    assert "Fits: the fullest tile (tile 0) uses 1.0 kB of 2.0 kB (50.8 %)." in fits
    assert "1,008 B are spare on the fullest tile. The mean tile needs 640 B." in fits
    full = text(insights.layout(store, Address(report="full")))
    assert "2 tiles out of memory" in full and "40 B must be saved on the fullest tile." in full


@pytest.mark.parametrize("rule", [r.__name__ for r in RULES["time"] if r.__name__ in CASES])
def test_finding_about_time_leads_to_a_page_that_tells_cycles(rule: str) -> None:
    (show,) = found(rule, **CASES[rule][0])["show"]
    assert VIEWS[show][0] in ("/execution", "/operations", "/summary")


def test_finding_says_what_where_what_to_try_and_what_it_saves(store: Store) -> None:
    shown = text(insights.findings(store, Address(), "light"))
    assert (
        "Gaps take 54.4 % of the fullest tile tile 0: 566 B of 1.0 kB Fewer variables that must "
        "lie interleaved, or of smaller alignment, leave smaller gaps. Saves at most 566 B: 54.4 %"
        " of what the fullest tile needs Show in Memory"
    ) in shown
    assert "Saves at most 247 cycles: 24.1 % of the recorded runs" in shown


def test_links_lead_to_the_view_with_what_was_found(store: Store) -> None:
    found = links(insights.findings(store, Address(report="light"), "light"))
    assert "/memory?report=light&tile=0" in found
    assert "/liveness?report=light&step=6&variable=0" in found
    tiles = links(insights.layout(store, Address("/insights", "full")))
    assert "/insights?report=full&object=tile%3A5" in tiles


def test_the_link_of_uneven_work_shows_the_program_that_waits_most(store: Store) -> None:
    found = links(insights.findings(store, Address(report="small"), "light"))
    named = [parse(*link.split("?")) for link in found if link.startswith("/execution")]
    assert Filter("name", "==", "multiply") in [link.filter for link in named if not link.options]


def test_every_analysis_that_a_finding_names_has_a_view() -> None:
    assert set(VIEWS) <= set(CATALOGUE)
    known = {page.PATH for page in PAGES} | {"/operations"}
    assert {path for path, _ in VIEWS.values()} <= known


def test_rules_that_were_not_checked_are_listed_with_the_option(store: Store) -> None:
    shown = text(insights.unchecked(store, Address(report="compiled"), "light"))
    assert "11 rules not checked" in shown
    assert "autoReport.outputExecutionProfile" in shown and "/" not in shown.split("steps")[1][:40]
    shown = text(insights.unchecked(store, Address(), "light"))
    assert "1 rule not checked" in shown and "PVTI_OPTIONS" in shown


def test_tiles_are_listed_with_what_they_need(store: Store) -> None:
    shown = text(insights.layout(store, Address(report="full")))
    assert "Tile 0 IPU 0 1.0 kB of 1,000 B (104.0 %), out of memory" in shown
    assert "Tile 1 IPU 0 540 B of 1,000 B (54.0 %)" in shown


@pytest.mark.parametrize(
    ("search", "first", "size"),
    [("", "Stack", 960), ("?of=tile-5", "Vertex Code", 100), ("?of=ipu-1", "Stack", 480),
     ("?filter=name~part", "partials", None)],
)  # fmt: skip
def test_variables_at_the_peak_are_those_of_the_chosen_place(
    store: Store, search: str, first: str, size: int | None
) -> None:
    frame = insights.variables(store, parse("/insights", search))
    if size is None:
        assert not len(frame)  # the partials are not live at the peak of the whole program
    else:
        assert frame[["name", "bytes"]].iloc[0].tolist() == [first, size]


def test_vertices_and_exchanges_are_listed_by_name(store: Store) -> None:
    reduce = insights.vertices(store, parse("/insights", "?filter=name~reduce&of=tile-0"))
    assert reduce[["vertex_type", "total"]].to_numpy().tolist() == [
        ["popops::Reduce<float,float>", 66]
    ]
    assert "multiply/ExchangePre" in insights.exchanges(store, Address())["label"].tolist()


def test_histogram_counts_every_tile_in_few_bars() -> None:
    low = list(range(10, 210))
    frame = pd.DataFrame({"low_kb": low, "high_kb": [k + 1 for k in low], "tiles": [3] * 200})
    bars = memory_histogram(frame, limit=10**9, theme="light").data[0]
    assert len(bars.x) <= 64 and sum(bars.y) == 600
    assert bars.customdata[0] == "10.0 kB to 14.0 kB"
    assert bars.x[0] == 12 * 1024


def test_limit_is_drawn_when_it_is_near() -> None:
    frame = pd.DataFrame({"low_kb": [4], "high_kb": [5], "tiles": [7]})
    near = memory_histogram(frame, limit=6000, theme="dark")
    assert near.layout.shapes[0].x0 == 6000
    assert not memory_histogram(frame, limit=600_000, theme="dark").layout.shapes


def test_report_without_memory_says_so(tmp_path: Path) -> None:
    from pva.formats import registry

    path = tmp_path / "profile.pop"
    registry.write(small_report().select("execution"), path)
    assert "Memory not known" in text(insights.layout(Store([path]), Address()))
