"""Executables: compiled once, run by several engines, kept in a file."""

import io
import json
import subprocess
import sys
import zlib

import numpy as np
import pytest

from pva import openReport
from simulator import poplar, popops
from simulator.poplar import FLOAT, INT, Executable, PoplarError, program


class Grow(poplar.Vertex):
    """Adds its step to each value."""

    values = poplar.InOut(poplar.Vector(INT))
    step = INT

    def compute(self):
        self.values[:] += self.step


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
        (lambda body: body.replace(b'"bytes": ', b'"bytes": 9999999999999999', 1), "is damaged"),
        (lambda body: body[:-9], "the file is damaged"),
        (lambda body: body[:-9] + b"123456789", "the file is damaged"),
        (lambda body: body.replace(b'"Python": "3', b'"Python": "2', 1), "made with Python 2"),
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


def named(module, name):
    """Pickle what is called so."""
    parts = (b"\x8c" + bytes([len(text)]) + text.encode() for text in (module, name))
    return b"".join(parts) + b"\x93"


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (
            named("simulator.executable_file", "importlib.import_module"),
            "import_module of simulator",
        ),
        # getattr(Graph, "addVariable"): Python before 3.11.4 keeps members of enumerations so.
        (
            named("builtins", "getattr")
            + named("simulator.graph.graph", "Graph")
            + b"\x8c\x0baddVariable\x86R",
            "addVariable of .* is no member of an enumeration",
        ),
    ],
)
def test_a_file_names_nothing_but_what_the_simulator_defines(what, said):
    body = b"\x80\x04" + what + b"."
    header = json.loads(kept(poplar.compileGraph(*grow())).splitlines()[0])
    header |= {"bytes": len(body), "crc32": zlib.crc32(body)}
    with pytest.raises(PoplarError, match=said):
        Executable.deserialize(io.BytesIO(json.dumps(header).encode() + b"\n" + body))


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
