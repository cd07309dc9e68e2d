"""Runs a program on a small device: what it computes, and whether its report breaks a law."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pva.check import check
from pva.formats import registry
from simulator import poputil
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, Type
from simulator.poplar import Engine, Graph, IPUModel, program


class DeviceProgram:
    """A graph for a device with some tiles, its program, and the values that its tensors get."""

    def __init__(self, tiles: int = 8, target: str = "mk2") -> None:
        self.device = IPUModel(target, tilesPerIPU=tiles).createDevice()
        self.graph = Graph(self.device.getTarget())
        self.program = program.Sequence()
        self._given: list[tuple[str, Any]] = []

    def tensor(self, values: Any, dtype: Type = FLOAT, name: str = "t") -> Tensor:
        """Add a variable with these values, spread over the tiles in order."""
        array = np.asarray(values, dtype.numpy)
        tensor = self.graph.addVariable(dtype, array.shape, name)
        poputil.mapTensorLinearly(self.graph, tensor)
        return self.give(tensor, array)

    def give(self, tensor: Tensor, values: Any) -> Tensor:
        """Let a tensor hold these values when the program begins."""
        handle = f"in{len(self._given)}"
        self.graph.createHostWrite(handle, tensor)
        self._given.append((handle, np.asarray(values, tensor.dtype.numpy)))
        return tensor

    def run(self, *outputs: Tensor, report: Path | None = None) -> list[Any]:
        """Run the program; give the values of tensors, and hold its report to every law."""
        for number, tensor in enumerate(outputs):
            self.graph.createHostRead(f"out{number}", tensor)
        options = {"autoReport.all": True, "autoReport.directory": str(report)} if report else {}
        engine = Engine(self.graph, self.program, options)
        engine.load(self.device)
        for handle, values in self._given:
            engine.writeTensor(handle, values)
        engine.run(0)
        found = [engine.readTensor(f"out{number}") for number in range(len(outputs))]
        if report:
            assert [str(violation) for violation in check(registry.read(report))] == []
        return found
