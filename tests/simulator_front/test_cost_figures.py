"""Formulas of the cost table against published figures and figures worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simulator.codelets.elementwise import cycles as elementwise_cycles
from simulator.codelets.elementwise import operator_cycles, ternary
from simulator.codelets.indexing import cycles as indexing_cycles
from simulator.codelets.layers import loss_cycles, nonlinearity_cycles
from simulator.codelets.products import convolution_cycles, reduction, transpose_cycles
from simulator.codelets.products.convolution import row_worklists
from simulator.codelets.random import cycles as random_cycles
from simulator.codelets.system import copies
from simulator.graph.machine.target import TARGETS
from simulator.graph.types import BOOL, CHAR, FLOAT, HALF, INT, LONGLONG, UNSIGNED_INT

MK1 = TARGETS["mk1"]


def n(*values: int) -> Any:
    return np.array(values, np.int64)


def one(cycles: Any) -> int:
    """Return the cycles of the only vertex."""
    assert len(cycles) == 1
    return int(cycles[0])


# What the user guide's sample and tutorial 7 print.


def test_seeds_of_the_guides_sample() -> None:
    assert one(random_cycles.set_seed_2019(n(0), MK1)) == 146
    assert random_cycles.set_seed_2019(np.arange(1216), MK1).sum() == 177_536


def test_convolutions_of_the_guides_sample() -> None:
    found = convolution_cycles.conv_cycles(MK1, FLOAT, n(8, 6), n(16, 16), n(8, 8))
    assert found.tolist() == [999, 931]
    assert 98 * (3 * found[0] + found[1]) == 384_944


def test_nonlinearities_of_the_guides_sample() -> None:
    forward = nonlinearity_cycles.nonlinearity_1d(n(8, 20), "SIGMOID", FLOAT, MK1)
    backward = nonlinearity_cycles.gradient_1d(n(8, 20), "SIGMOID", FLOAT, MK1)
    assert 60 * forward[0] + 8 * forward[1] == 15_780
    assert 60 * backward[0] + 8 * backward[1] == 14_628


def test_the_end_of_the_classifier_of_the_guides_sample() -> None:
    assert 16 * one(loss_cycles.class_gather(n(10))) == 1_056
    assert 8 * one(loss_cycles.sum_squared(n(20))) == 792
    assert one(loss_cycles.accuracy(n(16))) == 78


def test_small_reductions_of_the_guides_sample() -> None:
    assert reduction.scalar_reduce_2019(n(1, 5), FLOAT).tolist() == [32, 32]
    assert 112 * 32 == 3_584


def test_small_copies_of_the_guides_sample_and_of_tutorial_7() -> None:
    assert copies.short_copy(n(4, 64, 128)).tolist() == [72, 72, 72]
    assert 73 * 72 == 5_256 and 63 * 72 == 4_536
    assert one(copies.zero(n(4))) == 15 and 2 * one(copies.zero_64(n(8))) == 26


def test_dot_products_of_tutorial_7() -> None:
    # The busiest tile has 42 segments of 200 and 9 rows of 5 partial sums.
    segment, row = convolution_cycles.tutorial_dot(n(200, 5)).tolist()
    assert 7 * 6 * segment == 4_410 and 2 * 6 * row == 96


# Operators; ADD takes 1 cycle a vector, DIVIDE 10 a pair of floats, EXPONENT 6.


@pytest.mark.parametrize(
    ("operation", "dtype", "count", "in_place", "cycles"),
    [
        ("ADD", FLOAT, 120, False, 6 * (29 + 10 * 3) + 11),
        ("ADD", HALF, 120, False, 6 * (26 + 5 * 3) + 11),
        ("ADD", FLOAT, 24, True, 6 * (58 + 2 * 3) + 11),
        ("ADD", INT, 12, False, 6 * (26 + 2 * 7) + 11),
        ("DIVIDE", FLOAT, 24, False, 6 * (29 + 2 * 10) + 11),
        ("DIVIDE", INT, 6, False, 6 * (26 + 277) + 11),
        ("LESS_THAN", HALF, 24, False, 6 * (26 + 9) + 11),
        ("MAXIMUM", HALF, 25, False, 6 * (26 + 2 * 4) + 11),
        ("POWER", FLOAT, 6, False, 6 * (29 + 312) + 11),
    ],
)
def test_binary_operators(
    operation: str, dtype: Any, count: int, in_place: bool, cycles: int
) -> None:
    assert one(operator_cycles.binary_1d(n(count), operation, dtype, MK1, in_place)) == cycles


def test_binary_operators_over_regions() -> None:
    regions = (n(3, 4), n(2), "ADD", FLOAT, MK1)
    assert one(operator_cycles.binary_2d(*regions, False)) == 5 + 6 + 6
    assert one(operator_cycles.binary_2d(*regions, True)) == 20 + 6 + 6


@pytest.mark.parametrize(
    ("operation", "dtype", "count", "in_place", "cycles"),
    [
        ("EXPONENT", FLOAT, 24, False, 6 * (33 + 12) + 20),
        ("SQUARE", FLOAT, 24, False, 6 * (17 + 4) + 20),
        ("SQUARE", FLOAT, 24, True, 6 * (55 + 4) + 20),
        ("TANH", HALF, 24, False, 6 * (17 + 4) + 20),
        ("ABSOLUTE", FLOAT, 24, False, 6 * (17 + 4 * 5) + 20),
        ("SIN", FLOAT, 6, False, 6 * (17 + 2304) + 20),
    ],
)
def test_unary_operators(
    operation: str, dtype: Any, count: int, in_place: bool, cycles: int
) -> None:
    assert one(operator_cycles.unary_1d(n(count), operation, dtype, MK1, in_place)) == cycles


def test_unary_loops_multiply_before_they_divide() -> None:
    # 4 floats of 2 + 4 cycles a pair: 6 * 5 // 2 = 15 and not 12; 3 floats 6 * 4 // 2 = 12.
    found = operator_cycles.unary_loop(n(3, 4), "CEIL", FLOAT, MK1, False)
    assert found.tolist() == [12, 15]
    # An unrolled loop rounds up first.
    assert operator_cycles.unary_loop(n(3, 4), "SQUARE", FLOAT, MK1, False).tolist() == [4, 4]


def test_operators_with_one_number() -> None:
    assert one(operator_cycles.broadcast_1d(n(120), "ADD", FLOAT, MK1)) == 6 * (20 + 10 * 2) + 11
    assert one(operator_cycles.broadcast_1d(n(24), "DIVIDE", FLOAT, MK1)) == 6 * (20 + 12) + 11
    regions = (n(3, 4), n(2), "ADD", FLOAT, MK1)
    assert one(operator_cycles.broadcast_2d(*regions)) == 20 + 2 * (2 * 2 + 28)


# Scaled addition: 57 or 63 of the supervisor, 19 + 6 + 3 a further vector of each worker.


def test_scaled_addition_of_floats() -> None:
    found = elementwise_cycles.scaled_add_1d(n(48, 49, 4), FLOAT, MK1)
    assert found.tolist() == [57 + 6 * 34, 63 + 6 * 42, 57 + 6 * 19]


def test_vectors_left_over_by_scaled_addition_are_never_charged() -> None:
    # 24 to 29 pairs: up to five workers have a fifth pair, as the source does not see.
    found = elementwise_cycles.scaled_add_1d(n(48, 50, 58, 60), FLOAT, MK1)
    assert found.tolist() == [261, 261, 261, 57 + 6 * 37]


def test_scaled_addition_of_halves_has_tails_of_5_12_and_18() -> None:
    found = elementwise_cycles.scaled_add_1d(n(24, 25, 26, 27), HALF, MK1)
    assert found.tolist() == [57 + 6 * 25, 63 + 6 * 30, 63 + 6 * 37, 63 + 6 * 43]


def test_scaled_addition_of_2019_gives_the_figures_of_the_guides_sample() -> None:
    # Weights of layer 1: 294 vertices of 64 and 98 of 48; 64 and 8 outputs of the biases.
    cycles = elementwise_cycles.scaled_add_1d_2019(n(64, 48, 8, 32), FLOAT, MK1)
    assert cycles.tolist() == [84 + 6 * 41, 78 + 6 * 31, 84 + 6 * 27, 84 + 6 * 35]
    assert cycles @ n(294, 98, 60 + 4, 4) == 139_812
    # 300 weights of layer 3 in 45 regions of 39 vertices: 9 + 11 + 5 + n.
    lengths = n(*[6] * 30, *[8] * 15)
    ranges = n(*[1] * 33, *[2] * 6)
    assert elementwise_cycles.scaled_add_2d_2019(lengths, ranges, FLOAT, MK1).sum() == 1371


def test_tails_of_scaled_addition_of_2019() -> None:
    # Halves: 25, 26, 27, 28 leave 1 to 4 to a worker: 5, 12, 18, 12. Of 32 floats the tail falls to
    # a seventh worker, which the source counts, of 34 to an eighth, which it does not.
    halves = elementwise_cycles.scaled_add_1d_2019(n(24, 25, 26, 27, 28), HALF, MK1)
    assert halves.tolist() == [78 + 6 * 25] + [84 + 6 * (25 + t) for t in (5, 12, 18, 12)]
    floats = elementwise_cycles.scaled_add_1d_2019(n(30, 32, 34), FLOAT, MK1)
    assert floats.tolist() == [78 + 6 * 27, 84 + 6 * 35, 84 + 6 * 26]
    by_tensor = elementwise_cycles.scaled_add_1d_2019(n(30), FLOAT, MK1, constant=False)
    assert by_tensor == floats[0] + 1
    odd = elementwise_cycles.scaled_add_2d_2019(n(5, 1), n(2), FLOAT, MK1)
    assert one(odd) == 9 + (11 + 5 + 4 + 7) + (11 + 7)


def test_forms_of_scaled_addition() -> None:
    def extra(count: int, **form: bool) -> int:
        return one(elementwise_cycles.scaled_add_1d(n(count), FLOAT, MK1, **form))

    assert extra(48, subtract=True) - extra(48) == 7
    assert extra(48, axpby=True) - extra(48) == 12
    assert extra(48, scaled_pointers=True) - extra(48) == 6
    assert extra(192, memory_constrained=True) == 57 + 6 * (19 + 6 + 15)  # 16 pairs: 1 cycle
    assert extra(180, memory_constrained=True) == 57 + 6 * (19 + 6 + 28)  # 15 pairs: 2 cycles


def test_scaled_addition_over_regions() -> None:
    # Regions of 5 and 1 floats: two pairs and a tail; a tail.
    found = elementwise_cycles.scaled_add_2d(n(5, 1), n(2), FLOAT, MK1)
    assert one(found) == 10 + (15 + 5 + 6 + 7) + (15 + 7)


@pytest.mark.parametrize(
    ("dtype", "counts", "cycles"),
    [
        (FLOAT, (1, 7, 8), [24, 27, 27]),
        (HALF, (1, 2, 3, 8), [15, 21, 26, 28]),
        (CHAR, (63, 64), [43, 47]),
        (LONGLONG, (10,), [15]),
    ],
)
def test_fills(dtype: Any, counts: tuple[int, ...], cycles: list[int]) -> None:
    assert elementwise_cycles.fill_1d(n(*counts), dtype, MK1).tolist() == cycles


def test_fills_of_regions_are_called_for_less() -> None:
    assert one(elementwise_cycles.fill_2d(n(4, 4), n(2), FLOAT, MK1)) == 6 + 2 * (25 - 3)
    assert one(elementwise_cycles.fill_2d(n(8), n(1), HALF, MK1)) == 5 + 28 - 2


def test_cores_of_casts() -> None:
    def core(count: int, source: Any, destination: Any) -> int:
        return one(elementwise_cycles.cast_core(n(count), source, destination, MK1))

    assert core(7, FLOAT, HALF) == 19 + 2 * 1 + 2 + 2 * 2  # a vector of 4; 3 left are two bits
    assert core(7, HALF, FLOAT) == 19 + 1 * 3 + 1 + 2  # vectors of 2; 1 left
    assert core(10, INT, FLOAT) == 19 + 20
    assert core(10, INT, LONGLONG) == 53 and core(10, UNSIGNED_INT, LONGLONG) == 43


def test_casts() -> None:
    types = (FLOAT, HALF, MK1)
    assert one(elementwise_cycles.cast_1d(n(42), *types)) == 12 + 6 * (18 + 27)
    assert one(elementwise_cycles.cast_1d_single_worker(n(7), *types)) == 5 + 27
    assert one(elementwise_cycles.cast_2d(n(7, 8), n(2), *types)) == 5 + (11 + 27) + (11 + 25)


# Reductions.


def test_general_reductions() -> None:
    def cost(outs: int, operation: str, dtype: Any = FLOAT, update: bool = False) -> int:
        args = (n(outs), n(1), n(10), dtype, update)
        return one(reduction.general_reduce_cycles(*args, operation=operation))

    # 16 + 6 + 2 + 2 * log2(4); a pass of 5 + 5 + 1, a piece of 10, partials of 6 + 3.
    assert cost(4, "ADD") == 28 + 11 + 10 + 90
    assert cost(4, "ADD", update=True) == 28 + 13 + 10 + 90
    assert cost(5, "ADD") == cost(4, "ADD") + (4 + 3) + 10 + 60
    # Half as wide without accumulators: two passes of 3 + 4 + 1, partials of 3 + 3.
    assert cost(4, "MAX") == 26 + 2 * (8 + 10 + 60)
    assert cost(2, "LOGICAL_AND", BOOL) == 8 + 22 + 25 * 20


def test_a_whole_general_reduction_starts_with_33() -> None:
    found = reduction.general_reduce(n(4, 4), n(1, 1), n(10, 10), n(2), FLOAT)
    assert one(found) == 33 + 2 * 139


def test_reductions_to_one_number() -> None:
    assert reduction.scalar_reduce_cycles(n(8, 9), FLOAT).tolist() == [21, 22]
    assert reduction.scalar_reduce_cycles(n(16), HALF, HALF).tolist() == [26]
    assert reduction.scalar_reduce_cycles(n(9), FLOAT, operation="MAX").tolist() == [17 + 4 + 1]
    assert one(reduction.continuous_reduce(n(3), n(5), FLOAT)) == 17 + 3 * 14 + 2


def test_strided_reductions() -> None:
    def cost(dtype: Any, to: Any, **form: Any) -> int:
        return one(reduction.strided_reduce_cycles(n(4), n(3), dtype, to, **form))

    assert cost(FLOAT, FLOAT) == 16 + 2 * (3 + 5 + 3 + 2)
    assert cost(FLOAT, FLOAT, operation="MAX") == 16 + 2 * (3 + 4 + 3 + 2)
    assert cost(FLOAT, FLOAT, update=True) == 16 + 2 * (3 + 8 + 3 + 2)
    assert cost(HALF, HALF) == 16 + (3 + 8 + 3 + 2) and cost(HALF, FLOAT) == 16 + (3 + 7 + 3 + 2)
    assert cost(FLOAT, FLOAT, operation="LOG_ADD") == 16 + 2 * (3 + 4 + 3 + 23 * 2)


def test_additions_of_partial_results() -> None:
    found = reduction.reduce_add(n(48, 50), n(4, 4), FLOAT, MK1)
    assert found.tolist() == [6 * (32 + 2 * 19), 6 * (32 + 2 * 19 + 21)]
    single = [
        one(reduction.reduce_add_single_input(n(48), n(4), FLOAT, MK1, step)) for step in (2, 1)
    ]
    assert single == [33 + 6 * (20 + 16 * 2), 33 + 6 * (20 + 12 * 2)]


# Convolutions.


def test_the_matrix_unit_of_2021() -> None:
    # 8 positions: 2 a worker or 1. Zeroing 46 + 2 + 8 = 56 and 53: 336; two groups of outputs.
    sizes = (n(8), n(1), n(1), n(2))
    found = one(convolution_cycles.conv_1x1(*sizes, FLOAT, FLOAT, MK1))
    assert found == 50 + 12 + 10 + 1 + 2 * (19 + 7 + 32 + 336)
    # Each further group of inputs: not zeroing, the fastest worker 47 * 6 + 14 = 296.
    sizes = (n(8), n(1), n(2), n(2))
    more = one(convolution_cycles.conv_1x1(*sizes, FLOAT, FLOAT, MK1))
    assert more - found == 15 + 1 + 2 * (19 + 6 + 32 + 296)
    # Halves into floats keep state, 10 cycles of the first pass and 2 of the second: 40 + 2 - 10
    # to zero, 40 + 4 - 10 to add, each 6 times, as 31 a worker with one and 14 are less.
    found = one(convolution_cycles.conv_1x1(n(12), n(1), n(2), n(1), HALF, FLOAT, MK1))
    passes = 16 + 19 + 6 + 32 + 6 * 34 + 14, 11 + 19 + 7 + 32 + 6 * 32 + 14
    assert found == 50 + 6 * (10 + 2) + 12 + sum(passes)


def test_convolutions_with_a_kernel() -> None:
    # 12 positions, 3 kernel steps: a worker 17 + 33 - 6 = 44, the pass 6 * 44 + 9; loads 32.
    inner = 14 + 3 * (17 - 5 + 32 + 15 + 3 + 273)
    zeroing = 19 + 6 * (5 + 8)
    found = convolution_cycles.conv_nx1(n(12), n(3), n(1), n(1), n(1), HALF, FLOAT, MK1)
    assert one(found) == 103 + 6 * 15 + zeroing + 16 + 14 + 14 + inner


def test_multiplications_and_additions_one_by_one() -> None:
    # One position a worker: 7 + 3 dot products of 4 floats, 11 each; zeroing 3 floats: 6 * 7.
    sizes = (n(6), n(1), n(4), n(3), n(1), n(1), n(1))
    found = convolution_cycles.conv_hmac(*sizes, FLOAT, FLOAT, MK1)
    assert one(found) == 58 + 6 * 9 + 42 + 23 + 15 + 10 + 6 * (16 + 16 + 19 + 7 + 33)
    # Vertically: 3 rows take 10 + 5 + 5 + 4; 24 partials are zeroed in 28, reduced in 10 + 19.
    found = convolution_cycles.conv_vmac(n(6), n(3), n(1), n(1), FLOAT, MK1)
    assert one(found) == 100 + 28 + 32 + 24 + 6 * (6 + 24) + 29
    # 9 positions, 2 rows of 4: a worker has one and a half, 4 and 2 products, for each.
    found = convolution_cycles.conv_vmac(n(9), n(4), n(1), n(1), FLOAT, MK1, rows=2)
    assert one(found) == 100 + 40 + 32 + 24 + 6 * (6 + 2 * (2 * 18 + 2 * 6)) + 38


def test_workers_share_rows_where_positions_are_over() -> None:
    values, counts = row_worklists(n(9, 6), n(2, 1), n(4, 3), 6)
    assert counts.tolist() == [6 * 2 * 2, 6]  # 9 positions: one and a half for each, of both rows
    assert values[:24, 3].sum() == 9 * 2 * 4
    assert values[24:].tolist() == [[out, 0, out, 3] for out in range(6)]


def test_narrow_kernels() -> None:
    # One position a worker, two sub-kernels: 17 + 10 + 3 + 2 passes of 12, 1 more to zero.
    found = convolution_cycles.conv_slic(n(6), n(2), n(1), 4, FLOAT, MK1)
    assert one(found) == 28 + (15 + 1) + (2 * 54 + 7) + 6 * 55 + 6 * 54
    # 8 rows of 7: a worker has one and a third, 10 positions in 2 rows; 2 passes of 15 - 1 each.
    found = convolution_cycles.conv_slic(n(56), n(1), n(1), 1, FLOAT, MK1, width=n(7))
    load = 16 + 21 + 10 * 6 + 20
    assert one(found) == 28 + (15 + 1) + (load + 1) + 6 * (17 + 2 * (14 + 2 * 14))
    # 8 positions a worker, in two rows of 4 at a stride of 2: 2 * (13 + 2 passes of 16), as above.
    found = convolution_cycles.conv_slic(n(48), n(1), n(1), 4, FLOAT, MK1, stride=2, width=n(4))
    assert one(found) == 28 + (15 + 1) + (54 + 1) + 6 * (17 + 2 * (14 + 2 * 16))


def test_dense_dot_products() -> None:
    assert convolution_cycles.dense_dot(n(10, 9), FLOAT, FLOAT).tolist() == [17, 25]
    assert convolution_cycles.dense_dot(n(8, 6), HALF, FLOAT).tolist() == [9, 13]
    assert convolution_cycles.dense_dot(n(8, 6), HALF, HALF).tolist() == [13, 18]


def test_transposes() -> None:
    def cost(count: int, rows: int, columns: int, dtype: Any = FLOAT) -> int:
        return one(transpose_cycles.transpose(n(count), n(rows), n(columns), dtype, MK1))

    assert cost(6, 2, 2) == 7 + 6 * 29
    assert cost(18, 2, 2) == 7 + 6 * (37 + 1 * 3)
    assert cost(18, 4, 4, HALF) == 7 + 6 * (37 + 1 * 4)
    assert cost(6, 8, 2) == 7 + 6 * (27 + 15 + 20 + 3 * 2)
    assert cost(6, 4, 6) == 7 + 6 * (29 + 18 + 2 * (12 + 3))


def test_transposes_of_2019() -> None:
    found = transpose_cycles.transpose_2d(n(2, 1), n(4, 3), n(6, 2), FLOAT, MK1)
    assert found.tolist() == [25 + 2 * (11 + 2 * 12), 13 + 8 + 2 * 11]


def test_transposes_of_one_worker_are_slow_beyond_the_strides_of_instructions() -> None:
    # 32 rows of 34: a step of 32 * 32 / 2 = 512 words is one too long; 32 rows of 32 have 480.
    found = transpose_cycles.transpose_2d(n(1, 1), n(32, 32), n(34, 32), FLOAT, MK1)
    assert found.tolist() == [13 + 8 + 34 * 69, 25 + 11 + 16 * (6 + 3 * 15)]
    found = transpose_cycles.transpose_2d(n(1, 1), n(8, 6), n(8, 8), HALF, MK1)
    assert found.tolist() == [39 + 12 + 2 * 15, 15 + 8 + 8 * (5 + 15)]


def test_other_nonlinearities_and_losses() -> None:
    assert one(nonlinearity_cycles.nonlinearity_1d(n(12), "RELU", FLOAT, MK1)) == 9 + 6 * (
        20 + 5 + 3
    )
    assert one(nonlinearity_cycles.nonlinearity_1d(n(13), "TANH", FLOAT, MK1)) == 9 + 6 * 43
    assert one(loss_cycles.cross_entropy(n(16))) == 20 + 9 * 16
    found = loss_cycles.class_gather_supervisor(n(10), n(2), MK1)
    assert one(found) == 9 + 6 * (30 + 3)


# Indexing.


def test_dynamic_slices() -> None:
    found = indexing_cycles.dynamic_slice_1d(n(24), n(3), FLOAT, MK1)
    assert one(found) == 25 + 6 * (39 + (24 + 2 * 2) * 3)
    found = indexing_cycles.dynamic_slice_1d(n(48), n(1), CHAR, MK1)
    assert one(found) == 25 + 6 * (76 + 72 + 2)
    found = indexing_cycles.dynamic_slice_2d(n(5, 8), n(2), n(3), FLOAT, MK1)
    assert one(found) == 27 + (29 + 3) * 3 + 13 + (29 + 4) * 3 + 13
    found = indexing_cycles.dynamic_slice_2d(n(5), n(1), n(3), HALF, MK1)
    assert one(found) == 27 + (31 + 4) * 3 + 13
    found = indexing_cycles.dynamic_update_2d(n(5), n(1), n(3), CHAR, MK1)
    assert one(found) == 27 + (50 + 46) * 3 + 13


def test_slices_by_many_offsets() -> None:
    found = (n(5), n(5))  # offsets, length
    assert one(indexing_cycles.multi_slice(*found, FLOAT, MK1)) == 6 * (16 + 5 * (19 + 9))
    assert one(indexing_cycles.multi_update(*found, FLOAT, MK1)) == 6 * (16 + 5 * (19 + 9))
    assert one(indexing_cycles.multi_slice(*found, HALF, MK1)) == 6 * (16 + 5 * (19 + 6))
    assert one(indexing_cycles.multi_slice(*found, CHAR, MK1)) == 6 * (16 + 5 * (19 + 9))


def test_additions_at_many_offsets() -> None:
    def cost(length: int, dtype: Any) -> int:
        return one(indexing_cycles.multi_update_add(n(2), n(length), dtype, MK1))

    assert cost(3, FLOAT) == 6 * (17 + 2 * (11 + 3 * 2))
    assert cost(4, HALF) == 6 * (18 + 2 * (12 + 3))
    assert cost(3, HALF) == 6 * (18 + 2 * (12 + 60))
    assert cost(3, INT) == 6 * (18 + 2 * (12 + 3 * 2))


def test_counting_choosing_and_sorting() -> None:
    assert indexing_cycles.one_hot(n(2), FLOAT).tolist() == [205]
    assert indexing_cycles.one_hot(n(2), HALF).tolist() == [11 + 148]
    assert one(ternary.select(n(3, 4), n(2), FLOAT, MK1)) == 5 + 21 + 26
    assert one(indexing_cycles.iota(n(3, 4), n(2), FLOAT, MK1)) == 10 + 2 * (4 + 3 * 2)
    found = indexing_cycles.heap_sort(n(1, 8, 9))
    assert found.tolist() == [8 * 8, 8 * (19 * 8 * 3 + 50), 8 * (19 * 9 * 3 + 56)]


# Random numbers: W = 6 workers.


def test_uniform_and_bernoulli_take_32_numbers_a_step() -> None:
    found = random_cycles.uniform(n(64, 100), FLOAT, MK1)
    assert found.tolist() == [4 + 11 + 132, 4 + 16 + 132 + 4]
    found = random_cycles.bernoulli(n(64, 100), INT, MK1)
    assert found.tolist() == [4 + 2 + 138, 4 + 4 + 138 + 1]


def test_normal_numbers() -> None:
    found = random_cycles.normal(n(10, 11), FLOAT, MK1)
    assert found.tolist() == [4 + 22 + 132, 4 + 24 + 132 + 3]
    assert random_cycles.normal(n(8, 9), HALF, MK1).tolist() == [4 + 11 + 144, 4 + 12 + 144 + 12]


def test_truncated_normal_numbers() -> None:
    found = random_cycles.truncated_normal(n(10, 11), 3, FLOAT, MK1)
    assert found.tolist() == [4 + 156 + 38 * 11 // 2, 4 + 156 + 38 * 6 + 41]


def test_dropout_and_todays_seed() -> None:
    found = random_cycles.dropout(n(10, 11), FLOAT, MK1)
    assert found.tolist() == [6 + 144 + 11, 6 + 144 + 12 + 1]
    assert one(random_cycles.set_seed(n(0), MK1)) == 14 + 27 * 6


def test_copies_move_8_bytes_a_cycle() -> None:
    assert one(copies.long_copy(n(2048))) == 40 + 256  # the sample's mean is 291
    assert one(copies.strided_copy(n(16), n(2))) == 40 + 2 + 24
