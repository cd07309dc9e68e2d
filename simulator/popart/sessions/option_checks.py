"""Options of a session that do not go together, refused before anything is imported."""

from __future__ import annotations

from simulator.popart.errors import popart_exception
from simulator.popart.sessions.options import SessionOptions
from simulator.popart.settings.names import VirtualGraphMode


def checked_options(given: SessionOptions | None, ipus: int, *, training: bool) -> SessionOptions:
    """Return a session's options; raises popart_exception for those that exclude each other.

    The rules are those of PopART's `Ir::verify...` and `SessionOptions::getAccumulationFactor`,
    and the words, as its programs look for them.
    """
    options = given or SessionOptions()
    if options.enableGradientAccumulation and not training:
        raise popart_exception("Gradient Accumulation only available when training.")
    if options.automaticLossScalingSettings.enabled and not training:
        raise popart_exception("[AutomaticLossScale transform] Only compatible when doing training")
    scales = options.automaticLossScalingSettings.enabled
    if scales and options.enablePipelining and not options.enableGradientAccumulation:
        raise popart_exception(
            "[AutomaticLossScale transform] Automatic loss scaling is not currently supported when "
            "the 'enablePipelining' SessionOption is set to 'true', but the "
            "'enableGradientAccumulation' SessionOption is set to 'false'"
        )
    if options.accumulationFactor > 1 and not options.enableGradientAccumulation:
        raise popart_exception(
            "enableGradientAccumulation is false, but accumulationFactor > 1. "
            f"It is {options.accumulationFactor}; enable accumulation, or make it 1"
        )
    if options.enablePipelining and options.virtualGraphMode is VirtualGraphMode.Off:
        raise popart_exception(
            "Pipelining requires more than 1 IPU, and a virtualGraphMode other than Off"
        )
    if vars(options).get("createImplicitPipeliningFwdOnlyProgram"):
        _check_forward_only(options)
    if options.enablePipelining and ipus < 2:
        raise popart_exception(
            "Pipelining requires more than 1 IPU: a pipeline needs nodes on at least 2 IPUs, the "
            f"device has {ipus}"
        )
    return options


def _check_forward_only(options: SessionOptions) -> None:
    """Raise popart_exception where a pipeline cannot have a program of the way forward alone."""
    pipelined = options.enablePipelining
    lacks = {
        "with explicit pipelining": pipelined and vars(options).get("enableExplicitMainLoops"),
        "without implicit pipelining": not pipelined,
        "without gradient accumulation": not options.enableGradientAccumulation,
    }
    for lack, is_so in lacks.items():
        if is_so:
            raise popart_exception(
                f"Implicit pipelining forward-only program is not supported {lack}."
            )
