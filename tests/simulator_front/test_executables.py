"""Executables: compiled once, run by several engines, kept in a file."""

import io
import json
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from pva import openReport
from simulator import poplar, popops
from simulator.executable_file import FORMAT
from simulator.graph.deferred import DeferredFields
from simulator.object_file import packed, unpacked
from simulator.poplar import FLOAT, INT, Executable, PoplarError, program
from tests.io_tiles import NUMBERS, TURNS, machine, squares


class Grow(poplar.Vertex):
    """Adds its step to each value."""

    values = poplar.InOut(poplar.Vector(INT))
    step = INT

    def compute(self):
        self.values[:] += self.step


OURS = f'"format": {FORMAT}'.encode()
DEVICE = poplar.IPUModel("tiny").createDevice()


def grow():
    """Values [0, 0] to which a vertex adds 5 and then each its square root's ceiling: 8, 8."""
    graph = poplar.Graph(DEVICE)
    x = graph.addVariable(INT, [2], "x")
    graph.setTileMapping(x, 1)
    compute_set = graph.addComputeSet("grow")
    vertex = graph.addVertex(compute_set, Grow, {"values": x, "step": 5}, tile=1)
    graph.setPerfEstimate(vertex, 100)
    prog = program.Sequence(program.Execute(compute_set))
    as_floats = popops.cast(graph, x, FLOAT, prog)
    root = popops.map(graph, popops.expr.Ceil(popops.expr.Sqrt(popops.expr._1)), [as_floats], prog)
    graph.createHostRead("x", x)
    graph.createHostRead("root", root)
    return graph, prog


def ran(engine):
    engine.loadAndRun(DEVICE)
    return engine.readTensor("x").tolist(), engine.readTensor("root").tolist()


def kept(executable):
    file = io.BytesIO()
    executable.serialize(file)
    return file.getvalue()


def test_several_engines_run_one_executable_each_with_values_of_its_own():
    graph, prog = grow()
    executable = poplar.compileGraph(graph, [prog])
    prog.add(program.Sequence())
    graph.addVariable(INT, [5], "later")
    first, second = (
        poplar.Engine(executable),
        poplar.Engine(executable, {"debug.instrument": False}),
    )
    assert ran(first) == ran(second) == ([5, 5], [3.0, 3.0])
    first.run()
    assert first.readTensor("x").tolist() == [10, 10]
    assert second.readTensor("x").tolist() == [5, 5]


def test_an_executable_from_a_file_has_the_values_and_the_profile_of_its_own():
    executable = poplar.compileGraph(*grow())
    file = io.BytesIO(b"before" + kept(executable) + b"after")
    file.seek(6)
    again = Executable.deserialize(file)
    assert file.read() == b"after"
    first, second = poplar.Engine(executable), poplar.Engine(again)
    assert ran(first) == ran(second) == ([5, 5], [3.0, 3.0])
    one, other = first.getGraphProfile(), second.getGraphProfile()
    assert one == other and one["graph"]["numVertices"] > 2
    assert first.getExecutionProfile()["runs"][0]["cycles"] > 100


