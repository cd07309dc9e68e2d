"""The view of the dashboard that shows the numbers of an answer."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

# The page of a figure or analysis, by the longest of these words that its name has.
PAGES = {
    "": "/summary", "memory": "/memory", "tile": "/memory", "variable": "/memory",
    "vertex": "/memory", "live": "/liveness", "liv": "/liveness", "cycles": "/execution",
    "steps": "/execution", "balance": "/execution", "runs": "/execution",
    "items_per_second": "/summary", "latency": "/summary", "operation": "/operations",
    "layer": "/operations", "module": "/operations", "exchange": "/exchange",
    "program": "/programs", "insight": "/insights", "host": "/trace", "label": "/trace",
    "host_delays": "/together",
    "trace": "/trace", "compare": "/compare", "critical_path": "/execution", "waits": "/execution",
}  # fmt: skip


class Links:
    """Links to a dashboard that serves the same paths, so that its keys of reports are the same."""

    def __init__(self, dashboard: str) -> None:
        self._base = dashboard.rstrip("/")

    def page(self, name: str, report: str, **options: str) -> str:
        """Return the link to the page of a figure or an analysis."""
        word = max((word for word in PAGES if word in name), key=len)
        return f"{self._base}{PAGES[word]}?{urlencode({'report': report, **options})}"

    def finding(self, report: str, row: Mapping[str, object]) -> str:
        """Return the link to the view of a finding of `insights`."""
        from dashboard.address import write
        from dashboard.details.finding_links import finding_address

        return self._base + write(finding_address(report, dict(row)))
