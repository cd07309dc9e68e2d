"""Calls of a session that need a compiled program, and what they say without one."""

from __future__ import annotations

LOADING = ("run", "weightsFromHost")  # calls that load the engine onto the device if need be


def unprepared(what: str) -> str:
    """Return what is wrong with a call before `prepareDevice`, in PopART's words."""
    if what.startswith("get") and what.endswith("Report"):
        return f"{what}: Session must have been prepared before a report can be fetched"
    if what == "loadEngineAndConnectStreams":
        return f"{what}: there is no compiled engine; call prepareDevice first"
    name = {"setRandomSeed": "setRandomSeedFromHost(uint64_t)"}.get(what, f"{what}()")
    return f"Devicex::prepare() must be called before Devicex::{name} is called."
