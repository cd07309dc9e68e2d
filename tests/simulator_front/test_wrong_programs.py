"""A wrong program is refused, and the text says where."""

from __future__ import annotations

import pytest

from simulator.graph.errors import PoplarError
from simulator.graph.graph import ComputeSet, Graph
from simulator.graph.machine.target import TARGETS
from simulator.graph.program import Copy, Execute, Repeat, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, INT
from simulator.graph.validation.graphs import check_writers
from simulator.graph.vertices.vertex import Input, Output, Vector, Vertex


class SumVertex(Vertex):
    in_ = Input(Vector(FLOAT))
    out = Output(FLOAT)

    def compute(self) -> None:
        self.out[0] = self.in_.sum()  # type: ignore[index,attr-defined]


def setting() -> tuple[Graph, Tensor, Tensor, ComputeSet]:
    graph = Graph(TARGETS["tiny"])
    data, sums = graph.addVariable(FLOAT, [4], "data"), graph.addVariable(FLOAT, [2], "sums")
    graph.setTileMapping(data, 0)
    graph.setTileMapping(sums, 1)
    return graph, data, sums, graph.addComputeSet("add")


def refused(said: str) -> pytest.RaisesExc[PoplarError]:
    return pytest.raises(PoplarError, match=said)


def test_an_unknown_field_lists_the_known_ones() -> None:
    graph, data, _, add = setting()
    with refused(r"SumVertex\[0\] on tile 2, field 'input': there is no such .* are in, out"):
        graph.addVertex(add, SumVertex, {"input": data}, tile=2)


def test_a_connection_of_the_wrong_type_names_both_types() -> None:
    graph, _, sums, add = setting()
    other = graph.addVariable(INT, [4], "counts")
    with refused("field 'in': connected to counts of type int; the field is of type float"):
        graph.addVertex(add, SumVertex, {"in": other, "out": sums[0]}, tile=0)


def test_a_connection_of_the_wrong_length_names_both_lengths() -> None:
    graph, data, sums, add = setting()
    with refused("field 'out': connected to sums of 2 elements; the field takes 1"):
        graph.addVertex(add, SumVertex, {"in": data, "out": sums}, tile=0)


def test_an_unconnected_field_is_named() -> None:
    graph, data, _, add = setting()
    vertex = graph.addVertex(add, SumVertex, {"in": data}, tile=3)
    graph.setCycleEstimate(vertex, 20)
    with refused(r"SumVertex\[0\] on tile 3, field 'out': not connected"):
        graph.vertex_groups()


def test_an_unmapped_vertex_is_named() -> None:
    graph, data, sums, add = setting()
    vertex = graph.addVertex(add, SumVertex, {"in": data, "out": sums[0]})
    graph.setCycleEstimate(vertex, 20)
    with refused(r"SumVertex\[0\]: is not mapped to a tile"):
        graph.vertex_groups()


def test_a_vertex_on_a_tile_that_is_not_there_is_named() -> None:
    graph, data, sums, add = setting()
    with refused(r"SumVertex\[0\]: tile 4; the target has tiles 0 to 3"):
        graph.addVertex(add, SumVertex, {"in": data, "out": sums[0]}, tile=4)


def test_two_writers_of_one_element_are_both_named() -> None:
    graph, data, sums, add = setting()
    for tile, out in ((0, sums[0]), (1, sums[1]), (2, sums[1])):
        vertex = graph.addVertex(add, SumVertex, {"in": data, "out": out}, tile=tile)
        graph.setCycleEstimate(vertex, 20)
    with refused(
        r"compute set 'add': element 1 of variable 'sums' has two writers: "
        r"vertex SumVertex\[1\] on tile 1, field 'out' and "
        r"vertex SumVertex\[2\] on tile 2, field 'out'"
    ):
        check_writers(graph)


def test_two_compute_sets_may_write_the_same_element() -> None:
    graph, data, sums, add = setting()
    for compute_set in (add, graph.addComputeSet("again")):
        vertex = graph.addVertex(compute_set, SumVertex, {"in": data, "out": sums[0]}, tile=0)
        graph.setCycleEstimate(vertex, 20)
    check_writers(graph)


def test_a_copy_between_different_sizes_names_both_sides() -> None:
    _, data, sums, _ = setting()
    with refused(r"data \(4 x float\) to sums \(2 x float\)"):
        Copy(data, sums)


def test_a_copy_out_of_a_stream_to_the_host_is_refused() -> None:
    graph, data, _, _ = setting()
    with refused("Copy: from stream 'results', which goes to the host"):
        Copy(graph.addDeviceToHostFIFO("results", FLOAT, 4), data)


def test_streams_of_one_name_and_way_are_refused() -> None:
    graph, *_ = setting()
    graph.addHostToDeviceFIFO("images", FLOAT, 4)
    with refused("stream 'images': there is one of this name"):
        graph.addHostToDeviceFIFO("images", FLOAT, 4)


def test_a_sequence_takes_only_programs() -> None:
    _, data, _, add = setting()
    with refused("a program is needed"):
        Sequence(Execute(add), data)  # type: ignore[arg-type]


def test_a_negative_repeat_count_is_refused() -> None:
    with refused("Repeat: count is -1"):
        Repeat(-1, Sequence())


def test_constants_need_one_value_or_all() -> None:
    graph, *_ = setting()
    with refused(r"constant 'c': 3 values for shape \[2, 2\] of 4 elements"):
        graph.addConstant(FLOAT, [2, 2], [1, 2, 3], "c")
