"""The runner: answers requests by the program of PopEF files, one at a time or many at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from threading import Thread
from typing import Self

import numpy as np

from simulator.device import Device
from simulator.graph.errors import PoplarError
from simulator.graph.types import Array
from simulator.model_runtime.config import ModelRunnerConfig
from simulator.model_runtime.memory import DataDesc, OutputMemory, check_names
from simulator.model_runtime.requests import Batch, Request, Requests, failed
from simulator.model_runtime.session import Path_, Session
from simulator.model_runtime.spans import span
from simulator.popef.model import Model, load_model
from simulator.popef.structures import Anchor


class OutputFuture(Future[OutputMemory]):
    """The answer that is to come; `get` waits for it."""

    def get(self, timeout: float | None = None) -> OutputMemory:
        """Wait for the answer; raises what the request failed by."""
        return self.result(timeout)

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the request is answered, well or not."""
        self.exception(timeout)


class ModelRunner:
    """Runs the program of PopEF files for requests; close it, or use it in a `with` block.

    `model` is a Model, a path, or several paths such as those of a program and its weights. The
    weights are loaded once; each request is then part of a step, or of several.

    >>> from tempfile import TemporaryDirectory
    >>> from simulator import popart
    >>> builder = popart.Builder()
    >>> x = builder.addInputTensor("FLOAT", [3])
    >>> y = builder.aiOnnx.relu([x])
    >>> flow = popart.DataFlow(1, {y: popart.AnchorReturnType("All")})
    >>> device = popart.DeviceManager().createIpuModelDevice({"numIPUs": 1, "tilesPerIPU": 4})
    >>> session = popart.InferenceSession(builder.getModelProto(), flow, device)
    >>> session.prepareDevice()
    >>> with TemporaryDirectory() as directory:
    ...     session.saveExecutable(f"{directory}/net.popef")
    ...     with ModelRunner(f"{directory}/net.popef") as runner:
    ...         runner.execute({x: np.float32([-1, 0, 2])})[y].tolist()
    [0.0, 0.0, 2.0]
    """

    def __init__(
        self,
        model: Model | Path_ | Iterable[Path_],
        config: ModelRunnerConfig | None = None,
        device: Device | None = None,
    ) -> None:
        self.config = config or ModelRunnerConfig()
        self.model = model if isinstance(model, Model) else load_model(model)
        self.metadata = self.model.metadata
        self._iterations = max(1, self.metadata.deviceIterations())
        self._frozen = self._frozen_inputs()
        self._any_rows = self.config.batching_dim is not None
        self._inputs = self._described(
            [anchor for anchor in self.metadata.inputs() if anchor.name() not in self._frozen]
        )
        self._outputs = self._described(self.metadata.outputs())
        descs = [*self._inputs, *self._outputs]
        self._rows = _rows_of(descs) if self._any_rows else 1
        self._row = {d.name: d.rows(self._any_rows) for d in descs}
        capacity = self.config.ring_buffer_size_multiplier * self._iterations
        self._requests = Requests(self._rows, capacity)
        self._steps = self._loaded(device)
        self._threads = [
            Thread(target=self._serve, args=[step], daemon=True) for step in self._steps
        ]
        for thread in self._threads:
            thread.start()

    def _described(self, anchors: Sequence[Anchor]) -> list[DataDesc]:
        """Return names, shapes and types; with rows of any number, those of all replicas as one."""
        descs = [DataDesc.of(anchor) for anchor in anchors]
        if not self._any_rows:
            return descs
        pairs = zip(descs, anchors, strict=True)
        return [_merged(desc, anchor.isPerReplica()) for desc, anchor in pairs]

    # What there is
    def getExecuteInputs(self) -> list[DataDesc]:
        """List what a request has to give.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator.popart import trial
        >>> with TemporaryDirectory() as directory:
        ...     x, y = trial.save(f"{directory}/net.popef")
        ...     with ModelRunner(f"{directory}/net.popef") as runner:
        ...         [desc.shape for desc in runner.getExecuteInputs()]
        [(3,)]
        """
        return list(self._inputs)

    def getExecuteOutputs(self) -> list[DataDesc]:
        """List what an answer has.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator.popart import trial
        >>> with TemporaryDirectory() as directory:
        ...     x, y = trial.save(f"{directory}/net.popef")
        ...     with ModelRunner(f"{directory}/net.popef") as runner:
        ...         [desc.shape for desc in runner.getExecuteOutputs()]
        [(3,)]
        """
        return list(self._outputs)

    @property
    def batch(self) -> int:
        """Return the rows that the program takes at once; 1 where a request is as compiled.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator.popart import trial
        >>> with TemporaryDirectory() as directory:
        ...     x, y = trial.save(f"{directory}/net.popef")
        ...     with ModelRunner(f"{directory}/net.popef") as runner:
        ...         runner.batch
        1
        """
        return self._rows

    @property
    def rows_of_request(self) -> int:
        """Return the rows of a request as compiled: the first size that inputs share, else 1.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator.popart import trial
        >>> with TemporaryDirectory() as directory:
        ...     x, y = trial.save(f"{directory}/net.popef")
        ...     with ModelRunner(f"{directory}/net.popef") as runner:
        ...         runner.rows_of_request
        3
        """
        sizes = {desc.shape[0] if desc.shape else 0 for desc in self._inputs}
        return (sizes.pop() or 1) if len(sizes) == 1 else 1

    @property
    def clock_frequency(self) -> float:
        """Return the cycles of a second of the device.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator.popart import trial
        >>> with TemporaryDirectory() as directory:
        ...     x, y = trial.save(f"{directory}/net.popef")
        ...     with ModelRunner(f"{directory}/net.popef") as runner:
        ...         runner.clock_frequency
        1330000000.0
        """
        return float(self._steps[0].session.executable.graph.device_target.clock_frequency)

    @property
    def device_cycles(self) -> list[int]:
        """Return the cycles that the steps on each device have taken so far.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator.popart import trial
        >>> with TemporaryDirectory() as directory:
        ...     x, y = trial.save(f"{directory}/net.popef")
        ...     with ModelRunner(f"{directory}/net.popef") as runner:
        ...         answer = runner.execute({x: np.float32([-1, 0, 2])})
        ...         runner.device_cycles == [answer.cycles]
        True
        """
        return [step.cycles for step in self._steps]

    # Requests
    def execute(
        self, inputs: Mapping[str, object], outputs: Mapping[str, Array] | None = None
    ) -> OutputMemory:
        """Answer a request: arrays by name, with the cycles of the device.

        `outputs` are arrays to be filled; without them new ones are made. Raises PoplarError.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator.popart import trial
        >>> with TemporaryDirectory() as directory:
        ...     x, y = trial.save(f"{directory}/net.popef")
        ...     with ModelRunner(f"{directory}/net.popef") as runner:
        ...         runner.execute({x: np.float32([-1, 0, 2])})[y].tolist()
        [0.0, 0.0, 2.0]
        """
        return self.executeAsync(inputs, outputs).get()

    def executeAsync(
        self, inputs: Mapping[str, object], outputs: Mapping[str, Array] | None = None
    ) -> OutputFuture:
        """Take a request in, to be answered when its turn comes; raises PoplarError.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator.popart import trial
        >>> with TemporaryDirectory() as directory:
        ...     x, y = trial.save(f"{directory}/net.popef")
        ...     with ModelRunner(f"{directory}/net.popef") as runner:
        ...         future = runner.executeAsync({x: np.float32([-1, 0, 2])})
        ...         future.get()[y].tolist()
        [0.0, 0.0, 2.0]
        """
        request = self._request(inputs, outputs)
        future = request.future = OutputFuture()
        future.set_running_or_notify_cancel()
        self._requests.put(request)
        return future

    def close(self) -> None:
        """End when the steps that run have ended; requests that wait fail.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator.popart import trial
        >>> with TemporaryDirectory() as directory:
        ...     x, y = trial.save(f"{directory}/net.popef")
        ...     runner = ModelRunner(f"{directory}/net.popef")
        ...     answer = runner.execute({x: np.float32([-1, 0, 2])})
        ...     runner.close()
        >>> answer[y].tolist()
        [0.0, 0.0, 2.0]
        """
        failed(self._requests.close(), PoplarError("ModelRunner: it was closed"))
        for thread in self._threads:
            thread.join()
        for step in self._steps:
            step.session.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _request(
        self, inputs: Mapping[str, object], outputs: Mapping[str, Array] | None
    ) -> Request:
        any_rows = self._any_rows
        if self.config.validate_io_params:
            check_names(inputs, {desc.name: desc for desc in self._inputs}, "input")
        values = {d.name: d.checked(inputs[d.name], "input", any_rows) for d in self._inputs}
        sizes = {len(array) for array in values.values()} if any_rows else {1}
        if len(sizes) > 1:
            counts = ", ".join(f"{name!r} {len(array)}" for name, array in values.items())
            raise PoplarError(f"inputs have different numbers of rows: {counts}")
        rows = sizes.pop() if sizes else 1
        shapes = {d.name: (rows, *d.shape[1:]) if any_rows else d.shape for d in self._outputs}
        memory = OutputMemory({d.name: np.empty(shapes[d.name], d.dtype) for d in self._outputs})
        if outputs is not None:
            check_names(outputs, shapes, "output")
            memory.update(self._to_fill(outputs, shapes))
        if any_rows:
            return Request(values, memory, rows, memory)
        return Request(_alone(values), _alone(memory), 1, memory)

    def _to_fill(
        self, outputs: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]]
    ) -> dict[str, Array]:
        for desc in self._outputs:
            array = outputs[desc.name]
            good = isinstance(array, np.ndarray) and array.flags.writeable
            if not good or (array.shape, array.dtype) != (shapes[desc.name], desc.dtype):
                raise PoplarError(
                    f"output {desc.name!r}: an array of {desc.dtype} {list(shapes[desc.name])} to "
                    "be filled is needed"
                )
        return dict(outputs)

    # Steps
    def _frozen_inputs(self) -> dict[str, Array]:
        """Return the inputs that are the same for all requests; raises PoplarError."""
        anchors = {anchor.name(): anchor for anchor in self.metadata.inputs()}
        values = self.config.frozen_inputs
        check_names(dict.fromkeys(anchors) | dict(values), anchors, "input")
        return {n: DataDesc.of(anchors[n]).checked(v, "frozen input") for n, v in values.items()}

    def _loaded(self, device: Device | None) -> list[Step]:
        """Load a copy of the program onto each device, and its weights."""
        executable = self.model.executable.load(self.config.check_package_hash)
        steps = []
        for number in range(self.config.replication_factor):
            session = Session(self.model, self.config.session(), executable)
            session.bindToDevice(None if number else device)
            step = Step(self, session)
            session.setUserInputHandler(step.input, step.is_input)
            session.setUserOutputHandler(step.output, step.is_output)
            session.runLoadPrograms()
            steps.append(step)
        return steps

    def _serve(self, step: Step) -> None:
        """Answer requests until the runner is closed."""
        while (batch := self._requests.first(self.config.timeout_ns)) is not None:
            step.run(batch)


