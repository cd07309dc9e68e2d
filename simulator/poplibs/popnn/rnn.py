"""What recurrent layers share: their sizes, options, products, and the loop over time steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from math import gcd
from typing import Any

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.option_table import Option, OptionValue, checked, defaults
from simulator.graph.program import Copy, Execute, Repeat, WriteUndef
from simulator.graph.program import Sequence as Program
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import FLOAT, HALF, UNSIGNED_INT, IntArray, Type
from simulator.poplibs import poplin, popops
from simulator.poplibs.popnn.nonlinearities.activations import NonLinearityType, nonLinearityInPlace
from simulator.poplibs.popnn.time_steps import Lengths, check_lengths, params_with_lengths
from simulator.poplibs.poputil import detectInnermostGrouping

GROUP = 16  # elements of a step that stay together, where they divide evenly
FORWARD, BACKWARD, UPDATE = "TRAINING_FWD", "TRAINING_BWD", "TRAINING_WU"
GROUPED = 32  # sums on a tile at least: groups of a product's outputs stay together
_TAKEN = "taken, and without effect here"
OPTIONS = {
    "inferenceOnly": Option(False, "there is no backward pass"),
    "availableMemoryProportion": Option("0.6", "share of a tile for products"),
    "partialsType": Option("float", "type of the parts of sums", allowed=("float", "half")),
    "weightAccumulatorsType": Option(
        "data", "type of the sums of weights' gradients", allowed=("data", "float", "half")
    ),
    "preCalcWeights": Option(False, "multiply the inputs of all steps at once, before the loop"),
    "recomputationMode": Option("none", _TAKEN, allowed=("none", "cellAndTanh", "full")),
    "numShards": Option(1, _TAKEN),
    "rnnCodeReuse": Option(False, _TAKEN),
    "rnnStepsPerWU": Option(1, _TAKEN),
    "disableWUPartialInterleaving": Option(False, _TAKEN),
}
Options = Mapping[str, object] | None
Activated = tuple[NonLinearityType, Tensor]


@params_with_lengths
@dataclass(slots=True)
class RnnParams:
    """The sizes of a recurrent layer; `layerSizes` are those of its inputs and of its outputs.

    `varTimeSteps` are the steps of each sample, or of all, where they are fewer than `timeSteps`.
    """

    dataType: Type
    batchSize: int
    timeSteps: int
    layerSizes: Sequence[int] = field(default_factory=list)
    varTimeSteps: Tensor | None = None

    def check(self, name: str) -> None:
        """Raise poplibs_error when there is no such layer."""
        if self.dataType not in (FLOAT, HALF):
            raise poplibs_error(f"{name}: data type is {self.dataType}; float or half is needed")
        if len(self.layerSizes) != 2:
            raise poplibs_error(f"{name}: layerSizes {list(self.layerSizes)}; needs two sizes")
        if min(self.batchSize, self.timeSteps, *self.layerSizes) < 1:
            raise poplibs_error(f"{name}: {self}; sizes of at least 1 are needed")
        check_lengths(self.varTimeSteps, self.batchSize, name)

    @property
    def maxTimeSteps(self) -> int:
        """Return the steps of the longest sequence."""
        return self.timeSteps

    def variableTimeSteps(self) -> bool:
        """Return whether sequences may be shorter."""
        return self.varTimeSteps is not None

    def lengths(self, graph: Graph, prog: Program, name: str) -> Lengths | None:
        """Add what finds how long sequences are, where they may be shorter."""
        return Lengths.of(graph, self.varTimeSteps, self.dataType, prog, name)

    @property
    def inputs(self) -> int:
        """Return the size of the input of a step."""
        return self.layerSizes[0]

    @property
    def outputs(self) -> int:
        """Return the size of the output of a step."""
        return self.layerSizes[1]


def read_options(options: Options, name: str) -> dict[str, OptionValue]:
    """Check the options of a recurrent layer."""
    return defaults(OPTIONS, checked(OPTIONS, options or {}, name))


def expect(name: str, tensor: Tensor, dtype: Type, *shape: int) -> None:
    """Raise poplibs_error when a tensor has another type or shape."""
    if tensor.dtype != dtype or tensor.shape != shape:
        raise poplibs_error(f"{name}: {tensor!r}; {dtype}{list(shape)} is needed")


def create_input(
    graph: Graph, params: RnnParams, units: int, name: str, options: Options
) -> Tensor:
    """Add the inputs of all steps, laid out to be sliced, or for one product before the loop."""
    params.check(name)
    steps, batch, size = params.timeSteps, params.batchSize, params.inputs
    values = read_options(options, name)
    if not values["preCalcWeights"]:
        return create_sequence(graph, params, size, steps, name)
    shapes = ((steps * batch, size), (size, units * params.outputs))
    dtype, passes = params.dataType, product_options(values, FORWARD)
    lhs = poplin.createMatMulInputLHS(graph, dtype, dtype, *shapes, name, passes)
    return lhs.reshape([steps, batch, size])


def create_sequence(graph: Graph, params: RnnParams, size: int, steps: int, name: str) -> Tensor:
    """Add [steps, batch, size]: groups of a step spread over the tiles, each with all its steps.

    Tiles are taken from the last one on, as the loop counter lies on the first.
    """
    batch, groups = params.batchSize, size // gcd(GROUP, size)
    group, share, tiles = _spread(graph, params, size)
    used = len(tiles)
    low = np.arange(used, dtype=np.int64) * steps * share * group
    high = np.append(low[1:], steps * groups * batch * group)
    variable = graph.addVariable(params.dataType, [steps * groups * batch * group], name)
    graph.map_ranges(variable, low, high, tiles)
    cut = int(low[-1])
    parts = [variable[cut:].reshape([steps, groups * batch - (used - 1) * share, group])]
    if used > 1:
        first = variable[:cut].reshape([used - 1, steps, share, group]).dimShuffle([1, 0, 2, 3])
        parts.insert(0, first.reshape([steps, (used - 1) * share, group]))
    blocks = concat(parts, 1).reshape([steps, groups, batch, group])
    return blocks.dimShuffle([0, 2, 1, 3]).reshape([steps, batch, size])


def _spread(graph: Graph, params: RnnParams, size: int) -> tuple[int, int, IntArray]:
    """Return the elements in a group, the groups of a step on a tile, and the tiles."""
    total, batch = graph.target.num_tiles, params.batchSize

    def used(length: int, most: int) -> tuple[int, int]:
        groups = batch * (length // gcd(GROUP, length))
        share = ceil_div(groups, most)
        return ceil_div(groups, share), share

    most = max(used(length, total)[0] for length in params.layerSizes)
    count, share = used(size, most)
    tiles = (np.arange(count, dtype=np.int64) + 1) * total // count - 1
    return gcd(GROUP, size), share, tiles


def create_state(graph: Graph, params: RnnParams, name: str) -> Tensor:
    """Add a state: the output of a step, or what a cell holds."""
    params.check(name)
    return create_sequence(graph, params, params.outputs, 1, name)[0]


def product_options(values: Mapping[str, OptionValue], which: str) -> dict[str, object]:
    """Return the options of the product of a pass."""
    if which == FORWARD and values["inferenceOnly"]:
        which = "INFERENCE_FWD"
    pass_options: dict[str, object] = {
        key: values[key] for key in ("availableMemoryProportion", "partialsType")
    }
    return pass_options | {"fullyConnectedPass": which}


def create_kernel(
    graph: Graph, params: RnnParams, products: Sequence[int], name: str, options: Options
) -> tuple[Tensor, Tensor]:
    """Add the weights of inputs and of outputs: [units, inputs or outputs, outputs].

    `products` are the numbers of units whose sums one product gives.
    """
    params.check(name)
    batch, (inputs, outputs) = params.batchSize, params.layerSizes
    values = read_options(options, name)
    dtype, passes = params.dataType, product_options(values, FORWARD)
    rows = [(batch, inputs + outputs)]
    if values["preCalcWeights"]:
        rows = [(params.timeSteps * batch, inputs), (batch, outputs)]
    kernels = []
    for units in products:
        parts = [
            poplin.createMatMulInputRHS(
                graph, dtype, dtype, shape, (shape[1], units * outputs), part, passes
            )
            for shape, part in zip(rows, (f"{name}/weights", f"{name}/outputWeights"), strict=False)
        ]
        kernel = concat(parts, 0).reshape([inputs + outputs, units, outputs])
        kernels.append(kernel.dimShuffle([1, 0, 2]))
    together = concat(kernels, 0)
    return together[:, :inputs], together[:, inputs:]


def as_matrix(units: Tensor) -> Tensor:
    """View [units, rows, columns] as a matrix whose columns are those of all units."""
    count, rows, columns = units.shape
    return units.dimShuffle([1, 0, 2]).reshape([rows, count * columns])


def create_biases(graph: Graph, params: RnnParams, units: Sequence[int], name: str) -> Tensor:
    """Add biases, one for each output of every unit, on the tiles of the first row of a state."""
    params.check(name)
    biases = graph.addVariable(params.dataType, [*units, params.outputs], name)
    group, share, tiles = _spread(graph, params, params.outputs)
    low = np.arange(0, biases.numElements(), group, dtype=np.int64)
    first = low % params.outputs // group * params.batchSize
    graph.map_ranges(biases.flatten(), low, low + group, tiles[first // share])
    return biases


def grouped_transpose(graph: Graph, tensor: Tensor, group: int, prog: Program, name: str) -> Tensor:
    """Put groups of columns of a matrix together in memory where groups of rows lie together."""
    rows, columns = tensor.shape
    group = gcd(columns, group)
    lying = detectInnermostGrouping(graph, tensor.transpose())
    if min(group, lying) < 2:  # no group of them, or no whole one
        return tensor
    cut = tensor.reshape([rows // lying, lying, columns // group, group]).dimShuffle([0, 2, 3, 1])
    compute_set = graph.addComputeSet(f"{name}/groupedPartialTranspose")
    turned = popops.rearrange.partialTranspose(graph, cut, compute_set, name)
    prog.add(Execute(compute_set))
    return turned.dimShuffle([0, 2, 1, 3]).reshape([rows, columns])


def units_of(matrix: Tensor, units: int) -> Tensor:
    """View [rows, units times outputs] as [units, rows, outputs]."""
    rows, columns = matrix.shape
    return matrix.reshape([rows, units, columns // units]).dimShuffle([1, 0, 2])


@dataclass(frozen=True, slots=True)
class Sums:
    """What units add up in a step: the inputs and the state times their weights, and the biases.

    With `before` the weighted inputs of all steps stand in `inputs` already.
    """

    graph: Graph
    inputs: Tensor
    kernel: Tensor
    biases: Tensor
    before: bool
    options: Options
    name: str

    def take(self, index: Tensor, prog: Program) -> Tensor:
        """Take what a step needs of the inputs."""
        return take_step(self.graph, self.inputs, index, prog, f"{self.name}/input")

    def write(self, step_sums: Tensor, state: Tensor, units: Tensor, prog: Program) -> None:
        """Write the sums of a step to [units, batch, outputs], which lie as a state does."""
        lhs = state if self.before else concat([step_sums, state], 1)
        product = poplin.matMul(
            self.graph, lhs, self.kernel, prog, None, f"{self.name}/Weight", self.options
        )
        if self.before:
            popops.addInPlace(self.graph, product, step_sums, prog, f"{self.name}/Inputs")
        write_units(self.graph, product, units, self.biases, prog, self.name)


def write_units(
    graph: Graph, product: Tensor, units: Tensor, biases: Tensor, prog: Program, name: str
) -> None:
    """Write a product [batch, units times outputs] to units, and add their biases."""
    group = detectInnermostGrouping(graph, units)
    turned = grouped_transpose(graph, product, group, prog, name)
    prog.add(Copy(units_of(turned, units.dim(0)), units, name=f"{name}/Units"))
    spread = biases.expand([1]).broadcast(units.dim(1), 1)
    popops.addInPlace(graph, units, spread, prog, f"{name}/AddBias")


def sums_of(
    graph: Graph,
    inputs: Tensor,
    kernels: tuple[Tensor, Tensor],
    biases: Tensor,
    values: Mapping[str, OptionValue],
    prog: Program,
    name: str,
) -> Sums:
    """Prepare the sums of units [units, outputs] by the matrices for inputs and for the state.

    With the option `preCalcWeights` the product of all inputs is added to a program at once.
    """
    options = product_options(values, FORWARD)
    if not values["preCalcWeights"]:
        return Sums(graph, inputs, concat(list(kernels), 0), biases, False, options, name)
    steps, batch, size = inputs.shape
    flat = inputs.reshape([steps * batch, size])
    product = poplin.matMul(graph, flat, kernels[0], prog, None, f"{name}/PreCalc", options)
    shape = [steps, batch, product.dim(1)]
    # All steps of a sum lie on one tile, so that no step moves those of others.
    sliceable = popops.createSliceableTensor(
        graph, inputs.dtype, shape, [0], [1], GROUPED, f"{name}/PreCalcSums"
    )
    prog.add(Copy(product.reshape(shape), sliceable, name=f"{name}/PreCalcSums"))
    return Sums(graph, sliceable, kernels[1], biases, True, options, name)


def activate(graph: Graph, activated: Sequence[Activated], prog: Program, name: str) -> None:
    """Replace tensors by their non-linearities, in one compute set where they take one step."""
    together = [pair for pair in activated if pair[0] is not NonLinearityType.HARD_SIGMOID]
    if together:
        compute_set = graph.addComputeSet(f"{name}/NonLinearity")
        for kind, tensor in together:
            nonLinearityInPlace(graph, kind, tensor, compute_set, name)
        prog.add(Execute(compute_set))
    for kind, tensor in activated:
        if kind is NonLinearityType.HARD_SIGMOID:
            nonLinearityInPlace(graph, kind, tensor, prog, name)


def add_loop(
    graph: Graph,
    steps: int,
    prog: Program,
    name: str,
    body: Callable[[Tensor, Program], None],
    backward: bool = False,
    lengths: Lengths | None = None,
) -> None:
    """Run what `body` adds for each time step; it is given the number of the step, on tile 0."""
    if lengths is not None:
        lengths.loop(prog, name, body, backward)
        return
    index = graph.addVariable(UNSIGNED_INT, [1], f"{name}/seqIdx")
    graph.setTileMapping(index, 0)
    if backward:
        last = graph.addConstant(UNSIGNED_INT, [1], steps - 1, f"{name}/start")
        graph.setTileMapping(last, 0)
        prog.add(Copy(last, index, name=f"{name}/initSeqIdxToEnd"))
    else:
        popops.zero(graph, index, prog, f"{name}/initSeqIdx")
    step = Program()
    body(index, step)
    if backward:
        popops.subInPlace(graph, index, 1, step, f"{name}/seqIdxDecr")
    else:
        popops.addInPlace(graph, index, 1, step, f"{name}/seqIdxIncr")
    prog.add(Repeat(steps, step, name))


def take_step(graph: Graph, sequence: Tensor, index: Tensor, prog: Program, name: str) -> Tensor:
    """Take a step of a sequence."""
    return popops.dynamicSlice(graph, sequence, index, [0], [1], prog, name).squeeze([0])


def keep_step(
    graph: Graph, sequence: Tensor, step: Tensor, index: Tensor, prog: Program, name: str
) -> None:
    """Write a step into a sequence."""
    popops.dynamicUpdate(graph, sequence, step.expand([0]), index, [0], [1], prog, name)


def begin(graph: Graph, params: RnnParams, sequence: Tensor, prog: Program, name: str) -> None:
    """Begin a sequence that steps will be written to: zeros, where some may be missing."""
    if params.variableTimeSteps():
        popops.zero(graph, sequence, prog, f"{name}/zero")
    else:
        prog.add(WriteUndef(sequence))


def laid_out(graph: Graph, params: RnnParams, tensor: Tensor, prog: Program, name: str) -> Tensor:
    """Copy a sequence [steps, batch, size], so that its steps are sliced where they lie."""
    steps, _, size = tensor.shape
    copy = create_sequence(graph, params, size, steps, name)
    prog.add(Copy(tensor, copy, name=name))
    return copy


def copy_of(graph: Graph, params: RnnParams, tensor: Tensor, prog: Program, name: str) -> Tensor:
    """Copy a state, so that what it is given stays as it is."""
    return laid_out(graph, params, tensor.expand([0]), prog, f"{name}/state")[0]


@dataclass(slots=True)
class Kept:
    """What each step leaves for a later pass: [steps, values, batch, outputs]."""

    graph: Graph
    params: RnnParams
    sequence: Tensor
    step: Tensor
    name: str

    @classmethod
    def of(cls, graph: Graph, params: RnnParams, count: int, prog: Program, name: str) -> Kept:
        """Add the sequence for so many values of a step."""
        steps, size = params.timeSteps, params.outputs
        sequence = create_sequence(graph, params, size, steps * count, name)
        begin(graph, params, sequence, prog, name)
        step = create_sequence(graph, params, size, count, f"{name}/step")
        shaped = sequence.reshape([steps, count, params.batchSize, size])
        return cls(graph, params, shaped, step, name)

    def add(self, values: Tensor, index: Tensor, prog: Program) -> None:
        """Keep the values of a step."""
        prog.add(Copy(values, self.step, name=f"{self.name}/step"))
        keep_step(self.graph, self.sequence, self.step, index, prog, self.name)


# The plain layer under PopLibs' names; it is loaded when it is asked for.
_PLAIN = "simulator.poplibs.popnn.recurrence.recurrent"


def __getattr__(name: str) -> Any:
    module = import_module(_PLAIN) if not name.startswith("_") else None
    if name not in getattr(module, "NAMES", ()):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(module, name)
