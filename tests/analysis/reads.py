"""Which parts of a report each analysis asks for: it cannot miss any other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from pva import schema
from pva.data.dataset import Dataset
from pva.report import Report
from tests.builders import small_report
from tests.fuzz.walk import Walk, ask


class Watched(frozenset[str]):
    """Names of parts; those that are asked for are added to `asked`."""

    asked: set[str]

    def __contains__(self, name: object) -> bool:
        self.asked.add(str(name))
        return super().__contains__(name)

    def __iter__(self) -> Iterator[str]:
        self.asked.update(super().__iter__())
        return super().__iter__()


@cache
def parts_read(analysis: str) -> frozenset[str]:
    """Return the tables and arrays of the small report that an analysis of it asks for."""
    source: Any = small_report().source
    asked: set[str] = set()
    for kind in ("tables", "arrays"):
        watched = Watched(getattr(source, kind)())
        watched.asked = asked
        setattr(source, kind, lambda watched=watched: watched)
    report = Report.of(Dataset(source))
    asked.clear()
    ask(Walk(), "report", report, [analysis])
    return frozenset(asked & {*schema.TABLE, *schema.ARRAY})