class Step:
    """A step of a program on one device: the batches of its iterations, one transfer each."""

    def __init__(self, runner: ModelRunner, session: Session) -> None:
        self.runner, self.session = runner, session
        self.cycles = 0  # of all steps so far
        self._batches: list[Batch] = []
        self._inputs = {desc.name for desc in runner._inputs}
        self._outputs = {desc.name for desc in runner._outputs}
        self._given: dict[str, int] = {}  # transfers of each input and output so far

    def run(self, first: Batch) -> None:
        """Run a step that begins with a batch, and answer its requests."""
        self._batches = [first]
        self._given = dict.fromkeys((*self._inputs, *self._outputs), 0)
        try:
            with span("execute", tags := {"cycles": 0}):
                tags["cycles"] = cycles = self.session.runMainPrograms()
            self.cycles += cycles
            self._check_outputs()
        except Exception as error:
            for batch in self._batches:
                batch.fail(error)
            return
        for batch in self._batches:
            batch.end(cycles)

    def is_input(self, anchor: Anchor) -> bool:
        """Choose the inputs of requests, and those that are frozen."""
        main = anchor.programs() and set(anchor.programs()) & self._main
        return bool(main) and anchor.name() in {*self._inputs, *self.runner._frozen}

    def is_output(self, anchor: Anchor) -> bool:
        """Choose the outputs of answers."""
        main = anchor.programs() and set(anchor.programs()) & self._main
        return bool(main) and anchor.name() in self._outputs

    @property
    def _main(self) -> set[int]:
        return set(self.session.metadata.programFlow().main())

    def input(self, anchor: Anchor) -> Callable[[], Array]:
        """Return what gives the values of an input."""
        name = anchor.name()
        if name in self.runner._frozen:
            return partial(self.runner._frozen.__getitem__, name)
        return partial(self._next, name)

    def output(self, anchor: Anchor) -> Callable[[Array], None]:
        """Return what takes the values of an output."""
        return partial(self._put, anchor.name())

    def _next(self, name: str) -> Array:
        """Return the values of the next batch; raises what no callback may."""
        number = self._given[name]
        self._given[name] += 1
        while number >= len(self._batches):
            timeout = self.runner.config.timeout_ns
            batch = self.runner._requests.next(timeout)
            self._batches.append(batch or Batch((), self.runner._rows))
        with span("upload"):
            return self._batches[number].input(name, self.runner._row[name])

    def _put(self, name: str, values: Array) -> None:
        number = self._given[name]
        self._given[name] += 1
        row = self.runner._row[name]
        if number < len(self._batches):
            with span("download"):
                self._batches[number].output(name, values.reshape(self.runner._rows, *row.shape))

    def _check_outputs(self) -> None:
        """Raise PoplarError where an output does not come with each batch."""
        for name in self._outputs:
            count, expected = self._given[name], len(self._batches)
            if count != expected:
                raise PoplarError(
                    f"output {name!r} comes {count} times in {expected} batches; it must come with "
                    "each: AnchorReturnType ALL"
                )


def _alone(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return arrays as the only row of a batch."""
    return {name: array[None] for name, array in arrays.items()}


def _merged(desc: DataDesc, per_replica: bool) -> DataDesc:
    """Return an anchor's shape with the rows of all replicas in one dimension."""
    if not per_replica or len(desc.shape) < 2:
        return desc
    first, second, *tail = desc.shape
    return replace(desc, shape=(first * second, *tail))


def _rows_of(descs: Sequence[DataDesc]) -> int:
    """Return the rows of a batch, which all have; raises PoplarError."""
    sizes = {desc.name: desc.shape[0] if desc.shape else 0 for desc in descs}
    if len(set(sizes.values())) != 1 or 0 in sizes.values():
        listing = ", ".join(f"{name!r} {size}" for name, size in sizes.items())
        raise PoplarError(
            f"ModelRunnerConfig: batching_dim is 0, but the first sizes differ: {listing}; freeze "
            "inputs that are no batch, or leave it out"
        )
    return next(iter(sizes.values()))
