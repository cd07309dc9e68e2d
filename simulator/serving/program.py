"""The program of a version of a model: loaded once an instance, run for batches of any rows.

Names are those of clients, as the name map says. Shapes and types of `config.pbtxt` are compared
with those of the executable, and each difference is a line.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np

from pva.errors import PvaError
from simulator.graph.errors import PoplarError
from simulator.graph.types import Array
from simulator.model_runtime import (
    DataDesc,
    ModelRunner,
    ModelRunnerConfig,
    OutputMemory,
)
from simulator.model_runtime.runner import OutputFuture
from simulator.popef import Model as PopefModel
from simulator.popef import load_model
from simulator.serving.device_types import is_held, to_client, to_device
from simulator.serving.model_config import Settings, Tensor
from simulator.serving.repository import Version

RUNS = 100  # of a report: the first ones, warm-up among them, with all of their steps
RING = 1024  # transfers that wait at a runner: its callers wait their turn in the batcher


@dataclass(frozen=True, slots=True)
class Answer:
    """Outputs by the names of clients, cycles of the device, and padding rows of the last step."""

    outputs: Mapping[str, Array]
    cycles: int
    padding: int


class Program:
    """A loaded executable. `rows` is what it takes at once, `clock` the device's, in hertz."""

    def __init__(
        self, settings: Settings, version: Version, model: PopefModel, report: Path | None = None
    ) -> None:
        self.settings, self.version = settings, version
        batched = settings.config.max_batch_size > 0
        config = ModelRunnerConfig(
            timeout_ns=settings.timeout_ns, batching_dim=0 if batched else None,
            ring_buffer_size_multiplier=RING,
            engine_options=_recorded(report) if report is not None else {},
        )  # fmt: skip
        try:
            self.runner = ModelRunner(model, config)
        except PoplarError as error:
            raise PvaError(version.executable, str(error)) from error
        iterations = max(1, model.metadata.deviceIterations())
        self.rows = self.runner.batch * iterations if batched else 1
        self._names = {client: name for name, client in version.names.items()}
        try:
            self._inputs = self._matched(settings.inputs, self.runner.getExecuteInputs(), "input")
            self._outputs = self._matched(
                settings.outputs, self.runner.getExecuteOutputs(), "output"
            )
        except PvaError:
            self.runner.close()
            raise

    def held(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Return inputs of a client as the device holds them; raises TensorError."""
        return {
            tensor.name: to_device(tensor.name, tensor.datatype, inputs[tensor.name], desc.dtype)
            for tensor, desc in self._inputs.items()
        }

    def run(self, inputs: Mapping[str, Array]) -> Answer:
        """Run a batch and wait for it; raises PoplarError."""
        result = self.runner.execute(self._inputs_as_compiled(inputs))
        return self.answer(result)

    def start(self, inputs: Mapping[str, Array]) -> OutputFuture:
        """Hand a batch over; return the future of what `answer` takes."""
        return self.runner.executeAsync(self._inputs_as_compiled(inputs))

    def answer(self, result: OutputMemory) -> Answer:
        """Return outputs by the names of clients, in the shapes that they know."""
        outputs = {
            tensor.name: _shaped(
                to_client(tensor.datatype, result[desc.name]), tensor, desc, self.batched
            )
            for tensor, desc in self._outputs.items()
        }
        return Answer(outputs, result.cycles, result.padding)

    @property
    def batched(self) -> bool:
        """Return whether requests have a batch dimension."""
        return bool(self.settings.config.max_batch_size > 0)

    def close(self) -> None:
        """End when the steps that run have ended."""
        self.runner.close()

    def _inputs_as_compiled(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        return {
            desc.name: _as_compiled(inputs[tensor.name], desc, self.batched)
            for tensor, desc in self._inputs.items()
        }

    def _matched(
        self, tensors: tuple[Tensor, ...], descs: list[DataDesc], kind: str
    ) -> dict[Tensor, DataDesc]:
        """Match each tensor of the configuration to the executable; raises PvaError."""
        by_name = {desc.name: desc for desc in descs}
        client = self.version.names
        matched = {}
        for number, tensor in enumerate(tensors):
            desc_name = self._names.get(tensor.name, tensor.name)
            if desc_name not in by_name:
                names = ", ".join(client.get(name, name) for name in by_name)
                place = f"{kind}[{number}].name"
                expected = f"the executable has {names}"
                raise PvaError(self.settings.path, f"{tensor.name!r}", expected, place=place)
            matched[tensor] = by_name.pop(desc_name)
            self._check(tensor, matched[tensor], f"{kind}[{number}]")
        if by_name and kind == "input":
            name = next(iter(by_name))
            fault = f"no input {client.get(name, name)!r}"
            raise PvaError(self.settings.path, fault, "the executable needs it", place="input")
        return matched

    def _check(self, tensor: Tensor, desc: DataDesc, place: str) -> None:
        if not is_held(tensor.datatype, desc.dtype):
            right = f"the executable's {desc.name!r} is {desc.data_type.value}"
            raise PvaError(self.settings.path, tensor.datatype, right, place=f"{place}.data_type")
        dims = tensor.dims if tensor.reshape is None else tensor.reshape
        shape = desc.shape[1:] if self.batched else desc.shape
        same = len(dims) == len(shape) and all(
            dim in (-1, size) for dim, size in zip(dims, shape, strict=True)
        )
        if not same and (-1 in dims or math.prod(dims) != math.prod(shape)):
            right = f"the executable's {desc.name!r} is {list(shape)} a row"
            raise PvaError(self.settings.path, str(list(dims)), right, place=f"{place}.dims")


def load_program(settings: Settings, version: Version, report: Path | None = None) -> Program:
    """Load a version of a model, for one instance; raises PvaError.

    Where `report` is a directory, what its device does is written there.
    """
    paths = [version.executable, *([version.weights] if version.weights else [])]
    return Program(settings, version, load_model(paths), report)


def _recorded(report: Path) -> dict[str, object]:
    return {
        "autoReport.all": True,
        "autoReport.directory": str(report),
        "autoReport.executionProfileProgramRunCount": RUNS,
    }


def _as_compiled(array: Array, desc: DataDesc, batched: bool) -> Array:
    shape = (len(array), *desc.shape[1:]) if batched else desc.shape
    return array.reshape(shape)


def _shaped(array: Array, tensor: Tensor, desc: DataDesc, batched: bool) -> Array:
    shape = desc.shape[1:] if batched else desc.shape
    dims = tensor.dims if -1 not in tensor.dims else shape
    return array.reshape((len(array), *dims) if batched else dims)


class BatchFacts(TypedDict):
    """A compiled batch: its rows, its cycles, the clock of the device, and its time."""

    rows: int
    cycles: int | None
    clock: float | None
    batch_ns: int


def batch_facts(settings: Settings, version: Version) -> BatchFacts:
    """Run a compiled batch of zeros; return its rows, cycles, the clock and its time in ns.

    A program takes the same cycles for any values, but for vertices whose time depends on them.
    """
    program = load_program(settings, version)
    try:
        inputs = {
            tensor.name: np.zeros(
                (program.rows, *desc.shape[1:]) if program.batched else desc.shape, desc.dtype
            )
            for tensor, desc in program._inputs.items()
        }
        cycles = program.run(inputs).cycles
        clock = program.runner.clock_frequency
    except PoplarError as error:
        raise PvaError(version.executable, str(error)) from error
    finally:
        program.close()
    return {
        "batch_ns": max(round(cycles * 1e9 / clock), 1), "rows": program.rows, "cycles": cycles,
        "clock": clock,
    }  # fmt: skip
