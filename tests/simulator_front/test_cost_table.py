"""The table of vertex costs: published figures, figures worked out by hand, and its own rules."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.codelets.catalogue import CATALOGUE, rows_of, source_of
from simulator.codelets.document import markdown
from simulator.codelets.elementwise.fused import Node
from simulator.codelets.elementwise.operations import BINARY
from simulator.codelets.vertex_type import VertexType, VertexTypes, worker
from simulator.graph.machine.target import TARGETS
from simulator.graph.types import FLOAT, HALF

MK1 = TARGETS["mk1"]
SOURCE = Path(__file__).parents[2] / "simulator"
FOLDER = SOURCE / "codelets"
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
    "lower": True,
    "count": 5,
    "absolute": True,
    "channels": 4,
    "splines": 2,
    "form": "BFLOAT16",
    "size": 8,
    "beams": 3,
    "infinities": True,
    "rows": 48,
    "sequences": 3,
    "out_group": 8,
    "expression": Node(FLOAT, BINARY["ADD"], (Node(FLOAT, field="in1"), Node(FLOAT, field="in2"))),
}
SIZES = ("positions", "outputs", "inputs")  # of conv_cycles, which takes any number


def function_of(entry: VertexType) -> Any:
    return getattr(entry.cycles, "func", entry.cycles)


def arguments(entry: VertexType) -> tuple[list[str], dict[str, Any]]:
    """Return the names of the array arguments, and values for the others."""
    parameters = inspect.signature(function_of(entry)).parameters.values()
    arrays = [p.name for p in parameters if p.annotation == "IntArray"]
    arrays += [p.name for p in parameters if p.annotation == "Any" and p.name in SIZES]
    bound = getattr(entry.cycles, "keywords", {})
    needed = [p for p in parameters if p.default is inspect.Parameter.empty]
    fixed = {p.name: FIXED[p.name] for p in needed if p.name not in (*arrays, *bound)}
    if "UnaryOp" in entry.name:
        fixed["operation"] = "CEIL"
    return arrays, fixed


def cost(entry: VertexType, sizes: dict[str, Any]) -> Any:
    _, fixed = arguments(entry)
    return entry.cycles(**{name: np.asarray(size) for name, size in sizes.items()}, **fixed)


@ROWS
def test_each_row_says_what_it_is(entry: VertexType) -> None:
    assert entry.source and entry.fields
    assert entry.state_bytes > 0 and entry.code_bytes > 0
    assert entry.formula.endswith((".", ":")) and len(entry.formula) > 10


@ROWS
def test_formulas_take_arrays_and_give_what_they_give_for_each_number(entry: VertexType) -> None:
    arrays, _ = arguments(entry)
    vertices = [{name: 1 + (7 * v + 5 * i) % 41 for i, name in enumerate(arrays)} for v in range(9)]
    if "ranges" in arrays:
        vertices = [vertex | {"ranges": 1} for vertex in vertices]
    together = cost(entry, {name: [vertex[name] for vertex in vertices] for name in arrays})
    alone = [cost(entry, {name: [size] for name, size in v.items()}) for v in vertices]
    assert together.dtype == np.int64
    assert together.tolist() == [int(cycles[0]) for cycles in alone]


@ROWS
def test_a_vertex_of_no_region_costs_its_start_alone(entry: VertexType) -> None:
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
def test_more_to_do_never_costs_less(entry: VertexType, data: st.DataObject) -> None:
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


def constructors(file: Path) -> list[int]:
    """List the lines of a file that build a codelet, or change one."""
    calls = (n for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.Call))
    return [call.lineno for call in calls if ast.unparse(call.func).split(".")[-1] == "Codelet"]


def test_every_codelet_of_the_libraries_is_made_from_its_declared_type() -> None:
    # So its name, bytes and workers cannot differ from its row. The other file makes users' ones.
    places = {file.name for file in SOURCE.rglob("*.py") if constructors(file)}
    assert places == {"vertex_type.py", "user_compute.py"}


def test_a_codelet_has_the_bytes_and_the_workers_of_its_type() -> None:
    types = VertexTypes((worker("popops::X<type>", "out", abs, "a book", (12, 90)),))
    one = types.codelet("popops::X<float>", dict)
    more = types.codelet("popops::X<half>", dict, more_code=50)
    assert (one.state_bytes, one.code_bytes, one.supervisor) == (12, 90, False)
    assert (more.name, more.code_bytes) == ("popops::X<half>", 140)


def test_a_codelet_without_a_declared_type_is_an_error() -> None:
    with pytest.raises(KeyError, match="vertex popops::Y<float>: no type is declared for it"):
        VertexTypes(()).codelet("popops::Y<float>", dict)


def test_the_catalogue_has_the_types_of_every_module() -> None:
    files = [file for file in FOLDER.rglob("*.py") if "\nTYPES = " in file.read_text()]
    places = [".".join(file.relative_to(FOLDER).with_suffix("").parts) for file in files]
    tables = [import_module(f"simulator.codelets.{place}").TYPES.types for place in places]
    assert sorted(t.name for table in tables for t in table) == sorted(t.name for t in CATALOGUE)


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
