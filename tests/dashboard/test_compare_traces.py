"""Compare of two host traces: labels by their own time, which adds up."""

import json
from pathlib import Path

import pytest

from dashboard.address import Address
from dashboard.pages.compare import page as compare
from dashboard.pages.compare import traces as compare_traces
from dashboard.store import Store
from pva import openTrace
from pva.analysis.whole_report.comparison import compare_labels
from tests.builders import write_report

TRACES = Path(__file__).parents[1] / "traces"
STATE = Address("/compare", "step_before.json.gz", "step_after.json.gz")


@pytest.fixture(scope="module")
def store() -> Store:
    return Store([TRACES / STATE.report, TRACES / STATE.against])


def written(path: Path, *events: tuple[str, int, int]) -> Path:
    """Write events of one thread: label, begin and length in microseconds."""
    rows = [
        {"name": name, "ph": "X", "ts": begin, "dur": length, "pid": 1, "tid": 1}
        for name, begin, length in events
    ]
    path.write_text(json.dumps({"traceEvents": rows}))
    return path


def test_labels_are_compared_without_the_events_inside_them(tmp_path: Path) -> None:
    before = written(tmp_path / "a.json", ("step", 0, 10), ("load", 2, 3), ("load", 6, 1))
    after = written(tmp_path / "b.json", ("step", 0, 9), ("load", 2, 5), ("save", 20, 4))
    frame = compare_labels(openTrace(before), openTrace(after)).set_index("label")
    own = frame[["before", "after", "change"]].to_numpy().T.tolist()
    assert frame.index.tolist() == ["save", "step", "load"]
    assert own == [[0, 6000, 4000], [4000, 4000, 5000], [4000, -2000, 1000]]
    assert frame["events_before"].tolist() == [0, 1, 2]
    assert frame["events_after"].tolist() == [1, 1, 1]
    assert frame["in"].tolist() == ["after", "both", "both"]


def test_the_answer_names_the_label_that_changed_most(store: Store) -> None:
    told = str(compare_traces.answer(store, STATE, "light")).replace("\\xa0", " ")
    assert "step_after.json.gz spends 147.0 µs more in events (+0.1 %)" in told
    assert "All2All_Pooled_Req changed most" in told


def test_compare_is_offered_for_two_reports_or_two_traces(store: Store, tmp_path: Path) -> None:
    assert compare.available(store, STATE.report)
    one = Store([write_report(tmp_path / "small"), TRACES / STATE.report])
    assert not compare.available(one, STATE.report)
    assert not compare.available(one, "small")
