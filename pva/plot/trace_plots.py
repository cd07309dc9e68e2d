"""`trace.plot`: the figures of a host trace, each with title and units."""

from __future__ import annotations

import plotly.graph_objects as go

from pva.analysis.host.labels import label_statistics
from pva.analysis.selection import SelectionError
from pva.plot import operations, spans
from pva.plot.finished import finished
from pva.plot.host import host_timeline
from pva.plot.theme import Theme
from pva.trace import Trace


class TracePlots:
    """The figures of one host trace. Each method gives a plotly figure; all take a `theme`."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def timeline(
        self, begin_ns: int | None = None, end_ns: int | None = None, *, theme: Theme = "light"
    ) -> go.Figure:
        """Draw what each thread did from one time to another, or all along.

        Where many events are close together, one span stands for them. Raises SelectionError.
        """
        laid_out = host_timeline(self._trace).timeline
        first, last = laid_out.extent
        window = first if begin_ns is None else begin_ns, last if end_ns is None else end_ns
        if window[0] >= window[1]:
            problem = f"timeline({begin_ns}, {end_ns})"
            raise SelectionError(problem, "ends before it begins", f"from {first} to {last} ns")
        drawn = spans.timeline_figure(laid_out, window, theme=theme)
        return finished(drawn, "Host trace, events by thread", self._name, theme=theme)

    def labels(self, *, theme: Theme = "light") -> go.Figure:
        """Draw the labels with most self time, which is without what is inside their events."""
        drawn = operations.label_bars(label_statistics(self._trace).frame(), theme=theme)
        return finished(drawn, "Labels by self time", self._name, theme=theme)

    @property
    def _name(self) -> str:
        return self._trace.path.name
