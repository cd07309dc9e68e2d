"""Every table that `trace.frames` and `trace.sql` have, declared once. Times are nanoseconds since the trace began."""

from __future__ import annotations

from pva.schema.declaration import Column, Table, code, fraction, text, whole


def _table(name: str, meaning: str, *columns: Column) -> Table:
    return Table(name, "trace", "", "columns", columns, meaning, "tracing, by pvti", wide=True)


TRACE_TABLES: tuple[Table, ...] = (
    _table(
        "processes",
        "what ran",
        whole("pid", "", "identifier the system gave it"),
        text("name", "file name of the program"),
        whole("threads", "", "its threads that recorded something"),
        whole("events", "", "their events"),
    ),
    _table(
        "threads",
        "threads that recorded something, in the order in which they first did",
        whole("process", "", "row of processes"),
        whole("pid", "", "identifier of its process"),
        whole("tid", "", "identifier the system gave it"),
        text("name", "name the program gave it"),
        whole("events", "", "its events"),
        whole("depth", "", "how many events lie in each other at most"),
        whole("begin_ns", "ns", "begin of its first event"),
        whole("end_ns", "ns", "end of its last event"),
        whole("busy_ns", "ns", "time inside of events"),
    ),
    _table(
        "channels",
        "channels, in order of creation",
        text("channel", "its name"),
        whole("labels", "", "different texts of its events"),
        whole("events", "", "its events"),
        whole("total_ns", "ns", "their durations together"),
        whole("self_ns", "ns", "the same without what lies directly inside them"),
    ),
    _table(
        "labels",
        "events of each label together, the most self time first",
        code("label", (), "text of the events"),
        code("channel", (), "name of their channel"),
        whole("count", "", "how many there are; one still open counts, up to the last time known"),
        whole("total_ns", "ns", "their durations together; one inside another of its label counts twice"),
        whole("self_ns", "ns", "the same without what lies directly inside them"),
        fraction("mean_ns", "ns", "mean duration"),
        whole("min_ns", "ns", "shortest"),
        fraction("p50_ns", "ns", "median"),
        fraction("p90_ns", "ns", "nine of ten take no longer"),
        fraction("p99_ns", "ns", "99 of 100 take no longer"),
        whole("max_ns", "ns", "longest"),
    ),
    _table(
        "events",
        "events with a duration, thread after thread, each in the order of begin",
        whole("thread", "", "row of threads"),
        whole("begin_ns", "ns", "begin"),
        whole("duration_ns", "ns", "duration"),
        whole("self_ns", "ns", "the same without what lies directly inside"),
        whole("depth", "", "0 for the outermost"),
        whole("parent", "", "row of events: the one around it, -1 for none"),
        code("label", (), "its text"),
        code("channel", (), "name of its channel"),
        Column("open", "bool", "", "whether it had not ended: it is shown up to the last time known"),
        code("metadata", (), "JSON that the program attached; missing where there is none"),
    ),
    _table(
        "instants",
        "events without duration, in order of time",
        whole("time_ns", "ns", "when"),
        whole("thread", "", "row of threads"),
        code("label", (), "its text"),
        code("channel", (), "name of its channel"),
        code("metadata", (), "JSON that the program attached; missing where there is none"),
    ),
    _table(
        "flows",
        "what led to what, such as a launch to its kernel, in order of time; Chrome traces tell it",
        whole("time_ns", "ns", "when it leaves, in the event that is open on its thread then"),
        whole("thread", "", "row of threads"),
        whole("to_time_ns", "ns", "when it arrives"),
        whole("to_thread", "", "row of threads"),
        code("label", (), "its name"),
        code("channel", (), "its category"),
    ),
    _table(
        "series",
        "points of line graphs, line after line",
        whole("pid", "", "identifier of the process"),
        code("graph", (), "name of the graph"),
        code("series", (), "name of the line"),
        code("unit", (), "unit of its values"),
        whole("time_ns", "ns", "when"),
        fraction("value", "", "the value; missing where it was no number"),
    ),
    _table(
        "heatmaps",
        "cells of histograms over time that hold a value, map after map",
        whole("pid", "", "identifier of the process"),
        code("heatmap", (), "its name"),
        code("unit", (), "unit of its edges"),
        whole("time_ns", "ns", "when the values were added"),
        fraction("low", "", "lower edge of the bin; minus infinity below all (and for no numbers)"),
        fraction("high", "", "upper edge of the bin; infinity above all"),
        whole("count", "", "values in the bin"),
    ),
)  # fmt: skip
TRACE_TABLE = {table.name: table for table in TRACE_TABLES}
