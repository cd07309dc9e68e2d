"""Vertices joined to random views compute what NumPy computes on the same elements."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from value_program import Values
from view_chains import REORDERS, REPEATS, chain

from simulator.graph.program import Execute
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, INT
from simulator.graph.vertices.user_vertices import FieldRef
from simulator.graph.vertices.vertex import InOut, Input, Output, Vector, VectorList, Vertex


class Mixed(Vertex):
    """Every kind of field at once."""

    values: Any = Input(Vector(FLOAT))
    rows: Any = Input(VectorList(FLOAT))
    total: Any = InOut(Vector(FLOAT))
    out: Any = Output(Vector(FLOAT))
    shares: Any = Vector(FLOAT)
    factor: Any = INT

    def compute(self) -> bool:
        self.out[:] = self.values * self.factor + sum(float(row.sum()) for row in self.rows)
        self.total += self.shares
        return True


def join(data: st.DataObject, values: Values, field: FieldRef, tensor: Tensor) -> None:
    """Join a field at once, or element by element (row by row)."""
    if data.draw(st.booleans()):
        values.graph.connect(field, tensor)
        return
    values.graph.setFieldSize(field, tensor.dim(0))
    for element, part in enumerate(tensor):
        values.graph.connect(field[element], part)


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_fields_of_any_views_hold_the_elements_that_numpy_names(data: st.DataObject) -> None:
    values, given_values = Values(), np.arange(24).reshape(4, 6)
    source = values.tensor(given_values, "source")
    total, out = values.tensor(np.zeros(24), "total"), values.tensor(np.zeros(24), "out")
    work = values.graph.addComputeSet("work")
    expected = {"total": np.zeros(24), "out": np.zeros(24)}
    for number in range(3):
        one, first = chain(data, source, REORDERS + REPEATS)
        rows, second = chain(data, source, REORDERS + REPEATS)
        count = min(first.size, 8)
        place = slice(8 * number, 8 * number + count)
        vertex = values.graph.addVertex(work, Mixed, tile=number)
        values.graph.setPerfEstimate(vertex, 5)
        join(data, values, vertex["values"], one.flatten()[:count])
        join(
            data, values, vertex["rows"], rows.reshape([1, *rows.shape]).flatten(1, rows.rank() + 1)
        )
        join(data, values, vertex["total"], total.reverse(0)[place])
        join(data, values, vertex["out"], out[place])
        shares = data.draw(st.lists(st.integers(-5, 5), min_size=count, max_size=count))
        values.graph.setInitialValue(vertex["shares"], shares)
        values.graph.setInitialValue(vertex["factor"], number - 1)
        # Elements hold their own numbers.
        expected["out"][place] = first.reshape(-1)[:count] * (number - 1) + second.sum()
        expected["total"][::-1][place] += shares
    values.program.add(Execute(work))
    storage = values.run()
    np.testing.assert_array_equal(storage.read(out), expected["out"])
    np.testing.assert_array_equal(storage.read(total), expected["total"])


class Sum(Vertex):
    """Adds numbers of its own to numbers that it is joined to."""

    in_: Any = Input(Vector(FLOAT))
    shares: Any = Vector(INT)
    out: Any = Output(FLOAT)

    def compute(self) -> bool:
        self.out[0] = self.in_.sum() + self.shares.sum()
        return True


def test_numbers_of_vertices_follow_them_into_replicas_and_virtual_graphs() -> None:
    values = Values("mk2", num_ipus=2, tiles_per_ipu=4)
    top = values.graph
    work = top.addComputeSet("work")
    outs = []
    for view, number in (
        (top.createReplicatedGraph(2), 1.5),
        (top.createVirtualGraph([1, 2]), 2.5),
    ):
        outs.append(view.addVariable(FLOAT, [1], "out"))
        view.setTileMapping(outs[-1], 0)
        vertex = view.addVertex(work, Sum, {"in": [number, 1], "out": outs[-1]}, tile=1)
        view.setInitialValue(vertex["shares"], [3, 4])
        view.setPerfEstimate(vertex, 5)
    values.program.add(Execute(work))
    storage = values.run()
    assert storage.read(top.getNonReplicatedTensor(outs[0])).tolist() == [[9.5], [9.5]]
    assert storage.read(outs[1]).tolist() == [10.5]
    table = top.mapping_table()
    constants = [number for number, held in enumerate(top.variables) if held.constant]
    # Tile 1 of each IPU; tile 1 of the view is tile 2 of the graph.
    assert table.tile[np.isin(table.variable, constants)].tolist() == [1, 5, 2]
