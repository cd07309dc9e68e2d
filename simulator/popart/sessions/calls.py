"""Calls of a session that need a compiled program, and what they say without one."""

from __future__ import annotations

LOADING = ("run", "weightsFromHost")  # calls that load the engine onto the device if need be


def unprepared(caller: str) -> str:
    """Return what is wrong with a call before `prepareDevice`, in PopART's words."""
    if caller.startswith("get") and caller.endswith("Report"):
        return f"{caller}: Session must have been prepared before a report can be fetched"
    if caller == "loadEngineAndConnectStreams":
        return f"{caller}: there is no compiled engine; call prepareDevice first"
    name = {"setRandomSeed": "setRandomSeedFromHost(uint64_t)"}.get(caller, f"{caller}()")
    return f"Devicex::prepare() must be called before Devicex::{name} is called."
