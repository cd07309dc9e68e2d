"""The page Computation graph: layers as the data flow, boxes that do not meet, words for a node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dashboard.address import Address, parse
from dashboard.figures import graph as figures
from dashboard.pages import graph
from dashboard.store import Store
from pva.analysis.memory.computation_graph import neighbourhood
from pva.analysis.selection import SelectionError
from tests.analysis.samples import every_report, opened
from tests.builders import small_report, write_report
from tests.dashboard.layouts import grid, words


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return a store of the small report, and of one whose programs touch nothing."""
    folder = tmp_path_factory.mktemp("reports")
    none = {name: np.zeros(0, dtype=np.int64) for name in ("program", "variable", "write")}
    return Store(
        [write_report(folder / "small"), write_report(folder / "bare", small_report(access=none))]
    )


def at(search: str = "") -> Address:
    return parse("/graph", search)


def text(element: Any) -> str:
    return words(element).replace("\u00a0", " ")


def nodes(*layers: int, **columns: Any) -> pd.DataFrame:
    """Make nodes in these layers."""
    count = len(layers)
    given = {
        "key": [f"v{row}" for row in range(count)], "kind": ["variable"] * count,
        "name": [f"n{row}" for row in range(count)], "bytes": [8] * count, "layer": layers,
        "opened": [False] * count, "neighbours": [1] * count, "hidden": [0] * count,
    }  # fmt: skip
    return pd.DataFrame(given | columns)


def edges(*pairs: tuple[int, int]) -> pd.DataFrame:
    return pd.DataFrame([(f"v{a}", f"v{b}") for a, b in pairs], columns=["source", "target"])


def test_nodes_of_a_layer_stand_apart_and_around_the_middle() -> None:
    x, y = figures.places(nodes(-1, -1, -1, 0, 1, 1), edges((0, 3), (1, 3), (3, 4)))
    assert x.tolist() == [-1, -1, -1, 0, 1, 1]
    assert sorted(y[:3]) == [-1, 0, 1] and y[3] == 0 and sorted(y[4:]) == [-0.5, 0.5]


def test_nodes_are_ordered_so_that_edges_need_not_cross() -> None:
    # 0 -> 5, 1 -> 4, 2 -> 3: the second layer is turned round
    _, y = figures.places(nodes(0, 0, 0, 1, 1, 1), edges((0, 5), (1, 4), (2, 3)))
    assert np.argsort(y[[0, 1, 2]]).tolist() == np.argsort(y[[5, 4, 3]]).tolist()


@every_report
def test_no_two_boxes_of_a_neighbourhood_share_a_place(name: str) -> None:
    report = opened(name)
    first = neighbourhood(report)
    opened_keys = first.nodes["key"].head(4).tolist()
    around = neighbourhood(report, opened_keys, most=10)
    x, y = figures.places(around.nodes, around.edges)
    assert len(set(zip(x.tolist(), y.tolist(), strict=True))) == len(around.nodes)


def test_edge_leaves_at_the_right_and_arrives_at_the_left() -> None:
    figure = figures.neighbourhood(nodes(0, 1), edges((0, 1)), theme="light")
    line = figure.data[0]
    assert (line.x[0], line.x[figures.BENDS - 1]) == (0.38, pytest.approx(0.62))
    assert np.isnan(line.x[figures.BENDS])


def test_edge_against_the_flow_passes_below_the_boxes() -> None:
    figure = figures.neighbourhood(nodes(0, 1), edges((1, 0)), theme="dark")
    assert np.nanmax(figure.data[0].y) > figures.HALF_HEIGHT


def test_names_are_no_markup_and_what_is_left_out_is_counted() -> None:
    frame = nodes(0, 1, name=["<b>", "poplin::Reduce<float,float>"], hidden=[0, 5])
    figure = figures.neighbourhood(frame, edges((0, 1)), theme="light")
    boxes, told = figure.data[-1], figure.layout.meta["boxes"]
    assert told["names"] == ["<b>", "poplin::Reduce<float,float>"]
    assert [rest["below"] for rest in told["rests"]] == ["8 B", "8 B · 5 hidden"]
    assert boxes.hovertext[0].startswith("&lt;b&gt;<br>")
    assert list(boxes.customdata) == ["v0", "v1"] and boxes.meta == "numbers"
    assert "5 not drawn" in boxes.hovertext[1]


