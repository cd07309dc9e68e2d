"""What recurrent layers share: their sizes, options, products, and the loop over time steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.option_table import Option, OptionValue, checked, defaults
from simulator.graph.program import Copy, Execute, Repeat
from simulator.graph.program import Sequence as Program
from simulator.graph.tensor import Tensor, concat
from simulator.graph.types import FLOAT, HALF, UNSIGNED_INT, Type
from simulator.poplibs import poplin, popops
from simulator.poplibs.popnn.activations import NonLinearityType, nonLinearityInPlace
from simulator.poplibs.poputil import mapTensorLinearly

GROUPED = 32  # sums on a tile at least: groups of a product's outputs stay together
_TAKEN = "taken, and without effect here"
OPTIONS = {
    "inferenceOnly": Option(False, _TAKEN),
    "availableMemoryProportion": Option("0.6", "share of a tile for products"),
    "partialsType": Option("float", "type of the parts of sums", allowed=("float", "half")),
    "weightAccumulatorsType": Option("float", _TAKEN, allowed=("float", "half")),
    "preCalcWeights": Option(False, "multiply the inputs of all steps at once, before the loop"),
    "recomputationMode": Option("none", _TAKEN, allowed=("none", "cellAndTanh", "full")),
    "numShards": Option(1, _TAKEN),
    "rnnCodeReuse": Option(False, _TAKEN),
    "rnnStepsPerWU": Option(1, _TAKEN),
}
Options = Mapping[str, object] | None
Activated = tuple[NonLinearityType, Tensor]


@dataclass(slots=True)
class RnnParams:
    """The sizes of a recurrent layer; `layerSizes` are those of its inputs and of its outputs."""

    dataType: Type
    batchSize: int
    timeSteps: int
    layerSizes: Sequence[int] = field(default_factory=list)

    def check(self, name: str) -> None:
        """Raise poplibs_error when there is no such layer."""
        if self.dataType not in (FLOAT, HALF):
            raise poplibs_error(f"{name}: data type is {self.dataType}; float or half is needed")
        if len(self.layerSizes) != 2:
            raise poplibs_error(f"{name}: layerSizes {list(self.layerSizes)}; needs two sizes")
        if min(self.batchSize, self.timeSteps, *self.layerSizes) < 1:
            raise poplibs_error(f"{name}: {self}; sizes of at least 1 are needed")

    @property
    def inputs(self) -> int:
        """Give the size of the input of a step."""
        return self.layerSizes[0]

    @property
    def outputs(self) -> int:
        """Give the size of the output of a step."""
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
    dtype = params.dataType
    if not read_options(options, name)["preCalcWeights"]:
        return popops.createSliceableTensor(graph, dtype, [steps, batch, size], [0], [1], 0, name)
    shapes = ((steps * batch, size), (size, units * params.outputs))
    made = poplin.createMatMulInputLHS(graph, dtype, dtype, *shapes, name)
    return made.reshape([steps, batch, size])


def create_state(graph: Graph, params: RnnParams, name: str) -> Tensor:
    """Add a state: the output of a step, or what a cell holds."""
    params.check(name)
    state = graph.addVariable(params.dataType, [params.batchSize, params.outputs], name)
    mapTensorLinearly(graph, state)
    return state


def create_kernel(
    graph: Graph, params: RnnParams, units: int, name: str, options: Options
) -> tuple[Tensor, Tensor]:
    """Add the weights of inputs and of outputs: [units, inputs or outputs, outputs]."""
    params.check(name)
    batch, sizes = params.batchSize, tuple(params.layerSizes)
    width = units * params.outputs
    dtype = params.dataType
    rows = [(batch, sum(sizes))]
    if read_options(options, name)["preCalcWeights"]:
        rows = [(params.timeSteps * batch, sizes[0]), (batch, sizes[1])]
    parts = [
        poplin.createMatMulInputRHS(graph, dtype, dtype, shape, (shape[1], width), part)
        for shape, part in zip(rows, (f"{name}/weights", f"{name}/outputWeights"), strict=False)
    ]
    whole = concat(parts, 0).reshape([sum(sizes), units, params.outputs]).dimShuffle([1, 0, 2])
    return whole[:, : sizes[0]], whole[:, sizes[0] :]


def as_matrix(weights: Tensor, order: Sequence[int]) -> Tensor:
    """View [units, rows, columns] as a matrix whose columns are the units in an order."""
    chosen = concat([weights[unit].expand([0]) for unit in order], 0)
    units, rows, columns = chosen.shape
    return chosen.dimShuffle([1, 0, 2]).reshape([rows, units * columns])


def create_biases(graph: Graph, params: RnnParams, units: Sequence[int], name: str) -> Tensor:
    """Add biases, one for each output of every unit."""
    params.check(name)
    biases = graph.addVariable(params.dataType, [*units, params.outputs], name)
    mapTensorLinearly(graph, biases)
    return biases


@dataclass(frozen=True, slots=True)
class Sums:
    """What units add up in a step: the inputs and the state times their weights, and the biases.

    With `before` the sums of the inputs and biases of all steps stand in `inputs` already.
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
        slices = popops.dynamicSlice(
            self.graph, self.inputs, index, [0], [1], prog, f"{self.name}/input"
        )
        return slices.squeeze([0])

    def of(self, taken: Tensor, state: Tensor, prog: Program) -> Tensor:
        """Give the sums [batch, units times outputs] of a step."""
        left = state if self.before else concat([taken, state], 1)
        product = poplin.matMul(
            self.graph, left, self.kernel, prog, None, f"{self.name}/Weight", self.options
        )
        if self.before:
            popops.addInPlace(self.graph, product, taken, prog, f"{self.name}/Inputs")
        else:
            add_biases(self.graph, product, self.biases, prog, f"{self.name}/Biases")
        return product


