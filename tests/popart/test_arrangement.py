"""The host puts weights into the order of the device's memory, and back."""

from __future__ import annotations

import numpy as np
import pytest
from models import model, node, outcome, prepared, tiny

from simulator.graph.graph import Graph
from simulator.graph.tensors.tensor import concat
from simulator.graph.types import FLOAT
from simulator.runtime.arrangement import arranged, in_memory_order, restored


def test_arranged_values_go_up_in_memory_and_come_back() -> None:
    graph = Graph(tiny().target)
    turned = graph.addVariable(FLOAT, [2, 3], "a").transpose()  # elements 0 3 1 4 2 5
    values = np.float32([0, 3, 1, 4, 2, 5])
    assert arranged(turned, values).tolist() == [0, 1, 2, 3, 4, 5]
    assert restored(turned, arranged(turned, values)).tolist() == values.tolist()
    assert in_memory_order(turned).isContiguous()


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 0, 2)])
def test_several_values_are_arranged_one_by_one(order: tuple[int, ...]) -> None:
    graph = Graph(tiny().target)
    turned = graph.addVariable(FLOAT, [2, 3, 4], "a").dimShuffle(order)
    whole = np.arange(24, dtype=np.float32)  # each at its place in memory
    values = whole.reshape(2, 3, 4).transpose(order).reshape(-1)
    twice = np.concatenate([values, values + 24])
    assert arranged(turned, twice).tolist() == [*range(48)]
    assert restored(turned, arranged(turned, twice)).tolist() == twice.tolist()


def test_values_of_pieces_that_are_no_loops_are_arranged_too() -> None:
    graph = Graph(tiny().target)
    variable = graph.addVariable(FLOAT, [6], "a")
    pieces = concat([variable[4:6], variable[0:1], variable[1:4]])  # elements 4 5 0 1 2 3
    assert arranged(pieces, np.float32([4, 5, 0, 1, 2, 3])).tolist() == [0, 1, 2, 3, 4, 5]


def test_weights_of_a_convolution_return_as_they_were() -> None:
    weights = np.random.default_rng(2).normal(size=(8, 4, 3, 3)).astype(np.float32)
    proto = model([node("Conv", "x w", "y")], {"x": [1, 4, 6, 6]}, ["y"], {"w": weights})
    session = prepared(proto, ["y"])
    found = np.zeros_like(weights)
    session.weightsToHost()
    session.readWeights({"w": found})
    np.testing.assert_array_equal(found, weights)


def test_a_single_number_lies_as_its_reader_behind_a_view_wants_it() -> None:
    nodes = [node("Unsqueeze", "w", "row", axes=[0]), node("Gather", "row places", "y")]
    weights = {"w": np.float32(3), "places": np.int64([0, 0])}
    (found,) = outcome(model(nodes, {}, ["y"], weights), {}, "y")
    assert found.tolist() == [3, 3]
