"""The programs of PopLibs' tools/lstm_layer.cpp, gru_layer.cpp and embedding_layer.cpp.

The recurrent ones run forward, or with `phase` all forward, then backward with the gradients of the
weights. The embedding is looked up, then updated. Nothing is written or read by the host: these
tools ran with `--ignore-data`.
"""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.poplibs_programs import Programs, expect, field_of, number, type_of
from benchmarks.poplibs_table import Parameters, TableError
from simulator.graph.graph import Graph
from simulator.graph.program import Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.poplibs import popops
from simulator.poplibs.popnn import gru, lstm
from simulator.poplibs.popnn.recurrence.gru_backward import gruBwdWithWU
from simulator.poplibs.popnn.recurrence.lstm_backward import lstmBwdWithWU
from simulator.poplibs.poputil import mapTensorLinearly

# Units by the names of the tools' option --cell-order.
LSTM_UNITS = dict(zip(("forget", "input", "cell", "output"), lstm.BasicLstmCellUnit, strict=True))
GRU_UNITS = dict(zip(("reset", "update", "cell"), gru.BasicGruCellUnit, strict=True))


def lstm_layer(graph: Graph, given: Parameters) -> Programs:
    """Add an LSTM layer."""
    order = [LSTM_UNITS[name] for name in order_of(given, LSTM_UNITS)]
    params = lstm.LstmParams(type_of(given), *sizes_of(given), cellOrder=order)
    options, prog = options_of(given), Sequence()
    inputs = lstm.createInput(graph, params, "input", options)
    state = lstm.createInitialState(graph, params, "fwdState", options)
    weights = lstm.createWeights(graph, params, "weights", options)
    kept: list[Tensor] | None = None if options["inferenceOnly"] else []
    out, _ = lstm.lstmFwd(graph, params, state, inputs, weights, kept, prog, "fwd", options)
    gradients = next_gradients(graph, params.rnn)
    if kept:
        lstmBwdWithWU(
            graph, params, prog, state, kept[0], weights, inputs, out, gradients, None, [], "bwd",
            options,
        )  # fmt: skip
    return Programs([prog])


def gru_layer(graph: Graph, given: Parameters) -> Programs:
    """Add a GRU layer; the tool adds gradients of the weights in either phase."""
    order = [GRU_UNITS[name] for name in order_of(given, GRU_UNITS)]
    params = gru.GruParams(type_of(given), *sizes_of(given), cellOrder=order)
    options, prog = options_of(given), Sequence()
    inputs = gru.createInput(graph, params, "input", options)
    state = gru.createInitialState(graph, params, "fwdState", options)
    weights = gru.createWeights(graph, params, "weights", options)
    kept: list[Tensor] | None = None if options["inferenceOnly"] else []
    out = gru.gruFwd(graph, params, state, inputs, weights, kept, prog, "fwd", options)
    gradients = next_gradients(graph, params.rnn)
    gru.createWeights(graph, params, "weightGrad", options)
    if kept:
        gruBwdWithWU(
            graph, params, prog, state, kept[0], weights, inputs, out, gradients, [], "bwd", options
        )
    return Programs([prog])


def order_of(given: Parameters, units: Mapping[str, object]) -> list[str]:
    """Read the order of the units; raises TableError."""
    names = given.get("cell-order", ",".join(units)).strip("{}").split(",")
    if sorted(names) != sorted(units):
        raise TableError(f"parameter 'cell-order' is {','.join(names)}; {','.join(units)} in order")
    return names


def sizes_of(given: Parameters) -> tuple[int, int, list[int]]:
    """Read the batch, the time steps and the sizes of input and output."""
    layer = [number(given["input-size"]), number(given["output-size"])]
    return number(given.get("batch-size", "1")), number(given["sequence-size"]), layer


def options_of(given: Parameters) -> dict[str, object]:
    """Read the phase, and give the options of the layer."""
    expect(given, "phase", "fwd", "all")
    return {"inferenceOnly": given.get("phase", "fwd") == "fwd"}


def next_gradients(graph: Graph, params: lstm.RnnParams) -> Tensor:
    """Add the gradients of the next layer, which the tools add in either phase."""
    shape = [params.timeSteps, params.batchSize, params.outputs]
    gradients = graph.addVariable(params.dataType, shape, "nextLayerGrads")
    mapTensorLinearly(graph, gradients)
    return gradients


def embedding(graph: Graph, given: Parameters) -> Programs:
    """Look rows of an embedding up, then update them, by one plan."""
    dtype, shape, prog = type_of(given), field_of(given["shape"]), Sequence()
    if len(shape) != 2:
        raise TableError(f"parameter 'shape' is {given['shape']!r}; rows and columns are needed")
    count, options = number(given["num-indices"]), {"usedForUpdate": "true"}
    plan = popops.embedding.plan(graph, dtype, shape[0], shape[1], [count], options)
    table = popops.createSliceableTensor(graph, dtype, shape, [0], [1], plan, options, "embedding")
    indices = popops.createIndicesTensor(graph, [0], count, plan, options, "indices")
    popops.multiSlice(graph, table, indices, [0], [1], prog, plan, options, "extracted")
    scale = graph.addConstant(dtype, [], 1.0, "scale")
    graph.setTileMapping(scale, 0)
    deltas = popops.createSliceTensor(graph, dtype, shape, [0], [1], count, plan, options, "deltas")
    popops.multiUpdateAdd(
        graph, table, deltas, indices, scale, [0], [1], prog, plan, options, "updated"
    )
    return Programs([prog])
