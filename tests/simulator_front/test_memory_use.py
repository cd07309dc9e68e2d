"""Memory of a compiled program: every byte is counted once, whichever way it is added up."""

from __future__ import annotations

import numpy as np
import pytest

from pva import schema
from simulator.compiler.compile import compile_graph
from simulator.compiler.executable import Executable
from simulator.examples import mlp_digits
from simulator.graph.graph import Graph
from simulator.graph.machine.target import make_target


@pytest.fixture(scope="module", params=[True, False], ids=["with code", "without code"])
def compiled(request: pytest.FixtureRequest) -> Executable:
    graph = Graph(make_target("mk1", tiles_per_ipu=60, compile_ipu_code=request.param))
    return compile_graph(graph, mlp_digits.build(graph, mlp_digits.load_digits()))


def category(executable: Executable, *names: str) -> np.ndarray:  # type: ignore[type-arg]
    rows = [schema.CATEGORIES.index(name) for name in names]
    return executable.memory.by_category[rows].sum(axis=(0, 1, 2))


def test_what_does_not_overlap_is_part_of_the_total(compiled: Executable) -> None:
    apart, shared = compiled.memory.by_category.sum(axis=(0, 1)).astype(int)
    total = compiled.memory.by_tile["total"]
    assert (apart <= total).all()
    assert (total <= apart + shared).all()


def test_regions_add_up_to_the_total(compiled: Executable) -> None:
    table = compiled.memory.by_tile
    regions = sum(table[schema.snake(region)] for region in schema.REGIONS)
    np.testing.assert_array_equal(regions, table["total"])
    assert (table["total_including_gaps"] >= table["total"]).all()


def test_interleaved_data_lifts_the_end_of_a_tile_above_the_base(compiled: Executable) -> None:
    table, base = compiled.memory.by_tile, compiled.graph.target.interleaved_base
    used = table["interleaved"] > 0
    assert used.any()
    lifted = base + table["interleaved_including_gaps"]
    np.testing.assert_array_equal(table["total_including_gaps"][used], lifted[used])


def test_the_parts_of_vertices_are_filed_in_four_categories(compiled: Executable) -> None:
    filed = category(
        compiled,
        "vertexInstanceState",
        "vertexFieldData",
        "vectorListDescriptor",
        "copyDescriptor",
    )
    for table in (compiled.memory.by_vertex_type, compiled.memory.by_compute_set):
        parts = sum(
            table[p] for p, _, _ in schema.VERTEX_MEMORY_PARTS if p not in ("code", "total")
        )
        np.testing.assert_array_equal(np.asarray(parts).sum(axis=0), filed)


def test_without_code_for_the_ipu_there_is_neither_code_nor_stack(compiled: Executable) -> None:
    names = ("vertexCode", "controlCode", "internalExchangeCode", "hostExchangeCode", "stack")
    wanted = compiled.graph.target.compile_ipu_code
    assert [bool(category(compiled, name).sum()) for name in names] == [wanted] * 5


def test_code_of_a_vertex_type_is_on_a_tile_once(compiled: Executable) -> None:
    code = compiled.memory.by_vertex_type["code"].sum(axis=0)
    np.testing.assert_array_equal(code, category(compiled, "vertexCode"))


def test_always_live_names_add_up_to_the_tiles(compiled: Executable) -> None:
    items = dict(compiled.memory.always_live_items)
    assert sum(items.values()) == compiled.memory.always_live.sum()
    assert items["Layer1/Fwd/Conv_1/worklists"] > 0


def test_variables_and_constants_are_counted_once(compiled: Executable) -> None:
    graph, pieces = compiled.graph, compiled.pieces
    placed = np.bincount(pieces.variable, weights=pieces.bytes, minlength=len(graph.variables))
    constants = [v.bytes for v in graph.variables if v.constant]
    assert category(compiled, "constant").sum() == sum(constants)
    for variable in graph.variables:
        assert placed[variable.id] in (0, variable.bytes)
