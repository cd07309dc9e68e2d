"""The engine: compiles a graph and its programs, runs them on a device, writes the report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

import numpy as np

import pvti
from simulator import options as engine_options
from simulator.compiler.compile import compile_graph
from simulator.compiler.instrument import instrumentation_of
from simulator.device import Device
from simulator.graph.errors import HostAccessError, PoplarError
from simulator.graph.graph import Graph
from simulator.graph.program import Program, Sequence
from simulator.graph.streams import Stream
from simulator.graph.tensor import Tensor
from simulator.graph.types import Array
from simulator.graph.validate_programs import check_programs
from simulator.graph.validate_streams import check_outside_copies
from simulator.logging import log
from simulator.runtime.execute import ValueRunner
from simulator.runtime.host_streams import HostStreams
from simulator.runtime.remote_buffers import RemoteBuffers
from simulator.runtime.run import Runner
from simulator.runtime.storage import Storage

if TYPE_CHECKING:
    from simulator.engine_report import Report
    from simulator.profile.write import ReportFiles

OUTPUTS = (
    "autoReport.outputGraphProfile",
    "autoReport.outputExecutionProfile",
    "autoReport.outputDebugInfo",
)


class Engine:
    """A session: the programs of a graph on one device.

    Several programs are run by their number; `name` puts the report into a folder of that name
    below `autoReport.directory`. Tensors and streams can be reached once a device is loaded.
    """

    def __init__(
        self,
        graph: Graph,
        programs: Program | list[Program] | list[Sequence],
        options: Mapping[str, object] | None = None,
        *,
        name: str = "",
    ) -> None:
        self._graph = graph = graph.getTopLevelGraph() if graph.replication == 1 else graph
        self._programs = [programs] if isinstance(programs, Program) else list(programs)
        self._options = engine_options.resolve(options)
        self._directory = Path(str(self._options["autoReport.directory"])) / name
        with _traced("Engine::compile"):
            with _traced("validate"):
                check_outside_copies(
                    graph,
                    check_programs(graph, self._programs),
                    overlap=str(self._options["exchange.streamBufferOverlap"]),
                    extended_memory=bool(self._options["target.extendedMemory"]),
                )
            instrumentation = instrumentation_of(self._options)
            self._executable = compile_graph(graph, self._programs, instrumentation)
            self._report = self._open_report()
        self._check_memory()
        log("PO", "ENGINE", "INFO", f"compiled {len(graph.compute_sets)} compute sets")
        self._streams = HostStreams(
            graph.streams,
            graph.replication,
            prefetch=bool(self._options["exchange.enablePrefetch"]),
            overlap=str(self._options["exchange.streamBufferOverlap"]),
        )
        self._remote = RemoteBuffers(graph.remote_buffers, graph.replication)
        self._storages: list[Storage] = []
        self._values: list[ValueRunner] = []
        self._runner: Runner | None = None
        self._text: TextIO | None = None
        self._runs = 0

    def _open_report(self) -> ReportFiles | None:
        """Write what is known before the first run, if the options ask for a report."""
        if not any(self._options[name] for name in OUTPUTS):
            return None
        # Only a program that writes a report loads the formats.
        from simulator.profile.write import ReportFiles

        with _traced("write graph profile"):
            return ReportFiles(self._directory, self._executable, self._options)

    def _check_memory(self) -> None:
        """Raise when a tile holds more than it can, unless that is allowed."""
        over = self._executable.memory.by_tile["overflowed"]
        if self._options["debug.allowOutOfMemory"] or not over.any():
            return
        tile, limit = int(over.argmax()), self._graph.target.bytes_per_tile
        raise PoplarError(
            f"out of memory on {int((over > 0).sum())} tile(s): tile {tile} needs "
            f"{int(over[tile]):,} bytes more than its {limit:,}; "
            "see debug.allowOutOfMemory for a report of it"
        )

    @property
    def reportDirectory(self) -> Path:
        """Give the folder of the report."""
        return self._directory

    def load(self, device: Device) -> None:
        """Load the program onto a device of the graph's target; all variables start at zero."""
        if device.getTarget() is not self._graph.device_target:
            found, wanted = device.getTarget(), self._graph.device_target
            if (found.name, found.num_tiles) != (wanted.name, wanted.num_tiles):
                raise PoplarError(
                    f"Engine: the graph is for {wanted.name} with {wanted.num_tiles} tiles, "
                    f"the device is {found.name} with {found.num_tiles}"
                )
        with _traced("Engine::load"):
            device.attach()
            self._streams.reset()
            self._storages = [Storage(self._graph) for _ in range(self._graph.replication)]
            self._values = [
                ValueRunner(self._graph, storage, self._streams, self._remote, replica=replica)
                for replica, storage in enumerate(self._storages)
            ]
            self._runner = Runner(self._executable, *self._values)
            if self._text is not None:
                self.setPrintStream(self._text)

    def run(self, program: int = 0, name: str = "") -> None:
        """Run a program by its number; the first runs are recorded step by step."""
        if self._runner is None:
            raise PoplarError("Engine: load a device before running")
        if not 0 <= program < len(self._programs):
            raise PoplarError(
                f"Engine: program {program}; there are programs 0 to {len(self._programs) - 1}"
            )
        record = self._runs < int(self._options["autoReport.executionProfileProgramRunCount"])
        self._runs += 1
        self._streams.start_run()
        with _traced("Engine::run"):
            done = self._runner.run(program, name or f"run {self._runs - 1}", record=record)
        if self._report is not None:
            with _traced("write execution profile"):
                self._report.append(done)

    # Host
    def connectStream(self, handle: str | Stream, *arguments: Any) -> None:
        """Connect a stream to the host's memory, a ring: `[replica,] memory [, end]`."""
        self._streams.connect(handle, *arguments)

    def connectStreamToCallback(self, handle: str | Stream, *arguments: Any) -> None:
        """Connect a stream to a callback on the buffer of a transfer: `[replica,] callback`."""
        self._streams.connect(handle, *arguments, callback=True)

    def copyToRemoteBuffer(
        self, data: Any, handle: str, repeatIndex: int, replicationIndex: int = 0
    ) -> None:
        """Copy memory of the host into a row of a remote buffer."""
        self._remote.write(data, handle, repeatIndex, replicationIndex)

    def copyFromRemoteBuffer(
        self, handle: str, data: Any, repeatIndex: int, replicationIndex: int = 0
    ) -> None:
        """Copy a row of a remote buffer into memory of the host."""
        self._remote.read(handle, data, repeatIndex, replicationIndex)

    def writeTensor(self, handle: str, values: Any) -> None:
        """Write the tensor of a host write; of several replicas one after another."""
        tensor = self._accessed(handle, "write")
        storages = self._loaded()
        parts = [values] if len(storages) == 1 else _split(values, len(storages), handle)
        with _traced("Engine::writeTensor"):
            for storage, part in zip(storages, parts, strict=True):
                storage.write(tensor, part, f"host write {handle!r}")

    def readTensor(self, handle: str, out: Array | None = None) -> Array:
        """Read the tensor of a host read, into `out` when given; replicas are a first dimension."""
        tensor = self._accessed(handle, "read")
        with _traced("Engine::readTensor"):
            parts = [storage.read(tensor) for storage in self._loaded()]
            values = parts[0] if len(parts) == 1 else np.stack(parts)
        if out is None:
            return values
        if out.size != values.size:
            raise HostAccessError(
                f"host read {handle!r}: array of {out.size} elements for "
                f"{tensor.describe()} of {values.size}"
            )
        out[...] = values.reshape(out.shape)
        return out

    def _accessed(self, handle: str, direction: Literal["read", "write"]) -> Tensor:
        access = self._graph.host_accesses.get(handle)
        if access is None or access.direction != direction:
            known = [h for h, a in self._graph.host_accesses.items() if a.direction == direction]
            raise HostAccessError(
                f"host {direction} {handle!r}: unknown; there are {', '.join(known) or 'none'}"
            )
        return access.tensor

    def _loaded(self) -> list[Storage]:
        if not self._storages:
            raise PoplarError("Engine: load a device before reading or writing tensors")
        return self._storages

    def setPrintStream(self, text: TextIO) -> None:
        """Send what PrintTensor prints to this stream instead of stderr."""
        self._text = text
        for values in self._values:
            values.print_to(text)

    # Report
    def getReport(self) -> Report:
        """Open the report that has been written so far."""
        from simulator.engine_report import open_report

        return open_report(self._reported("getReport"))

    def printProfileSummary(
        self, text: TextIO | None = None, options: Mapping[str, object] | None = None
    ) -> None:
        """Print the profile summary; options such as `showVarStorage` add to it."""
        from simulator.engine_report import print_profile_summary

        print_profile_summary(self._reported("printProfileSummary"), text, options)

    def _reported(self, what: str) -> Path:
        if self._report is None:
            raise PoplarError(f"{what}: no report is written; see the option autoReport.all")
        return self._directory


def _traced(label: str) -> pvti.Tracepoint:
    return pvti.Tracepoint(pvti.tracePoplar, label)


def _split(values: Any, replicas: int, handle: str) -> list[Array]:
    """Split what a host write gives into equal parts, one a replica."""
    array = np.asarray(values).reshape(-1)
    if array.size % replicas:
        raise HostAccessError(
            f"host write {handle!r}: {array.size} values for {replicas} replicas; each needs as "
            "many"
        )
    return list(array.reshape(replicas, -1))
