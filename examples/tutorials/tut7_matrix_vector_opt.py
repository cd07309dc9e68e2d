"""Tutorial 7 of the Poplar user guide: matrix-vector multiplication, optimised.

Each row is split into segments that are multiplied apart; then the partial sums are added up:

    ( 0 1 2 3 )   ( A )       P1 = 0A + 1B   P2 = 2C + 3D
    ( 4 5 6 7 ) x ( B )       P3 = 4A + 5B   P4 = 6C + 7D
                  ( C )
                  ( D )       result = ( P1 + P2, P3 + P4 )

The program estimates what each split would cost and takes the best.

python examples/tutorials/tut7_matrix_vector_opt.py 10000 1000 --target mk1 --out tut7_report
"""

import argparse
import sys
import tempfile
from typing import Any

import checkout  # noqa: F401  (finds the simulator without an install)
import numpy as np

from simulator import poplar
from simulator.poplar import FLOAT, program

FLOAT_BYTES = 4


class DotProductVertex(poplar.Vertex):
    """The product of a segment of a row and the segment of the vector."""

    a: Any = poplar.Input(poplar.Vector(FLOAT))
    b: Any = poplar.Input(poplar.Vector(FLOAT))
    out: Any = poplar.Output(FLOAT)

    def compute(self) -> bool:
        self.out[0] = self.a @ self.b
        return True


class ReduceVertex(poplar.Vertex):
    """The sum of the partial sums of a row."""

    in_: Any = poplar.Input(poplar.Vector(FLOAT))
    out: Any = poplar.Output(FLOAT)

    def compute(self) -> bool:
        self.out[0] = self.in_.sum()
        return True


def checkResult(matrix: np.ndarray, vector: np.ndarray, output: np.ndarray) -> int:
    """Compare the result with the host's."""
    expected = matrix @ vector
    for row in np.flatnonzero(~np.isclose(output, expected, rtol=1e-5)):
        print(f"ERROR: output {row}: expected={expected[row]:g}, actual={output[row]:g}")
        return 1
    print("Multiplication result OK")
    return 0


def ceilDiv(a: int, b: int) -> int:
    """Divide and round up."""
    return (a + b - 1) // b


def estimateCycles(
    graph: poplar.Graph, numRows: int, numCols: int, split: int, verbose: bool
) -> int:
    """Estimate the cycles of the multiplication when each row is split into `split` segments."""
    target = graph.getTarget()
    numTiles = target.getNumTiles()
    numWorkers = target.getNumWorkerContexts()
    exchangeBytesPerCycle = target.getExchangeBytesPerCycle()

    # The partial sums are spread evenly; the tile with the most vertices decides. Its workers
    # take turns, so that its vertices count in whole rounds of all workers.
    maxVerticesPerTile = max(ceilDiv(numRows * split, numTiles), 1)
    # 5 cycles to start, then two multiplications and additions a cycle.
    cyclesPerVertex = 5 + (ceilDiv(numCols, split) + 1) // 2
    computeCost = ceilDiv(maxVerticesPerTile, numWorkers) * numWorkers * cyclesPerVertex

    # A tile receives the segment of the vector that its rows have in common; it has more than one
    # segment when it has more vertices than there are rows.
    exchangeCost = (
        ceilDiv(maxVerticesPerTile, numRows)
        * ceilDiv(numCols, split)
        * FLOAT_BYTES
        // exchangeBytesPerCycle
    )

    # The reduction has a vertex a row, which receives the partial sums of its row.
    maxReduceVerticesPerTile = max(ceilDiv(numRows, numTiles), 1)
    cyclesPerReduceVertex = 5 + (split + 1) // 2
    reduceComputeCost = (
        ceilDiv(maxReduceVerticesPerTile, numWorkers) * numWorkers * cyclesPerReduceVertex
    )
    reduceExchangeCost = maxReduceVerticesPerTile * split * FLOAT_BYTES // exchangeBytesPerCycle

    totalCost = computeCost + exchangeCost + reduceComputeCost + reduceExchangeCost
    if verbose:
        indent = " " * 32
        print(
            f"colsAxisSplit={split}, total cost={totalCost} "
            f"(compute cost={computeCost}, exchange cost={exchangeCost},\n"
            f"{indent}reduce exchange cost={reduceExchangeCost},\n"
            f"{indent}reduce compute cost={reduceComputeCost})"
        )
    return totalCost


def calcOptimalColAxisSplit(graph: poplar.Graph, numRows: int, numCols: int) -> int:
    """Try every split and give the one that costs least, the smallest of equals."""
    # A single column can only be left whole.
    splits = range(1, max(numCols, 2))
    costs = [estimateCycles(graph, numRows, numCols, split, False) for split in splits]
    best = splits[costs.index(min(costs))]
    print("Best split chosen:")
    estimateCycles(graph, numRows, numCols, best, True)
    print(f"Worst cost seen: {max(costs)}")
    return best