def test_another_process_runs_a_kept_executable(tmp_path):
    graph = poplar.Graph(DEVICE)
    x = graph.addConstant(FLOAT, [4], [1, 2, 3, 4])
    graph.setTileMapping(x, 0)
    prog = program.Sequence()
    graph.createHostRead("sum", popops.reduce(graph, x, [0], popops.Operation.ADD, prog))
    file = tmp_path / "sum.exe"
    with file.open("wb") as stream:
        poplar.Engine(graph, prog).serializeExecutable(stream)
    text = f"""
from simulator import poplar
with open({str(file)!r}, "rb") as stream:
    engine = poplar.Engine(poplar.Executable.deserialize(stream))
engine.loadAndRun(poplar.IPUModel("tiny").createDevice())
print(engine.readTensor("sum"))
"""
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "10.0"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda body: b"", "this is no file of an executable"),
        (lambda body: b"{}\n", "this is no file of an executable"),
        (lambda body: b"\x80\x04N." * 100, "this is no file of an executable"),
        (lambda body: b'{"kind": 1, "bytes": Infinity, "crc32": 0}\n', "no file of an executable"),
        (lambda body: body.replace(b'"table": ', b'"table": 9999999999999999', 1), "is damaged"),
        (lambda body: body.replace(b'"table": ', b'"table": -', 1), "line has no sizes"),
        (lambda body: body[:-9], "the file is damaged"),
        (lambda body: body[:-9] + b"123456789", "the file is damaged"),
        (lambda body: body.replace(b'"version": "', b'"version": "9', 1), "made with version 9"),
        (lambda body: body.replace(OURS, b'"format": 99', 1), f"format 99, this is {FORMAT}"),
        (lambda body: body.replace(OURS + b", ", b"", 1), f"format 1, this is {FORMAT}; compile"),
    ],
)
def test_a_file_that_is_no_executable_or_a_damaged_one_is_refused(change, said):
    body = kept(poplar.compileGraph(*grow()))
    with pytest.raises(PoplarError, match=said):
        Executable.deserialize(io.BytesIO(change(body)))


def test_what_cannot_be_kept_is_named():
    class Local(Grow):
        def compute(self):
            pass

    graph = poplar.Graph(DEVICE)
    compute_set = graph.addComputeSet("local")
    x = graph.addVariable(INT, [1], poplar.VariableMappingMethod.LINEAR, "x")
    graph.setPerfEstimate(graph.addVertex(compute_set, Local, {"values": x}, tile=0), 1)
    executable = poplar.compileGraph(graph, program.Execute(compute_set))
    with pytest.raises(PoplarError, match="cannot be kept: .*Local is defined inside a function"):
        kept(executable)
    with pytest.raises(PoplarError, match="no binary file"):
        poplar.compileGraph(*grow()).serialize(io.StringIO())


def test_a_kept_executable_needs_its_codelets(monkeypatch):
    body = kept(poplar.compileGraph(*grow()))
    monkeypatch.delattr(sys.modules[__name__], "Grow")
    with pytest.raises(PoplarError, match="Grow of .* is not known; import what defines"):
        Executable.deserialize(io.BytesIO(body))


def changed(change):
    """Keep `grow`, change its table, and set its length and checksum right."""
    body = kept(poplar.compileGraph(*grow()))
    line, rest = body.split(b"\n", 1)
    header = json.loads(line)
    table, data = json.loads(rest[: header["table"]]), rest[header["table"] :]
    change(table)
    text = json.dumps(table).encode()
    header |= {"table": len(text), "crc32": zlib.crc32(data, zlib.crc32(text))}
    return io.BytesIO(json.dumps(header).encode() + b"\n" + text + data)


def node(table, kind, number=0):
    return [row for row in table["nodes"] if row[0] == kind][number]


def replaced(kind, at, value):
    return lambda table: node(table, kind).__setitem__(at, value)


def named(module, name):
    return lambda table: table["classes"].append([module, name, []])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        # The ways out of the former files: functions under names that are the simulator's.
        (named("simulator.executable_file", "importlib.import_module"), "import_module of"),
        (named("simulator.graph.graph", "copy.copy"), "copy.copy of"),
        (named("os", "system"), "system of os"),
        (named("subprocess", "Popen"), "Popen of subprocess"),
        (named("simulator.device", "Device"), "Device of"),
        (replaced("function", 1, "os"), "of os is no function of a codelet"),
        (replaced("function", 2, "codelet_of"), "refers to"),
        (replaced("function", 3, 99), "is no function of a codelet"),
        (replaced("ufunc", 1, "save"), "numpy.save is no function of arrays"),
        (replaced("array", 1, "O"), "an array is of the type 'O'"),
        (replaced("array", 2, [1 << 40]), "more bytes than the file"),
        (replaced("array", 3, 1 << 40), "are not in the file"),
        (lambda table: table["nodes"].append(node(table, "array")), "more bytes than the file"),
        (replaced("array", 2, [-1]), "has the shape"),
        (replaced("array", 5, "<f4"), "numbers of float32 are no"),
        (replaced("array", 0, "pickle"), "has the kind 'pickle'"),
        (replaced("list", 1, [[1 << 40]]), "has no node"),
        (lambda table: table.update(root=[[0]]), "cannot be read"),
        (lambda table: table["classes"][0].__setitem__(2, ["more"]), "has other fields than here"),
    ],
)  # fmt: skip
def test_a_file_names_nothing_but_data_and_codelets(change, said):
    with pytest.raises(PoplarError, match=said) as raised:
        Executable.deserialize(changed(change))
    assert "\n" not in str(raised.value)


