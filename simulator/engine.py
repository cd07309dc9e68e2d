"""The engine: compiles a graph and its programs, runs them on a device, writes the report."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TextIO

import numpy as np

import pvti
from simulator import options as engine_options
from simulator.device import Device
from simulator.engine_events import Event, emit
from simulator.engine_log import log_executable, log_run
from simulator.executable import (
    Executable,
    Programs,
    ProgressFunc,
    check_memory,
    compile_programs,
    options_for,
)
from simulator.graph.arguments import refuse_in
from simulator.graph.errors import HostAccessError, PoplarError
from simulator.graph.graph import Graph
from simulator.graph.host.streams import RemoteBuffer, Stream
from simulator.graph.machine.target import Target
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import Array
from simulator.instances.share import Share
from simulator.logging import enabled, log
from simulator.runtime import host_functions
from simulator.runtime.discards import discards_of
from simulator.runtime.execute import ValueRunner
from simulator.runtime.host_data import copy_to_host, host_values
from simulator.runtime.host_streams import HostStreams
from simulator.runtime.remote_buffers import RemoteBuffers
from simulator.runtime.run import Runner, RunRecord
from simulator.runtime.storage import Storage
from simulator.runtime.time_stamps import TimerTimePoint
from simulator.runtime.without_values import OPTION as VALUES_OPTION
from simulator.runtime.without_values import NoValues
from simulator.runtime.work import NOTHING_KNOWN, Work

if TYPE_CHECKING:
    from simulator.engine_report import Report
    from simulator.profile.write import ReportFiles

CACHE = "POPLAR_EXECUTABLE_CACHE_PATH"
OUTPUTS = (
    "autoReport.outputGraphProfile",
    "autoReport.outputExecutionProfile",
    "autoReport.outputDebugInfo",
)


@refuse_in
class Engine:
    """A session: the programs of a graph on one device.

    Several programs are run by their number; `name` puts the report into a folder of that name
    below `autoReport.directory`. Tensors and streams can be reached once a device is loaded.

    >>> from simulator import poplar
    >>> device = poplar.IPUModel("tiny").createDevice()
    >>> graph = poplar.Graph(device.getTarget())
    >>> x = graph.addVariable(poplar.FLOAT, [2], "x")
    >>> graph.setTileMapping(x, 0)
    >>> y = graph.addConstant(poplar.FLOAT, [2], [1.0, 2.0])
    >>> graph.setTileMapping(y, 1)
    >>> graph.createHostRead("x", x)
    >>> engine = poplar.Engine(graph, poplar.program.Copy(y, x))
    >>> engine.load(device)
    >>> engine.run(0)
    >>> engine.readTensor("x").tolist()
    [1.0, 2.0]
    """

    def __init__(
        self,
        graph: Graph | Executable,
        programs: Programs | Mapping[str, object] | None = None,
        options: Mapping[str, object] | None = None,
        progressFunc: ProgressFunc | None = None,
        *,
        name: str = "",
        share: Share | None = None,
    ) -> None:
        self._called = f"engine {name!r}" if name else "engine"
        self._logged = enabled("PO", "INFO", "ENGINE")  # asked once, so that a run costs nothing
        with _attempted("Engine::compile"):
            executable, overrides = _compiled(graph, programs, options, progressFunc)
            self._options = options_for(executable, overrides)
            self._directory = Path(str(self._options["autoReport.directory"])) / name
            self._graph = graph = executable.graph
            self._share, copies = share, graph.replication if share is None else share.count
            self._replicas = copies
            self._programs, self._executable, self._made = (
                executable.programs,
                executable.compiled,
                executable,
            )
            self._report = self._open_report()
        log(
            "PO", "ENGINE", "INFO", f"{self._called} compiled for {_described(graph.device_target)}"
        )
        log_executable(self._executable)
        self._runs = 0
        self._ended = {"run": 0, "other_run": 0}  # those that raised nothing: rows of the report
        self._tell("compiled")
        self._write_graph_report()
        path = "" if self._report is None else str(self._directory)
        check_memory(executable, self._options, self._called, path)
        self._streams = HostStreams(
            graph.streams,
            copies,
            prefetch=bool(self._options["exchange.enablePrefetch"]),
            overlap=str(self._options["exchange.streamBufferOverlap"]),
        )
        self._remote = RemoteBuffers(graph.remote_buffers, copies)
        self._profiled = self._checked_replica()
        self._storages: list[Storage] = []
        self._values: list[ValueRunner] = []
        self._runner: Runner | None = None
        self._device: Device | None = None
        self._text: TextIO | None = None
        self._recorded = 0  # runs step by step, since then too
        self._profiling = True
        self._modelled = graph.target.target_type != "CPU"
        self._most = int(self._options["autoReport.executionProfileProgramRunCount"])
        self._records: list[RunRecord] = []  # since the execution profile was last reset

    def _open_report(self) -> ReportFiles | None:
        """Write what is known before the first run, if the options ask for a report."""
        if not any(self._options[name] for name in OUTPUTS):
            return None
        # Only a program that writes a report loads the formats.
        from simulator.profile.write import ReportFiles

        with _traced("write graph profile"):
            files = (self._directory, self._executable, self._options)
            return ReportFiles(*files, profile=self._made.profile)

    def _checked_replica(self) -> int:
        """Return the replica that is profiled; raises PoplarError when there is none."""
        replica = int(self._options["profiler.replicaToProfile"])
        if replica >= self._replicas:
            raise PoplarError(
                f"profiler.replicaToProfile is {replica}; the graph has replicas 0 to "
                f"{self._replicas - 1}"
            )
        return replica

    def _write_graph_report(self) -> None:
        destination = str(self._options["debug.graphReportDestination"])
        if destination:
            from simulator.engine_report import write_graph_report

            write_graph_report(destination, self.getGraphProfile())

    @property
    def reportDirectory(self) -> Path:
        """Return the folder of the report.

        >>> from simulator import poplar
        >>> device = poplar.IPUModel("tiny").createDevice()
        >>> graph = poplar.Graph(device.getTarget())
        >>> engine = poplar.Engine(graph, poplar.program.Sequence())
        >>> str(engine.reportDirectory)  # as `autoReport.directory` says
        '.'
        """
        return self._directory

    def load(self, device: Device) -> None:
        """Load the program onto a device of the graph's target; all variables start at zero.

        >>> from simulator import poplar
        >>> device = poplar.IPUModel("tiny").createDevice()
        >>> graph = poplar.Graph(device.getTarget())
        >>> x = graph.addVariable(poplar.FLOAT, [2], "x")
        >>> graph.setTileMapping(x, 0)
        >>> y = graph.addConstant(poplar.FLOAT, [2], [1.0, 2.0])
        >>> graph.setTileMapping(y, 1)
        >>> graph.createHostRead("x", x)
        >>> engine = poplar.Engine(graph, poplar.program.Copy(y, x))
        >>> engine.load(device)
        >>> engine.run()
        >>> engine.readTensor("x").tolist()
        [1.0, 2.0]
        """
        with _attempted("Engine::load"):
            self._check_target(device.getTarget())
            device.take("Engine")
            self._device = device
            self._streams.reset()
            self._make_values()
            if self._runner is None:
                self._runner = Runner(
                    self._executable, *self._values, profiled=self._profiled, share=self._share
                )
            else:
                self._runner.reload(*self._values)
            if self._text is not None:
                self.setPrintStream(self._text)
        log("PO", "ENGINE", "INFO", f"{self._called} loaded onto device {device.getId()}")

    def loadAndRun(self, device: Device, prog: int = 0) -> None:
        """Load the program onto a device and run one of its programs.

        >>> from simulator import poplar
        >>> device = poplar.IPUModel("tiny").createDevice()
        >>> graph = poplar.Graph(device.getTarget())
        >>> x = graph.addVariable(poplar.FLOAT, [2], "x")
        >>> graph.setTileMapping(x, 0)
        >>> y = graph.addConstant(poplar.FLOAT, [2], [1.0, 2.0])
        >>> graph.setTileMapping(y, 1)
        >>> graph.createHostRead("x", x)
        >>> engine = poplar.Engine(graph, poplar.program.Copy(y, x))
        >>> engine.loadAndRun(device)
        >>> engine.readTensor("x").tolist()
        [1.0, 2.0]
        """
        self.load(device)
        self.run(prog)

    def serializeExecutable(self, stream: BinaryIO) -> None:
        """Write the executable to a binary file, as `Executable.serialize` does.

        >>> import io
        >>> from simulator import poplar
        >>> device = poplar.IPUModel("tiny").createDevice()
        >>> graph = poplar.Graph(device.getTarget())
        >>> x = graph.addVariable(poplar.FLOAT, [2], "x")
        >>> graph.setTileMapping(x, 0)
        >>> y = graph.addConstant(poplar.FLOAT, [2], [1.0, 2.0])
        >>> graph.setTileMapping(y, 1)
        >>> graph.createHostRead("x", x)
        >>> engine = poplar.Engine(graph, poplar.program.Copy(y, x))
        >>> stream = io.BytesIO()
        >>> engine.serializeExecutable(stream)
        >>> _ = stream.seek(0)
        >>> again = poplar.Engine(poplar.Executable.deserialize(stream))
        >>> again.loadAndRun(device)
        >>> again.readTensor("x").tolist()
        [1.0, 2.0]
        """
        self._made.serialize(stream)

    @property
    def executable(self) -> Executable:
        """Return what the engine runs.

        >>> from simulator import poplar
        >>> device = poplar.IPUModel("tiny").createDevice()
        >>> graph = poplar.Graph(device.getTarget())
        >>> engine = poplar.Engine(graph, poplar.program.Sequence())
        >>> type(engine.executable).__name__
        'Executable'
        """
        return self._made

    def saveExecutable(
        self, path: str | PathLike[str], flow: Mapping[str, Iterable[int]] | None = None
    ) -> None:
        """Write the executable to a PopEF file; `flow` says which programs load, run and save.

        `{"load": [], "main": [0], "save": []}` if it is not given. Raises PoplarError and PvaError.

        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from simulator import poplar
        >>> device = poplar.IPUModel("tiny").createDevice()
        >>> graph = poplar.Graph(device.getTarget())
        >>> x = graph.addVariable(poplar.FLOAT, [2], "x")
        >>> graph.setTileMapping(x, 0)
        >>> y = graph.addConstant(poplar.FLOAT, [2], [1.0, 2.0])
        >>> graph.setTileMapping(y, 1)
        >>> graph.createHostRead("x", x)
        >>> engine = poplar.Engine(graph, poplar.program.Copy(y, x))
        >>> with TemporaryDirectory() as folder:
        ...     engine.saveExecutable(Path(folder, "copy.popef"))
        ...     [path.name for path in Path(folder).iterdir()]
        ['copy.popef']
        """
        from simulator.popef.engine_model import save_executable

        save_executable(self._made, path, flow)

    @staticmethod
    def loadExecutable(path: str | PathLike[str]) -> Executable:
        """Read the executable of a PopEF file; raises PoplarError and PvaError.

        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from simulator import poplar
        >>> device = poplar.IPUModel("tiny").createDevice()
        >>> graph = poplar.Graph(device.getTarget())
        >>> x = graph.addVariable(poplar.FLOAT, [2], "x")
        >>> graph.setTileMapping(x, 0)
        >>> y = graph.addConstant(poplar.FLOAT, [2], [1.0, 2.0])
        >>> graph.setTileMapping(y, 1)
        >>> graph.createHostRead("x", x)
        >>> engine = poplar.Engine(graph, poplar.program.Copy(y, x))
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "copy.popef")
        ...     engine.saveExecutable(path)
        ...     again = poplar.Engine(poplar.Engine.loadExecutable(path))
        >>> again.loadAndRun(device)
        >>> again.readTensor("x").tolist()
        [1.0, 2.0]
        """
        from simulator.popef.model import load_model

        return load_model(fspath(path)).executable.load()

    def saveVariables(self, path: str | PathLike[str]) -> None:
        """Write to a PopEF file the values of the tensors that the host may read, by handle.

        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from simulator import poplar
        >>> device = poplar.IPUModel("tiny").createDevice()
        >>> graph = poplar.Graph(device.getTarget())
        >>> x = graph.addVariable(poplar.FLOAT, [2], "x")
        >>> graph.setTileMapping(x, 0)
        >>> y = graph.addConstant(poplar.FLOAT, [2], [1.0, 2.0])
        >>> graph.setTileMapping(y, 1)
        >>> graph.createHostRead("x", x)
        >>> engine = poplar.Engine(graph, poplar.program.Copy(y, x))
        >>> engine.load(device)
        >>> engine.run()
        >>> with TemporaryDirectory() as folder:
        ...     engine.saveVariables(Path(folder, "x.popef"))
        ...     [path.name for path in Path(folder).iterdir()]
        ['x.popef']
        """
        from simulator.popef.engine_model import save_tensors

        save_tensors({handle: self.readTensor(handle) for handle in self._graph.host_reads}, path)

    def _make_values(self) -> None:
        """Set all variables of the replicas here to zero, or hold none of them."""
        first = 0 if self._share is None else self._share.first
        replicas = range(self._replicas)
        if not self._options[VALUES_OPTION]:
            self._values = [NoValues() for _ in replicas]
            return
        self._storages = [Storage(self._graph, first + replica) for replica in replicas]
        ends = self._streams, self._remote
        discards = discards_of(self._executable)
        self._values = [
            ValueRunner(
                self._graph, storage, *ends, replica=replica, first=first, discards=discards
            )
            for replica, storage in enumerate(self._storages)
        ]

    def _check_target(self, target: Target) -> None:
        graph_target = self._graph.device_target
        ipus = graph_target.num_ipus // self._graph.replication * self._replicas
        expected, actual = _described(replace(graph_target, num_ipus=ipus)), _described(target)
        if actual != expected:
            raise PoplarError(f"Engine: the graph is for {expected}, the device is {actual}")

    def run(self, prog: int = 0, debugName: str = "", *, work: Work = NOTHING_KNOWN) -> None:
        """Run a program by its number; the first runs are recorded step by step.

        `work` tells how many items it takes in, for the report.

        >>> from simulator import poplar
        >>> device = poplar.IPUModel("tiny").createDevice()
        >>> graph = poplar.Graph(device.getTarget())
        >>> x = graph.addVariable(poplar.FLOAT, [2], "x")
        >>> graph.setTileMapping(x, 0)
        >>> y = graph.addConstant(poplar.FLOAT, [2], [1.0, 2.0])
        >>> graph.setTileMapping(y, 1)
        >>> graph.createHostRead("x", x)
        >>> engine = poplar.Engine(graph, poplar.program.Copy(y, x))
        >>> engine.load(device)
        >>> engine.run()
        >>> engine.readTensor("x").tolist()
        [1.0, 2.0]
        """
        if self._runner is None or self._device is None:
            raise PoplarError("Engine: load a device before running")
        if not self._device.isAttached():
            raise PoplarError(
                f"Engine: device {self._device.getId()} has been detached; load it again"
            )
        if self._options["simulator.compileOnly"]:
            raise PoplarError("Engine: compiled only, by simulator.compileOnly: nothing runs")
        if not 0 <= prog < len(self._programs):
            raise PoplarError(
                f"Engine: program {prog}; there are programs 0 to {len(self._programs) - 1}"
            )
        record = self._profiling and self._modelled and self._recorded < self._most
        self._runs += 1
        if self._logged:
            log("PO", "ENGINE", "INFO", f"{self._called} runs program {prog}")
        self._streams.start_run()
        name = debugName or f"run {self._runs - 1}"
        kind = "run" if self._profiling else "other_run"
        place = {kind: self._ended[kind], "name": name, "report": self._directory.absolute().name}
        with _attempted("Engine::run", place):
            run_record = self._runner.run(
                prog, name, work, record=record, other=not self._profiling
            )
        self._ended[kind] += 1
        self._recorded += record
        if self._logged:
            log_run(self._executable, run_record)
        self._records.append(run_record)
        if self._report is not None:
            with _traced("write execution profile"):
                self._report.append(run_record)
        self._tell("ran")

    def _tell(self, kind: Literal["compiled", "ran"]) -> None:
        target = self._graph.device_target
        place = (target.name, target.num_ipus, target.tiles_per_ipu)
        emit(Event(kind, *place, self._runs, self._directory))

    # Host
    def connectStream(self, handle: str | Stream, *arguments: object) -> None:
        """Connect a stream to the host's memory, a ring: `[replica,] memory [, end]`.

        A handle that a stream to the device and one to the host share connects both.

        >>> import numpy as np
        >>> from simulator import poplar
        >>> device = poplar.IPUModel("tiny").createDevice()
        >>> graph = poplar.Graph(device.getTarget())
        >>> x = graph.addVariable(poplar.FLOAT, [2], "x")
        >>> graph.setTileMapping(x, 0)
        >>> stream = graph.addHostToDeviceFIFO("in", poplar.FLOAT, 2)
        >>> graph.createHostRead("x", x)
        >>> engine = poplar.Engine(graph, poplar.program.Copy(stream, x))
        >>> engine.load(device)
        >>> engine.connectStream("in", np.float32([1.0, 2.0]))
        >>> engine.run()
        >>> engine.readTensor("x").tolist()
        [1.0, 2.0]
        """
        self._streams.connect(handle, *arguments)

    def connectStreamToCallback(self, handle: str | Stream, *arguments: object) -> None:
        """Connect a stream to a callback on the buffer of a transfer: `[replica,] callback`.

        >>> from simulator import poplar
        >>> device = poplar.IPUModel("tiny").createDevice()
        >>> graph = poplar.Graph(device.getTarget())
        >>> x = graph.addVariable(poplar.FLOAT, [2], "x")
        >>> graph.setTileMapping(x, 0)
        >>> stream = graph.addHostToDeviceFIFO("in", poplar.FLOAT, 2)
        >>> graph.createHostRead("x", x)
        >>> engine = poplar.Engine(graph, poplar.program.Copy(stream, x))
        >>> engine.load(device)
        >>> engine.connectStreamToCallback("in", lambda buffer: buffer.fill(3.0))
        >>> engine.run()
        >>> engine.readTensor("x").tolist()
        [3.0, 3.0]
        """
        self._streams.connect(handle, *arguments, callback=True)

    def connectHostFunction(self, handle: str, *arguments: object) -> None:
        """Connect a function of the host: `[replica,] callback`; it takes and fills arrays.

        >>> from simulator import poplar
        >>> device = poplar.IPUModel("tiny").createDevice()
        >>> graph = poplar.Graph(device.getTarget())
        >>> x = graph.addConstant(poplar.FLOAT, [2], [1.0, 2.0])
        >>> y = graph.addVariable(poplar.FLOAT, [2], "y")
        >>> graph.setTileMapping(poplar.concat([x, y]), 0)
        >>> graph.createHostRead("y", y)
        >>> sizes = [(poplar.FLOAT, 2)]
        >>> double = graph.addHostFunction("double", sizes, sizes)
        >>> engine = poplar.Engine(graph, poplar.program.Call(double, [x], [y]))
        >>> engine.load(device)
        >>> def twice(inputs, outputs):
        ...     outputs[0][:] = 2 * inputs[0]
        >>> engine.connectHostFunction("double", twice)
        >>> engine.run()
        >>> engine.readTensor("y").tolist()
        [2.0, 4.0]
        """
        host_functions.connect(self._streams, self._graph.host_functions, handle, *arguments)

    def copyToRemoteBuffer(
        self, data: object, handle: str | RemoteBuffer, repeatIndex: int, replicationIndex: int = 0
    ) -> None:
        """Copy memory of the host into a row of a remote buffer.

        >>> import numpy as np
        >>> from simulator import poplar
        >>> device = poplar.IPUModel("tiny").createDevice()
        >>> graph = poplar.Graph(device.getTarget())
        >>> rows = graph.addRemoteBuffer("rows", poplar.FLOAT, 2, 3)  # three rows of two
        >>> x = graph.addVariable(poplar.FLOAT, [2], "x")
        >>> graph.setTileMapping(x, 0)
        >>> engine = poplar.Engine(graph, poplar.program.Copy(x, rows))
        >>> engine.load(device)
        >>> engine.copyToRemoteBuffer(np.float32([1.0, 2.0]), "rows", 1)
        >>> row = np.zeros(2, np.float32)
        >>> engine.copyFromRemoteBuffer("rows", row, 1)
        >>> row.tolist()
        [1.0, 2.0]
        """
        self._remote.write(data, handle, repeatIndex, replicationIndex)

    def copyFromRemoteBuffer(
        self, handle: str | RemoteBuffer, data: object, repeatIndex: int, replicationIndex: int = 0
    ) -> None:
        """Copy a row of a remote buffer into memory of the host.

        >>> import numpy as np
        >>> from simulator import poplar
        >>> device = poplar.IPUModel("tiny").createDevice()
        >>> graph = poplar.Graph(device.getTarget())
        >>> rows = graph.addRemoteBuffer("rows", poplar.FLOAT, 2, 3)  # three rows of two
        >>> x = graph.addVariable(poplar.FLOAT, [2], "x")
        >>> graph.setTileMapping(x, 0)
        >>> engine = poplar.Engine(graph, poplar.program.Copy(x, rows))
        >>> engine.load(device)
        >>> engine.copyToRemoteBuffer(np.float32([1.0, 2.0]), "rows", 1)
        >>> row = np.zeros(2, np.float32)
        >>> engine.copyFromRemoteBuffer("rows", row, 1)
        >>> row.tolist()
        [1.0, 2.0]
        """
        self._remote.read(handle, data, repeatIndex, replicationIndex)

    def writeTensor(self, handle: str, values: object) -> None:
        """Write the tensor of a host write; of several replicas one after another.

        >>> from simulator import poplar
        >>> device = poplar.IPUModel("tiny").createDevice()
        >>> graph = poplar.Graph(device.getTarget())
        >>> x = graph.addVariable(poplar.FLOAT, [2], "x")
        >>> graph.setTileMapping(x, 0)
        >>> graph.createHostWrite("x", x)
        >>> graph.createHostRead("out", x)
        >>> engine = poplar.Engine(graph, poplar.program.Sequence())
        >>> engine.load(device)
        >>> engine.writeTensor("x", [1.0, 2.0])
        >>> engine.run()
        >>> engine.readTensor("out").tolist()
        [1.0, 2.0]
        """
        tensor = self._accessed(handle, "write")
        values = host_values(values, tensor.dtype, f"host write {handle!r}")
        storages = self._loaded()
        parts = [values] if len(storages) == 1 else _split(values, len(storages), handle)
        with _attempted("Engine::writeTensor"):
            for storage, part in zip(storages, parts, strict=True):
                storage.write(tensor, part, f"host write {handle!r}")

    def readTensor(self, handle: str, out: object = None) -> Any:
        """Read the tensor of a host read, into `out` when given; replicas are a first dimension.

        >>> from simulator import poplar
        >>> device = poplar.IPUModel("tiny").createDevice()
        >>> graph = poplar.Graph(device.getTarget())
        >>> x = graph.addVariable(poplar.FLOAT, [2], "x")
        >>> graph.setTileMapping(x, 0)
        >>> y = graph.addConstant(poplar.FLOAT, [2], [1.0, 2.0])
        >>> graph.setTileMapping(y, 1)
        >>> graph.createHostRead("x", x)
        >>> engine = poplar.Engine(graph, poplar.program.Copy(y, x))
        >>> engine.load(device)
        >>> engine.run()
        >>> engine.readTensor("x").tolist()
        [1.0, 2.0]
        """
        tensor = self._accessed(handle, "read")
        with _attempted("Engine::readTensor"):
            parts = [storage.read(tensor) for storage in self._loaded()]
            values = parts[0] if len(parts) == 1 else np.stack(parts)
        if out is None:
            return values
        copy_to_host(values, tensor, out, f"host read {handle!r}")
        return out

    def _accessed(self, handle: str, direction: Literal["read", "write"]) -> Tensor:
        handles = self._graph.host_reads if direction == "read" else self._graph.host_writes
        if handle not in handles:
            raise HostAccessError(
                f"host {direction} {handle!r}: unknown; there are {', '.join(handles) or 'none'}"
            )
        return handles[handle]

    def _loaded(self) -> list[Storage]:
        if not self._options[VALUES_OPTION]:
            raise PoplarError(f"Engine: {VALUES_OPTION} is false, so that tensors have no values")
        if not self._storages:
            raise PoplarError("Engine: load a device before reading or writing tensors")
        return self._storages

    def setPrintStream(self, text: TextIO) -> None:
        """Send what PrintTensor prints to this stream instead of stderr.

        >>> import sys
        >>> from simulator import poplar
        >>> device = poplar.IPUModel("tiny").createDevice()
        >>> graph = poplar.Graph(device.getTarget())
        >>> x = graph.addVariable(poplar.FLOAT, [2], "x")
        >>> graph.setTileMapping(x, 0)
        >>> engine = poplar.Engine(graph, poplar.program.PrintTensor("x", x))
        >>> engine.setPrintStream(sys.stdout)
        >>> engine.loadAndRun(device)
        x: {0,0}
        """
        self._text = text
        for values in self._values:
            values.print_to(text)

    # Profiles
    def getGraphProfile(self) -> dict[str, object]:
        """Return what the compiler knows, as the document `graph.json` has it.

        >>> from simulator import poplar
        >>> device = poplar.IPUModel("tiny").createDevice()
        >>> graph = poplar.Graph(device.getTarget())
        >>> engine = poplar.Engine(graph, poplar.program.Sequence())
        >>> engine.getGraphProfile()["target"]["numTiles"]
        4
        """
        from simulator.profile.values import graph_profile_value

        return graph_profile_value(self._executable, self._options)

    def getExecutionProfile(self) -> dict[str, object]:
        """Return what ran since the last reset, as the document `execution.json` has it.

        >>> from simulator import poplar
        >>> device = poplar.IPUModel("tiny").createDevice()
        >>> graph = poplar.Graph(device.getTarget())
        >>> options = {"debug.instrumentCompute": "true"}
        >>> engine = poplar.Engine(graph, poplar.program.Sequence(), options)
        >>> engine.load(device)
        >>> engine.run()
        >>> len(engine.getExecutionProfile()["runs"])
        1
        """
        from simulator.profile.values import execution_profile_value

        return execution_profile_value(self._executable, self._records, profiled=self._most > 0)

    def resetExecutionProfile(self) -> None:
        """Begin the execution profile anew; what was written of earlier runs stays.

        >>> from simulator import poplar
        >>> device = poplar.IPUModel("tiny").createDevice()
        >>> graph = poplar.Graph(device.getTarget())
        >>> options = {"debug.instrumentCompute": "true"}
        >>> engine = poplar.Engine(graph, poplar.program.Sequence(), options)
        >>> engine.load(device)
        >>> engine.run()
        >>> engine.resetExecutionProfile()
        >>> len(engine.getExecutionProfile()["runs"])
        0
        """
        self._records.clear()
        self._recorded = 0

    def enableExecutionProfiling(self) -> None:
        """Count the next runs among those of the model again, and record their steps.

        >>> from simulator import poplar
        >>> device = poplar.IPUModel("tiny").createDevice()
        >>> graph = poplar.Graph(device.getTarget())
        >>> options = {"debug.instrumentCompute": "true"}
        >>> engine = poplar.Engine(graph, poplar.program.Sequence(), options)
        >>> engine.load(device)
        >>> engine.disableExecutionProfiling()
        >>> engine.run()
        >>> engine.enableExecutionProfiling()
        >>> engine.run()
        >>> len(engine.getExecutionProfile()["runs"])
        1
        """
        self._profiling = True

    def disableExecutionProfiling(self) -> None:
        """Keep the next runs out of the profile: `other_runs` has their names and cycles alone.

        >>> from simulator import poplar
        >>> device = poplar.IPUModel("tiny").createDevice()
        >>> graph = poplar.Graph(device.getTarget())
        >>> options = {"debug.instrumentCompute": "true"}
        >>> engine = poplar.Engine(graph, poplar.program.Sequence(), options)
        >>> engine.load(device)
        >>> engine.disableExecutionProfiling()
        >>> engine.run()
        >>> len(engine.getExecutionProfile()["runs"])
        0
        """
        self._profiling = False

    def getReport(self, reportExecution: bool = True) -> Report:
        """Return the report so far: the written one if it has both profiles, else one in memory.

        One in memory has the runs since the last reset; without `reportExecution` it has none.

        >>> from simulator import poplar
        >>> device = poplar.IPUModel("tiny").createDevice()
        >>> graph = poplar.Graph(device.getTarget())
        >>> engine = poplar.Engine(graph, poplar.program.Sequence())
        >>> engine.getReport().compilation.target.numTiles
        4
        """
        from simulator.engine_report import open_report, report_of

        has_both = all(self._options[name] for name in OUTPUTS[:2])
        if self._report is not None and has_both and reportExecution:
            self._report.flush()
            return open_report(self._directory)
        records = self._records if reportExecution else None
        return report_of(self._executable, self._options, records, profiled=self._most > 0)

    def printProfileSummary(
        self, text: TextIO | None = None, options: Mapping[str, object] | None = None
    ) -> None:
        """Print the profile summary; options such as `showVarStorage` add to it.

        >>> from simulator import poplar
        >>> device = poplar.IPUModel("tiny").createDevice()
        >>> graph = poplar.Graph(device.getTarget())
        >>> engine = poplar.Engine(graph, poplar.program.Sequence())
        >>> engine.load(device)
        >>> engine.run()
        >>> engine.printProfileSummary()
        Target:
        ...
        Graph:
          Number of vertices:                0
        ...
        """
        from simulator.engine_report import printProfileSummary

        printProfileSummary(text, self.getGraphProfile(), self.getExecutionProfile(), options)

    def getTimeStamp(self) -> TimerTimePoint:
        """Return nanoseconds on the clock of the host trace, and the device's cycles.

        >>> from simulator import poplar
        >>> device = poplar.IPUModel("tiny").createDevice()
        >>> graph = poplar.Graph(device.getTarget())
        >>> engine = poplar.Engine(graph, poplar.program.Sequence())
        >>> engine.load(device)
        >>> before = engine.getTimeStamp()
        >>> engine.run()
        >>> before < engine.getTimeStamp()
        True
        """
        return TimerTimePoint.now(0 if self._runner is None else self._runner.cycles)

    def reportTiming(self, start: TimerTimePoint, end: TimerTimePoint) -> str:
        """Return in words how much time passed from one stamp to another, on host and device.

        >>> from simulator import poplar
        >>> device = poplar.IPUModel("tiny").createDevice()
        >>> graph = poplar.Graph(device.getTarget())
        >>> engine = poplar.Engine(graph, poplar.program.Sequence())
        >>> engine.load(device)
        >>> start = engine.getTimeStamp()
        >>> engine.run()
        >>> engine.reportTiming(start, engine.getTimeStamp())
        '... on the host; ... cycles (...) on the device'
        """
        return end.since(start, self._graph.target.clock_frequency)


def _compiled(
    graph: Graph | Executable,
    programs: Programs | Mapping[str, object] | None,
    options: Mapping[str, object] | None,
    progress: ProgressFunc | None,
) -> tuple[Executable, Mapping[str, object] | None]:
    """Return an executable, whose options may stand in the place of programs, or compile one."""
    if not isinstance(graph, Executable):
        if programs is None or isinstance(programs, Mapping):
            raise PoplarError("Engine: a graph needs programs")
        return _made_or_kept(graph, programs, options, progress), options
    if programs is not None and not isinstance(programs, Mapping):
        raise PoplarError("Engine: an executable has its programs; give it options alone")
    return graph, programs if options is None else options


def _made_or_kept(
    graph: Graph,
    programs: Programs,
    options: Mapping[str, object] | None,
    progress: ProgressFunc | None,
) -> Executable:
    """Compile programs, or take them from the folder that an option or the environment names."""
    folder = str(
        engine_options.resolve(options).get(engine_options.CACHE_PATH, "")
    ) or os.environ.get(CACHE, "")
    if not folder:
        return compile_programs(graph, programs, options, progress)
    from simulator.popef.engine_cache import kept_program

    def compiled() -> Executable:
        return compile_programs(graph, programs, options, progress)

    return kept_program(Path(folder), graph, programs, options, compiled)


def _described(target: Target) -> str:
    return f"{target.num_ipus} x {target.name} with {target.tiles_per_ipu:,} tiles"


def _traced(label: str, metadata: dict[str, object] | None = None) -> pvti.Tracepoint:
    return pvti.Tracepoint(pvti.tracePoplar, label, metadata)


@contextmanager
def _attempted(label: str, metadata: dict[str, object] | None = None) -> Iterator[None]:
    """Trace what a program asks of the engine, and log what it raises."""
    with _traced(label, metadata):
        try:
            yield
        except PoplarError as error:
            log("PO", "ENGINE", "ERR", f"{label}: {error}")
            raise


def _split(values: object, replicas: int, handle: str) -> list[Array]:
    """Split what a host write gives into equal parts, one a replica."""
    array = np.asarray(values).reshape(-1)
    if array.size % replicas:
        raise HostAccessError(
            f"host write {handle!r}: {array.size} values for {replicas} replicas; each needs as "
            "many"
        )
    return list(array.reshape(replicas, -1))
