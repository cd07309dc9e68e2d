"""Check that an installed wheel has what is in C, and works: `python tools/check_wheel.py`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pvti
from pva.report import openReport
from simulator import poplar
from simulator.graph.kernels import compiled


def main() -> None:
    """Simulate a copy between two tiles, open its report, and see who did the work."""
    assert pvti.accelerated, "pvti has no accelerator"
    assert compiled is not None, "the simulator has no kernels in C"
    device = poplar.IPUModel("tiny").createDevice()
    graph = poplar.Graph(device.getTarget())
    first, second = (graph.addVariable(poplar.FLOAT, [64], name) for name in "ab")
    graph.setTileMapping(first, 0)
    graph.setTileMapping(second, 1)
    with tempfile.TemporaryDirectory() as folder:
        options = {"autoReport.all": True, "autoReport.directory": folder}
        engine = poplar.Engine(graph, poplar.program.Copy(first, second), options)
        engine.load(device)
        engine.run(0)
        assert openReport(Path(folder)).execution.totalCycles.total > 0
    print("accelerated, and a program ran")


if __name__ == "__main__":
    main()
