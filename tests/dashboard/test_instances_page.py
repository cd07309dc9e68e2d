"""The page Instances: who holds the others up, when and why, and who is not shown."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dashboard.address import Address, parse
from dashboard.figures.instances import utilisation_map
from dashboard.pages import instances
from dashboard.store import Store
from pva.errors import NotRecordedError, PvaError
from tests.builders import write_report
from tests.dashboard.layouts import parts, words
from tests.many.planted import HOUR, Plan, write_planted
from tests.many.runs import other_report, write_instances

PLAN = Plan(instances=4, culprit=2, phase="callback", late=1.0, noise=0.0, hosts=2, apart=HOUR)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store([write_planted(tmp_path_factory.mktemp("run"), PLAN)])


def chosen(search: str = "") -> Address:
    return parse("/instances", search)


def test_the_culprit_its_wait_and_its_cause_head_the_page(store: Store) -> None:
    said = words(instances.answer(store, chosen(), "light")).replace("\u00a0", " ")
    # 19 steps of 9.5 ms, each 10 ms longer for one of them.
    assert said.startswith(
        "Instance 2 on h1 holds the others up for 190.0 ms (51.3 % of the time), "
        "by stream callbacks; most at step"
    )
    assert said.endswith("4 instances on 2 hosts; 4 reports of one graph.")


def test_a_run_without_a_culprit_says_so(tmp_path: Path) -> None:
    store = Store([write_planted(tmp_path, Plan(instances=4))])
    said = words(instances.answer(store, chosen(), "light"))
    assert said.startswith("No instance holds the others up: the most that they wait for one is ")


def test_the_map_has_a_row_for_each_instance_and_first_what_shows_the_cause(store: Store) -> None:
    figure = instances.heat_map(store, chosen(), "light")
    shares = np.asarray(figure.data[0].z)
    assert shares.shape == (4, 60)
    assert shares[2].mean() > 1.5 * shares[1].mean()  # in callbacks
    assert np.unique(figure.data[0].customdata, axis=1).ravel().tolist() == [0, 1, 2, 3]
    waits = np.asarray(instances.heat_map(store, chosen("in=collective"), "dark").data[0].z)
    assert waits[2].mean() < 0.2 * waits[1].mean()


def test_what_is_chosen_leads_to_the_pages_of_its_instance(store: Store) -> None:
    links = [one.href for one in parts(instances.chosen(store, chosen("instance=3"), "light"))
             if hasattr(one, "href")]  # fmt: skip
    assert "/summary?report=instance_0003" in links and "/trace?report=instance_0003" in links
    assert "nothing that can be shown" in words(
        instances.chosen(store, chosen("instance=77"), "light")
    )


def test_the_pace_draws_the_worst_and_the_chosen_by_name(store: Store) -> None:
    for column, _ in instances.PACES:
        figure = instances.pace(store, chosen(f"pace={column}&instance=1"), "dark")
        assert [line.name for line in figure.data] == [
            "the others", "instance 2 on h1", "instance 1 on h0"
        ]  # fmt: skip


def test_the_extremes_of_the_spread_are_named(store: Store) -> None:
    texts = [note.text for note in instances.spread(store, chosen(), "light").layout.annotations]
    assert "most: instance 2, 190.0 ms" in texts
    assert "all: 1.0 s" in texts


def test_clocks_say_how_fine_they_are_and_who_is_not_compared(tmp_path: Path, store: Store) -> None:
    assert "corrected by their collectives" in words(instances.clocks(store, chosen(), "light"))
    plan = Plan(instances=2, hosts=2, collectives=False)
    apart = Store([write_planted(tmp_path, plan)])
    said = words(instances.clocks(apart, chosen(), "light"))
    assert said.startswith("Instance 1: no 3 collectives that it ends together with instance 0")


def test_an_instance_that_never_wrote_is_named_and_the_others_are_shown(tmp_path: Path) -> None:
    write_planted(tmp_path, Plan(instances=3))
    for file in (tmp_path / "instance_0001").iterdir():
        file.unlink()
    said = words(instances.layout(Store([tmp_path]), chosen()))
    assert "Left out: instance 1: " in said and "no report" in said


def test_without_traces_the_page_has_totals_and_graphs(tmp_path: Path) -> None:
    store = Store([write_instances(tmp_path, 3, {1: other_report()})])
    said = words(instances.answer(store, chosen(), "light"))
    assert said.startswith("No two instances have a host trace with runs")
    assert said.endswith("instance 1 compiled another graph than most.")
    for draw in (instances.heat_map, instances.pace, instances.spread):
        draw(store, chosen(), "light")


def test_a_report_of_no_run_has_no_such_page(tmp_path: Path) -> None:
    store = Store([write_report(tmp_path / "one")])
    assert not instances.available(store, "")
    with pytest.raises(NotRecordedError, match="not of a run of several instances"):
        instances.layout(store, chosen())


def test_an_instance_alone_does_not_lead_out_of_the_paths_given(tmp_path: Path) -> None:
    write_instances(tmp_path / "run", 2)
    assert Store([tmp_path / "run" / "instance_0001"]).run() is None


def test_an_instance_that_is_a_link_to_elsewhere_is_refused(tmp_path: Path) -> None:
    write_instances(tmp_path / "run", 2)
    outside = write_report(tmp_path / "outside")
    (tmp_path / "run" / "instance_0002").symlink_to(outside)
    with pytest.raises(PvaError, match="instance_0002: a link out of the paths given"):
        Store([tmp_path / "run"]).run("instance_0000")


def test_names_of_hosts_are_data(tmp_path: Path) -> None:
    import json

    write_planted(tmp_path, Plan(instances=2))
    for place in (0, 1):
        file = tmp_path / f"instance_000{place}" / "instance.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"host": "<script>../"}))
    figure = instances.heat_map(Store([tmp_path]), chosen(), "light")
    assert figure.layout.yaxis.ticktext[0] == "0 on &lt;script&gt;../"


def test_times_below_the_map_are_round_and_lie_where_they_belong() -> None:
    begin = 0.38e9 + 0.2e9 * np.arange(10)
    row = {"instance": 0, "part": range(10), "begin_ns": begin, "end_ns": begin + 0.2e9, "run": 0.5}
    axis = utilisation_map(pd.DataFrame(row), "run", "in runs", ["0"], "light").layout.xaxis
    assert axis.ticktext == ("0.5", "1", "1.5", "2")
    assert np.allclose(axis.tickvals, [0.1, 2.6, 5.1, 7.6])  # 0.12 s of 0.2 s into the first part
