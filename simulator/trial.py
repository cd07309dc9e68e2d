"""Try functions of the libraries: tensors of numbers that the host has, and their results."""

from __future__ import annotations

from typing import Any

import numpy as np

from simulator.device import IPUModel
from simulator.engine import Engine
from simulator.graph.graph import Graph
from simulator.graph.program import Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import BOOL, FLOAT, INT, Type
from simulator.poplibs.poputil.tile_mapping import mapTensorLinearly


class Trial:
    """A graph for a small machine, a program, and the values that its tensors begin with.

    >>> from simulator import popops
    >>> trial = Trial()
    >>> a, b = trial.tensor([1.0, 2.0]), trial.tensor([3.0, 4.0])
    >>> trial.values(popops.add(trial.graph, a, b, trial.prog))
    [4.0, 6.0]
    """

    def __init__(self, machine: str = "tiny") -> None:
        self.device = IPUModel(machine).createDevice()
        self.graph = Graph(self.device.getTarget())
        self.prog = Sequence()
        self._inputs: dict[str, Any] = {}
        self._reads = 0

    def tensor(self, values: Any, dtype: Type | None = None) -> Tensor:
        """Add a variable that holds values, spread over the tiles.

        Without a type truth values are BOOL, whole numbers INT, all others FLOAT.
        """
        array = np.asarray(values)
        kind = dtype or {"b": BOOL, "i": INT}.get(array.dtype.kind, FLOAT)
        tensor = self.graph.addVariable(kind, array.shape, f"in{len(self._inputs)}")
        mapTensorLinearly(self.graph, tensor)
        return self.write(tensor, array)

    def write(self, tensor: Tensor, values: Any) -> Tensor:
        """Let a tensor hold values when the program begins; return the tensor."""
        handle = f"in{len(self._inputs)}"
        self.graph.createHostWrite(handle, tensor)
        self._inputs[handle] = np.asarray(values, tensor.dtype.numpy)
        return tensor

    def values(self, *tensors: Tensor) -> Any:
        """Run the program; return the values of a tensor as lists, of several one after another."""
        handles = [f"out{self._reads + number}" for number in range(len(tensors))]
        self._reads += len(tensors)
        for handle, tensor in zip(handles, tensors, strict=True):
            self.graph.createHostRead(handle, tensor)
        engine = Engine(self.graph, self.prog)
        engine.load(self.device)
        for handle, array in self._inputs.items():
            engine.writeTensor(handle, array)
        engine.run(0)
        lists = [engine.readTensor(handle).tolist() for handle in handles]
        return lists[0] if len(lists) == 1 else lists
