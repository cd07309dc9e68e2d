"""The page Execution: why IPUs are idle, a row for each IPU, critical path and waits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dashboard.address import Address, parse
from dashboard.pages.execution import ipus as execution_ipus
from dashboard.pages.execution import page as execution
from dashboard.pages.execution import step_details
from dashboard.store import Store
from dashboard.timeline import endpoint
from dashboard.timeline.waits import waits_in
from pva.analysis.waiting import causes
from pva.analysis.waiting.segments import joins_of
from tests.analysis.samples import SAMPLES
from tests.dashboard.layouts import words
from tests.shared_work import THREADS, report_of

PIPELINE = "newton_pipeline_replicas"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return a store of a pipeline, and of one program whose second IPU works longer."""
    folder = tmp_path_factory.mktemp("execution") / "uneven"
    report_of(folder, [(0, "a/Run", 1000), (1, "b/Run", 4000)])
    return Store([SAMPLES / PIPELINE, folder])


def text(element: Any) -> str:
    return words(element).replace("\u00a0", " ")


def test_the_idlest_ipu_is_named_with_what_it_waits_for(store: Store) -> None:
    shown = text(execution_ipus.idle(store, Address(report="uneven"), "light"))
    total = store.report("uneven").dataset.value("execution", "cycles")
    bubble = f"{100 * 3000 * THREADS / total:.1f} %"
    assert f"what keeps it longest is an IPU that computes, {bubble}." in shown
    assert "It waits for IPU 1 most, which runs b/Run." in shown
    assert "The critical path goes through IPU 1 for 9" in shown and "longest in b/Run" in shown


def test_each_ipu_has_a_row_with_its_shares(store: Store) -> None:
    shown = text(
        execution.range_details(store, parse("/execution", f"?report={PIPELINE}"), "light")
    )
    assert "IPU 0" in shown and "IPU 1" in shown and "Between IPUs" in shown
    two = parse("/execution", f"?report={PIPELINE}&against=uneven")
    shown = text(execution.range_details(store, two, "light"))
    assert f"{PIPELINE}, IPU 1" in shown and "uneven, IPU 1" in shown


def test_the_lane_of_the_critical_path_is_as_long_as_the_runs(store: Store) -> None:
    whole = endpoint.timeline(store, "device", PIPELINE, {"path": "on"})
    lane = whole.lanes[0]
    assert (lane.name, lane.stop - lane.first) == ("Critical path", 1)
    events = np.arange(*whole.tracks.offset[lane.first : lane.first + 2])
    spent = whole.tracks.ends(events) - whole.tracks.begin[events]
    assert spent.sum() == store.report(PIPELINE).dataset.value("execution", "cycles")
    steps = causes.path_steps(store.report(PIPELINE), count=10**6)
    assert whole.item(events).tolist() == steps["step"].tolist()
    assert whole.labels[whole.tracks.label[events[0]]].startswith(f"IPU {steps['ipu'][0]}: ")


def test_without_the_switch_there_is_no_such_lane(store: Store) -> None:
    assert [lane.name for lane in endpoint.timeline(store, "device", PIPELINE).lanes] == [
        "IPU 0", "IPU 1",
    ]  # fmt: skip


def test_tables_are_those_of_the_analyses(store: Store) -> None:
    chosen = Address(report=PIPELINE)
    total = store.report(PIPELINE).dataset.value("execution", "cycles")
    assert execution.path_frame(store, chosen)["cycles"].sum() == total > 0
    assert len(execution.wait_frame(store, chosen)) == len(causes.waits(store.report(PIPELINE)))
    kept = execution.path_frame(
        store, parse("/execution", f"?report={PIPELINE}&filter=name~Largest")
    )
    assert kept["name"].unique().tolist() == ["Newton/LargestChange"]


@pytest.mark.parametrize("external", [True, False])
def test_a_sync_says_who_arrives_last(external: bool, store: Store) -> None:
    joins = joins_of(store.report("uneven"))
    step = int(joins.step[(joins.step >= 0) & (joins.external == external)][0])
    chosen = parse("/execution", f"?report=uneven&step={step}")
    shown = text(step_details.details(store, chosen, "light"))
    assert "Who arrives last" in shown
    assert ("Each IPU waits for its own last tile" in shown) is not external


def test_a_step_that_computes_names_nobody(store: Store) -> None:
    kinds = store.report("uneven").dataset.texts("steps", "type")
    chosen = parse("/execution", f"?report=uneven&step={int((kinds == 'OnTileExecute').argmax())}")
    assert "Who arrives last" not in text(step_details.details(store, chosen, "light"))


def test_arrows_lead_from_the_ipu_that_waits_to_the_one_that_works(store: Store) -> None:
    """IPU 0 works for 1,000 loops of its threads, IPU 1 for 4,000: it waits for 3,000."""
    whole = endpoint.timeline(store, "device", "uneven")
    arrows = waits_in(store, "uneven", whole.extent, -1)
    longest = int(np.argmax(arrows["cycles"]))
    assert (arrows["ipu"][longest], arrows["for_ipu"][longest]) == (0, 1)
    assert arrows["cycles"][longest] == pytest.approx(3000 * THREADS, rel=0.02)
    nowhere = (whole.extent[1] + 10, whole.extent[1] + 20)
    assert waits_in(store, "uneven", nowhere, -1)["step"] == []
    step = next(step for step in arrows["step"] if step >= 0)
    assert set(waits_in(store, "uneven", nowhere, step)["step"]) == {step}


def test_a_stream_copy_says_where_its_data_goes(store: Store) -> None:
    data = store.report(PIPELINE).dataset
    step = int((data.texts("steps", "type") == "StreamCopy").argmax())
    shown = text(step_details.details(store, Address(report=PIPELINE, steps=(step,)), "light"))
    used = data.column("access", "program") == data.column("steps", "program")[step]
    name = data.column("variables", "name")[data.column("access", "variable")[used][0]]
    assert "Where its data goes" in shown and str(name) in shown
