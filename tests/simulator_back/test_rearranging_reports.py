"""Whole programs that regroup, pad and normalise: their reports break no law."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pva.check import check
from pva.formats import registry
from simulator import popops, poputil
from simulator.poplar import FLOAT, HALF, UNSIGNED_CHAR, Engine, Graph, IPUModel, program
from simulator.poplibs.popops.padding import MappingMethod


class Run:
    """A program on 16 tiles, with a variable that the host writes."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.device = IPUModel("mk1", tilesPerIPU=16).createDevice()
        self.graph, self.prog = Graph(self.device.getTarget()), program.Sequence()
        self.tensor = self.graph.addVariable(dtype, shape, "values")
        poputil.mapTensorLinearly(self.graph, self.tensor)
        self.graph.createHostWrite("values", self.tensor)
        self.values = (np.arange(np.prod(shape)) % 200).reshape(shape).astype(dtype.numpy)

    def found(self, out: Any, directory: Path) -> Any:
        """Run, hold the report to the laws and give what the program made."""
        self.graph.createHostRead("found", out)
        options = {"autoReport.all": True, "autoReport.directory": str(directory)}
        engine = Engine(self.graph, self.prog, options)
        engine.load(self.device)
        engine.writeTensor("values", self.values)
        engine.run(0)
        assert [str(violation) for violation in check(registry.read(directory))] == []
        return engine.readTensor("found").reshape(out.shape)


@pytest.mark.parametrize("dtype", [FLOAT, HALF], ids=str)
def test_a_report_of_regrouping_breaks_no_law(tmp_path: Path, dtype: Any) -> None:
    run = Run((32, 48), dtype)
    view = run.tensor.transpose()
    out = popops.rearrange.regroupIfBeneficial(run.graph, view, 16, run.prog, "net")
    np.testing.assert_array_equal(run.found(out, tmp_path), run.values.T)


def test_a_report_of_padding_breaks_no_law(tmp_path: Path) -> None:
    run = Run((8, 20), FLOAT)
    method = MappingMethod.EDGE
    padded = popops.pad(run.graph, run.tensor, [1, 2], [0, 3], 7, mappingMethod=method)
    out = popops.add(run.graph, padded, 1.0, run.prog)
    expected = np.pad(run.values, [(1, 0), (2, 3)], constant_values=7) + 1
    np.testing.assert_array_equal(run.found(out, tmp_path), expected)


def test_a_report_of_an_image_breaks_no_law(tmp_path: Path) -> None:
    run = Run((16, 16, 3), UNSIGNED_CHAR)
    numbers = [run.graph.addConstant(HALF, [3], values) for values in ([0, 1, 2], [1, 2, 3])]
    for constant in numbers:
        run.graph.setTileMapping(constant, 0)
    out = popops.normaliseImage(run.graph, run.prog, run.tensor, 0.5, *numbers)
    expected = (run.values * 0.5 - [0, 1, 2]) * [1, 2, 3]
    np.testing.assert_array_equal(run.found(out, tmp_path)[..., :3], expected.astype(np.float16))
