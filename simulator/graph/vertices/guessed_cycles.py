"""How long a user's vertex takes that has no estimate: a guess from its `compute` in Python."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Sequence

import numpy as np

from simulator.graph.types import IntArray
from simulator.graph.vertices.vertex import Vertex

START = 20  # cycles of a worker to begin and to end: a guess
MOVED = 2  # cycles of an element to be loaded and stored: a guess
OPERATIONS = (ast.BinOp, ast.UnaryOp, ast.AugAssign, ast.Compare, ast.BoolOp, ast.Call)


def operations_of(vertex: type[Vertex]) -> int:
    """Count the operations that the source of `compute` names, at least 1; 1 without a source."""
    try:
        source = textwrap.dedent(inspect.getsource(vertex.compute))
        nodes = ast.walk(ast.parse(source))
    except (OSError, TypeError, SyntaxError):
        return 1
    return max(sum(isinstance(node, OPERATIONS) for node in nodes), 1)


def guessed_cycles(vertex: type[Vertex], sizes: Sequence[IntArray]) -> IntArray:
    """Return 20 + (2 + the operations of `compute`) cycles for each element of the longest field.

    `sizes` are the elements of each field, vertex by vertex.
    """
    longest = np.max(np.stack(sizes), axis=0) if sizes else np.zeros(1, np.int64)
    cycles: IntArray = START + (MOVED + operations_of(vertex)) * longest
    return cycles
