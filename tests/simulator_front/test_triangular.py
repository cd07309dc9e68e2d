"""Cholesky factors and triangular systems equal NumPy's, in blocks, batches and both triangles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_program import DeviceProgram

from simulator import poplin
from simulator.codelets.products import triangular
from simulator.graph.errors import InvalidOptionError, PoplarError
from simulator.graph.machine.target import TARGETS
from simulator.graph.types import FLOAT, HALF
from simulator.poplibs.poplin.factors.cholesky import block_tiles

RANDOM = np.random.default_rng(5)


def positive(*shape: int) -> Any:
    """Draw positive definite matrices [..., n, n]."""
    factors = RANDOM.standard_normal(shape)
    return factors @ factors.swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])


@pytest.mark.parametrize(
    ("shape", "size", "lower"),
    [((1, 1), 8, True), ((8, 8), 8, False), ((2, 20, 20), 8, True), ((2, 1, 9, 9), 2, False)],
)
def test_a_cholesky_factor_equals_numpys(
    tmp_path: Path, shape: tuple[int, ...], size: int, lower: bool
) -> None:
    run, matrix = DeviceProgram(), positive(*shape)
    out = poplin.cholesky(
        run.graph, run.tensor(matrix), lower, run.program, "net", {"blockSize": size}
    )
    found = run.run(out, report=tmp_path)[0]
    expected = np.linalg.cholesky(matrix)
    np.testing.assert_allclose(found, expected if lower else expected.swapaxes(-1, -2), atol=2e-5)


def test_halves_have_a_factor_too() -> None:
    run, matrix = DeviceProgram(), positive(6, 6)
    out = poplin.cholesky(run.graph, run.tensor(matrix, HALF), True, run.program)
    np.testing.assert_allclose(run.run(out)[0], np.linalg.cholesky(matrix), atol=2e-2)


@pytest.mark.parametrize(
    ("left", "lower", "unit"),
    [(True, True, False), (True, False, True), (False, True, True), (False, False, False)],
)
@pytest.mark.parametrize(("n", "k", "size"), [(8, 1, 64), (9, 1, 64), (5, 3, 64), (11, 3, 4)])
def test_a_triangular_system_is_solved(
    tmp_path: Path, n: int, k: int, size: int, left: bool, lower: bool, unit: bool
) -> None:
    run, matrix = DeviceProgram(4), RANDOM.standard_normal((2, n, n)) * 0.3 + 2 * np.eye(n)
    sides = RANDOM.standard_normal((2, n, k) if left else (2, k, n))
    tensors = run.tensor(matrix), run.tensor(sides)
    options = {"blockSize": size, "availableMemoryProportion": "0.5"}
    out = poplin.triangularSolve(
        run.graph, *tensors, left, lower, unit, run.program, "net", options
    )
    triangle = (np.tril if lower else np.triu)(matrix)
    if unit:
        triangle[:, range(n), range(n)] = 1
    report = tmp_path if (left, lower, unit) == (True, True, False) else None
    found = run.run(out, report=report)[0]
    product = triangle @ found if left else found @ triangle
    np.testing.assert_allclose(product, sides, atol=3e-5)


def test_created_operands_hold_their_values() -> None:
    run, matrix = DeviceProgram(), np.tril(RANDOM.standard_normal((20, 20)) + 4 * np.eye(20))
    shapes = (FLOAT, FLOAT, (20, 20), (20, 3), True, "net", {"blockSize": 8})
    a = run.give(poplin.createTriangularSolveInputLHS(run.graph, *shapes), matrix)
    sides = RANDOM.standard_normal((20, 3))
    b = run.give(poplin.createTriangularSolveInputRHS(run.graph, *shapes), sides)
    out = poplin.triangularSolve(
        run.graph, a, b, True, True, False, run.program, options={"blockSize": 8}
    )
    np.testing.assert_allclose(matrix @ run.run(out)[0], sides, atol=1e-4)


@pytest.mark.parametrize("unit", [False, True])
def test_a_mask_keeps_one_triangle(unit: bool) -> None:
    run, matrix = DeviceProgram(), RANDOM.standard_normal((2, 5, 5)).astype(np.float32)
    out = poplin.triangularMask(run.graph, run.tensor(matrix), False, unit, run.program)
    expected = np.triu(matrix, 1) + np.eye(5) if unit else np.triu(matrix)
    np.testing.assert_array_equal(run.run(out)[0], expected.astype(np.float32))


def test_blocks_of_a_factor_are_numbered_triangle_by_triangle() -> None:
    assert block_tiles(3, 8, 100).tolist() == [[0, 99, 2], [1, 2, 3], [3, 4, 2]]


def test_cycles_are_those_of_poplibs_estimators() -> None:
    n, mk1 = np.array([8]), TARGETS["mk1"]
    assert triangular.cholesky_cycles(n, FLOAT)[0] == 512 + 6528 + 808 + 102
    assert triangular.cholesky_cycles(n, HALF)[0] == 256 + 12720 + 764 + 426
    assert triangular.inverse_cycles(n, FLOAT)[0] == 3072 + 3264 + 1704 + 12
    assert triangular.inverse_cycles(n, HALF)[0] == 3584 + 7872 + 2152 - 24
    assert triangular.solve_cycles(n, FLOAT, True)[0] == 96 + 1440 - 126
    assert triangular.solve_cycles(n, HALF, False)[0] == 540 + 2178 + 12
    # two calls of six workers, each with a third of a row that remains
    assert triangular.solve_by_all_cycles(n, FLOAT, True, mk1)[0] == 12 * 74 + 44 + 18 + 21


@pytest.mark.parametrize(
    ("shape", "sides", "message"),
    [
        ([4, 3], [4, 1], r"net/triangularSolve: A is \[4, 3\]; square matrices"),
        ([4, 4], [3, 1], r"net/triangularSolve: B is \[3, 1\]; \[..., n, k\] is needed"),
        ([2, 4, 4], [4, 1], r"B is \[4, 1\]"),
    ],
)
def test_shapes_that_are_no_system_are_refused(
    shape: list[int], sides: list[int], message: str
) -> None:
    run = DeviceProgram()
    a, b = run.tensor(np.ones(shape)), run.tensor(np.ones(sides))
    with pytest.raises(PoplarError, match=message):
        poplin.triangularSolve(run.graph, a, b, True, True, False, run.program, "net")


def test_unknown_options_and_blocks_of_nothing_are_refused() -> None:
    run = DeviceProgram()
    a = run.tensor(np.eye(4))
    with pytest.raises(InvalidOptionError, match="did you mean blockSize"):
        poplin.cholesky(run.graph, a, True, run.program, "net", {"blocksize": 4})
    with pytest.raises(PoplarError, match="net/cholesky: blockSize is 0; at least 1"):
        poplin.cholesky(run.graph, a, True, run.program, "net", {"blockSize": 0})
