"""A run without values: memory and cycles of programs whose way no tensor decides."""

from __future__ import annotations

from typing import NoReturn, TextIO

import numpy as np

from simulator.graph.errors import PoplarError, application_runtime_error
from simulator.graph.program import Abort, ErrorProgram, Program
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import Array, IntArray
from simulator.runtime.execute import ValueRunner

OPTION = "simulator.computeValues"


class NoValues(ValueRunner):
    """Stands in for values: nothing is held, computed or streamed."""

    def __init__(self) -> None:
        """Hold nothing."""

    def print_to(self, text: TextIO) -> None:
        """Print nothing."""

    def tell_clocks(self, clocks: tuple[IntArray, IntArray]) -> None:
        """Keep no clocks."""

    def run(self, action: Program) -> None:
        """Compute nothing; what ends a run in any case still does, with its message."""
        if isinstance(action, Abort | ErrorProgram):
            raise application_runtime_error(action.message or "Abort: the program ended its run")

    def is_set(self, predicate: Tensor) -> NoReturn:
        """Raise PoplarError: the tensor decides where the program goes, and has no value."""
        _refuse(predicate)

    def number(self, control: Tensor) -> NoReturn:
        """Raise PoplarError: the tensor decides where the program goes, and has no value."""
        _refuse(control)

    def read(self, tensor: Tensor) -> Array:
        """Return nothing of what replicas exchange."""
        return np.zeros(0, dtype=tensor.dtype.numpy)

    def write(self, tensor: Tensor, values: Array) -> None:
        """Keep nothing of what replicas exchange."""


def _refuse(tensor: Tensor) -> NoReturn:
    raise PoplarError(
        f"{tensor!r} decides where the program goes; {OPTION} has to be true for that"
    )
