"""The product of a chain of matrices, ((m1 * m2) * m3), spread linearly over the tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simulator import poplar, poplin, poputil
from simulator.examples.application import describe_application
from simulator.graph.types import Array

SHAPES = ((800, 500), (500, 400), (400, 200))


@dataclass(frozen=True, slots=True)
class Result:
    """The product, its largest error relative to NumPy's, and the report's directory."""

    product: Array
    error: float
    report: Path | None


def parse_shapes(texts: Sequence[str]) -> list[tuple[int, int]]:
    """Read shapes such as 800x500; each must have as many rows as the one before has columns."""
    shapes = [_parse_shape(text) for text in texts]
    if len(shapes) < 2:
        raise poplar.PoplarError(f"shapes {' '.join(texts)}: a chain needs at least two matrices")
    for before, after, text in zip(shapes[:-1], shapes[1:], texts[1:], strict=True):
        if before[1] != after[0]:
            raise poplar.PoplarError(
                f"shape {text}: has {after[0]} rows after a matrix of {before[1]} columns"
            )
    return shapes


def _parse_shape(text: str) -> tuple[int, int]:
    rows, _, columns = text.partition("x")
    if not (rows.isdigit() and columns.isdigit() and int(rows) and int(columns)):
        raise poplar.PoplarError(f"shape {text!r}: rows x columns is needed, such as 800x500")
    return int(rows), int(columns)


def build(graph: poplar.Graph, shapes: Sequence[tuple[int, int]]) -> poplar.program.Sequence:
    """Add the matrices m1, m2, ... and the program that multiplies them; read it as `product`."""
    matrices = []
    for index, shape in enumerate(shapes, start=1):
        matrix = graph.addVariable(poplar.FLOAT, shape, f"m{index}")
        poputil.mapTensorLinearly(graph, matrix)
        graph.createHostWrite(f"m{index}", matrix)
        matrices.append(matrix)
    program = poplar.program.Sequence()
    product = matrices[0]
    for index, matrix in enumerate(matrices[1:], start=1):
        product = poplin.matMul(graph, product, matrix, program, f"MatMul{index}")
    graph.createHostRead("product", product)
    return program


def run(
    shapes: Sequence[tuple[int, int]] = SHAPES,
    *,
    target: str = "mk2",
    out: Path | None = None,
    compile_ipu_code: bool = False,
    seed: int = 1,
) -> Result:
    """Multiply random matrices; write a report to `out` when given."""
    device = poplar.IPUModel(target, compileIPUCode=compile_ipu_code).createDevice()
    graph = poplar.Graph(device.getTarget())
    program = build(graph, shapes)
    options = {} if out is None else {"autoReport.all": True, "autoReport.directory": str(out)}
    engine = poplar.Engine(graph, program, options)
    engine.load(device)
    generator = np.random.default_rng(seed)
    values = [generator.standard_normal(shape).astype(np.float32) for shape in shapes]
    for index, value in enumerate(values, start=1):
        engine.writeTensor(f"m{index}", value)
    engine.run(0)
    product = engine.readTensor("product")
    expected = values[0].astype(np.float64)
    for value in values[1:]:
        expected = expected @ value
    error = float(np.abs(product - expected).max() / np.abs(expected).max())
    if out is not None:
        facts = {"application": "matmul_chain", "shapes": [list(shape) for shape in shapes]}
        describe_application(engine.reportDirectory, facts)
    return Result(product, error, None if out is None else engine.reportDirectory)
