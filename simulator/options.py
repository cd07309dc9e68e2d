"""The engine's options: names, defaults and meanings in one table.

What an option asks for and the simulator cannot do is said in a line of the log (WARN).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import PurePath

from simulator.graph.option_table import (
    Option,
    OptionFlags,
    OptionValue,
    checked,
    defaults,
    from_environment,
)
from simulator.logging import enabled, log

ENVIRONMENT = "POPLAR_ENGINE_OPTIONS"
GRAPH_REPORT = "POPLAR_GRAPH_REPORT_DEST"  # an older name of debug.graphReportDestination
LEVELS = ("tile", "vertex", "device", "ipu")
OVERLAPS = ("Any", "HostRearrangeOnly", "None")
__all__ = ["OPTIONS", "OptionFlags", "OptionValue", "as_texts", "resolve"]

OPTIONS: dict[str, Option] = {
    "autoReport.all": Option(False, "write every part of the report"),
    "autoReport.directory": Option(".", "where the report is written"),
    "autoReport.outputGraphProfile": Option(
        False, "write what the compiler knows: memory, liveness, programs", "autoReport.all"
    ),
    "autoReport.outputLoweredVars": Option(
        False, "write where each variable lies on each tile", "autoReport.outputGraphProfile"
    ),
    "autoReport.outputExecutionProfile": Option(
        False, "write what the runs did: steps and their cycles", "autoReport.all"
    ),
    "autoReport.outputDebugInfo": Option(
        False, "write debug.cbor: where variables and compute sets were made", "autoReport.all"
    ),
    "autoReport.outputArchive": Option(False, "write the object code"),
    "autoReport.outputSerializedGraph": Option(False, "write the computation graph by itself"),
    "autoReport.executionProfileProgramRunCount": Option(
        2, "how many runs are recorded step by step"
    ),
    "autoReport.streamAtEachRun": Option(
        True, "write each run when it ends, not all of them when the engine goes"
    ),
    "autoReport.app": Option(
        "", "facts about the application for app.json, as a JSON object", form="json"
    ),
    "debug.allowOutOfMemory": Option(
        True,
        "run a program that does not fit, its report marked with what overflows; otherwise its "
        "report is written and graph_memory_allocation_error raised",
    ),
    "debug.supervisorStackSizeInBytes": Option(
        0, "bytes of a tile's supervisor stack where code is compiled; 0: as the model has it"
    ),
    "debug.workerStackSizeInBytes": Option(
        0, "bytes of the stack of each worker where code is compiled; 0: as the model has it"
    ),
    "debug.retainDebugInformation": Option(True, "keep what debug.cbor and the report name"),
    "debug.graphReportDestination": Option(
        "", "where the summary of a compiled graph is written: stdout, stderr or a file"
    ),
    "debug.instrument": Option(False, "instrument compute and exchange"),
    "debug.instrumentCompute": Option(False, "instrument compute cycles", "debug.instrument"),
    "debug.instrumentExternalExchange": Option(
        False, "instrument exchange with other IPUs and with the host", "debug.instrument"
    ),
    "debug.instrumentHostExchange": Option(
        False, "instrument exchange with the host", "debug.instrumentExternalExchange"
    ),
    "debug.instrumentControlFlow": Option(False, "instrument control flow", "debug.instrument"),
    "debug.computeInstrumentationLevel": Option(
        "tile", "of what cycle counts are kept", allowed=LEVELS
    ),
    "profiler.blocks.filter": Option(
        "", "names of the Blocks that are recorded, as a regular expression", form="pattern"
    ),
    "profiler.programs.filter": Option(
        "", "names of the programs that are recorded as if in a Block", form="pattern"
    ),
    "profiler.blocks.tile": Option(0, "the tile of each IPU that records Blocks"),
    "profiler.blocks.bufferSize": Option(1000, "bytes of its buffer"),
    "profiler.blocks.implicitFlush": Option(True, "empty the buffer where the host waits anyway"),
    "profiler.replicaToProfile": Option(0, "the replica that is profiled"),
    "profiler.includeFlopEstimates": Option(True, "write floating-point operations"),
    "profiler.includeCycleEstimates": Option(True, "write estimated cycles"),
    "exchange.streamBufferOverlap": Option(
        "Any", "which buffers of streams may share memory", allowed=OVERLAPS
    ),
    "exchange.enablePrefetch": Option(False, "call callbacks as early as their buffer is free"),
    "simulator.computeValues": Option(
        True,
        "hold and compute values; without them a program's memory and cycles are found in less "
        "time, and no tensor can decide where it goes",
    ),
    "simulator.compileOnly": Option(
        False, "compile, write the graph profile and refuse to run, as poprun --offline-mode asks"
    ),
    "target.extendedMemory": Option(False, "let remote buffers of an IPU hold more than 16 GB"),
}

# Options that stand in a report only when they are set.
CACHE_PATH = "simulator.cachePath"
WHEN_SET: dict[str, Option] = {
    CACHE_PATH: Option(
        "",
        "folder where engines keep compiled programs, and take them from; without it that of"
        " POPLAR_EXECUTABLE_CACHE_PATH",
    )
}
OF_REPORTS = ("autoReport.", "debug.graphReportDestination", CACHE_PATH)

# Poplar's other options, which are taken: each with what the simulator does instead.
_FILES = "no file is written"
_ONE_WAY = "it compiles in one way"
_HOST = "the host's work takes no threads and no time in the model"
_MACHINE = "it is a matter of hardware"
NOT_MODELLED: dict[str, Option] = {
    "debug.loweredVarDumpFile": Option("", f"{_FILES}; see autoReport.outputLoweredVars"),
    "debug.floatPointOpException": Option(False, "no operation raises an exception"),
    "debug.outputAllSymbols": Option(False, "no object code has symbols"),
    "debug.runtimeVerify": Option(False, "programs are checked before they run"),
    "debug.verify": Option(False, "programs are checked before they run"),
    "debug.trace": Option(False, f"{_FILES}; see POPLAR_LOG_LEVEL"),
    "debug.traceFile": Option("", f"{_FILES}; see POPLAR_LOG_LEVEL"),
    "debug.profilingTile": Option(0, "all tiles are profiled"),
    "exchange.multicastPolicy": Option("", _ONE_WAY),
    "opt.enableMultiAccessCopies": Option(True, _ONE_WAY),
    "opt.enableInlining": Option(True, _ONE_WAY),
    "opt.enableSkipSyncs": Option(False, _ONE_WAY),
    "opt.enableSwSyncs": Option(False, _ONE_WAY),
    "opt.internalExchangeOptimisationTarget": Option("", _ONE_WAY),
    "opt.maxCopyMergeSize": Option(0, "copies are not merged"),
    "opt.maxComputeSetsPerLoweredCopy": Option(0, _ONE_WAY),
    "opt.maxCompilationThreads": Option(0, "one thread compiles"),
    "opt.useAutoloader": Option(False, _MACHINE),
    "prng.enable": Option(False, "halves are rounded to the nearest"),
    "prng.enableStochasticRounding": Option(False, "halves are rounded to the nearest"),
    "prng.seed": Option("", "see poprand.setSeed"),
    "profiler.format": Option("", "reports have one format"),
    "streamCallbacks.maxLookahead": Option("", "see the stream's bufferingDepth"),
    "streamCallbacks.multiThreadMode": Option("", _HOST),
    "streamCallbacks.numWorkerThreads": Option("", _HOST),
    "streamCallbacks.numaAware": Option(False, _HOST),
    "target.deterministicWorkers": Option("", "workers are always deterministic"),
    "target.exceptionPollPeriodUs": Option("", _MACHINE),
    "target.gatewayMode": Option("", "see Target.createIPUTarget"),
    "target.hostSyncTimeout": Option("", _MACHINE),
    "target.maxStreamCallbackThreadsPerNumaNode": Option("", _HOST),
    "target.saveArchive": Option("", f"{_FILES}: a simulator makes no object code"),
    "target.syncMethod": Option("", _MACHINE),
    "target.syncPollPeriodUs": Option("", _MACHINE),
    "target.syncReplicasIndependently": Option(False, "all replicas sync together"),
}

KNOWN = OPTIONS | WHEN_SET | NOT_MODELLED

# What is asked for by these values, and what happens instead.
_NOT_DONE: dict[tuple[str, OptionValue], str] = {
    ("autoReport.outputArchive", True): "no archive is written: a simulator makes no object code",
    ("autoReport.outputSerializedGraph", True): (
        "no file of its own is written: the computation graph is in the graph profile"
    ),
    ("debug.retainDebugInformation", False): "debug information is always kept",
    ("debug.instrumentControlFlow", True): (
        "nothing is counted: control flow takes no cycles in the model"
    ),
    ("profiler.includeFlopEstimates", False): "they are always in the graph profile",
    ("profiler.includeCycleEstimates", False): "they are always in the graph profile",
}
_PATHS = (
    CACHE_PATH,
    "autoReport.directory",
    "debug.graphReportDestination",
    "debug.loweredVarDumpFile",
    "debug.traceFile",
    "target.saveArchive",
)


def resolve(options: Mapping[str, object] | None) -> dict[str, OptionValue]:
    """Assign every option its value: the environment's, else the program's, else the default.

    Raises InvalidOptionError for an option that is not known, with near names, or a value that it
    cannot have.
    """
    settings = {**checked(KNOWN, options or {}, "engine options")}
    if os.environ.get(GRAPH_REPORT):
        settings["debug.graphReportDestination"] = os.environ[GRAPH_REPORT]
    settings |= from_environment(KNOWN, ENVIRONMENT)
    for name, value in settings.items():
        instead = _instead(name, value)
        if instead:
            log("PO", "ENGINE", "WARN", f"{name} is {_text(value)}: {instead}")
    if settings and enabled("PO", "DEBUG", "ENGINE"):
        lines = [f"option {name}: {_text(value)}" for name, value in settings.items()]
        log("PO", "ENGINE", "DEBUG", "\n".join(lines))
    return defaults(OPTIONS, settings) | settings


def that_compile(options: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
    """Leave out the options that say where reports and compiled programs go."""
    return {name: v for name, v in options.items() if not name.startswith(OF_REPORTS)}


def _instead(name: str, value: OptionValue) -> str:
    """Return what happens in the place of what is asked for; nothing when it is done."""
    if name in NOT_MODELLED:
        default, meaning = NOT_MODELLED[name][:2]
        return "" if value == default else meaning
    return _NOT_DONE.get((name, value), "")


def as_texts(options: Mapping[str, OptionValue]) -> dict[str, str]:
    """Return options as texts for a report; of a path its name alone, not the machine's folders."""
    shown = {
        name: PurePath(str(options[name])).name or KNOWN[name].default
        for name in _PATHS
        if name in options
    }
    return {name: _text(value) for name, value in {**options, **shown}.items()}


def _text(value: OptionValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
