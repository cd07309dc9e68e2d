"""The products that factors, systems and fully connected layers multiply, to be planned ahead.

Source: PopLibs lib/poplin/Cholesky.cpp, TriangularSolve.cpp and FullyConnected.cpp. The products of
solves are those of PopLibs; ours are of the same shapes where blocks have no rows left over.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from simulator.codelets.costs import ceil_div
from simulator.graph.option_table import OptionFlags
from simulator.graph.types import Type, checked_shape
from simulator.logging import library_call
from simulator.poplibs.poplin.convolutions.preplanning import MatMulParams
from simulator.poplibs.poplin.factors.cholesky import BLOCK as FACTOR_BLOCK
from simulator.poplibs.poplin.factors.square import Options, block_size_of, check_square
from simulator.poplibs.poplin.factors.triangular_solve import BLOCK as SOLVE_BLOCK

Products = list[tuple[MatMulParams, OptionFlags]]


@library_call("POPLIN")
def getCholeskyMatMulPrePlanParameters(
    type: Type, shape: Sequence[int], lower: bool, options: Options = None
) -> Products:
    """List the products of `cholesky`: of what is below each block, and of what is behind it.

    >>> from simulator import poplar, poplin
    >>> products = poplin.getCholeskyMatMulPrePlanParameters(poplar.FLOAT, [16, 16], True)
    >>> [(product.aShape, product.bShape) for product, _ in products]
    [((1, 8, 8), (1, 8, 8))]
    """
    name = "getCholeskyMatMulPrePlanParameters"
    sizes = checked_shape(shape, name)
    check_square(sizes, name)
    size, rest = block_size_of(options, FACTOR_BLOCK, name)
    groups = prod(sizes[:-2])
    below = range(sizes[-1] - size, 0, -size)
    pairs = [
        ((groups, rows, size), (groups, size, columns))
        for rows in below
        for columns in (size, rows)
    ]
    return _products(type, pairs, rest)


@library_call("POPLIN")
def getTriangularSolveMatMulPrePlanParameters(
    inputType: Type,
    outputType: Type,
    aShape: Sequence[int],
    bShape: Sequence[int],
    leftSide: bool,
    lower: bool,
    options: Options = None,
) -> Products:
    """List the products of `triangularSolve`: of halves, down to a block, and of a block's rows.

    >>> from simulator import poplar, poplin
    >>> types, shapes = (poplar.FLOAT, poplar.FLOAT), ([128, 128], [128, 1])
    >>> products = poplin.getTriangularSolveMatMulPrePlanParameters(*types, *shapes, True, True)
    >>> [(product.aShape, product.bShape) for product, _ in products]
    [((1, 64, 64), (1, 64, 1))]
    """
    name = "getTriangularSolveMatMulPrePlanParameters"
    sizes = checked_shape(aShape, name)
    check_square(sizes, name)
    size, rest = block_size_of(options, SOLVE_BLOCK, name)
    groups, rows, columns = prod(sizes[:-2]), sizes[-1], bShape[-1 if leftSide else -2]
    padded, solved, pairs = size, columns, []
    while padded < rows:
        padded, solved = 2 * padded, ceil_div(solved, 2)
    half = padded // 2
    while half >= size:
        parts = {ceil_div(columns, 2), columns // 2} - {0}
        pairs += [((groups, half, half), (groups, half, part)) for part in sorted(parts)[::-1]]
        half //= 2
    if columns > 1:
        dots = range(1, size if rows > size else rows)
        pairs += [((groups, 1, k), (groups, k, solved)) for k in dots]
    return _products(inputType, pairs, rest)


def _products(
    dtype: Type, pairs: Sequence[tuple[tuple[int, ...], tuple[int, ...]]], options: Options
) -> Products:
    """Return each product once, with its options."""
    return [
        (MatMulParams(dtype, dtype, a, b), OptionFlags(options or {}))
        for a, b in dict.fromkeys(pairs)
    ]
