"""Cycle formulas against figures that were published, or worked out by hand from the formula."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simulator.codelets.catalogue import source_of
from simulator.codelets.elementwise import vertices as elementwise
from simulator.codelets.elementwise.scaled_add import ScaledSum, scaled_sum
from simulator.codelets.layers import losses, nonlinearity
from simulator.codelets.products import convolution, convolution_cycles, reduction
from simulator.graph.errors import PoplarError
from simulator.graph.machine.target import TARGETS
from simulator.graph.types import FLOAT, HALF, INT

MK1 = TARGETS["mk1"]


def n(*values: int) -> Any:
    return np.array(values, np.int64)


def test_the_convolve_step_of_the_guides_sample_takes_999_and_931_cycles() -> None:
    # 8 and 6 rows, 16 images in two groups of 8, one group of 8 inputs.
    found = convolution_cycles.conv_cycles(MK1, FLOAT, n(8, 6), n(16, 16), n(8, 8))
    assert found.tolist() == [999, 931]
    assert 98 * (3 * found[0] + found[1]) == 384_944


def test_sigmoids_of_the_guides_sample_add_up() -> None:
    cycles = nonlinearity.nonlinearity("SIGMOID", FLOAT, MK1).cycles_1d(n(8, 20))
    assert 60 * cycles[0] + 8 * cycles[1] == 15_780


def test_sigmoid_gradients_of_the_guides_sample_add_up() -> None:
    cycles = nonlinearity.nonlinearity_gradient("SIGMOID", FLOAT, MK1).cycles_1d(n(8, 20))
    assert 60 * cycles[0] + 8 * cycles[1] == 14_628


def test_the_loss_of_the_guides_sample_adds_up() -> None:
    _, cycles = losses.sum_squared_transform(FLOAT)
    assert 8 * cycles(n(20))[0] == 792


def test_adding_floats_takes_three_cycles_a_pair_and_worker() -> None:
    # 120 floats: 20 a worker, 10 pairs of 1 + 2 cycles: 6 * (29 + 30) + 11.
    vertices = elementwise.binary("ADD", FLOAT, MK1, False)
    assert vertices.cycles_1d(n(120)).tolist() == [365]
    # Regions of 3 and 4 floats by one worker: 2 pairs each, 6 cycles each.
    assert vertices.region_2d(n(3, 4)).tolist() == [6, 6]


def test_halves_go_four_at_a_time() -> None:
    # 120 halves: 20 a worker, 5 vectors: 6 * (26 + 15) + 11; in place 6 * (58 + 15) + 11.
    assert elementwise.binary("ADD", HALF, MK1, False).cycles_1d(n(120)).tolist() == [257]
    assert elementwise.binary("ADD", HALF, MK1, True).cycles_1d(n(120)).tolist() == [449]


def test_integers_are_added_one_by_one() -> None:
    # 12 integers: 2 a worker, 7 cycles each: 6 * (26 + 14) + 11.
    assert elementwise.binary("ADD", INT, MK1, False).cycles_1d(n(12)).tolist() == [251]


def test_exponents_have_a_longer_start() -> None:
    # 24 floats: 4 a worker, 2 pairs of 6: 6 * (33 + 12) + 20; a square takes 6 * (17 + 4) + 20.
    assert elementwise.unary("EXPONENT", FLOAT, MK1, False).cycles_1d(n(24)).tolist() == [290]
    assert elementwise.unary("SQUARE", FLOAT, MK1, False).cycles_1d(n(24)).tolist() == [146]


def test_scaled_add_charges_supervisor_and_worker() -> None:
    # 48 floats: 24 pairs, 4 a worker. Supervisor 12+47+7+12 = 78, worker 15+6+6+2+1+1 = 31, of
    # which one cycle is the look for a tail. 49 floats have one: 84 and 31 + 8.
    found = scaled_sum(ScaledSum(True), FLOAT, MK1).cycles_1d(n(48, 49))
    assert found.tolist() == [78 + 6 * 31, 84 + 6 * 39]


def test_adding_partial_results_costs_by_rows_and_outputs() -> None:
    # 48 outputs of 4 rows: 12 loops of 19 cycles, two a worker: 6 * (32 + 38).
    # 50 outputs: 13 loops, one left over that is not a whole step: 6 * (32 + 38 + 21).
    found = reduction.reduce_add(n(48, 50), n(4), FLOAT, MK1)
    assert found.tolist() == [420, 546]
    # Halves out of halves: 20 cycles a loop of 8, 6 loops, one a worker.
    assert reduction.reduce_add(n(48), n(4), HALF, MK1, HALF).tolist() == [6 * (32 + 20)]


def test_reducing_to_one_number_reads_two_floats_a_cycle() -> None:
    assert reduction.scalar_reduce_cycles(n(8, 9), FLOAT).tolist() == [21, 22]


def test_worklists_share_the_positions_among_the_workers() -> None:
    lists = convolution.worklists(n(8), 6)[0]
    assert lists[:, 1].tolist() == [2, 2, 1, 1, 1, 1]
    assert lists[:, 0].tolist() == [0, 2, 4, 5, 6, 7]


def test_a_type_without_a_formula_is_refused() -> None:
    with pytest.raises(PoplarError, match="operation POWER on int: known for float, half"):
        elementwise.binary("POWER", INT, MK1, False)


def test_every_library_vertex_type_names_the_source_of_its_cost() -> None:
    codelets = [
        convolution.conv_codelet("poplin::ConvPartial1x1Out<float,float>", FLOAT, FLOAT, {}, ()),
        reduction.reduce_add_codelet(FLOAT),
        reduction.reduce_codelet("ADD", FLOAT, 2),
        elementwise.binary("ADD", FLOAT, MK1, True).several,
        elementwise.unary("SQUARE", FLOAT, MK1, False).one,
        scaled_sum(ScaledSum(True), FLOAT, MK1).one,
        nonlinearity.nonlinearity("RELU", FLOAT, MK1).one,
        elementwise.cast(FLOAT, HALF, MK1).one,
        losses.sum_squared_transform(FLOAT)[0],
    ]
    assert all(source_of(codelet.name).startswith("PopLibs") for codelet in codelets)
    assert source_of("SumVertex") == ""
