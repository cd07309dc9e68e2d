"""What a compilation makes: `compileGraph` compiles, an engine runs it, a file keeps it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import pvti
from simulator import options as engine_options
from simulator.compiler import executable as compiler
from simulator.compiler.compile import compile_graph
from simulator.compiler.fixed_data import COMPUTED_STACKS, Stacks
from simulator.compiler.instrumentation import instrumentation_of
from simulator.engine_log import overflow
from simulator.graph.arguments import refuse_in, refusing
from simulator.graph.errors import PoplarError, graph_memory_allocation_error
from simulator.graph.graph import Graph, frozen
from simulator.graph.program import Program, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.validation.programs import check_programs
from simulator.graph.validation.streams import check_outside_copies
from simulator.logging import log

ProgressFunc = Callable[[int, int], object]
Programs = Program | list[Program] | list[Sequence]
STAGES = 2  # of which a compilation tells its progress: checked, compiled


@dataclass(frozen=True, slots=True)
class GraphProfile:
    """What a report has before its first run but for the options, as the bytes of `profile.pop`.

    `absent` are the tables and arrays that its options leave out.
    """

    absent: tuple[str, ...]
    content: bytes


@refuse_in
@dataclass(frozen=True, slots=True, eq=False)
class Executable:
    """A compiled graph; any number of engines may run it. See `compileGraph`.

    It keeps the options it was compiled with, which engines have unless they are given others.
    `host_order` has the streams whose elements go in the order of memory, and the tensor of each:
    the host arranges them (`simulator.runtime.arrangement`). `profile` saves engines making theirs.

    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> executable = compileGraph(trial.graph, [trial.prog])
    >>> executable.graph.getTarget().getNumTiles()
    4
    """

    graph: Graph
    programs: list[Program]
    options: Mapping[str, object]
    compiled: compiler.Executable
    host_order: Mapping[str, Tensor] = field(default_factory=dict)
    profile: GraphProfile | None = None

    def serialize(self, stream: BinaryIO) -> None:
        """Write the executable to a binary file; raises PoplarError when it cannot be kept.

        >>> from io import BytesIO
        >>> from simulator.trial import Trial
        >>> trial = Trial()
        >>> executable = compileGraph(trial.graph, [trial.prog])
        >>> file = BytesIO()
        >>> executable.serialize(file)
        >>> file.tell() > 0
        True
        """
        from simulator.executable_file import write

        write(stream, self)

    @staticmethod
    def deserialize(stream: BinaryIO) -> Executable:
        """Read an executable that this version wrote; raises PoplarError for anything else.

        The codelets of its vertices must be known: import what defines them before. Nothing of
        the file is run: it holds data and the names of codelets.

        >>> from io import BytesIO
        >>> from simulator.trial import Trial
        >>> trial = Trial()
        >>> executable = compileGraph(trial.graph, [trial.prog])
        >>> file = BytesIO()
        >>> executable.serialize(file)
        >>> file.seek(0)
        0
        >>> len(Executable.deserialize(file).programs)
        1
        """
        from simulator.executable_file import read

        return Executable.checked(read(stream))

    @staticmethod
    def checked(content: object) -> Executable:
        """Return what a file holds if it is an executable; raises PoplarError.

        >>> from simulator.trial import Trial
        >>> trial = Trial()
        >>> executable = compileGraph(trial.graph, [trial.prog])
        >>> Executable.checked(executable) is executable
        True
        """
        if not isinstance(content, Executable):
            raise PoplarError(f"executable: the file holds {type(content).__name__}")
        return content


@refusing
def compileGraph(
    graph: Graph,
    programs: Programs,
    options: Mapping[str, object] | None = None,
    progressFunc: ProgressFunc | None = None,
    debugName: str = "",
) -> Executable:
    """Compile programs, once for all engines that run them; what a graph gets later has no part.

    `progressFunc` is called with what is done and what there is to do. Raises PoplarError, and
    graph_memory_allocation_error where `debug.allowOutOfMemory` is false.

    >>> from simulator import poplar
    >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())
    >>> x, y = (graph.addVariable(poplar.FLOAT, [4], name) for name in "xy")
    >>> graph.setTileMapping(x, 0)
    >>> graph.setTileMapping(y, 1)
    >>> executable = compileGraph(graph, [poplar.program.Copy(x, y)])
    >>> len(poplar.Engine(executable, {}).getReport().execution.runs)
    0
    """
    executable = compile_programs(graph, programs, options, progressFunc)
    settings = engine_options.resolve(options)
    check_memory(executable, settings, f"executable {debugName!r}" if debugName else "executable")
    return executable


def compile_programs(
    graph: Graph,
    programs: Programs,
    options: Mapping[str, object] | None,
    progress: ProgressFunc | None = None,
) -> Executable:
    """Check and compile programs, whether their tiles have room for them or not."""
    if not isinstance(graph, Graph):
        raise PoplarError(f"Engine: graph is {graph!r}; Graph or Executable is needed")
    if not isinstance(programs, Program | Iterable):
        raise PoplarError(f"Engine: programs is {programs!r}; a program or a list is needed")
    if progress is not None and not callable(progress):
        raise PoplarError(f"Engine: progressFunc is {progress!r}; a function of two numbers needed")
    tell = progress or (lambda step, all: None)
    tell(0, STAGES)
    settings = engine_options.resolve(options)
    graph = graph.getTopLevelGraph() if graph.replication == 1 else graph
    listed = [programs] if isinstance(programs, Program) else list(programs)
    with pvti.Tracepoint(pvti.tracePoplar, "validate"):
        check_outside_copies(
            graph,
            check_programs(graph, listed),
            overlap=str(settings["exchange.streamBufferOverlap"]),
            extended_memory=bool(settings["target.extendedMemory"]),
        )
    tell(1, STAGES)
    snapshot = frozen(graph)
    ahead = (
        settings["exchange.enablePrefetch"] and settings["exchange.streamBufferOverlap"] != "Any"
    )
    compiled = compile_graph(
        snapshot,
        listed,
        instrumentation_of(settings),
        prefetch=bool(ahead),
        stacks=_stacks(settings),
    )
    tell(STAGES, STAGES)
    return Executable(snapshot, listed, dict(engine_options.OptionFlags(options or {})), compiled)


def _stacks(options: Mapping[str, Any]) -> Stacks:
    """Return the stacks of a tile: as computed, where the options leave them at 0."""
    supervisor, worker = (
        options[f"debug.{part}StackSizeInBytes"] for part in ("supervisor", "worker")
    )
    usual = COMPUTED_STACKS
    return Stacks(supervisor or usual.supervisor, worker or usual.worker)


def check_memory(
    executable: Executable, options: Mapping[str, Any], called: str, path: str = ""
) -> None:
    """Raise graph_memory_allocation_error when tiles hold more than they can.

    If `debug.allowOutOfMemory` says so, log it and go on: the report is marked with it.
    """
    needed = overflow(executable.compiled)
    if not needed:
        return
    if options["debug.allowOutOfMemory"]:
        log("PO", "ENGINE", "WARN", f"{called}: {needed}; debug.allowOutOfMemory is true")
        return
    where = f"its report is in {path}" if path else "see autoReport.all for a report of it"
    log("PO", "ENGINE", "ERR", f"{called}: {needed}")

    def profile() -> dict[str, Any]:
        from simulator.profile.values import graph_profile_value

        return graph_profile_value(executable.compiled, options)

    raise graph_memory_allocation_error(
        f"{needed}; {where}, debug.allowOutOfMemory to run it all the same", path, profile
    )


def options_for(
    executable: Executable, overrides: Mapping[str, object] | None
) -> dict[str, bool | int | str]:
    """Return an engine's options: its own over those of the executable, which is not compiled anew.

    What was compiled into it stays, and a line of the log says so.
    """
    settings = engine_options.resolve({**executable.options, **(overrides or {})})
    if overrides and instrumentation_of(settings) != executable.compiled.instrumentation:
        log(
            "PO",
            "ENGINE",
            "WARN",
            "the executable has the instrumentation that it was compiled with",
        )
    return settings
