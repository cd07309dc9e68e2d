"""What operations cost by software layer, by hand on the small report and by loops on all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pva.analysis.operations.costs import operation_costs, operation_totals
from pva.analysis.operations.cycle_breakdown import cycles_by_operation
from pva.analysis.operations.details import (
    operation_by_tile,
    operation_compute_sets,
    operation_contexts,
)
from pva.analysis.operations.layers import OUTSIDE, owners_in, software_layers
from pva.analysis.selection import SelectionError
from tests.analysis.samples import WITHOUT_CODE, every_report, opened, small
from tests.builders import TILE


def layered(**layers: str) -> Any:
    """Make the small report with contexts of other layers, by their name."""
    table = dict(small().dataset.table("debug_contexts"))
    words = zip(table["name"], table["layer"], strict=True)
    return small(debug_contexts=table | {"layer": [layers.get(n, layer) for n, layer in words]})


def test_operations_cost_cycles_arithmetic_code_and_memory() -> None:
    frame = operation_costs(small()).set_index("operation")
    multiply = frame.loc["multiply"]
    assert multiply[["steps", "cycles", "compute", "exchange"]].tolist() == [8, 638, 444, 194]
    # Four times the slowest tile's 114 of the compute set and 49 of the exchange.
    assert multiply["estimated_cycles"] == 4 * (114 + 49)
    assert multiply["flops"] == 80
    code = ["control_code", "exchange_code", "vertex_code", "code"]
    own = int(small().dataset.array("memory_by_vertex_type_code")[0].sum())
    assert multiply[code].tolist() == [160, 40, own, 200 + own]
    # The product (80 bytes) and the message (40); both are live at the peak, beside code and state.
    assert multiply[["vertex_state", "variables"]].tolist() == [120, 120]
    assert multiply["peak_bytes"] == 120 + 200 + own + 120
    assert frame.index[0] == "multiply"


def test_code_of_a_vertex_type_that_two_operations_use_is_nobodys() -> None:
    frame = operation_costs(small()).set_index("operation")
    # reduce and add both use popops::Add<float>; popops::Reduce is reduce's alone.
    alone = int(small().dataset.array("memory_by_vertex_type_code")[2].sum())
    assert frame["vertex_code"][["reduce", "add"]].tolist() == [alone, 0]


def test_totals_add_up_to_the_whole_report() -> None:
    frame = operation_totals(small(), layer="poplibs").set_index("figure")
    parts = frame[["operations", "outside", "elsewhere"]].sum(axis=1)
    assert (parts == frame["whole"]).all()
    # multiply, reduce and add are calls of popops; x, y and the syncs are not.
    assert frame.loc["cycles", ["operations", "outside"]].tolist() == [860, 164]
    assert (
        frame["whole"]["control_code"]
        == frame[["operations", "outside"]].sum(axis=1)["control_code"]
    )


@every_report
@pytest.mark.parametrize("layer", ["operation", "scope", "poplibs", "poplar"])
def test_cycles_of_any_layer_are_those_of_the_report(name: str, layer: str) -> None:
    frame = operation_costs(opened(name), layer=layer)
    assert frame["cycles"].sum() == opened(name).execution.totalCycles.total
    phases = frame[["compute", "exchange", "host_exchange", "sync"]].sum(axis=1)
    assert (phases == frame["cycles"]).all()
    totals = operation_totals(opened(name), layer=layer)
    assert (totals["elsewhere"] >= 0).all()


@every_report
def test_cycles_are_those_of_cycles_by_operation(name: str) -> None:
    costs = operation_costs(opened(name)).set_index("operation")
    other = cycles_by_operation(opened(name)).set_index("operation")
    for column in ("cycles", "steps", "compute", "sync", "flops"):
        assert costs.loc[other.index, column].tolist() == other[column].tolist()


def test_layers_are_those_that_debug_contexts_name() -> None:
    assert software_layers(small())["layer"].tolist() == ["operation", "scope", "poplibs", "poplar"]
    frame = software_layers(layered(multiply="popart", model="onnx")).set_index("layer")
    # model is around everything that has a context: all but syncs and what holds others.
    assert frame.loc["onnx", ["operations", "programs"]].tolist() == [1, 7]
    assert frame.loc["popart", ["operations", "programs"]].tolist() == [1, 2]
    assert "tensorflow" not in frame.index


def test_each_layer_has_operations_of_its_own() -> None:
    report = layered(multiply="popart", model="onnx")
    assert owners_in(report, "popart").tolist()[5:8] == ["multiply", "multiply", OUTSIDE]
    assert owners_in(report, "onnx").tolist()[5:8] == ["model", "model", OUTSIDE]
    assert owners_in(report, "poplar").tolist()[:3] == ["(Sequence)", "(Sync)", "x/StreamCopy"]
    with pytest.raises(SelectionError, match="known: operation, scope"):
        owners_in(report, "keras")


def test_a_node_of_popart_tells_its_layer_of_onnx_and_its_operator() -> None:
    table = dict(small().dataset.table("debug_contexts"))
    facts = '{"arguments":{"node":"multiply","operator":"ai.onnx.Mul-7","onnxLayer":"block"}}'
    report = small(
        debug_contexts=table
        | {"layer": ["poplar", "poplar", "popart", *["popops"] * 3],
           "json": ["", "[1]", facts, '{"arguments":3}', "{", ""]}
    )  # fmt: skip
    assert owners_in(report, "onnx").tolist()[5:8] == ["block", "block", OUTSIDE]
    kinds = operation_costs(report).set_index("operation")["kind"]
    assert kinds[["multiply", "add", "(Sync)"]].tolist() == ["ai.onnx.Mul-7", "popops", ""]


def test_the_outermost_call_of_poplibs_counts() -> None:
    table = dict(small().dataset.table("debug_contexts"))
    parents = np.array(table["parent"])
    parents[4] = 4  # reduce is made by add
    names = owners_in(small(debug_contexts=table | {"parent": parents}), "poplibs")
    assert names[9] == names[12] == "add"


def test_contexts_in_a_circle_end() -> None:
    table = dict(small().dataset.table("debug_contexts"))
    parents = np.array(table["parent"])
    parents[[2, 3]] = [4, 3]  # multiply and add are made by each other
    names = owners_in(small(debug_contexts=table | {"parent": parents}), "poplibs")
    assert names[9] == "reduce" and names[6] in ("multiply", "add")


def test_without_execution_estimates_stand_for_one_run() -> None:
    frame = operation_costs(small(steps=None)).set_index("operation")
    assert frame["estimated_cycles"]["multiply"] == 114 + 49
    assert set(frame["cycles"]) == {-1} and set(frame["flops"]) == {-1}
    assert "cycles" not in operation_totals(small(steps=None))["figure"].tolist()


def test_compute_sets_of_an_operation_stand_with_their_share_of_the_peak() -> None:
    frame = operation_compute_sets(small(), operation="multiply")
    assert frame[["name", "vertices", "executions", "cycles"]].to_numpy().tolist() == [
        ["multiply", 10, 4, 444]
    ]
    # 20 operations in 114 cycles; ten tiles of 32 a cycle (ipu2, or tiny).
    assert frame["float_peak_share"][0] == pytest.approx(20 / (114 * 10 * 32))


def test_an_operation_costs_each_tile_its_programs_as_often_as_they_ran() -> None:
    frame = operation_by_tile(small(), operation="multiply")
    assert frame["compute"].tolist() == (4 * (60 + 6 * TILE)).tolist()
    assert frame["exchange"].tolist() == (4 * (40 + TILE)).tolist()
    assert frame["control_code"].tolist() == [16] * 10
    assert frame[["exchange_code", "vertex_state"]].sum().tolist() == [40, 120]


@every_report
def test_code_by_tile_adds_up_to_that_of_the_operation(name: str) -> None:
    costs = operation_costs(opened(name))
    for row in costs[costs["programs"] > 0].to_dict("records"):
        tiles = operation_by_tile(opened(name), operation=row["operation"])
        if name in WITHOUT_CODE:
            assert {*tiles["control_code"], *tiles["exchange_code"], row["code"]} == {-1}
        else:
            assert tiles["control_code"].sum() == row["control_code"]


def test_vertices_that_two_operations_run_lie_on_the_tiles_of_the_first() -> None:
    programs = dict(small().dataset.table("programs"))
    sets = programs["compute_set"].copy()
    sets[12] = 0  # the program of add runs the compute set of multiply, whose program is 6
    report = small(programs=programs | {"compute_set": sets})
    multiply, add = (operation_by_tile(report, operation=name) for name in ("multiply", "add"))
    assert multiply["vertex_state"].tolist() == [12] * 10
    assert add["vertex_state"].tolist() == [0] * 10
    assert add["compute"].tolist() == (4 * (60 + 6 * TILE)).tolist()


def test_contexts_of_an_operation_have_their_source() -> None:
    frame = operation_contexts(small(), operation="multiply")
    assert frame[["name", "line", "programs"]].to_numpy().tolist() == [
        ["model", 10, 2], ["multiply", 12, 2],
    ]  # fmt: skip
    assert frame["json"].tolist() == ["", '{"op":"multiply"}']


def test_the_costliest_operation_stands_for_none_and_unknown_ones_are_refused() -> None:
    assert operation_contexts(small())["name"].tolist() == ["model", "multiply"]
    with pytest.raises(SelectionError, match="no such operation"):
        operation_by_tile(small(), operation="divide")
