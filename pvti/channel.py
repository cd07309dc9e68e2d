"""Channels, and which of them are recorded."""

from __future__ import annotations

from pvti.buffers import Buffers, LabelKeys, catalogue, next_number
from pvti.implementation import Channel
from pvti.spans import writable


class TraceChannel(Channel):
    """A named group of events, recorded or not as a whole.

    `begins` holds the buffers that begins go to, None when they are not recorded; `ends` likewise.
    A channel disabled while a trace runs still takes the ends of events begun before.
    """

    __slots__ = ("name", "enabled")

    def __init__(self, name: str) -> None:
        number = next_number["channels"]()
        catalogue["channels"].append((number, writable(name)))
        self.name = name
        self.enabled = True
        self.begins = self.ends = None
        self.keys = LabelKeys(number)

    def __repr__(self) -> str:
        return f"TraceChannel({self.name!r})"


_channels: dict[str, TraceChannel] = {}
_recording: Buffers | None = None
_wanted: tuple[str, ...] = ()


def createTraceChannel(name: str) -> TraceChannel:
    """Make a channel; the same name gives the same channel.

    >>> createTraceChannel("loader") is createTraceChannel("loader")
    True
    """
    channel = _channels.get(name)
    if channel is None:
        channel = _channels.setdefault(name, TraceChannel(name))
        channel.enabled = not _wanted or name in _wanted
        _connect(channel)
    return channel


def enableTraceChannel(channel: TraceChannel) -> None:
    """Record what begins on `channel` from now on, while a trace runs.

    >>> channel = createTraceChannel("loader")
    >>> enableTraceChannel(channel)
    >>> checkTraceChannel(channel)
    True
    """
    channel.enabled = True
    _connect(channel)


def disableTraceChannel(channel: TraceChannel) -> None:
    """Record nothing more that begins on `channel`.

    >>> channel = createTraceChannel("noise")
    >>> disableTraceChannel(channel)
    >>> checkTraceChannel(channel)
    False
    """
    channel.enabled = False
    channel.begins = None


def checkTraceChannel(channel: TraceChannel) -> bool:
    """Return whether `channel` is enabled.

    >>> checkTraceChannel(traceFramework)
    True
    """
    return channel.enabled


def listTraceChannel() -> list[list[str | bool]]:
    """List each channel's name and whether it is enabled, in order of creation.

    >>> listTraceChannel()[:3]
    [['Drivers', True], ['Poplar', True], ['Framework', True]]
    """
    return [[channel.name, channel.enabled] for channel in list(_channels.values())]


def choose(names: tuple[str, ...]) -> None:
    """Enable the channels named, those made later included, and disable all others; empty: all."""
    global _wanted
    _wanted = names
    for channel in list(_channels.values()):
        channel.enabled = not names or channel.name in names


def send_to(buffers: Buffers | None) -> None:
    """Let the enabled channels record into `buffers`; None: record nothing."""
    global _recording
    _recording = buffers
    for channel in list(_channels.values()):
        channel.begins = channel.ends = buffers if channel.enabled else None


def recording() -> Buffers | None:
    """Return where events go now, None while nothing is recorded."""
    return _recording


def _connect(channel: TraceChannel) -> None:
    if channel.enabled and _recording is not None:
        channel.begins = channel.ends = _recording


traceDrivers = createTraceChannel("Drivers")
tracePoplar = createTraceChannel("Poplar")
traceFramework = createTraceChannel("Framework")
