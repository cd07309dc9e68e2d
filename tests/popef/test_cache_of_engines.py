"""Plain engines keep compiled programs in a folder, and take them from there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pva import openReport
from simulator import engine, poplar
from simulator.fingerprint import fingerprint
from simulator.poplar import INT, program

DEVICE = poplar.IPUModel("tiny").createDevice()


class Shift(poplar.Vertex):
    """Adds its step to each value."""

    values = poplar.InOut(poplar.Vector(INT))
    step = INT

    def compute(self) -> None:
        self.values[:] += self.step


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Note the graphs that are compiled."""
    made: list[object] = []
    real = engine.compile_programs
    monkeypatch.setattr(
        engine, "compile_programs", lambda graph, *rest: made.append(graph) or real(graph, *rest)
    )
    return made


def shifted(step: int, **options: Any) -> tuple[poplar.Engine, list[int]]:
    graph = poplar.Graph(DEVICE)
    x = graph.addVariable(INT, [2], "x")
    graph.setTileMapping(x, 1)
    compute_set = graph.addComputeSet("shift")
    vertex = graph.addVertex(compute_set, Shift, {"values": x, "step": step}, tile=1)
    graph.setPerfEstimate(vertex, 100)
    graph.createHostRead("x", x)
    made = poplar.Engine(graph, program.Execute(compute_set), options)
    made.loadAndRun(DEVICE)
    return made, made.readTensor("x").tolist()


def test_the_same_graph_is_compiled_once_and_another_by_itself(
    tmp_path: Path, compiled: list[object]
) -> None:
    folder = {"simulator.cachePath": str(tmp_path)}
    assert [shifted(5, **folder)[1] for _ in range(3)] == [[5, 5]] * 3
    assert len(compiled) == 1
    assert shifted(6, **folder)[1] == [6, 6]
    assert len(compiled) == 2 == len(list(tmp_path.glob("*.popef")))


def test_the_environment_names_the_folder_and_reports_are_equal(
    tmp_path: Path, compiled: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POPLAR_EXECUTABLE_CACHE_PATH", str(tmp_path / "kept"))
    found = []
    for name in ("first", "second"):
        where = {"autoReport.all": "true", "autoReport.directory": str(tmp_path / name)}
        assert shifted(5, **where)[1] == [5, 5]
        found.append(openReport(tmp_path / name))
    assert len(compiled) == 1
    assert found[0].frames.steps().equals(found[1].frames.steps())
    assert found[0].frames.variables().equals(found[1].frames.variables())


def test_a_codelet_that_was_changed_is_another_program() -> None:
    def adds(self: Any) -> None:
        self.values[:] += self.step

    def doubles(self: Any) -> None:
        self.values[:] *= 2

    kinds = [type("Shift", (), {"compute": function}) for function in (adds, adds, doubles)]
    for function in (adds, doubles):
        function.__qualname__ = "compute"
    first, same, other = map(fingerprint, kinds)
    assert first == same != other
