"""The three reports of a session, and what they say when nothing is profiled."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from simulator import engine_report
from simulator.engine import Engine
from simulator.profile.serialize import serializeToCBOR, serializeToJSON

NOT_ENABLED = "Execution profiling not enabled"
NOTHING: dict[str, Any] = {"profilerMode": "NONE"}

# Any of these engine options turns profiling on.
SWITCHES = (
    "debug.instrument",
    "debug.instrumentCompute",
    "debug.instrumentExternalExchange",
    "debug.instrumentHostExchange",
    "autoReport.outputExecutionProfile",
)


def is_profiled(options: Mapping[str, object]) -> bool:
    """Return whether resolved engine options ask for a profile of runs."""
    return any(options[name] for name in SWITCHES)


def summary(engine: Engine, options: Mapping[str, object], *, profiled: bool) -> str:
    """Return the profile's summary as text; without profiling that of the graph alone."""
    text = io.StringIO()
    if profiled:
        engine.printProfileSummary(text, options)
        return text.getvalue()
    engine_report.printGraphSummary(text, engine.getGraphProfile(), options)
    return f"{text.getvalue()}{NOT_ENABLED}\n"


def graph_report(engine: Engine, *, cbor: bool) -> str | bytes:
    """Return the graph profile as JSON, or as CBOR."""
    return encoded(engine.getGraphProfile(), cbor=cbor)


def execution_report(engine: Engine, *, cbor: bool, profiled: bool) -> str | bytes:
    """Return the execution profile as JSON, or as CBOR."""
    return encoded(engine.getExecutionProfile() if profiled else NOTHING, cbor=cbor)


def encoded(value: Mapping[str, object], *, cbor: bool) -> str | bytes:
    """Return a document as the text of JSON, or as the bytes of CBOR."""
    if cbor:
        data = io.BytesIO()
        serializeToCBOR(data, value)
        return data.getvalue()
    text = io.StringIO()
    serializeToJSON(text, value)
    return text.getvalue().rstrip("\n")
