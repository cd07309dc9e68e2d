"""Trace what a program does on the host: source compatible with libpvti, standard library only.

    import pvti

    channel = pvti.createTraceChannel("training")
    with pvti.Tracepoint(channel, "epoch"):
        ...

Nothing is recorded until the environment variable PVTI_OPTIONS or `startTrace` asks for it.
"""

from __future__ import annotations

import os

from pvti.channel import (
    TraceChannel,
    checkTraceChannel,
    createTraceChannel,
    disableTraceChannel,
    enableTraceChannel,
    listTraceChannel,
    traceDrivers,
    traceFramework,
    tracePoplar,
)
from pvti.heatmap import HeatmapDouble, HeatmapFloat, HeatmapInt
from pvti.instrument import instrument, instrument_fn
from pvti.options import Options, from_environment
from pvti.recorder import closeTrace, getCurrentTraceFilename, start
from pvti.series import Graph, Series
from pvti.tracepoint import Metadata, Tracepoint, createJsonMetadata

__all__ = [
    "Graph",
    "HeatmapDouble",
    "HeatmapFloat",
    "HeatmapInt",
    "Metadata",
    "Series",
    "TraceChannel",
    "Tracepoint",
    "checkTraceChannel",
    "closeTrace",
    "createJsonMetadata",
    "createTraceChannel",
    "disableTraceChannel",
    "enableTraceChannel",
    "getCurrentTraceFilename",
    "instrument",
    "instrument_fn",
    "listTraceChannel",
    "startTrace",
    "traceDrivers",
    "traceFramework",
    "tracePoplar",
]


def startTrace(
    directory: str | os.PathLike[str] = "",
    *,
    channels: tuple[str, ...] = (),
    duration: float = 0.0,
) -> str:
    """Record from now on into a new file in `directory`; give the file's path.

    `channels` (empty: all) and `duration` (seconds; 0: until `closeTrace`) are as in PVTI_OPTIONS.
    A trace that runs already goes on, and its path is given. The file is made by the first event.
    """
    return start(Options(os.fspath(directory), tuple(channels), duration)).path


_options = from_environment(os.environ)
if _options is not None:
    start(_options)
