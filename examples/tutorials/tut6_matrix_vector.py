"""Tutorial 6 of the Poplar user guide: matrix-vector multiplication.

python examples/tutorials/tut6_matrix_vector.py 40 50
"""

import argparse
import sys
from typing import Any

import checkout  # noqa: F401  (finds the simulator without an install)
import numpy as np

from simulator import poplar
from simulator.poplar import FLOAT, program


class DotProductVertex(poplar.Vertex):
    """The product of a row of the matrix and the vector."""

    a: Any = poplar.Input(poplar.Vector(FLOAT))
    b: Any = poplar.Input(poplar.Vector(FLOAT))
    out: Any = poplar.Output(FLOAT)

    def compute(self) -> bool:
        self.out[0] = self.a @ self.b
        return True


def checkResult(matrix: np.ndarray, vector: np.ndarray, output: np.ndarray) -> int:
    """Compare the result with the host's."""
    expected = matrix @ vector
    for row in np.flatnonzero(~np.isclose(output, expected, rtol=1e-5)):
        print(f"ERROR: output {row}: expected={expected[row]:g}, actual={output[row]:g}")
        return 1
    print("Multiplication result OK")
    return 0


def buildMultiplyProgram(
    graph: poplar.Graph, matrix: poplar.Tensor, vector: poplar.Tensor, out: poplar.Tensor
) -> program.Program:
    """Build a program that sets `out` to the matrix times the vector."""
    mulCS = graph.addComputeSet("mulCS")

    # A vertex for each element of the output: it takes one row and the whole vector.
    numRows = matrix.dim(0)
    numTiles = graph.getTarget().getNumTiles()
    for i in range(numRows):
        v = graph.addVertex(mulCS, "DotProductVertex", {"a": matrix[i], "b": vector, "out": out[i]})
        # A row lies on the tile of its vertex; rows go round when there are more than tiles.
        tile = i % numTiles
        graph.setTileMapping(v, tile)
        graph.setTileMapping(matrix[i], tile)
        graph.setTileMapping(out[i], tile)
        graph.setCycleEstimate(v, 20)
    graph.setTileMapping(vector, 0)

    return program.Execute(mulCS)


def main() -> int:
    """Read the size, build, run and check."""
    parser = argparse.ArgumentParser(description="Multiply a matrix by a vector.")
    parser.add_argument("numRows", type=int)
    parser.add_argument("numCols", type=int)
    arguments = parser.parse_args()
    if arguments.numRows < 1 or arguments.numCols < 1:
        parser.error("a matrix has at least one row and one column")
    numRows, numCols = arguments.numRows, arguments.numCols
    print(f"Multiplying matrix of size {numRows}x{numCols} by vector of size {numCols}")

    print("Creating environment (compiling vertex programs)")
    ipuModel = poplar.IPUModel()
    device = ipuModel.createDevice()

    print("Constructing compute graph and control program")
    graph = poplar.Graph(device.getTarget())
    graph.addCodelets(DotProductVertex)

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

    engine = poplar.Engine(graph, prog)
    engine.load(device)
    engine.connectStream(inStreamV, hInput)
    engine.connectStream(inStreamM, hMatrix)
    engine.connectStream(outStream, hOutput)

    print("Running graph program to multiply matrix by vector")
    engine.run()

    return checkResult(hMatrix, hInput, hOutput)


if __name__ == "__main__":
    sys.exit(main())
