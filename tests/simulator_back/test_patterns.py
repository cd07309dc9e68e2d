"""Tensors whose intervals are held once for many of them are what they were by themselves."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator import poplar
from simulator.graph.geometry import patterns
from simulator.graph.geometry.patterns import Shifted
from simulator.graph.graph import Graph
from simulator.graph.machine.target import make_target
from simulator.graph.types import FLOAT
from simulator.popart.scheduling.stash import moved
from simulator.poplar import program
from simulator.poplibs.popops.reduction.regions import in_memory
from simulator.poplibs.popops.regions import in_memory_order
from simulator.poplibs.poputil import createBroadcastOperand
from simulator.poplibs.poputil.mapping_by_use import joint_broadcast_operand

TILES = 4


def with_few(few: int, run: Callable[[], Any]) -> Any:
    """Run where so many intervals are held by themselves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(patterns, "FEW", few)
        return run()


def drawn(seed: int) -> tuple[Graph, list[Any], list[Any]]:
    """Draw views of variables and of their clones; give them and what they are."""
    rng = np.random.default_rng(seed)
    graph, shape = Graph(make_target("tiny")), tuple(rng.integers(1, 5, 3).tolist())
    first = graph.addVariable(FLOAT, shape, "v")
    number = np.arange(first.numElements())
    graph.map_ranges(first, number, number + 1, rng.integers(0, TILES, len(number)))
    tensors = [first.taken(rng.permutation(shape[0]), 0)]
    known = [tensors[0].elements()]
    for _ in range(6):
        place, order = int(rng.integers(len(tensors))), rng.permutation(3)
        tensor, elements = tensors[place], known[place]
        match int(rng.integers(4)):
            case 0:
                tensor, elements = tensor.dimShuffle(order.tolist()), elements.transpose(order)
            case 1:
                again = (*elements.shape[:1], -1, 1)
                elements = elements.reshape(again)
                tensor = tensor.reshape(elements.shape)
            case 2:
                tensor, elements = tensor.slice(0, 1, 1), elements[:, :1]
            case 3:
                ranks = np.argsort(np.argsort(elements.reshape(-1))).reshape(elements.shape)
                tensor = graph.clone(tensor, f"clone{len(tensors)}")
                elements = ranks + int(tensor.elements().min())
        tensors.append(tensor)
        known.append(elements)
    return graph, tensors, known


@settings(deadline=None, max_examples=80)
@given(seed=st.integers(0, 1 << 32))
def test_views_of_patterns_have_the_elements_that_numpy_gives(seed: int) -> None:
    _, tensors, known = with_few(0, lambda: drawn(seed))
    for tensor, elements in zip(tensors, known, strict=True):
        np.testing.assert_array_equal(tensor.elements(), elements)
        assert tensor.extent() == (elements.min(), elements.max() + 1)
        assert not tensor.containsAliases()


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 1 << 32))
def test_clones_lie_on_the_same_tiles_in_both_forms(seed: int) -> None:
    def tiles() -> list[Any]:
        graph, tensors, _ = drawn(seed)
        return [graph.getTileMapping(tensor) for tensor in tensors]

    assert with_few(0, tiles) == with_few(1 << 10, tiles)


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 1 << 32))
def test_the_order_of_memory_is_the_same_in_both_forms(seed: int) -> None:
    def ordered() -> list[Any]:
        _, tensors, _ = drawn(seed)
        alike = [t for t in tensors if t.shape == tensors[-1].shape]
        rows = {f"{number}": ("input", tensor) for number, tensor in enumerate(alike)}
        found = in_memory_order(rows, f"{len(alike) - 1}")  # type: ignore[arg-type]
        return [tensor.elements().tolist() for _, tensor in found.values()]

    assert with_few(0, ordered) == with_few(1 << 10, ordered)


def turned(graph: Graph) -> Any:
    first = graph.addVariable(FLOAT, [60, 50], "v")
    graph.setTileMapping(first, 0)
    return first.taken(np.random.default_rng(1).permutation(60), 0).transpose()


def test_clones_and_what_calls_leave_share_their_intervals() -> None:
    graph = Graph(make_target("tiny"))
    one = graph.clone(turned(graph), "one")
    two, number = graph.clone(one, "two"), len(graph.variables) - 1
    left = moved(one, {number - 1: number})
    held = [t.places.pattern for t in (one, two, left) if isinstance(t.places, Shifted)]
    assert held[1:] == held[:2] and len(held) == 3
    np.testing.assert_array_equal(left.elements(), two.elements())


def test_a_kept_executable_has_its_patterns() -> None:
    device = poplar.IPUModel("tiny").createDevice()
    graph = Graph(device.getTarget())
    tensor = graph.clone(turned(graph), "clone")
    graph.createHostRead("out", tensor)
    graph.setInitialValue(tensor, np.arange(3000, dtype=np.float32).reshape(50, 60))
    stream = io.BytesIO()
    poplar.compileGraph(graph, [program.Sequence()]).serialize(stream)
    stream.seek(0)
    engine = poplar.Engine(poplar.Executable.deserialize(stream))
    engine.load(device)
    engine.run(0)
    out = np.zeros((50, 60), np.float32)
    engine.readTensor("out", out)
    np.testing.assert_array_equal(out.reshape(-1), np.arange(3000))


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 1 << 32))
def test_places_on_tiles_are_the_same_in_both_forms_and_twice(seed: int) -> None:
    def places() -> list[Any]:
        graph, tensors, _ = drawn(seed)
        found = []
        for tensor in [*tensors, *tensors]:
            memory, number = in_memory(graph, tensor.flatten())
            columns = (memory.values.elements(), memory.place, number, *graph.tile_ranges(tensor))
            found.append([column.tolist() for column in columns])
        return found

    assert with_few(0, places) == with_few(1 << 10, places)


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 1 << 32))
def test_a_joint_operand_is_that_of_the_tensors_together(seed: int) -> None:
    def tiles(joint: bool) -> list[list[tuple[int, int]]]:
        graph, tensors, _ = drawn(seed)
        parts = [tensor for tensor in tensors if tensor.shape == tensors[-1].shape]
        if joint:
            made = joint_broadcast_operand(graph, parts, FLOAT, 1, "sums")
        else:
            made = createBroadcastOperand(graph, poplar.concat(parts, 1), FLOAT, 1, True, "sums")
        return graph.getTileMapping(made)

    assert tiles(True) == tiles(False)


def test_what_lies_alike_elsewhere_is_not_taken_for_the_same() -> None:
    graph = Graph(make_target("tiny"))
    one = turned(graph)
    before = graph.getTileMapping(one)
    graph.setTileMapping(one, 2)
    assert [bool(part) for part in before] == [True, False, False, False]
    assert [bool(part) for part in graph.getTileMapping(one)] == [False, False, True, False]
