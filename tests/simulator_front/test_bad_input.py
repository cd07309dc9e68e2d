"""What the guides forbid ends in one line that names it; the process and its report go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pva
from simulator import poplar
from simulator.poplar import program

FLOATS = np.arange(4, dtype=np.float32)


class Sum(poplar.Vertex):
    in_ = poplar.Input(poplar.Vector(poplar.FLOAT))
    out = poplar.Output(poplar.FLOAT)

    def compute(self) -> None:
        self.out[0] = self.in_.sum()  # type: ignore[index,attr-defined]


class WritesItsInput(Sum):
    def compute(self) -> None:
        self.in_[0] = 1  # type: ignore[index]


class ReadsItsOutput(Sum):
    def compute(self) -> None:
        self.out[0] += 1  # type: ignore[index]


class Silent(poplar.Vertex):
    out = poplar.Output(poplar.FLOAT)


class Setting:
    """Two IPUs of four tiles, a few tensors, streams and a remote buffer."""

    def __init__(self) -> None:
        self.model = poplar.IPUModel("mk2", numIPUs=2, tilesPerIPU=4)
        self.device = self.model.createDevice()
        self.graph = poplar.Graph(self.device.getTarget())
        self.data, self.other = self.add("data"), self.add("other", tile=4)
        self.counts = self.add("counts", poplar.INT)
        self.lost = self.graph.addVariable(poplar.FLOAT, [4], "lost")
        self.set = self.graph.addComputeSet("set")
        self.stream = self.graph.addHostToDeviceFIFO("in", poplar.FLOAT, 4)
        self.out = self.graph.addDeviceToHostFIFO("out", poplar.FLOAT, 4)
        self.rows = self.graph.addRemoteBuffer("rows", poplar.FLOAT, 4, 3)
        self.graph.createHostWrite("data", self.data)
        self.graph.createHostWrite("counts", self.counts)
        self.graph.createHostRead("back", self.data)

    def add(self, name: str, dtype: poplar.Type = poplar.FLOAT, tile: int = 0) -> poplar.Tensor:
        tensor = self.graph.addVariable(dtype, [4], name)
        self.graph.setTileMapping(tensor, tile)
        return tensor

    def vertex(self, codelet: type[poplar.Vertex] = Sum, **fields: Any) -> program.Execute:
        """Add a vertex on tile 1 that reads data and writes the first of other."""
        given = {"in": self.data, "out": self.other[0]} | fields
        vertex = self.graph.addVertex(self.set, codelet, given, tile=1)
        self.graph.setPerfEstimate(vertex, 10)
        return program.Execute(self.set)

    def engine(self, *programs: program.Program, **options: Any) -> poplar.Engine:
        given = {name.replace("_", "."): value for name, value in options.items()}
        engine = poplar.Engine(self.graph, list(programs) or program.Sequence(), given)
        engine.load(self.device)
        return engine

    def run(self, *programs: program.Program) -> None:
        self.engine(*programs).run()

    def fed(self, callback: Any) -> None:
        engine = self.engine(program.Copy(self.stream, self.data))
        engine.connectStreamToCallback("in", callback)
        engine.run()


def calls_itself(s: Setting) -> None:
    body = program.Sequence()
    body.add(program.Call(s.graph.addFunction(body, "again")))
    s.engine(body)


def raises(buffer: Any) -> None:
    raise KeyError("no more images")


def far() -> Setting:
    return Setting()


Misuse = tuple[Callable[[Setting], object], str]
VERTICES: list[Misuse] = [
    (lambda s: s.run(s.vertex(WritesItsInput)), r"WritesItsInput\[0\] on tile 1, field 'in'"),
    (lambda s: s.run(s.vertex(ReadsItsOutput)), r"ReadsItsOutput\[0\] on tile 1, field 'out'"),
    (lambda s: (s.vertex(), s.run(s.vertex())), "element 0 of variable 'other' has two writers"),
    (lambda s: s.vertex(out=s.counts[0]), "field 'out': connected to counts of type int"),
    (lambda s: s.vertex(out=s.other), "field 'out': connected to other of 4 elements"),
    (lambda s: s.vertex(Silent), r"codelet Silent: has no compute\(\)"),
    (lambda s: s.graph.addVertex(s.set, Sum, tile=8), "tile 8; the target has tiles 0 to 7"),
    (lambda s: s.graph.addVertex(s.set, Sum, tile=-1), "tile -1; the target has tiles 0 to 7"),
    (lambda s: s.run(s.vertex(out=far().other[0])), "field 'out': connected to Tensor"),
]
PROGRAMS: list[Misuse] = [
    (lambda s: program.Copy(s.data, s.other[:2]), r"data \(4 x float\) to other \(2 x float\)"),
    (lambda s: program.Copy(s.data, s.counts), r"data \(4 x float\) to counts \(4 x int\)"),
    (lambda s: program.Copy(s.stream, s.data[:2]), r"stream 'in' \(4 x float\) to data \(2 x"),
    (lambda s: s.graph.setTileMapping(s.lost, 8), "variable 'lost': tile 8; the target has"),
    (lambda s: s.engine(program.Copy(s.data, s.lost)), "'lost': element 0 of 4 is not mapped"),
    (
        lambda s: program.If(s.data, program.Sequence()),
        "If: Tensor.data: float.4..; a tensor of one",
    ),
    (lambda s: program.Switch(s.data[0]), r"Switch: Tensor\(data: float\[\]\); a tensor of one"),
    (
        lambda s: program.RepeatWhileTrue(program.Sequence(), s.counts, program.Sequence()),
        r"RepeatWhileTrue: Tensor\(counts: int\[4\]\); a tensor of one",
    ),
    (calls_itself, "contains itself"),
    (lambda s: s.engine(program.Execute(far().graph.addComputeSet("x"))), "'x' is not of this"),
    (lambda s: s.engine(program.Copy(far().data, far().other)), "is not of this graph"),
    (
        lambda s: s.engine(program.Call(far().graph.addFunction(program.Sequence(), "f"))),
        "'f' is not",
    ),
    (lambda s: s.engine(*[]).run(1), "program 1; there are programs 0 to 0"),
    (lambda s: s.engine().run(-1), "program -1; there are programs 0 to 0"),
    (lambda s: poplar.Engine(s.graph, program.Sequence()).run(), "load a device before running"),
    (lambda s: poplar.Engine(s.graph, []), "no program; at least one is needed"),
    (
        lambda s: s.run(program.ErrorProgram("bad state", s.data)),
        r"bad state: data is \{0,0,0,0\}",
    ),
]
HOST: list[Misuse] = [
    (lambda s: s.run(program.Copy(s.stream, s.data)), "stream 'in': not connected"),
    (lambda s: s.run(program.Copy(s.data, s.out)), "stream 'out': not connected"),
    (lambda s: s.fed(lambda buffer: [1, 2]), "stream 'in': its callback gave 2 elements; 4 are"),
    (lambda s: s.fed(lambda buffer: 8), "stream 'in': its callback gave 8 bytes; 16 are needed"),
    (lambda s: s.fed(raises), "stream 'in': its callback raised KeyError: 'no more images'"),
    (lambda s: s.engine().connectStream("in", FLOATS[:3]), "array of 3 elements; a multiple of 4"),
    (lambda s: s.engine().connectStream("up", FLOATS), "stream 'up': unknown; streams are in, out"),
    (lambda s: s.engine().connectStream("in", FLOATS.astype("f8")), "array of float64; one of"),
    (lambda s: s.graph.addHostToDeviceFIFO("in", poplar.INT, 1), "'in': there is one of this name"),
    (lambda s: s.engine().writeTensor("data", FLOATS[:3]), "host write 'data'.*3.*4"),
    (lambda s: s.engine().writeTensor("data", ["x"]), "host write 'data'"),
    (lambda s: s.engine().writeTensor("counts", [2**31, 0, 0, 0]), "value 2147483648 at element 0"),
    (lambda s: s.engine().writeTensor("counts", [0.5, 0, 0, 0]), "'counts'.*0.5"),
    (lambda s: s.engine().readTensor("counts"), "host read 'counts': unknown; there are back"),
    (lambda s: s.engine().copyToRemoteBuffer(FLOATS, "rows", 3), "'rows': offset 3; it has 3 rows"),
    (lambda s: s.engine().copyToRemoteBuffer(FLOATS[:2], "rows", 0), "array of 2 elements; a row"),
    (
        lambda s: s.engine(program.Copy(s.data, s.rows), program.Copy(s.rows, s.other)),
        "remote buffer 'rows': other is on IPU 1, data on IPU 0; all its copies",
    ),
    (
        lambda s: program.Copy(s.data, s.rows, s.counts),
        r"data \(4 x float\) to remote buffer 'rows' \(16 x float\)",
    ),
    (lambda s: program.Copy(s.data, s.other, s.counts), "only a remote buffer has rows"),
]
DEVICES: list[Misuse] = [
    (lambda s: s.engine(debug_instrumnt=True), "no option 'debug.instrumnt'; did you mean debug.i"),
    (lambda s: s.engine(debug_instrument="maybe"), "debug.instrument is 'maybe'; true or false"),
    (lambda s: (s.device.attach(), s.device.attach()), "device 0 is attached already; detach it"),
    (lambda s: poplar.IPUModel("mk9"), "no part 'mk9'; known are mk1"),
    (lambda s: poplar.IPUModel("mk2", numIPUs=0), "numIPUs is 0; a number from 1"),
    (lambda s: poplar.IPUModel("mk2", tiles=3), "no member 'tiles'; did you mean"),
    (
        lambda s: poplar.Engine(s.graph, program.Sequence()).load(
            poplar.IPUModel("mk1").createDevice()
        ),
        "the graph is for 2 x mk2 with 4 tiles, the device is 1 x mk1 with 1,216",
    ),
]
ALL = [*VERTICES, *PROGRAMS, *HOST, *DEVICES]


@pytest.mark.parametrize(("misuse", "said"), ALL, ids=[said[:40] for _, said in ALL])
def test_misuse_gives_one_line_that_names_it(
    misuse: Callable[[Setting], object], said: str
) -> None:
    with pytest.raises(poplar.PoplarError, match=said) as caught:
        misuse(Setting())
    assert "\n" not in str(caught.value)


def test_an_unconnected_field_is_named() -> None:
    s = Setting()
    s.graph.setPerfEstimate(s.graph.addVertex(s.set, Sum, {}, tile=1), 5)
    with pytest.raises(poplar.PoplarError, match=r"Sum\[0\] on tile 1.*'in': not connected"):
        s.engine(program.Execute(s.set))


def test_an_offset_that_is_found_out_of_range_at_run_time_is_named() -> None:
    s = Setting()
    engine = s.engine(program.Copy(s.data, s.rows, s.counts[:1]))
    engine.writeTensor("counts", [3, 0, 0, 0])
    with pytest.raises(poplar.PoplarError, match="'rows': offset 3; it has 3 rows"):
        engine.run()


def test_a_run_that_fails_leaves_the_engine_and_its_report_whole(tmp_path: Path) -> None:
    s = Setting()
    wrong = program.Sequence(s.vertex(WritesItsInput))
    options = {"autoReport_all": True, "autoReport_directory": tmp_path}
    engine = s.engine(program.Copy(s.stream, s.data), wrong, **options)
    engine.connectStream("in", FLOATS)
    engine.run(0, "first")
    with pytest.raises(poplar.PoplarError, match="WritesItsInput"):
        engine.run(1, "wrong")
    engine.connectStreamToCallback("in", raises)
    with pytest.raises(poplar.PoplarError, match="no more images"):
        engine.run(0, "starved")
    engine.connectStream("in", FLOATS + 1)
    engine.run(0, "last")
    assert np.array_equal(engine.readTensor("back"), FLOATS + 1)
    report = pva.openReport(tmp_path)
    assert [run.name for run in report.execution.runs] == ["first", "last"]
