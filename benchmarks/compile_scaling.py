"""Measure how the time and memory of compiling grow with the number of vertices.

Each size is built and compiled in a process of its own, in two compute sets and in many. Goals:
time grows linearly from 10,000 to 1,000,000 vertices; the bulk call takes at most a twentieth of
the single call's time a vertex.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np

from simulator import poplar
from simulator.graph.graph import Graph
from simulator.graph.machine.target import make_target
from simulator.graph.vertices.vertex import Codelet, VertexGroup, cut_field
from simulator.poplar import FLOAT, program

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
MANY_SETS = (10_000, 30_000, 100_000, 300_000)  # vertices, in compute sets of 100
VERTICES_A_SET = 100
COLUMNS, ROWS_A_SUM = 16, 8
SINGLE = 20_000  # vertices that are added one by one


class RowVertex(poplar.Vertex):
    """A row times the vector, for the vertices that are added one by one."""

    row: Any = poplar.Input(poplar.Vector(FLOAT))
    vector: Any = poplar.Input(poplar.Vector(FLOAT))
    out: Any = poplar.Output(FLOAT)

    def compute(self) -> None:
        self.out[0] = self.row @ self.vector


def codelet(name: str) -> Codelet:
    """Make a vertex type that computes nothing."""
    return Codelet(name, lambda operands: {}, state_bytes=12)


def variables(graph: Graph, rows: int) -> dict[str, poplar.Tensor]:
    """Add a matrix, a vector and a column of results; only the vector is mapped."""
    tensors = {
        "row": graph.addVariable(FLOAT, [rows, COLUMNS], "matrix"),
        "vector": graph.addVariable(FLOAT, [COLUMNS], "vector"),
        "out": graph.addVariable(FLOAT, [rows], "out"),
    }
    graph.setTileMapping(tensors["vector"], 0)
    return tensors


def add_rows(graph: Graph, tensors: dict[str, poplar.Tensor], rows: int) -> program.Execute:
    """Add a vertex a row by the bulk call, and map its data beside it."""
    compute_set = graph.addComputeSet("rows")
    row = np.arange(rows, dtype=np.int64)
    tile = row * graph.target.num_tiles // rows
    low, high = row * COLUMNS, (row + 1) * COLUMNS
    graph.map_ranges(tensors["row"], low, high, tile)
    graph.map_ranges(tensors["out"], row, row + 1, tile)
    fields = {
        "row": cut_field("row", "input", tensors["row"], low, high),
        "vector": cut_field("vector", "input", tensors["vector"], 0 * row, 0 * row + COLUMNS),
        "out": cut_field("out", "output", tensors["out"], row, row + 1),
    }
    cycles = np.full(rows, 5 + COLUMNS // 2)
    graph.add_vertices(VertexGroup(compute_set.id, codelet("Row"), tile, fields, {}, cycles))
    return program.Execute(compute_set)


def add_sums(graph: Graph, values: poplar.Tensor) -> program.Execute:
    """Add a vertex for every eight values, which mostly lie on another tile."""
    compute_set = graph.addComputeSet("sums")
    count = values.numElements() // ROWS_A_SUM
    place = np.arange(count, dtype=np.int64)
    tile = (place + 1) % graph.target.num_tiles
    sums = graph.addVariable(FLOAT, [count], "sums")
    graph.map_ranges(sums, place, place + 1, tile)
    low = place * ROWS_A_SUM
    fields = {
        "in": cut_field("in", "input", values, low, low + ROWS_A_SUM),
        "out": cut_field("out", "output", sums, place, place + 1),
    }
    cycles = np.full(count, 5 + ROWS_A_SUM // 2)
    graph.add_vertices(VertexGroup(compute_set.id, codelet("Sum"), tile, fields, {}, cycles))
    return program.Execute(compute_set)


def two_sets(graph: Graph, vertices: int) -> program.Sequence:
    """Add the vertices in two compute sets."""
    rows = vertices * ROWS_A_SUM // (ROWS_A_SUM + 1)
    tensors = variables(graph, rows)
    return program.Sequence(add_rows(graph, tensors, rows), add_sums(graph, tensors["out"]))


def many_sets(graph: Graph, vertices: int) -> program.Sequence:
    """Add the vertices in compute sets of 100, each of which reads what the last one wrote."""
    steps = program.Sequence()
    place = np.arange(VERTICES_A_SET, dtype=np.int64)
    cycles, copy = np.full(VERTICES_A_SET, 10), codelet("Copy")
    last = graph.addVariable(FLOAT, [VERTICES_A_SET], "first")
    graph.map_ranges(last, place, place + 1, place)
    for number in range(vertices // VERTICES_A_SET):
        out, tile = graph.clone(last, f"out{number}"), (place + number) % graph.target.num_tiles
        graph.map_ranges(out, place, place + 1, tile)
        compute_set = graph.addComputeSet(f"copy{number}")
        fields = {
            "in": cut_field("in", "input", last, place, place + 1),
            "out": cut_field("out", "output", out, place, place + 1),
        }
        graph.add_vertices(VertexGroup(compute_set.id, copy, tile, fields, {}, cycles))
        steps.add(program.Execute(compute_set))
        last = out
    return steps


SHAPES = {"two": two_sets, "many": many_sets}


def measure(shape: str, vertices: int) -> tuple[float, float, int]:
    """Build and compile so many vertices; give both times in seconds and the peak memory."""
    begin = time.perf_counter()
    graph = Graph(make_target("mk2"))
    steps = SHAPES[shape](graph, vertices)
    built = time.perf_counter()
    poplar.Engine(graph, steps)
    compiled = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return built - begin, compiled - built, peak


def apart(shape: str, vertices: int) -> tuple[float, float, int]:
    """Measure in a process of its own."""
    command = [sys.executable, __file__, shape, str(vertices)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    build, compile_, peak = printed.split()
    return float(build), float(compile_), int(peak)


def single_seconds(vertices: int) -> float:
    """Add vertices one by one, each connected, mapped with its data, and given its cycles."""
    graph = Graph(make_target("mk2"))
    tensors = variables(graph, vertices)
    compute_set = graph.addComputeSet("rows")
    begin = time.perf_counter()
    for row in range(vertices):
        matrix_row, out = tensors["row"][row], tensors["out"][row]
        fields = {"row": matrix_row, "vector": tensors["vector"], "out": out}
        vertex = graph.addVertex(compute_set, RowVertex, fields)
        tile = row * graph.target.num_tiles // vertices
        graph.setTileMapping(vertex, tile)
        graph.setTileMapping(matrix_row, tile)
        graph.setTileMapping(out, tile)
        graph.setPerfEstimate(vertex, 5 + COLUMNS // 2)
    graph.vertex_groups()
    return time.perf_counter() - begin


def bulk_seconds(vertices: int) -> float:
    """Add the same by the bulk call."""
    graph = Graph(make_target("mk2"))
    tensors = variables(graph, vertices)
    begin = time.perf_counter()
    add_rows(graph, tensors, vertices)
    graph.vertex_groups()
    return time.perf_counter() - begin


def table(shape: str, sizes: tuple[int, ...]) -> None:
    """Print a row a size, and the exponent of the growth."""
    print(f"{shape} compute sets")
    print("  vertices    build   compile   a vertex   peak memory")
    compiled = []
    for vertices in sizes:
        build, seconds, peak = apart(shape, vertices)
        compiled.append(seconds)
        cost = 1e6 * seconds / vertices
        print(
            f"{vertices:10,}{build:7.2f} s{seconds:8.2f} s{cost:8.2f} us{peak / 2**20:11.0f} MiB",
            flush=True,
        )
    exponent = np.polyfit(np.log(sizes), np.log(compiled), 1)[0]
    print(f"compile time grows as vertices ^ {exponent:.2f}   goal 1 or less")


def main() -> None:
    """Print both tables, and what a vertex costs by both calls."""
    table("two", SIZES)
    table("many", MANY_SETS)
    single = 1e6 * single_seconds(SINGLE) / SINGLE
    bulk = 1e6 * min(bulk_seconds(SINGLE) for _ in range(3)) / SINGLE
    print(f"a vertex by the single call {single:.1f} us, by the bulk call {bulk:.2f} us")
    print(f"the bulk call is {single / bulk:.0f} times faster   goal 20 or more")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(*measure(sys.argv[1], int(sys.argv[2])))
    else:
        main()
