"""Runs the values of a program without compiling it, so that tests of values need no clock."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from simulator.graph.graph import Graph
from simulator.graph.machine.target import make_target
from simulator.graph.program import If, Program, Repeat, RepeatWhileTrue, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, Type
from simulator.graph.validation.graphs import check_mapped, check_writers
from simulator.poplibs import poputil
from simulator.runtime.execute import ValueRunner
from simulator.runtime.host_streams import HostStreams
from simulator.runtime.storage import Storage


class Values:
    """A graph for a small target, and its values."""

    def __init__(self, target: str = "tiny", **changes: Any) -> None:
        self.graph = Graph(make_target(target, **changes))
        self.program = Sequence()
        self.text = io.StringIO()
        self._initial: list[tuple[Tensor, Any]] = []

    def tensor(self, values: Any, name: str = "t", dtype: Type = FLOAT) -> Tensor:
        """Add a linearly mapped variable with these values."""
        array = np.asarray(values, dtype.numpy)
        tensor = self.graph.addVariable(dtype, array.shape, name)
        poputil.mapTensorLinearly(self.graph, tensor)
        self._initial.append((tensor, array))
        return tensor

    def run(self) -> Storage:
        """Check the graph as an engine does, run the program once and give the storage."""
        check_mapped(self.graph)
        check_writers(self.graph)
        storage = Storage(self.graph)
        for tensor, values in self._initial:
            storage.write(tensor, values, "test")
        streams = HostStreams(self.graph.streams)
        self._run(self.program, ValueRunner(self.graph, storage, streams, self.text))
        return storage

    def _run(self, program: Program, runner: ValueRunner) -> None:
        match program:
            case Sequence():
                for child in program.children:
                    self._run(child, runner)
            case Repeat():
                for _ in range(program.count):
                    self._run(program.body, runner)
            case RepeatWhileTrue():
                while self._holds(program.cond, program.predicate, runner):
                    self._run(program.body, runner)
            case If():
                holds = self._holds(Sequence(), program.predicate, runner)
                self._run(program.trueBody if holds else program.falseBody, runner)
            case _:
                runner.run(program)

    def _holds(self, condition: Program, predicate: Tensor, runner: ValueRunner) -> bool:
        self._run(condition, runner)
        return bool(runner.read(predicate).any())


def numbers(*shape: int, seed: int = 0) -> Any:
    """Draw float32 numbers around zero."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
