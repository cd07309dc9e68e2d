"""The computation graph of the hand-made report: copy in, exchange, multiply, add, reduce, out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from pva.analysis.memory import computation_graph as graph
from pva.analysis.selection import SelectionError
from tests.analysis.samples import every_report, opened, rows, small
from tests.builders import small_report


def edges(frame: Any) -> set[tuple[str, str]]:
    return set(zip(frame["source"], frame["target"], strict=True))


def nodes(around: graph.Neighbourhood, column: str) -> dict[str, Any]:
    return dict(zip(around.nodes["key"], around.nodes[column].tolist(), strict=True))


def test_data_flows_from_what_is_read_to_what_is_written() -> None:
    # multiply (program 6) reads x, w and the message, and writes the product
    assert edges(graph.graph_edges(small(), program=6)) == {
        ("v0", "p6"), ("v1", "p6"), ("v3", "p6"), ("p6", "v2"),
    }  # fmt: skip
    # the exchange (5) fills the message
    assert edges(graph.graph_edges(small(), variable=3)) == {("p5", "v3"), ("v3", "p6")}


@every_report
def test_edges_of_all_nodes_are_the_accesses(name: str) -> None:
    report = opened(name)
    first = graph._same_work(report)
    wanted = {
        (f"p{first[row['program']]}", f"v{row['variable']}")[:: 1 if row["write"] else -1]
        for row in rows(report, "access")
    }
    keys = graph.graph_nodes(report)["key"].tolist()
    found = graph.neighbourhood(report, keys, most=10**6)
    assert edges(found.edges) == wanted and not found.nodes["hidden"].any()


def test_what_is_read_lies_before_and_what_is_written_after() -> None:
    around = graph.neighbourhood(small(), ["p6", "v2"])
    layers = nodes(around, "layer")
    assert layers == {"p6": 0, "v0": -1, "v1": -1, "v3": -1, "v2": 1, "p8": 2, "p12": 0}
    # x goes to the exchange, too, the message comes from there: neither is opened
    assert nodes(around, "hidden")["v0"] == 2 and nodes(around, "hidden")["v2"] == 0
    assert [key for key, is_open in nodes(around, "opened").items() if is_open] == ["p6", "v2"]


def test_opened_nodes_take_their_layers_from_those_they_are_connected_with() -> None:
    layers = nodes(graph.neighbourhood(small(), ["v2", "v0", "p6"]), "layer")
    # the product is in the middle; multiply, which writes it, before it; x, which that reads, too
    assert (layers["v2"], layers["p6"], layers["v0"], layers["p2"]) == (0, -1, -2, -3)


def test_variable_that_is_added_to_is_read_and_written() -> None:
    reads = small_report().table("access")
    both = {"program": [12, 12], "variable": [2, 2], "write": [True, False]}
    report = small(access={name: [*reads[name][:0], *both[name]] for name in both})
    around = graph.neighbourhood(report, ["v2"])
    assert edges(around.edges) == {("p12", "v2"), ("v2", "p12")}
    assert nodes(around, "neighbours") == {"v2": 1, "p12": 1}


def test_largest_neighbours_are_drawn_and_the_others_counted() -> None:
    around = graph.neighbourhood(small(), ["p6"], most=2)
    assert set(around.nodes["key"]) == {"p6", "v0", "v1"}
    assert nodes(around, "hidden")["p6"] == 2


def test_programs_that_run_one_compute_set_are_one_node() -> None:
    table = dict(small_report().table("programs"))
    compute_set = table["compute_set"].copy()
    compute_set[12] = 0  # add runs what multiply runs
    report = small(programs=table | {"compute_set": compute_set})
    assert "p12" not in graph.graph_nodes(report)["key"].tolist()
    assert edges(graph.graph_edges(report, program=12)) >= {("v6", "p6"), ("p6", "v2")}


def test_nodes_are_listed_with_what_they_read_and_write() -> None:
    frame = graph.graph_nodes(small()).set_index("key")
    # x 80, w 80, product 80, message 40
    assert frame.loc["p6"].tolist() == ["OnTileExecute", "multiply", 280, 3, 1]
    assert frame.loc["v0"].tolist() == ["variable", "x", 80, 2, 1]
    assert len(frame) == 7 + 7


def test_program_at_the_peak_is_in_the_middle_until_another_is_chosen() -> None:
    around = graph.neighbourhood(small())
    assert around.nodes["key"].iloc[0] == "p6" and around.nodes["layer"].iloc[0] == 0


def test_graph_of_a_tile_has_the_variables_that_lie_there() -> None:
    # tile 5 has x, w, product (8 bytes each), message (4) and partials (16); y and step are on 0
    frame = graph.graph_nodes(small(), tile=5).set_index("key")["bytes"]
    assert {key: frame[key] for key in frame.index if key.startswith("v")} == {
        "v0": 8, "v1": 8, "v2": 8, "v3": 4, "v4": 16,
    }  # fmt: skip
    assert (
        frame["p6"] == 28
        and frame["p9"] == 16
        and "p10" in graph.graph_nodes(small())["key"].tolist()
    )
    assert "p10" not in frame.index
    assert edges(graph.graph_edges(small(), program=9, tile=5)) == {("v4", "p9")}


def test_graph_of_an_ipu_has_the_half_of_each_variable_that_lies_there() -> None:
    frame = graph.graph_nodes(small(), ipu=1).set_index("key")["bytes"]
    assert {key: frame[key] for key in frame.index if key.startswith("v")} == {
        "v0": 40, "v1": 40, "v2": 40, "v3": 20, "v4": 16,
    }  # fmt: skip
    assert edges(graph.graph_edges(small(), program=9, ipu=1)) == {("v4", "p9")}
    with pytest.raises(SelectionError, match="IPU 2"):
        graph.graph_nodes(small(), ipu=2)


def test_report_without_accesses_has_an_empty_graph() -> None:
    none = {name: np.zeros(0, dtype=np.int64) for name in ("program", "variable", "write")}
    around = graph.neighbourhood(small(access=none))
    assert not len(around.nodes) and not len(around.edges)
    alone = graph.neighbourhood(small(access=none), ["v3"])
    assert nodes(alone, "neighbours") == {"v3": 0}


@pytest.mark.parametrize(
    ("key", "words"),
    [("v7", "variables 0 to 6"), ("p14", "programs 0 to 13"), ("x1", "write v12"), ("v", "v12")],
)
def test_node_that_is_not_there_is_refused(key: str, words: str) -> None:
    with pytest.raises(SelectionError, match=words):
        graph.neighbourhood(small(), [key])


def test_links_of_a_direction_are_counted_with_the_bytes_at_their_ends() -> None:
    sizes = pd.Series([80, 4, 16])
    totals = graph.link_totals(sizes, pd.Series([True, False, True]))
    assert (totals.links, totals.bytes) == (2, 96)


def test_a_program_without_a_compute_set_runs_no_vertices() -> None:
    assert graph.vertices_of(small(), 2) is None  # a stream copy
    vertices = graph.vertices_of(small(), 9)  # reduce
    assert vertices is not None
    assert vertices["vertex_type"].tolist() == ["popops::Reduce<float,float>", "popops::Add<float>"]


def test_programs_that_touch_nothing_have_no_accesses() -> None:
    assert graph.has_accesses(small())
    none = {name: values[:0] for name, values in small_report().table("access").items()}
    assert not graph.has_accesses(small(access=none))