def test_a_field_of_another_kind_is_named():
    def change(table):
        number = next(n for n, row in enumerate(table["classes"]) if row[1] == "LoweredProgram")
        row = next(row for row in table["nodes"] if row[:2] == ["object", number])
        row[2][0] = 5

    with pytest.raises(PoplarError, match="LoweredProgram.type is a int; str is needed"):
        Executable.deserialize(changed(change))


def test_programs_may_be_nested_deeply_and_share_their_parts():
    graph = poplar.Graph(DEVICE)
    x = graph.addVariable(INT, [1], poplar.VariableMappingMethod.LINEAR, "x")
    one = graph.addConstant(INT, [1], [1])
    graph.setTileMapping(one, 0)
    add = program.Sequence()
    popops.addInPlace(graph, x, one, add)
    prog = add
    for _ in range(2000):
        prog = program.Sequence([prog])
    twice = program.Sequence([prog, add])
    graph.createHostRead("x", x)
    again = Executable.deserialize(io.BytesIO(kept(poplar.compileGraph(graph, twice))))
    inner, second = again.programs[0].children
    for _ in range(2000):
        (inner,) = inner.children
    assert inner is second
    engine = poplar.Engine(again)
    engine.loadAndRun(DEVICE)
    assert engine.readTensor("x").tolist() == [2]


def test_values_of_every_kind_come_back_shared_and_in_cycles():
    shared = [1 << 70, -0.0, float("inf"), 2 + 3j, b"bytes", "\ud800", None, True]
    arrays = [np.arange(6).reshape(2, 3).T, np.array(1.5, "<f2"), np.zeros((0, 4), bool)]
    value = {"cycle": [], (1, ("a", FLOAT)): shared, "again": shared, "set": {1, (2, "b")}}
    value["cycle"] += [value, (value, [(value,)])]
    value["arrays"] = [*arrays, np.int64(7), np.dtype("<f4"), np.add, range(3), slice(1, None)]
    again = unpacked(*packed(value))
    assert again["again"] is again[1, ("a", FLOAT)] == shared
    assert again["cycle"][0] is again["cycle"][1][0] is again["cycle"][1][1][0][0] is again
    assert again["set"] == value["set"]
    for one, other in zip(arrays, again["arrays"], strict=False):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
        assert one.flags.writeable == other.flags.writeable
    assert again["arrays"][3:] == value["arrays"][3:]


@dataclass(slots=True)
class Piece(DeferredFields):
    """An object with fields of every kind that may be made later."""

    numbers: np.ndarray
    ascending: np.ndarray
    by_name: dict[str, np.ndarray]
    again: np.ndarray


def test_fields_are_made_when_they_are_asked_for_and_stay_shared(monkeypatch):
    monkeypatch.setattr("simulator.object_kinds.CLASSES", [__name__])
    numbers = np.arange(4096) % 7
    piece = Piece(numbers, np.arange(2000), {"a": numbers, "b": np.ones(3000, np.int64)}, numbers)
    again = unpacked(*packed([piece]))[0]
    assert set(again._deferred) == {"numbers", "ascending", "by_name", "again"}
    with ThreadPoolExecutor(4) as threads:
        first, *others = threads.map(lambda _: again.numbers, range(4))
    assert all(array is first for array in [*others, again.again, again.by_name["a"]])
    np.testing.assert_array_equal(first, numbers)
    np.testing.assert_array_equal(again.ascending, np.arange(2000))
    assert again.by_name["b"].tolist() == [1] * 3000
    assert not hasattr(again, "_deferred") and not hasattr(again, "nothing")


