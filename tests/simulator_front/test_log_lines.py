"""Log lines and the variables that ask for them."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from simulator import poplar, poplin, popnn, popops, poprand, poputil
from simulator.graph.errors import PoplarError
from simulator.logging import enabled, library_call, log
from simulator.poplar import FLOAT, program


def test_a_line_is_written_from_its_level_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POPLAR_LOG_LEVEL", "INFO")
    log("PO", "ENGINE", "INFO", "compiled")
    log("PO", "ENGINE", "DEBUG", "details")
    log("PL", "POPLIN", "ERR", "not asked for")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert " PO:ENGINE   " in lines[0]
    assert lines[0].endswith(" I: compiled")


def test_lines_can_go_to_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("POPLIBS_LOG_LEVEL", "TRACE")
    monkeypatch.setenv("POPLIBS_LOG_DEST", str(tmp_path / "log"))
    for text in ("one", "two"):
        log("PL", "POPLIN", "TRACE", text)
    assert [line[-1:] for line in (tmp_path / "log").read_text().split()[4::5]] == ["e", "o"]


def test_an_unknown_level_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POPLAR_LOG_LEVEL", "LOUD")
    with pytest.raises(PoplarError, match="POPLAR_LOG_LEVEL is 'LOUD'; it must be one of OFF"):
        log("PO", "ENGINE", "ERR", "text")


def test_a_destination_that_cannot_be_written_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("POPLAR_LOG_LEVEL", "INFO")
    monkeypatch.setenv("POPLAR_LOG_DEST", str(tmp_path / "missing" / "log"))
    with pytest.raises(PoplarError, match="POPLAR_LOG_DEST: cannot write .*log: No such file"):
        log("PO", "ENGINE", "INFO", "text")


def test_each_line_of_a_message_is_one_of_the_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POPLAR_LOG_LEVEL", "debug")
    monkeypatch.setenv("POPLAR_LOG_DEST", "stdout")
    log("PO", "GRAPH", "DEBUG", "one\ntwo")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" D: ")[1] for line in lines] == ["one", "two"]


def test_a_module_may_have_a_level_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POPLAR_LOG_LEVEL", "INFO")
    monkeypatch.setenv("POPLAR_ENGINE_LOG_LEVEL", "TRACE")
    assert enabled("PO", "TRACE", "ENGINE")
    assert not enabled("PO", "DEBUG", "GRAPH")
    monkeypatch.setenv("POPLAR_ENGINE_LOG_LEVEL", "OFF")
    assert not enabled("PO", "ERR", "ENGINE")
    assert not enabled("PL", "ERR", "POPOPS")


# Four tiles; 8 floats of x on tile 0 go to y on tile 3: 32 bytes. The number of the program, a word
# on tile 0, goes to the three others at once.
def moved(allow: bool = True, elements: int = 8) -> poplar.Engine:
    device = poplar.IPUModel("tiny").createDevice()
    graph = poplar.Graph(device.getTarget())
    x, y = (graph.addVariable(FLOAT, [elements], name) for name in "xy")
    graph.setTileMapping(x, 0)
    graph.setTileMapping(y, 3)
    steps = program.Sequence(program.Copy(x, y))
    engine = poplar.Engine(graph, steps, {"debug.allowOutOfMemory": allow}, name="move")
    engine.load(device)
    engine.run()
    return engine


def logged(
    level: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], elements: int
) -> list[str]:
    monkeypatch.setenv("POPLAR_LOG_LEVEL", level)
    moved(elements=elements)
    lines = capsys.readouterr().err.splitlines()
    assert all(re.match(r"\S+Z PO:ENGINE   \d+\.\d+ [WIDT]: .", line) for line in lines)
    return [line.split(": ", 1)[1] for line in lines]


def test_info_says_what_the_engine_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert logged("INFO", monkeypatch, capsys, 8) == [
        "engine 'move' compiled for 1 x tiny with 4 tiles",
        "engine 'move' loaded onto device 0",
        "engine 'move' runs program 0",
    ]


def test_debug_has_the_figures_of_the_graph(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = logged("DEBUG", monkeypatch, capsys, 8)
    assert any(re.fullmatch(r"compile/lower: [\d.]+ ms", line) for line in lines)
    assert any(line.startswith("2 variables of the graph, ") for line in lines)
    assert "2 internal exchanges: 36 B sent, 44 B received" in lines
    assert any(re.fullmatch(r"run 0: \d+ steps, [\d,]+ cycles", line) for line in lines)
    assert not any(line.startswith("tile ") for line in lines)


def test_trace_has_a_line_for_each_tile(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [line for line in logged("TRACE", monkeypatch, capsys, 8) if "tile " in line[:5]]
    assert [line.split(":")[0] for line in lines] == [f"tile {n}" for n in (0, 1, 2, 3)] * 2
    compiled, ran = lines[:4], lines[4:]
    assert compiled[1].startswith("tile 1: 4 B of memory with gaps, 0 B over; ")
    word, both = (int(re.findall(r"(\d+) of exchange,", ran[tile])[0]) for tile in (1, 3))
    assert 0 < word < both


def test_a_program_that_does_not_fit_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = logged("WARN", monkeypatch, capsys, 200_000)
    assert len(lines) == 1
    assert lines[0].startswith("engine 'move': out of memory on 2 tile(s): tile 0 needs ")
    assert lines[0].endswith("bytes more than its 638,976; debug.allowOutOfMemory is true")


def test_what_an_engine_raises_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = moved()
    monkeypatch.setenv("POPLAR_LOG_LEVEL", "ERR")
    with pytest.raises(PoplarError):
        moved(allow=False, elements=200_000)
    with pytest.raises(PoplarError):
        poplar.Engine(poplar.Graph(poplar.Target.createCPUTarget()), [])
    with pytest.raises(PoplarError):
        engine.load(poplar.Device.createCPUDevice())
    lines = [line.split(" E: ")[1] for line in capsys.readouterr().err.splitlines()]
    assert [line.split(":")[0] for line in lines] == ["engine 'move'", "Engine", "Engine"]
    assert lines[1].startswith("Engine::compile: Engine: no program")
    assert lines[2].startswith("Engine::load: Engine: the graph is for 1 x tiny")


def test_nothing_is_logged_unless_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for level in ("OFF", ""):
        assert logged(level, monkeypatch, capsys, 200_000) == []


def test_a_call_of_a_library_is_logged_with_its_shapes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POPLIBS_LOG_LEVEL", "INFO")
    graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())
    a = poplin.createMatMulInputLHS(graph, FLOAT, FLOAT, [4, 6], [6, 2], "a")
    b = poplin.createMatMulInputRHS(graph, FLOAT, FLOAT, [4, 6], [6, 2], "b")
    capsys.readouterr()
    poplin.matMul(graph, a, b, program.Sequence(), "product")
    first = capsys.readouterr().err.splitlines()[0]
    assert " PL:POPLIN   " in first
    wanted = "matMul(Tensor(a: float[4, 6]), Tensor(b: float[6, 2]), 'product')"
    assert first.endswith(f" I: {wanted}")


def test_a_product_that_takes_more_memory_than_it_may_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POPLIBS_LOG_LEVEL", "WARN")
    graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())
    a, b = (graph.addVariable(FLOAT, [90, 90], name) for name in "ab")
    for operand in (a, b):
        graph.setTileMapping(operand, 0)
    options = {"availableMemoryProportion": "0.01"}
    poplin.matMul(graph, a, b, program.Sequence(), "product", options=options)
    line = capsys.readouterr().err
    assert re.search(
        r" W: product/Conv_1: no plan keeps to [\d,]+ B of temporary data a tile; the best takes "
        r"[\d,]+ B: availableMemoryProportion \d\.\d\d$",
        line,
    )


# Their calls add vertices and codelets, not programs or tensors.
SILENT = {"addCodelets", "addForLoopCounterVertex"}


@pytest.mark.parametrize("library", [popops, poplin, popnn, poprand, poputil])
def test_every_function_of_a_library_logs_its_calls(library: ModuleType) -> None:
    functions = {name: getattr(library, name) for name in library.__all__}
    silent = {
        name
        for name, function in functions.items()
        if inspect.isfunction(function) and not hasattr(function, "__wrapped__")
    }
    assert silent <= SILENT


def test_a_logged_function_is_called_as_it_was() -> None:
    @library_call("POPOPS")
    def scaled(values: np.ndarray, by: float = 2.0) -> np.ndarray:
        return values * by

    assert scaled(np.ones(2), by=3.0).tolist() == [3.0, 3.0]
    assert scaled.__name__ == "scaled"
