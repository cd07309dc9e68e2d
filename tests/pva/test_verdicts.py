"""`report.check()` tells of each law whether the report keeps it."""

from __future__ import annotations

from pva.check import LAWS
from pva.report import Report
from tests.builders import small_report


def test_a_report_that_adds_up_keeps_every_law() -> None:
    frame = Report.of(small_report()).check()
    assert frame["law"].tolist() == [law.name for law in LAWS]
    assert frame["holds"].all() and frame["holds"].notna().all()
    assert frame["meaning"].str.len().min() > 10


def test_a_breach_is_told_with_its_place() -> None:
    total = small_report().column("memory_by_tile", "total").copy()
    total[3] += 1
    memory = small_report().table("memory_by_tile") | {"total": total}
    frame = Report.of(small_report(memory_by_tile=memory)).check()
    broken = frame[frame["holds"] == False].set_index("law")  # noqa: E712
    row = broken.loc["regions_sum_to_the_total"]
    assert "tile 3" in row["where"] and int(row["found"]) == int(total[3])
    assert row["places"] == 1


def test_a_law_about_what_was_not_recorded_says_what_it_needs() -> None:
    frame = Report.of(small_report().select("graph")).check().set_index("law")
    row = frame.loc["time_does_not_run_back"]
    assert (row["holds"] is not True, row["found"].startswith("no steps")) == (True, True)
    assert str(frame["holds"].dtype) == "boolean" and frame["holds"].isna().any()