def test_opened_nodes_and_kinds_differ_by_more_than_colour() -> None:
    frame = nodes(0, 1, kind=["OnTileExecute", "variable"], opened=[True, False])
    rounded, square = figures.neighbourhood(frame, edges((0, 1)), theme="light").data[2:4]
    assert (rounded.name, square.name) == ("Compute", "Variable")
    assert len(rounded.x) > len(square.x) == 6  # four corners, the first again, a gap
    assert rounded.line.width > square.line.width
    assert (np.nanmin(square.x), np.nanmax(square.x)) == (0.62, 1.38)


def test_answer_tells_what_a_program_reads_and_writes(store: Store) -> None:
    assert "multiply reads 3 variables (200 B) and writes 1 variable (80 B)." in text(
        graph.answer(store, at(), "light")
    )
    assert "product (80 B) is written by 2 programs and read by 1 program." in text(
        graph.answer(store, at("?node=p6,v2"), "light")
    )


def test_details_are_about_the_node_opened_last(store: Store) -> None:
    shown = text(graph.details(store, at("?node=p6,v0"), "light"))
    assert (
        "x" in shown and "Type and shape float 4x5" in shown and "Tiles that it lies on 10" in shown
    )
    program = text(graph.details(store, at("?node=v0,p6"), "light"))
    assert "Kind Compute" in program and "popops::Multiply<float> 10 vertices" in program
    frame = graph.neighbours(store, at("?node=p6"))
    assert sorted(zip(frame["does"], frame["name"], strict=True)) == [
        ("reads", "message"), ("reads", "w"), ("reads", "x"), ("writes", "product"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("tab", "names"),
    [
        ("compute-sets", {"multiply", "add", "reduce"}),
        ("variables", {"x", "w", "product", "message", "partials", "y", "step"}),
        ("copies", {"x/StreamCopy", "y/StreamCopy", "multiply/ExchangePre",
                    "reduce/GlobalPre/GlobalExchange"}),
    ],
)  # fmt: skip
def test_tabs_list_the_nodes_of_their_kind(store: Store, tab: str, names: set[str]) -> None:
    assert set(graph.nodes(store, at(f"?tab={tab}"))["name"]) == names
    assert grid(graph.details(store, at(f"?tab={tab}"), "light"), "graph-nodes") is not None


def test_filter_keeps_nodes_by_name(store: Store) -> None:
    found = graph.nodes(store, at("?tab=variables&filter=name~pro"))
    assert found[["key", "name"]].to_numpy().tolist() == [["v2", "product"]]


def test_figure_draws_what_the_link_opens(store: Store) -> None:
    figure = graph.graph_figure(store, at("?node=p6,v2"), "light")
    assert set(figure.data[-1].customdata) == {"p6", "v0", "v1", "v2", "v3", "p8", "p12"}
    assert {key: figure.layout.meta[key] for key in ("picks", "marks", "whole")} == {
        "picks": list(figure.data[-1].customdata),
        "marks": False,
        "whole": {"x": list(figure.layout.xaxis.range), "y": list(figure.layout.yaxis.range)},
    }
    assert len(graph.drawn(store, at("?node=p6"))) == 4


def test_node_that_is_not_there_is_refused_in_one_line(store: Store) -> None:
    with pytest.raises(SelectionError, match="variables 0 to 6"):
        graph.graph_figure(store, at("?node=v99"), "light")


def test_graph_of_a_tile_has_what_lies_there(store: Store) -> None:
    shown = text(graph.answer(store, at("?node=v4&tile=5"), "light"))
    assert shown.startswith("partials (16 B on tile 5) is written by 1 program and read by 1")
    assert "y" not in graph.nodes(store, at("?tab=variables&tile=5"))["name"].tolist()
    figure = graph.graph_figure(store, at("?node=p9&tile=5"), "dark")
    assert list(figure.data[-1].customdata) == ["p9", "v4"]
    shown = text(graph.answer(store, at("?node=v0&ipu=1"), "light"))
    assert shown.startswith("x (40 B on IPU 1) is written by 1 program and read by 2")


def test_program_says_on_which_tile_its_bytes_are(store: Store) -> None:
    # of 10 tiles each has 8 B of x, w and product, and a message of 4 B
    link = at("?node=p6&tile=3,7")
    assert text(graph.answer(store, link, "light")).startswith(
        "multiply reads 3 variables (20 B) and writes 1 variable (8 B) on tile 3, the first of 2."
    )
    shown = text(graph.details(store, link, "light"))
    assert "Bytes of its variables on tile 3, the first of 2 28 B" in shown
    assert "10 vertices on all tiles" in shown


def test_graph_without_an_edge_says_so(store: Store) -> None:
    assert "No program reads or writes a variable." in text(graph.layout(store, at("?report=bare")))
