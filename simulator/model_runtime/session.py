"""A program of PopEF files on a device: its streams get data from the files and from the user."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from os import PathLike
from typing import Any

import numpy as np

from simulator.device import Device
from simulator.engine import Engine
from simulator.executable import Executable
from simulator.graph.errors import PoplarError
from simulator.graph.host.streams import Direction, ReplicatedStreamMode, Stream
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import Array
from simulator.model_runtime.config import SessionConfig
from simulator.model_runtime.devices import DeviceManager
from simulator.model_runtime.queues import QueueManager
from simulator.popef.declaration import TensorType
from simulator.popef.model import Model, load_model
from simulator.popef.structures import Anchor
from simulator.runtime.arrangement import arranged, restored

Path_ = str | PathLike[str]
Give = Callable[[], Array]  # the next values of an input, in the anchor's shape
Take = Callable[[Array], None]  # what becomes of the values of an output
InputHandler = Callable[[Anchor], Give]
OutputHandler = Callable[[Anchor], Take]
Predicate = Callable[[Anchor], bool]


def every(anchor: Anchor) -> bool:
    """Choose all anchors."""
    return True


class Session:
    """A program with its engine. Bind a device, set handlers, run programs.

    What the files hold of an input is its data: a tensor again and again, a feed in turns. A
    handler gives the others, and may take the place of what the files hold.

    >>> from tempfile import TemporaryDirectory
    >>> from simulator.popart import trial
    >>> with TemporaryDirectory() as directory:
    ...     x, y = trial.save(f"{directory}/net.popef")
    ...     session = Session(f"{directory}/net.popef")
    ...     session.bindToDevice()
    ...     queues = session.createQueueManager()
    ...     out = np.zeros(3, np.float32)
    ...     queues.inputQueue(x).enqueue(np.float32([-1, 0, 2]))
    ...     queues.outputQueue(y).enqueue(out)
    ...     session.runLoadPrograms()
    ...     cycles = session.runMainPrograms()
    >>> out.tolist()
    [0.0, 0.0, 2.0]
    """

    def __init__(
        self,
        model: Model | Path_ | Iterable[Path_],
        config: SessionConfig | None = None,
        executable: Executable | None = None,
    ) -> None:
        self.model = model if isinstance(model, Model) else load_model(model)
        self.config = config or SessionConfig()
        self.metadata = self.model.metadata
        if self.metadata.numProcesses() > 1:
            raise PoplarError("Session: the program is shared by several processes; see poprun")
        reader = self.model.executable
        self.executable = executable or reader.load(self.config.check_package_hash)
        self._numbers = {n: place for place, n in enumerate(reader.info.programs())}
        self._handles = {option.name(): option.value() for option in reader.info.streams()}
        streams = self.executable.graph.streams
        self._streams = {(stream.handle, stream.direction): stream for stream in streams}
        self._engine = Engine(self.executable, self.config.options())
        self._bound: set[int] = set()
        self._device: Device | None = None
        self._bind_files()

    # Devices
    def bindToDevice(self, device: Device | None = None) -> None:
        """Load the program onto a device; one of its own if none is given.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator.popart import trial
        >>> with TemporaryDirectory() as directory:
        ...     x, y = trial.save(f"{directory}/net.popef")
        ...     session = Session(f"{directory}/net.popef")
        ...     session.bindToDevice()
        ...     session.runLoadPrograms()
        """
        self._device = device or DeviceManager().getDevice(self.executable)
        self._engine.load(self._device)

    def stop(self) -> None:
        """Let the device go.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator.popart import trial
        >>> with TemporaryDirectory() as directory:
        ...     x, y = trial.save(f"{directory}/net.popef")
        ...     session = Session(f"{directory}/net.popef")
        ...     session.bindToDevice()
        ...     session.stop()
        """
        if self._device is not None and self._device.isAttached():
            self._device.detach()
        self._device = None

    # Handlers
    def setUserInputHandler(self, handler: InputHandler, predicate: Predicate = every) -> None:
        """Let a handler give data of inputs: called with each, it returns what gives values.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator.popart import trial
        >>> with TemporaryDirectory() as directory:
        ...     x, y = trial.save(f"{directory}/net.popef")
        ...     session = Session(f"{directory}/net.popef")
        ...     session.bindToDevice()
        ...     session.setUserInputHandler(lambda anchor: lambda: np.float32([-1, 0, 2]))
        ...     session.setUserOutputHandler(lambda anchor: lambda values: print(values.tolist()))
        ...     cycles = session.runMainPrograms()
        [0.0, 0.0, 2.0]
        """
        for number, anchor in self._anchors_of(TensorType.INPUT, predicate):
            self._connect_input(number, anchor, handler(anchor))

    def setUserOutputHandler(self, handler: OutputHandler, predicate: Predicate = every) -> None:
        """Let a handler take data of outputs: called with each, it returns what takes values.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator.popart import trial
        >>> with TemporaryDirectory() as directory:
        ...     x, y = trial.save(f"{directory}/net.popef")
        ...     session = Session(f"{directory}/net.popef")
        ...     session.bindToDevice()
        ...     session.setUserInputHandler(lambda anchor: lambda: np.float32([-1, 0, 2]))
        ...     session.setUserOutputHandler(lambda anchor: lambda values: print(values.tolist()))
        ...     cycles = session.runMainPrograms()
        [0.0, 0.0, 2.0]
        """
        for number, anchor in self._anchors_of(TensorType.OUTPUT, predicate):
            self._connect_output(number, anchor, handler(anchor))

    def createQueueManager(
        self, predicate: Predicate | None = None, timeout_ns: int = 0
    ) -> QueueManager:
        """Connect a queue to each input and output of the main programs, or to those chosen.

        `timeout_ns` is how long a transfer waits for an array.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator.popart import trial
        >>> with TemporaryDirectory() as directory:
        ...     x, y = trial.save(f"{directory}/net.popef")
        ...     session = Session(f"{directory}/net.popef")
        ...     queues = session.createQueueManager()
        >>> list(queues.inputs) == [x]
        True
        """
        main = {id(anchor) for anchor in (*self.metadata.inputs(), *self.metadata.outputs())}
        condition = predicate or (lambda anchor: id(anchor) in main)
        manager = QueueManager(timeout_ns)
        self.setUserInputHandler(manager.input_of, condition)
        self.setUserOutputHandler(manager.output_of, condition)
        return manager

    def unbound(self, programs: Iterable[int]) -> list[Anchor]:
        """List the anchors of some programs that nobody gives data to or takes data from.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator.popart import trial
        >>> with TemporaryDirectory() as directory:
        ...     x, y = trial.save(f"{directory}/net.popef")
        ...     session = Session(f"{directory}/net.popef")
        ...     main = session.metadata.programFlow().main()
        ...     [anchor.name() for anchor in session.unbound(main)] == [x, y]
        True
        """
        subset = set(programs)
        return [
            anchor
            for number, anchor in enumerate(self.metadata.anchors())
            if number not in self._bound and anchor.handle() and subset & set(anchor.programs())
        ]

    # Running
    def runLoadPrograms(self) -> None:
        """Run what loads weights; raises PoplarError where an anchor has no data.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator.popart import trial
        >>> with TemporaryDirectory() as directory:
        ...     x, y = trial.save(f"{directory}/net.popef")
        ...     session = Session(f"{directory}/net.popef")
        ...     session.bindToDevice()
        ...     session.runLoadPrograms()
        """
        self._run(self.metadata.programFlow().load())

    def runMainPrograms(self) -> int:
        """Run a step; return the cycles of the device.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator.popart import trial
        >>> with TemporaryDirectory() as directory:
        ...     x, y = trial.save(f"{directory}/net.popef")
        ...     session = Session(f"{directory}/net.popef")
        ...     session.bindToDevice()
        ...     session.setUserInputHandler(lambda anchor: lambda: np.float32([-1, 0, 2]))
        ...     session.setUserOutputHandler(lambda anchor: lambda values: print(values.tolist()))
        ...     cycles = session.runMainPrograms()
        [0.0, 0.0, 2.0]
        """
        return self._run(self.metadata.programFlow().main())

    def runSavePrograms(self) -> None:
        """Run what gives weights back.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator.popart import trial
        >>> with TemporaryDirectory() as directory:
        ...     x, y = trial.save(f"{directory}/net.popef")
        ...     session = Session(f"{directory}/net.popef")
        ...     session.bindToDevice()
        ...     session.runSavePrograms()
        """
        self._run(self.metadata.programFlow().save())

    def runProgram(self, number: int) -> int:
        """Run a program by its number in the metadata; return the cycles of the device.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator.popart import trial
        >>> with TemporaryDirectory() as directory:
        ...     x, y = trial.save(f"{directory}/net.popef")
        ...     session = Session(f"{directory}/net.popef")
        ...     session.bindToDevice()
        ...     session.setUserInputHandler(lambda anchor: lambda: np.float32([-1, 0, 2]))
        ...     session.setUserOutputHandler(lambda anchor: lambda values: print(values.tolist()))
        ...     (main,) = session.metadata.programFlow().main()
        ...     cycles = session.runProgram(main)
        [0.0, 0.0, 2.0]
        """
        return self._run([number])

    def _run(self, programs: list[int]) -> int:
        unknown = [number for number in programs if number not in self._numbers]
        if unknown:
            numbers = ", ".join(map(str, sorted(self._numbers)))
            raise PoplarError(f"Session: no program {unknown[0]}; there are {numbers}")
        if self._device is None:
            raise PoplarError("Session: call bindToDevice before programs run")
        anchors = self.unbound(programs)
        if anchors:
            way = "data" if anchors[0].type() is TensorType.INPUT else "handler"
            raise PoplarError(f"Session: anchor {anchors[0].name()!r} has no {way}")
        before = self._engine.getTimeStamp().cycles
        for number in programs:
            self._engine.run(self._numbers[number], self.metadata.programsMap().get(number, ""))
        if not self.config.engine_options:
            self._engine.resetExecutionProfile()  # what ran is not kept
        return self._engine.getTimeStamp().cycles - before

    # Streams
    def _anchors_of(self, kind: TensorType, predicate: Predicate) -> list[tuple[int, Anchor]]:
        return [
            (number, anchor)
            for number, anchor in enumerate(self.metadata.anchors())
            if anchor.type() is kind and anchor.handle() and predicate(anchor)
        ]

    def _bind_files(self) -> None:
        """Connect the inputs whose data stands in the files."""
        tensors = {tensor.info.name(): tensor for tensor in self.model.tensors}
        feeds = {feed.info.name(): feed for feed in self.model.feeds}
        for number, anchor in self._anchors_of(TensorType.INPUT, every):
            name = anchor.name()
            if name in tensors:
                self._connect_input(number, anchor, _Held(tensors[name].data))
            elif name in feeds:
                self._connect_input(number, anchor, _Turns(feeds[name].data))

    def _stream(self, anchor: Anchor, direction: Direction) -> tuple[Stream, int, Tensor | None]:
        """Return stream, copies and order of an anchor; raises PoplarError."""
        name = self._handles.get(anchor.handle(), anchor.handle())
        if (name, direction) not in self._streams:
            raise PoplarError(f"Session: anchor {anchor.name()!r}: the program has no {name!r}")
        stream = self._streams[name, direction]
        broadcast = stream.replicated_mode is ReplicatedStreamMode.BROADCAST
        copies = 1 if broadcast else self.executable.graph.replication * stream.replicas
        return stream, copies, self.executable.host_order.get(name)

    def _connect_input(self, number: int, anchor: Anchor, give: Give) -> None:
        stream, copies, order = self._stream(anchor, "in")
        parts = _Parts(copies, anchor.isPerReplica())

        def fill(buffer: Array, replica: int) -> None:
            values = parts.next(replica, give)
            buffer[:] = (values if order is None else arranged(order, values)).view(buffer.dtype)

        self._connect(stream, copies, fill)
        self._bound.add(number)

    def _connect_output(self, number: int, anchor: Anchor, take: Take) -> None:
        stream, copies, order = self._stream(anchor, "out")
        shape, parts = anchor.tensorInfo().shape(), _Parts(copies, anchor.isPerReplica())
        dtype = anchor.tensorInfo().dtype()

        def keep(buffer: Array, replica: int) -> None:
            values = buffer if order is None else restored(order, buffer)
            array = parts.add(replica, values)
            if array is not None:
                take(array.view(dtype).reshape(shape))

        self._connect(stream, copies, keep)
        self._bound.add(number)

    def _connect(self, stream: Stream, copies: int, act: Callable[..., None]) -> None:
        for replica in range(copies):
            callback = partial(act, replica=replica)
            arguments = (callback,) if copies == 1 else (replica, callback)
            self._engine.connectStreamToCallback(stream, *arguments)


class _Parts:
    """The values of a transfer, of all replicas or one after another's."""

    def __init__(self, copies: int, per_replica: bool) -> None:
        self._per_replica = per_replica
        self._waiting: list[deque[Array]] = [deque() for _ in range(copies)]

    def next(self, replica: int, give: Give) -> Array:
        """Return what a replica gets; a new transfer is asked for when it has had the last one."""
        if not self._waiting[replica]:
            values = np.ascontiguousarray(give())
            copies = len(self._waiting)
            rows = (
                values.reshape(copies, -1) if self._per_replica else [values.reshape(-1)] * copies
            )
            for waiting, row in zip(self._waiting, rows, strict=True):
                waiting.append(row)
        return self._waiting[replica].popleft()

    def add(self, replica: int, values: Array) -> Array | None:
        """Take what a replica gives; return that of all once they all gave theirs."""
        self._waiting[replica].append(values)
        if not all(self._waiting):
            return None
        parts = [waiting.popleft() for waiting in self._waiting]
        return np.concatenate(parts) if self._per_replica and len(parts) > 1 else parts[0]


class _Held:
    """The one value of an input, read when it is first asked for."""

    def __init__(self, read: Give) -> None:
        self._read, self._values = read, None  # type: tuple[Give, Array | None]

    def __call__(self) -> Array:
        if self._values is None:
            self._values = self._read()
        return self._values


class _Turns(_Held):
    """The values of a feed, one after another and again from the first."""

    _next = 0

    def __call__(self) -> Any:
        values = super().__call__()
        self._next += 1
        return values[(self._next - 1) % len(values)]