def sums_of(
    graph: Graph,
    inputs: Tensor,
    kernels: tuple[Tensor, Tensor],
    biases: Tensor,
    values: Mapping[str, OptionValue],
    prog: Program,
    name: str,
) -> Sums:
    """Prepare the sums of units by the matrices for inputs and for the state.

    With the option `preCalcWeights` the product of all inputs is added to a program at once.
    """
    options: Options = {key: values[key] for key in ("availableMemoryProportion", "partialsType")}
    if not values["preCalcWeights"]:
        return Sums(graph, inputs, concat(list(kernels), 0), biases, False, options, name)
    steps, batch, size = inputs.shape
    flat = inputs.reshape([steps * batch, size])
    product = poplin.matMul(graph, flat, kernels[0], prog, None, f"{name}/PreCalc", options)
    add_biases(graph, product, biases, prog, f"{name}/PreCalcBiases")
    shape = [steps, batch, product.dim(1)]
    # All steps of a sum lie on one tile, so that no step moves those of others.
    whole = popops.createSliceableTensor(
        graph, inputs.dtype, shape, [0], [1], GROUPED, f"{name}/PreCalcSums"
    )
    prog.add(Copy(product.reshape(shape), whole, name=f"{name}/PreCalcSums"))
    return Sums(graph, whole, kernels[1], biases, True, options, name)


def add_biases(graph: Graph, sums: Tensor, biases: Tensor, prog: Program, name: str) -> None:
    """Add a bias a column to the rows of a matrix."""
    popops.addInPlace(graph, sums, biases.expand([0]).broadcast(sums.dim(0), 0), prog, name)


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
    graph: Graph, steps: int, prog: Program, name: str, body: Callable[[Tensor, Program], None]
) -> None:
    """Run what `body` adds for each time step; it is given the number of the step, on tile 0."""
    index = graph.addVariable(UNSIGNED_INT, [1], f"{name}/seqIdx")
    graph.setTileMapping(index, 0)
    popops.zero(graph, index, prog, f"{name}/initSeqIdx")
    step = Program()
    body(index, step)
    popops.addInPlace(graph, index, 1, step, f"{name}/seqIdxIncr")
    prog.add(Repeat(steps, step, name))


def keep_step(
    graph: Graph, sequence: Tensor, step: Tensor, index: Tensor, prog: Program, name: str
) -> None:
    """Write a step into a sequence."""
    popops.dynamicUpdate(graph, sequence, step.expand([0]), index, [0], [1], prog, name)


def sequence_like(graph: Graph, step: Tensor, steps: int, name: str) -> Tensor:
    """Add a variable for a value of each step, on the tiles of one."""
    return popops.createSliceableTensorFromSlice(graph, step.expand([0]), [0], [steps], name)


def copy_of(graph: Graph, tensor: Tensor, prog: Program, name: str) -> Tensor:
    """Copy a tensor, so that what it is given stays as it is."""
    copy = graph.clone(tensor, f"{name}/state")
    prog.add(Copy(tensor, copy, name=f"{name}/state"))
    return copy


@dataclass(slots=True)
class Kept:
    """What each step leaves for a backward pass, when it is wanted: as one tensor of all steps."""

    graph: Graph
    wanted: list[Tensor] | None
    steps: int
    name: str

    def add(self, values: Tensor, index: Tensor, prog: Program) -> None:
        """Keep the values of a step."""
        if self.wanted is None:
            return
        sequence = sequence_like(self.graph, values, self.steps, self.name)
        keep_step(self.graph, sequence, values, index, prog, self.name)
        self.wanted.append(sequence)
