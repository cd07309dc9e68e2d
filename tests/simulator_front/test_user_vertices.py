"""Codelets written as Python classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from value_program import Values

from simulator.graph.errors import PoplarError
from simulator.graph.program import Execute
from simulator.graph.types import FLOAT, INT
from simulator.graph.vertices.user_compute import codelet_of
from simulator.graph.vertices.vertex import InOut, Input, Output, Vector, VectorList, Vertex


class Weighted(Vertex):
    """Every kind of field at once."""

    rows: Any = Input(VectorList(FLOAT))
    in_: Any = Input(Vector(FLOAT))
    total: Any = InOut(FLOAT)
    out: Any = Output(Vector(FLOAT))
    factor: Any = INT

    def compute(self) -> None:
        self.total[0] += sum(float(row.sum()) for row in self.rows)
        self.out = self.in_ * self.factor


def built() -> tuple[Values, Any, Any]:
    values = Values()
    graph = values.graph
    data = values.tensor(np.arange(12).reshape(3, 4), "data")
    total, out = values.tensor([100, 200], "total"), values.tensor([0, 0, 0, 0], "out")
    add = graph.addComputeSet("add")
    for tile, (rows, half) in enumerate(((data[0:2], data[0, 0:2]), (data[2:3], data[2, 2:4]))):
        vertex = graph.addVertex(add, Weighted, {"rows": rows, "in": half}, tile=tile)
        graph.connect(vertex["total"], total[tile])
        graph.connect(vertex["out"], out[2 * tile : 2 * tile + 2])
        graph.setInitialValue(vertex["factor"], 2 + tile)
        graph.setPerfEstimate(vertex, 30 + tile)
    values.program.add(Execute(add))
    return values, total, out


def test_all_kinds_of_fields_reach_compute() -> None:
    values, total, out = built()
    storage = values.run()
    # Rows 0 and 1 add up to 28, row 2 to 38.
    assert storage.read(total).tolist() == [128, 238]
    assert storage.read(out).tolist() == [0, 2, 30, 33]


def test_vertices_of_a_class_are_one_group_with_its_edges() -> None:
    values, _, _ = built()
    (group,) = values.graph.vertex_groups()
    assert group.tile.tolist() == [0, 1]
    assert group.cycles.tolist() == [30, 31]
    assert group.fields["rows"].edges.tolist() == [2, 1]
    assert group.fields["rows"].counts().tolist() == [8, 4]
    assert group.parameters["factor"].tolist() == [2, 3]


def test_the_state_of_a_codelet_counts_pointers_and_values() -> None:
    # Three edges with lengths of 8 bytes, one scalar edge of 4, one value of 4.
    assert codelet_of(Weighted).state_bytes == 32


def test_an_input_cannot_be_written() -> None:
    class Wrong(Vertex):
        in_: Any = Input(Vector(FLOAT))
        out: Any = Output(FLOAT)

        def compute(self) -> None:
            self.in_[0] = 1

    values = Values()
    data = values.tensor([1, 2], "data")
    add = values.graph.addComputeSet("add")
    vertex = values.graph.addVertex(add, Wrong, {"in": data, "out": data[0]}, tile=0)
    values.graph.setCycleEstimate(vertex, 1)
    values.program.add(Execute(add))
    said = r"compute set 'add': vertex Wrong\[0\] on tile 0, field 'in': an Input cannot be written"
    with pytest.raises(PoplarError, match=said) as caught:
        values.run()
    assert isinstance(caught.value.__cause__, ValueError)


def test_codelets_are_found_by_name_once_added() -> None:
    values = Values()
    values.graph.addCodelets(Weighted)
    vertex = values.graph.addVertex(values.graph.addComputeSet("add"), "Weighted")
    assert vertex.batch.vertex is Weighted


def test_vertices_read_what_was_there_before_the_compute_set() -> None:
    class Shift(Vertex):
        in_: Any = Input(FLOAT)
        out: Any = Output(FLOAT)

        def compute(self) -> None:
            self.out[0] = self.in_[0]

    values = Values()
    data = values.tensor([1, 2, 3], "data")
    add = values.graph.addComputeSet("rotate")
    for i in range(3):
        vertex = values.graph.addVertex(add, Shift, {"in": data[i - 1], "out": data[i]}, tile=0)
        values.graph.setCycleEstimate(vertex, 1)
    values.program.add(Execute(add))
    assert values.run().read(data).tolist() == [3, 1, 2]
