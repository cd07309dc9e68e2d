"""A model on its way to the intermediate representation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import onnx

from simulator.popart.representation.ir import ONNX
from simulator.popart.representation.tensor_info import InputShapeInfo


@dataclass(slots=True)
class Import:
    """A model on its way: the graph that is made, and what could not be."""

    what: str
    folder: Path | None
    opsets: Mapping[str, int]
    ir_version: int
    shapes: InputShapeInfo
    values: bool = True  # whether weights have to be there
    wrong: list[str] = field(default_factory=list)
    declared: dict[str, list[int | None]] = field(default_factory=dict)  # sizes, None where open

    @property
    def imports(self) -> list[onnx.OperatorSetIdProto]:
        """Return the operator sets as ONNX has them."""
        return [
            onnx.helper.make_opsetid("" if domain == ONNX else domain, version)
            for domain, version in self.opsets.items()
        ]