def test_the_instrumentation_is_the_executables_and_its_options_the_engines_defaults(tmp_path):
    given = {"debug.instrument": True, "autoReport.directory": tmp_path}
    file = io.BytesIO(kept(poplar.compileGraph(*grow(), given)))
    engine = poplar.Engine(Executable.deserialize(file), {"autoReport.all": True})
    ran(engine)
    assert engine.getExecutionProfile()["profilerMode"] == "COMPUTE_SETS"
    assert len(openReport(tmp_path).execution.runs) == 1


def test_a_compilation_tells_its_progress_and_refuses_what_does_not_fit():
    told = []
    poplar.compileGraph(*grow(), progressFunc=lambda done, all: told.append((done, all)))
    assert told == [(0, 2), (1, 2), (2, 2)]
    graph = poplar.Graph(DEVICE)
    large = graph.addVariable(FLOAT, [1 << 20], "large")
    graph.setTileMapping(large, 0)
    prog = program.Sequence()
    popops.zero(graph, large, prog)
    with pytest.raises(poplar.graph_memory_allocation_error, match="tile 0 needs"):
        poplar.compileGraph(graph, prog, {"debug.allowOutOfMemory": False})
    with pytest.raises(PoplarError, match="an executable has its programs"):
        poplar.Engine(poplar.compileGraph(*grow()), [prog])


def test_runs_while_profiling_is_disabled_are_told_apart_and_not_counted(tmp_path):
    options = {"autoReport.all": True, "autoReport.directory": tmp_path}
    engine = poplar.Engine(*grow(), options)  # it records two runs
    engine.load(DEVICE)
    engine.disableExecutionProfiling()
    engine.run(debugName="weights")
    engine.enableExecutionProfiling()
    for _ in range(3):
        engine.run()
    execution = engine.getReport().execution
    (other,), taken = execution.otherRuns, execution.runs[0].cycles
    assert (other.name, other.cycles) == ("weights", taken)
    assert [len(list(run.steps)) > 0 for run in execution.runs] == [True, True, False]
    assert execution.totalCycles.total == 2 * taken > 0
    assert execution.runs[0].steps[0].ipus[0].activeCycles.cyclesFrom.min == taken
    np.testing.assert_array_equal(engine.readTensor("x"), [20, 20])


def test_io_tiles_stay_apart_in_an_executable_of_a_file() -> None:
    device = machine()
    graph = poplar.Graph(device.getTarget())
    program = squares(graph, io=True, work=2, wait=False)
    made = poplar.compileGraph(graph, [program])
    stream = io.BytesIO()
    made.serialize(stream)
    stream.seek(0)
    read = poplar.Executable.deserialize(stream)
    cycles = []
    for executable in (made, read):
        engine = poplar.Engine(executable)
        engine.load(device)
        engine.connectStream("numbers", np.ones(NUMBERS * (TURNS + 1), dtype=np.float32))
        engine.connectStream("total", np.zeros(NUMBERS, dtype=np.float32))
        engine.run(0)
        cycles.append(executable.compiled.lowered.io_tiles.tolist())
    assert cycles[0] == cycles[1] and sum(cycles[0]) == 2


@pytest.mark.parametrize("wrong", [None, 3, b"x", []])
def test_what_is_no_path_is_refused_in_a_line(wrong: Any) -> None:
    with pytest.raises(poplar.PoplarError, match=r"loadExecutable: cannot take path=.*PathLike"):
        poplar.Engine.loadExecutable(wrong)
