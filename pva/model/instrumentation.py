"""What a program was instrumented with, from its engine options or from what was measured."""

from __future__ import annotations

import enum

from pva.data.dataset import Dataset
from pva.model.show import Shown


class ComputeInstrumentationLevel(enum.Enum):
    """Of what the compute cycles were measured."""

    Off = 0
    Vertex = 1
    Tile = 2
    Ipu = 3
    Device = 4
    Unknown = 5


class ExternalExchangeInstrumentationLevel(enum.Enum):
    """Of what the cycles of external exchanges were measured."""

    Off = 0
    Tile = 1
    Unknown = 2


# What a profiler mode says of compute; one tile may be of the device or of each IPU.
COMPUTE_LEVELS = {
    "VERTICES": ComputeInstrumentationLevel.Vertex,
    "COMPUTE_SETS": ComputeInstrumentationLevel.Tile,
    "SINGLE_TILE_COMPUTE_SETS": ComputeInstrumentationLevel.Device,
}


class InstrumentationSettings(Shown):
    """What was measured on the device; `Unknown` when the report tells in no way."""

    _figures = ("compute", "externalExchange")

    ComputeInstrumentationLevel = ComputeInstrumentationLevel
    ExternalExchangeInstrumentationLevel = ExternalExchangeInstrumentationLevel
    # Both enums of libpva export their members here; where names are equal, the latter wins.
    Vertex = ComputeInstrumentationLevel.Vertex
    Ipu = ComputeInstrumentationLevel.Ipu
    Device = ComputeInstrumentationLevel.Device
    Off = ExternalExchangeInstrumentationLevel.Off
    Tile = ExternalExchangeInstrumentationLevel.Tile
    Unknown = ExternalExchangeInstrumentationLevel.Unknown

    def __init__(self, data: Dataset) -> None:
        self.compute = ComputeInstrumentationLevel.Unknown
        self.externalExchange = ExternalExchangeInstrumentationLevel.Unknown
        if not data.has("engine_options"):
            self._from_mode(data)
            return
        names, values = (data.column("engine_options", name) for name in ("name", "value"))
        options = {name: value.lower() for name, value in zip(names, values, strict=True)}
        instrumented = options.get("debug.instrument", "false")
        self.compute = ComputeInstrumentationLevel.Off
        if options.get("debug.instrumentCompute", instrumented) == "true":
            level = options.get("debug.computeInstrumentationLevel", "tile").capitalize()
            levels = ComputeInstrumentationLevel.__members__
            self.compute = levels.get(level, ComputeInstrumentationLevel.Unknown)
        external = options.get("debug.instrumentExternalExchange", instrumented) == "true"
        self.externalExchange = self.Tile if external else self.Off

    def _from_mode(self, data: Dataset) -> None:
        """Read it from the profiler mode, and from what was measured beside it."""
        if not data.has("execution"):
            return
        mode = str(data.texts("execution", "profiler_mode")[0])
        self.compute = COMPUTE_LEVELS.get(mode, ComputeInstrumentationLevel.Off)
        if data.has("measured_compute_set_cycles_by_ipu"):
            self.compute = ComputeInstrumentationLevel.Ipu
        measured = any(
            data.has(f"measured_{name}_exchange_cycles") for name in ("external", "host")
        )
        self.externalExchange = self.Tile if measured else self.Off
