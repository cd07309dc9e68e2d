"""The pages, in the order of the menu: an explicit table."""

from __future__ import annotations

from dashboard.pages import (
    compare,
    documentation,
    exchange,
    execution,
    explore,
    flames,
    graph,
    insights,
    instances,
    liveness,
    memory,
    operations,
    programs,
    serving,
    start,
    summary,
    together,
    trace,
)
from dashboard.shell import Page

PAGES: tuple[Page, ...] = (
    start,
    summary,
    insights,
    memory,
    liveness,
    programs,
    operations,
    graph,
    execution,
    exchange,
    flames,
    compare,
    trace,
    together,
    instances,
    serving,
    explore,
    documentation,
)
