"""The programs of PopLibs' tools/matrix_solver.cpp: Cholesky factors and triangular systems.

Nothing is written or read by the host: the tool ran with `--ignore-data`.
"""

from __future__ import annotations

import numpy as np

from benchmarks.poplibs_programs import Programs, number, type_of
from benchmarks.poplibs_table import Parameters
from simulator.codelets.products.triangular import solve_cycles
from simulator.graph.graph import Graph
from simulator.graph.program import Sequence
from simulator.graph.types import HALF, Type
from simulator.poplibs import poplin


def cholesky(graph: Graph, given: Parameters) -> Programs:
    """Add factors of matrices [batches, n, n], in place."""
    rows, dtype, lower = number(given["a-rank"]), type_of(given), _flag(given, "lower")
    shape = [number(given.get("batches", "1")), rows, rows]
    options, prog = {"blockSize": given["block-size"]}, Sequence()
    matrices = poplin.createCholeskyInput(graph, dtype, shape, lower, "", options)
    poplin.choleskyInPlace(graph, matrices, lower, prog, "", options)
    _invert_as_published(graph, dtype, lower=lower)
    return Programs([prog])


def _invert_as_published(graph: Graph, dtype: Type, *, lower: bool) -> None:
    """Let an inverse take what it took in the published run, whose vertex one worker ran.

    Source: PopLibs lib/poplin/poplinCycleEstimators.cpp at 3a650a11^, TriangularInverse, whose
    `lower` is that of the factor. Later versions, and the simulator, share the columns of an
    inverse among all workers.
    """
    for group in graph.vertex_groups():
        if group.codelet.name.startswith("poplin::TriangularInverse"):
            n = group.parameters["dim"]
            if dtype == HALF:
                rest = 387 * n**2 // 2 + 272 * n - 120 if lower else 123 * n**2 + 269 * n - 24
                cycles = 7 * n**3 + rest
            else:
                rest = 264 * n**2 + 78 * n - 120 if lower else 51 * n**2 + 213 * n + 12
                cycles = 6 * n**3 + rest
            # The first columns stand for a matrix; those on one tile had a worker each.
            first = group.parameters["colBegin"] == 0
            beside = np.bincount(group.tile[first], minlength=graph.target.num_tiles)[group.tile]
            shared = cycles * graph.target.workers // np.maximum(beside, 1)
            group.cycles[:] = np.where(first, shared, 0)


def triangular_solve(graph: Graph, given: Parameters) -> Programs:
    """Add systems of lower matrices with ones on their diagonals, as the tool has them."""
    batches, rows, columns = (
        number(given.get(name, "1")) for name in ("batches", "a-rank", "b-rank")
    )
    dtype, left = type_of(given), _flag(given, "left-side")
    options, prog = {"blockSize": given["block-size"]}, Sequence()
    a_shape = [batches, rows, rows]
    b_shape = [batches, rows, columns] if left else [batches, columns, rows]
    shapes = (dtype, dtype, a_shape, b_shape, left)
    a = poplin.createTriangularSolveInputLHS(graph, *shapes, "", options)
    b = poplin.createTriangularSolveInputRHS(graph, *shapes, "", options)
    poplin.triangularSolve(graph, a, b, left, True, True, prog, "", options)
    _solve_as_published(graph, dtype, lower=left)
    return Programs([prog])


def _solve_as_published(graph: Graph, dtype: Type, *, lower: bool) -> None:
    """Let a vertex that solves a block take what it took in the published run, on one worker.

    Source: the same file, TriangularSolve, whose formula the simulator has as well.
    """
    for group in graph.vertex_groups():
        if group.codelet.name.startswith("poplin::TriangularSolveMultiWorker"):
            rows = group.fields["x"].counts()
            group.cycles[:] = solve_cycles(rows, dtype, lower) * graph.target.workers


def _flag(given: Parameters, name: str) -> bool:
    return given.get(name, "true") == "true"