def buildMultiplyProgram(
    graph: poplar.Graph, matrix: poplar.Tensor, vector: poplar.Tensor, out: poplar.Tensor
) -> program.Program:
    """Build a program that sets `out` to the matrix times the vector."""
    numRows, numCols = matrix.dim(0), matrix.dim(1)
    colAxisSplit = calcOptimalColAxisSplit(graph, numRows, numCols)

    partials = graph.addVariable(FLOAT, [numRows, colAxisSplit], "partials")
    numTiles = graph.getTarget().getNumTiles()

    # Every tile needs the vector, so no place is better than another: spread it evenly.
    for i in range(numCols):
        graph.setTileMapping(vector[i], i * numTiles // numCols)

    # First the partial sums: a vertex for each segment of each row.
    mulCS = graph.addComputeSet("mulCS")
    for i in range(colAxisSplit):
        # Segments differ by one column where the split does not divide their number.
        beginCol = (i * numCols) // colAxisSplit
        endCol = ((i + 1) * numCols) // colAxisSplit
        for row in range(numRows):
            matrixElements = matrix[row].slice(beginCol, endCol)
            inputElements = vector.slice(beginCol, endCol)
            v = graph.addVertex(
                mulCS,
                "DotProductVertex",
                {"a": matrixElements, "b": inputElements, "out": partials[row][i]},
            )
            # The vertices are spread evenly, the data of each lies on its tile.
            tile = (i * numRows + row) * numTiles // (colAxisSplit * numRows)
            graph.setTileMapping(v, tile)
            graph.setTileMapping(matrixElements, tile)
            graph.setTileMapping(partials[row][i], tile)
            graph.setCycleEstimate(v, 5 + (endCol - beginCol + 1) // 2)

    # Then their sums: a vertex for each row.
    reduceCS = graph.addComputeSet("reduceCS")
    for row in range(numRows):
        v = graph.addVertex(reduceCS, "ReduceVertex", {"in": partials[row], "out": out[row]})
        tile = (row * numTiles) // numRows
        graph.setTileMapping(v, tile)
        graph.setTileMapping(out[row], tile)
        graph.setCycleEstimate(v, 5 + (partials[row].numElements() + 1) // 2)

    return program.Sequence(program.Execute(mulCS), program.Execute(reduceCS))


def programCycles(engine: poplar.Engine) -> int:
    """Count the cycles from the begin of the multiplication to its end, without the streams."""
    steps = engine.getReport().execution.steps
    multiply = [s.ipus[0] for s in steps if s.program.name.startswith(("mulCS", "reduceCS"))]
    return multiply[-1].activeCycles.cyclesTo.max - multiply[0].activeCycles.cyclesFrom.min


def run(numRows: int, numCols: int, target: str, out: str) -> int:
    """Build, run, check and print a multiplication; the report goes to `out`."""
    print(f"Multiplying matrix of size {numRows}x{numCols} by vector of size {numCols}")

    # For simplicity the tiles of this model wait for no signal to reach them when they sync.
    print("Creating environment (compiling vertex programs)")
    ipuModel = poplar.IPUModel(target)
    ipuModel.minIPUSyncDelay = 0
    ipuModel.relativeSyncDelay = poplar.IPUModel.RelativeSyncDelayType.NO_DELAY
    device = ipuModel.createDevice()

    print("Constructing compute graph and control program")
    graph = poplar.Graph(device.getTarget())
    graph.addCodelets(DotProductVertex, ReduceVertex)

    matrix = graph.addVariable(FLOAT, [numRows, numCols], "matrix")
    inputVector = graph.addVariable(FLOAT, [numCols], "inputVector")
    outputVector = graph.addVariable(FLOAT, [numRows], "outputVector")

    # Sample data: the vector counts its columns, the matrix multiplies row by column.
    hInput = np.arange(numCols, dtype=np.float32)
    hMatrix = np.outer(np.arange(numRows, dtype=np.float32), hInput)
    hOutput = np.zeros(numRows, np.float32)

    mulProg = buildMultiplyProgram(graph, matrix, inputVector, outputVector)

    # Streams bring the data and take the result away.
    inStreamV = graph.addHostToDeviceFIFO("inputVector", FLOAT, numCols)
    inStreamM = graph.addHostToDeviceFIFO("inputMatrix", FLOAT, numCols * numRows)
    outStream = graph.addDeviceToHostFIFO("out", FLOAT, numRows)
    prog = program.Sequence(
        program.Copy(inStreamV, inputVector),
        program.Copy(inStreamM, matrix),
        mulProg,
        program.Copy(outputVector, outStream),
    )

    engine = poplar.Engine(graph, prog, {"autoReport.all": True, "autoReport.directory": out})
    engine.load(device)
    engine.connectStream(inStreamV, hInput)
    engine.connectStream(inStreamM, hMatrix)
    engine.connectStream(outStream, hOutput)

    print("Running graph program to multiply matrix by vector")
    engine.run()

    error = checkResult(hMatrix, hInput, hOutput)
    engine.printProfileSummary(sys.stdout, {"showExecutionSteps": "true"})
    print(f"Program cycles: {programCycles(engine)}")
    return error


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Multiply a matrix by a vector, split in columns.")
    parser.add_argument("numRows", type=int, metavar="ROWS")
    parser.add_argument("numCols", type=int, metavar="COLS")
    parser.add_argument("--target", default="mk1", help="mk1, mk2, bow or tiny")
    parser.add_argument("--out", help="directory of the report; without it the report is dropped")
    arguments = parser.parse_args()
    if arguments.numRows < 1 or arguments.numCols < 1:
        parser.error("a matrix has at least one row and one column")
    with tempfile.TemporaryDirectory() as dropped:
        out = arguments.out or dropped
        try:
            return run(arguments.numRows, arguments.numCols, arguments.target, out)
        except poplar.PoplarError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main())
