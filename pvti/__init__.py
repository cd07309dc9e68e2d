"""Trace what a program does on the host: source compatible with libpvti, standard library only.

    import pvti

    channel = pvti.createTraceChannel("training")
    with pvti.Tracepoint(channel, "epoch"):
        ...

Nothing is recorded until the environment variable PVTI_OPTIONS or `startTrace` asks for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from pvti.buffers import Metadata, createJsonMetadata
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
from pvti.implementation import accelerated
from pvti.instrument import instrument, instrument_fn, trace
from pvti.options import FILE, MODES, Options, from_environment
from pvti.recorder import closeTrace, getCurrentTraceFilename, start, writeTrace
from pvti.series import Graph, Series
from pvti.tracepoint import Tracepoint

__all__ = [
    "Graph",
    "HeatmapDouble",
    "HeatmapFloat",
    "HeatmapInt",
    "Metadata",
    "Series",
    "TraceChannel",
    "Tracepoint",
    "accelerated",
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
    "trace",
    "traceDrivers",
    "traceFramework",
    "tracePoplar",
    "writeTrace",
]


def startTrace(
    directory: str | os.PathLike[str] = "",
    *,
    channels: str | Iterable[str] = (),
    duration: float = Options().duration,
    mode: str = FILE,
    seconds: float = Options().seconds,
) -> str:
    """Record from now on into a new file in `directory`; give the file's path.

    `channels` (empty: all), `duration` (seconds; 0: until `closeTrace`), `mode` ("ring": hold the
    last `seconds` in memory, and write them on `writeTrace`, at the end and on an exception that
    nobody handles) are as in PVTI_OPTIONS. A trace that runs already goes on, and its path is
    given. The file is made by the first event. Raises ValueError for another mode.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     path = startTrace(directory)
    ...     with Tracepoint(createTraceChannel("loader"), "read a batch"):
    ...         pass
    ...     closeTrace()
    ...     os.listdir(directory) == [os.path.basename(path)]
    True
    """
    if mode not in MODES:
        raise ValueError(f"mode {mode!r}: one of {', '.join(MODES)}")
    names = (channels,) if isinstance(channels, str) else tuple(channels)
    return start(Options(os.fspath(directory), names, duration, mode, seconds)).place.path


def __dir__() -> list[str]:
    return __all__


_options = from_environment(os.environ)
if _options is not None:
    start(_options)
