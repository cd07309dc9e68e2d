"""Rebuild the single-operation programs of poplibs_benchmarks_mk1.csv, kind by kind.

Each follows the tool of the PopLibs repository (tools/) that gave the published figures: which
tensors it makes and how they lie, and which programs its engine has. The tools ran with
`--ignore-data`: what would be written and read by the host is compiled where the tool does so, but
never run. `{a,b}` in the parameters is a list by spatial dimension, one number holds for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module

from benchmarks.poplibs_table import DEFAULT_TARGET, Benchmark, Parameters, TableError
from simulator import poplar
from simulator.device import Device
from simulator.graph.graph import Graph
from simulator.graph.program import Copy, Program, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import Type
from simulator.poplibs import poplin, popops
from simulator.poplibs.poputil import mapTensorLinearly

TYPES: dict[str, Type] = {"half": poplar.HALF, "float": poplar.FLOAT}
LEARNING_RATE = 0.05
# Kinds whose tools compile code for the tiles when they write a profile (`compileIPUCode` in
# tools/single_conv_layer.cpp, general_matrix_multiply.cpp, embedding_layer.cpp): their published
# memory has code and stack. The other tools leave it out.
WITH_CODE = ("conv", "gemm", "embedding")
# Pooling, and layers of several operations, have modules of their own.
POOLING, LAYERS, SOLVERS = (
    f"benchmarks.poplibs_{name}" for name in ("pooling", "layers", "solvers")
)


@dataclass(frozen=True, slots=True, eq=False)
class Programs:
    """The programs of an engine; the first `run` of them are run, one after another."""

    programs: list[Program]
    run: int = 1


def device_of(benchmark: Benchmark, target: str = DEFAULT_TARGET) -> Device:
    """Make the device of a row, with the tiles that it asks for; raises PoplarError."""
    tiles = benchmark.parameters.get("tiles-per-ipu")
    changes: dict[str, int] = {} if tiles is None else {"tilesPerIPU": number(tiles)}
    code = benchmark.kind in WITH_CODE
    return poplar.IPUModel(target, compileIPUCode=code, **changes).createDevice()


def build(benchmark: Benchmark, device: Device) -> tuple[Graph, Programs]:
    """Build the program of a row; raises PoplarError, or TableError for what it asks for."""
    if benchmark.kind not in BUILDERS:
        kinds = ", ".join(BUILDERS)
        raise TableError(f"kind {benchmark.kind!r} cannot be built; known are {kinds}")
    graph = Graph(device.getTarget())
    parameters = Parameters(benchmark.parameters, {"tiles-per-ipu"})
    built = BUILDERS[benchmark.kind](graph, parameters)
    parameters.check_all_read()
    return graph, built


def number(text: str) -> int:
    """Read a number; raises TableError."""
    if not text.strip().isdecimal():
        raise TableError(f"{text!r} is no whole number")
    return int(text)


def type_of(given: Parameters, name: str = "data-type", usual: str = "half") -> Type:
    """Read a type; raises TableError."""
    text = given.get(name, usual)
    if text not in TYPES:
        raise TableError(f"parameter {name!r} is {text!r}; {' or '.join(TYPES)} is needed")
    return TYPES[text]


def expect(given: Parameters, name: str, *values: str) -> None:
    """Raise TableError when a parameter has another value than the first, the usual one, or so."""
    if (text := given.get(name, values[0])) not in values:
        raise TableError(f"parameter {name!r} is {text!r}; only {values[0]} can be built")


def field_of(text: str, dimensions: int = 0) -> tuple[int, ...]:
    """Read `{a,b}`, or one number for each of so many dimensions."""
    if text.startswith("{"):
        return tuple(number(part) for part in text.strip("{}").split(","))
    return (number(text),) * dimensions


def _list_of(text: str) -> list[int]:
    return [number(part) for part in text.split(",")]


def host_copies(graph: Graph, tensors: Mapping[str, Tensor]) -> tuple[Sequence, Sequence]:
    """Return the programs that write all tensors from the host, and read them."""
    upload, download = Sequence(), Sequence()
    for name, tensor in tensors.items():
        elements = tensor.numElements()
        into = graph.addHostToDeviceFIFO(f"{name}/in", tensor.dtype, elements)
        out_of = graph.addDeviceToHostFIFO(f"{name}/out", tensor.dtype, elements)
        upload.add(Copy(into, tensor))
        download.add(Copy(tensor, out_of))
    return upload, download


def convolution(graph: Graph, given: Parameters) -> Programs:
    """tools/single_conv_layer.cpp: forward, then backward and weight update."""
    field = field_of(given["field"])

    def by_dimension(name: str, default: str) -> tuple[int, ...]:
        return field_of(given.get(name, default), len(field))

    padding = given.get("padding", "0")
    groups, dtype = number(given.get("conv-groups", "1")), type_of(given)
    params = poplin.ConvParams(
        dtype,
        number(given.get("batch-size", "1")),
        field,
        by_dimension("kernel-size", "1"),
        number(given["input-channels"]),
        number(given["output-channels"]),
        groups,
        inputTransform=poplin.InputTransform(
            paddingLower=by_dimension("padding-lower", padding),
            paddingUpper=by_dimension("padding-upper", padding),
        ),
        outputTransform=poplin.OutputTransform(stride=by_dimension("stride", "1")),
    )
    cache, backward = poplin.PlanningCache(), poplin.getGradientParams(params)
    fwd, bwd, wu = ({"pass": f"TRAINING_{name}"} for name in ("FWD", "BWD", "WU"))
    inputs = poplin.createInput(graph, params, "prevAct", fwd, cache)
    weights = poplin.createWeights(graph, params, "weights", fwd, cache)
    deltas = poplin.createInput(graph, backward, "zDeltas", bwd, cache)
    forward, reverse = Sequence(), Sequence()
    outputs = poplin.convolution(graph, inputs, weights, params, False, forward, "fwd", fwd, cache)
    gradient = poplin.convolution(
        graph, deltas, weights, backward, True, reverse, "bwd", bwd, cache
    )
    scale = graph.addConstant(dtype, [], -LEARNING_RATE)
    graph.setTileMapping(scale, 0)
    poplin.convolutionWeightUpdate(
        graph, deltas, weights, inputs, params, scale, reverse, "wu", wu, cache
    )
    held = {"prevAct": inputs, "weights": weights, "nextAct": outputs, "zDeltas": deltas}
    host = host_copies(graph, held | {"prevDeltas": gradient})
    return Programs([forward, reverse, *host], run=2)


def fully_connected(graph: Graph, given: Parameters) -> Programs:
    """tools/fully_connected_layer.cpp without a bias: forward, then backward and weight update."""
    groups, batch = number(given.get("num-groups", "1")), number(given.get("batch-size", "1"))
    inputs, outputs = number(given["input-size"]), number(given["output-size"])
    dtype = type_of(given)
    left, right = [groups, batch, inputs], [groups, inputs, outputs]
    deltas_shape, transposed = [groups, batch, outputs], [groups, outputs, inputs]
    cache = poplin.PlanningCache()
    fwd, bwd, wu = ({"fullyConnectedPass": f"TRAINING_{name}"} for name in ("FWD", "BWD", "WU"))
    before = poplin.createMatMulGroupedInputLHS(
        graph, dtype, dtype, left, right, "prevAct", fwd, cache
    )
    weights = poplin.createMatMulGroupedInputRHS(
        graph, dtype, dtype, left, right, "weights", fwd, cache
    )
    forward, reverse = Sequence(), Sequence()
    after = poplin.matMulGrouped(graph, before, weights, forward, dtype, "fwd", fwd, cache)
    deltas = poplin.createMatMulGroupedInputLHS(
        graph, dtype, dtype, deltas_shape, transposed, "zDeltas", bwd, cache
    )
    gradient = poplin.matMulGrouped(
        graph, deltas, weights.dimShuffle([0, 2, 1]), reverse, dtype, "bwd", bwd, cache
    )
    update = poplin.matMulGrouped(
        graph, before.dimShuffle([0, 2, 1]), deltas, reverse, dtype, "wu", wu, cache
    )
    popops.scaledAddTo(graph, weights, update, -LEARNING_RATE, reverse, "wu/UpdateWeights")
    held = {"prevAct": before, "weights": weights, "nextAct": after, "zDeltas": deltas}
    host = host_copies(graph, held | {"prevDeltas": gradient})
    return Programs([forward, reverse, *host], run=2)


def matrix_multiply(graph: Graph, given: Parameters) -> Programs:
    """tools/general_matrix_multiply.cpp: C += A * B, where C lies as the product does."""
    rows, inner, columns = (number(given[name]) for name in "mkn")
    dtype, cache = type_of(given), poplin.PlanningCache()
    shapes = [rows, inner], [inner, columns]
    left = poplin.createMatMulInputLHS(graph, dtype, dtype, *shapes, "matA", None, cache)
    right = poplin.createMatMulInputRHS(graph, dtype, dtype, *shapes, "matB", None, cache)
    program = Sequence()
    product = poplin.matMul(graph, left, right, program, dtype, "op(A) x op(B)", None, cache)
    total = graph.clone(product, "matC")
    popops.scaledAddTo(graph, total, product, 1.0, program)
    return Programs([program])


def reduction(graph: Graph, given: Parameters) -> Programs:
    """tools/reduce_op.cpp: the input lies linearly, the operation chooses the output."""
    tensor = graph.addVariable(type_of(given, "type"), _list_of(given["shape"]), "input")
    mapTensorLinearly(graph, tensor)
    expect(given, "scale", "1.0", "1")
    expect(given, "update", "false")
    if given["operation"] not in [operation.value for operation in popops.Operation]:
        raise TableError(f"parameter 'operation' is {given['operation']!r}; no operation of reduce")
    operation = popops.Operation(given["operation"])
    program = Sequence()
    popops.reduce(graph, tensor, _list_of(given["dims"]), operation, program)
    return Programs([program])


def built_by(module: str, name: str) -> Callable[[Graph, Parameters], Programs]:
    """Return the builder of a module, which is imported when a program of it is built."""

    def build(graph: Graph, given: Parameters) -> Programs:
        programs: Programs = getattr(import_module(module), name)(graph, given)
        return programs

    return build


BUILDERS: dict[str, Callable[[Graph, Parameters], Programs]] = {
    "conv": convolution,
    "fc": fully_connected,
    "gemm": matrix_multiply,
    "pooling": built_by(POOLING, "build"),  # tools/pooling_layer.cpp: forward, then backward
    "reduction": reduction,
    "lstm": built_by(LAYERS, "lstm_layer"),  # tools/lstm_layer.cpp: also backward
    "gru": built_by(LAYERS, "gru_layer"),  # tools/gru_layer.cpp: the same
    "embedding": built_by(LAYERS, "embedding"),  # tools/embedding_layer.cpp: lookup, then update
    "cholesky": built_by(SOLVERS, "cholesky"),  # tools/matrix_solver.cpp --cholesky
    "triangular_solve": built_by(SOLVERS, "triangular_solve"),  # tools/matrix_solver.cpp
}
