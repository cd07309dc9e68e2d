"""Fields of vertices: sizes, elements, numbers, initial values, and what compute() may do."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from value_program import Values

import pva
from simulator.compiler.compile import compile_graph
from simulator.compiler.fixed_data import vertex_bytes
from simulator.device import IPUModel
from simulator.engine import Engine
from simulator.graph.errors import GraphConnectionError, PoplarError
from simulator.graph.program import Execute
from simulator.graph.types import CHAR, FLOAT, HALF, INT, Type
from simulator.graph.vertices.user_vertices import VertexRef
from simulator.graph.vertices.vertex import (
    InOut,
    Input,
    MultiVertex,
    Output,
    Vector,
    VectorList,
    Vertex,
)


class Sum(Vertex):
    in_: Any = Input(Vector(FLOAT))
    out: Any = Output(FLOAT)

    def compute(self) -> bool:
        self.out[0] = self.in_.sum()
        return True


class Rows(Vertex):
    rows: Any = Input(VectorList(FLOAT))
    out: Any = Output(Vector(FLOAT))

    def compute(self) -> bool:
        self.out[:] = [row.sum() for row in self.rows]
        return True


class Polynomial(Vertex):
    x: Any = InOut(FLOAT)
    factors: Any = Vector(INT)
    pair: Any = Vector(FLOAT, 2)
    small: Any = CHAR

    def compute(self) -> bool:
        self.x[0] = self.factors @ self.x[0] ** np.arange(len(self.factors)) + self.pair.sum()
        return True


def vertex_of(values: Values, codelet: type[Vertex], tile: int | None = 1) -> VertexRef:
    """Add a vertex that runs in a compute set of its own."""
    compute_set = values.graph.addComputeSet("work")
    vertex = values.graph.addVertex(compute_set, codelet, tile=tile)
    values.graph.setPerfEstimate(vertex, 7)
    values.program.add(Execute(compute_set))
    return vertex


def test_the_elements_of_a_vector_can_be_joined_one_by_one() -> None:
    values = Values()
    data, out = values.tensor([1, 2, 4, 8], "data"), values.tensor([0], "out")
    vertex = vertex_of(values, Sum)
    values.graph.setFieldSize(vertex["in"], 3)
    for element, place in enumerate((3, 0, 3)):
        values.graph.connect(vertex["in"][element], data[place])
    values.graph.connect(vertex["out"], out)
    assert values.run().read(out).tolist() == [8 + 1 + 8]


def test_the_rows_of_a_list_can_be_joined_one_by_one() -> None:
    values = Values()
    data, out = values.tensor([1, 2, 4, 8], "data"), values.tensor([0, 0], "out")
    vertex = vertex_of(values, Rows)
    values.graph.setFieldSize(vertex["rows"], 2)
    values.graph.connect(vertex["rows"][1], data[:3])
    values.graph.connect(vertex["rows"][0], data[3:])
    values.graph.connect(vertex["out"], out)
    assert values.run().read(out).tolist() == [8, 7]
    (group,) = values.graph.vertex_groups()
    assert group.fields["rows"].edges.tolist() == [2]
    assert group.fields["out"].edges.tolist() == [1]


def test_a_vector_can_be_empty() -> None:
    values = Values()
    out = values.tensor([5], "out")
    vertex = vertex_of(values, Sum)
    values.graph.setFieldSize(vertex["in"], 0)
    values.graph.connect(vertex["out"], out)
    assert values.run().read(out).tolist() == [0]


def test_numbers_become_constants_on_the_tile_of_the_vertex() -> None:
    values = Values()
    out = values.tensor([0], "out")
    vertex = vertex_of(values, Sum, tile=None)
    values.graph.connect(vertex["in"], [1.5, 2])
    values.graph.connect(vertex["out"], out)
    values.graph.setTileMapping(vertex, 2)
    values.graph.setTileMapping(vertex, 3)
    assert values.run().read(out).tolist() == [3.5]
    constant = values.graph.variables[-1]
    assert (constant.name, constant.constant) == ("in", True)
    assert values.graph.mapping_table().tile[-1] == 3


def test_rows_of_numbers_fill_a_list() -> None:
    values = Values()
    out = values.tensor([0, 0], "out")
    vertex = vertex_of(values, Rows)
    values.graph.connect(vertex["rows"], np.float32([[1, 2], [3, 4]]))
    values.graph.connect(vertex["out"], out)
    assert values.run().read(out).tolist() == [3, 7]


def test_initial_values_are_numbers_or_vectors_of_them() -> None:
    values = Values()
    x = values.tensor([2, 10], "x")
    first, second = vertex_of(values, Polynomial), vertex_of(values, Polynomial)
    for vertex, factors, place in ((first, [1, 2, 3], 0), (second, [5], 1)):
        values.graph.connect(vertex["x"], x[place])
        values.graph.setInitialValue(vertex["factors"], factors)
    values.graph.setInitialValue(first["pair"][1], 0.5)
    values.graph.setFieldSize(second["factors"], 2)
    values.graph.setInitialValue(second["factors"][1], 4)
    # 1 + 2*2 + 3*4 + 0.5, and 0 + 4*10.
    assert values.run().read(x).tolist() == [17.5, 40]


def test_vectors_of_initial_values_are_data_of_the_vertex() -> None:
    values = Values()
    vertex = vertex_of(values, Polynomial)
    values.graph.connect(vertex["x"], values.tensor([2], "x"))
    values.graph.setInitialValue(vertex["factors"], [1, 2, 3])
    (group,) = values.graph.vertex_groups()
    # Three ints and two floats, beside a pointer, two vectors of 8 bytes and a char: 21 bytes,
    # which are filled up to 24.
    sizes = vertex_bytes(group)
    assert sizes.field_data.tolist() == [20]
    assert sizes.instance().tolist() == [24]


def test_estimates_count_cycles_and_operations() -> None:
    values = Values()
    graph = values.graph
    out = values.tensor([0, 0], "out")
    compute_set = graph.addComputeSet("work")
    for place, flops in enumerate((5, 6)):
        vertex = graph.addVertex(compute_set, Sum, {"in": [1.0], "out": out[place]}, tile=place)
        graph.setPerfEstimate(vertex, 20 + place, flops)
    executable = compile_graph(graph, [Execute(compute_set)])
    assert executable.costs.flops.tolist() == [11]
    # A worker has a sixth of the tile's cycles.
    assert executable.costs.cycles[0, :3].tolist() == [120, 126, 0]


def test_a_tensor_holds_its_initial_value_when_loaded() -> None:
    values = Values()
    tensor = values.graph.addVariable(FLOAT, [2, 2], "v")
    values.graph.setInitialValue(tensor, [[1, 2], [3, 4]])
    values.graph.setInitialValue(tensor[:, 1], 9)
    assert values.run().read(tensor).tolist() == [[1, 9], [3, 9]]


Setup = tuple[Values, VertexRef, VertexRef, Any]


def setup() -> Setup:
    values = Values()
    return values, vertex_of(values, Sum), vertex_of(values, Rows), values.tensor([1, 2, 3], "data")


def joined_twice(s: Setup) -> None:
    s[0].graph.setFieldSize(s[1]["in"], 2)
    s[0].graph.connect(s[1]["in"][1], s[3][0])
    s[0].graph.connect(s[1]["out"], s[3][0])
    s[0].graph.vertex_groups()


WRONG: list[tuple[Callable[[Setup], None], str]] = [
    (lambda s: s[0].graph.setFieldSize(s[1]["out"], 2), "field 'out': is no vector"),
    (lambda s: s[0].graph.setFieldSize(s[1]["far"], 2), "field 'far': is no vector"),
    (lambda s: s[0].graph.setFieldSize(s[1]["in"], -1), "size is -1; 0 or more is needed"),
    (
        lambda s: s[0].graph.connect(s[1]["in"][0], s[3][0]),
        r"field 'in'\[0\]: the field has no size",
    ),
    (joined_twice, r"Sum\[0\] on tile 1, field 'in'\[0\]: not connected"),
    (
        lambda s: s[0].graph.connect(s[1]["out"][1], s[3][0]),
        r"'out'\[1\]: the field has 1 elements",
    ),
    (lambda s: s[0].graph.connect(s[1]["out"], 3.0), "connected to 3.0; what is written must be"),
    (lambda s: s[0].graph.connect(s[1]["in"], "x"), "connected to str; a tensor of this graph"),
    (lambda s: s[0].graph.connect(s[1]["in"], []), "connected to 0 tensors; it takes one"),
    (lambda s: s[0].graph.setPerfEstimate(s[1], 2, -1), "estimate of -1 operations"),
    (lambda s: s[0].graph.setPerfEstimate(s[1], 2.5), "estimate of 2.5 cycles"),  # type: ignore[arg-type]
    (lambda s: s[0].graph.setInitialValue(s[3], [1, 2]), r"data: 2 values for shape \[3\]"),
]


@pytest.mark.parametrize(("wrong", "said"), WRONG, ids=[said[:30] for _, said in WRONG])
def test_a_field_that_is_joined_wrongly_is_named(wrong: Any, said: str) -> None:
    with pytest.raises(PoplarError, match=said):
        wrong(setup())


def test_a_field_takes_as_many_elements_as_its_size_says() -> None:
    values, vertex, _, data = setup()
    values.graph.setFieldSize(vertex["in"], 2)
    with pytest.raises(GraphConnectionError, match="to 3 elements; its size was set to 2"):
        values.graph.connect(vertex["in"], data)


def test_initial_values_must_fit_their_type_and_length() -> None:
    values = Values()
    vertex = vertex_of(values, Polynomial)
    for field, value, said in (
        ("small", 128, "'small': value 128 at element 0; char holds whole numbers from -128 to"),
        ("small", [1], r"'small': set to \[1\]; a number is needed"),
        ("factors", 1, "'factors': set to 1; a list of numbers is needed"),
        ("pair", [1, 2, 3], "'pair': set to 3 values; the field takes 2"),
    ):
        with pytest.raises(GraphConnectionError, match=rf"Polynomial\[0\] on tile 1, field {said}"):
            values.graph.setInitialValue(vertex[field], value)
    values.graph.connect(vertex["x"], values.tensor([1], "x"))
    with pytest.raises(GraphConnectionError, match="field 'factors': has no values"):
        values.graph.vertex_groups()


Computes = Callable[[Any], object]


def failure(compute: Computes) -> PoplarError:
    """Run three vertices with this compute() and give what the second raises."""

    class Wrong(Vertex):
        in_: Any = Input(Vector(FLOAT))
        rows: Any = Input(VectorList(FLOAT))
        out: Any = Output(Vector(FLOAT))
        list_: Any = Output(VectorList(FLOAT))
        number: Any = INT

        def compute(self) -> object:
            return compute(self) if self.number == 1 else True

    values = Values()
    graph = values.graph
    data, out = values.tensor(np.arange(9).reshape(3, 3)), values.tensor(np.zeros((6, 2)))
    compute_set = graph.addComputeSet("wrong/way")
    for number in range(3):
        fields = {"in": data[number], "rows": data[:2], "out": out[number], "list": out[3 + number]}
        vertex = graph.addVertex(
            compute_set, Wrong, fields | {"list": out[3 + number : 4 + number]}
        )
        graph.setInitialValue(vertex["number"], number)
        graph.setTileMapping(vertex, 2)
        graph.setPerfEstimate(vertex, 1)
    values.program.add(Execute(compute_set))
    with pytest.raises(PoplarError) as caught:
        values.run()
    return caught.value


def assigned(vertex: Any) -> None:
    vertex.out = vertex.in_


def rebound(vertex: Any) -> None:
    vertex.rows = []


def row_by_row(vertex: Any) -> None:
    for row in vertex.rows:
        row[0] = 1


@pytest.mark.parametrize(
    ("compute", "said"),
    [
        (lambda v: v.in_.__setitem__(0, 1), ", field 'in': an Input cannot be written"),
        (lambda v: np.add(v.rows[0], 1, out=v.rows[0]), ", field 'rows': an Input cannot be"),
        (row_by_row, ", field 'in' or 'rows': an Input cannot be written"),
        (rebound, ", field 'rows': an Input cannot be written"),
        (lambda v: v.out[0], ", field 'out': an Output cannot be read"),
        (lambda v: v.out.__iadd__(1), ", field 'out': an Output cannot be read"),
        (lambda v: sum(v.out), ", field 'out': an Output cannot be read"),
        (lambda v: np.concatenate([v.in_, v.out]), ", field 'out': an Output cannot be read"),
        (lambda v: v.list_[0].max(), ", field 'list': an Output cannot be read"),
        (lambda v: v.out[:1].tolist(), ", field 'out': an Output cannot be read"),
        (assigned, ", field 'out': compute\\(\\) gave what does not fit"),
        (lambda v: 1 / 0, r": compute\(\) raised ZeroDivisionError: division by zero"),
        (lambda v: v.far, ": compute\\(\\) raised AttributeError: .* 'far'"),
    ],
)
def test_what_compute_may_not_do_names_vertex_tile_and_field(compute: Computes, said: str) -> None:
    error = failure(compute)
    assert str(error).startswith("compute set 'wrong/way': vertex Wrong[1] on tile 2")
    with pytest.raises(PoplarError, match=said):
        raise error
    assert error.__cause__ is not None


@pytest.mark.parametrize("dtype", [FLOAT, HALF, INT])
def test_an_output_can_be_written_in_every_way_of_numpy(dtype: Type) -> None:
    class Writer(Vertex):
        out: Any = Output(Vector(dtype))

        def compute(self) -> None:
            ones = np.ones(12, dtype=dtype.numpy)
            self.out[0] = 1
            self.out[1:3] = [2, 3]
            self.out[3:5][1:] = 4
            np.multiply(ones[:2], 5, out=self.out[5:7])
            np.copyto(self.out[7:8], 6)
            self.out[8:9].fill(7)
            self.out[[9, 10]] = ones[: len(self.out) - 10] * 8
            self.out[np.arange(12) == 11] = np.zeros_like(self.out)[:1] + 9

    values = Values()
    out = values.tensor(np.full(12, -1), "out", dtype)
    values.graph.connect(vertex_of(values, Writer)["out"], out)
    # What is not written stays as it was.
    assert values.run().read(out).tolist() == [1, 2, 3, -1, 4, 5, 5, 6, 7, 8, 8, 9]


@pytest.mark.parametrize("dtype", [FLOAT, HALF, INT])
def test_an_output_can_be_read_once_the_vertex_has_written_it(dtype: Type) -> None:
    # The SumVertex of the guide's third tutorial: `*out = 0`, then `*out += v`.
    class Reader(Vertex):
        out: Any = Output(Vector(dtype))

        def compute(self) -> None:
            self.out[0] = 0
            self.out[0] += 3
            self.out[1] = float(self.out[0]) + 1
            self.out[2] = self.out[:2].max() + sum(self.out[:2].tolist())
            self.out[3] = np.concatenate([self.out[:2], [1]]).sum()
            self.out *= 2

    values = Values()
    out = values.tensor(np.zeros(4), "out", dtype)
    values.graph.connect(vertex_of(values, Reader)["out"], out)
    assert values.run().read(out).tolist() == [6, 8, 22, 16]


@pytest.mark.parametrize("dtype", [FLOAT, HALF, INT])
def test_one_unwritten_element_of_an_output_is_not_read_with_others(dtype: Type) -> None:
    class Half(Vertex):
        out: Any = Output(Vector(dtype))

        def compute(self) -> None:
            self.out[:2] = 1
            self.out[2] = self.out[:2].sum() + self.out[1:].sum()

    values = Values()
    values.graph.connect(vertex_of(values, Half)["out"], values.tensor([0] * 4, "out", dtype))
    with pytest.raises(
        PoplarError, match="field 'out': an Output cannot be read before it is written"
    ):
        values.run()


def test_a_vertex_that_fails_ends_its_run_and_nothing_else(tmp_path: Path) -> None:
    class Wary(Vertex):
        in_: Any = Input(FLOAT)
        out: Any = Output(FLOAT)

        def compute(self) -> bool:
            self.out[0] = math.sqrt(self.in_[0])
            return True

    graph = Values().graph
    number, root = (graph.addVariable(FLOAT, [], name) for name in ("number", "root"))
    for tensor in (number, root):
        graph.setTileMapping(tensor, 0)
    compute_set = graph.addComputeSet("root")
    vertex = graph.addVertex(compute_set, Wary, {"in": number, "out": root}, tile=0)
    graph.setPerfEstimate(vertex, 10)
    graph.createHostWrite("number", number)
    graph.createHostRead("root", root)
    options = {"autoReport.all": "true", "autoReport.directory": str(tmp_path)}
    engine = Engine(graph, Execute(compute_set), options)
    engine.load(IPUModel("tiny").createDevice())
    found = np.zeros(1, dtype=np.float32)
    for given, wanted in ((4, 2), (-1, 2), (9, 3)):
        engine.writeTensor("number", np.float32([given]))
        with (
            pytest.raises(PoplarError, match="math domain|nonnegative")
            if given < 0
            else nullcontext()
        ):
            engine.run()
        engine.readTensor("root", found)
        assert found[0] == wanted
    assert pva.openReport(tmp_path / "profile.pop").execution.runs


class Steps(Vertex):
    rows: Any = Output(VectorList(FLOAT))

    def compute(self) -> bool:
        for number in range(len(self.rows)):
            self.rows[number] = np.full(len(self.rows[number]), number + 1)
        return True


class Given(Vertex):
    out: Any = Output(FLOAT)
    value: Any = None

    def compute(self) -> bool:
        self.out = self.value
        return True


class Shared(MultiVertex):
    out: Any = InOut(Vector(FLOAT))

    def compute(self, workerId: int) -> bool:
        self.out[workerId::6] += workerId
        return True


def test_what_is_assigned_to_a_row_of_a_vector_list_reaches_its_memory() -> None:
    values = Values()
    data = values.tensor([0, 0, 0, 0, 0])
    values.graph.connect(vertex_of(values, Steps)["rows"], [data[0:1], data[1:3], data[4:5]])
    assert values.run().read(data).tolist() == [1, 2, 2, 0, 3]


def test_a_vector_list_may_have_no_rows() -> None:
    values = Values()
    data = values.tensor([7, 7])
    vertex = vertex_of(values, Rows)
    values.graph.connect(vertex["rows"], [])
    values.graph.connect(vertex["out"], data[0:0])
    assert values.run().read(data).tolist() == [7, 7]


@pytest.mark.parametrize("value", [None, 1j, "1"])
def test_what_is_no_number_is_not_taken_for_an_output(value: object) -> None:
    values = Values()
    data = values.tensor([0])
    codelet = type("Given", (Given,), {"value": value})
    values.graph.connect(vertex_of(values, codelet)["out"], data)
    with pytest.raises(PoplarError, match=r"tile 1, field 'out': .* where numbers are needed"):
        values.run()


def test_compute_of_a_multi_vertex_is_called_with_the_number_of_each_worker() -> None:
    values = Values()
    data = values.tensor([10.0] * 8)
    values.graph.connect(vertex_of(values, Shared)["out"], data)
    assert values.run().read(data).tolist() == [10, 11, 12, 13, 14, 15, 10, 11]


@pytest.mark.parametrize(
    ("declare", "said"),
    [
        (lambda: Input("float"), "Input: type is 'float'"),  # type: ignore[arg-type]
        (lambda: Vector(FLOAT, -3), "Vector: length is -3"),
        (lambda: Vector(Vector(FLOAT)), "Vector: type is Vector"),  # type: ignore[arg-type]
        (lambda: VectorList("float"), "VectorList: type is 'float'"),  # type: ignore[arg-type]
    ],
)
def test_a_field_of_no_element_type_is_refused_where_it_is_declared(
    declare: Callable[[], object], said: str
) -> None:
    with pytest.raises(PoplarError, match=said):
        declare()


def test_an_estimate_that_no_count_of_cycles_holds_names_its_vertex() -> None:
    vertex = vertex_of(Values(), Sum)
    with pytest.raises(
        PoplarError, match=r"vertex Sum\[0\] on tile 1: estimate of 1000000000000000"
    ):
        Values().graph.setPerfEstimate(vertex, 10**20)
