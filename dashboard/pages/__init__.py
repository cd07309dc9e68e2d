"""The pages, in the order of the menu: an explicit table."""

from __future__ import annotations

from dashboard.pages import execution, liveness, memory, operations, programs, start, summary, trace
from dashboard.shell import Page

PAGES: tuple[Page, ...] = (start, summary, memory, liveness, programs, operations, execution, trace)
