"""The table of vertex costs: published figures, figures worked out by hand, and its own rules."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.codelets import (
    broadcast,
    classification,
    convolution,
    elementwise,
    images,
    loops,
    losses,
    nonlinearity,
    random_values,
    random_vertices,
    reduction,
    sorting,
    ternary,
    transposing,
)
from simulator.codelets.catalogue import CATALOGUE, rows_of, source_of
from simulator.codelets.document import markdown
from simulator.codelets.fused import Node, fused
from simulator.codelets.operations import BINARY
from simulator.codelets.scaled_add import ScaledSum, scaled_sum
from simulator.codelets.vertex_cost import VertexCost
from simulator.compiler import copies
from simulator.graph.target import TARGETS
from simulator.graph.types import FLOAT, HALF, UNSIGNED_INT
from simulator.graph.vertex import Codelet

MK1 = TARGETS["mk1"]
PAGE = Path(__file__).parents[2] / "docs" / "vertex-costs.md"
ROWS = pytest.mark.parametrize("entry", CATALOGUE, ids=[entry.name for entry in CATALOGUE])
# What the arguments that are the same for all vertices are in these tests.
FIXED: dict[str, Any] = {
    "target": MK1,
    "dtype": FLOAT,
    "source": FLOAT,
    "destination": HALF,
    "partials": FLOAT,
    "operation": "ADD",
    "kind": "SIGMOID",
    "iterations": 3,
    "values": "none",
    "channels": 4,
    "out_group": 8,
    "expression": Node(FLOAT, BINARY["ADD"], (Node(FLOAT, field="in1"), Node(FLOAT, field="in2"))),
}
SIZES = ("positions", "outputs", "inputs")  # of conv_cycles, which takes any number


def function_of(entry: VertexCost) -> Any:
    return getattr(entry.cycles, "func", entry.cycles)


def arguments(entry: VertexCost) -> tuple[list[str], dict[str, Any]]:
    """Give the names of the array arguments, and values for the others."""
    parameters = inspect.signature(function_of(entry)).parameters.values()
    arrays = [p.name for p in parameters if p.annotation == "IntArray"]
    arrays += [p.name for p in parameters if p.annotation == "Any" and p.name in SIZES]
    bound = getattr(entry.cycles, "keywords", {})
    needed = [p for p in parameters if p.default is inspect.Parameter.empty]
    fixed = {p.name: FIXED[p.name] for p in needed if p.name not in (*arrays, *bound)}
    if "UnaryOp" in entry.name:
        fixed["operation"] = "CEIL"
    return arrays, fixed


def cost(entry: VertexCost, sizes: dict[str, Any]) -> Any:
    _, fixed = arguments(entry)
    return entry.cycles(**{name: np.asarray(size) for name, size in sizes.items()}, **fixed)


@ROWS
def test_each_row_says_what_it_is(entry: VertexCost) -> None:
    assert entry.source and entry.fields
    assert entry.state_bytes > 0 and entry.code_bytes > 0
    assert entry.formula.endswith((".", ":")) and len(entry.formula) > 10


@ROWS
def test_formulas_take_arrays_and_give_what_they_give_for_each_number(entry: VertexCost) -> None:
    arrays, _ = arguments(entry)
    vertices = [{name: 1 + (7 * v + 5 * i) % 41 for i, name in enumerate(arrays)} for v in range(9)]
    if "ranges" in arrays:
        vertices = [vertex | {"ranges": 1} for vertex in vertices]
    together = cost(entry, {name: [vertex[name] for vertex in vertices] for name in arrays})
    alone = [cost(entry, {name: [size] for name, size in v.items()}) for v in vertices]
    assert together.dtype == np.int64
    assert together.tolist() == [int(cycles[0]) for cycles in alone]


@ROWS
def test_a_vertex_of_no_region_costs_its_start_alone(entry: VertexCost) -> None:
    arrays, _ = arguments(entry)
    if "ranges" not in arrays:
        return
    one = {name: [6] for name in arrays} | {"ranges": [1]}
    several = {name: [6, 6] for name in arrays} | {"ranges": [0, 2]}
    none, two = cost(entry, several).tolist()
    assert none + two == 2 * int(cost(entry, one)[0])


@ROWS
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_more_to_do_never_costs_less(entry: VertexCost, data: st.DataObject) -> None:
    arrays, _ = arguments(entry)
    # Whole vectors for every worker: what is left of a vector can cost more than the vector.
    sizes = {name: 48 * data.draw(st.integers(1, 3), name) for name in arrays}
    if "ranges" in arrays:
        sizes["ranges"] = 1
    for name in [name for name in arrays if name != "ranges"]:
        more = sizes | {name: sizes[name] + 48}
        both = {key: [sizes[key], more[key]] for key in sizes}
        if "ranges" in arrays:
            both["ranges"] = [1, 1]
        less, greater = cost(entry, both).tolist()
        assert 0 < less <= greater, name


def codelets() -> Iterator[Codelet]:
    """Give the vertex types that programs use."""
    for vertices in (
        elementwise.binary("ADD", FLOAT, MK1, False),
        elementwise.binary("ADD", FLOAT, MK1, True),
        elementwise.unary("SQUARE", FLOAT, MK1, False),
        elementwise.unary("SQUARE", FLOAT, MK1, True),
        elementwise.broadcast_scalar("ADD", FLOAT, MK1, False),
        elementwise.broadcast_scalar("ADD", FLOAT, MK1, True),
        scaled_sum(ScaledSum(True), FLOAT, MK1),
        elementwise.cast(FLOAT, HALF, MK1),
        nonlinearity.nonlinearity("SIGMOID", FLOAT, MK1),
        nonlinearity.nonlinearity("SIGMOID", FLOAT, MK1, True),
        nonlinearity.nonlinearity_gradient("SIGMOID", FLOAT, MK1),
        fused(FIXED["expression"], MK1),
        *(ternary.ternary(kind, FLOAT, MK1, False, (False,) * 3) for kind in ("SELECT", "CLAMP")),
        *(ternary.ternary(kind, FLOAT, MK1, False, one) for kind, one in ternary.BROADCASTS),
    ):
        yield from (one for one in (vertices.one, vertices.several) if one)
    for in_place in (False, True):
        yield broadcast.inner_1d("ADD", HALF, in_place)
        yield broadcast.inner_2d("ADD", HALF, in_place)
        yield broadcast.outer_1d("ADD", FLOAT, in_place, by_row=True, misaligned=False)
        yield broadcast.outer_1d("ADD", FLOAT, in_place, by_row=False, misaligned=True)
    yield losses.sum_squared_transform(FLOAT)[0]
    yield losses.cross_entropy_transform(FLOAT)[0]
    yield classification.one_hot_codelet(UNSIGNED_INT, FLOAT)
    yield classification.class_gather_codelet(FLOAT, UNSIGNED_INT, largest=True)[0]
    yield classification.class_gather_codelet(FLOAT, UNSIGNED_INT, largest=False)[0]
    yield classification.class_sparse_codelet(FLOAT, UNSIGNED_INT, largest=True)[0]
    yield classification.accuracy_codelet(UNSIGNED_INT)[0]
    yield reduction.reduce_codelet("ADD", FLOAT, reduction.STRIDED)
    yield reduction.reduce_codelet("ADD", FLOAT, reduction.GENERAL, scaled=True)
    yield reduction.reduce_add_codelet(FLOAT)
    for name in convolution.SIZES:
        yield convolution.conv_codelet(f"{name}<float,float>", FLOAT, FLOAT, {}, ())
    yield convolution.transpose_codelet(FLOAT, 2, 2)
    for dtype in (FLOAT, HALF):
        kinds = random_values.DISTRIBUTIONS
        yield from (random_vertices.random_codelet(kind, dtype, MK1) for kind in kinds)
        yield random_vertices.dropout_codelet(dtype, MK1)
    yield random_vertices.set_seed_codelet(MK1)
    yield random_vertices.get_seeds_codelet(MK1)
    yield random_vertices.set_seeds_codelet(MK1)
    yield sorting.heap_sort_codelet(FLOAT)
    yield sorting.heap_sort_key_value_codelet(FLOAT, HALF)
    yield sorting.compare_and_swap_codelet(FLOAT, None, True, "none")
    yield sorting.compare_and_swap_codelet(FLOAT, UNSIGNED_INT, True, "compared")
    yield transposing.transpose_worker_codelet(FLOAT, 2, 2)
    yield images.normalise_image_codelet(HALF, HALF)
    yield loops.for_loop_counter(UNSIGNED_INT)
    yield from (copies.SHORT, copies.LONG, copies.STRIDED)


@pytest.mark.parametrize("codelet", list(codelets()), ids=lambda codelet: codelet.name)
def test_vertices_of_programs_have_the_bytes_of_their_rows(codelet: Codelet) -> None:
    entry = rows_of(codelet.name)[0]
    found = (codelet.state_bytes, codelet.code_bytes, codelet.supervisor)
    assert found == (entry.state_bytes, entry.code_bytes, entry.supervisor)


def test_names_stand_once() -> None:
    names = [entry.name for entry in CATALOGUE]
    assert len(set(names)) == len(names)


def test_a_users_codelet_has_no_source() -> None:
    assert source_of("SumVertex") == "" and source_of("popops::ReduceX") == ""


def test_the_page_is_what_the_table_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == markdown(), "write it again: make documents"


@pytest.mark.parametrize(
    "name",
    [
        *("poplin::ConvPartial1x1Out", "poplin::ConvPartialnx1", "poplin::ConvPartial1x4SLIC"),
        *("popops::MultiSlice", "popops::MultiUpdateAdd", "popops::DynamicSlice1D"),
        *("popops::Fill", "popops::Cast1D", "popops::HeapSortVertex", "popops::Iota"),
        *("poprand::DropoutSupervisor", "poprand::SetSeedSupervisor", "poplar_rt::MemsetZero"),
    ],
)
def test_vertices_that_no_program_uses_yet_are_listed(name: str) -> None:
    assert rows_of(f"{name}<float>")
