"""Where the dashboard shows the details of a finding of `insights`."""

from __future__ import annotations

from typing import Any

from dashboard.address import Address, Filter

# The view that has the details of an analysis: path, and what its address says beside the finding.
VIEWS: dict[str, tuple[str, dict[str, str]]] = {
    "fullest_tiles": ("/memory", {}),
    "memory_by_tile": ("/memory", {}),
    "fragmentation": ("/memory", {}),
    "variable_spread": ("/memory", {"graph": "variables", "tab": "variables"}),
    "memory_by_compute_set": ("/memory", {"tab": "compute-sets"}),
    "largest_exchanges": ("/memory", {"tab": "exchanges"}),
    "live_at_peak": ("/liveness", {}),
    "memory_by_type": ("/liveness", {}),
    "variable_lifetimes": ("/liveness", {"tab": "lifetimes"}),
    "always_live_variables": ("/liveness", {"tab": "always"}),
    "thread_balance": ("/operations", {}),
    "flops_by_compute_set": ("/operations", {}),
    "tile_balance": ("/execution", {}),
    "sync_waits": ("/execution", {}),
    "overlap_io": ("/execution", {}),
    "longest_steps": ("/execution", {}),
    "main_run": ("/summary", {}),
    "host_delays": ("/together", {}),
    "ipu_balance": ("/execution", {"tab": "waits"}),
    "critical_path": ("/execution", {"path": "on", "tab": "path"}),
}


def finding_address(report: str, row: dict[str, Any]) -> Address:
    """Return the view of a finding, a row of `insights`, for the key of its report."""
    path, options = VIEWS[row["show"]]
    if row["variable"] >= 0:
        options = options | {"variable": str(row["variable"])}
    return Address(
        path,
        report,
        tiles=(row["tile"],) if row["tile"] >= 0 and path == "/memory" else (),
        steps=(row["step"],) if row["step"] >= 0 else (),
        filter=Filter("name", "==", row["name"]) if row["name"] else None,
        options=tuple(sorted(options.items())),
    )
