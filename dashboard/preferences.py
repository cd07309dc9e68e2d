"""What each reader chooses for all pages: light or dark, units, cycles or time, which runs count.

Kept in cookies, so that the first answer already has them; which runs count is in the address, too.
`apply` runs before every request and `pva.units` then writes as chosen: pages and figures need to
do nothing. The clock that turns cycles into time is that of the report of the request; `clocked`
sets it.
"""

from __future__ import annotations

from contextlib import suppress

from flask import Flask, has_request_context, request

from dashboard.store import Store
from pva.analysis.execution.steady import ALL, STEADY
from pva.analysis.machine import clock_frequency
from pva.errors import PvaError
from pva.plot import theme
from pva.units import BYTE_STEPS, Writing, write_as

SIZES, CYCLES, RUNS = (
    "tilescope-units",
    "tilescope-cycles",
    "tilescope-runs",
)  # the cookies; assets/controls.js writes them, and early.js which runs the address asks for
SIZE_WORDS = {
    "kB": "kB, 1,024 bytes",
    "KiB": "KiB, 1,024 bytes",
    "SI": "kB, 1,000 bytes",
    "B": "bytes",
}
CYCLE_WORDS = {"cycles": "cycles", "time": "time"}
RUN_WORDS = {STEADY: "steady state", ALL: "all runs"}


def sizes() -> str:
    """Return the key of the units of bytes that the browser asks for."""
    choice = request.cookies.get(SIZES, "")
    return choice if choice in BYTE_STEPS else Writing().sizes


def cycles() -> str:
    """Return whether the browser asks for `cycles` or `time`."""
    choice = request.cookies.get(CYCLES, "")
    return choice if choice in CYCLE_WORDS else "cycles"


def runs() -> str:
    """Return which runs the address asks for; outside of a request those of the steady state.

    Requests of the page bring it in a cookie, which assets/early.js writes.
    """
    in_request = has_request_context()
    choice = request.args.get("runs", request.cookies.get(RUNS, "")) if in_request else ""
    return choice if choice in RUN_WORDS else STEADY


def chosen_theme() -> theme.Theme:
    """Return the theme that the browser asks for; assets/early.js keeps it in a cookie."""
    choice = request.cookies.get("tilescope-theme", "")
    return next((name for name in theme.THEMES if name == choice), theme.THEMES[0])


def chosen_units() -> tuple[str, str, str]:
    """Return all that changes how figures are written; outside of a request what is usual."""
    usual = (Writing().sizes, "cycles", runs())
    return (sizes(), cycles(), runs()) if has_request_context() else usual


def clocked(store: Store, report: str) -> None:
    """Write cycles of this report as time, if the browser asks for it.

    What cannot be opened has no clock; who shows it says why.
    """
    if not has_request_context() or cycles() != "time":
        return
    with suppress(PvaError):
        if store.has_report(report):
            write_as(Writing(sizes(), clock_frequency(store.report(report))))


def follow(server: Flask) -> None:
    """Register a hook by which every request writes numbers as its cookies say."""
    server.before_request(lambda: write_as(Writing(sizes())))
