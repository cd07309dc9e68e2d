"""The program tree and the operations of reports in which something is not there."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from dashboard.address import Address, parse
from dashboard.elements.components import EXPECTED
from dashboard.pages.operations import details as operation_details
from dashboard.pages.operations import page as operations
from dashboard.pages.programs import details as program_details
from dashboard.pages.programs import page as programs
from pva import schema
from pva.report import Report
from tests.builders import small_report

PARTS = [*small_report().tables, *small_report().arrays]
# Of rows like these a report has at least one.
NEVER_EMPTY = {"report", "target", "graph", "execution", "tile_cycles", "liveness",
               "memory_by_tile"}  # fmt: skip


class OneReport:
    """A store of one report in memory."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._derived: dict[str, Any] = {}

    def report(self, key: str = "") -> Report:
        """Return the report, whatever its key."""
        return self._report

    def derived(self, key: str, name: str, make: Callable[[], Any]) -> Any:
        """Return what was made under a name."""
        if name not in self._derived:
            self._derived[name] = make()
        return self._derived[name]


@cache
def changed(part: str, empty: bool) -> OneReport:
    if not empty:
        return OneReport(Report.of(small_report(**{part: None})))
    columns = {column.name: [] for column in schema.TABLE[part].columns}
    return OneReport(Report.of(small_report(**{part: columns})))


def of_operations(store: Any, chosen: Address) -> Any:
    costs = operations.costs_of(store, chosen)
    return operation_details.details(store, chosen, "light", costs)


VIEWS: dict[str, tuple[Callable[[Any, Address], Any], str]] = {
    "tree": (programs.layout, ""),
    "lines": (programs.shown_lines, "program=6&find=multiply"),
    **{
        f"step, {tab}": (
            lambda store, chosen: program_details.details(store, chosen, "light"),
            f"program=6&tab={tab}",
        )
        for tab in ("details", "vertices", "debug")
    },
    "operations": (operations.layout, ""),
    "totals": (of_operations, "layer=poplibs"),
    **{
        f"operation, {tab}": (of_operations, f"operation=multiply&tab={tab}")
        for tab in ("tree", "flops", "debug")
    },
}


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_shown_or_says_what_is_not_there(view: str, empty: bool) -> None:
    show, search = VIEWS[view]
    parts = set(small_report().tables) - NEVER_EMPTY if empty else PARTS
    for part in sorted(parts):
        try:
            show(changed(part, empty), parse("/", search))
        except EXPECTED as problem:
            assert "\n" not in str(problem), part
