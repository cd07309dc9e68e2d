"""What is lowered once for all that are alike is what each by itself becomes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simulator import poplar
from simulator.compiler.lowering import reuse
from simulator.graph.graph import Graph
from simulator.graph.machine.target import TARGETS
from simulator.poplar import FLOAT, program
from simulator.poplibs import poplin, popops
from tests.random_programs import Drawn


class Sum(poplar.Vertex):
    in_: Any = poplar.Input(poplar.Vector(FLOAT))
    out: Any = poplar.Output(FLOAT)

    def compute(self) -> None:
        self.out[0] = self.in_.sum()


def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        reuse.Reuse, "lower", lambda self, number: reuse.lower_compute_set(self.building, number)
    )


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note the names of compute sets that are lowered."""
    names: list[str] = []
    plain = reuse.lower_compute_set

    def noted(building: Any, number: int) -> Any:
        names.append(building.compute_sets[number])
        return plain(building, number)

    monkeypatch.setattr(reuse, "lower_compute_set", noted)
    return names


def layers(ipus: int, count: int) -> tuple[Graph, program.Sequence]:
    """Add layers alike: products, sums, and vertices whose operands lie anywhere, in pieces."""
    target = replace(TARGETS["tiny"], num_ipus=ipus)
    graph, steps = Graph(target), program.Sequence()
    values = graph.addVariable(FLOAT, [12, 16], "input")
    for row in range(12):
        graph.setTileMapping(values[row], (5 * row) % target.num_tiles)
    for layer in range(count):
        weights = graph.addVariable(FLOAT, [16, 16], f"weights{layer}")
        graph.setTileMapping(weights, 1)
        popops.mulInPlace(graph, values, values.reshape([16, 12]).transpose(), steps, f"l{layer}")
        product = poplin.matMul(graph, values, weights, steps, f"l{layer}")
        compute_set = graph.addComputeSet(f"l{layer}/sum")
        out = graph.clone(values, f"out{layer}")
        for place in range(12):
            column = product.transpose()[place]
            fields = {"in": column, "out": out[place][3]}
            vertex = graph.addVertex(compute_set, Sum, fields, tile=place % 4)
            graph.setPerfEstimate(vertex, 9)
        steps.add(program.Execute(compute_set))
        values = out
    return graph, steps


@pytest.mark.parametrize("ipus", [1, 2])
def test_layers_alike_have_the_profile_that_each_has_by_itself(
    ipus: int, lowered: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    graph, steps = layers(ipus, 4)
    profile = poplar.Engine(graph, steps).getGraphProfile()
    assert len(lowered) <= len(graph.compute_sets) // 2
    alone(monkeypatch)
    assert profile == poplar.Engine(graph, steps).getGraphProfile()


@pytest.mark.parametrize(
    ("tile", "vertex", "begin", "times"),
    [(2, 0, 0, 1), (3, 0, 0, 2), (2, 1, 0, 2), (2, 0, 1, 2)],
    ids=["alike", "data on another tile", "vertex on another tile", "other elements"],
)
def test_one_tile_or_element_makes_compute_sets_differ(
    tile: int, vertex: int, begin: int, times: int, lowered: list[str]
) -> None:
    graph, steps = Graph(TARGETS["tiny"]), program.Sequence()
    for name, at, on, first in (("a", 2, 0, 0), ("b", tile, vertex, begin)):
        data, out = (
            graph.addVariable(FLOAT, [8], name),
            graph.addVariable(FLOAT, [1], f"{name}/out"),
        )
        graph.setTileMapping(data, at)
        graph.setTileMapping(out, 0)
        compute_set = graph.addComputeSet(f"{name}/sum")
        fields = {"in": data[first : first + 4], "out": out[0]}
        graph.setPerfEstimate(graph.addVertex(compute_set, Sum, fields, tile=on), 9)
        steps.add(program.Execute(compute_set))
    exchanged = [
        row["name"]
        for row in poplar.Engine(graph, steps).getGraphProfile()["programs"]
        if row["type"] == "DoExchange" and row["name"][:2] in ("a/", "b/")
    ]
    assert len(lowered) == times
    assert "b/sum/ExchangePre" in exchanged


@settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.composite(lambda draw: Drawn(draw))())
def test_a_random_program_has_the_profile_that_it_has_without_reuse(drawn: Drawn) -> None:
    programs = [pair.program for pair in drawn.programs]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "0")
        profile = poplar.Engine(drawn.whole, programs, drawn.options).getGraphProfile()
        alone(patch)
        assert profile == poplar.Engine(drawn.whole, programs, drawn.options).getGraphProfile()
