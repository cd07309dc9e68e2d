"""Modules of PyTorch where a report tells them: live bytes by module, and the pages that have them.

The report is the small one, of which programs and variables are said to be of two modules.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from dashboard.address import parse
from dashboard.pages import insights
from dashboard.pages.execution import page as execution
from dashboard.pages.liveness import tabs as liveness_tabs
from dashboard.store import Store
from dashboard.timeline.endpoint import timeline
from pva.analysis.operations.layers import MODULE, variable_owners_in
from pva.analysis.operations.module_lives import live_by_module
from pva.report import Report
from tests.builders import small_report, write_report
from tests.dashboard.layouts import parts

PATHS = ("", "encoder", "encoder.fc1", "head")  # of the contexts 1000, 1001, ...


def with_modules() -> Any:
    """Make a report whose programs and variables are of modules in turn, the last of none."""
    data = small_report()
    contexts = {name: list(values) for name, values in data.table("debug_contexts").items()}
    for number, path in enumerate(PATHS):
        told = {"module": path, "class": "nn.Linear", "source": f"net.py:{number}"}
        row = {"id": 1000 + number, "parent": -1, "layer": "poptorch", "name": path or "Net",
               "json": json.dumps({"arguments": told})}  # fmt: skip
        for name, values in contexts.items():
            values.append(row.get(name, "" if isinstance(values[0], str) else -1))
    changed: dict[str, Any] = {"debug_contexts": contexts}
    for table in ("programs", "variables"):
        rows = np.arange(len(data.column(table, "name")))
        of = np.where(rows < rows[-1], 1000 + rows % 3 + 1, -1)
        changed[table] = data.table(table) | {"debug_context": of}
    return small_report(**changed)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store([write_report(tmp_path_factory.mktemp("modules") / "net", with_modules())])


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store([write_report(tmp_path_factory.mktemp("plain") / "plain", small_report())])


def test_what_is_live_by_module_adds_up_along_the_tree() -> None:
    report = Report.of(with_modules())
    frame = live_by_module(report, steps=(2, 6)).set_index("operation")
    data = report.dataset
    owner = variable_owners_in(report, MODULE)
    sizes, always = (data.column("variables", name) for name in ("bytes", "always_live"))
    assert list(frame["depth"]) == [0, 1, 2, 1, 0] and frame.index[-1] == "(outside)"
    begin, end, of = (data.column("variable_intervals", n) for n in ("begin", "end", "variable"))
    for step in (2, 6):
        live = np.unique(of[(begin <= step) & (step < end)])
        live = live[~always[live]]
        for module in PATHS[1:]:
            mine = [
                n for n in live if str(owner[n]) == module or str(owner[n]).startswith(f"{module}.")
            ]
            assert frame.loc[module, f"step_{step}"] == sizes[mine].sum()
        roots = frame.loc[["Net", "(outside)"], f"step_{step}"].sum()
        assert roots == data.column("liveness_steps", "bytes")[step]
    assert (frame["change"] == frame["step_6"] - frame["step_2"]).all()
    of_encoder = [str(name).startswith("encoder") for name in owner]
    assert frame.loc["encoder", "always_live"] == sizes[always & of_encoder].sum()


def test_without_modules_all_is_outside() -> None:
    frame = live_by_module(Report.of(small_report()))
    assert frame["operation"].tolist() == ["(outside)"]


def test_tabs_of_modules_are_there_where_the_report_tells_them(store: Store, plain: Store) -> None:
    for of, expected in ((store, True), (plain, False)):
        report = of.report()
        tabs = [value for value, *_ in liveness_tabs.choices(report)]
        shown = [value for value, _ in insights._tabs(report)]
        layers = [value for value, _ in execution._layers(report)]
        assert [("modules" in some) for some in (tabs, shown, layers)] == [expected] * 3


@pytest.mark.parametrize("folded", ["", "3:encoder"])
def test_tables_of_modules_are_trees(store: Store, folded: str) -> None:
    state = parse("/liveness", f"?tab=modules&folded={folded}")
    inside = [] if folded else ["fc1"]
    for frame in (liveness_tabs.modules_frame(store, state), insights.modules(store, state)):
        names = [name for name in frame["label"] if not name.startswith("(")]
        assert sorted(names) == sorted(["Net", "encoder", *inside, "head"])
        assert dict(zip(frame["label"], frame["source"], strict=True))["head"] == "net.py:3"
    made = liveness_tabs.modules(store, state, "light")
    grid = next(part for part in parts(made) if getattr(part, "id", "") == "liveness-modules")
    assert [column["headerName"] for column in grid.columnDefs][:2] == ["Module", "Class"]


def test_layers_of_the_timeline_are_modules(store: Store) -> None:
    whole = timeline(store, "device", "", {"show": "modules"})
    named: list[set[str]] = [set(), set(), set()]
    for lane in whole.lanes:
        rows = [lane.first + at for at, kind in enumerate(lane.kinds) if kind == "layer"]
        for names, row in zip(named, rows, strict=True):
            labels = whole.tracks.label[slice(*whole.tracks.offset[row : row + 2])]
            names |= {whole.labels[label] for label in labels.tolist()}
    assert named == [{"Net"}, {"encoder", "head"}, {"encoder.fc1"}]
    assert "Net" not in timeline(store, "device", "").labels
