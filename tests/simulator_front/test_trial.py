"""A graph, a program and values, as the examples of the libraries have them."""

from __future__ import annotations

import pytest

from simulator import poplar, popops
from simulator.poplar import Type
from simulator.trial import Trial


@pytest.mark.parametrize(
    ("values", "kind"),
    [([1, 2], poplar.INT), ([True], poplar.BOOL), ([1.5], poplar.FLOAT)],
)
def test_a_tensor_has_the_type_of_its_values(values: list[object], kind: Type) -> None:
    trial = Trial()
    tensor = trial.tensor(values)
    assert (tensor.dtype, trial.values(tensor)) == (kind, values)


def test_a_tensor_may_have_another_type() -> None:
    trial = Trial()
    assert trial.values(trial.tensor([0.5, 0.1], poplar.HALF)) == [0.5, 0.0999755859375]


def test_a_tensor_of_the_program_gets_values() -> None:
    trial = Trial()
    tensor = trial.graph.addVariable(poplar.INT, [2], "mine")
    trial.graph.setTileMapping(tensor, 3)
    assert trial.values(trial.write(tensor, [5, 6])) == [5, 6]


def test_each_run_begins_with_the_values_and_several_tensors_are_a_list() -> None:
    trial = Trial()
    a, b = trial.tensor([1.0]), trial.tensor([10.0])
    popops.addInPlace(trial.graph, a, b, trial.prog)
    assert [trial.values(a), trial.values(a, b)] == [[11.0], [[11.0], [10.0]]]
